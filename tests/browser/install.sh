#!/bin/sh
# Find or install what the tests of the explorer's page need. What cannot be had is named, and its tests are skipped.
cd "$(dirname "$0")" || exit 1

found=""
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null 2>&1 && found=yes
done
[ -n "$AIRPASS_CHROMIUM" ] && found=yes
if [ -z "$found" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Chromium"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } >/dev/null 2>&1
    command -v chromium >/dev/null 2>&1 && found=yes
fi
[ -n "$found" ] || echo "no Chromium: tests of the page are skipped (install chromium, or set AIRPASS_CHROMIUM)"

if [ ! -e node_modules/.installed ] || [ package-lock.json -nt node_modules/.installed ]; then
    if command -v npm >/dev/null 2>&1 && npm ci --silent --no-audit --no-fund >/dev/null 2>&1; then
        touch node_modules/.installed
    else
        echo "no npm packages: tests of accessibility and of the scripts' types are skipped"
    fi
fi
exit 0

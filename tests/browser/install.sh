#!/bin/sh
# Find or install what the tests of the explorer's page need. What cannot be had is named, and its tests are skipped.
cd "$(dirname "$0")" || exit 1

found() {
    [ -n "$AIRPASS_CHROMIUM" ] && return 0
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" >/dev/null 2>&1 && return 0
    done
    return 1
}

thrice() { # a command, which may fail for a moment
    "$@" >/dev/null 2>&1 || { sleep 5; "$@" >/dev/null 2>&1; } || { sleep 20; "$@" >/dev/null 2>&1; }
}

install_chromium() {
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium
}

if ! found && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Chromium"
    thrice install_chromium
fi
found || echo "no Chromium: tests of the page are skipped (install chromium, or set AIRPASS_CHROMIUM)"

if [ ! -e node_modules/.installed ] || [ package-lock.json -nt node_modules/.installed ]; then
    if command -v npm >/dev/null 2>&1 && thrice npm ci --no-audit --no-fund; then
        touch node_modules/.installed
    else
        echo "no npm packages: tests of accessibility and of the scripts' types are skipped"
    fi
fi
exit 0

#!/bin/sh
# Test the files in dist/ without the repository. Usage: tests/dist.sh PYTHON EXTRAS
#
# The wheel is installed into an empty environment, with the extras; the tests are those of the sdist, whose
# sources are removed. With the extra learn the demo runs as well, without it tests of training are left out.
set -eu
python=$1 extras=$2
repository=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
chmod 755 "$folder" # a test runs the package as another user
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/venv"
bin=$folder/venv/bin
"$bin/python" -m pip install --quiet --constraint "$repository/constraints.txt" \
    "$(echo "$repository"/dist/airpass-*.whl)[$extras]"
mkdir "$folder/source"
tar xzf "$repository"/dist/airpass-*.tar.gz -C "$folder/source" --strip-components 1
rm -r "$folder/source/src"
cd "$folder"
"$bin/airpass" --version
"$bin/airpass" design --seed 1 --figure room.png
case ,$extras, in
*,learn,* | *,test,*) "$bin/airpass" demo --out demo ;;
esac
case ,$extras, in
*,test,*)
    cd source
    "$bin/python" -m pytest --numprocesses 2 -m "not slow"
    ;;
esac

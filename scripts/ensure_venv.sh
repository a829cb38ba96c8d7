#!/usr/bin/env bash
# Makes the virtual environment .venv with the pinned set and midstream itself (editable), unless it stands already.
# PYTHON names the interpreter to use; without it the first Python >= 3.11 on the PATH is taken.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/.complete

fresh() { # is the stamp newer than everything it was made from?
    [ -f "$stamp" ] && [ ! requirements-dev.txt -nt "$stamp" ] && [ ! pyproject.toml -nt "$stamp" ] \
        && "$venv/bin/python" -c '' 2>/dev/null
}

find_python() {
    local python
    for python in ${PYTHON:-python3.11 python3 python3.12 python3.13}; do
        if command -v "$python" >/dev/null && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return 0
        fi
    done
    echo "ensure_venv: no Python 3.11 or newer found. Remedy: install one, or name it: make PYTHON=/path/to/python3.11" >&2
    exit 2
}

fresh && exit 0
python=$(find_python)
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "ensure_venv: $python cannot make virtual environments; installing python$version-venv with apt-get" >&2
        apt-get update -qq >&2 || true
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "python$version-venv" >&2
    else
        echo "ensure_venv: $python cannot make virtual environments. Remedy: sudo apt-get install python$version-venv" >&2
        exit 2
    fi
fi
echo "ensure_venv: making $venv with the pinned set (once)" >&2
rm -f "$stamp"
"$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
    -r requirements-dev.txt
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --editable .
touch "$stamp"

#!/usr/bin/env bash
# Write requirements-dev.txt: what a clean environment gets today from PyPI for the ranges of pyproject.toml.
# Names, versions and hashes are written, whatever index pip is set to use.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"${PYTHON:-python3.11}" -m venv "$venv"
PIP_CONFIG_FILE=/dev/null "$venv/bin/python" -m pip install --quiet --index-url https://pypi.org/simple ".[dev]"
"$venv/bin/python" -m pip freeze --exclude midstream >"$venv/set.txt"
PIP_CONFIG_FILE=/dev/null "$venv/bin/python" -m pip install --quiet --index-url https://pypi.org/simple uv
{
    echo "# The versions that development and CI run on, with hashes. Written by scripts/lock.sh; do not edit."
    # Without a version uv asks that the set serves 3.11.0 too, which some packages have left.
    version=$("$venv/bin/python" -c 'import platform; print(platform.python_version())')
    "$venv/bin/uv" pip compile --quiet --no-deps --universal --python-version "$version" --generate-hashes \
        --no-header --no-annotate --index-url https://pypi.org/simple "$venv/set.txt"
} >requirements-dev.txt

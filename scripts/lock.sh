#!/usr/bin/env bash
# Writes requirements-dev.txt: what a clean environment gets today from PyPI for the ranges of pyproject.toml.
# Only package names and versions are written, whatever index pip is set to use.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"${PYTHON:-python3.11}" -m venv "$venv"
PIP_CONFIG_FILE=/dev/null "$venv/bin/python" -m pip install --quiet --index-url https://pypi.org/simple ".[dev]"
{
    echo "# The set of versions that development and CI run on. Written by scripts/lock.sh; do not edit."
    "$venv/bin/python" -m pip freeze --exclude midstream
} >requirements-dev.txt

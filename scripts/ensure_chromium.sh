#!/usr/bin/env bash
# Prints the path of a Chromium (or Chrome); everything else goes to stderr.
# Order: CHROMIUM, the PATH, the usual places, then (as root, with apt) an installation. Exit 2: it is up to you.
set -euo pipefail

find_chromium() {
    local program
    for program in "${CHROMIUM:-/nonexistent}" \
        "$(command -v chromium || command -v chromium-browser || command -v google-chrome ||
            command -v google-chrome-stable || echo /nonexistent)" \
        "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}"/chromium-*/chrome-linux*/chrome \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
        /Applications/Chromium.app/Contents/MacOS/Chromium; do
        if [ -x "$program" ] && [ ! -d "$program" ]; then
            echo "$program"
            return 0
        fi
    done
    return 1
}

install_chromium() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "ensure_chromium: no Chromium found; installing one with apt-get" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 || true
    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2
}

find_chromium && exit 0
if install_chromium && find_chromium; then
    exit 0
fi
cat >&2 <<TEXT
ensure_chromium: the tests of the dashboard need a browser, and none was found.
Remedy: install one, then run make again:
  Debian:  sudo apt-get install chromium
  Fedora:  sudo dnf install chromium
  macOS:   brew install --cask chromium
or set CHROMIUM to the program.
TEXT
exit 2

#!/usr/bin/env bash
# Prints the folder of PostgreSQL's server programs (initdb, postgres); everything else goes to stderr.
# Order: POSTGRESQL_BIN, the PATH, the usual folders, then (as root, with apt) an installation. Exit 2: it is up to you.
set -euo pipefail

find_postgresql() {
    local folder
    for folder in "${POSTGRESQL_BIN:-/nonexistent}" "$(dirname "$(command -v initdb || echo /nonexistent/initdb)")" \
        /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin; do
        if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then
            echo "$folder"
            return 0
        fi
    done
    return 1
}

install_postgresql() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "ensure_postgresql: no PostgreSQL server found; installing one with apt-get" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 || true
    # Only the programs: no cluster is made, and no server started.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" \
        >/etc/postgresql-common/createcluster.conf
    apt-get install -y -qq --no-install-recommends postgresql >&2
}

find_postgresql && exit 0
if install_postgresql && find_postgresql; then
    exit 0
fi
cat >&2 <<TEXT
ensure_postgresql: the tests of the PostgreSQL sink need a server's programs, and none were found.
Remedy: install them, then run make again:
  Debian, Ubuntu:  sudo apt-get install postgresql
  Fedora:          sudo dnf install postgresql-server
  macOS:           brew install postgresql
or set POSTGRESQL_BIN to the folder that has initdb and postgres.
TEXT
exit 2

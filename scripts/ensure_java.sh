#!/usr/bin/env bash
# Prints a JAVA_HOME of Java 17 or newer; everything else goes to stderr.
# Order: JAVA_HOME, java on the PATH, the usual folders, then (as root, with apt) an installation. Exit 2: it is up to you.
set -euo pipefail

least=17

major() { # of the java given, or 0
    local version
    version=$("$1" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1) || true
    echo "${version:-0}"
}

home_of() { # the JAVA_HOME of a java binary
    "$1" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p'
}

find_java() {
    local java
    for java in "${JAVA_HOME:-/nonexistent}/bin/java" "$(command -v java || true)" /usr/lib/jvm/*/bin/java \
        /opt/homebrew/opt/openjdk*/bin/java /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        if [ -x "$java" ] && [ "$(major "$java")" -ge "$least" ]; then
            home_of "$java"
            return 0
        fi
    done
    return 1
}

install_java() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "ensure_java: no Java $least found; installing a headless one with apt-get" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 || true
    local package
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        if apt-get install -y -qq --no-install-recommends "$package" >&2; then
            return 0
        fi
    done
    return 1
}

find_java && exit 0
if install_java && find_java; then
    exit 0
fi
cat >&2 <<TEXT
ensure_java: Spark needs Java $least or newer, and none was found.
Remedy: install one, then run make again:
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless
  Fedora:          sudo dnf install java-17-openjdk-headless
  macOS:           brew install openjdk@17
or set JAVA_HOME to the folder of one that you have.
TEXT
exit 2

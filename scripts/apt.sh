#!/usr/bin/env bash
# Installs packages of Debian. A mirror that does not answer is asked again, twice.
#
#   scripts/apt.sh PACKAGE...
set -euo pipefail

command -v apt-get >/dev/null && [[ $(id -u) -eq 0 ]] || { echo "scripts/apt.sh: missing: $*; install them, or run as root where apt-get is" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
for pause in 10 30 0; do
    if apt-get update -qq >&2 && apt-get install -yqq --no-install-recommends -o Acquire::Retries=3 "$@" >&2; then
        exit 0
    fi
    echo "scripts/apt.sh: apt-get failed" >&2
    sleep "$pause"
done
exit 1

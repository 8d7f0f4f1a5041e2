#!/usr/bin/env bash
# Find a Chromium, or install Debian's once, and print its path: report_check.py tests the page of `restride compile --report`
# in it. Nothing else goes to stdout.
#
#   CHROMIUM=$(scripts/chromium.sh)
#
# $RESTRIDE_CHROMIUM names another one (Chrome, Edge).
set -euo pipefail

find_one() {
    local name
    for name in ${RESTRIDE_CHROMIUM:+"$RESTRIDE_CHROMIUM"} chromium chromium-browser google-chrome; do
        command -v "$name" && return
    done
    return 1
}

if ! find_one >/dev/null; then
    if ! command -v apt-get >/dev/null || [[ $(id -u) -ne 0 ]]; then
        echo "chromium: not found; install it, or name one in RESTRIDE_CHROMIUM" >&2
        exit 1
    fi
    echo "chromium: installing Debian's" >&2
    {
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core
    } >&2
fi
find_one || { echo "chromium: installed, but not found" >&2; exit 1; }

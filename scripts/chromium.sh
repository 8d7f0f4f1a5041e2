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
    echo "chromium: installing Debian's; \$RESTRIDE_CHROMIUM names another one" >&2
    "$(dirname "${BASH_SOURCE[0]}")/apt.sh" chromium fonts-dejavu-core
fi
find_one || { echo "chromium: installed, but not found" >&2; exit 1; }

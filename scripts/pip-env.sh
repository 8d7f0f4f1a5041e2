#!/usr/bin/env bash
# Makes, once, a Python environment of its own for tools of PyPI, and prints its folder: ~/.cache/restride/NAME. One that was not
# finished, as its stamp is missing, or that has other packages, is made anew.
#
#   tools=$(scripts/pip-env.sh NAME PACKAGE...)
set -euo pipefail

name=$1
shift
env=${HOME:?}/.cache/restride/$name
stamp=$env/.restride-stamp

# One maker at a time: two builds on a machine may ask at once.
mkdir -p "$(dirname "$env")"
if command -v flock >/dev/null; then
    exec 9>"$env.lock"
    flock 9
fi
if [[ ! -f $stamp || $(cat "$stamp") != "$*" ]]; then
    rm -rf "$env"
    python3 -m venv "$env" >&2
    # An index that does not answer is asked again.
    "$env/bin/pip" install --quiet --disable-pip-version-check --retries 5 "$@" >&2
    echo "$*" >"$stamp"
fi
echo "$env"

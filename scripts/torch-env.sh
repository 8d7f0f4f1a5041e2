#!/usr/bin/env bash
# Make, once, the Python environment of the scripts (PyTorch, Playwright, ruff) and print the path of its python. Nothing else
# goes to stdout.
#
#   PY=$(scripts/torch-env.sh)
#
# The environment is in $RESTRIDE_TORCH_VENV (default ~/.cache/restride/torch-venv), outside the checkout; an existing one with
# the packages below is used as it is. Packages come from pip's configured index; $RESTRIDE_TORCH_INDEX names another one
# to look for torch and torchvision in (a CPU-only one saves gigabytes).
set -euo pipefail

venv=${RESTRIDE_TORCH_VENV:-${HOME:?}/.cache/restride/torch-venv}
packages=(torch==2.15.0 torchvision==0.29.2 timm==1.0.31 transformers==5.23.0 numpy safetensors expecttest)
packages+=(playwright==1.65.2 ruff==0.17.6)
stamp=$venv/.restride-stamp
python=$venv/bin/python

works() {
    [[ -x $python ]] && OMP_NUM_THREADS=1 "$python" - "${packages[@]}" <<'PY' >/dev/null 2>&1
import importlib, importlib.metadata, sys
for requirement in sys.argv[1:]:
    name, _, version = requirement.partition("==")
    importlib.import_module(name)
    found = importlib.metadata.version(name)
    assert version in ("", found.partition("+")[0]), (name, found)
PY
}

# One maker at a time: two builds on a machine may ask at once.
mkdir -p "$(dirname "$venv")"
if command -v flock >/dev/null; then
    exec 9>"$venv.lock"
    flock 9
fi

if [[ ! -x $python || ! -f $stamp || $(cat "$stamp") != "${packages[*]}" ]]; then
    if ! works; then
        if [[ -e $venv && ! -f $venv/pyvenv.cfg && -n $(ls -A "$venv") ]]; then
            echo "torch-env: $venv exists and is no virtual environment; not touching it" >&2
            exit 1
        fi
        install() {
            "$python" -m pip install --quiet --disable-pip-version-check \
                ${RESTRIDE_TORCH_INDEX:+--extra-index-url "$RESTRIDE_TORCH_INDEX"} "${packages[@]}" >&2
        }
        # A finished environment of an older list gets the new packages; checks that run in it go on.
        if [[ -x $python && -f $stamp ]]; then
            echo "torch-env: adding to $venv" >&2
            install || true
        fi
    fi
    if ! works; then
        echo "torch-env: making $venv" >&2
        rm -rf "$venv" # half-made
        "${PYTHON:-python3}" -m venv "$venv"
        install
        works || { echo "torch-env: $venv was made but does not import ${packages[*]}" >&2; exit 1; }
    fi
    echo "${packages[*]}" >"$stamp"
fi
echo "$python"

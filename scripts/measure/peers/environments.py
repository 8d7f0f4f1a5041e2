"""The python of each compiler's own environment, made once, outside of the checkout.

They are in $RESTRIDE_PEERS (default ~/.cache/restride/peers/NAME): pinned packages from pip's index, and PyTorch from the
environment that scripts/torch-env.sh makes, so that PyTorch is installed once.
"""

import os
from pathlib import Path
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib import common  # noqa: E402


def torch_python():
    return subprocess.run([os.path.join(common.ROOT, "scripts", "torch-env.sh")], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def output_of(python, code):
    return subprocess.run([python, "-c", code], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def versions(python, packages):
    """Requirements with the versions that are installed, as a list in words."""
    names = [r.split("==")[0] for r in packages]
    return output_of(python, f"from importlib.metadata import version as v; print(', '.join(f'{{p}} {{v(p)}}' for p in {names!r}))")


def environment(name, packages, torch):
    """The python of an environment with these packages, and None; or None, and an error text where it cannot be made."""
    if not packages:
        return torch, None
    root = os.environ.get("RESTRIDE_PEERS") or os.path.expanduser("~/.cache/restride/peers")
    venv = os.path.join(root, name)
    python, stamp = os.path.join(venv, "bin", "python"), os.path.join(venv, ".restride-stamp")
    wanted = " ".join(packages)
    if os.path.exists(stamp):
        with open(stamp) as f:
            if f.read() == wanted:
                return python, None
    print(f"{name}: making {venv}", file=sys.stderr)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    steps = [[torch, "-m", "venv", "--clear", venv], [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]]
    for i, step in enumerate(steps):
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if line.strip()]
            return None, f"not installed: {lines[-1] if lines else 'pip failed'}"
        if i == 0:
            with open(os.path.join(output_of(python, where), "restride-torch.pth"), "w") as f:
                f.write(output_of(torch, where) + "\n")
    with open(stamp, "w") as f:
        f.write(wanted)
    return python, None


def write_between(path, begin, end, text):
    """Replace what is between two marks in a file."""
    with open(path) as f:
        before, _, rest = f.read().partition(begin)
    _, _, after = rest.partition(end)
    with open(path, "w") as f:
        f.write(f"{before}{begin}\n\n{text}\n{end}{after}")

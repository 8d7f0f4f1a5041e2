"""The python of each compiler's own environment, made once outside the checkout.

Environments are in $RESTRIDE_PEERS (default ~/.cache/restride/peers/NAME): pinned packages from pip's index, and PyTorch from
the environment of scripts/torch-env.sh, so that PyTorch is installed once.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib.command import ROOT

HERE = Path(__file__).resolve().parent
# What pip installs into each environment, by its name.
PACKAGES = {
    "tvm": ["apache-tvm==0.27.0.post1"],
    "torch-mlir": ["torch-mlir==20261001"],
    "iree": ["iree-turbine==3.9.0", "iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0"],
    "executorch": ["executorch==1.5.1"],
    "onnxruntime": ["onnx==1.23.2", "onnxscript==0.7.2", "onnxruntime==1.32.0"],
}


def torch_python():
    return subprocess.run([ROOT / "scripts/torch-env.sh"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def output_of(python, code):
    return subprocess.run([python, "-c", code], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def torch_version(torch):
    return output_of(torch, "import torch; print(torch.__version__.partition('+')[0])")


def vectors(capability):
    """The vectors of this processor, as docs name them, from what torch.backends.cpu.get_cpu_capability() says; with its maker
    where that is not AMD, for whose processors PyTorch's libraries choose other kernels."""
    kind = {"AVX512": "AVX-512"}.get(capability, capability)
    cpuinfo = Path("/proc/cpuinfo")
    intel = cpuinfo.exists() and "GenuineIntel" in cpuinfo.read_text()
    return f"{kind}, Intel" if intel else kind


def model_names(torch):
    """The names of models.py, which needs torch."""
    here = str(HERE)
    return output_of(torch, f"import sys; sys.path.insert(0, {here!r}); import models; print(*models.MODELS)").split()


def versions(python, name):
    """The packages of an environment with the versions that are installed, as a list in words."""
    names = [r.split("==")[0] for r in PACKAGES[name]]
    return output_of(
        python, f"from importlib.metadata import version as v; print(', '.join(f'{{p}} {{v(p)}}' for p in {names!r}))"
    )


def environment(name, torch):
    """The python of an environment (torch's without a name), and None; or None, and an error text where it cannot be made."""
    if not name:
        return torch, None
    packages = PACKAGES[name]
    venv = Path(os.environ.get("RESTRIDE_PEERS") or "~/.cache/restride/peers").expanduser() / name
    python, stamp, wanted = str(venv / "bin/python"), venv / ".restride-stamp", " ".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return python, None
    print(f"{name}: making {venv}", file=sys.stderr)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    for step in ([torch, "-m", "venv", "--clear", venv], install):
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if line.strip()]
            return None, f"not installed: {lines[-1] if lines else 'pip failed'}"
        if step != install:
            Path(output_of(python, where), "restride-torch.pth").write_text(output_of(torch, where) + "\n")
    stamp.write_text(wanted)
    return python, None

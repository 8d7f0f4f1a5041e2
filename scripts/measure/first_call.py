#!/usr/bin/env python3
"""Seconds from `torch.compile(model)` to the first result, inference, with empty caches: restride beside TorchInductor.

    first_call.py                        both models, each backend
    first_call.py resnet18 --runs 3      the fastest of three runs of one model

Each run is a process of its own with one thread. Processor time includes the compilers that TorchInductor starts.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "wheel-site"
MODELS = ("resnet18", "llama")
BACKENDS = ("inductor", "restride")


def built(name):
    import torch

    torch.manual_seed(0)
    if name == "resnet18":
        import torchvision

        return torchvision.models.resnet18(weights=None).eval(), (torch.randn(1, 3, 224, 224),)
    import transformers

    config = transformers.LlamaConfig(
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=4,
        num_attention_heads=8,
        vocab_size=1000,
        use_cache=False,
    )
    return transformers.LlamaForCausalLM(config).eval(), (torch.randint(0, 1000, (1, 32)),)


def work(name, backend):
    """Prints the seconds of one first call: elapsed, and of processors."""
    import torch

    torch.set_num_threads(1)
    model, args = built(name)
    spent = lambda: sum(os.times()[:4])
    with torch.no_grad():
        model(*args)
        start, before = time.perf_counter(), spent()
        torch.compile(model, backend=backend)(*args)
    print(json.dumps({"elapsed": time.perf_counter() - start, "processor": spent() - before}))


def measured(name, backend):
    """The seconds of a first call in a process of its own, without anything kept from earlier ones."""
    with tempfile.TemporaryDirectory() as caches:
        path = [str(SITE)] if SITE.exists() else []
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path + [p for p in [os.environ.get("PYTHONPATH")] if p]),
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "TORCHINDUCTOR_CACHE_DIR": caches,
            # In this process, whose children are counted.
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        command = [sys.executable, __file__, "--work", name, backend]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name} with {backend}: {done.stderr.strip().splitlines()[-1:]}")
        return json.loads(done.stdout.splitlines()[-1])


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("names", nargs="*")
    args.add_argument("--backend", nargs="+", default=list(BACKENDS), choices=BACKENDS)
    args.add_argument("--runs", type=int, default=1)
    args.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    args = args.parse_args()
    if args.work:
        return work(*args.work)
    print("| model | backend | elapsed, s | processor, s |\n|---|---|---|---|")
    for name in args.names or MODELS:
        for backend in args.backend:
            found = min((measured(name, backend) for _ in range(args.runs)), key=lambda r: r["processor"])
            print(f"| {name} | {backend} | {found['elapsed']:.1f} | {found['processor']:.1f} |", flush=True)


if __name__ == "__main__":
    main()

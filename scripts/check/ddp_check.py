#!/usr/bin/env python3
"""Hold training steps on several ranks to torch.nn.parallel.DistributedDataParallel (gloo, one process a rank on this machine).

One model, each rank with its own batch, 20 steps with SGD (momentum) and with Adam: by DDP in single and in double precision, by the
steps that `restride grad --data-parallel` makes, in small buckets and with one exchange a gradient, and by those of `--shard`.
Losses of every rank and step must follow DDP's in double precision, or be at most twice as far from them as DDP's in single
precision. The step must have no more copies than the step of one rank alone, which has no buckets, and need less memory than DDP:
the state, and the most that a step allocates beside it; DDP's own buckets, which it keeps, are not counted.

Ranks of restride are threads of the example `train`, and with `--mpi` processes of mpirun. PyTorch runs the written steps too, by
torch.export.load under torch.distributed.
"""

import argparse
import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, example

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, dict(lr=0.05, momentum=0.9), "--optimizer sgd --lr 0.05 --momentum 0.9"),
    "adam": (torch.optim.Adam, dict(lr=0.002), "--optimizer adam --lr 0.002"),
}
# Options of `grad` beside the optimizer; `{ranks}` is their number.
WAYS = {
    "buckets of 64 KiB": "--data-parallel --bucket-bytes 64KiB",
    "one exchange a gradient": "--data-parallel --bucket-bytes 0",
    "sharded": "--data-parallel --bucket-bytes 64KiB --shard {ranks}",
}
STEPS = 20


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8 * 64, 128),
            torch.nn.LayerNorm(128),
            torch.nn.GELU(),
            torch.nn.Linear(128, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, 10),
        )

    def forward(self, x, y):
        return torch.nn.functional.cross_entropy(self.layers(torch.relu(self.conv(x)).flatten(1)), y)


def built():
    torch.manual_seed(0)
    return Model().train()


def batch(rank):
    generator = torch.Generator().manual_seed(rank + 1)
    return torch.randn(8, 1, 8, 8, generator=generator), torch.randint(0, 10, (8,), generator=generator)


def storages(tensors):
    """Bytes of the storages of tensors, each once."""
    unique = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(unique.values())


def trained(name, double, rank):
    """Losses of 20 steps by DDP, and the most bytes of a step with the state."""
    kind, options, _ = OPTIMIZERS[name]
    module, (x, y) = built(), batch(rank)
    if double:
        module, x = module.double(), x.double()
    parallel = torch.nn.parallel.DistributedDataParallel(module)
    optimizer, losses = kind(module.parameters(), **options), []

    def step():
        loss = parallel(x, y)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        losses.append(step())
    optimizer.zero_grad(set_to_none=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    events = profile.profiler.kineto_results.events()
    now = peak = 0
    for _, _, size in sorted((e.start_ns(), k, e.nbytes()) for k, e in enumerate(events) if e.name() == "[memory]"):
        now += size
        peak = max(peak, now)
    kept = [*module.parameters(), *module.buffers()]
    kept += [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
    return losses, storages(kept) + peak


@contextlib.contextmanager
def group(rank, size, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    yield
    dist.barrier()
    dist.destroy_process_group()


def by_torch(rank, folder, size, port):
    with group(rank, size, port):
        out = {name: [trained(name, double, rank) for double in (False, True)] for name in OPTIMIZERS}
        (folder / f"ddp.{rank}.json").write_text(json.dumps(out))
        torch.export.save(torch.export.export(built(), batch(rank), strict=False), folder / f"model.{rank}.pt2")


def by_files(rank, folder, size, port):
    """Losses of a rank's written steps."""
    losses = {}
    with group(rank, size, port), torch.no_grad():
        for name, way in itertools.product(OPTIMIZERS, WAYS):
            program = torch.export.load(folder / f"{name}, {way}.{rank}.pt2")
            step, args = program.module(), program.example_inputs[0]
            losses[f"{name}, {way}"] = [float(step(*args)) for _ in range(STEPS)]
        (folder / f"files.{rank}.json").write_text(json.dumps(losses))


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()[-500:]}")
    return done.stdout


def numbers(out, rank):
    """Losses, bytes and copies that the example `train` prints for a rank, or alone."""
    lines = [m[1] for m in re.finditer(rf"^(?:rank {rank} )?((?:step|plan) .*)$", out, re.M)]
    losses = [float(m[1]) for line in lines if (m := re.search(r"loss (\S+)", line))]
    plan = next(line for line in lines if line.startswith("plan"))
    values = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", plan)}
    return losses, values["arena_bytes"] + values["state_bytes"] + values["output_bytes"], values["copies"]


def differ(ours, single, double):
    """The first step whose loss is too far from DDP's, in words."""
    for k, (a, b, true) in enumerate(zip(ours, single, double, strict=True)):
        if abs(a - true) > max(1e-4 * abs(true) + 1e-5, 2 * abs(b - true)):
            return f"step {k}: loss {a}, DDP {b}, in double precision {true}"
    return None


def steps(folder, size, restride, name, way):
    """Writes the step of each rank, which has the rank's batch as its sample inputs."""
    options = [*OPTIMIZERS[name][2].split(), *way.format(ranks=size).split()]
    for rank in range(size):
        out = folder / ("all.{rank}.pt2" if "--shard" in options else f"step.{rank}.pt2")
        run([restride, "grad", folder / f"model.{rank}.pt2", "-o", out, *options])
        if "--shard" in options:
            (folder / f"all.{rank}.pt2").rename(folder / f"step.{rank}.pt2")


def check(size, options, folder, port):
    faults, rows = [], []
    mp.spawn(by_torch, (folder, size, port), nprocs=size)
    ddp = [json.loads((folder / f"ddp.{rank}.json").read_text()) for rank in range(size)]
    engines = {"threads": [options.train, folder / "step.{rank}.pt2", STEPS, size]}
    if options.mpi:
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", size, options.mpi]
        engines["MPI"] = [*mpirun, folder / "step.{rank}.pt2", STEPS]
    for name in OPTIMIZERS:
        alone = folder / "alone.pt2"
        run([options.binary, "grad", folder / "model.0.pt2", "-o", alone, *OPTIMIZERS[name][2].split()])
        _, one_rank, copies = numbers(run([options.train, alone, 1]), 0)
        for way, words in WAYS.items():
            steps(folder, size, options.binary, name, words)
            for rank in range(size):
                shutil.copy(folder / f"step.{rank}.pt2", folder / f"{name}, {way}.{rank}.pt2")
            for engine, command in engines.items():
                what = f"{size} ranks, {name}, {way}, {engine}"
                out = run(command)
                for rank in range(size):
                    losses, peak, own = numbers(out, rank)
                    (single, least), (double, _) = ddp[rank][name]
                    fault = differ(losses, single, double)
                    faults += [f"{what}: rank {rank}, {fault}"] if fault else []
                    if own > copies:
                        faults.append(f"{what}: rank {rank}: {own} copies, and {copies} on one rank")
                    if peak >= least:
                        faults.append(f"{what}: rank {rank}: {peak} bytes, and DDP {least}")
                rows.append((what, peak, least, one_rank, own))
    mp.spawn(by_files, (folder, size, port), nprocs=size)
    for rank in range(size):
        for what, losses in json.loads((folder / f"files.{rank}.json").read_text()).items():
            (single, _), (double, _) = ddp[rank][what.split(",")[0]]
            fault = differ(losses, single, double)
            faults += [f"{size} ranks, {what}, torch.export.load: rank {rank}, {fault}"] if fault else []
    for what, peak, least, one_rank, own in rows:
        print(f"{what}: {peak / 1e3:.1f} kB, DDP {least / 1e3:.1f} kB, one rank {one_rank / 1e3:.1f} kB; {own} copies")
    return len(rows), faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("RESTRIDE", str(ROOT / "target/release/restride")))
    parser.add_argument("--train", help="the example `train` of the crate restride; built if it is not given")
    parser.add_argument(
        "--mpi", metavar="TRAIN", help="the example, built with the feature `mpi`, to run under mpirun too"
    )
    parser.add_argument("--sizes", default="2,4", help="numbers of ranks")
    parser.add_argument("--port", type=int, default=29700, help="first port for torch.distributed")
    options = parser.parse_args()
    options.train = options.train or example("train")
    total, faults = 0, []
    for k, size in enumerate(int(n) for n in options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as name:
            runs, found = check(size, options, Path(name), options.port + k)
            total, faults = total + runs, faults + found
    for fault in faults:
        print(fault)
    print(f"{total} runs of {STEPS} steps beside DDP, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

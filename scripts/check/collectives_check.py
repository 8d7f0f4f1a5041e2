#!/usr/bin/env python3
"""Hold programs with collectives to torch.distributed (gloo, one process a rank on this machine).

Each program is exported under a fake process group. Its results on real ranks are compared with those of restride's three ways
of running, as threads (`--ranks`) or with `--mpi` as processes of mpirun, and with those of the files that functionalize,
reinplace and compile write, run by PyTorch.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.multiprocessing as mp


def in_place(x):
    y = x * 2
    dist.all_reduce(y)
    return y + 1


def through_a_view(x):
    y = x * 2
    dist.all_reduce(y[1:3])
    x.add_(y)
    return y


def through_a_column(x):
    y = x * 2
    part = y[:, 1].contiguous()
    dist.all_reduce(part)
    y[:, 1] = part
    return y


def overlapped(x):
    a = fc.all_reduce(x * 3, "sum", dist.group.WORLD)
    b = torch.relu(x) @ x.T
    return a + b[:, : x.shape[1]]


def gather_rows(x):
    return fc.all_gather_tensor(x, 0, dist.group.WORLD) * 2


def gather_columns(x):
    return fc.all_gather_tensor(x, 1, dist.group.WORLD) + 1


def scatter(x):
    return fc.reduce_scatter_tensor(torch.cat([x, x]), "sum", 0, dist.group.WORLD)


def coalesced(x):
    a, b = fc.all_reduce_coalesced([x, x[0] * 2], "max", dist.group.WORLD)
    c, d = fc.all_gather_into_tensor_coalesced([x, x[1]], dist.group.WORLD)
    return a, b + 1, c, d


def to_all(x):
    n = x.shape[0] // dist.get_world_size()
    return fc.all_to_all_single(x, [n] * dist.get_world_size(), [n] * dist.get_world_size(), dist.group.WORLD)


def from_one(x):
    return fc.broadcast(x * 2, 1, dist.group.WORLD) - x


def mean_of_a_transposed(x):
    return fc.all_reduce(x.t().contiguous(), "avg", dist.group.WORLD).t() * x


def autograd_forms(x):
    a = fc.all_gather_tensor_autograd(x, 0, dist.group.WORLD)
    return fc.reduce_scatter_tensor_autograd(a * a, "sum", 0, dist.group.WORLD)


PROGRAMS = [
    in_place,
    through_a_view,
    through_a_column,
    overlapped,
    gather_rows,
    gather_columns,
    scatter,
    coalesced,
    to_all,
    from_one,
    mean_of_a_transposed,
    autograd_forms,
]


class Wrapped(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def drawn(rank):
    return torch.randn(8, 3, generator=torch.Generator().manual_seed(rank))


def listed(out):
    out = out if isinstance(out, tuple | list) else (out,)
    return [(o.wait() if isinstance(o, fc.AsyncCollectiveTensor) else o).detach().clone() for o in out]


def export(folder, size):
    """Runs in a process of its own: the fake group is of that size."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=size, store=FakeStore())
    for function in PROGRAMS:
        program = torch.export.export(Wrapped(function), (drawn(0),))
        torch.export.save(program, folder / f"{function.__name__}.pt2")


def real(rank, folder, size, port, prefixes):
    """One rank of torch.distributed: the eager programs, and the written files whose names have these prefixes."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    for function in PROGRAMS:
        for prefix in ["", *prefixes]:
            x = drawn(rank)
            call = function if not prefix else torch.export.load(folder / f"{prefix}{function.__name__}.pt2").module()
            with torch.no_grad():
                torch.save((listed(call(x)), x), folder / f"{prefix}{function.__name__}.{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def command(binary, *args):
    done = subprocess.run([str(a) for a in [*binary, *args]], capture_output=True, text=True, timeout=300, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"{' '.join(str(a) for a in args)}: {done.stderr.strip()[-400:]}")


def close(a, b):
    return a.shape == b.shape and torch.allclose(a.float(), b.float(), rtol=1e-4, atol=1e-5)


def compare(folder, size, name, which, found):
    """Differences of one way of running `name`, whose outputs and input after the run `found` gives for a rank."""
    for rank in range(size):
        want, x = torch.load(folder / f"{name}.{rank}.pt")
        have, own = found(rank)
        if len(have) != len(want) or not all(map(close, have, want)):
            return f"{name}, {which}, rank {rank}: outputs differ"
        if own is not None and not close(own, x):
            return f"{name}, {which}, rank {rank}: the input differs after the run"
    return None


def check(size, binary, mpi, port):
    faults, compared = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exporter = mp.get_context("spawn").Process(target=export, args=(folder, size))
        exporter.start()
        exporter.join(300)
        if exporter.exitcode != 0:
            return 0, [f"{size} ranks: the export failed"]
        mp.spawn(real, (folder, size, port, []), nprocs=size)
        for rank in range(size):
            np.savez(folder / f"in.{rank}.npz", x=drawn(rank).numpy())
        ranks = [] if mpi else ["--ranks", size]
        run = [*mpi, binary] if mpi else [binary]
        for function in PROGRAMS:
            program = function.__name__
            path = folder / f"{program}.pt2"
            for via in ("interp", "functional", "plan"):
                io = ["--inputs", folder / "in.{rank}.npz", "--outputs", folder / "out.{rank}.npz"]
                try:
                    command(run, "run", path, "--via", via, "--quiet", *io, *ranks)
                except RuntimeError as e:
                    faults.append(f"{size} ranks: {e}")
                    continue

                def found(rank):
                    out = np.load(folder / f"out.{rank}.npz")
                    outputs = [torch.from_numpy(out[k]) for k in sorted(k for k in out if k.startswith("output."))]
                    after = torch.from_numpy(out["input.x"]) if "input.x" in out else None
                    return outputs, after

                fault = compare(folder, size, program, via, found)
                compared += 1
                faults += [f"{size} ranks: {fault}"] if fault else []
            for how in ("functionalize", "reinplace", "compile"):
                command([binary], how, path, "-o", folder / f"{how}-{program}.pt2")
        prefixes = ["functionalize-", "reinplace-", "compile-"]
        mp.spawn(real, (folder, size, port + 1, prefixes), nprocs=size)
        for function in PROGRAMS:
            for prefix in prefixes:

                def written(rank):
                    return torch.load(folder / f"{prefix}{function.__name__}.{rank}.pt")

                fault = compare(folder, size, function.__name__, prefix.strip("-"), written)
                compared += 1
                faults += [f"{size} ranks: {fault}"] if fault else []
    return compared, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("RESTRIDE", str(ROOT / "target/release/restride")))
    parser.add_argument(
        "--mpi", action="store_true", help="run restride under mpirun; the binary is built with --features mpi"
    )
    parser.add_argument("--sizes", default="2,4", help="numbers of ranks")
    args = parser.parse_args()
    total, faults = 0, []
    for k, size in enumerate(int(n) for n in args.sizes.split(",")):
        mpi = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", size] if args.mpi else []
        compared, found = check(size, args.binary, mpi, 29600 + 10 * k)
        total += compared
        faults += found
    for fault in faults:
        print(fault)
    print(f"{total} results of {len(PROGRAMS)} programs compared, {len(faults)} differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

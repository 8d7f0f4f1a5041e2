#!/usr/bin/env python3
"""Hold programs with collectives to torch.distributed (gloo, one process a rank on this machine).

Each program is exported under a fake process group, and each tensor-parallel module once for every rank, with the rank's own
weights. Their results on real ranks are compared with those of restride's three ways of running, as threads (`--ranks`) and with
`--mpi` as processes of mpirun too, and with those of the files that functionalize, reinplace and compile write, run by PyTorch.
Then faults: a rank with another program or other sizes, one that fails, and under MPI one that is killed, end all ranks with an
error in time, and write nothing.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, run
from lib.parallel_modules import MODULES, exported, parallel

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


def drawn(rank, name=""):
    """The input of a rank; tensor-parallel modules get the same one on all ranks."""
    if name in MODULES:
        return torch.randn(4, 8, generator=torch.Generator().manual_seed(7))
    return torch.randn(8, 3, generator=torch.Generator().manual_seed(rank))


def listed(out):
    out = out if isinstance(out, tuple | list) else (out,)
    return [(o.wait() if isinstance(o, fc.AsyncCollectiveTensor) else o).detach().clone() for o in out]


def export(rank, folder, size):
    """Runs in a process of its own: the fake group is of that size. Rank 0 exports what is the same for all ranks."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.set_num_threads(1)
    dist.init_process_group("fake", rank=rank, world_size=size, store=FakeStore())
    for name in MODULES:
        torch.export.save(exported(name, drawn(rank, name)), folder / f"{name}.{rank}.pt2")
    for function in PROGRAMS if rank == 0 else []:
        program = torch.export.export(Wrapped(function), (drawn(0),))
        torch.export.save(program, folder / f"{function.__name__}.pt2")


def file(folder, name, rank, prefix=""):
    return folder / (f"{prefix}{name}.{rank}.pt2" if name in MODULES else f"{prefix}{name}.pt2")


def real(rank, folder, size, port, prefixes):
    """One rank of torch.distributed: the eager programs, or the written files whose names have these prefixes."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    functions = {f.__name__: f for f in PROGRAMS}
    for name in [*functions, *MODULES]:
        for prefix in prefixes:
            x = drawn(rank, name)
            if prefix:
                call = torch.export.load(file(folder, name, rank, prefix)).module()
            else:
                call = functions[name] if name in functions else parallel(name)
            with torch.no_grad():
                torch.save((listed(call(x)), x), folder / f"{prefix}{name}.{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def command(limit, *args):
    done = run([str(a) for a in args], limit)
    if not done:
        raise RuntimeError(f"{' '.join(str(a) for a in args)}: {done.kind} {done.line[-400:]}")


def close(a, b):
    return a.shape == b.shape and torch.allclose(a.float(), b.float(), rtol=1e-4, atol=1e-5)


def compare(folder, size, name, which, found):
    """Differences of one way of running `name`, whose outputs and input after the run `found` gives for a rank."""
    for rank in range(size):
        want, x = torch.load(folder / f"{name}.{rank}.pt")
        have, own = found(rank)
        if len(have) != len(want) or not all(map(close, have, want)):
            return f"{size} ranks: {name}, {which}, rank {rank}: outputs differ"
        if own is not None and not close(own, x):
            return f"{size} ranks: {name}, {which}, rank {rank}: the input differs after the run"
    return None


def run_by_restride(folder, size, name, via, start, ranks):
    """A difference or an error of restride's run of a program."""
    out = folder / "out.{rank}.npz"
    args = ["--inputs", folder / ("same.npz" if name in MODULES else "in.{rank}.npz"), "--outputs", out]
    path = file(folder, name, "{rank}")
    for rank in range(size):
        (folder / f"out.{rank}.npz").unlink(missing_ok=True)
    try:
        command(120, *start, "run", path, "--via", via, "--quiet", *args, *ranks)
    except RuntimeError as e:
        return f"{size} ranks: {e}"

    def found(rank):
        out = np.load(folder / f"out.{rank}.npz")
        outputs = [torch.from_numpy(out[k]) for k in sorted(k for k in out if k.startswith("output."))]
        after = torch.from_numpy(out["input.x"]) if "input.x" in out else None
        return outputs, after

    return compare(folder, size, name, via, found)


def check(size, options, folder, port):
    """The number of compared results, and the differences."""
    faults, compared = [], 0
    mp.spawn(export, (folder, size), nprocs=size)
    mp.spawn(real, (folder, size, port, [""]), nprocs=size)
    np.savez(folder / "same.npz", x=drawn(0, next(iter(MODULES))).numpy())
    for rank in range(size):
        np.savez(folder / f"in.{rank}.npz", x=drawn(rank).numpy())
    names = [f.__name__ for f in PROGRAMS] + list(MODULES)
    for start, ranks in options.engines(size):
        for name in names:
            for via in options.vias:
                faults.append(run_by_restride(folder, size, name, via, start, ranks))
                compared += 1
    if not options.written:
        return compared, [f for f in faults if f]
    forms = ("functionalize", "reinplace", "compile")
    for name in names:
        for how in forms:
            for rank in range(size if name in MODULES else 1):
                out = file(folder, name, rank, f"{how}-")
                command(60, options.binary, how, file(folder, name, rank), "-o", out)
    mp.spawn(real, (folder, size, port + 1, [f"{how}-" for how in forms]), nprocs=size)
    for name in names:
        for how in forms:
            written = lambda rank, how=how, name=name: torch.load(folder / f"{how}-{name}.{rank}.pt")
            faults.append(compare(folder, size, name, how, written))
            compared += 1
    return compared, [f for f in faults if f]


ONE = """graph(%x: f32[4, 3], %i: i64[2]) {
  %y: f32[2, 3] = aten.index_select.default(%x, 0, %i)
  %z: f32[2, 3] = aten.add_.Tensor(%y, 1)
  %s: f32[2, 3] = _c10d_functional.all_reduce.default(%z, "sum", "0")
  %w: f32[2, 3] = _c10d_functional.wait_tensor.default(%s)
  %c: f32[4, 3] = aten.index_add_.default(%x, 0, %i, %w)
  return %w
}
"""
# What rank 1 does, its program, and the rows that it selects; and words of the error.
FAULTS = {
    "another program": (ONE.replace('"sum"', '"max"'), [0, 1], "the ranks do not agree"),
    "other sizes": (ONE.replace("[2, 3]", "[3, 3]").replace("[2]", "[3]"), [0, 1, 2], "the ranks do not agree"),
    "an error": (ONE, [0, 9], "index_select"),
}
# Seconds in which all ranks end; a machine that builds at the same time is slow.
SOON = 20


def write_fault(folder, size, program, rows):
    """Files of a run whose rank 1 has another program or other inputs."""
    for rank in range(size):
        (folder / f"p.{rank}.fx").write_text(program if rank == 1 else ONE)
        x = torch.randn(4, 3, generator=torch.Generator().manual_seed(rank)).numpy()
        np.savez(folder / f"f.{rank}.npz", x=x, i=np.array(rows if rank == 1 else [0, 1]))
        (folder / f"left.{rank}.npz").unlink(missing_ok=True)


def fault_args(folder):
    inputs, outputs = folder / "f.{rank}.npz", folder / "left.{rank}.npz"
    return ["run", folder / "p.{rank}.fx", "--inputs", inputs, "--outputs", outputs]


def judge(folder, size, what, done, words):
    """What is wrong with the end of a run with a fault."""
    where = f"{size} ranks: {what}"
    left = [rank for rank in range(size) if (folder / f"left.{rank}.npz").exists()]
    if done.kind != "refused" and not (done.kind in ("usage", "crash") and words is None):
        return f"{where}: {done.kind} after {done.seconds:.1f} s: {done.stderr[-300:]}"
    if done.seconds > SOON:
        return f"{where}: the ranks ended after {done.seconds:.1f} s"
    if words and words not in done.stderr:
        return f"{where}: no word of it: {done.stderr[-300:]}"
    return f"{where}: ranks {left} wrote outputs" if left else None


def check_faults(size, options, folder):
    out, count = [], 0
    for start, ranks in options.engines(size):
        engine = "MPI" if not ranks else "threads"
        for what, (program, rows, words) in FAULTS.items():
            write_fault(folder, size, program, rows)
            done = run([str(a) for a in [*start, *fault_args(folder), *ranks]], 60)
            out.append(judge(folder, size, f"{what}, {engine}", done, words))
            count += 1
        if not ranks:
            out.append(killed(size, folder, start))
            count += 1
    return count, [f for f in out if f]


def killed(size, folder, start):
    """Kills rank 1, which waits for its inputs, while the others wait for it."""
    write_fault(folder, size, ONE, [0, 1])
    pipe = folder / "f.1.npz"
    pipe.unlink()
    os.mkfifo(pipe)
    victim = []

    def kill():
        for _ in range(200):
            time.sleep(0.05)
            found = subprocess.run(["pgrep", "-f", f"{folder}/p"], capture_output=True, text=True).stdout.split()
            for pid in found:
                # The process of rank 1 has the number in its environment, and has slept in opening the pipe for a while.
                try:
                    own = Path(f"/proc/{pid}/environ").read_bytes()
                except OSError:
                    continue
                if b"OMPI_COMM_WORLD_RANK=1\0" in own and time.monotonic() > begin + 2:
                    victim.append(pid)
                    return os.kill(int(pid), signal.SIGKILL)

    import threading

    begin = time.monotonic()
    killer = threading.Thread(target=kill)
    killer.start()
    done = run([str(a) for a in [*start, *fault_args(folder)]], 60)
    killer.join()
    pipe.unlink()
    if not victim:
        return f"{size} ranks: rank 1 was not found to be killed: {done.kind} {done.line}"
    return judge(folder, size, "a killed rank, MPI", done, None)


class Options:
    def __init__(self, args):
        self.binary, self.mpi = args.binary, args.mpi
        self.vias = ["plan"] if args.quick else ["interp", "functional", "plan"]
        self.written = not args.quick

    def engines(self, size):
        """The start of a command line, and the end, for each engine."""
        yield [self.binary], ["--ranks", size]
        if self.mpi:
            yield ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", size, self.mpi], []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("RESTRIDE", str(ROOT / "target/release/restride")))
    parser.add_argument("--mpi", metavar="BINARY", help="a command built with --features mpi, to run under mpirun too")
    parser.add_argument("--sizes", default="2,4", help="numbers of ranks")
    parser.add_argument("--quick", action="store_true", help="only planned runs, and no written files")
    parser.add_argument("--port", type=int, default=29600, help="first port for torch.distributed")
    args = parser.parse_args()
    options, total, ended, faults = Options(args), 0, 0, []
    for k, size in enumerate(int(n) for n in args.sizes.split(",")):
        with tempfile.TemporaryDirectory() as name:
            compared, found = check(size, options, Path(name), args.port + 10 * k)
            count, wrong = check_faults(size, options, Path(name))
            total, ended, faults = total + compared, ended + count, faults + found + wrong
    for fault in faults:
        print(fault)
    programs = len(PROGRAMS) + len(MODULES)
    print(f"{total} results of {programs} programs compared, {ended} runs with a fault ended; {len(faults)} differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

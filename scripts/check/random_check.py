#!/usr/bin/env python3
"""Hold random programs to eager PyTorch.

`dump_random` (an example of restride-testing) writes programs as JSON lines, each with the state that four ways of running it
left: our interpreter, the functional form, the planned run, and a run with random placement choices. This script makes the
program's calls one by one on real tensors (`torch.ops.aten.*`, and PyTorch's own higher-order operators for control flow), and
compares everything that the caller can see with what each way left:

  values     bit for bit (all NaNs are one), storages of inputs and weights in full
  metadata   dtype, sizes, strides, conjugate and negative bits
  sharing    two tensors share a storage exactly where eager's do; offsets are eager's in the storages of inputs and
             weights, and up to one constant a storage elsewhere

Where eager raises, every way must refuse; where eager runs, "unsupported" refusals are counted by reason. Exit status 1
when any program differs. With --seconds, as many programs run as fit.
"""

import collections
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import example
from lib.driver import chunks, parser, pooled, seeds, write_json

import torch

torch.set_num_threads(1)
torch.set_grad_enabled(False)
# Outputs that are resized, complex numbers whose imaginary part goes.
warnings.simplefilter("ignore")

# Programs of one task.
CHUNK = 100


def programs(binary, first, last):
    """The lines of dump_random, parsed."""
    child = subprocess.Popen([binary, f"{first}..{last}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with child:
        for line in child.stdout:
            yield json.loads(line)
    if child.returncode:
        raise RuntimeError(f"{binary} {first}..{last} ended with status {child.returncode}")


# ---------------------------------------------------------------------------------- eager


OPERATORS = {}


def operator(name):
    """An operator, and for each argument the keyword that it is given by, if any; None for a higher-order one."""
    if name not in OPERATORS:
        namespace, rest = name.split(".", 1)
        if namespace == "higher_order":
            OPERATORS[name] = getattr(torch.ops.higher_order, rest), None
        else:
            packet, overload = rest.rsplit(".", 1)
            op = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
            OPERATORS[name] = op, [a.name if a.kwarg_only else None for a in op._schema.arguments]
    return OPERATORS[name]


class Eager:
    """The graphs of one program, run by real tensors."""

    def __init__(self, program):
        self.graphs = program["graphs"]

    def run(self, graph, operands):
        g = self.graphs[graph]
        values = dict(zip(g["inputs"], operands, strict=True))
        for op, args, results in g["nodes"]:
            out = self.call(op, [self.argument(a, values) for a in args])
            if len(results) == 1 and not isinstance(out, (list, tuple)):
                out = [out]
            if results:
                values.update(zip(results, out, strict=True))
        return [self.argument(a, values) for a in g["outputs"]]

    def call(self, name, args):
        """Arguments that are given by keyword only are; lists of a higher-order operator are tuples."""
        op, keywords = operator(name)
        if name == "higher_order.while_loop":
            test = args[0]
            args[0] = lambda *operands: test(*operands)[0]
        if keywords is None:
            return op(*(tuple(a) if isinstance(a, list) else a for a in args))
        named = {k: a for k, a in zip(keywords, args) if k is not None}
        memory = [(a, a.untyped_storage()) for a in args if isinstance(a, torch.Tensor)]
        before = [(a, s, s.nbytes()) for a, s in memory]
        out = op(*(a for k, a in zip(keywords, args, strict=True) if k is None), **named)
        for t, s, size in before:
            if s.nbytes() > size:
                # An output is written from where it begins; a change of sizes writes nothing.
                output = any(t is a for a in named.values())
                clear(s, size, t.storage_offset() * t.itemsize if output else s.nbytes())
        return out

    def argument(self, a, values):
        if isinstance(a, list):
            return [self.argument(x, values) for x in a]
        if not isinstance(a, dict):
            return a
        ((kind, x),) = a.items()
        if kind == "v":
            return values[x]
        if kind == "vs":
            return [None if v is None else values[v] for v in x]
        if kind == "graph":
            return lambda *operands: tuple(self.run(x, operands))
        if kind == "complex":
            return complex(*x)
        if kind == "float":
            return float(x)
        if kind == "device":
            return torch.device(x)
        return getattr(torch, x)


def clear(storage, start, end):
    """Zeroes memory that a storage has grown by: PyTorch leaves there what happens to be there."""
    end = min(end, storage.nbytes())
    if end > start:
        torch.empty(0, dtype=torch.uint8).set_(storage, start, [end - start], [1]).zero_()


class Tensors:
    """Dumped tensors as real ones, on storages of the dumped bytes."""

    def __init__(self, data):
        self.entries = data["tensors"]
        self.bytes = [bytes.fromhex(s) for s in data["storages"]]
        self.storages = [storage(b) for b in self.bytes]

    def tensor(self, i):
        e = self.entries[i]
        if "scalar" in e:
            return e["scalar"]
        t = torch.empty(0, dtype=getattr(torch, e["dtype"]))
        t.set_(self.storages[e["storage"]], e["offset"], e["size"], e["stride"])
        if e.get("conj"):
            t = torch._conj(t)
        if e.get("neg"):
            t = torch._neg_view(t)
        return t

    def all(self):
        return [self.tensor(i) for i in range(len(self.entries))]


def storage(data):
    if not data:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).untyped_storage().clone()


def content(t):
    """The elements' bytes in logical order, with all NaNs alike, and zeros: `neg` of a complex zero depends on the lane.

    Complex numbers beyond the integers of their type count as NaN: how PyTorch rounds their products depends on the lane too.
    """
    t = t.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).reshape(-1)
    if t.is_floating_point() or t.is_complex():
        real = torch.view_as_real(t) if t.is_complex() else t
        if t.is_complex():
            exact = (real.abs() <= 1 / torch.finfo(real.dtype).eps).all(-1, keepdim=True)
            real = torch.where(exact, real, torch.full((), float("nan"), dtype=real.dtype))
        real = real + 0.0
        nan = torch.isnan(real)
        if nan.any():
            real = torch.where(nan, torch.full((), float("nan"), dtype=real.dtype), real)
        t = real.reshape(-1)
    return t.view(torch.uint8).numpy().tobytes()


# ---------------------------------------------------------------------------------- comparing


def differences(names, owned, left, data):
    """The differences between a way's result (`data`) and eager's objects (`left`). The first `owned` are the caller's."""
    problems, got = [], Tensors(data)
    if len(got.entries) != len(left):
        return [f"{len(got.entries)} tensors, not {len(left)}"]
    to, back, moved = {}, {}, {}
    for i, (name, want, e) in enumerate(zip(names, left, got.entries)):
        if not isinstance(want, torch.Tensor) or "scalar" in e:
            if want != e.get("scalar", "a tensor"):
                problems.append(f"{name}: {e}, not {want}")
            continue
        have = got.tensor(i)
        lazy = want.is_conj() or want.is_neg()
        if have.dtype != want.dtype or have.shape != want.shape:
            problems.append(f"{name}: {have.dtype}{list(have.shape)}, not {want.dtype}{list(want.shape)}")
            continue
        if content(have) != content(want):
            problems.append(f"{name}: {have.tolist()}, not {want.tolist()}")
        if lazy and i >= owned and not (have.is_conj() or have.is_neg()):
            # A lazily mapped output may be given as the elements that it shows, on memory of its own.
            continue
        if (have.is_conj(), have.is_neg()) != (want.is_conj(), want.is_neg()):
            problems.append(
                f"{name}: lazy bits {(have.is_conj(), have.is_neg())}, not {(want.is_conj(), want.is_neg())}"
            )
        if any(a != b for a, b, n in zip(have.stride(), want.stride(), want.shape) if n > 1) and want.numel():
            problems.append(f"{name}: strides {list(have.stride())}, not {list(want.stride())}")
        a, b = want.untyped_storage()._cdata, e["storage"]
        if not want.untyped_storage().nbytes() and i >= owned:
            # Nothing is shared with memory of no bytes.
            continue
        if to.setdefault(a, (b, name))[0] != b:
            problems.append(f"{name}: does not share storage with {to[a][1]}")
        elif back.setdefault(b, (a, name))[0] != a:
            problems.append(f"{name}: shares storage with {back[b][1]}")
        size = want.dtype.itemsize
        shift = (have.storage_offset() - want.storage_offset()) * size
        # Where no elements begin follows from strides that no two elements tell.
        if want.numel() and shift != moved.setdefault(a, 0 if i < owned else shift):
            problems.append(f"{name}: offset {have.storage_offset()}, not {want.storage_offset()}")
    for name, want, e in zip(names[:owned], left, got.entries):
        if isinstance(want, torch.Tensor) and "scalar" not in e:
            s, b = want.untyped_storage(), got.bytes[e["storage"]]
            whole = torch.empty(0, dtype=torch.uint8).set_(s, 0, [s.nbytes()], [1]).numpy().tobytes()
            if whole == b:
                continue
            flat = [
                torch.empty(0, dtype=want.dtype).set_(x, 0, [len(whole) // want.dtype.itemsize], [1])
                for x in (s, got.storages[e["storage"]])
                if x.nbytes() >= len(whole)
            ]
            if len(whole) != len(b) or content(flat[0]) != content(flat[1]):
                problems.append(f"{name}: its storage holds other bytes")
    return problems


# Calls that eager does not make although they have a meaning.
LIMITS = [
    "fallback doesn't currently support mutable TensorLists",
    "Can't detach views in-place",
    "could not find kernel for HigherOrderOperator",
]

CONSTRUCTS = [
    ("control flow", r"higher_order\."),
    ("lists (_foreach_)", r"aten\._foreach_"),
    ("out=", r"\.([a-z_]*_)?out$|_out$"),
    (
        "size and stride changes",
        r"aten\.(t|squeeze|unsqueeze|transpose|swapdims|swapaxes|as_strided|resize|resize_as|set|detach)_\.",
    ),
    ("as_strided, unfold", r"aten\.(as_strided|unfold)\."),
    ("dtype views", r"aten\.view\.dtype"),
    ("complex parts, lazy bits", r"aten\.(view_as_real|view_as_complex|real|imag|_conj|conj|_neg_view|resolve_\w+)\."),
    ("several views", r"aten\.(unsafe_)?(split|split_with_sizes|chunk|tensor_split|unbind|hsplit)\."),
    ("broadcast views", r"aten\.(expand|expand_as|broadcast_to)\."),
    ("detach, alias, unsafe", r"aten\.(detach|alias|_unsafe_view|lift_fresh|_reshape_alias)\."),
    (
        "indexed writes",
        r"aten\.(index_put|_index_put_impl|_unsafe_index_put|scatter|scatter_add|scatter_reduce|index_add|index_copy|index_fill|put"
        r"|masked_fill|masked_scatter|fill_diagonal)_\.",
    ),
    (
        "unsaid writes",
        r"aten\.(batch_norm|instance_norm|native_batch_norm|_native_batch_norm_legit|_batch_norm_with_update)\.",
    ),
    ("copy_", r"aten\.copy_\."),
    ("other in-place", r"_\.[A-Za-z_0-9]*$"),
]
CONSTRUCTS = [(what, re.compile(pattern)) for what, pattern in CONSTRUCTS]


def construct(op):
    return next((what for what, pattern in CONSTRUCTS if pattern.search(op)), "functional and plain views")


def reason(way):
    """A refusal's words without its names and numbers."""
    return re.sub(r"\d+", "N", re.sub(r"%\w+", "%", way["what"]))[:110]


def judge(program):
    """(status, lines, refusals by reason, eager's error)"""
    names = list(program["names"])
    given = Tensors(program["inputs"]).all()
    owned = len(given)
    left, raised = list(given), None
    try:
        left += Eager(program).run(0, [given[i] for i in program["order"]])
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError) as e:
        raised = f"{type(e).__name__}: {e}".splitlines()[0]
    if raised and any(limit in raised for limit in LIMITS):
        return "rejected", [], [], raised
    names += [f"output {i}" for i in range(len(left) - owned)]
    lines, refusals, ways = [], [], program["ways"]
    for way in ("interp", "functional", "plan", "chance"):
        data = ways[way]
        if isinstance(data, str):
            # Equal to the named way's result, which was compared.
            continue
        error = data.get("error")
        if error == "unsupported":
            refusals.append(f"{way}: {reason(data)}")
        elif error == "wrong":
            lines.append(f"{way}: {data['what']} (at {data['node']})")
        elif error == "program":
            if raised is None:
                # A way may refuse a branch that eager does not take.
                known = ways["interp"].get("error", "unsupported") == "unsupported"
                if way != "interp" and known and len(program["graphs"]) > 1:
                    refusals.append(f"{way}: a branch not taken: {reason(data)}")
                else:
                    lines.append(f"{way} refuses: {data['what']} (at {data['node']})")
        elif raised is not None:
            lines.append(f"{way} accepts what eager refuses: {raised}")
        else:
            lines += [f"{way}: {line}" for line in differences(names, owned, left, data)]
    status = "different" if lines else "refused" if refusals else "rejected" if raised else "equal"
    return status, lines, refusals, raised


# ---------------------------------------------------------------------------------- running


def chunk(binary, first, last):
    """The results of some seeds: counts by status, refusals, constructs, failures."""
    counted = ("status", "refusals", "calls", "programs", "rejections")
    result = {key: collections.Counter() for key in counted} | {"failed": []}
    for program in programs(binary, first, last):
        status, lines, refusals, raised = judge(program)
        result["status"][status] += 1
        # The later ways refuse for the reason of the first.
        result["refusals"].update(refusals[:1])
        if raised:
            result["rejections"][re.sub(r"[\d\[\], ]+", " ", raised)[:80]] += 1
        graphs, stored = program["graphs"], [e["storage"] for e in program["inputs"]["tensors"]]
        used = [construct(op) for g in graphs for op, _, _ in g["nodes"]]
        used += ["inputs that share storage"] if len(set(stored)) < len(stored) else []
        nested = any(op.startswith("higher_order.") for g in graphs[1:] for op, _, _ in g["nodes"])
        used += ["nested control flow"] if nested else []
        result["calls"].update(used)
        result["programs"].update(set(used))
        if lines:
            result["failed"].append((program["seed"], lines))
    return result


def main():
    p = parser(__doc__, "--seeds", "--seconds", "--jobs", "--show", "--json", jobs=os.cpu_count())
    p.add_argument("--binary", help="dump_random (default: the debug build, several times slower than a release build)")
    o = p.parse_args()
    binary = os.path.abspath(o.binary or example("dump_random"))
    if o.show is not None:
        print(subprocess.run([binary, "--text", str(o.show)], capture_output=True, text=True).stdout)
        (program,) = programs(binary, o.show, o.show + 1)
        status, lines, refusals, raised = judge(program)
        print(status, *([f"eager: {raised}"] if raised else []), *lines, *refusals, sep="\n")
        return 1 if lines else 0
    numbers, total = o.seeds or seeds("0..1000000000" if o.seconds else "0..20000"), {}
    for part in pooled(chunk, ((binary, *c) for c in chunks(numbers, CHUNK)), o.jobs, o.seconds):
        total = {key: total[key] + value for key, value in part.items()} if total else part
    for title, key in [("calls", "calls"), ("rejected by eager", "rejections"), ("refusals", "refusals")]:
        print(f"{title}:")
        for what, n in sorted(total[key].items(), key=lambda x: (-x[1], x[0])):
            print(f"  {n:8d}  {what}" + (f" (in {total['programs'][what]} programs)" if key == "calls" else ""))
    total["failed"].sort()
    for seed, lines in total["failed"][:20]:
        print(f"seed {seed}:", *lines[:4], sep="\n    ")
    write_json(o.json, total)
    count, status, different = sum(total["status"].values()), total["status"], [seed for seed, _ in total["failed"]]
    print(
        f"{count} programs: {status['equal']} equal, {status['rejected']} rejected by eager and by us, "
        f"{status['refused']} refused, {status['different']} different",
        *different[:100],
    )
    return 1 if different or not count else 0


if __name__ == "__main__":
    sys.exit(main())

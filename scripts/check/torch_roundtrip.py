#!/usr/bin/env python3
"""Give what restride writes back to PyTorch and compare it there with the original.

  torch_roundtrip.py FILE_OR_DIR ... [--match PATTERN ...] [--from FILE] [--all] [--bytes] [--binary F] [--timeout S]
                     [--json F]

Takes .pt2 files and directories of them (for a zoo directory --match and --from choose by shell patterns over the names
of its index.jsonl). Programs without a mutating operator are left out unless --all. For each:

  functional  `restride functionalize X.pt2 -o F.pt2`: torch.export.load takes F, no mutating operator is left in its
              graph or subgraphs, and two calls in a row of its module() give what the original's module() gives:
              outputs, inputs after the call, parameters and buffers, within tolerance
  reinplaced  `restride reinplace X.pt2 -o R.pt2`: the same, mutating operators allowed
  views       `restride functionalize X.pt2 -o V.pt2 --views`: as functional
  slices      `restride reinplace X.pt2 -o S.pt2 --views`: the same, and what is written is memory that the program made
              empty

With --bytes a second table says what one call of each allocates, as PyTorch's profiler counts it (all of it, not only what
is there at one time); a reinplaced program or one with views that takes more than the functional one is WRONG.

Inputs are the program's sample inputs, copied afresh with their strides and shares of storage. Where X.json stands beside
X.pt2 (fixtures/alias) its `inputs` are taken, and given to restride as --inputs: what aliases there need not alias in
the sample inputs, and a result specialised for the latter would say nothing of the former. Random programs are held
to shapes and dtypes only. Statuses: ok; WRONG; refused, crash, usage, timeout of restride's command; n/a where PyTorch
itself cannot load or run the original. Exit status 1 for anything but ok and n/a; with --lenient, refused passes too.
The last line is `N passed, N failed`.
"""

import argparse
import copy
import fnmatch
import glob
import hashlib
import json
import logging
import os
import sys
import tempfile
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KINETO_LOG_LEVEL", "9")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile
from torch.utils import _pytree as pytree

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib import common
from alias_check import Tensors

STEPS = (
    ("functional", ("functionalize",)),
    ("reinplaced", ("reinplace",)),
    ("views", ("functionalize", "--views")),
    ("slices", ("reinplace", "--views")),
)
# These write running_mean and running_var, when given and when this argument is set, without their schemas saying so.
SILENT_WRITERS = {
    "aten::batch_norm": "training",
    "aten::native_batch_norm": "training",
    "aten::cudnn_batch_norm": "training",
    "aten::_batch_norm_impl_index": "training",
    "aten::instance_norm": "use_input_stats",
}


def libraries():
    """What registers operators and output classes that programs may use."""
    for name in ("torchvision", "transformers"):
        try:
            __import__(name)
        except ImportError:
            pass


def writes(node):
    """Does a call of this graph write one of its arguments?"""
    op = node.target
    if node.op != "call_function" or not isinstance(op, torch._ops.OpOverload):
        return False
    if any(a.alias_info is not None and a.alias_info.is_write for a in op._schema.arguments):
        return True
    if op._schema.name not in SILENT_WRITERS:
        return False
    names = [a.name for a in op._schema.arguments]
    given = dict(zip(names, node.args)) | node.kwargs
    return given.get("running_mean") is not None and given.get(SILENT_WRITERS[op._schema.name]) is not False


def calls(ep):
    """Every call of a program that writes, subgraphs included, and whether it stands in the main graph."""
    graphs = [m for m in ep.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    return [(n, g is ep.graph_module) for g in graphs for n in g.graph.nodes if writes(n)]


def writers(ep):
    """Every mutating call of a program, subgraphs included."""
    return [f"{n.name} = {n.target}" for n, _ in calls(ep)]


def overwriters(ep):
    """Mutating calls of a program, but those in the main graph that write (parts of) what `empty` made."""
    return [f"{n.name} = {n.target}" for n, main in calls(ep) if not (main and all(map(fresh, written(n))))]


def written(node):
    """The nodes that a call writes."""
    pairs = zip(node.target._schema.arguments, node.args)
    named = [(a, node.kwargs[a.name]) for a in node.target._schema.arguments if a.name in node.kwargs]
    return [v for a, v in [*pairs, *named] if a.alias_info is not None and a.alias_info.is_write]


def fresh(node):
    """Whether a node is `empty`, or a view of one."""
    name = lambda n: n.target._schema.name if isinstance(n.target, torch._ops.OpOverload) else n.op
    while name(node) in ("aten::slice", "aten::select", "aten::as_strided", "aten::view"):
        node = node.args[0]
    return name(node) in ("aten::empty", "aten::empty_strided")


def tensors(value):
    return [x if isinstance(x, torch.Tensor) else None for x in pytree.tree_leaves(value)]


def two_calls(ep, example):
    """What two calls of a fresh module() leave behind: a list of (label, value) a call."""
    module, calls = ep.module(check_guards=False), []
    for call in (1, 2):
        args, kwargs = copy.deepcopy(example)
        before = tensors((args, kwargs))
        layouts = [t if t is None else (t.size(), t.stride(), t.storage_offset()) for t in before]
        torch.manual_seed(call)
        with torch.no_grad():
            outputs = module(*args, **kwargs)
        # Inputs are looked at as they were laid out: a program can transpose an input in place, and
        # no file can say so.
        after = [t if t is None else t.detach().as_strided(*at) for t, at in zip(before, layouts)]
        state = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
        values = [(f"output.{i}", x) for i, x in enumerate(pytree.tree_leaves(outputs))]
        values += [(f"input {i}", t) for i, t in enumerate(after) if t is not None]
        values += [(name, t) for name, t in state]
        calls.append({name: x.detach().clone() if isinstance(x, torch.Tensor) else x for name, x in values})
    return calls


def allocated(ep, example):
    """Bytes that a call of a fresh module() allocates: its second call, the first may set things up."""
    module = ep.module(check_guards=False)
    for _ in range(2):
        args, kwargs = copy.deepcopy(example)
        with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
            module(*args, **kwargs)
    total, events = 0, list(profiled.profiler.kineto_results.experimental_event_tree())
    while events:
        event = events.pop()
        events += event.children
        if event.tag == _EventType.Allocation:
            total += max(event.typed[1].alloc_size, 0)
    return total


def array(t):
    t = t.resolve_conj().resolve_neg()
    return (t.float() if t.dtype == torch.bfloat16 else t).numpy()


def differences(want, got, half, random):
    """What two_calls of the original and of ours differ in."""
    problems = []
    for call, (w, g) in enumerate(zip(want, got), 1):
        for name in w:
            at = f"call {call}: {name}"
            if name not in g:
                # Constants that only the original's form needs may be gone; outputs, inputs and buffers may not.
                if "lifted_tensor" not in name:
                    problems.append(f"{at}: missing")
                continue
            a, b = w[name], g[name]
            if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
                if type(a) is not type(b) or a != b:
                    problems.append(f"{at}: {b!r}, not {a!r}")
            elif (a.shape, a.dtype) != (b.shape, b.dtype):
                problems.append(f"{at}: {b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}")
            elif not random:
                in_half = a.dtype.itemsize == 2 or (name if name.startswith("output.") else "*") in half
                if found := common.difference(array(b), array(a), in_half):
                    problems.append(f"{at}: {found}")
        problems += [f"call {call}: {name}: the original has no such output" for name in g if name not in w and name.startswith("output.")]
    return problems


def short(error):
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def case_inputs(path):
    """The inputs of the alias case that a program belongs to, if it belongs to one."""
    case = path.removesuffix(".pt2") + ".json"
    if not os.path.exists(case):
        return None
    with open(case) as f:
        return json.load(f)["inputs"]


def as_example(given, example):
    """A case's inputs in the structure of the sample inputs, sharing storage as the case says."""
    file = Tensors(torch, given)
    values = [e["scalar"] if "scalar" in e else file.tensor(e) for e in file.entries]
    leaves, spec = pytree.tree_flatten(example)
    if len(values) != len(leaves):
        raise ValueError(f"{len(values)} inputs in the case, {len(leaves)} in the program")
    return pytree.tree_unflatten(values, spec)


def check(path, random, restride, timeout, everything, count):
    """{step: (status, detail)}, or None when the program has no mutation; and with `count` the bytes of each form."""
    given = case_inputs(path)
    try:
        original = torch.export.load(path)
        if not everything and not writers(original):
            return None, {}
        example = original.example_inputs
        if example is None:
            raise ValueError("no sample inputs")
        if given is not None:
            example = as_example(given, example)
        want = two_calls(original, example)
    except Exception as e:
        return {step: ("n/a", f"PyTorch: {short(e)}") for step, _ in STEPS}, {}
    half = common.Pt2.read(path).half_keys()
    results, taken = {}, {"original": allocated(original, example)} if count else {}
    # Steps by what they wrote: a file that is there twice is judged once.
    same = {}
    for step, command in STEPS:
        with tempfile.TemporaryDirectory(prefix="restride-roundtrip-") as tmp:
            out = os.path.join(tmp, "out.pt2")
            options = []
            if given is not None:
                options = ["--inputs", os.path.join(tmp, "inputs.json")]
                with open(options[1], "w") as f:
                    json.dump(given, f)
            outcome = common.run([restride, command[0], path, "-o", out, *command[1:], *options], timeout)
            if not outcome:
                results[step] = (outcome.kind, outcome.line)
                continue
            try:
                ours = torch.export.load(out)
            except Exception as e:
                results[step] = ("WRONG", f"torch.export.load: {short(e)}")
                continue
            left = {"reinplaced": lambda ep: [], "slices": overwriters}.get(step, writers)(ours)
            if left:
                results[step] = ("WRONG", f"{len(left)} mutating operators left, first {left[0]}")
                continue
            with open(out, "rb") as f:
                digest = hashlib.sha256(f.read()).digest()
            if digest in same:
                results[step] = results[same[digest]]
                if count:
                    taken[step] = taken[same[digest]]
                continue
            same[digest] = step
            try:
                problems = differences(want, two_calls(ours, example), half, random)
                if count:
                    taken[step] = allocated(ours, example)
                    if taken[step] > taken.get("functional", taken[step]):
                        problems.append(f"allocates {taken[step]} bytes, the functional program {taken['functional']}")
            except Exception as e:
                problems = [f"running it: {short(e)}"]
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            results[step] = ("WRONG", problems[0] + more) if problems else ("ok", "")
    return results, taken


def programs(o):
    """(name, path, random) of what was asked for."""
    patterns = list(o.match)
    if o.file:
        with open(o.file) as f:
            patterns += [q for q in (line.split("#")[0].strip() for line in f) if q]
    for path in o.paths:
        if not os.path.isdir(path):
            yield os.path.basename(path).removesuffix(".pt2"), path, False
            continue
        index = os.path.join(path, "index.jsonl")
        if os.path.exists(index):
            with open(index) as f:
                rows = {row["name"]: row for row in map(json.loads, f)}
            for row in rows.values():
                zoo_name = "/" in row["name"]
                if row["ok"] and (not patterns or not zoo_name or any(fnmatch.fnmatchcase(row["name"], q) for q in patterns)):
                    yield row["name"], os.path.join(path, row["file"] + ".pt2"), bool(row.get("random"))
        else:
            for file in sorted(glob.glob(os.path.join(path, "*.pt2"))):
                case = file.removesuffix(".pt2") + ".json"
                # What eager refuses has nothing to compare with; custom operators are not registered here.
                if os.path.exists(case):
                    with open(case) as f:
                        if "after" not in json.load(f):
                            continue
                if not any(t.startswith("torch.ops.abugs.") for t in common.Pt2.read(file).targets()):
                    yield os.path.basename(file).removesuffix(".pt2"), file, False


def which_programs(p):
    """The options that `programs` and a run of restride on each ask for."""
    p.add_argument("paths", nargs="+")
    p.add_argument("--match", action="append", default=[])
    p.add_argument("--from", dest="file", metavar="FILE", help="patterns, one a line")
    p.add_argument("--all", action="store_true", help="programs without mutation too")
    p.add_argument("--binary")
    p.add_argument("--timeout", type=float, default=300.0, help="seconds for one command")
    p.add_argument("--json", metavar="F")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which_programs(p)
    p.add_argument("--lenient", action="store_true", help="refused is no failure")
    p.add_argument("--bytes", action="store_true", help="count the bytes that each form allocates")
    o = p.parse_intermixed_args()
    restride = common.binary(o.binary)
    libraries()
    table, rows, pure = [], [], 0
    for name, path, random in programs(o):
        results, taken = check(path, random, restride, o.timeout, o.all, o.bytes)
        if results is None:
            pure += 1
            continue
        rows.append(dict(name=name, results=results, bytes=taken))
        detail = next((f"{step}: {d}" for step, (s, d) in results.items() if s != "ok"), "")
        table.append((name, *(results[step][0] for step, _ in STEPS), detail))
        print(f"{name}: {', '.join(s for s, _ in results.values())}", file=sys.stderr, flush=True)
    common.print_table(("program", *(step for step, _ in STEPS), ""), table)
    if o.bytes:
        forms = ("original", *(step for step, _ in STEPS))
        print()
        totals = [("all", *(sum(r["bytes"].get(f, 0) for r in rows if len(r["bytes"]) == len(forms)) for f in forms))]
        lines = [(r["name"], *(r["bytes"].get(f, "") for f in forms)) for r in rows if r["bytes"]]
        common.print_table(("bytes allocated", *forms), [tuple(map(str, line)) for line in lines + totals])
    statuses = [s for row in rows for s, _ in row["results"].values()]
    neutral = {"ok", "n/a"} | ({"refused"} if o.lenient else set())
    passed, failed = statuses.count("ok"), sum(s not in neutral for s in statuses)
    counts = {s: statuses.count(s) for s in sorted(set(statuses))}
    print(f"\n{len(rows)} programs, {pure} without mutation left out: " + ", ".join(f"{n} {s}" for s, n in counts.items()))
    print(f"{passed} passed, {failed} failed")
    if o.json:
        with open(o.json, "w") as f:
            json.dump(dict(rows=rows, counts=counts, passed=passed, failed=failed), f, indent=1)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())

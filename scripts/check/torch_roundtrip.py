#!/usr/bin/env python3
"""Give what restride writes back to PyTorch, and compare it with the original.

  torch_roundtrip.py FILE_OR_DIR ... [--match PATTERN ...] [--from FILE] [--all] [--bytes] [--lenient] [--binary F]
                     [--timeout S] [--jobs N] [--json F]

Takes .pt2 files and folders of them; of a zoo, --match and --from choose by shell patterns over the names of its
index.jsonl. Programs without a mutating operator are left out unless --all. For each program:

  functional  `restride functionalize X.pt2 -o F.pt2`: torch.export.load takes F, its graphs have no mutating operator, and two
              calls in a row of its module() give what the original's give: outputs, inputs after the call, parameters and
              buffers, within tolerance
  reinplaced  `restride reinplace X.pt2 -o R.pt2`: the same, mutating operators allowed
  views       `restride functionalize X.pt2 -o V.pt2 --views`: as functional
  slices      `restride reinplace X.pt2 -o S.pt2 --views`: the same; mutating operators write only memory that `empty` made

--bytes adds a table of the bytes that one call of each form allocates in total, as PyTorch's profiler counts them. A form that
allocates more than the functional program is WRONG.

Inputs are fresh copies of the program's sample inputs, with their strides and shared storage. Where X.json stands beside X.pt2
(fixtures/alias), the case's `inputs` are used and given to restride as --inputs, because the sample inputs need not alias as
they do. Random programs are held to shapes and types only. Statuses: ok; WRONG; refused, crash, usage, timeout of restride's
command; n/a where PyTorch cannot load or run the original. Exit status 1 for anything but ok and n/a; --lenient passes
refused, too. The last line is `N passed, N failed`.
"""

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import Restride
from lib.driver import finish, first_of, parser, print_table, scratch
from lib.exported import (
    allocated,
    array,
    as_example,
    calls_left,
    case_inputs,
    differences,
    each_program,
    graphs,
    program_options,
    short,
    writers,
    writes,
)
from lib.pt2 import Pt2
from lib.values import difference

import torch

STEPS = {
    "functional": ("functionalize",),
    "reinplaced": ("reinplace",),
    "views": ("functionalize", "--views"),
    "slices": ("reinplace", "--views"),
}


def written(node):
    """The nodes that a call writes."""
    pairs = zip(node.target._schema.arguments, node.args, strict=False)
    named = [(a, node.kwargs[a.name]) for a in node.target._schema.arguments if a.name in node.kwargs]
    return [v for a, v in [*pairs, *named] if a.alias_info is not None and a.alias_info.is_write]


def fresh(node):
    """Whether a node is `empty`, or a view of one."""
    name = lambda n: n.target._schema.name if isinstance(n.target, torch._ops.OpOverload) else n.op
    while name(node) in ("aten::slice", "aten::select", "aten::as_strided", "aten::view"):
        node = node.args[0]
    return name(node) in ("aten::empty", "aten::empty_strided")


def overwriters(ep):
    """The mutating calls of a program, except those in the main graph that write (parts of) what `empty` made."""
    calls = [(n, g is ep.graph_module) for g in graphs(ep) for n in g.graph.nodes if writes(n)]
    return [f"{n.name} = {n.target}" for n, main in calls if not (main and all(map(fresh, written(n))))]


def check(path, random, restride, everything, count):
    """A row of {step: (status, detail)} and, with `count`, the bytes of each form; None for a program without mutation."""
    given = case_inputs(path)
    try:
        original = torch.export.load(path)
        if not everything and not writers(original):
            return None
        example = original.example_inputs
        if example is None:
            raise ValueError("no sample inputs")
        if given is not None:
            example = as_example(given, example)
        want = calls_left(original.module(check_guards=False), example)
    except Exception as e:
        return dict(results={step: ("n/a", f"PyTorch: {short(e)}") for step in STEPS}, bytes={})
    half = Pt2.read(path).half_keys()
    results, taken = {}, {"original": allocated(original, example)} if count else {}

    def compare(name, ours, theirs):
        in_half = theirs.dtype.itemsize == 2 or (name if name.startswith("output.") else "*") in half
        return None if random else difference(array(ours), array(theirs), in_half)

    # The first step of each file's digest: equal files are compared once.
    same = {}
    for step, command in STEPS.items():
        with scratch() as tmp:
            out, options = tmp / "out.pt2", []
            if given is not None:
                options = ["--inputs", tmp / "inputs.json"]
                options[1].write_text(json.dumps(given))
            outcome = restride(command[0], path, "-o", out, *command[1:], *options)
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
            first = same.setdefault(hashlib.sha256(out.read_bytes()).digest(), step)
            if first != step:
                results[step] = results[first]
                if count:
                    taken[step] = taken[first]
                continue
            try:
                problems = differences(want, calls_left(ours.module(check_guards=False), example), compare)
                if count:
                    taken[step] = allocated(ours, example)
                    if taken[step] > taken.get("functional", taken[step]):
                        problems.append(f"allocates {taken[step]} bytes, the functional program {taken['functional']}")
            except Exception as e:
                problems = [f"running it: {short(e)}"]
            results[step] = ("WRONG", first_of(problems)) if problems else ("ok", "")
    return dict(results=results, bytes=taken)


def main():
    p = parser(__doc__, "--binary", "--timeout", "--jobs", "--json", timeout=300.0)
    program_options(p)
    p.add_argument("--all", action="store_true", help="programs without mutation too")
    p.add_argument("--lenient", action="store_true", help="refused is no failure")
    p.add_argument("--bytes", action="store_true", help="count the bytes that each form allocates")
    o = p.parse_intermixed_args()
    restride = Restride(o.binary, o.timeout)
    rows, pure = each_program(o, lambda path, random: check(path, random, restride, o.all, o.bytes))
    detail = lambda results: next((f"{step}: {d}" for step, (s, d) in results.items() if s != "ok"), "")
    steps = lambda results: [results[step][0] for step in STEPS]
    print_table(("program", *STEPS, ""), [(r["name"], *steps(r["results"]), detail(r["results"])) for r in rows])
    if o.bytes:
        forms = ("original", *STEPS)
        whole = [r["bytes"] for r in rows if len(r["bytes"]) == len(forms)]
        lines = [(r["name"], *(r["bytes"].get(f, "") for f in forms)) for r in rows if r["bytes"]]
        print()
        print_table(("bytes allocated", *forms), [*lines, ("all", *(sum(b[f] for b in whole) for f in forms))])
    statuses = [s for row in rows for s, _ in row["results"].values()]
    neutral = {"ok", "n/a"} | ({"refused"} if o.lenient else set())
    counts = {s: statuses.count(s) for s in sorted(set(statuses))}
    counted = ", ".join(f"{n} {s}" for s, n in counts.items())
    print(f"\n{len(rows)} programs, {pure} without mutation left out: {counted}")
    failed = sum(s not in neutral for s in statuses)
    return finish(statuses.count("ok"), failed, o.json, ran=len(rows), rows=rows, counts=counts)


if __name__ == "__main__":
    sys.exit(main())

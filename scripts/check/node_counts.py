#!/usr/bin/env python3
"""Compare the number of nodes that functionalization leaves with PyTorch's run_decompositions({}).

Takes the programs that torch_roundtrip.py takes. For each program with mutation where both `restride functionalize` and PyTorch's
`ep.run_decompositions({})` (functionalization, nothing decomposed) work, counts `call_function` nodes of the graph
and its bodies, as torch.export.load reads both: operators, the getitem of each used result of a multi-output operator,
sym_size and arithmetic over sizes, asserts. `before` counts the exported program; --operators names the operators that one side
has more often. Fails where ours has more nodes, or is refused. The last line is `N passed, N failed`.
"""

import collections
import operator
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import Restride
from lib.driver import finish, parser, print_table, scratch
from lib.exported import each_program, graphs, program_options, short, writers

import torch


def calls(ep):
    """The number of calls of each target in a program, bodies included."""
    nodes = [n for g in graphs(ep) for n in g.graph.nodes if n.op == "call_function"]
    # torch.export.load makes a getitem of every result, used or not.
    return collections.Counter(str(n.target) for n in nodes if n.users or n.target is not operator.getitem)


def ours_of(path, restride):
    """(program functionalized by restride, None), or (None, why not)."""
    with scratch() as tmp:
        outcome = restride("functionalize", path, "-o", tmp / "out.pt2")
        if not outcome:
            return None, f"{outcome.kind}: {outcome.line}"
        try:
            return torch.export.load(tmp / "out.pt2"), None
        except Exception as e:
            return None, f"torch.export.load: {short(e)}"


def more(ours, theirs):
    """The operators that one side has more often, in words."""
    name = lambda t: t.removeprefix("<built-in function ").removesuffix(">")
    both = [(ours[t] - theirs[t], name(t)) for t in sorted(ours.keys() | theirs.keys())]
    return ", ".join(f"{n:+d} {t}" for n, t in sorted(both, key=lambda x: (-x[0], x[1])) if n)


def count(path, restride, everything):
    """One row, or None for a program without mutation."""
    try:
        ep = torch.export.load(path)
    except Exception as e:
        return dict(status="n/a", detail=f"PyTorch: {short(e)}")
    if not everything and not writers(ep):
        return None
    row = dict(before=calls(ep).total())
    ours, refusal = ours_of(path, restride)
    if ours is None:
        return row | dict(status="refused", detail=refusal)
    ours = calls(ours)
    row["ours"] = ours.total()
    try:
        theirs = calls(ep.run_decompositions({}))
    except Exception as e:
        return row | dict(status="n/a", detail=f"PyTorch: {short(e)}")
    row |= dict(torch=theirs.total(), operators=more(ours, theirs))
    status = "fewer" if ours.total() < theirs.total() else "equal" if ours.total() == theirs.total() else "MORE"
    return row | dict(status=status, detail="")


def main():
    p = parser(__doc__, "--binary", "--timeout", "--jobs", "--json", timeout=300.0)
    program_options(p)
    p.add_argument("--all", action="store_true", help="programs without mutation too")
    p.add_argument("--operators", action="store_true", help="which operators make the difference")
    o = p.parse_intermixed_args()
    restride = Restride(o.binary, o.timeout)
    rows, pure = each_program(o, lambda path, _: count(path, restride, o.all))
    shown = ("before", "ours", "torch")
    detail = lambda r: r["detail"] or (r["operators"] if o.operators else "")
    print_table(
        ("program", *shown, "", ""),
        [(r["name"], *(r.get(k, "-") for k in shown), r["status"], detail(r)) for r in rows],
    )
    counts = collections.Counter(r["status"] for r in rows)
    both = [r for r in rows if "torch" in r]
    counted = ", ".join(f"{n} {s}" for s, n in sorted(counts.items()))
    print(f"\n{len(rows)} programs, {pure} without mutation left out: {counted}")
    before, ours, theirs = (sum(r[k] for r in both) for k in shown)
    print(f"nodes where both work: {before} exported, {ours} ours, {theirs} PyTorch's")
    passed, failed = counts["fewer"] + counts["equal"], counts["MORE"] + counts["refused"]
    return finish(passed, failed, o.json, ran=len(both), rows=rows, counts=counts)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Count what functionalization leaves: our nodes against those of PyTorch's run_decompositions({}).

  node_counts.py FILE_OR_DIR ... [--match PATTERN ...] [--from FILE] [--all] [--binary F] [--timeout S] [--json F]
                 [--operators]

Takes what torch_roundtrip.py takes. For each program with mutation where both `restride functionalize` and PyTorch's
`ep.run_decompositions({})` (functionalization with nothing decomposed) work, counts `call_function` nodes of the graph
and all its subgraphs, in both after torch.export.load's reading of them: operators, the getitem of each used result of
a multi-output operator, sym_size and arithmetic over sizes, asserts. With --operators, which operators one side has
more of. Fails where ours has more nodes, or where ours is refused. `before` is the count of the program as exported.
The last line is `N passed, N failed`.
"""

import argparse
import collections
import json
import logging
import operator
import os
import sys
import tempfile
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib import common
from torch_roundtrip import libraries, programs, short, which_programs, writers


def calls(ep):
    """Call targets of a program and their number, subgraphs included."""
    graphs = [m for m in ep.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    nodes = [n for g in graphs for n in g.graph.nodes if n.op == "call_function"]
    # torch.export.load makes a getitem of every result, used or not.
    return collections.Counter(str(n.target) for n in nodes if n.users or n.target is not operator.getitem)


def ours_of(path, restride, timeout):
    """(program functionalized by restride, None), or (None, why not)."""
    with tempfile.TemporaryDirectory(prefix="restride-counts-") as tmp:
        out = os.path.join(tmp, "out.pt2")
        outcome = common.run([restride, "functionalize", path, "-o", out], timeout)
        if not outcome:
            return None, f"{outcome.kind}: {outcome.line}"
        try:
            return torch.export.load(out), None
        except Exception as e:
            return None, f"torch.export.load: {short(e)}"


def torch_of(ep):
    try:
        return ep.run_decompositions({}), None
    except Exception as e:
        return None, short(e)


def more(ours, theirs):
    """What each side has more of, in words."""
    name = lambda t: t.removeprefix("<built-in function ").removesuffix(">")
    both = [(ours[t] - theirs[t], name(t)) for t in sorted(ours.keys() | theirs.keys())]
    return ", ".join(f"{n:+d} {t}" for n, t in sorted(both, key=lambda x: (-x[0], x[1])) if n)


def count(path, restride, timeout, everything):
    """One row, or None when the program has no mutation."""
    try:
        ep = torch.export.load(path)
    except Exception as e:
        return dict(status="n/a", detail=f"PyTorch: {short(e)}")
    if not everything and not writers(ep):
        return None
    before = calls(ep)
    ours, refusal = ours_of(path, restride, timeout)
    theirs, why = torch_of(ep)
    row = dict(before=before.total())
    if ours is None:
        return row | dict(status="refused", detail=refusal)
    ours = calls(ours)
    row["ours"] = ours.total()
    if theirs is None:
        return row | dict(status="n/a", detail=f"PyTorch: {why}")
    theirs = calls(theirs)
    row |= dict(torch=theirs.total(), operators=more(ours, theirs))
    status = "fewer" if ours.total() < theirs.total() else "equal" if ours.total() == theirs.total() else "MORE"
    return row | dict(status=status, detail="")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which_programs(p)
    p.add_argument("--operators", action="store_true", help="which operators make the difference")
    o = p.parse_intermixed_args()
    restride = common.binary(o.binary)
    libraries()
    rows, pure = [], 0
    for name, path, _ in programs(o):
        row = count(path, restride, o.timeout, o.all)
        if row is None:
            pure += 1
            continue
        rows.append(dict(name=name) | row)
        print(f"{name}: {row['status']}", file=sys.stderr, flush=True)
    shown = ("before", "ours", "torch")
    table = [(r["name"], *(r.get(k, "-") for k in shown), r["status"], r["detail"] or (r["operators"] if o.operators else "")) for r in rows]
    common.print_table(("program", *shown, "", ""), table)
    counts = collections.Counter(r["status"] for r in rows)
    both = [r for r in rows if "torch" in r]
    print(f"\n{len(rows)} programs, {pure} without mutation left out: " + ", ".join(f"{n} {s}" for s, n in sorted(counts.items())))
    print(f"nodes where both work: {sum(r['before'] for r in both)} exported, {sum(r['ours'] for r in both)} ours, {sum(r['torch'] for r in both)} PyTorch's")
    failed = counts["MORE"] + counts["refused"]
    print(f"{counts['fewer'] + counts['equal']} passed, {failed} failed")
    if o.json:
        with open(o.json, "w") as f:
            json.dump(dict(rows=rows, counts=counts, failed=failed), f, indent=1)
    return 1 if failed or not both else 0


if __name__ == "__main__":
    sys.exit(main())

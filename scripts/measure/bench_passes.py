#!/usr/bin/env python3
"""Measure what functionalization and placement cost a node, in restride and PyTorch on the same files.

Writes the programs of big.py. For each kind and size, prints the microseconds a node that `restride compile` takes (the fastest
of --repeat runs): functionalize, place and check together, and each other part. In the same run, up to --torch-nodes nodes, it
times `ExportedProgram.run_decompositions({})`, and up to --torch-reinplace-nodes `torch.fx.passes.reinplace` on its result
(quadratic: minutes for 1,000 nodes of `views`), each with the ratio to restride's time. Times are no test.
"""

import json
import logging
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, Restride
from lib.driver import parser, print_table, scratch, write_json

PARTS = ("functionalize", "place", "check", "import", "simplify", "plan")
OTHERS = PARTS[1:]


def restride_times(restride, path, tmp, repeat):
    """Microseconds of each part, the fastest of some runs, and how many nodes there were and are."""
    best, counts = {}, None
    for _ in range(repeat):
        done = restride("compile", path, "--random", "0", "--json", tmp / "report.json", timeout=3600.0)
        if not done:
            raise SystemExit(f"compile: {done.kind}: {done.line}")
        report = json.loads((tmp / "report.json").read_text())
        for part in PARTS:
            us = report["time_us"][part]
            best[part] = min(us, best.get(part, us))
        counts = report["imported"]["nodes"], report["functional"]["nodes"]
    return best, counts


def torch_times(path, reinplaces):
    """Microseconds of one `run_decompositions({})`, the nodes that it leaves, and the microseconds of reinplace on them."""
    import torch

    ep = torch.export.load(path)
    start = time.perf_counter()
    functional = ep.run_decompositions({})
    us = (time.perf_counter() - start) * 1e6
    nodes = sum(n.op == "call_function" for n in functional.graph.nodes)
    if not reinplaces:
        return us, nodes, None
    from torch.fx.passes.reinplace import reinplace

    values = [n.meta["val"] for n in functional.graph.nodes if n.op == "placeholder"]
    given = [torch.zeros(v.shape, dtype=v.dtype) for v in values]
    start = time.perf_counter()
    reinplace(functional.graph_module, *given)
    return us, nodes, (time.perf_counter() - start) * 1e6


def ratio(theirs, ours):
    """PyTorch's microseconds, and how many of restride's they are; nothing where PyTorch did not run."""
    return ("", "") if theirs is None else (f"{theirs:.0f}", f"{theirs / max(ours, 1e-9):.0f}")


def main():
    p = parser(__doc__, "--binary", "--json")
    p.add_argument("--nodes", default="100,1000,10000,100000")
    p.add_argument("--torch-nodes", type=int, default=1000, help="PyTorch runs up to this many nodes")
    p.add_argument(
        "--torch-reinplace-nodes", type=int, default=200, help="PyTorch's reinplace runs up to this many nodes"
    )
    p.add_argument("--kinds", default="inplace,views,setitem,kv,func,fan")
    p.add_argument("--repeat", type=int, default=3)
    o = p.parse_args()
    logging.disable(logging.WARNING)
    restride, rows = Restride(o.binary), []
    for kind, n in ((kind, int(n)) for kind in o.kinds.split(",") for n in o.nodes.split(",")):
        with scratch() as tmp:
            path = tmp / "program.pt2"
            subprocess.run([sys.executable, ROOT / "scripts/make/big.py", kind, str(n), path], check=True)
            times, (nodes, functional) = restride_times(restride, path, tmp, o.repeat)
            times["place + check"] = times["place"] + times["check"]
            row = dict(kind=kind, nodes=nodes, functional=functional, us={k: v / nodes for k, v in times.items()})
            if n <= max(o.torch_nodes, o.torch_reinplace_nodes):
                us, left, again = torch_times(path, n <= o.torch_reinplace_nodes)
                row.update(torch_us=us / nodes, torch_functional=left, reinplace_us=again and again / nodes)
        rows.append(row)
        print(f"{kind} {n}", file=sys.stderr, flush=True)
    table = []
    for r in rows:
        us = {k: f"{v:.2f}" for k, v in r["us"].items()}
        decomposed = ratio(r.get("torch_us"), r["us"]["functionalize"])
        reinplaced = ratio(r.get("reinplace_us"), r["us"]["place + check"])
        row = [r["kind"], r["nodes"], r["functional"], us["functionalize"], *decomposed, r.get("torch_functional", "")]
        table.append((*row, us["place + check"], *reinplaced, *(us[k] for k in OTHERS)))
    print("microseconds a node; torch: run_decompositions({}), its nodes, and torch.fx.passes.reinplace after it")
    header = (
        "kind",
        "nodes",
        "functional",
        "functionalize",
        "torch",
        "ratio",
        "its nodes",
        "place + check",
        "reinplace",
        "ratio",
    )
    print_table((*header, *OTHERS), table)
    write_json(o.json, rows)


if __name__ == "__main__":
    main()

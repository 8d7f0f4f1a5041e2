#!/usr/bin/env python3
"""What functionalization costs a node, restride and PyTorch side by side on the same files.

  bench_passes.py [--nodes N,N,...] [--torch-nodes N] [--kinds K,K,...] [--repeat R] [--binary F] [--json F]

Writes the programs of big.py, and prints for each kind and size the microseconds a node of `restride compile`'s
functionalize (the fastest of R), what restride's other parts take, and up to --torch-nodes nodes those of
`ExportedProgram.run_decompositions({})` in the same run, with the ratio. Nothing is judged: times are no test.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time

import common

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ("functionalize", "import", "simplify", "place", "plan", "check")


def restride_times(binary, path, tmp, repeat):
    """Microseconds of each part, the fastest of some runs, and how many nodes there were and are."""
    best, counts = {}, None
    for _ in range(repeat):
        out = os.path.join(tmp, "report.json")
        subprocess.run([binary, "compile", path, "--random", "0", "--json", out], check=True, stdout=subprocess.DEVNULL)
        with open(out) as f:
            report = json.load(f)
        for part in PARTS:
            us = report["time_us"][part]
            best[part] = min(us, best.get(part, us))
        counts = report["imported"]["nodes"], report["functional"]["nodes"]
    return best, counts


def torch_time(path):
    """Microseconds of one `run_decompositions({})`, and the nodes that it leaves."""
    import torch

    ep = torch.export.load(path)
    start = time.perf_counter()
    functional = ep.run_decompositions({})
    us = (time.perf_counter() - start) * 1e6
    return us, sum(n.op == "call_function" for n in functional.graph.nodes)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--nodes", default="100,1000,10000,100000")
    p.add_argument("--torch-nodes", type=int, default=1000, help="PyTorch runs up to this many nodes")
    p.add_argument("--kinds", default="inplace,views,setitem,kv,func,fan")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--binary")
    p.add_argument("--json", metavar="F")
    o = p.parse_args()
    logging.disable(logging.WARNING)
    binary, rows = common.binary(o.binary), []
    for kind in o.kinds.split(","):
        for n in map(int, o.nodes.split(",")):
            with tempfile.TemporaryDirectory(prefix="restride-bench-") as tmp:
                path = os.path.join(tmp, "program.pt2")
                subprocess.run([sys.executable, os.path.join(HERE, "big.py"), kind, str(n), path], check=True)
                times, (nodes, functional) = restride_times(binary, path, tmp, o.repeat)
                row = dict(kind=kind, nodes=nodes, functional=functional, us={k: v / nodes for k, v in times.items()})
                if n <= o.torch_nodes:
                    us, left = torch_time(path)
                    row.update(torch_us=us / nodes, torch_functional=left)
            rows.append(row)
            print(f"{kind} {n}", file=sys.stderr, flush=True)
    table = []
    for r in rows:
        torch = (f"{r['torch_us']:.0f}", f"{r['torch_us'] / max(r['us']['functionalize'], 1e-9):.0f}", r["torch_functional"]) if "torch_us" in r else ("", "", "")
        table.append((r["kind"], r["nodes"], r["functional"], *(f"{r['us'][k]:.2f}" for k in PARTS), *torch))
    print("microseconds a node")
    common.print_table(("kind", "nodes", "functional", *PARTS, "torch", "ratio", "its nodes"), table)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()

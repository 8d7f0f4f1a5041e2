#!/usr/bin/env python3
"""Measure the reordering of nodes: each zoo program's arena in the program's order, and as restride orders it.

  order.py [DIR] [--only REGEX] [--binary F] [--jobs N] [--json F] [--write-docs]

DIR is a folder of make/zoo/export.py (NAME.pt2, NAME.inputs.npz). Each program is compiled with and without `--no-reorder`, without
the checkers, which compare.py runs. `--write-docs` puts the table into docs/memory.md. Exit status 1 when reordering makes an
arena larger. Python alone.
"""

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, Restride
from lib.driver import markdown, parser, replace_between, scratch, write_json

DOCS = ROOT / "docs/memory.md"
BEGIN, END = "<!-- begin: written by scripts/measure/order.py --write-docs -->", "<!-- end of order -->"
ROWS = 30


def plan(restride, program, *more):
    """The plan that `compile` reports, or what went wrong."""
    inputs = program.with_suffix(".inputs.npz")
    given = ["--inputs", inputs] if inputs.exists() else []
    with scratch() as tmp:
        ran = restride("compile", program, "--no-check", "--json", tmp / "report.json", *more, *given)
        return json.loads((tmp / "report.json").read_text())["plan"] if ran else ran.line or ran.kind


def size(n):
    """Bytes for people."""
    if n < 10_000:
        return f"{n} B"
    return f"{n / 1e3:.1f} kB" if n < 1_000_000 else f"{n / 1e6:.2f} MB"


def table(rows, failed):
    """The tables of docs/memory.md."""
    better = sorted((r for r in rows if r["now"] < r["was"]), key=lambda r: (r["now"] / r["was"], r["name"]))
    worse = [r for r in rows if r["now"] > r["was"]]
    proved = sum(r["optimal"] for r in rows)
    was, now = sum(r["was"] for r in rows), sum(r["now"] for r in rows)
    out = [
        f"Of {len(rows)} programs, {len(better)} have a smaller arena when reordered, {len(worse)} a larger one: {size(now)} instead of "
        f"{size(was)} in all. {proved} of the arenas are proved smallest for the order that runs.",
        "",
    ]
    if failed:
        out += [f"{len(failed)} do not compile: {', '.join(f'`{n}`' for n in failed)}.", ""]
    out += [f"The {min(ROWS, len(better))} with the largest gain:", ""] if len(better) > ROWS else []
    cells = lambda r: (f"`{r['name']}`", size(r["was"]), size(r["now"]), f"{100 * r['now'] / r['was']:.1f} %")
    header = ("program", "arena in the program's order", "as restride orders it", "ratio")
    return "\n".join([*out, *markdown(header, map(cells, better[:ROWS]))]).rstrip()


def main():
    p = parser(__doc__, "--binary", "--jobs", "--timeout", "--json", "--write-docs", jobs=os.cpu_count(), timeout=300.0)
    p.add_argument("dir", nargs="?", type=Path, default=Path("~/.cache/restride/zoo").expanduser())
    p.add_argument("--only", default="", metavar="REGEX")
    o = p.parse_args()
    restride = Restride(o.binary, o.timeout)
    programs = [f for f in sorted(o.dir.glob("*.pt2"), key=lambda f: f.stem) if re.search(o.only, f.name)]
    rows, failed = [], {}
    with ThreadPoolExecutor(o.jobs) as pool:
        both = pool.map(lambda f: (plan(restride, f, "--no-reorder"), plan(restride, f)), programs)
        for program, (was, now) in zip(programs, both, strict=True):
            wrong = [r for r in (was, now) if isinstance(r, str)]
            if wrong:
                failed[program.stem] = wrong[0]
                print(f"{program.stem}: {wrong[0]}")
                continue
            row = dict(name=program.stem, was=was["arena_bytes"], now=now["arena_bytes"], optimal=now["optimal"])
            rows.append(row)
            if row["was"] != row["now"]:
                print(f"{row['name']:<44} {row['was']:>12} {row['now']:>12}")
    text = table(rows, sorted(failed))
    print(text.splitlines()[0])
    write_json(o.json, dict(programs=rows, failed=failed))
    if o.write_docs:
        replace_between(DOCS, BEGIN, END, f"\n{text}\n\n")
    return int(any(r["now"] > r["was"] for r in rows))


if __name__ == "__main__":
    sys.exit(main())

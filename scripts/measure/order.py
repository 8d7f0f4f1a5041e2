#!/usr/bin/env python3
"""What another order of nodes is worth: the arena of each program of the zoo as its nodes come, and as restride orders them.

  order.py [DIR] [--only REGEX] [--binary F] [--jobs N] [--json F] [--write-docs]

DIR is what export.py writes (NAME.pt2, NAME.inputs.npz). Each program is compiled twice, with and without `--no-reorder`; the
checkers do not run, as compare.py runs them. `--write-docs` puts the table into docs/memory.md. Exit status 1 when an arena is
larger for it. Needs nothing but Python.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCS = os.path.join(ROOT, "docs", "memory.md")
BEGIN, END = "<!-- begin: written by scripts/measure/order.py --write-docs -->", "<!-- end of order -->"
ROWS = 30


def arena(binary, program, inputs, more, timeout):
    """The bytes of the arena, or what went wrong."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        call = [binary, "compile", program, "--no-check", "--json", out.name, *more]
        if os.path.exists(inputs):
            call += ["--inputs", inputs]
        try:
            ran = subprocess.run(call, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return f"took more than {timeout} s"
        if ran.returncode != 0:
            return ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else f"status {ran.returncode}"
        return json.load(out)["plan"]


def both(args, name):
    """A program's two plans."""
    program = os.path.join(args.dir, f"{name}.pt2")
    inputs = os.path.join(args.dir, f"{name}.inputs.npz")
    return name, [arena(args.binary, program, inputs, more, args.timeout) for more in (["--no-reorder"], [])]


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
        f"Of {len(rows)} programs, {len(better)} have a smaller arena for it, {len(worse)} a larger one: {size(now)} instead of "
        f"{size(was)} in all. {proved} of the arenas are proved smallest for the order that is run.",
        "",
    ]
    if failed:
        out += [f"{len(failed)} are not compiled: {', '.join(f'`{n}`' for n in failed)}.", ""]
    out += [f"The {min(ROWS, len(better))} for which it is worth most:", ""] if len(better) > ROWS else []
    out += ["| program | arena in the program's order | as restride orders it | of that |", "|---|---|---|---|"]
    for r in better[:ROWS]:
        out.append(f"| `{r['name']}` | {size(r['was'])} | {size(r['now'])} | {100 * r['now'] / r['was']:.1f} % |")
    return "\n".join(out)


def write_docs(text):
    """Replaces what is between the marks."""
    with open(DOCS) as f:
        before, _, rest = f.read().partition(BEGIN)
    _, _, after = rest.partition(END)
    with open(DOCS, "w") as f:
        f.write(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", nargs="?", default=os.path.expanduser("~/.cache/restride/zoo"))
    p.add_argument("--only", default="")
    p.add_argument("--binary", default=os.path.join(ROOT, "target", "release", "restride"))
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--timeout", type=float, default=300)
    p.add_argument("--json")
    p.add_argument("--write-docs", action="store_true")
    args = p.parse_args()
    names = sorted(f[:-4] for f in os.listdir(args.dir) if f.endswith(".pt2") and re.search(args.only, f))
    rows, failed = [], {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, (was, now) in pool.map(lambda n: both(args, n), names):
            wrong = [r for r in (was, now) if isinstance(r, str)]
            if wrong:
                failed[name] = wrong[0]
                print(f"{name}: {wrong[0]}")
                continue
            rows.append({"name": name, "was": was["arena_bytes"], "now": now["arena_bytes"], "optimal": now["optimal"]})
            if rows[-1]["was"] != rows[-1]["now"]:
                print(f"{name:<44} {rows[-1]['was']:>12} {rows[-1]['now']:>12}")
    text = table(rows, sorted(failed))
    print(text.splitlines()[0])
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"programs": rows, "failed": failed}, f, indent=1)
    if args.write_docs:
        write_docs(text)
    return int(any(r["now"] > r["was"] for r in rows))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""How much memory and how many copies are left in eleven models, restride and ExecuTorch side by side.

  memory.py [MODEL ...] [--binary F] [--no-peer | --peer-from F] [--keep DIR] [--timeout S] [--json F] [--write-docs]

Use the python that scripts/torch-env.sh prints. Exports the models of models.py, one after the other. Of each, `restride compile` says
the arena, the state and the copies that are left, `restride explain` why each of these stays, and scripts/check/compare.py's judge
runs it and holds its results against PyTorch's. executorch_memory.py says what ExecuTorch plans and copies; its environment is made
once, outside of the checkout, as that of run.py's targets. Where it cannot be made, its columns are left out, with a note. It is most
of the time and does not depend on restride: `--peer-from` takes it from what `--json` wrote in an earlier run.

`--write-docs` puts the tables into docs/memory.md. Exit status 1 when a model is not right, a copy stays that `explain` has no
reason for, or more than this share of ExecuTorch's bytes is copied: SHARES.
"""

import argparse
import collections
import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib import common  # noqa: E402
import compare  # noqa: E402
from environments import environment, output_of, torch_python, versions, write_between  # noqa: E402

DOCS = os.path.join(common.ROOT, "docs", "memory.md")
BEGIN, END = "<!-- begin: written by scripts/measure/peers/memory.py --write-docs -->", "<!-- end -->"
PEER = ["executorch==1.5.1"]
SHARES = collections.defaultdict(lambda: 0.02, swin_t=0.04, shufflenet_v2_x1_0=0.09)
NO_REASON = "no reason was noted"


@dataclass
class Copy:
    """A copy that stays: whose, how many bytes, why."""

    what: str
    bytes: int
    why: str


@dataclass
class Row:
    """One model. `peer` is what executorch_memory.py writes, None without it."""

    name: str
    status: str
    detail: str
    inputs: int = 0
    plan: dict = field(default_factory=dict)
    copies: list = field(default_factory=list)
    peer: dict | None = None
    problems: list = field(default_factory=list)

    @property
    def copied(self):
        return sum(c.bytes for c in self.copies)

    @property
    def peer_copied(self):
        return sum(m["bytes"] for m in self.peer["moves"].values())


# ---------------------------------------------------------------------------------- measuring


def must(outcome, what):
    if not outcome:
        raise SystemExit(f"{what}: {outcome.kind}: {outcome.line}")


def site(node):
    return f"%{node['results'][0]} = {operator(node)}"


def operator(node):
    """`reshape` of `aten.reshape.default`."""
    return node["op"].split(".")[1]


def copies_of(explained):
    """What explain lists, largest first."""
    found = []
    for c in explained["copies"]:
        node = c["maker"] if c["run"] else c["for"]
        of = ", ".join(f"%{v}" for v in c["values"])
        what = site(node) if c["run"] else f"{of} to {c['to']}" + (f", for {site(node)}" if node else "")
        found.append(Copy(what, c["bytes"], c["why"]))
    return sorted(found, key=lambda c: -c.bytes)


def ours(restride, stem, timeout):
    """The report of `compile` and the copies of `explain`, which must agree."""
    reports = []
    for command in ("compile", "explain"):
        out = f"{stem}.{command}.json"
        given = ["--inputs", stem + ".inputs.npz", "--json", out]
        must(common.run([restride, command, stem + ".pt2", *given], timeout), f"{command} {os.path.basename(stem)}")
        with open(out) as f:
            reports.append(json.load(f))
    compiled, explained = reports
    placed, listed = compiled["placed"], explained["totals"]
    if (placed["copies"], placed["copy_bytes"]) != (listed["copies"], listed["copy_bytes"]):
        raise SystemExit(f"{os.path.basename(stem)}: compile counts {placed['copies']} copies, explain {listed['copies']}")
    return compiled, copies_of(explained)


def theirs(stem, peer, timeout):
    """What executorch_memory.py says, by the python of its environment."""
    out = stem + ".executorch.json"
    script = os.path.join(HERE, "executorch_memory.py")
    must(common.run([peer, script, stem + ".pt2", out], timeout), f"ExecuTorch {os.path.basename(stem)}")
    with open(out) as f:
        return json.load(f)


def measured(name, directory, restride, torch, peer, timeout):
    """A row. `peer` is a function of the program's path without its ending, or None."""
    stem = os.path.join(directory, name)
    subprocess.run([torch, os.path.join(HERE, "models.py"), directory, name], check=True)
    judged = compare.check(dict(name=name, file=name, ok=True), directory, restride, timeout, [])
    row = Row(name, judged["status"], judged["detail"])
    with np.load(stem + ".inputs.npz") as z:
        row.inputs = sum(z[key].nbytes for key in z.files)
    compiled, row.copies = ours(restride, stem, timeout)
    row.plan = compiled["plan"]
    if peer:
        row.peer = peer(stem)
    row.problems = [f"{row.status}: {row.detail}"] if row.status != "ok" else []
    row.problems += [f"check of the {what}: {said}" for what, said in compiled["checks"].items() if said != "ok"]
    row.problems += [f"no reason for {c.what}" for c in row.copies if c.why == NO_REASON]
    if peer and row.copied > SHARES[name] * row.peer_copied:
        row.problems.append(f"{100 * row.copied / row.peer_copied:.1f} % of ExecuTorch's bytes, over {100 * SHARES[name]:g} %")
    return row


# ---------------------------------------------------------------------------------- the tables


def size(n):
    """Bytes in words: MB are 10^6."""
    if n >= 1e5:
        return f"{n / 1e6:.2f} MB"
    return f"{n / 1e3:.1f} kB" if n >= 1e4 else f"{n} B" if n else "0"


def table(header, rows):
    return ["| " + " | ".join(header) + " |", "|---" * len(header) + "|", *("| " + " | ".join(row) + " |" for row in rows), ""]


def share(ours, theirs):
    percent = 100 * ours / theirs
    return "0" if not ours else f"{percent:.0f} %" if percent >= 10 else f"{percent:.2f} %" if percent >= 0.01 else "< 0.01 %"


def arenas(rows, peer):
    header = ["model", "arena", "lower bound", "state", "inputs and outputs"]
    header += ["ExecuTorch's arena with state", "and with inputs and outputs", "arena and state, of ExecuTorch's"] if peer else []
    lines = []
    for r in rows:
        p = r.plan
        line = [f"`{r.name}`", *map(size, (p["arena_bytes"], p["lower_bound_bytes"], p["state_bytes"], r.inputs + p["output_bytes"]))]
        if peer:
            inner = r.peer["inner_arena"]
            line += [size(inner), size(r.peer["arena"]), share(p["arena_bytes"] + p["state_bytes"], inner)]
        lines.append(line)
    return table(header, lines)


def copies(rows, peer):
    header = ["model", "copies", "bytes"] + (["ExecuTorch's copies", "bytes", "share"] if peer else []) + ["the largest, and why it stays"]
    lines = []
    for r in rows:
        line = [f"`{r.name}`", str(len(r.copies)), size(r.copied)]
        if peer:
            nodes = sum(m["nodes"] for m in r.peer["moves"].values())
            line += [str(nodes), size(r.peer_copied), share(r.copied, r.peer_copied)]
        top = r.copies[0] if r.copies else None
        lines.append(line + [f"`{top.what}`, {size(top.bytes)}: {top.why}" if top else "none"])
    return table(header, lines)


def operators(rows):
    lines = []
    for r in rows:
        kinds = sorted(r.peer["moves"].items(), key=lambda m: (-m[1]["bytes"], m[0]))
        lines.append([f"`{r.name}`", ", ".join(f"`{k}` {m['nodes']} / {size(m['bytes'])}" for k, m in kinds)])
    return table(["model", "operator, how many, bytes"], lines)


def text_of(rows, torch_version, peer, missing):
    wrong = ", ".join(f"`{r.name}`" for r in rows if r.status != "ok")
    said = f"do NOT agree with PyTorch's in: {wrong}" if wrong else "agree with PyTorch's in all of them"
    by = f"{peer} with the same PyTorch" if peer else f"ExecuTorch {missing}"
    out = [f"PyTorch {torch_version} exported the models; {by}.", ""]
    out += [f"The outputs and buffers that `restride run` leaves {said}.", ""]
    out += ["### Memory", "", *arenas(rows, peer), "### Copies in one run", "", *copies(rows, peer)]
    if peer:
        out += ["### What ExecuTorch copies", "", *operators(rows)]
    return "\n".join(out).rstrip() + "\n"


def peer_of(o, torch):
    """The function that gives ExecuTorch's side, its version; or why there is none."""
    if o.no_peer:
        return None, None, "left out"
    if o.peer_from:
        with open(o.peer_from) as f:
            earlier = json.load(f)
        known = {r["name"]: r["peer"] for r in earlier["rows"] if r["peer"]}
        if absent := set(o.models) - known.keys():
            raise SystemExit(f"{o.peer_from} has nothing of {', '.join(sorted(absent))}")
        return lambda stem: known[os.path.basename(stem)], earlier["peer"], None
    python, missing = environment("executorch", PEER, torch)
    if missing:
        return None, None, missing
    return lambda stem: theirs(stem, python, o.timeout), versions(python, PEER), None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="*")
    p.add_argument("--binary")
    p.add_argument("--no-peer", action="store_true", help="leave ExecuTorch out")
    p.add_argument("--peer-from", metavar="F", help="ExecuTorch's side from an earlier run's --json")
    p.add_argument("--keep", metavar="DIR", help="leave programs and reports there")
    p.add_argument("--timeout", type=float, default=900.0, help="seconds for one command")
    p.add_argument("--json", metavar="F")
    p.add_argument("--write-docs", action="store_true")
    o = p.parse_intermixed_args()
    restride = common.binary(o.binary)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch = torch_python()
    listed = output_of(torch, f"import sys; sys.path.insert(0, {HERE!r}); import models; print(' '.join(models.MODELS))").split()
    if unknown := set(o.models) - set(listed):
        p.error(f"no model {', '.join(sorted(unknown))}")
    o.models = o.models or listed
    peer, said, missing = peer_of(o, torch)
    if missing:
        print(f"ExecuTorch: {missing}", file=sys.stderr)
    if o.write_docs and (o.models != listed or not said):
        p.error("--write-docs is for all models, beside ExecuTorch")
    rows = []
    for name in o.models:
        print(name, file=sys.stderr, flush=True)
        # One model's files at a time: the weights of all are over a gigabyte.
        with tempfile.TemporaryDirectory(prefix="restride-memory-") as tmp:
            directory = os.path.abspath(o.keep or tmp)
            os.makedirs(directory, exist_ok=True)
            rows.append(measured(name, directory, restride, torch, peer, o.timeout))
    version = output_of(torch, "import torch; print(torch.__version__.partition('+')[0])")
    text = text_of(rows, version, said, missing)
    print(text)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(dict(peer=said, rows=[asdict(r) for r in rows]), f, indent=1)
    if o.write_docs:
        write_between(DOCS, BEGIN, END, text)
    for r in rows:
        for problem in r.problems:
            print(f"{r.name}: {problem}")
    bad = sum(bool(r.problems) for r in rows)
    print(f"{len(rows) - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measure the memory and the copies that remain in eleven models, in restride and ExecuTorch.

Use the python that scripts/torch-env.sh prints. Exports the models of models.py one after the other. `restride compile` gives
the arena, the state and the remaining copies, `restride explain` their reasons, and scripts/check/compare.py holds the results
of a run to PyTorch's. executorch_memory.py gives ExecuTorch's plan and copies, in an environment made once outside the checkout,
like those of run.py's targets. Without that environment its columns are left out, with a note. ExecuTorch takes most of the time
and does not depend on restride: `--peer-from` takes its side from an earlier run's `--json`.

`--write-docs` puts the tables into docs/memory.md. Exit status 1 when a model is not right, a copy remains without a reason, or
restride copies more than its share of ExecuTorch's bytes (SHARES).
"""

import collections
import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from environments import HERE, environment, model_names, torch_python, torch_version, versions

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib.command import ROOT, Restride, run
from lib.driver import finish, markdown, parser, replace_between, scratch
from lib.values import load

from check import compare

DOCS = ROOT / "docs/memory.md"
BEGIN, END = "<!-- begin: written by scripts/measure/peers/memory.py --write-docs -->", "<!-- end -->"
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
    """The copies that explain lists, largest first."""
    found = []
    for c in explained["copies"]:
        node = c["maker"] if c["run"] else c["for"]
        of = ", ".join(f"%{v}" for v in c["values"])
        what = site(node) if c["run"] else f"{of} to {c['to']}" + (f", for {site(node)}" if node else "")
        found.append(Copy(what, c["bytes"], c["why"]))
    return sorted(found, key=lambda c: -c.bytes)


def ours(restride, program):
    """The report of `compile` and the copies of `explain`, which must agree."""
    reports = []
    for command in ("compile", "explain"):
        out = program.with_suffix(f".{command}.json")
        done = restride(command, program, "--inputs", program.with_suffix(".inputs.npz"), "--json", out)
        must(done, f"{command} {program.stem}")
        reports.append(json.loads(out.read_text()))
    compiled, explained = reports
    placed, listed = compiled["placed"], explained["totals"]
    if (placed["copies"], placed["copy_bytes"]) != (listed["copies"], listed["copy_bytes"]):
        raise SystemExit(f"{program.stem}: compile counts {placed['copies']} copies, explain {listed['copies']}")
    return compiled, copies_of(explained)


def theirs(program, peer, timeout):
    """The result of executorch_memory.py, by the python of its environment."""
    out = program.with_suffix(".executorch.json")
    must(run([peer, HERE / "executorch_memory.py", program, out], timeout), f"ExecuTorch {program.stem}")
    return json.loads(out.read_text())


def measured(name, folder, restride, torch, peer):
    """A row. `peer` is a function of the program's path, or None."""
    program = folder / f"{name}.pt2"
    subprocess.run([torch, HERE / "models.py", folder, name], check=True)
    judged = compare.check(dict(name=name, file=name, ok=True), folder, restride, [])
    row = Row(name, judged["status"], judged["detail"])
    row.inputs = sum(a.nbytes for a in load(program.with_suffix(".inputs.npz")).values())
    compiled, row.copies = ours(restride, program)
    row.plan = compiled["plan"]
    if peer:
        row.peer = peer(program)
    row.problems = [f"{row.status}: {row.detail}"] if row.status != "ok" else []
    row.problems += [f"check of the {what}: {said}" for what, said in compiled["checks"].items() if said != "ok"]
    row.problems += [f"no reason for {c.what}" for c in row.copies if c.why == NO_REASON]
    if peer and row.copied > SHARES[name] * row.peer_copied:
        row.problems.append(
            f"{100 * row.copied / row.peer_copied:.1f} % of ExecuTorch's bytes, over {100 * SHARES[name]:g} %"
        )
    return row


# ---------------------------------------------------------------------------------- the tables


def size(n):
    """Bytes in words: MB are 10^6."""
    if n >= 1e5:
        return f"{n / 1e6:.2f} MB"
    return f"{n / 1e3:.1f} kB" if n >= 1e4 else f"{n} B" if n else "0"


def share(ours, theirs):
    percent = 100 * ours / theirs
    return (
        "0"
        if not ours
        else f"{percent:.0f} %"
        if percent >= 10
        else f"{percent:.2f} %"
        if percent >= 0.01
        else "< 0.01 %"
    )


def arenas(rows, peer):
    header = ["model", "arena", "lower bound", "state", "inputs and outputs"]
    header += (
        ["ExecuTorch's arena with state", "and with inputs and outputs", "arena and state, of ExecuTorch's"]
        if peer
        else []
    )
    lines = []
    for r in rows:
        p = r.plan
        line = [
            f"`{r.name}`",
            *map(size, (p["arena_bytes"], p["lower_bound_bytes"], p["state_bytes"], r.inputs + p["output_bytes"])),
        ]
        if peer:
            inner = r.peer["inner_arena"]
            line += [size(inner), size(r.peer["arena"]), share(p["arena_bytes"] + p["state_bytes"], inner)]
        lines.append(line)
    return markdown(header, lines)


def copies(rows, peer):
    header = (
        ["model", "copies", "bytes"]
        + (["ExecuTorch's copies", "bytes", "share"] if peer else [])
        + ["the largest, and why it stays"]
    )
    lines = []
    for r in rows:
        line = [f"`{r.name}`", str(len(r.copies)), size(r.copied)]
        if peer:
            nodes = sum(m["nodes"] for m in r.peer["moves"].values())
            line += [str(nodes), size(r.peer_copied), share(r.copied, r.peer_copied)]
        top = r.copies[0] if r.copies else None
        lines.append([*line, f"`{top.what}`, {size(top.bytes)}: {top.why}" if top else "none"])
    return markdown(header, lines)


def operators(rows):
    lines = []
    for r in rows:
        kinds = sorted(r.peer["moves"].items(), key=lambda m: (-m[1]["bytes"], m[0]))
        lines.append([f"`{r.name}`", ", ".join(f"`{k}` {m['nodes']} / {size(m['bytes'])}" for k, m in kinds)])
    return markdown(["model", "operator, how many, bytes"], lines)


def text_of(rows, version, peer, missing):
    wrong = ", ".join(f"`{r.name}`" for r in rows if r.status != "ok")
    said = f"do NOT agree with PyTorch's in: {wrong}" if wrong else "agree with PyTorch's in all of them"
    by = f"{peer} with the same PyTorch" if peer else f"ExecuTorch {missing}"
    out = [f"PyTorch {version} exported the models; {by}.", ""]
    out += [f"The outputs and buffers that `restride run` leaves {said}.", ""]
    out += ["### Memory", "", *arenas(rows, peer), "### Copies in one run", "", *copies(rows, peer)]
    if peer:
        out += ["### What ExecuTorch copies", "", *operators(rows)]
    return "\n".join(out).rstrip() + "\n"


def peer_of(o, torch):
    """(the function that gives ExecuTorch's side, its version, None), or (None, None, the reason)."""
    if o.no_peer:
        return None, None, "left out"
    if o.peer_from:
        earlier = json.loads(Path(o.peer_from).read_text())
        known = {r["name"]: r["peer"] for r in earlier["rows"] if r["peer"]}
        if absent := set(o.models) - known.keys():
            raise SystemExit(f"{o.peer_from} has nothing of {', '.join(sorted(absent))}")
        return lambda program: known[program.stem], earlier["peer"], None
    python, missing = environment("executorch", torch)
    if missing:
        return None, None, missing
    return lambda program: theirs(program, python, o.timeout), versions(python, "executorch"), None


def main():
    p = parser(__doc__, "--binary", "--timeout", "--json", "--write-docs", timeout=900.0)
    p.add_argument("models", nargs="*")
    p.add_argument("--no-peer", action="store_true", help="leave ExecuTorch out")
    p.add_argument("--peer-from", metavar="F", help="ExecuTorch's side from an earlier run's --json")
    p.add_argument("--keep", type=Path, metavar="DIR", help="leave programs and reports there")
    o = p.parse_intermixed_args()
    restride, torch = Restride(o.binary, o.timeout), torch_python()
    listed = model_names(torch)
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
        with scratch() as tmp:
            folder = (o.keep or tmp).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            rows.append(measured(name, folder, restride, torch, peer))
    text = text_of(rows, torch_version(torch), said, missing)
    print(text)
    if o.write_docs:
        replace_between(DOCS, BEGIN, END, f"\n{text}\n")
    for r in rows:
        for problem in r.problems:
            print(f"{r.name}: {problem}")
    bad = sum(bool(r.problems) for r in rows)
    return finish(len(rows) - bad, bad, o.json, ran=True, peer=said, rows=[asdict(r) for r in rows])


if __name__ == "__main__":
    sys.exit(main())

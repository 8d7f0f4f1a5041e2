#!/usr/bin/env python3
"""Compare restride with PyTorch's own transforms on the programs of fixtures/alias: the table in README.md.

For every case with a .pt2, every column runs the same program on the case's inputs. One comparison
(lib.tensor_files.differences) holds inputs and outputs, over their storages, to what eager PyTorch left:

  right      values, sizes, strides and sharing are eager's; where eager raises, so does this
  sharing    the values are right, but strides, offsets or sharing are not, without a message
  wrong      values, element types or sizes are not eager's, without a message
  refused    raises or refuses where eager PyTorch runs
  accepted   runs where eager PyTorch raises

Without names, writes the sums between the marks of README.md and a line a case to docs/alias-table.md; --check compares the files
instead, and exits with 1 where they differ. --torch-from takes PyTorch's columns from an earlier --json file. Without a C++
compiler the column of torch.compile with inductor is left out. Cases that torch cannot save have no program to run.
"""

import argparse
import contextlib
import importlib.metadata
import io
import json
import logging
import os
import select
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, VIAS, Restride
from lib.driver import markdown, parser, print_table, replace_between, scratch, write_json
from lib.tensor_files import Tensors, content_of, differences

import torch
from torch.utils import _pytree as pytree

TORCH = {
    "run_decompositions": "`ep.run_decompositions({})`",
    "functionalize": "`torch.func.functionalize` under `make_fx`",
    "reinplace": "`torch.fx.passes.reinplace` after it",
    "aot_eager": '`torch.compile(backend="aot_eager")`',
    "inductor": "`torch.compile()` (inductor)",
}
RESTRIDE = {
    "file": "`restride functionalize`, in `torch.export.load`",
    **{via: f"`restride run --via {via}`" for via in VIAS},
}
STATUSES = ("right", "sharing", "wrong", "refused", "accepted")
BEGIN, END = "<!-- alias-table: scripts/measure/alias_table.py writes what follows -->", "<!-- alias-table: end -->"
UNREADABLE = "torch.export.load fails"
# Words of differences in layout and sharing; all others are about values.
LAYOUT = ("stride", "should share storage", "shares storage with", "offset")


def columns():
    compiler = any(shutil.which(c) for c in ("c++", "g++", "clang++"))
    return [k for k in TORCH if k != "inductor" or compiler] + list(RESTRIDE)


def judge(case, got, problem):
    """(status, detail) of one run: `got` is what it left as a tensor file's content, or None when it raised `problem`."""
    if "after" not in case:
        return ("right", "") if got is None else ("accepted", f"eager: {case['eager_error'].splitlines()[0][:90]}")
    if got is None:
        return "refused", problem
    try:
        found = differences(case["after"], got, case["n_inputs"])
    except Exception as e:
        found = [f"unusable result: {type(e).__name__}: {e}".splitlines()[0]]
    if not found:
        return "right", ""
    values = [p for p in found if not any(f" {word}" in p.split(":", 1)[-1] for word in LAYOUT)]
    return ("wrong", values[0]) if values else ("sharing", found[0])


# ---------------------------------------------------------------------------------- running


def define_operators():
    """The operators of the customop_ cases (fixtures/README.md), in PyTorch; gives their schemas."""
    lib = torch.library.Library("abugs", "DEF")
    table = {
        "two_inplace(Tensor(a!) a, Tensor(b!) b) -> ()": lambda a, b: (a.add_(1), b.add_(2), None)[-1],
        "sum_out(Tensor a, Tensor b, Tensor(c!) o) -> ()": lambda a, b, o: (o.copy_(a + b + 2), None)[-1],
        "seq_write(Tensor(a!) a, Tensor(b!) b) -> ()": lambda a, b: (a.fill_(1), b.add_(2), None)[-1],
        "sin_(Tensor(a!) x) -> ()": lambda x: (x.sin_(), None)[-1],
        "list_mut(Tensor(a!)[] xs) -> ()": lambda xs: ([x.add_(i + 1) for i, x in enumerate(xs)], None)[-1],
    }
    for schema, kernel in table.items():
        lib.define(schema)
        lib.impl(schema.split("(")[0], kernel, "CompositeExplicitAutograd")
    return lib, [f"abugs::{s}" for s in table]


def in_torch(case, make):
    """The tensor file's content that a run in PyTorch leaves on the case's inputs; `make` gives the function."""

    run = make()
    inputs = Tensors(case["inputs"]).all()
    with torch.no_grad():
        outputs = run(*inputs)
    given = {s["id"]: s["dtype"] for s in case["inputs"]["storages"]}
    dtypes = [given[e["storage"]] if "storage" in e else None for e in case["inputs"]["tensors"]]
    return content_of([*inputs, *pytree.tree_leaves(outputs)], dtypes)


def column(name, case, path, restride, ops):
    """(content or None, problem) of one column."""

    def load(path):
        try:
            return torch.export.load(path)
        except Exception as e:
            raise RuntimeError(f"{UNREADABLE}: {type(e).__name__}: {e}") from e

    def flat(ep):
        """The program as a function of its flat inputs."""
        module, spec = ep.module(check_guards=False), pytree.tree_structure(ep.example_inputs)

        def call(*leaves):
            args, kwargs = pytree.tree_unflatten(list(leaves), spec)
            return module(*args, **kwargs)

        return call

    def traced(remove):
        from torch.fx.experimental.proxy_tensor import make_fx

        f = torch.func.functionalize(flat(load(path)), remove=remove)
        with torch.no_grad():
            return make_fx(f)(*Tensors(case["inputs"]).all())

    def reinplaced():
        from torch.fx.passes.reinplace import reinplace

        return reinplace(traced("mutations_and_views"), *Tensors(case["inputs"]).all())

    makers = {
        "run_decompositions": lambda: flat(load(path).run_decompositions({})),
        "functionalize": lambda: traced("mutations"),
        "reinplace": reinplaced,
        "aot_eager": lambda: torch.compile(flat(load(path)), backend="aot_eager"),
        "inductor": lambda: torch.compile(flat(load(path))),
    }
    if name in makers:
        torch._dynamo.reset()
        return in_torch(case, makers[name]), ""
    with scratch() as tmp:
        given, file, left = tmp / "inputs.json", tmp / "out.pt2", tmp / "out.json"
        given.write_text(json.dumps(case["inputs"]))
        if name == "file":
            outcome = restride("functionalize", path, "--inputs", given, "-o", file, "--ops", ops)
        else:
            outcome = restride.run(path, name, left, "--ops", ops, inputs=given)
        if outcome.kind not in ("ok", "refused"):
            raise SystemExit(f"{path}: {name}: {outcome.kind}: {outcome.line}")
        if not outcome:
            return None, outcome.line
        if name == "file":
            return in_torch(case, lambda: flat(load(file))), ""
        return json.loads(left.read_text()), ""


def work(o):
    """Judges columns of cases, one asked for a line, until the input ends; a crash loses that one only."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _library, schemas = define_operators()
    restride = Restride(o.binary, o.timeout)
    with scratch() as tmp:
        ops = tmp / "ops.txt"
        ops.write_text("".join(f"{s}\n" for s in schemas))
        for line in sys.stdin:
            stem, name = json.loads(line)
            case = json.loads(Path(f"{stem}.json").read_text())
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    got, problem = column(name, case, f"{stem}.pt2", restride, ops)
            except Exception as e:
                got, problem = None, f"{type(e).__name__}: {e}".splitlines()[0][:120]
            print(json.dumps(judge(case, got, problem)), file=answers, flush=True)


class Worker:
    """A process that judges; started again when it dies or takes too long."""

    def __init__(self, command, timeout):
        self.command, self.timeout, self.child = command, timeout, None

    def ask(self, question):
        if self.child is None:
            self.child = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        self.child.stdin.write(json.dumps(question).encode() + b"\n")
        self.child.stdin.flush()
        ready, _, _ = select.select([self.child.stdout], [], [], self.timeout)
        line = self.child.stdout.readline() if ready else b""
        if line:
            return json.loads(line)
        self.end()
        return ["refused", "timeout" if not ready else "the process died"]

    def end(self):
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None


# ---------------------------------------------------------------------------------- tables


def sums(rows, names):
    """The lines of a table: how many programs each way has in each status."""
    found = {name: [row["results"][name][0] for row in rows] for name in names}
    lines = [((TORCH | RESTRIDE)[name], *map(found[name].count, STATUSES)) for name in names]
    return markdown([f"{len(rows)} programs", *STATUSES], lines)


MEANING = (
    "*sharing*: the values are right, but strides or who shares memory with whom are not, and nothing says so (a file "
    "cannot say that two results share memory); *wrong*: values are not eager's, and nothing says so; *refused*: raises "
    "where eager PyTorch runs; *accepted*: runs where eager PyTorch raises. All get the program as torch.export saved it; "
    "restride refuses to run only users' operators, for which it has no kernels."
)


def unreadable(rows):
    """Programs that torch saves and cannot load."""
    return [r["name"] for r in rows if UNREADABLE in r["results"]["run_decompositions"][1]]


def short_table(rows, names, version):
    lost = len(unreadable(rows))
    note = (
        f"PyTorch {version}, which cannot load {lost} of the files that it saved; " if lost else f"PyTorch {version}; "
    )
    note += "each program by itself: [docs/alias-table.md](docs/alias-table.md)."
    return "\n".join(["", *sums(rows, names), MEANING, note, "", ""])


def long_table(rows, names, version, left_out):
    text = ["# Aliasing and mutation: restride beside PyTorch's own transforms", ""]
    head = (
        f"Written by `scripts/measure/alias_table.py` with PyTorch {version}; `fixtures/alias` holds the programs and what eager "
        "PyTorch leaves. One comparison judges all columns. `torch.compile` gets `torch.export.load(…).module()`; what it made of "
        "the Python that was exported is in the fixtures (`torch_2_15`), and differs for a few."
    )
    text += [head, "", MEANING, "", *sums(rows, names)]
    lines = []
    for row in rows:
        number = isinstance(row["issue"], int)
        issue = f"[{row['issue']}](https://github.com/pytorch/pytorch/issues/{row['issue']})" if number else ""
        what = row["what"].replace("|", "&#124;")
        lines.append([f"`{row['name']}`: {what}", issue, *(row["results"][n][0] for n in names)])
    text += markdown(["program", "issue", *names], lines)[:-1]
    ours = [
        (r["name"], n, *r["results"][n]) for r in rows for n in names if n in RESTRIDE and r["results"][n][0] != "right"
    ]
    if ours:
        text += ["", "What restride's columns say where they are not right:", ""]
        text += [f"- `{case}`, {n}: {status}: {detail}" for case, n, status, detail in ours]
    for verb, which in (("save", left_out), ("load what it saved of", unreadable(rows))):
        if which:
            text += ["", f"PyTorch cannot {verb} " + ", ".join(f"`{n}`" for n in which) + "."]
    return "\n".join(text) + "\n"


def main():
    p = parser(__doc__, "names", "--binary", "--timeout", "--json", timeout=120.0)
    p.add_argument("--fixtures", type=Path, default=ROOT / "fixtures/alias")
    p.add_argument("--readme", type=Path, default=ROOT / "README.md")
    p.add_argument("--long", type=Path, default=ROOT / "docs/alias-table.md")
    p.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    p.add_argument("--torch-from", metavar="F", help="an earlier --json file: PyTorch's columns are taken from it")
    p.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    o = p.parse_intermixed_args()
    if o.worker:
        return work(o)
    version = importlib.metadata.version("torch").split("+")[0]
    names, rows, left_out, before = columns(), [], [], {}
    if o.torch_from:
        earlier = json.loads(Path(o.torch_from).read_text())
        if earlier["torch"] != version:
            p.error(f"{o.torch_from} is of PyTorch {earlier['torch']}, not {version}")
        before = {row["name"]: {c: r for c, r in row["results"].items() if c in TORCH} for row in earlier["rows"]}
    binary = Restride(o.binary).path
    worker = Worker([sys.executable, __file__, "--worker", "--binary", binary, "--timeout", str(o.timeout)], o.timeout)
    for path in sorted(o.fixtures.glob("*.json")):
        name = path.stem
        if o.names and name not in o.names:
            continue
        if not path.with_suffix(".pt2").exists():
            left_out.append(name)
            continue
        case = json.loads(path.read_text())
        stem = str(path.with_suffix(""))
        results = {c: before.get(name, {}).get(c) or worker.ask([stem, c]) for c in names}
        rows.append(dict(name=name, what=case["what"], issue=case["issue"], results=results))
        print(f"{name}: " + ", ".join(f"{c} {s}" for c, (s, _) in results.items()), file=sys.stderr, flush=True)
    worker.end()
    detail = lambda r: next((f"{c}: {r[c][1]}" for c in RESTRIDE if r[c][0] != "right"), "")
    table = [(r["name"], *(r["results"][c][0] for c in names), detail(r["results"])) for r in rows]
    print_table(("case", *names, ""), table)
    print()
    print("\n".join(sums(rows, names)))
    write_json(o.json, dict(torch=version, rows=rows, left_out=left_out))
    differ = False
    if not o.names:
        have = o.long.read_text() if o.long.exists() else ""
        made = long_table(rows, names, version, left_out)
        if o.check:
            short = short_table(rows, names, version)
            stale = [o.long] * (have != made) + [o.readme] * (short not in o.readme.read_text())
            for path in stale:
                print(f"{path} is not what was measured: run scripts/measure/alias_table.py")
            differ = bool(stale)
        else:
            replace_between(o.readme, BEGIN, END, short_table(rows, names, version))
            o.long.write_text(made)
    bad = [r["name"] for r in rows for c in RESTRIDE if r["results"][c][0] in ("wrong", "accepted")]
    for name in sorted(set(bad)):
        print(f"{name}: restride is wrong")
    return 1 if differ or bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())

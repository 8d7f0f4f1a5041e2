#!/usr/bin/env python3
"""Try other compilers on small programs that mutate, as PyTorch exported them and as restride functionalized them.

  run.py [TARGET ...] [--program NAME ...] [--binary F] [--keep DIR [--resume]] [--timeout S] [--json F] [--write-docs]

Use the python that scripts/torch-env.sh prints. Targets: torch, tvm, torch-mlir, iree, executorch, xnnpack, onnx; default all.
Each compiler has an environment of its own, made once outside the checkout in $RESTRIDE_PEERS (default
~/.cache/restride/peers/NAME): pinned packages from pip's index, and PyTorch from the environment of scripts/torch-env.sh.
PyTorch decomposes where the compiler's own importer does so (ExecuTorch, ONNX).

Each program is tried as exported (original), as `restride functionalize` writes it, and with `--portable`. One compiled program
makes two calls in a row; outputs, and the mutated buffers and inputs that the target reports, must agree with eager PyTorch
within the tolerance of scripts/lib/values.py. Cells of the table:

  right, state right   and it says what it left in each buffer and input that the program changes
  right, state kept    buffers are the compiled program's own and not told; the second call's outputs show that they were kept
  right, state hidden  the same, where the second call's outputs would be the same without it
  right                nothing is mutated
  WRONG                it compiles and runs, and something differs
  rejected             it does not compile or run; the number refers to the list below the table

`--write-docs` puts the tables of the targets that were tried into docs/other-compilers.md. Exit status 1 when a functionalized
program, in either form, is WRONG where the original is not, or is rejected where the original is right.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from environments import HERE, environment, torch_python, versions

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib.command import ROOT, Restride
from lib.driver import finish, markdown, parser, replace_between, scratch
from lib.values import difference, load

DOCS = ROOT / "docs/other-compilers.md"
FORMS = {"original": "as exported", "functional": "functionalized", "portable": "functionalized, `--portable`"}


@dataclass
class Target:
    """One compiler: the file that drives it, and the environment that it needs."""

    title: str
    script: str
    environment: str = ""


TARGETS = {
    "torch": Target("PyTorch, which loads the file and runs it", "torch_target.py"),
    "tvm": Target("TVM, `from_exported_program(run_ep_decomposition=False)`", "tvm_target.py", "tvm"),
    "torch-mlir": Target(
        "torch-mlir, `fx.export_and_import` and its execution engine", "torch_mlir_target.py", "torch-mlir"
    ),
    "iree": Target("IREE, `iree.turbine.aot.export`", "iree_target.py", "iree"),
    "executorch": Target("ExecuTorch, `to_edge` and its portable kernels", "executorch_target.py", "executorch"),
    "xnnpack": Target("ExecuTorch with its XNNPACK delegate", "executorch_xnnpack_target.py", "executorch"),
    "onnx": Target("ONNX Runtime, `torch.onnx.export(dynamo=True)`", "onnx_target.py", "onnxruntime"),
}

# ---------------------------------------------------------------------------------- judging


def judge(got, want, given, shows):
    """(kind, text): what is wrong, or how much is right. `shows`: whether outputs tell whether buffers were kept."""
    state, told = {k.split(".", 1)[1] for k in want if ".output." not in k}, set()
    for key in sorted(want):
        n, what = key.split(".", 1)
        if key in got:
            if found := difference(got[key], want[key]):
                return "WRONG", f"{what.replace('.', ' ')} of call {int(n) + 1}: {found}"
            told.add(what)
        elif what.startswith(("output.", "input.")):
            return "WRONG", f"{what.replace('.', ' ')} of call {int(n) + 1} is missing"
    for key in sorted(got.keys() - want.keys()):
        n, what = key.split(".", 1)
        if what.startswith("output."):
            return "WRONG", f"{what.replace('.', ' ')} of call {int(n) + 1} should not be there"
        # An input that the program does not change must not change.
        before = given.get(f"{n}.given.{what.split('.')[1]}") if what.startswith("input.") else None
        if before is not None and difference(got[key], before):
            return "WRONG", f"{what.replace('.', ' ')} of call {int(n) + 1} should not change"
    if not state:
        return "right", "right"
    if state <= told:
        return "right", "right, state right"
    return "right", "right, state kept" if shows else "right, state hidden"


def reason(kind, message):
    """The first line that says why, without this machine's paths."""
    message = re.sub(r"\x1b\[[0-9;]*m", "", message)
    text = re.sub(r'(error|note): "[^"]*":\d+:\d+: ', r"\1: ", message)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = next((s for s in lines if s.startswith("error:")), lines[0] if lines else kind).removeprefix("error: ")
    return f"{kind}: {line[:180]}"


def worse(cells, form):
    """Whether a program of ours is wrong where the original is not, or is refused where the original is right."""
    kind, before = cells[form][0], cells["original"][0]
    return form != "original" and (
        (kind == "WRONG" and before != "WRONG") or (kind == "rejected" and before == "right")
    )


# ---------------------------------------------------------------------------------- the table


def table(name, rows, version):
    """One target's table, with what is behind it below."""
    title = TARGETS[name].title + (f" ({version})" if version else "")
    reasons, lines = [], []
    for program, cells in rows.items():
        line = []
        for form in FORMS:
            kind, text = cells[form]
            if kind in ("rejected", "WRONG"):
                if text not in reasons:
                    reasons.append(text)
                bold = "**wrong values**" if kind == "WRONG" else kind
                text = f"{bold} [{reasons.index(text) + 1}]"
            line.append(text)
        lines.append([f"`{program}`", *line])
    quoted = [text.replace("`", "'") for text in reasons]
    out = [f"### {title}", "", *markdown(["program", *FORMS.values()], lines)]
    out += [f"{i + 1}. `{text}`" for i, text in enumerate(quoted)]
    return "\n".join(out).rstrip() + "\n"


def tried(target, o, folder, names, refused, torch):
    """One target on every program in every form: {program: {form: (kind, text)}}, and the versions that were installed."""
    there = lambda *paths: o.resume and any(path.exists() for path in paths)
    python, missing = environment(TARGETS[target].environment, torch)
    file = lambda name, form, end: folder / f"{name}.{form}.{target}{end}"
    ends, jobs = (".npz", ".json"), []
    for name, form in ((n, f) for n in names for f in FORMS if not missing and (n, f) not in refused):
        if there(*(file(name, form, end) for end in ends)):
            continue
        for end in ends:
            file(name, form, end).unlink(missing_ok=True)
        job = dict(
            program=folder / f"{name}.{form}.pt2", calls=folder / f"{name}.calls.npz", log=file(name, form, ".log")
        )
        jobs.append({k: str(v) for k, v in job.items()} | dict(out=str(file(name, form, "")), timeout=o.timeout))
    listed, installed = folder / f"{target}.jobs.json", None
    listed.write_text(json.dumps(jobs))
    if not missing:
        print(f"{target}: {len(jobs)} programs", file=sys.stderr, flush=True)
        subprocess.run([python, HERE / TARGETS[target].script, listed], check=True)
        own = TARGETS[target].environment
        installed = versions(python, own) if own else None
    shows, rows = json.loads((folder / "shows.json").read_text()), {}
    for name in names:
        want, given, cells = load(folder / f"{name}.expected.npz"), load(folder / f"{name}.calls.npz"), {}
        for form in FORMS:
            if missing or (name, form) in refused:
                cells[form] = ("rejected", missing or refused[name, form])
            elif file(name, form, ".npz").exists():
                cells[form] = judge(load(file(name, form, ".npz")), want, given, shows[name])
            else:
                cells[form] = ("rejected", reason(**json.loads(file(name, form, ".json").read_text())))
        rows[name] = cells
    return rows, installed


def main():
    p = parser(__doc__, "--binary", "--timeout", "--json", "--write-docs", timeout=300.0)
    p.add_argument("targets", nargs="*")
    p.add_argument("--program", action="append", help="only this one")
    p.add_argument("--keep", type=Path, metavar="DIR", help="leave programs, logs and results there")
    p.add_argument("--resume", action="store_true", help="do not repeat what an earlier run left in --keep DIR")
    o = p.parse_intermixed_args()
    if unknown := set(o.targets) - TARGETS.keys():
        p.error(f"no target {', '.join(sorted(unknown))}")
    if o.write_docs and o.program:
        p.error("--write-docs is for all programs")
    if o.resume and not o.keep:
        p.error("--resume needs --keep")
    restride, torch = Restride(o.binary, o.timeout), torch_python()
    with scratch() as tmp:
        folder = (o.keep or tmp).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if not (o.resume and (folder / "shows.json").exists()):
            subprocess.run([torch, HERE / "export.py", folder], check=True)
        names = [n for n in json.loads((folder / "shows.json").read_text()) if not o.program or n in o.program]
        refused = {}
        for name in names:
            for form, extra in (("functional", []), ("portable", ["--portable"])):
                out = folder / f"{name}.{form}.pt2"
                if not (o.resume and out.exists()):
                    done = restride("functionalize", folder / f"{name}.original.pt2", "-o", out, *extra)
                    if not done:
                        refused[name, form] = f"restride: {done.line}"
        made = {t: tried(t, o, folder, names, refused, torch) for t in o.targets or TARGETS}
    results = {target: rows for target, (rows, _) in made.items()}
    texts = {target: table(target, rows, installed) for target, (rows, installed) in made.items()}
    print("\n".join(texts.values()))
    for target, text in texts.items() if o.write_docs else ():
        replace_between(DOCS, f"<!-- begin: {target} -->", f"<!-- end: {target} -->", f"\n{text}\n")
    bad = [
        (t, n, form) for t, rows in results.items() for n, cells in rows.items() for form in FORMS if worse(cells, form)
    ]
    for target, name, form in bad:
        print(f"worse than as exported: {name}, {FORMS[form]}, on {target}: {results[target][name][form][1]}")
    ours = sum(2 * len(rows) for rows in results.values())
    installed = {target: v for target, (_, v) in made.items() if v}
    return finish(ours - len(bad), len(bad), o.json, ran=True, versions=installed, results=results)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Try other compilers on small programs that mutate, as PyTorch exported them and as restride functionalized them.

  run.py [TARGET ...] [--program NAME ...] [--binary F] [--keep DIR [--resume]] [--timeout S] [--json F] [--write-docs]

Needs numpy; use the python that scripts/torch-env.sh prints. Targets: torch, tvm, torch-mlir, iree, executorch, xnnpack, onnx;
default all. Each compiler has an environment of its own, made once, outside of the checkout in $RESTRIDE_PEERS (default
~/.cache/restride/peers/NAME): pinned packages from pip's index, and PyTorch from the environment that scripts/torch-env.sh makes,
so that PyTorch is installed once. Decompositions by PyTorch are run where the compiler's own road has them (ExecuTorch, ONNX).

Each program is tried as exported (original), as `restride functionalize` writes it, and with `--portable`. Two calls are made in
a row on one compiled program; outputs, and what the target says of mutated buffers and inputs, must agree with
eager PyTorch within the tolerance of scripts/lib/common.py. Cells of the table:

  right, state right   and it says what it left in each buffer and input that the program changes
  right, state kept    buffers are the compiled program's own and not told; the second call's outputs show that they were kept
  right, state hidden  the same, where the second call's outputs would be the same without it
  right                nothing is mutated
  WRONG                it compiles and runs, and something differs
  rejected             it does not compile or run; the number refers to the list below the table

`--write-docs` puts the tables of the targets that were tried into docs/other-compilers.md. Exit status 1 when a functionalized program, in either form, is WRONG
where the original is not, or is rejected where the original is right.
"""

import argparse
import json
import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib import common  # noqa: E402
from environments import environment, torch_python, versions, write_between  # noqa: E402

DOCS = os.path.join(common.ROOT, "docs", "other-compilers.md")
FORMS = {"original": "as exported", "functional": "functionalized", "portable": "functionalized, `--portable`"}


@dataclass
class Target:
    """One compiler: what pip installs into which environment, and the file that drives it."""

    title: str
    packages: list
    script: str
    environment: str = ""


EXECUTORCH = ["executorch==1.5.1"]
TARGETS = {
    "torch": Target("PyTorch, which loads the file and runs it", [], "torch_target.py"),
    "tvm": Target("TVM, `from_exported_program(run_ep_decomposition=False)`", ["apache-tvm==0.27.0.post1"], "tvm_target.py"),
    "torch-mlir": Target("torch-mlir, `fx.export_and_import` and its execution engine", ["torch-mlir==20261001"], "torch_mlir_target.py"),
    "iree": Target(
        "IREE, `iree.turbine.aot.export`",
        ["iree-turbine==3.9.0", "iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0"],
        "iree_target.py",
    ),
    "executorch": Target("ExecuTorch, `to_edge` and its portable kernels", EXECUTORCH, "executorch_target.py"),
    "xnnpack": Target("ExecuTorch with its XNNPACK delegate", EXECUTORCH, "executorch_xnnpack_target.py", "executorch"),
    "onnx": Target(
        "ONNX Runtime, `torch.onnx.export(dynamo=True)`",
        ["onnx==1.23.2", "onnxscript==0.7.2", "onnxruntime==1.32.0"],
        "onnx_target.py",
        "onnxruntime",
    ),
}

# ---------------------------------------------------------------------------------- judging


def load(path):
    with np.load(path, allow_pickle=False) as z:
        return {name: z[name] for name in z.files}


def judge(got, want, given, shows):
    """(kind, text): what is wrong, or how much is right. `shows`: whether outputs tell whether buffers were kept."""
    state, told = {k.split(".", 1)[1] for k in want if ".output." not in k}, set()
    for key in sorted(want):
        n, what = key.split(".", 1)
        if key in got:
            if found := common.difference(got[key], want[key]):
                return "WRONG", f"{what.replace('.', ' ')} of call {int(n) + 1}: {found}"
            told.add(what)
        elif what.startswith("output.") or what.startswith("input."):
            return "WRONG", f"{what.replace('.', ' ')} of call {int(n) + 1} is missing"
    for key in sorted(got.keys() - want.keys()):
        n, what = key.split(".", 1)
        if what.startswith("output."):
            return "WRONG", f"{what.replace('.', ' ')} of call {int(n) + 1} should not be there"
        # What the program leaves alone must be left alone.
        before = given.get(f"{n}.given.{what.split('.')[1]}") if what.startswith("input.") else None
        if before is not None and common.difference(got[key], before):
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
    return form != "original" and (kind == "WRONG" and before != "WRONG" or kind == "rejected" and before == "right")


# ---------------------------------------------------------------------------------- the table


def table(name, rows, version):
    """One target's table, with what is behind it below."""
    title = TARGETS[name].title + (f" ({version})" if version else "")
    out = [f"### {title}", "", "| program | " + " | ".join(FORMS.values()) + " |", "|---" * (1 + len(FORMS)) + "|"]
    reasons = []
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
        out.append(f"| `{program}` | " + " | ".join(line) + " |")
    quoted = [text.replace("`", "'") for text in reasons]
    out += [""] + [f"{i + 1}. `{text}`" for i, text in enumerate(quoted)]
    return "\n".join(out).rstrip() + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("targets", nargs="*")
    p.add_argument("--program", action="append", help="only this one")
    p.add_argument("--binary")
    p.add_argument("--keep", metavar="DIR", help="leave programs, logs and results there")
    p.add_argument("--resume", action="store_true", help="what an earlier run left in --keep DIR is not made again")
    p.add_argument("--timeout", type=float, default=300.0, help="seconds for one program on one target")
    p.add_argument("--json", metavar="F")
    p.add_argument("--write-docs", action="store_true")
    o = p.parse_intermixed_args()
    if unknown := set(o.targets) - TARGETS.keys():
        p.error(f"no target {', '.join(sorted(unknown))}")
    if o.write_docs and o.program:
        p.error("--write-docs is for all programs")
    if o.resume and not o.keep:
        p.error("--resume needs --keep")
    there = lambda *paths: o.resume and any(map(os.path.exists, paths))
    restride = common.binary(o.binary)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch = torch_python()
    with tempfile.TemporaryDirectory(prefix="restride-peers-") as tmp:
        directory = os.path.abspath(o.keep or tmp)
        os.makedirs(directory, exist_ok=True)
        if not there(os.path.join(directory, "shows.json")):
            subprocess.run([torch, os.path.join(HERE, "export.py"), directory], check=True)
        with open(os.path.join(directory, "shows.json")) as f:
            shows = json.load(f)
        names = [n for n in shows if not o.program or n in o.program]
        refused = {}
        for name in names:
            stem = os.path.join(directory, name)
            for form, extra in (("functional", []), ("portable", ["--portable"])):
                out = f"{stem}.{form}.pt2"
                done = there(out) or common.run([restride, "functionalize", stem + ".original.pt2", "-o", out, *extra], o.timeout)
                if not done:
                    refused[name, form] = f"restride: {done.line}"
        results, installed = {}, {}
        for target in o.targets or TARGETS:
            python, missing = environment(TARGETS[target].environment or target, TARGETS[target].packages, torch)
            jobs = [] if missing else [
                dict(program=f"{stem}.{form}.pt2", calls=stem + ".calls.npz", out=f"{stem}.{form}.{target}", log=f"{stem}.{form}.{target}.log", timeout=o.timeout)
                for n in names for form in FORMS if (n, form) not in refused for stem in [os.path.join(directory, n)]
            ]
            jobs = [job for job in jobs if not there(job["out"] + ".npz", job["out"] + ".json")]
            for job in jobs:
                for end in (".npz", ".json"):
                    if os.path.exists(job["out"] + end):
                        os.remove(job["out"] + end)
            listed = os.path.join(directory, f"{target}.jobs.json")
            with open(listed, "w") as f:
                json.dump(jobs, f)
            if not missing:
                print(f"{target}: {len(jobs)} programs", file=sys.stderr, flush=True)
                subprocess.run([python, os.path.join(HERE, TARGETS[target].script), listed], check=True)
                if TARGETS[target].packages:
                    installed[target] = versions(python, TARGETS[target].packages)
            results[target] = {}
            for n in names:
                stem, cells = os.path.join(directory, n), {}
                want, given = load(stem + ".expected.npz"), load(stem + ".calls.npz")
                for form in FORMS:
                    out = f"{stem}.{form}.{target}"
                    if missing or (n, form) in refused:
                        cells[form] = ("rejected", missing or refused[n, form])
                    elif os.path.exists(out + ".npz"):
                        cells[form] = judge(load(out + ".npz"), want, given, shows[n])
                    else:
                        with open(out + ".json") as f:
                            cells[form] = ("rejected", reason(**json.load(f)))
                results[target][n] = cells
    texts = {target: table(target, rows, installed.get(target)) for target, rows in results.items()}
    print("\n".join(texts.values()))
    if o.json:
        with open(o.json, "w") as f:
            json.dump(dict(versions=installed, results=results), f, indent=1)
    for target, text in texts.items() if o.write_docs else ():
        write_between(DOCS, f"<!-- begin: {target} -->", f"<!-- end: {target} -->", text)
    bad = [(t, n, form) for t, rows in results.items() for n, cells in rows.items() for form in FORMS if worse(cells, form)]
    for target, name, form in bad:
        print(f"worse than as exported: {name}, {FORMS[form]}, on {target}: {results[target][name][form][1]}")
    ours = sum(2 * len(rows) for rows in results.values())
    print(f"{ours - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Export zoo models with random weights (drawn by liven.py), with the results of eager PyTorch.

For each model that matches (shell patterns over names such as 'tv/*', 'hf/llama*', also one a line in --from FILE;
default all; with --missing only those that OUTDIR does not hold yet) writes
  OUTDIR/NAME.pt2           the exported program with its mutations, as torch.export.save stores it
  OUTDIR/NAME.inputs.npz    its user inputs by name
  OUTDIR/NAME.expected.npz  output.I, and input.NAME / buffer.NAME / parameter.NAME where the run changed them
and a line in OUTDIR/index.jsonl: {name, family, file, ok, random, nodes, export_s, eager_s, silent, drawn, error}. `silent` lists
the parameters that no output depends on, where autograd can tell; `drawn` is the version of liven.py's drawing. `random` marks
programs whose outputs change with the seed, so that values cannot be compared. '/' in names becomes '__'. Downloads no weights.
One forked process a model.
"""

import copy
import fnmatch
import json
import logging
import multiprocessing
import os
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from lib.driver import parser, patterns_of
from lib.exported import array, reference

os.environ.update(TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import liven
import models
import numpy as np
import torch
from torch.utils import _pytree as pytree

FILES = (".pt2", ".inputs.npz", ".expected.npz")


def tensors(results):
    return [array(o) for o in pytree.tree_leaves(results) if isinstance(o, torch.Tensor)]


def same(x, y):
    return np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


def exported_program(row, folder):
    """Export one model and write its files; fills the row."""
    d = models.ZOO[row["name"]][1]()
    m = d["mod"].train() if d["train"] else d["mod"].eval()
    args, kwargs = d["args"], d["kwargs"]
    liven.liven(m, args, kwargs)
    row.update(silent=liven.silent(m, args, kwargs), drawn=liven.VERSION)
    torch.manual_seed(0)
    context = torch.no_grad if d.get("nograd") or not d["train"] else torch.enable_grad
    fresh = lambda: copy.deepcopy((args, kwargs))
    start = time.time()
    with context():
        ep = torch.export.export(m, *fresh(), dynamic_shapes=d["dyn"], strict=d.get("strict", False))
    row.update(export_s=round(time.time() - start, 2), nodes=len(ep.graph.nodes))
    stem = str(folder / row["file"])
    torch.export.save(ep, stem + ".pt2")
    user = [s.arg.name for s in ep.graph_signature.input_specs if s.kind.name == "USER_INPUT"]

    def run(seed):
        module, (a, k) = copy.deepcopy(m), fresh()
        torch.manual_seed(seed)
        return tensors(module(*a, **k))

    with torch.no_grad():
        row["random"] = not all(map(same, run(2), run(3)))
    torch.manual_seed(1)
    start = time.time()
    with context():
        given, want = reference(m, args, kwargs, user)
    row["eager_s"] = round(time.time() - start, 3)
    np.savez(stem + ".inputs.npz", **given)
    np.savez(stem + ".expected.npz", **want)
    row["ok"] = True


def new_row(name):
    return dict(name=name, family=models.ZOO[name][0], file=name.replace("/", "__"), ok=False)


def write_row(folder, row):
    with open(folder / "index.jsonl", "a") as f:
        f.write(json.dumps(row) + "\n")


def export(name, folder):
    torch.manual_seed(0)
    row = new_row(name)
    try:
        exported_program(row, folder)
    except BaseException as e:
        row["error"] = f"{type(e).__name__}: {e}".splitlines()[0][:300]
    write_row(folder, row)
    os._exit(0)


def exported(folder):
    """The names whose last row in the folder's index is a success with today's parameters and whose files exist."""
    index, ok = folder / "index.jsonl", {}
    for row in map(json.loads, index.open() if index.exists() else ()):
        files = all((folder / (row["file"] + end)).exists() for end in FILES)
        ok[row["name"]] = row["ok"] and row.get("drawn") == liven.VERSION and files
    return {n for n, good in ok.items() if good}


def main():
    p = parser(__doc__)
    p.add_argument("outdir", type=Path)
    p.add_argument("patterns", nargs="*")
    p.add_argument("--from", dest="file", help="patterns, one a line, '#' starts a comment")
    p.add_argument("--missing", action="store_true", help="skip what OUTDIR holds already")
    p.add_argument("--limit", type=float, default=120.0, help="seconds a model")
    p.add_argument("--list", action="store_true", help="print the names and stop")
    o = p.parse_intermixed_args()
    o.patterns += patterns_of(o.file) if o.file else []
    done = exported(o.outdir) if o.missing else set()
    for q in o.patterns:
        if not fnmatch.filter(models.ZOO, q):
            p.error(f"no model is called {q}")
    names = [n for n in models.ZOO if n not in done and any(fnmatch.fnmatchcase(n, q) for q in o.patterns or ["*"])]
    if o.list:
        print("\n".join(names))
        return
    # Imported once, before the forks.
    for library in ("torchvision", "timm", "transformers"):
        __import__(library)
    o.outdir.mkdir(parents=True, exist_ok=True)
    fork = multiprocessing.get_context("fork")
    for i, name in enumerate(names):
        child, start = fork.Process(target=export, args=(name, o.outdir)), time.time()
        child.start()
        child.join(o.limit)
        if child.is_alive():
            child.kill()
            child.join()
            write_row(o.outdir, new_row(name) | dict(error=f"over {o.limit:.0f} s"))
        print(f"[{i + 1}/{len(names)}] {name} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()

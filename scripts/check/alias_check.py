#!/usr/bin/env python3
"""Hold restride to eager PyTorch's aliasing on the programs of fixtures/alias.

  alias_check.py [NAME ...] [--fixtures DIR] [--binary F] [--via V ...] [--timeout S] [--json F]

For every case that has a .pt2 and no custom operator, and for each of interp, functional and plan: the case's `inputs`
are given as a .json tensor file, and what `restride run` writes is compared with the case's `after` (the inputs after
the run, then the outputs):

  values     within tolerance, integers and booleans exact; input storages in full (cells that no tensor shows too)
  metadata   dtype, sizes and strides of every tensor, exactly
  sharing    two tensors share a storage exactly where eager's do, inputs and outputs alike; offsets are eager's in the
             inputs' storages, and up to one constant a storage elsewhere

Where eager raises (`eager_error`), exit status 1 and one line of error are required. Exit status 1 when any case fails;
the last line is `N passed, N failed`. Needs torch, to look at storages through other dtypes.
"""

import argparse
import glob
import json
import os
import sys
import tempfile

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib import common

VIAS = ("interp", "functional", "plan")


def dtype_of(torch, name):
    return getattr(torch, name.removeprefix("torch."))


class Tensors:
    """A .json tensor file with its storages as real ones."""

    def __init__(self, torch, data):
        self.torch, self.entries, self.storages = torch, data["tensors"], {}
        for s in data["storages"]:
            dtype = dtype_of(torch, s["dtype"])
            number = complex if dtype.is_complex else float if dtype.is_floating_point else lambda x: x
            if s["id"] in self.storages:
                raise ValueError(f"storage {s['id']} is there twice")
            self.storages[s["id"]] = torch.tensor([number(x) for x in s["data"]], dtype=dtype)

    def tensor(self, entry):
        torch = self.torch
        dtype, base = dtype_of(torch, entry["dtype"]), self.storages[entry["storage"]]
        span = 1 + sum((n - 1) * s for n, s in zip(entry["size"], entry["stride"])) if 0 not in entry["size"] else 0
        if (entry["offset"] + span) * dtype.itemsize > base.untyped_storage().nbytes():
            raise ValueError(f"a tensor reaches beyond storage {entry['storage']}")
        return torch.empty(0, dtype=dtype).set_(base.untyped_storage(), entry["offset"], entry["size"], entry["stride"])


def values(t):
    """As numpy, halves widened (the tolerance still has to be told)."""
    return (t.float() if t.dtype.itemsize == 2 and t.is_floating_point else t).numpy()


def is_half(t):
    return t.is_floating_point() and t.dtype.itemsize == 2 or str(t.dtype) == "torch.complex32"


def differences(torch, want, got, n_inputs):
    """What differs between two tensor files, as lines."""
    label = [f"input {i}" if i < n_inputs else f"output {i - n_inputs}" for i in range(len(want["tensors"]))]
    if len(got["tensors"]) != len(want["tensors"]):
        return [f"{len(got['tensors'])} tensors, not {len(want['tensors'])} ({n_inputs} inputs)"]
    w, g, problems = Tensors(torch, want), Tensors(torch, got), []
    of_input, first = set(), {}
    to, back = {}, {}
    for i, (name, a, b) in enumerate(zip(label, w.entries, g.entries)):
        if "scalar" in a or "scalar" in b:
            if a != b:
                problems.append(f"{name}: {b}, not {a}")
            continue
        for key in ("dtype", "size", "stride"):
            if a[key] != b[key]:
                problems.append(f"{name}: {key} {b[key]}, not {a[key]}")
        if i < n_inputs:
            of_input.add(a["storage"])
        # A one-to-one relation between eager's storages and ours.
        if to.setdefault(a["storage"], b["storage"]) != b["storage"]:
            problems.append(f"{name}: should share storage with {first[a['storage']]}")
        elif back.setdefault(b["storage"], a["storage"]) != a["storage"]:
            problems.append(f"{name}: shares storage with {first[back[b['storage']]]}, should not")
        start = first.setdefault(a["storage"], name)
        base = label.index(start)
        moved = 0 if a["storage"] in of_input else g.entries[base]["offset"] - w.entries[base]["offset"]
        if b["offset"] - moved != a["offset"]:
            problems.append(f"{name}: offset {b['offset']}, not {a['offset'] + moved}")
        if a["dtype"] == b["dtype"] and a["size"] == b["size"]:
            x, y = w.tensor(a), g.tensor(b)
            if found := common.difference(values(y), values(x), is_half(x)):
                problems.append(f"{name}: {found}")
    for storage in sorted(of_input):
        x, y = w.storages[storage], g.storages.get(to.get(storage))
        if y is None or x.dtype != y.dtype:
            problems.append(f"storage of {first[storage]}: dtype {y is not None and y.dtype}, not {x.dtype}")
        elif found := common.difference(values(y), values(x), is_half(x)):
            problems.append(f"storage of {first[storage]}: {found}")
    return problems


def check(torch, case, program, restride, via, timeout):
    """(status, detail) of one case on one way."""
    with tempfile.TemporaryDirectory(prefix="restride-alias-") as tmp:
        given, out = os.path.join(tmp, "inputs.json"), os.path.join(tmp, "outputs.json")
        with open(given, "w") as f:
            json.dump(case["inputs"], f)
        outcome = common.run([restride, "run", program, "--inputs", given, "--outputs", out, "--via", via], timeout)
        if outcome.kind in ("crash", "timeout", "usage"):
            return outcome.kind, outcome.line
        # Where `after` is there, the operations have a meaning (eager may still refuse to differentiate them).
        if "after" not in case:
            if outcome:
                return "accepted", f"eager refuses: {case['eager_error'][:80]}"
            if outcome.lines != 1:
                return "WRONG", f"{outcome.lines} lines on stderr, not one of error"
            return "ok", ""
        if not outcome:
            return "refused", outcome.line
        try:
            with open(out) as f:
                got = json.load(f)
            problems = differences(torch, case["after"], got, case["n_inputs"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as e:
            return "WRONG", f"unusable output file: {type(e).__name__}: {e}".splitlines()[0]
    if problems:
        return "WRONG", problems[0] + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else "")
    return "ok", ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--fixtures", default=os.path.join(common.ROOT, "fixtures", "alias"))
    p.add_argument("--binary")
    p.add_argument("--via", action="append", choices=VIAS)
    p.add_argument("--timeout", type=float, default=60.0)
    p.add_argument("--json", metavar="F")
    o = p.parse_intermixed_args()
    restride = common.binary(o.binary)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch

    vias = o.via or VIAS
    table, rows, skipped = [], [], []
    cases = sorted(os.path.basename(f)[: -len(".json")] for f in glob.glob(os.path.join(o.fixtures, "*.json")))
    for name in cases:
        if o.names and name not in o.names:
            continue
        stem = os.path.join(o.fixtures, name)
        if not os.path.exists(stem + ".pt2"):
            skipped.append(f"{name}: torch cannot save it")
            continue
        custom = [t for t in common.Pt2.read(stem + ".pt2").targets() if t.startswith("torch.ops.abugs.")]
        if custom:
            skipped.append(f"{name}: uses {custom[0]}")
            continue
        with open(stem + ".json") as f:
            case = json.load(f)
        results = {via: check(torch, case, stem + ".pt2", restride, via, o.timeout) for via in vias}
        rows.append(dict(name=name, results=results))
        detail = next((f"{via}: {d}" for via, (s, d) in results.items() if s != "ok"), "")
        table.append((name, *(s for s, _ in results.values()), detail))
    common.print_table(("case", *vias, ""), table)
    print(f"\nskipped {len(skipped)}: " + "; ".join(skipped))
    statuses = [s for row in rows for s, _ in row["results"].values()]
    passed = statuses.count("ok")
    missing = [n for n in o.names if n not in cases]
    for n in missing:
        print(f"no case is called {n}")
    print(f"{len(rows)} cases, {', '.join(vias)}")
    print(f"{passed} passed, {len(statuses) - passed + len(missing)} failed")
    if o.json:
        with open(o.json, "w") as f:
            json.dump(dict(rows=rows, skipped=skipped, passed=passed, failed=len(statuses) - passed), f, indent=1)
    return 0 if statuses and passed == len(statuses) and not missing else 1


if __name__ == "__main__":
    sys.exit(main())

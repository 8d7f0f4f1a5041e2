#!/usr/bin/env python3
"""Run programs through restride's three ways and compare with what PyTorch computed.

  compare.py DIR [PATTERN ...] [--required FILE] [--only-required] [--require-all] [--binary F] [--jobs N] [--timeout S] [--json F]

DIR is what scripts/make/zoo/export.py writes (NAME.pt2, NAME.inputs.npz, NAME.expected.npz and index.jsonl); without an
index.jsonl every NAME.pt2 in it that has an expected file is taken. Patterns are shell patterns over the names.

For each program: `restride run --via plan` must agree with PyTorch within the tolerance of common.difference;
`--via interp` and `--via functional` must write the same bits as plan; `restride verify` must pass. Programs marked
random are compared between the three ways only. A row's status is one of

  ok            all of that
  refused       some command ended with status 1 and an error line: restride says that it cannot
  WRONG         an output differs from PyTorch's, is missing, or the three ways differ
                (f32 outputs are held to PyTorch's f64 result as well, which tells rounding from error: outside of the
                tolerance ours may be NOISE times as far from it as PyTorch's f32 result, plus the tolerance; inside of it ours
                may be at most EXACTNESS times as far, plus a few units in the last place)
  faint         everything agrees, but an output of PyTorch's is so small all over that agreeing says nothing
  verify        verify failed though the runs agree
  usage         a command ended with status 2
  crash         a signal, a panic, or any other exit status
  timeout       a command took longer than --timeout seconds
  no reference  the exporter has nothing for it

Exit status 1 when a required program (shell patterns, one a line of FILE) is not ok or is missing, or when any row is
WRONG, verify, usage, crash or timeout. The last line is `N passed, N failed`.
"""

import argparse
import collections
import fnmatch
import functools
import glob
import json
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib import common

VIAS = ("plan", "interp", "functional")
# How much further from the f64 result than PyTorch's f32 result ours may be, largest error beside largest error.
EXACTNESS = 10
# The same where the two differ by more than the tolerance: each rounds in its own order of summation, and where a model blows
# roundings up, PyTorch's own results with oneDNN and without are this far apart.
NOISE = 2
# Outputs of so many elements with no magnitude above FAINT say nothing.
FAINT_SIZE, FAINT = 16, 1e-6
BAD = ("WRONG", "verify", "usage", "crash", "timeout")
SEVERITY = ("crash", "timeout", "usage", "WRONG", "verify", "refused", "faint")


def load(path):
    with np.load(path, allow_pickle=False) as z:
        return {name: z[name] for name in z.files}


def index(directory):
    """name → row, the last row of a name counting."""
    path = os.path.join(directory, "index.jsonl")
    if not os.path.exists(path):
        found = sorted(glob.glob(os.path.join(directory, "*.expected.npz")))
        names = [os.path.basename(p)[: -len(".expected.npz")] for p in found]
        return {n: dict(name=n, file=n, ok=True, random=False) for n in names}
    with open(path) as f:
        return {row["name"]: row for row in map(json.loads, f)}


# `torch.export.load` keeps what it reads in one place for the whole process.
LOADING = threading.Lock()


@functools.cache
def in_double(program):
    """The float outputs of one call of a program with everything in f64, by key; None where PyTorch cannot do it."""
    import torch
    from torch.utils import _pytree as pytree

    def wide(x):
        return x.double() if isinstance(x, torch.Tensor) and x.dtype == torch.float32 else x

    def wide_type(x):
        return torch.float64 if x == torch.float32 and isinstance(x, torch.dtype) else x

    try:
        with LOADING:
            ep = torch.export.load(program)
            module = ep.module(check_guards=False).double()
        for graph_module in (m for m in module.modules() if isinstance(m, torch.fx.GraphModule)):
            for node in list(graph_module.graph.nodes):
                # Checks that a tensor is what it was in f32, and casts to what the others are.
                if node.target is torch.ops.aten._assert_tensor_metadata.default:
                    graph_module.graph.erase_node(node)
                elif node.op == "call_function":
                    node.args, node.kwargs = pytree.tree_map(wide_type, (node.args, node.kwargs))
            graph_module.recompile()
        # Constants are no buffers.
        for each in module.modules():
            for name, value in list(vars(each).items()):
                if isinstance(value, torch.Tensor):
                    setattr(each, name, wide(value))
        args, kwargs = pytree.tree_map(wide, ep.example_inputs)
        with torch.no_grad():
            outputs = pytree.tree_leaves(module(*args, **kwargs))
    except Exception as e:
        print(f"{program}: not in f64: {e}", file=sys.stderr)
        return None
    return {f"output.{i}": t.numpy() for i, t in enumerate(outputs) if getattr(t, "dtype", None) == torch.float64}


def exact_of(program, key, want):
    """PyTorch's f64 result beside the f32 output `want`; None where there is none or a decision fell otherwise in f64."""
    exact = in_double(program) if want.dtype == np.float32 else None
    if exact is None or key not in exact or exact[key].shape != want.shape:
        return None
    exact = exact[key]
    return exact if np.array_equal(np.isfinite(exact), np.isfinite(want)) else None


def ill_conditioned(program, key, got, want):
    """True when `got` is at most NOISE times as far from the f64 result as PyTorch's own f32 result, but for the tolerance."""
    exact = exact_of(program, key, want)
    if exact is None:
        return False
    own = NOISE * np.abs(want - exact).max()
    return common.difference(got, exact.astype(np.float32), slack=own) is None


def less_exact(program, key, got, want):
    """How much further from the f64 result `got` is than PyTorch's own f32 result, where that is more than rounding."""
    exact = exact_of(program, key, want)
    if exact is None or not exact.size:
        return None
    finite = np.isfinite(exact)
    if not finite.any():
        return None
    ours, own = (float(np.abs(x[finite] - exact[finite]).max()) for x in (got, want))
    largest = float(np.abs(exact[finite]).max())
    if ours <= EXACTNESS * own + 8 * np.finfo(np.float32).eps * largest:
        return None
    return f"{ours:.3g} from the f64 result, PyTorch's f32 result {own:.3g} (largest magnitude {largest:.3g})"


def against_torch(got, want, inputs, program, pt2, random):
    """What differs from PyTorch's results, as `KEY: difference`; an empty list when nothing does."""
    half, problems = pt2.half_keys(), []

    def initial(key):
        kind, _, name = key.partition(".")
        return inputs.get(name) if kind == "input" else pt2.state(name)

    def compare(key, got, want):
        in_half = (key if key.startswith("output.") else "*") in half
        found = None if random else common.difference(got, want, in_half)
        if random and (got.shape, got.dtype) != (want.shape, want.dtype):
            found = f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        if found and (random or not ill_conditioned(program, key, got, want)):
            problems.append(f"{key}: {found}")
        elif not found and not random and not in_half and (found := less_exact(program, key, got, want)):
            problems.append(f"{key}: {found}")

    for key in sorted(want):
        if key in got:
            compare(key, got[key], want[key])
        elif key.startswith("output."):
            problems.append(f"{key}: missing")
        else:
            # The exporter also lists state that holds NaN and did not change.
            before = initial(key)
            if before is None or common.difference(before, want[key]):
                problems.append(f"{key}: should have changed")
    outputs = pt2.user_outputs()
    for key in sorted(got.keys() - want.keys()):
        kind, _, name = key.partition(".")
        if kind == "output":
            # PyTorch's file holds tensors only; a scalar output may be written.
            if not (name.isdigit() and int(name) < len(outputs) and "as_tensor" not in outputs[int(name)]):
                problems.append(f"{key}: PyTorch has no such output")
            continue
        twin = next((f"{kind}.{t}" for t in pt2.tied_to(name) if f"{kind}.{t}" in want), None)
        before = want[twin] if twin else initial(key)
        if before is None:
            problems.append(f"{key}: PyTorch does not change it")
        elif found := common.difference(got[key], before, "*" in half):
            problems.append(f"{key}: {'its tied name' if twin else 'PyTorch leaves it'}: {found}")
    return problems


def between(a, b):
    """What differs between two files of our own, bit for bit."""
    problems = [f"{key}: only one has it" for key in sorted(a.keys() ^ b.keys())]
    for key in sorted(a.keys() & b.keys()):
        if found := common.bit_difference(a[key], b[key]):
            problems.append(f"{key}: {found}")
    return problems


def check(row, directory, restride, timeout, extra):
    """Judge one program; the row with status, detail and times."""
    result = dict(name=row["name"], nodes=row.get("nodes"), random=bool(row.get("random")), status="ok", detail="", seconds={})
    stem = os.path.join(directory, row["file"])
    files = [stem + end for end in (".pt2", ".inputs.npz", ".expected.npz")]
    if not row["ok"] or not all(map(os.path.exists, files)):
        result.update(status="no reference", detail=row.get("error", "files are missing"))
        return result
    program, inputs, expected = files
    found = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="restride-compare-") as tmp:
        got = {}
        for via in VIAS:
            out = os.path.join(tmp, via + ".npz")
            command = [restride, "run", program, "--inputs", inputs, "--outputs", out, "--via", via, *extra]
            outcome = common.run(command, timeout)
            result["seconds"][via] = round(outcome.seconds, 3)
            if not outcome:
                note = f" ({outcome.lines} lines on stderr, not one)" if outcome.kind == "refused" and outcome.lines != 1 else ""
                found[outcome.kind].append(f"{via}: {outcome.line}{note}")
                if outcome.kind == "timeout":
                    break
                continue
            try:
                got[via] = load(out)
            except Exception as e:
                found["WRONG"].append(f"{via}: unreadable outputs: {e}")
            if os.path.exists(out):
                os.remove(out)
        outcome = common.Outcome("timeout", "not run") if found["timeout"] else common.run([restride, "verify", program, "--inputs", inputs, *extra], timeout)
        result["seconds"]["verify"] = round(outcome.seconds, 3)
        if not outcome:
            # When the runs were refused, so is verify; when they were not, verify found something.
            kind = "verify" if outcome.kind == "refused" and len(got) == len(VIAS) else outcome.kind
            found[kind].append(f"verify: {outcome.line}")
    if got:
        want, given, pt2 = load(expected), load(inputs), common.Pt2.read(program)
        for via in VIAS:
            if via in got:
                found["WRONG"] += [f"{via}: {p}" for p in against_torch(got[via], want, given, program, pt2, result["random"])]
        for via in VIAS[1:]:
            if via in got and "plan" in got:
                found["WRONG"] += [f"{via} and plan: {p}" for p in between(got[via], got["plan"])]
        if not result["random"]:
            small = lambda x: x.dtype.kind in "fc" and x.size >= FAINT_SIZE and not np.abs(x).max() > FAINT
            found["faint"] += [f"{key} has no magnitude above {FAINT:g}" for key in sorted(want) if key.startswith("output.") and small(want[key])]
    for kind in SEVERITY:
        if found[kind]:
            more = sum(map(len, found.values())) - 1
            result.update(status=kind, detail=found[kind][0] + (f" (and {more} more)" if more else ""))
            result["all"] = [p for k in SEVERITY for p in found[k]]
            break
    return result


def patterns_of(path):
    with open(path) as f:
        return [p for p in (line.split("#")[0].strip() for line in f) if p]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory")
    p.add_argument("patterns", nargs="*", help="which programs; default all")
    p.add_argument("--required", default=os.path.join(common.ROOT, "scripts", "make", "zoo", "required.txt"), help="'' for none")
    p.add_argument("--only-required", action="store_true", help="run the required programs only")
    p.add_argument("--require-all", action="store_true", help="every program that is run is required")
    p.add_argument("--binary")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--timeout", type=float, default=300.0, help="seconds for one command")
    p.add_argument("--json", metavar="F", help="write the rows and the summary")
    p.add_argument("--verbose", action="store_true", help="every difference, not only the first")
    p.add_argument("--pass", dest="extra", action="append", default=[], metavar="OPTION", help="a further option for restride, e.g. --pass=--threads=1")
    o = p.parse_intermixed_args()
    restride = common.binary(o.binary)
    rows = index(o.directory)
    required_patterns = patterns_of(o.required) if o.required else []
    required = set(rows) if o.require_all else {n for q in required_patterns for n in fnmatch.filter(rows, q)}
    chosen = [n for n in rows if not o.patterns or any(fnmatch.fnmatchcase(n, q) for q in o.patterns)]
    if o.only_required:
        chosen = [n for n in chosen if n in required]
    # What was asked for and is not there is a failure.
    absent = [q for q in o.patterns or required_patterns if not fnmatch.filter(rows, q)]

    start, results = time.monotonic(), []
    with ThreadPoolExecutor(max_workers=o.jobs) as pool:
        jobs = [pool.submit(check, rows[n], o.directory, restride, o.timeout, o.extra) for n in chosen]
        for i, job in enumerate(jobs):
            results.append(job.result())
            r = results[-1]
            print(f"[{i + 1}/{len(jobs)}] {r['name']} {r['status']} {sum(r['seconds'].values()):.1f} s", file=sys.stderr, flush=True)

    def failed(r):
        return r["status"] in BAD or (r["name"] in required and r["status"] != "ok")

    table = []
    for r in results:
        details = r.get("all", [r["detail"]]) if o.verbose else [r["detail"]]
        mark = " (random)" if r["random"] and r["status"] == "ok" else ""
        flag = "required" if r["name"] in required else ""
        seconds = f"{sum(r['seconds'].values()):.1f}"
        table.append((r["name"], flag, r["nodes"] or "", seconds, r["status"] + mark, details[0]))
        table += [("", "", "", "", "", d) for d in details[1:]]
    common.print_table(("program", "", "nodes", "s", "status", ""), table)
    for q in absent:
        print(f"no program matches {q}")

    refusals = collections.Counter(
        common.operator_of(r["all"][0].partition(": ")[2]) for r in results if r["status"] == "refused"
    )
    if refusals:
        print("\nrefused because of:")
        for what, n in refusals.most_common():
            print(f"{n:5}  {what}")
    counts = collections.Counter(r["status"] for r in results)
    passed, bad = counts["ok"], sum(map(failed, results)) + len(absent)
    print(f"\n{len(results)} programs in {time.monotonic() - start:.0f} s: " + ", ".join(f"{n} {s}" for s, n in counts.most_common()))
    print(f"{passed} passed, {bad} failed")
    if o.json:
        with open(o.json, "w") as f:
            json.dump(dict(rows=results, counts=counts, refusals=refusals, absent=absent, passed=passed, failed=bad), f, indent=1)
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())

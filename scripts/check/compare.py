#!/usr/bin/env python3
"""Run exported programs in restride's three ways and compare the results with PyTorch's.

The folder is one that scripts/make/zoo/export.py writes (NAME.pt2, NAME.inputs.npz, NAME.expected.npz, index.jsonl); without an
index.jsonl, every NAME.pt2 with an expected file is compared. Patterns are shell patterns over the names.

For each program, `restride run --via plan` must agree with PyTorch within the tolerance of `difference`; `--via interp` and
`--via functional` must write the same bits as plan; `restride verify` must pass. For programs marked random, only the three
ways are compared. The status of a row:

  ok            everything agrees
  refused       a command ended with status 1 and an error line: restride does not support the program
  WRONG         an output differs from PyTorch's, is missing, or the three ways differ
                (PyTorch's f64 result tells rounding of f32 outputs from errors: outside of the tolerance, ours may be NOISE
                times as far from it as PyTorch's f32 result, plus the tolerance; inside, EXACTNESS times as far, plus a few
                units in the last place)
  faint         everything agrees, but an output of PyTorch's is so small that agreement proves nothing
  verify        verify failed though the runs agree
  usage         a command ended with status 2
  crash         a signal, a panic, or any other exit status
  timeout       a command took longer than --timeout seconds
  no reference  the exporter has no result

Exit status 1 when a required program (shell patterns, one a line of the file) is not ok or is missing, or when any row is
WRONG, verify, usage, crash or timeout. The last line is `N passed, N failed`.
"""

import collections
import fnmatch
import functools
import json
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, Outcome, Restride
from lib.driver import finish, first_of, parser, patterns_of, print_table, scratch
from lib.pt2 import Pt2
from lib.values import bit_difference, difference, load

import numpy as np

VIAS = ("plan", "interp", "functional")
# The most that our largest error against the f64 result may be, in largest errors of PyTorch's f32 result.
EXACTNESS = 10
# The same where the two differ by more than the tolerance: each rounds in its own order of summation, and where a model blows
# roundings up, PyTorch's own results with oneDNN and without are this far apart.
NOISE = 2
# Outputs of FAINT_SIZE elements or more without a magnitude above FAINT prove nothing.
FAINT_SIZE, FAINT = 16, 1e-6
BAD = ("WRONG", "verify", "usage", "crash", "timeout")
SEVERITY = ("crash", "timeout", "usage", "WRONG", "verify", "refused", "faint")


def index(folder):
    """The rows of a folder's index by name, the last one of a name; without an index, one a file."""
    path = folder / "index.jsonl"
    if not path.exists():
        names = [p.name.removesuffix(".expected.npz") for p in sorted(folder.glob("*.expected.npz"))]
        return {n: dict(name=n, file=n, ok=True, random=False) for n in names}
    return {row["name"]: row for row in map(json.loads, path.open())}


# `torch.export.load` uses state of the whole process.
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
                # Drop checks of f32 metadata; casts to f32 become casts to f64.
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
    """PyTorch's f64 result for the f32 output `want`; None without one, or where f64 took another branch."""
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
    return difference(got, exact.astype(np.float32), slack=own) is None


def less_exact(program, key, got, want):
    """The distances of `got` and of PyTorch's f32 result from the f64 result, where ours is more than rounding."""
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
    """The differences from PyTorch's results, as `KEY: difference`."""
    half, problems = pt2.half_keys(), []

    def initial(key):
        kind, _, name = key.partition(".")
        return inputs.get(name) if kind == "input" else pt2.state(name)

    def compare(key, got, want):
        in_half = (key if key.startswith("output.") else "*") in half
        found = None if random else difference(got, want, in_half)
        if random and (got.shape, got.dtype) != (want.shape, want.dtype):
            found = f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        if found and not random and ill_conditioned(program, key, got, want):
            found = None
        elif not found and not random and not in_half:
            found = less_exact(program, key, got, want)
        if found:
            problems.append(f"{key}: {found}")

    for key in sorted(want):
        if key in got:
            compare(key, got[key], want[key])
        elif key.startswith("output."):
            problems.append(f"{key}: missing")
        else:
            # The exporter also lists state that holds NaN and did not change.
            before = initial(key)
            if before is None or difference(before, want[key]):
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
        elif found := difference(got[key], before, "*" in half):
            problems.append(f"{key}: {'its tied name' if twin else 'PyTorch leaves it'}: {found}")
    return problems


def between(a, b):
    """The differences between two files of our own, bit for bit."""
    problems = [f"{key}: only one has it" for key in sorted(a.keys() ^ b.keys())]
    for key in sorted(a.keys() & b.keys()):
        if found := bit_difference(a[key], b[key]):
            problems.append(f"{key}: {found}")
    return problems


def runs(restride, program, inputs, extra, result, found):
    """The arrays that each way writes; refusals and failures go into `found`, times into `result`."""
    got = {}
    with scratch() as tmp:
        for via in VIAS:
            out = tmp / f"{via}.npz"
            outcome = restride.run(program, via, out, *extra, inputs=inputs)
            result["seconds"][via] = round(outcome.seconds, 3)
            if not outcome:
                several = outcome.kind == "refused" and outcome.errors != 1
                note = f" ({outcome.errors} errors, not one)" if several else ""
                found[outcome.kind].append(f"{via}: {outcome.line}{note}")
                if outcome.kind == "timeout":
                    break
                continue
            try:
                got[via] = load(out)
            except Exception as e:
                found["WRONG"].append(f"{via}: unreadable outputs: {e}")
            out.unlink(missing_ok=True)
        late = found["timeout"]
        outcome = Outcome("timeout", "not run") if late else restride("verify", program, "--inputs", inputs, *extra)
        result["seconds"]["verify"] = round(outcome.seconds, 3)
        if not outcome:
            # When the runs were refused, so is verify; when they were not, verify found something.
            kind = "verify" if outcome.kind == "refused" and len(got) == len(VIAS) else outcome.kind
            found[kind].append(f"verify: {outcome.line}")
    return got


def check(row, folder, restride, extra):
    """Judge one program; the row with status, detail and times."""
    result = dict(
        name=row["name"], nodes=row.get("nodes"), random=bool(row.get("random")), status="ok", detail="", seconds={}
    )
    program, inputs, expected = (folder / (row["file"] + end) for end in (".pt2", ".inputs.npz", ".expected.npz"))
    if not row["ok"] or not all(f.exists() for f in (program, inputs, expected)):
        result.update(status="no reference", detail=row.get("error", "files are missing"))
        return result
    found = collections.defaultdict(list)
    got = runs(restride, program, inputs, extra, result, found)
    if got:
        want, given, pt2 = load(expected), load(inputs), Pt2.read(program)
        for via in (v for v in VIAS if v in got):
            problems = against_torch(got[via], want, given, str(program), pt2, result["random"])
            found["WRONG"] += [f"{via}: {p}" for p in problems]
        for via in (v for v in VIAS[1:] if v in got and "plan" in got):
            found["WRONG"] += [f"{via} and plan: {p}" for p in between(got[via], got["plan"])]
        if not result["random"]:
            small = lambda x: x.dtype.kind in "fc" and x.size >= FAINT_SIZE and not np.abs(x).max() > FAINT
            faint = [key for key in sorted(want) if key.startswith("output.") and small(want[key])]
            found["faint"] += [f"{key} has no magnitude above {FAINT:g}" for key in faint]
    for kind in (k for k in SEVERITY if found[k]):
        everything = [p for k in SEVERITY for p in found[k]]
        result.update(status=kind, detail=first_of(everything), all=everything)
        break
    return result


def operator_of(line):
    """The operator that an error line names, to group refusals by, or the line cut short."""
    namespaces = r"(?:aten|prims|prim|torchvision|transformers|higher_order|_operator)"
    found = re.search(rf"\b(?:torch\.ops\.)?({namespaces}(?:\.|::)[\w.]+)", line)
    return found.group(1).rstrip(".") if found else line[:100]


def main():
    p = parser(__doc__, "--binary", "--jobs", "--timeout", "--json", timeout=300.0)
    p.add_argument("directory", type=Path)
    p.add_argument("patterns", nargs="*", help="which programs; default all")
    p.add_argument("--required", default=ROOT / "scripts/make/zoo/required.txt", help="'' for none")
    p.add_argument("--only-required", action="store_true", help="run the required programs only")
    p.add_argument("--require-all", action="store_true", help="every program that is run is required")
    p.add_argument("--verbose", action="store_true", help="every difference, not only the first")
    p.add_argument(
        "--pass", dest="extra", action="append", default=[], metavar="OPTION", help="a further option for restride"
    )
    o = p.parse_intermixed_args()
    restride, rows = Restride(o.binary, o.timeout), index(o.directory)
    required_patterns = patterns_of(o.required) if o.required else []
    required = set(rows) if o.require_all else {n for q in required_patterns for n in fnmatch.filter(rows, q)}
    chosen = [n for n in rows if not o.patterns or any(fnmatch.fnmatchcase(n, q) for q in o.patterns)]
    if o.only_required:
        chosen = [n for n in chosen if n in required]
    # A pattern that no program matches is a failure.
    absent = [q for q in o.patterns or required_patterns if not fnmatch.filter(rows, q)]

    start, results = time.monotonic(), []
    seconds = lambda r: f"{sum(r['seconds'].values()):.1f}"
    with ThreadPoolExecutor(max_workers=o.jobs) as pool:
        for r in pool.map(lambda n: check(rows[n], o.directory, restride, o.extra), chosen):
            results.append(r)
            at = f"[{len(results)}/{len(chosen)}]"
            print(f"{at} {r['name']} {r['status']} {seconds(r)} s", file=sys.stderr, flush=True)

    table = []
    for r in results:
        details = r.get("all", [r["detail"]]) if o.verbose else [r["detail"]]
        mark = " (random)" if r["random"] and r["status"] == "ok" else ""
        flag = "required" if r["name"] in required else ""
        table.append((r["name"], flag, r["nodes"] or "", seconds(r), r["status"] + mark, details[0]))
        table += [("", "", "", "", "", d) for d in details[1:]]
    print_table(("program", "", "nodes", "s", "status", ""), table)
    for q in absent:
        print(f"no program matches {q}")

    refused = [r["all"][0].partition(": ")[2] for r in results if r["status"] == "refused"]
    refusals = collections.Counter(map(operator_of, refused))
    if refusals:
        print("\nrefused because of:")
        for what, n in refusals.most_common():
            print(f"{n:5}  {what}")
    counts = collections.Counter(r["status"] for r in results)
    counted = ", ".join(f"{n} {s}" for s, n in counts.most_common())
    print(f"\n{len(results)} programs in {time.monotonic() - start:.0f} s: {counted}")
    failed = sum(r["status"] in BAD or (r["name"] in required and r["status"] != "ok") for r in results)
    data = dict(rows=results, counts=counts, refusals=refusals, absent=absent)
    return finish(counts["ok"], failed + len(absent), o.json, ran=len(results), **data)


if __name__ == "__main__":
    sys.exit(main())

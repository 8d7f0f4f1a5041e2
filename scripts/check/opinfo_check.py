#!/usr/bin/env python3
"""Hold results and gradients of the samples in PyTorch's operator database (`op_db` of torch.testing) to eager PyTorch.

    opinfo_check.py                                        every operator, every mode
    opinfo_check.py -m float32 --ops diag '^linalg'        operators whose names match (regular expressions)
    opinfo_check.py -m float64 int32 int16 complex128      types that do not run by default
    opinfo_check.py --rotate 3/40                          the operators of one part of 40, as CI does each day

torch.export exports each sample, and `restride run` runs it; in mode `grad`, `restride grad` makes it joint first. Samples that
torch.export cannot export are left out, and so are programs that PyTorch refuses to run on the inputs they were exported with.
Programs and eager results stay in $RESTRIDE_OPINFO (default ~/.cache/restride/opinfo), so that only the first run is slow.

A program ends right, refused, or wrong (a crash is wrong). opinfo/known.txt lists the samples that PyTorch gets wrong,
opinfo/refused.txt how many programs of an operator may be refused. Fails at any other wrong or refused program.
"""

import copy
import fnmatch
import hashlib
import logging
import multiprocessing
import os
import pickle
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import VIAS, Restride
from lib.driver import parser, print_table, quiet, scratch
from lib.values import load

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

KNOWN = Path(__file__).parent / "opinfo/known.txt"
REFUSED = Path(__file__).parent / "opinfo/refused.txt"
# Of the programs as this script makes them: another number makes them anew.
VERSION = 1

MODES = ("float32", "inplace", "int64", "bool", "bfloat16", "float16", "complex64", "grad")
# Asked for by name only: wider and narrower forms of these.
MORE_MODES = ("float64", "int32", "int16", "int8", "uint8", "complex128")

# Relative and absolute tolerance by element type; the absolute one also times the largest finite magnitude of the result.
TOLERANCE = {
    "float16": (4e-3, 4e-3),
    "bfloat16": (3e-2, 3e-2),
    "float32": (1e-4, 2e-5),
    "float64": (1e-7, 1e-9),
    "complex32": (4e-3, 4e-3),
    "complex64": (1e-4, 2e-5),
    "complex128": (1e-7, 1e-9),
}

# Results that are defined up to a sign or phase: compared as the database's own function makes them comparable.
GAUGE = re.compile(r"^(svd|linalg\.svd|linalg\.eigh|svd_lowrank|pca_lowrank)$")
# Operators with results for the gradient alone, which PyTorch does not differentiate and restride refuses.
STATISTICS = re.compile(r"^_?native_(batch|group|layer)_norm|^_batch_norm_with_update")
# Results that are indices of elements. PyTorch leaves open which of several equal elements it names, and integers and halves have
# such: their indices are compared by shape only.
PLACES = {"sort": "output.1", "argsort": "output.0", "kthvalue": "output.1", "mode": "output.1", "topk": "output.1"}
# Eigenvalues in an order that depends on the library: compared by figures that do not.
ORDER = re.compile(r"^linalg\.eig(vals)?$")
# Memory without contents.
EMPTY = re.compile(r"^aten\.(new_)?empty(_|\.)|^aten\.resize_")


@dataclass
class Item:
    """One program: where it is, and what eager PyTorch gives."""

    name: str
    mode: str
    index: int
    folder: str
    expected: list
    shapes_only: bool

    @property
    def file(self):
        return os.path.join(self.folder, f"{self.index}.pt2")


# ---------------------------------------------------------------------------------- making programs


def variant(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def seed(n=0):
    random.seed(n)
    np.random.seed(n)
    torch.manual_seed(n)


def samples_of(op, mode, limit):
    """The samples, with their numbers: of more than `limit`, some from everywhere."""
    dtype = {"inplace": torch.float32, "grad": torch.float64}.get(mode) or getattr(torch, mode)
    seed()
    found = list(enumerate(op.sample_inputs("cpu", dtype, requires_grad=mode == "grad")))
    if limit and len(found) > limit:
        found = [found[i * (len(found) - 1) // (limit - 1)] for i in range(limit)]
    return found


def orderless(out):
    """Sums of the eigenvalues' powers, and of the absolute values of their vectors' elements."""
    values = out if isinstance(out, torch.Tensor) else out[0]
    power, sums = values, []
    for _ in range(values.shape[-1]):
        sums.append(power.sum(-1))
        power = power * values
    sums = torch.stack(sums, -1) if sums else values
    return sums if isinstance(out, torch.Tensor) else (sums, out[1].abs().sum(-1))


def module_of(op, sample, mode):
    """A module whose inputs are the sample's tensors, and those tensors."""

    def fixed(t):
        return t.detach().resolve_conj().resolve_neg().requires_grad_(t.requires_grad)

    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    at = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    tensors = tuple(fixed(leaves[i]) for i in at)
    function = op.inplace_variant if mode == "inplace" else op.op
    # Taken of the gauge-free form for gradients, as the database's own gradient tests do.
    after = sample.output_process_fn_grad if mode == "grad" or GAUGE.match(op.name) else None
    if ORDER.match(op.name):
        after = orderless

    class Sample(torch.nn.Module):
        weights = None

        def results(self, tensors):
            all = list(leaves)
            for i, t in zip(at, tensors):
                all[i] = t
            first, args, kwargs = pytree.tree_unflatten(all, spec)
            out = function(first, *args, **kwargs)
            return after(out) if after else out

        def tensors_of(self, out):
            return [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]

        def forward(self, *tensors):
            out = self.results(tensors)
            if self.weights is None:
                return out
            real = [torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in self.tensors_of(out)]
            return sum((t * w).sum() for t, w in zip(real, self.weights, strict=True) if w is not None)

    return Sample(), tensors


def loss_weights(out):
    """Weights for a loss of results: none for what has no gradient."""
    made = []
    for t in out:
        if not t.requires_grad:
            made.append(None)
            continue
        shape = torch.view_as_real(t.resolve_conj()).shape if t.is_complex() else t.shape
        made.append(torch.cos(torch.arange(shape.numel(), dtype=torch.float64) + 1).reshape(shape).to(t.real.dtype))
    return made


def same_values(a, b):
    if len(a) != len(b):
        return False
    return all(
        np.array_equal(as_numpy(x), as_numpy(y), equal_nan=x.is_floating_point() or x.is_complex())
        for x, y in zip(a, b)
    )


def make(op, mode, index, sample, folder):
    """Export one sample; eager PyTorch's results, or the reason for no program."""
    module, tensors = module_of(op, sample, mode)

    def eager(n):
        seed(n)
        given = copy.deepcopy(tensors)
        with torch.set_grad_enabled(mode == "grad"):
            return given, module.tensors_of(module.results(given))

    try:
        given, out = eager(1)
        _, again = eager(2)
    except Exception as e:
        return None, f"eager: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
    if not out:
        return None, "no tensors result"
    if any(t.layout != torch.strided or t.is_quantized for t in (*given, *out)):
        return None, "sparse or quantized"
    # (The database seeds some of its functions itself; a program is asked below.)
    drawn = not same_values(out, again)
    if mode == "grad":
        module.weights = loss_weights(out)
        if STATISTICS.match(op.name):
            module.weights[1:] = [None] * (len(out) - 1)
        if drawn or all(w is None for w in module.weights):
            return None, "no gradient"
        loss = module(*given)
        wrt = [i for i, t in enumerate(given) if t.requires_grad]
        try:
            gradients = torch.autograd.grad(loss, [given[i] for i in wrt], allow_unused=True)
        except Exception as e:
            return None, f"no gradient: {str(e).splitlines()[0]}"
        gradients = [torch.zeros_like(given[i]) if g is None else g for i, g in zip(wrt, gradients)]
        expected = [("output.0", loss)] + [(f"grad.tensors_{i}", g) for i, g in zip(wrt, gradients)]
    else:
        expected = [(f"output.{i}", t) for i, t in enumerate(out)]
    try:
        seed(3)
        with torch.set_grad_enabled(mode == "grad"):
            program = torch.export.export(module, copy.deepcopy(tensors), strict=False)
        targets = [n.target for n in program.graph.nodes if n.op == "call_function"]
        if any(torch.Tag.nondeterministic_seeded in getattr(t, "tags", ()) for t in targets):
            # A few draws may agree by chance, six times they hardly do.
            first, *more = (run_seeded(program, tensors, module, n) for n in range(7))
            drawn = drawn or any(not same_values(first, other) for other in more)
            if drawn and mode == "grad":
                return None, "no gradient: random numbers"
        torch.export.save(program, os.path.join(folder, f"{index}.pt2"))
    except Exception as e:
        return None, f"export: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
    if mode == "grad":
        # The names of the inputs, by which gradients are asked for.
        names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        expected = [expected[0]] + [(f"grad.{names[i]}", g) for i, g in zip(wrt, gradients)]
    values = [(key, str(t.dtype).removeprefix("torch."), as_numpy(t)) for key, t in expected]
    return (values, drawn or any(EMPTY.match(str(t)) for t in targets)), ""


def run_seeded(program, tensors, module, n):
    """The program's results after a seed."""
    seed(n)
    with torch.no_grad():
        return module.tensors_of(program.module()(*copy.deepcopy(tensors)))


def as_numpy(t):
    t = t.detach().resolve_conj().resolve_neg()
    if t._is_zerotensor():
        t = torch.zeros(t.shape, dtype=t.dtype)
    wide = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64}.get(t.dtype)
    return (t.to(wide) if wide else t).contiguous().numpy().copy()


def programs(op, mode, options):
    """The programs of an operator in a mode, made now or before, and the samples without one."""
    made_by = f"{torch.__version__}-{VERSION}-{options.samples or 'all'}"
    root = Path(options.cache) / made_by / mode / variant(op).replace("/", "_")
    record = root / "record.pickle"
    if not record.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=root.parent, prefix=".making-"))
        made, without = [], []
        try:
            found = samples_of(op, mode, options.samples)
        except Exception as e:
            # The database's own faults.
            found = []
            without.append((-1, f"samples: {type(e).__name__}: {e}"))
        for index, sample in found:
            result, why = make(op, mode, index, sample, folder)
            if result:
                made.append((index, *result))
            else:
                without.append((index, why))
        (folder / "record.pickle").write_bytes(pickle.dumps((made, without)))
        try:
            folder.rename(root)
        except OSError:
            # Another process was first.
            shutil.rmtree(folder)
    made, without = pickle.loads(record.read_bytes())
    return [Item(variant(op), mode, i, str(root), values, shapes) for i, values, shapes in made], without


# ---------------------------------------------------------------------------------- running them


def difference(got, want, dtype, shapes_only):
    """None if the array is what PyTorch gives, else what differs."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if shapes_only or want.size == 0:
        return None
    if want.dtype.kind not in "fc":
        bad = got != want
    else:
        rtol, atol = TOLERANCE[dtype]
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        g, w = got.astype(wide), want.astype(wide)
        finite = np.isfinite(w)
        largest = max(1.0, float(np.abs(w[finite]).max()) if finite.any() else 0.0)

        def equal(a, b, within=False):
            return (
                (a == b) | (np.isnan(a) & np.isnan(b)) | (within & (np.abs(a - b) <= atol * largest + rtol * np.abs(b)))
            )

        with np.errstate(invalid="ignore", over="ignore"):
            close = finite & np.isfinite(g) & (np.abs(g - w) <= atol * largest + rtol * np.abs(w))
            same = equal(g, w)
            if want.dtype.kind == "c":
                same = (g == w) | (equal(g.real, w.real, True) & equal(g.imag, w.imag, True))
        bad = ~(same | close)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} differ, first {list(at)}: {got[at]}, not {want[at]}"


def judge(item, restride, via):
    """`right`, `refused` or `wrong`, and the reason, for the program of an item."""
    with scratch() as folder:
        file, out, ended = item.file, folder / "out.npz", None
        if item.mode == "grad":
            wrt = ",".join(key.removeprefix("grad.") for key, _, _ in item.expected[1:])
            ended = restride("grad", file, "-o", folder / "joint.pt2", "--wrt", wrt)
            file = folder / "joint.pt2"
        if ended is None or ended:
            ended = restride.run(file, via, out)
        if not ended:
            return ("refused" if ended.kind == "refused" else "wrong"), f"{ended.kind}: {ended.line}"
        results = load(out)
    for key, dtype, want in item.expected:
        if key not in results:
            return "wrong", f"no {key} among {', '.join(results)}"
        distinct = item.mode in ("float32", "float64", "complex64", "complex128", "inplace", "grad")
        tied = not distinct and PLACES.get(item.name) == key
        if why := difference(results[key], want, dtype, item.shapes_only or tied):
            return "wrong", f"{key}: {why}"
    return "right", ""


def refused_by_torch(item):
    """Why PyTorch refuses to run the program on the inputs that it was exported with: then it says less than eager does."""
    try:
        program = torch.export.load(item.file)
        args, kwargs = program.example_inputs
        module = program.module()
    except Exception:
        return None
    try:
        with torch.no_grad():
            module(*args, **kwargs)
    except Exception as e:
        return f"its program: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
    return None


# The database, before the workers are forked: it takes seconds to make.
DATABASE = {}


def supported(op, mode):
    if mode == "inplace":
        return op.inplace_variant is not None and torch.float32 in op.supported_dtypes("cpu")
    if mode == "grad":
        return op.supports_autograd and torch.float64 in op.supported_dtypes("cpu")
    return getattr(torch, mode) in op.supported_dtypes("cpu")


def work(task):
    """One operator in one mode: how each of its programs ends."""
    name, mode, options = task
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    try:
        with quiet():
            items, without = programs(DATABASE[name], mode, options)
        if options.make_only:
            return name, mode, [], without
        ends = []
        for item in items:
            end, why = judge(item, options.restride, options.via)
            stopped = refused_by_torch(item) if end == "refused" else None
            if stopped:
                without.append((item.index, stopped))
            else:
                ends.append((item.index, end, why, item.file))
        return name, mode, ends, without
    except Exception:
        return name, mode, [(-1, "wrong", "the check itself: " + traceback.format_exc().splitlines()[-1], "")], []


# ---------------------------------------------------------------------------------- expected faults


def lines_of(path):
    return [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]


def read_known():
    """Patterns of `MODE OPERATOR SAMPLE` that PyTorch gets wrong, with the reason."""
    parted = [line.split(":", 1) for line in lines_of(KNOWN)]
    return [(*where.split(), reason.strip()) for where, reason in parted]


def known_reason(known, *where):
    match = lambda patterns: all(fnmatch.fnmatch(str(w), p) for w, p in zip(where, patterns))
    return next((reason for *patterns, reason in known if match(patterns)), None)


def read_refused():
    return {(mode, op): int(count) for mode, op, count in map(str.split, lines_of(REFUSED))}


HEAD = "# How many programs of an operator may be refused: mode, operator, count. Written by opinfo_check.py --bless.\n"


def bless(allowed, counts, seen):
    for key in seen:
        allowed.pop(key, None)
        if counts[key]["refused"]:
            allowed[key] = counts[key]["refused"]
    REFUSED.write_text(HEAD + "".join(f"{mode} {op} {count}\n" for (mode, op), count in sorted(allowed.items())))


def part_of(name, mode, part, parts):
    """Whether an operator in a mode belongs to a part, whatever other operators exist."""
    digest = hashlib.sha256(f"{mode} {name}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % parts == part % parts


def main():
    p = parser(__doc__, "--binary", "--seconds", "--jobs")
    p.add_argument("-m", "--modes", nargs="*", default=MODES, choices=MODES + MORE_MODES)
    p.add_argument("--ops", nargs="*", metavar="REGEX", help="only operators whose name matches one")
    p.add_argument("--rotate", metavar="K/N", help="only part K (counted without end) of N parts")
    p.add_argument("--samples", type=int, default=8, help="of each operator and mode; 0 for every one [8]")
    p.add_argument("--via", default="plan", choices=VIAS)
    default = os.environ.get("RESTRIDE_OPINFO") or os.path.expanduser("~/.cache/restride/opinfo")
    p.add_argument("--cache", default=default, help="where programs and eager results stay")
    p.add_argument("--make-only", action="store_true", help="export, run nothing")
    p.add_argument(
        "--bless", action="store_true", help="write the present refusals to scripts/check/opinfo/refused.txt"
    )
    p.add_argument(
        "-v", "--verbose", action="store_true", help="every program that is not right; samples without programs"
    )
    p.add_argument("--per-op", action="store_true", help="a line for each operator")
    options = p.parse_args()
    options.restride = None if options.make_only else Restride(options.binary)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    for op in op_db:
        DATABASE.setdefault(variant(op), op)
    wanted = lambda name: not options.ops or any(re.search(r, name) for r in options.ops)
    rotated = lambda name, mode: not options.rotate or part_of(name, mode, *map(int, options.rotate.split("/")))
    every = [(name, mode) for mode in options.modes for name in DATABASE]
    tasks = [(n, m, options) for n, m in every if wanted(n) and rotated(n, m) and supported(DATABASE[n], m)]
    known, allowed = read_known(), read_refused()
    counts, reasons, failures = defaultdict(Counter), Counter(), []
    seen, missing = set(), 0
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        start = time.monotonic()
        for name, mode, ends, without in pool.imap(work, tasks):
            seen.add((mode, name))
            missing += len(without)
            if options.verbose:
                for index, why in without:
                    print(f"NO PROGRAM {mode} {name} {index}: {why}")
            for index, end, why, file in ends:
                reason = known_reason(known, mode, name, index)
                if end == "wrong" and reason:
                    end = "known"
                counts[mode, name][end] += 1
                if end == "wrong":
                    failures.append(f"WRONG {mode} {name} {index}: {why}  {file}")
                    print(failures[-1], flush=True)
                elif end == "refused":
                    reasons[re.sub(r"%\w+|\d+", "_", f"{name}: {why}")[:200]] += 1
                    if options.verbose or options.ops:
                        print(f"REFUSED {mode} {name} {index}: {why}  {file}", flush=True)
            if counts[mode, name]["refused"] > allowed.get((mode, name), 0) and not options.bless:
                failures.append(
                    f"MORE REFUSED {mode} {name}: {counts[mode, name]['refused']}, allowed {allowed.get((mode, name), 0)}"
                )
                print(failures[-1], flush=True)
            if options.per_op:
                print(f"{mode} {name}: {dict(counts[mode, name])}", flush=True)
            if options.seconds and time.monotonic() - start > options.seconds:
                print(f"stopped after {len(seen)} of {len(tasks)} operators and modes")
                break
    if options.bless:
        bless(allowed, counts, seen)
    if reasons and not options.ops:
        print("\nrefused:")
        for reason, count in sorted(reasons.items(), key=lambda x: (-x[1], x[0])):
            print(f"{count:5}  {reason}")
    rows = []
    for mode in options.modes:
        of = {name: c for (m, name), c in counts.items() if m == mode and c}
        total = sum(of.values(), Counter())
        whole = sum(not c["refused"] and not c["wrong"] for c in of.values())
        rows.append((mode, len(of), whole, total["right"], total["refused"], total["wrong"], total["known"]))
    print()
    print_table(("mode", "operators", "all right", "right", "refused", "wrong", "PyTorch wrong"), rows)
    print(
        f"{missing} samples without a program (not exported, refused by eager PyTorch, no gradient); {len(failures)} failures"
    )
    return 1 if failures or not seen else 0


if __name__ == "__main__":
    sys.exit(main())

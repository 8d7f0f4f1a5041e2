#!/usr/bin/env python3
"""Hold `torch.compile(backend="restride")` to eager PyTorch on PyTorch's own databases of operators, modules and programs.

    compile_check.py                                    one f32 sample of everything, results and gradients
    compile_check.py --samples 1000                     every sample
    compile_check.py --database op_db --only '^linalg'  names that match (regular expressions) of one database
    compile_check.py --rotate 3/60 --seconds 60         one part of 60, as CI does each day

Databases: `op_db`, `module_db` and `hop_db` of torch.testing, and `torch._export.db`. A sample ends right, left to eager PyTorch (the
backend warned, by name), untraced (PyTorch's own tracing raises, with the backend `aot_eager` as well), or wrong: another result,
gradient, input after the run, or an error that eager PyTorch does not raise. Fails at any wrong sample. `--table FILE` writes Markdown.

Where a value differs, it is right if it is at least as near to eager PyTorch's result in double precision as eager PyTorch's own in
single precision, and either that one is near (1 %) or the value is within tolerance of the one in double precision: sums in another
order, and what is zero but for rounding. NaN is never near.

Takes the package that `bindings/python/check` installed into target/wheel-site, or the one on PYTHONPATH.
"""

import argparse
import copy
import json
import logging
import multiprocessing
import os
import re
import sys
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "wheel-site"
if "restride" not in sys.modules and SITE.exists():
    sys.path.insert(0, str(SITE))
os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, str(ROOT / "scripts"))
from lib.left_to_eager import Watch

import torch
from restride.torch import backend
from restride.torch._verify import difference
from torch.utils import _pytree as pytree

DATABASES = ("op_db", "module_db", "hop_db", "export_db")
# Results that are defined up to a sign, a phase or an order, or that are memory without contents.
OPEN = re.compile(
    r"^(svd|linalg\.svd|linalg\.eigh?|svd_lowrank|pca_lowrank|linalg\.eigvals|geqrf|linalg\.lstsq|"
    r"(new_)?empty(_like|_strided|_permuted)?|new_empty_strided|resize_(as_)?|_unsafe_masked_index_put_accumulate)$"
)
KINDS = ("right", "eager", "untraced", "wrong")


def cases(database, only, samples):
    """Name and a function that gives `(function, args, kwargs)` for each sample."""
    match = [re.compile(o) for o in only]
    good = lambda name: not match or any(m.search(name) for m in match)
    if database == "op_db" or database == "hop_db":
        if database == "op_db":
            from torch.testing._internal.common_methods_invocations import op_db as ops
        else:
            from torch.testing._internal.hop_db import hop_db as ops
        for op in ops:
            name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
            if good(name) and torch.float32 in op.supported_dtypes("cpu"):
                yield name, lambda op=op: of_operator(op, samples)
    elif database == "module_db":
        from torch.testing._internal.common_modules import module_db

        for info in module_db:
            if good(info.name):
                yield info.name, lambda info=info: of_module(info, samples)
    else:
        from torch._export.db.examples import all_examples

        for name, case in all_examples().items():
            if good(name):
                yield name, lambda case=case: iter([(case.model, case.example_args, case.example_kwargs or {}, True)])


def of_operator(op, samples):
    made = op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)
    for at, sample in enumerate(made):
        if at >= samples:
            return
        yield (lambda *a, **k: op.op(*a, **k)), (sample.input, *sample.args), sample.kwargs, op.supports_autograd


def of_module(info, samples):
    made = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=True)
    for at, one in enumerate(made):
        if at >= samples:
            return
        if one.forward_input is None:
            continue
        arguments, keywords = one.constructor_input.args, one.constructor_input.kwargs
        module = info.module_cls(*arguments, **keywords).to(torch.float32)
        yield module, one.forward_input.args, one.forward_input.kwargs, True


def fresh(value):
    """The same nesting on memory of its own."""

    def one(t):
        base = t.detach().clone(memory_format=torch.preserve_format)
        return base.requires_grad_(t.requires_grad)

    return pytree.tree_map_only(torch.Tensor, one, value)


def outcome(function, args, kwargs, gradients):
    """Results, gradients of inputs and parameters, and inputs after the run."""
    torch.manual_seed(0)
    leaves = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    # A leaf that asks for gradients cannot be written.
    result = function(*args, **kwargs)
    out = [("output", v) for v in pytree.tree_leaves(result) if isinstance(v, (torch.Tensor, int, float, bool))]
    if gradients:
        roots = [v for _, v in out if isinstance(v, torch.Tensor) and v.requires_grad and v.grad_fn is not None]
        wrt = [t for t in leaves if t.requires_grad]
        wrt += list(function.parameters()) if isinstance(function, torch.nn.Module) else []
        if roots and wrt:
            seeds = [torch.linspace(0.5, 1.5, r.numel()).reshape(r.shape).to(r.dtype) for r in roots]
            found = torch.autograd.grad(roots, wrt, seeds, allow_unused=True)
            out += [("gradient", g) for g in found]
    return out + [("input after the run", t) for t in leaves]


def nearer(a, b, count, at, sample):
    """Whether a value is at least as near as eager PyTorch's to what eager PyTorch gives in double precision: a sum in another order."""
    if not all(isinstance(v, torch.Tensor) and v.dtype == torch.float32 for v in (a, b)) or a.shape != b.shape:
        return False
    function, args, kwargs, gradients = sample
    wide = lambda t: t.detach().double().requires_grad_(t.requires_grad) if t.is_floating_point() else t
    own = copy.deepcopy(function)
    try:
        own = own.double() if isinstance(own, torch.nn.Module) else own
        true = outcome(own, *(pytree.tree_map_only(torch.Tensor, wide, fresh(v)) for v in (args, kwargs)), gradients)
    except Exception:
        return False
    if len(true) != count or not isinstance(true[at][1], torch.Tensor):
        return False
    exact = true[at][1].detach()
    far = lambda v: float((v.detach().double() - exact).norm())
    near = far(b) <= 0.01 * float(exact.norm()) or difference(a, exact.to(a.dtype)) is None
    return far(a) <= far(b) and near


def compare(function, args, kwargs, gradients, watch, tolerant):
    """The kind of a sample's end, and what is to be said of it."""
    try:
        want = outcome(copy.deepcopy(function), fresh(args), fresh(kwargs), gradients)
    except Exception as e:
        if gradients:
            return compare(function, args, kwargs, False, watch, tolerant)
        return "skipped", f"eager PyTorch: {str(e).splitlines()[0] if str(e) else type(e).__name__}"

    def against(name):
        torch._dynamo.reset()
        own = copy.deepcopy(function)
        compiled = torch.compile(own, backend=name)
        if isinstance(own, torch.nn.Module):
            compiled.parameters = own.parameters
        try:
            have = outcome(compiled, fresh(args), fresh(kwargs), gradients)
        except Exception as e:
            return f"{type(e).__name__}: " + " ".join(str(e).split())[:300]
        if len(have) != len(want):
            return f"{len(have)} values instead of {len(want)}"
        for at, ((what, a), (_, b)) in enumerate(zip(have, want)):
            if tolerant and isinstance(b, torch.Tensor) and isinstance(a, torch.Tensor):
                if a.shape != b.shape or a.dtype != b.dtype:
                    return f"{what}: {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
                continue
            differs = (
                difference(a, b) if a is not None and b is not None else None if a is b else f"{a!r} instead of {b!r}"
            )
            if differs is not None and not nearer(a, b, len(want), at, (function, args, kwargs, gradients)):
                return f"{what}: {differs}"
        return None

    watch.left.clear()
    fault = against(backend.restride)
    left = list(watch.left)
    if fault is None:
        return ("eager", left[0]) if left else ("right", "")
    theirs = against("aot_eager")
    if theirs is not None:
        return "untraced", theirs
    return "wrong", fault


def work(job):
    database, name, samples, only, deadline = job
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch._dynamo.config.cache_size_limit = 64
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    watch = Watch(backend.log)
    out = []
    for found, make in cases(database, [f"^{re.escape(name)}$"], samples):
        try:
            made = list(make())
        except Exception as e:
            out.append((database, found, 0, "skipped", f"{type(e).__name__}: {str(e).splitlines()[:1]}"))
            continue
        for at, (function, args, kwargs, gradients) in enumerate(made):
            if time.time() > deadline:
                return out
            try:
                tolerant = bool(OPEN.search(found)) or draws(function, args, kwargs)
            except Exception as e:
                out.append((database, found, at, "skipped", f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"))
                continue
            for grad in (False, True) if gradients else (False,):
                try:
                    kind, what = compare(*plain(function, args, kwargs, grad), grad, watch, tolerant)
                except Exception as e:
                    kind, what = "wrong", f"not compared: {type(e).__name__}: {' '.join(str(e).split())[:200]}"
                out.append((database, found, at, kind, ("gradient: " if grad else "") + what))
    return out


def plain(function, args, kwargs, grad):
    """Without gradients, inputs that do not ask for them."""
    if grad:
        return function, args, kwargs
    bare = lambda t: t.detach()
    return function, *(pytree.tree_map_only(torch.Tensor, bare, v) for v in (args, kwargs))


def draws(function, args, kwargs):
    """Whether two runs from different seeds differ: the sample draws random numbers."""
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        try:
            with torch.no_grad():
                value = copy.deepcopy(function)(
                    *fresh(pytree.tree_map_only(torch.Tensor, torch.detach, args)), **fresh(kwargs)
                )
        except Exception:
            return False
        results.append([v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)])
    pairs = [(a, b) for a, b in zip(*results) if a.layout == torch.strided]
    return any(a.shape != b.shape or difference(a, b, rtol=0, atol=0) is not None for a, b in pairs)


def table(ends):
    """Counts by database, and what was left to eager PyTorch or not traced, by name."""
    lines = ["| database | entries | samples | right | left to eager, by name | not traced by PyTorch | wrong |"]
    lines.append("|---|---|---|---|---|---|---|")
    for database in DATABASES:
        own = [e for e in ends if e[0] == database and e[3] != "skipped"]
        counts = Counter(e[3] for e in own)
        names = len({e[1] for e in own})
        if own:
            lines.append(f"| {database} | {names} | {len(own)} | " + " | ".join(str(counts[k]) for k in KINDS) + " |")
    for kind, title in (("eager", "Left to eager PyTorch"), ("untraced", "Not traced by PyTorch"), ("wrong", "Wrong")):
        reasons = defaultdict(set)
        for database, name, _, k, what in ends:
            if k == kind:
                short = (
                    re.sub(r" \(at .*", "", what.removeprefix("gradient: ")).split("; ")[0][:160].replace("|", "\\|")
                )
                reasons[short].add(f"{database}: {name}" if database != "op_db" else name)
        if reasons:
            lines += ["", f"{title}:", "", "| reason | entries |", "|---|---|"]
            for reason, names in sorted(reasons.items(), key=lambda r: (-len(r[1]), r[0])):
                shown = sorted(names)
                more = f", … ({len(shown)} in all)" if len(shown) > 12 else ""
                lines.append(f"| {reason} | {', '.join(shown[:12])}{more} |")
    return "\n".join(lines) + "\n"


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--database", nargs="+", default=list(DATABASES), choices=DATABASES)
    args.add_argument("--only", nargs="+", default=[], metavar="REGEX")
    args.add_argument("--samples", type=int, default=1, help="samples of an entry (default 1)")
    args.add_argument("--rotate", metavar="I/N", help="one part of N")
    args.add_argument("--seconds", type=float, default=float("inf"), help="begin no sample after this time")
    args.add_argument("--jobs", type=int, default=2)
    args.add_argument("--json", type=Path)
    args.add_argument("--table", type=Path)
    args = args.parse_args()
    deadline = time.time() + args.seconds
    jobs = [
        (d, name, args.samples, args.only, deadline)
        for d in args.database
        for name, _ in cases(d, args.only, args.samples)
    ]
    if args.rotate:
        part, parts = map(int, args.rotate.split("/"))
        jobs = [j for i, j in enumerate(jobs) if i % parts == part % parts]
    ends = []
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=60) as pool:
        for done in pool.imap_unordered(work, jobs):
            ends += done
            for end in done:
                if end[3] == "wrong":
                    print("wrong:", *end[:3], end[4], flush=True)
            if args.json:
                args.json.write_text(json.dumps(ends))
    counts = Counter(e[3] for e in ends)
    text = table(ends)
    print(text)
    if args.table:
        args.table.write_text(text)
    print(f"{len(jobs)} entries: " + ", ".join(f"{counts[k]} {k}" for k in (*KINDS, "skipped")))
    wrong = counts["wrong"]
    print(f"compile_check: {counts['right'] + counts['eager'] + counts['untraced']} passed, {wrong} failed")
    sys.exit(1 if wrong or not counts["right"] else 0)


if __name__ == "__main__":
    main()

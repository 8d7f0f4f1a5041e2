#!/usr/bin/env python3
"""Run TorchInductor's own test class, `CommonTemplate`, on the CPU with the backend "restride" in inductor's place.

    common_template.py --file pytorch/test/inductor/test_torchinductor.py            all tests
    common_template.py --file test_torchinductor.py --only 'scatter|gather' --jobs 2  names that match
    common_template.py --file test_torchinductor.py --table FILE                      also writes Markdown

The file is of a PyTorch checkout, of the installed version or near it; names of PyTorch that it imports and that are gone skip the tests
that use them. Each test runs in a forked process with a time limit, and ends

    right     its own comparisons hold, and restride ran all graphs
    eager     they hold, and a graph or operators of it were left to eager PyTorch, by name
    unused    it passes, and no graph came to the backend
    skipped   by its own decorator or by a name that is gone
    inspects  it fails and asks for inductor's generated code, kernels, counters or passes
    untraced  it fails with the backend `aot_eager` as well
    wrong     it fails

and so does the run at any wrong one.
"""

import argparse
import copy
import functools
import importlib
import inspect
import json
import multiprocessing
import os
import re
import sys
import time
import traceback
import unittest
import warnings
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("RESTRIDE_SITE") or Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "wheel-site")
if SITE.exists():
    sys.path.insert(0, str(SITE))
os.environ.update(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")

sys.path.insert(0, str(ROOT / "scripts"))
from lib.left_to_eager import Watch

import torch
from torch.utils import _pytree as pytree

KINDS = ("right", "eager", "unused", "skipped", "inspects", "untraced", "wrong")
# What a test asks inductor itself for.
INSPECTS = re.compile(
    r"run_and_get\w*|run_fw_bw_and_get_code|_run_and_assert_no_indirect_indexing|assertGeneratedKernelCountEqual|FileCheck|"
    r"\b_?inductor\.metrics|generated_kernel_count|\blowering\.\w+|\bGraphLowering|\bcompile_fx_inner|codecache|"
    r"\bV\.\w+|pad_mm|DataTypePropagation|add_scheduler_init_hook|inductor_prims|test_operators|\bconfig\.joint_custom\w+|"
    r"post_grad_custom\w+|fx_passes|_inductor\.exc|CompileCounterWithBackend|torch\._inductor\.\w+\.\w+"
)


class Gone:
    """A stand-in for a name that this PyTorch no longer has: a decorator while the file is loaded, then a reason to skip."""

    loading = True

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **kwargs):
        if Gone.loading:
            return self
        raise unittest.SkipTest(f"this PyTorch has no {self.name}")

    def __get__(self, instance, owner=None):
        return self


def loaded(path):
    """The test file as a module."""
    sys.path.insert(0, str(path.parent))
    sys.argv = [sys.argv[0]]
    for _ in range(100):
        try:
            module = importlib.import_module(path.stem)
        except ImportError as error:
            found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
            if not found:
                raise
            name, module = found.groups()
            setattr(sys.modules[module], name, Gone(f"{module}.{name}"))
            sys.modules.pop(path.stem, None)
            continue
        Gone.loading = False
        return module
    raise SystemExit(f"{path} asks for too many names that this PyTorch has not")


class Compiler:
    """What stands in for inductor: restride, or `aot_eager`."""

    def __init__(self):
        self.calls = 0
        self.plain = False

    def __call__(self, gm, inputs, *args, **kwargs):
        from restride.torch import backend

        self.calls += 1
        if self.plain:
            return torch._dynamo.lookup_backend("aot_eager")(gm, inputs)
        random = bool(torch._inductor.config.fallback_random)
        return backend.restride(gm, inputs, options={"fallback_random": random})


def in_place_of_inductor(module, compiler):
    """Every way to inductor leads to another compiler."""
    from torch._dynamo.backends import registry

    plain = torch.compile

    @functools.wraps(plain)
    def compile(model=None, *, backend="inductor", mode=None, options=None, **kwargs):
        own = backend == "inductor"
        if model is None:
            return lambda m: compile(m, backend=backend, mode=mode, options=options, **kwargs)
        if own:
            return plain(model, backend=compiler, **kwargs)
        return plain(model, backend=backend, mode=mode, options=options, **kwargs)

    torch.compile = compile
    module.compile_fx = compiler
    registry.lookup_backend("inductor")
    registry._COMPILER_FNS["inductor"] = compiler


def cast(value, to):
    """Copies of tensors; floating ones in another element type."""
    one = lambda t: t.detach().to(to, copy=True) if to and t.is_floating_point() else t.detach().clone()
    return pytree.tree_map_only(torch.Tensor, one, value)


def as_near(model, compiler, inputs, kwargs):
    """Whether restride's results are as near to those in double precision as eager PyTorch's: sums in another order."""
    double = copy.deepcopy(model).double() if isinstance(model, torch.nn.Module) else model
    torch._dynamo.reset()
    results = []
    for run, to in ((torch.compile(model, backend=compiler), None), (model, None), (double, torch.float64)):
        torch.manual_seed(0)
        found = pytree.tree_leaves(run(*cast(inputs, to), **cast(kwargs, to)))
        results.append([t.detach().double() for t in found if isinstance(t, torch.Tensor) and t.is_floating_point()])
    return all(
        a.shape == t.shape and bool((a - t).norm() <= 2 * (b - t).norm() + 1e-12)
        for a, b, t in zip(*results, strict=True)
    )


def tests_of(module, compiler):
    """`CommonTemplate` as a class of tests on the CPU."""

    class CpuTests(module.CommonTemplate, module.TestCase):
        device = "cpu"

        def common(self, model, example_inputs, kwargs=None, **options):
            given = [cast(v, None) for v in (example_inputs, kwargs or {})]
            try:
                module.check_model(self, model, example_inputs, kwargs, **options)
            except AssertionError as error:
                if compiler.plain or "not close" not in str(error) or not as_near(model, compiler, *given):
                    raise

    return CpuTests


def source_of(test):
    """The text of a test, without decorators' wrappers."""
    while hasattr(test, "__wrapped__"):
        test = test.__wrapped__
    for cell in getattr(test, "__closure__", None) or ():
        if inspect.isfunction(cell.cell_contents) and cell.cell_contents.__name__.startswith("test_"):
            return source_of(cell.cell_contents)
    try:
        return inspect.getsource(test)
    except (OSError, TypeError):
        return ""


def ended(cases, name):
    """How a test ends: `passed`, `skipped` or `failed`, and what is to be said of it."""
    torch._dynamo.reset()
    result = unittest.TestResult()
    cases(name).run(result)
    if result.skipped:
        return "skipped", result.skipped[0][1]
    if result.unexpectedSuccesses:
        return "passed", ""
    faults = result.failures + result.errors
    if not faults:
        return "passed", ""
    lines = [line for line in faults[0][1].strip().splitlines() if line.strip()]
    said = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Skip|Failure|Unsupported\w*)\b", line)]
    return "failed", " ".join((said[-1:] or lines[-1:]) + lines[-3:])[:400]


def run(cases, compiler, name, watch):
    kind, what = ended(cases, name)
    if kind == "skipped":
        return "skipped", what
    if kind == "passed":
        if not compiler.calls:
            return "unused", ""
        return ("eager", watch.left[0]) if watch.left else ("right", "")
    found = INSPECTS.search(source_of(getattr(cases, name)))
    if found:
        return "inspects", found.group()
    compiler.plain = True
    kind, _ = ended(cases, name)
    return ("untraced" if kind == "failed" else "wrong"), what


def work(cases, compiler, name, pipe):
    from restride.torch import backend

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    watch = Watch(backend.log)
    # Tests ask for whole graphs; what restride leaves to eager PyTorch is counted instead.
    backend._whole_graph = lambda: False
    try:
        end = run(cases, compiler, name, watch)
    except BaseException:
        end = "wrong", traceback.format_exc(limit=-1)[-300:]
    pipe.send(end)
    pipe.close()
    os._exit(0)


def each(cases, compiler, names, jobs, limit):
    """Runs tests in processes of their own."""
    context = multiprocessing.get_context("fork")
    waiting, running = list(names), []
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop(0)
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(cases, compiler, name, theirs))
            process.start()
            theirs.close()
            running.append((name, process, ours, time.time()))
        for one in list(running):
            name, process, pipe, start = one
            end = None
            if pipe.poll(0.02):
                try:
                    end = pipe.recv()
                except EOFError:
                    process.join()
                    end = "wrong", f"the process ended with status {process.exitcode}"
            elif time.time() - start > limit:
                process.kill()
                end = "wrong", f"no end in {limit:g} s"
            if end:
                process.join()
                running.remove(one)
                yield name, *end, time.time() - start


def short(kind, what):
    if kind == "skipped":
        return re.sub(r"\s+", " ", what)[:100]
    return re.sub(r" \(at .*", "", what).split("; ")[0][:160].replace("|", "\\|")


def table(ends):
    """Counts, and the tests of each kind but `right` by reason."""
    counts = Counter(e[1] for e in ends)
    lines = ["| " + " | ".join(["tests", *KINDS]) + " |", "|---" * (len(KINDS) + 1) + "|"]
    lines.append(f"| {len(ends)} | " + " | ".join(str(counts[k]) for k in KINDS) + " |")
    for kind in KINDS[1:]:
        reasons = defaultdict(list)
        for name, k, what, _ in ends:
            if k == kind:
                reasons[short(kind, what)].append(name.removeprefix("test_"))
        if reasons:
            lines += ["", f"{kind}:", "", "| reason | tests |", "|---|---|"]
            for reason, names in sorted(reasons.items(), key=lambda r: (-len(r[1]), r[0])):
                more = f", … ({len(names)} in all)" if len(names) > 8 else ""
                lines.append(f"| {reason} | {', '.join(sorted(names)[:8])}{more} |")
    return "\n".join(lines) + "\n"


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--file", type=Path, required=True, metavar="test_torchinductor.py")
    args.add_argument("--only", default="", metavar="REGEX")
    args.add_argument("--rotate", metavar="I/N", help="one part of N")
    args.add_argument("--jobs", type=int, default=1)
    args.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="of one test (default 120)")
    args.add_argument("--json", type=Path)
    args.add_argument("--table", type=Path)
    args = args.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    module = loaded(args.file.resolve())
    compiler = Compiler()
    in_place_of_inductor(module, compiler)
    cases = tests_of(module, compiler)
    names = [n for n in sorted(dir(cases)) if n.startswith("test_") and re.search(args.only, n)]
    # Tests of inductor's ahead-of-time compiler, which build C++.
    ahead = [n for n in names if n.startswith("test_aoti_")]
    names = [n for n in names if n not in ahead]
    if args.rotate:
        part, parts = map(int, args.rotate.split("/"))
        names = names[part % parts :: parts]
    ends = [(n, "inspects", "ahead-of-time inductor", 0.0) for n in ahead]
    for end in each(cases, compiler, names, args.jobs, args.limit):
        ends.append(end)
        if end[1] == "wrong":
            print(f"wrong: {end[0]}: {end[2]}", flush=True)
        if args.json:
            args.json.write_text(json.dumps(ends))
    text = table(ends)
    print(text)
    if args.table:
        args.table.write_text(text)
    counts = Counter(e[1] for e in ends)
    print(f"common_template: {len(ends) - counts['wrong']} passed, {counts['wrong']} failed")
    sys.exit(1 if counts["wrong"] or not counts["right"] else 0)


if __name__ == "__main__":
    main()

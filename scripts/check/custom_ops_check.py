#!/usr/bin/env python3
"""Hold functionalization of users' operators to eager PyTorch, on the cases that PyTorch's own tests have of them.

  custom_ops_check.py [NAME ...] [--binary F] [--timeout S] [--ops-file F] [--json F]

Each case is a small module that calls operators of the library `mylib`, defined here with Python kernels. It is exported,
and two files are given to restride with the operators' schemas (--ops): the program as exported, and what PyTorch's
run_decompositions({}) makes of it (`auto_functionalized_v2` in a file), where PyTorch can. Each is functionalized and read
back by torch.export.load; no operator of its graph may write, and two calls in a row must leave what eager PyTorch leaves:
outputs, inputs, buffers, bit for bit. Each is reinplaced as well: the operators are called on memory again, the same is
left, and a call allocates no more than a call of the given program.

The cases are named by the lines of PyTorch's tests that they stand for (docs/semantics.md). Exit status 1 when one fails; the
last line is `N passed, N failed`.
"""

import argparse
import copy
import json
import os
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch.utils import _pytree as pytree

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib import common
from torch_roundtrip import allocated, short, writers

# ---------------------------------------------------------------------------------- operators

LIBRARY = torch.library.Library("mylib", "DEF")
SCHEMAS = []


def operator(schema, fake=None, tags=()):
    """Defines mylib::SCHEMA with the function's code as its kernel, and as its shape rule where it has no other."""
    SCHEMAS.append(f"mylib::{schema}")

    def define(kernel):
        LIBRARY.define(schema, tags=tags)
        name = schema.split("(")[0]
        LIBRARY.impl(name, kernel, "CompositeExplicitAutograd")
        LIBRARY.impl(name, fake or kernel, "Meta")
        return kernel

    return define


@operator("one(Tensor(a!) x) -> ()")
def one(x):
    x.sin_().add_(1)


@operator("maybe(Tensor(a!)? x, Tensor[] xs, Tensor(b!) y, Tensor(c!)? z=None, int n=2, float f=0.5) -> ()")
def maybe(x, xs, y, z=None, n=2, f=0.5):
    total = sum(xs)
    if x is not None:
        x.add_(total)
    y.mul_(n).add_(total)
    if z is not None:
        z.sub_(f)


@operator("named(Tensor(a!) self, Tensor other) -> ()")
def named(self, other):
    self.mul_(other)


@operator("lists(Tensor(a!)[] xs, Tensor(b!)? y, Tensor w) -> Tensor")
def lists(xs, y, w):
    for i, x in enumerate(xs):
        x.mul_(2).add_(i + 1)
    if y is not None:
        y.add_(xs[0].sum())
    return w + 1


@operator("holes(Tensor(a!)?[] xs) -> ()")
def holes(xs):
    for i, x in enumerate(xs):
        if x is not None:
            x.add_(i + 1)


@operator("two(Tensor(a!) a, Tensor(b!) b) -> ()")
def two(a, b):
    a.add_(1)
    b.mul_(2)
    a.add_(b.sum())


@operator("both(Tensor(a!) a, Tensor(b!) b, Tensor c) -> (Tensor, Tensor)")
def both(a, b, c):
    a.add_(c)
    b.sub_(c)
    return a * 2, b + c


@operator("bump_(Tensor(a!) x, Tensor y) -> Tensor(a!)", tags=(torch.Tag.inplace,))
def bump_(x, y):
    return x.add_(y)


@operator("strides(Tensor(a!) x) -> Tensor", fake=lambda x: x.new_empty(x.dim() + 1, dtype=torch.int64))
def strides(x):
    """What an operator sees of its argument's memory: that must be what it sees in eager PyTorch."""
    x.mul_(3)
    return torch.tensor([*x.stride(), int(x.is_contiguous())])


# ---------------------------------------------------------------------------------- cases

CASES = {}


def case(*inputs, dynamic=None, buffers=()):
    def define(f):
        CASES[f.__name__.removeprefix("_")] = dict(f=f, inputs=inputs, dynamic=dynamic, buffers=buffers)
        return f

    return define


def x(*sizes):
    """Small integers, so that sums are exact in whatever order."""
    n = 1
    for s in sizes:
        n *= s
    return (torch.arange(n, dtype=torch.float32) % 7 - 2).reshape(sizes)


lib = torch.ops.mylib


@case(lambda: x(3), lambda: x(3))
def b4_69_optional_none(m, a, b):
    a, b = a.clone(), b.clone()
    lib.maybe(None, [a, b * 2], b)
    lib.maybe(a, [], b, a + 0, n=3)
    return a, b


@case(lambda: x(3), lambda: x(3))
def b4_69_defaults_on_inputs(m, a, b):
    lib.maybe(a, [a * 2], b)
    return a + b


@case(lambda: x(3), lambda: x(3))
def b4_69_argument_called_self(m, a, b):
    a = a * 2
    lib.named(a, b)
    return a


@case(lambda: x(3), lambda: x(3), lambda: x(2))
def b4_69_list(m, a, b, w):
    a = a + 1
    r = lib.lists([a, b], None, w)
    return a, r


@case(lambda: x(3), lambda: x(3))
def b4_69_empty_list(m, a, w):
    a = a + 1
    lib.holes([])
    lib.holes([None, a, None])
    return a


@case(lambda: x(4), lambda: x(4))
def b4_70_in_place_and_returned(m, a, b):
    a = a.clone()
    r = lib.bump_(a, b)
    r.mul_(2)
    return a, r + 1


@case(lambda: x(4), lambda: x(4), lambda: x(4))
def b4_71_results_beside(m, a, b, c):
    r, s = lib.both(a, b, c)
    a.add_(r)
    return r, s, b


@case(lambda: x(3, 4))
def b4_72_view_of_an_intermediate(m, a):
    b = a * 2
    lib.one(b[:])
    lib.one(b[1])
    lib.one(b[:, 1::2])
    return b


@case(lambda: x(3, 4))
def b4_72_view_of_an_input(m, a):
    lib.one(a[:])
    lib.one(a.t()[1])
    return a.sum(0)


@case(lambda: torch.as_strided(x(30), (3, 4), (8, 2), 5))
def b4_72_view_as_input(m, a):
    before = lib.strides(a)
    lib.one(a[1])
    return before, a * 2


@case(lambda: x(3, 4))
def b4_72_what_it_sees_of_memory(m, a):
    b = a.t() * 2
    r = lib.strides(b)
    s = lib.strides(b[1:, ::2])
    return r, s, b


@case(lambda: x(4, 4))
def b4_73_select_select(m, a):
    b = a.clone()
    lib.two(b[0], b[1])
    lib.two(b.select(1, 0), b.select(1, 2))
    return b


@case(lambda: x(4, 4))
def b4_73_alias_alias(m, a):
    b = a.clone()
    lib.two(b, b)
    lib.two(torch.ops.aten.alias(b), torch.ops.aten.alias(b))
    return b


@case(lambda: x(4, 4))
def b4_73_overlapping(m, a):
    b = a.clone()
    lib.two(b[:3], b[1:])
    lib.two(b[0], b)
    return b, b[2]


@case(lambda: x(6, 4))
def b4_73_split(m, a):
    b = a + 1
    p, q, r = b.split(2)
    lib.two(p, r)
    lib.two(q, p)
    return b, q


@case(lambda: x(4, 6))
def b4_73_slices_of_two_dimensions(m, a):
    b = a + 1
    lib.two(b[1:3], b[:, 2:5])
    return b


@case(lambda: x(4, 6))
def b4_73_of_an_input(m, a):
    lib.two(a[1:3], a[:, 2:5])
    return a[0] * 2


@case(lambda: x(2, 4), lambda: x(3, 4), lambda: x(2))
def b4_74_lists_of_views_of_two_bases(m, a, b, w):
    c = b * 2
    r = lib.lists([a[0], c[1], c[0], a[:, 1:3]], c[2], w)
    return r, c


@case(lambda: (lambda t: (t[:4], t[4:]))(x(8)))
def b4_75_parts_of_one_storage(m, pair):
    lib.two(pair[0], pair[1])
    return pair[0] + pair[1]


@case(lambda: torch.tensor([1, 0, 2, 0, 3]))
def b4_76_sizes_learnt_from_data(m, a):
    b = torch.nonzero(a).float()
    c = b.clone()
    lib.one(c)
    lib.one(c[:, 0])
    return c


@case(lambda: x(5, 4), lambda: x(3), dynamic={"a": {0: torch.export.Dim("n", min=3, max=99)}, "w": None})
def b4_77_symbolic_sizes(m, a, w):
    b = a * 2
    lib.two(b[1:], b[:2])
    r = lib.lists([b[0], b.t()], None, w)
    return b, r


@case(lambda: x(3), buffers=(lambda: x(2, 3),))
def b4_77_buffer(m, a):
    lib.two(m.b0[0], m.b0[1])
    m.b0.add_(a)
    return m.b0 * 2


# ---------------------------------------------------------------------------------- checking


def module_of(c):
    class Case(torch.nn.Module):
        pass

    names = c["f"].__code__.co_varnames[1 : c["f"].__code__.co_argcount]
    scope = {"f": c["f"]}
    exec(f"def forward(self, {', '.join(names)}):\n    return f(self, {', '.join(names)})", scope)
    Case.forward = scope["forward"]
    module = Case()
    for i, b in enumerate(c["buffers"]):
        module.register_buffer(f"b{i}", b())
    return module


def left(module, example):
    """What two calls leave: a list of values a call, inputs and buffers included."""
    calls = []
    for _ in range(2):
        args = copy.deepcopy(example)
        with torch.no_grad():
            outputs = module(*args)
        state = [b for _, b in sorted(module.named_buffers()) if "lifted" not in _]
        calls.append([t.clone() for t in pytree.tree_leaves((outputs, args, state))])
    return calls


def differs(want, got):
    for call, (a, b) in enumerate(zip(want, got), 1):
        if len(a) != len(b):
            return f"call {call}: {len(b)} tensors, not {len(a)}"
        for i, (s, t) in enumerate(zip(a, b)):
            if s.shape != t.shape or s.dtype != t.dtype or not torch.equal(s, t):
                return f"call {call}, tensor {i}: {t.flatten().tolist()[:8]}, not {s.flatten().tolist()[:8]}"
    return None


def check(c, restride, ops, timeout):
    """{which file: (status, detail)}"""
    example = tuple(make() for make in c["inputs"])
    want = left(module_of(c), example)
    results = {}
    try:
        program = torch.export.export(module_of(c), example, dynamic_shapes=c["dynamic"])
    except Exception as e:
        return {which: ("n/a", f"PyTorch: {short(e)}") for which in WAYS}
    with tempfile.TemporaryDirectory(prefix="restride-custom-") as tmp:
        for which in ("exported", "decomposed"):
            given = os.path.join(tmp, f"{which}.pt2")
            ways = [w for w in WAYS if which in w]
            try:
                if which == "decomposed":
                    program = program.run_decompositions({})
                torch.export.save(program, given)
            except Exception as e:
                results |= {way: ("n/a", f"PyTorch: {short(e)}") for way in ways}
                continue
            for way in ways:
                in_place = way != which
                out = os.path.join(tmp, f"{way.replace(' ', '_')}.out.pt2")
                command = "reinplace" if in_place else "functionalize"
                outcome = common.run([restride, command, given, "-o", out, "--ops", ops], timeout)
                if not outcome:
                    results[way] = (outcome.kind, outcome.line)
                    continue
                try:
                    ours = torch.export.load(out)
                    found = [] if in_place else writers(ours)
                    problem = f"writes: {found[0]}" if found else differs(want, left(ours.module(check_guards=False), example))
                    if in_place and not problem:
                        problem = more(torch.export.load(given), ours, (example, {}))
                except Exception as e:
                    problem = short(e)
                results[way] = ("WRONG", problem) if problem else ("ok", "")
    return {way: results[way] for way in WAYS}


WAYS = ("exported", "decomposed", "exported reinplaced", "decomposed reinplaced")


def more(given, ours, example):
    """What a call of ours allocates beyond a call of the given program, in words."""
    before, after = allocated(given, example), allocated(ours, example)
    return f"allocates {after} bytes, the given program {before}" if after > before else None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--binary")
    p.add_argument("--timeout", type=float, default=60.0)
    p.add_argument("--ops-file", metavar="F", help="write the operators' schemas there too")
    p.add_argument("--json", metavar="F")
    o = p.parse_intermixed_args()
    restride = common.binary(o.binary)
    unknown = [n for n in o.names if n not in CASES]
    if unknown:
        p.error(f"no case is called {unknown[0]}")
    table, rows = [], []
    with tempfile.TemporaryDirectory(prefix="restride-custom-") as tmp:
        ops = o.ops_file or os.path.join(tmp, "ops.txt")
        with open(ops, "w") as f:
            f.write("".join(f"{s}\n" for s in SCHEMAS))
        for name, c in CASES.items():
            if o.names and name not in o.names:
                continue
            results = check(c, restride, ops, o.timeout)
            rows.append(dict(name=name, results=results))
            detail = next((f"{k}: {d}" for k, (s, d) in results.items() if d), "")
            table.append((name, *(s for s, _ in results.values()), detail))
    common.print_table(("case", *WAYS, ""), table)
    statuses = [s for row in rows for s, _ in row["results"].values()]
    passed, failed = statuses.count("ok"), sum(s not in ("ok", "n/a") for s in statuses)
    print(f"{passed} passed, {failed} failed")
    if o.json:
        with open(o.json, "w") as f:
            json.dump(dict(rows=rows, passed=passed, failed=failed), f, indent=1)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

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

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import Restride
from lib.driver import chosen, parser, report_cases, scratch
from lib.exported import allocates_more, calls_left, differences, exactly, short, writers

import torch

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
    return (torch.arange(math.prod(sizes), dtype=torch.float32) % 7 - 2).reshape(sizes)


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


WAYS = ("exported", "decomposed", "exported reinplaced", "decomposed reinplaced")


def check(c, restride, ops):
    """{way: (status, detail)}"""
    example = tuple(make() for make in c["inputs"]), {}
    want = calls_left(module_of(c), example)
    try:
        program = torch.export.export(module_of(c), example[0], dynamic_shapes=c["dynamic"])
    except Exception as e:
        return {way: ("n/a", f"PyTorch: {short(e)}") for way in WAYS}
    results = {}
    with scratch() as tmp:
        for form in ("exported", "decomposed"):
            given = tmp / f"{form}.pt2"
            try:
                if form == "decomposed":
                    program = program.run_decompositions({})
                torch.export.save(program, given)
            except Exception as e:
                results |= {way: ("n/a", f"PyTorch: {short(e)}") for way in WAYS if form in way}
                continue
            for way in (w for w in WAYS if form in w):
                in_place, out = way != form, tmp / f"{way.replace(' ', '_')}.out.pt2"
                command = "reinplace" if in_place else "functionalize"
                outcome = restride(command, given, "-o", out, "--ops", ops)
                if not outcome:
                    results[way] = (outcome.kind, outcome.line)
                    continue
                try:
                    ours = torch.export.load(out)
                    problems = [] if in_place else [f"writes: {w}" for w in writers(ours)]
                    problems += differences(want, calls_left(ours.module(check_guards=False), example), exactly)
                    if in_place and not problems and (more := allocates_more(torch.export.load(given), ours, example)):
                        problems.append(more)
                except Exception as e:
                    problems = [short(e)]
                results[way] = ("WRONG", problems[0]) if problems else ("ok", "")
    return results


def main():
    p = parser(__doc__, "names", "--binary", "--timeout", "--json")
    p.add_argument("--ops-file", type=Path, metavar="F", help="write the operators' schemas there too")
    o = p.parse_intermixed_args()
    restride, cases = Restride(o.binary, o.timeout), chosen(p, o, CASES)
    with scratch() as tmp:
        ops = o.ops_file or tmp / "ops.txt"
        ops.write_text("".join(f"{s}\n" for s in SCHEMAS))
        rows = {name: check(c, restride, ops) for name, c in cases.items()}
    return report_cases(rows, WAYS, o.json)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Hold functionalization of users' operators to eager PyTorch, on cases from PyTorch's own tests.

Each case is a small module that calls operators of the library `mylib`, defined here with Python kernels. restride receives the
operators' schemas (--ops) with two files: the exported program, and PyTorch's run_decompositions({}) of it where PyTorch can
decompose it (`auto_functionalized_v2` in a file). torch.export.load reads each functionalized file back: no operator of its
graph may write, and two calls in a row must leave the same outputs, inputs and buffers as eager PyTorch, bit for bit. A
reinplaced file calls the operators on memory again, must leave the same, and may allocate no more than the given program.

The cases carry the numbers of docs/semantics.md. Exit status 1 when one fails; the last line is `N passed, N failed`.
"""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import Restride
from lib.driver import chosen, parser, report_cases, scratch
from lib.exported import allocates_more, calls_left, judged, short, writers

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
    """Returns the strides of its argument, which must be those of eager PyTorch."""
    x.mul_(3)
    return torch.tensor([*x.stride(), int(x.is_contiguous())])


# ---------------------------------------------------------------------------------- cases


def x(*sizes):
    """Small integers, so that sums are exact in whatever order."""
    return (torch.arange(math.prod(sizes), dtype=torch.float32) % 7 - 2).reshape(sizes)


lib = torch.ops.mylib


def using(dynamic=None, buffers=()):
    """Give a case dynamic shapes, or buffers b0, b1, …"""

    def give(f):
        f.dynamic, f.buffers = dynamic, buffers
        return f

    return give


class Cases:
    """Functions of a module and of inputs, which are the defaults."""

    def b4_69_optional_none(m, a=x(3), b=x(3)):
        a, b = a.clone(), b.clone()
        lib.maybe(None, [a, b * 2], b)
        lib.maybe(a, [], b, a + 0, n=3)
        return a, b

    def b4_69_defaults_on_inputs(m, a=x(3), b=x(3)):
        lib.maybe(a, [a * 2], b)
        return a + b

    def b4_69_argument_called_self(m, a=x(3), b=x(3)):
        a = a * 2
        lib.named(a, b)
        return a

    def b4_69_list(m, a=x(3), b=x(3), w=x(2)):
        a = a + 1
        r = lib.lists([a, b], None, w)
        return a, r

    def b4_69_empty_list(m, a=x(3), w=x(3)):
        a = a + 1
        lib.holes([])
        lib.holes([None, a, None])
        return a

    def b4_70_in_place_and_returned(m, a=x(4), b=x(4)):
        a = a.clone()
        r = lib.bump_(a, b)
        r.mul_(2)
        return a, r + 1

    def b4_71_results_beside(m, a=x(4), b=x(4), c=x(4)):
        r, s = lib.both(a, b, c)
        a.add_(r)
        return r, s, b

    def b4_72_view_of_an_intermediate(m, a=x(3, 4)):
        b = a * 2
        lib.one(b[:])
        lib.one(b[1])
        lib.one(b[:, 1::2])
        return b

    def b4_72_view_of_an_input(m, a=x(3, 4)):
        lib.one(a[:])
        lib.one(a.t()[1])
        return a.sum(0)

    def b4_72_view_as_input(m, a=torch.as_strided(x(30), (3, 4), (8, 2), 5)):
        before = lib.strides(a)
        lib.one(a[1])
        return before, a * 2

    def b4_72_what_it_sees_of_memory(m, a=x(3, 4)):
        b = a.t() * 2
        r = lib.strides(b)
        s = lib.strides(b[1:, ::2])
        return r, s, b

    def b4_73_select_select(m, a=x(4, 4)):
        b = a.clone()
        lib.two(b[0], b[1])
        lib.two(b.select(1, 0), b.select(1, 2))
        return b

    def b4_73_alias_alias(m, a=x(4, 4)):
        b = a.clone()
        lib.two(b, b)
        lib.two(torch.ops.aten.alias(b), torch.ops.aten.alias(b))
        return b

    def b4_73_overlapping(m, a=x(4, 4)):
        b = a.clone()
        lib.two(b[:3], b[1:])
        lib.two(b[0], b)
        return b, b[2]

    def b4_73_split(m, a=x(6, 4)):
        b = a + 1
        p, q, r = b.split(2)
        lib.two(p, r)
        lib.two(q, p)
        return b, q

    def b4_73_slices_of_two_dimensions(m, a=x(4, 6)):
        b = a + 1
        lib.two(b[1:3], b[:, 2:5])
        return b

    def b4_73_of_an_input(m, a=x(4, 6)):
        lib.two(a[1:3], a[:, 2:5])
        return a[0] * 2

    def b4_74_lists_of_views_of_two_bases(m, a=x(2, 4), b=x(3, 4), w=x(2)):
        c = b * 2
        r = lib.lists([a[0], c[1], c[0], a[:, 1:3]], c[2], w)
        return r, c

    def b4_75_parts_of_one_storage(m, pair=(lambda t: (t[:4], t[4:]))(x(8))):
        lib.two(pair[0], pair[1])
        return pair[0] + pair[1]

    def b4_76_sizes_learnt_from_data(m, a=torch.tensor([1, 0, 2, 0, 3])):
        b = torch.nonzero(a).float()
        c = b.clone()
        lib.one(c)
        lib.one(c[:, 0])
        return c

    @using(dynamic={"a": {0: torch.export.Dim("n", min=3, max=99)}, "w": None})
    def b4_77_symbolic_sizes(m, a=x(5, 4), w=x(3)):
        b = a * 2
        lib.two(b[1:], b[:2])
        r = lib.lists([b[0], b.t()], None, w)
        return b, r

    @using(buffers=(lambda: x(2, 3),))
    def b4_77_buffer(m, a=x(3)):
        lib.two(m.b0[0], m.b0[1])
        m.b0.add_(a)
        return m.b0 * 2


CASES = {name: f for name, f in vars(Cases).items() if callable(f)}


# ---------------------------------------------------------------------------------- checking


def module_of(f):
    names = ", ".join(f.__code__.co_varnames[1 : f.__code__.co_argcount])
    scope = {"f": f}
    exec(f"def forward(self, {names}):\n    return f(self, {names})", scope)
    module = type("Case", (torch.nn.Module,), {"forward": scope["forward"]})()
    for i, b in enumerate(getattr(f, "buffers", ())):
        module.register_buffer(f"b{i}", b())
    return module


WAYS = ("exported", "decomposed", "exported reinplaced", "decomposed reinplaced")


def check(c, restride, ops):
    """{way: (status, detail)}"""
    example = c.__defaults__, {}
    want = calls_left(module_of(c), example)
    try:
        program = torch.export.export(module_of(c), example[0], dynamic_shapes=getattr(c, "dynamic", None))
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

                def more(ours, in_place=in_place, given=given):
                    if in_place:
                        return allocates_more(torch.export.load(given), ours, example)
                    return [f"writes: {w}" for w in writers(ours)]

                results[way] = judged(outcome, out, want, example, more)
    return results


def main():
    p = parser(__doc__, "names", "--binary", "--timeout", "--json")
    p.add_argument("--ops-file", type=Path, metavar="F", help="write the operators' schemas too")
    o = p.parse_intermixed_args()
    restride, cases = Restride(o.binary, o.timeout), chosen(p, o, CASES)
    with scratch() as tmp:
        ops = o.ops_file or tmp / "ops.txt"
        ops.write_text("".join(f"{s}\n" for s in SCHEMAS))
        rows = {name: check(c, restride, ops) for name, c in cases.items()}
    return report_cases(rows, WAYS, o.json)


if __name__ == "__main__":
    sys.exit(main())

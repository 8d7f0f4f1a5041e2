#!/usr/bin/env python3
"""Hold `restride reinplace` to the given program: it copies and allocates no more.

Each case is a small module with lists (`_foreach_*`), branches or loops. The exported file and PyTorch's run_decompositions({})
of it are reinplaced and read back by torch.export.load. Two calls in a row must leave what eager PyTorch leaves. The file may
have no more calls that only copy (`clone`, `copy_`, scatters, copying views) than the given one, bodies included, and a call
may allocate no more bytes.

Exit status 1 when one fails; the last line is `N passed, N failed`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import Restride
from lib.driver import chosen, parser, report_cases, scratch
from lib.exported import allocates_more, calls_left, graphs, judged

import torch
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop


def x(*sizes):
    return torch.arange(float(torch.Size(sizes).numel())).reshape(sizes) / 8 + 1


class Cases:
    """Functions of inputs, which are the defaults."""

    def foreach_on_inputs(a=x(3, 4), b=x(3, 4), c=x(5)):
        torch._foreach_add_([a, b, c], 2)
        return a.sum()

    def foreach_on_results(a=x(3, 4), b=x(3, 4)):
        p = [a * 2, b * 3]
        torch._foreach_mul_(p, 3)
        torch._foreach_add_(p, [a, b])
        return p[0], p[1]

    def foreach_functional(a=x(3, 4), b=x(3, 4)):
        p = torch._foreach_mul([a, b], 3)
        q = torch._foreach_sqrt(p)
        torch._foreach_add_(q, p)
        return q[0], q[1]

    def foreach_on_views(a=x(3, 4), b=x(3, 4)):
        y = a * 2
        torch._foreach_mul_([y[0], y[2]], 3)
        return y

    def cond_result(a=x(3, 4)):
        return torch.cond(a.sum() > 3, lambda v: v * 2, lambda v: v - 1, (a,))

    def cond_result_written(a=x(3, 4)):
        y = torch.cond(a.sum() > 3, lambda v: v * 2, lambda v: v - 1, (a,))
        y.add_(1)
        return y.relu_()

    def cond_bodies_write(a=x(3, 4)):
        def yes(v):
            w = v * 2
            w.add_(1)
            w[0].mul_(3)
            return w

        def no(v):
            w = v - 1
            return w.relu_()

        y = torch.cond(a.sum() > 3, yes, no, (a,))
        y[1].add_(1)
        return y

    def cond_of_two(a=x(3, 4)):
        y, z = torch.cond(a.sum() > 3, lambda v: (v * 2, v.sum(0)), lambda v: (v - 1, v.mean(0)), (a,))
        y.add_(z)
        return y

    def cond_of_transposed(a=x(3, 4)):
        y = torch.cond(a.sum() > 3, lambda v: v.t() * 2, lambda v: v.t() - 1, (a * 2,))
        return y.add_(1), y.t()

    def while_result(a=x(3, 4)):
        i, y = while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), a))
        y = y + 0
        return y.add_(1)

    def while_body_writes(a=x(3, 4)):
        def body(i, v):
            w = v * 2
            w.add_(1)
            return i + 1, w

        i, y = while_loop(lambda i, v: i < 3, body, (torch.tensor(0), a * 1))
        return y

    def while_result_written(a=x(3, 4)):
        i, y = while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), a * 1))
        y.add_(1)
        return y

    def scan_results_written(a=x(3, 4), s=x(4)):
        def combine(c, u):
            n = c + u
            return n, n * 2

        c, ys = scan(combine, s, a)
        ys.add_(1)
        return c, ys


CASES = {name: f for name, f in vars(Cases).items() if callable(f)}

# ---------------------------------------------------------------------------------- checking

WAYS = ("exported", "decomposed")


def module_of(c):
    class Case(torch.nn.Module):
        def forward(self, *args):
            return c(*args)

    return Case()


COPIES = ("clone", "copy_", "_to_copy", "copy", "contiguous")


def copying(program):
    """Calls that only copy, in all graphs of a program."""
    found = []
    for n in (n for g in graphs(program) for n in g.graph.nodes if isinstance(n.target, torch._ops.OpOverload)):
        name = n.target._schema.name.split("::")[-1]
        if name in COPIES or name.endswith(("_scatter", "_copy")):
            found.append(f"{n.name} = {n.target}")
    return found


def costs(original, ours, example):
    """What ours copies and allocates more than the given program."""
    before, after = copying(original), copying(ours)
    if len(after) > len(before):
        return [f"{len(after)} copies instead of {len(before)}: {after[0]}"]
    return allocates_more(original, ours, example)


def check(c, restride):
    """{way: (status, detail)}"""
    example = c.__defaults__, {}
    want = calls_left(module_of(c), example)
    results = {}
    program = torch.export.export(module_of(c), example[0])
    with scratch() as tmp:
        for way in WAYS:
            given, out = tmp / f"{way}.pt2", tmp / f"{way}.out.pt2"
            if way == "decomposed":
                program = program.run_decompositions({})
            torch.export.save(program, given)
            outcome = restride("reinplace", given, "-o", out)
            results[way] = judged(
                outcome, out, want, example, lambda ours: costs(torch.export.load(given), ours, example)
            )
    return results


def main():
    p = parser(__doc__, "names", "--binary", "--timeout", "--json")
    o = p.parse_intermixed_args()
    restride = Restride(o.binary, o.timeout)
    rows = {name: check(c, restride) for name, c in chosen(p, o, CASES).items()}
    return report_cases(rows, WAYS, o.json)


if __name__ == "__main__":
    sys.exit(main())

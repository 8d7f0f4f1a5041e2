#!/usr/bin/env python3
"""Export small programs with in-place operators on views whose gradients are easy to get wrong.

    autograd_scenarios.py fixtures/autograd

Each is a function from float64 leaves to a scalar, exported with values of its leaves as sample inputs. Finite differences give
the true gradients (crates/restride-testing/tests/autograd.rs); eager PyTorch refuses some of them with a version error and gets
others wrong. Programs that eager PyTorch does not run at all, or that inspect the tape, are not included.
"""

import math
import sys
import warnings
from pathlib import Path

import torch

warnings.filterwarnings("ignore")


def weighted(t):
    """A scalar in which every element counts differently."""
    return (t * torch.arange(1, t.numel() + 1, dtype=torch.float64).reshape(t.shape)).sum()


class Scenarios:
    """Functions of leaves, with the leaves' shapes as defaults."""

    def view_mul_base_bwd(x=(3, 3), y=(3,)):
        b = x.clone()
        b[1].mul_(y)
        return weighted(b)

    def base_mul_view_bwd(x=(3, 3), y=(3,)):
        b = x.clone()
        v = b[1]
        b.mul_(y)
        return weighted(v)

    def two_views(x=(2, 2)):
        b = x.clone()
        v1 = b.narrow(0, 0, 1)
        v2 = b.narrow(0, 0, 1)
        v1.mul_(2)
        return weighted(v2)

    def view_of_view(x=(2, 2)):
        b = x.clone()
        b.narrow(0, 0, 1).narrow(1, 1, 1).mul_(2)
        return weighted(b)

    def overlapping_views_chain(x=(6,), y=(3,)):
        # Modify overlapping slices alternately
        b = x.clone()
        b[0:3].mul_(y)
        b[1:4].mul_(y)
        b[2:5].add_(b[0:3] * 1)
        return weighted(b)

    def transposed_view(x=(3, 2), y=(2, 3)):
        b = x.clone()
        b.t().mul_(y)
        return weighted(b)

    def noncontig_base(x=(2, 3)):
        b = x.t().clone()
        b.narrow(0, 0, 1).narrow(1, 1, 1).mul_(2)
        return weighted(b)

    def base_becomes_diff(y=(4, 2)):
        b = torch.ones(4, 4, dtype=torch.float64)
        b.narrow(1, 2, 2).mul_(y)
        return weighted(b * b)

    def old_view_becomes_diff(r=(1,)):
        b = torch.ones(5, dtype=torch.float64)
        v = b.select(0, 1)
        b.add_(r)
        return weighted(v * v)

    def fill_through_view(x=(3, 3)):
        # Zero_ through a view cuts gradient for those elements
        b = x * x
        b[1].zero_()
        return weighted(b)

    def copy_through_diag(x=(3, 3), y=(3,)):
        b = x * 1
        b.diagonal().copy_(y * y)
        return weighted(b)

    def index_put_view(x=(3, 3), y=(2,)):
        b = x * x
        b[:, 0][torch.tensor([2, 0])] = y
        return weighted(b)

    def masked_fill_view(x=(3, 3)):
        b = x * x
        b[0].masked_fill_(torch.tensor([True, False, True]), 2.0)
        return weighted(b)

    def as_strided_overlap_mul(x=(4,)):
        # In-place through overlapping as_strided (each element scaled per visit)
        b = x * 1
        b.as_strided((3, 2), (1, 1)).mul_(2)
        return weighted(b)

    def as_strided_overlap_add(x=(4,), y=(3, 2)):
        # Add_(y) through overlapping as_strided
        b = x * 1
        b.as_strided((3, 2), (1, 1)).add_(y)
        return weighted(b)

    def as_strided_overlap_exp(x=(4,)):
        # Exp_ through overlapping as_strided (result saved, elements visited twice)
        b = x * 0.1
        b.as_strided((3, 2), (1, 1)).exp_()
        return weighted(b)

    def unfold_overlap_mul(x=(5,)):
        # In-place on overlapping unfold
        b = x * 1
        b.unfold(0, 3, 1).mul_(2)
        return weighted(b)

    def unfold_read(x=(5,)):
        return weighted(x.unfold(0, 3, 1) ** 2)

    def expand_input_as_strided(x=(2,)):
        e = x.expand(3, 2)
        return weighted(e.as_strided([3, 2], e.stride()))

    def split_inplace(x=(4,)):
        # In-place on split output: raises
        b = x * 1
        b.split(2)[0].mul_(3)
        return weighted(b)

    def unsafe_split_inplace(x=(4,)):
        # Unsafe_split output mutated (autograd treats it as non-view): base grad
        b = x * 1
        s, t = b.unsafe_split(2)
        s.mul_(3)
        return weighted(s) + weighted(t)

    def unsafe_split_base_read(x=(4,)):
        # Unsafe_split output mutated, then BASE read (documented UB)
        b = x * 1
        s, t = b.unsafe_split(2)
        s.mul_(3)
        return weighted(b)

    def unbind_chain(x=(4,)):
        # View_as of unbind output mutated: raises
        b = x * 1
        c = b.unbind(0)[0]
        c.view_as(c).mul_(2)
        return weighted(b)

    def nograd_view(x=(4,)):
        # View made under no_grad, mutated with grad: raises
        b = x * 1
        with torch.no_grad():
            v = b[:2]
        v.mul_(2)
        return weighted(b)

    def nograd_view_nograd_mut_then_use(x=(4,)):
        # View + mutation both in no_grad, then base used
        b = x * x
        with torch.no_grad():
            b[:2].mul_(5)
        return weighted(b)

    def view_leaf(x=(4,)):
        # In-place on a view of a leaf requiring grad: raises
        x[:2].mul_(2)
        return weighted(x)

    def detach_mut_saved(x=(3,)):
        # In-place on detach() of a saved tensor: version error
        y = x * 1
        z = y * y
        y.detach().mul_(2)
        return weighted(z)

    def data_mut_saved(x=(3,)):
        # .data mutation of a saved tensor: NOT detected
        y = x * 1
        z = y * y
        y.data.mul_(2)
        return weighted(z)

    def view_mut_saved_base(x=(4,)):
        # In-place on a disjoint view of a saved base: version error (conservative)
        b = x * 1
        z = b[2:] * b[2:]
        b[:2].mul_(2)
        return weighted(z)

    def exp_then_mul(x=(3,)):
        # Exp saves its result; result mutated: version error
        y = x.exp()
        y.mul_(2)
        return weighted(y)

    def mul_scalar_inplace_ok(x=(3,)):
        y = x.exp()
        y.add_(1)
        return weighted(y)

    def sigmoid_inplace_chain(x=(3,)):
        y = x * 1
        y.sigmoid_()
        y.mul_(3)
        return weighted(y)

    def foreach_mut_saved_nograd(x=(3,)):
        # _foreach_mul_ under no_grad on saved tensor: version error expected
        y = x.exp()
        z = y * y
        with torch.no_grad():
            torch._foreach_mul_([y], 2.0)
        return weighted(z)

    def cross_dtype_inplace_view(x=(3, 2)):
        # Transpose_ on view_as_real view then += : gradient orientation
        b = torch.complex(x, x * 0) * 1
        r = torch.view_as_real(b)
        r.transpose_(0, 1)
        r += 1
        return weighted(r)

    def cross_dtype_outofplace_view(x=(3, 2)):
        b = torch.complex(x, x * 0) * 1
        r = torch.view_as_real(b).transpose(0, 1)
        r += 1
        return weighted(r)

    def transpose_then_mul(x=(3, 2), y=(2, 3)):
        b = x * 1
        v = b.view(3, 2)
        v.transpose_(0, 1)
        v.mul_(y)
        return weighted(v) + weighted(b)

    def unsqueeze_view(x=(3,)):
        b = x * x
        v = b[1:]
        v.unsqueeze_(0)
        v.mul_(3)
        return weighted(v) + weighted(b)

    def imag_view_mut(x=(3,)):
        b = torch.complex(x, x) * 1
        b.imag.mul_(3)
        return weighted(torch.view_as_real(b))

    def conj_view_mut(x=(3,)):
        b = torch.complex(x, x) * 1
        b.conj().mul_(2j)
        return weighted(torch.view_as_real(torch.resolve_conj(b)))

    def custom_fn_view_mut(x=(4,)):
        # Custom Function returning a view, mutated: raises

        class V(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a.view_as(a)

            @staticmethod
            def backward(ctx, g):
                return g * 0.5

        y = V.apply(x * 1)
        y.mul_(2)
        return weighted(y)

    def mark_dirty_view(x=(4,)):

        class A(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                a.mul_(3)
                ctx.mark_dirty(a)
                return a

            @staticmethod
            def backward(ctx, g):
                return g * 3

        b = x * 1
        A.apply(b[1:3])
        return weighted(b)

    def setitem_broadcast(x=(4, 3), y=(3,)):
        b = x * x
        b[1:3] = y
        return weighted(b)

    def setitem_self(x=(4,)):
        b = x * x
        b[1:] = b[:-1] * 2
        return weighted(b)

    def loop_scan(x=(6,)):
        # For i: b[i] += b[i-1] (sequential recurrence through views)
        b = x * 1
        for i in range(1, 6):
            b[i] += b[i - 1] * 0.5
        return weighted(b)

    def loop_scan_mul(x=(5,)):
        # For i: b[i] *= b[i-1] : saved neighbour later mutated?
        b = x * 1
        for i in range(1, 5):
            b[i] *= b[i - 1]
        return weighted(b)

    def relu_residual(x=(4,)):
        # Relu_ with residual read before
        b = x - 1.2
        r = b.clone()
        b.relu_()
        return weighted(b * r)

    def grad_of_view_grad_enabled(x=(4,)):
        b = x * x
        v = b[:2]
        with torch.no_grad():
            b.mul_(3)
        return weighted(v)

    def double_backward(x=(3, 3), y=(3,)):
        b = x.clone()
        b[1].mul_(y)
        return (b**3).sum()


def leaves(shapes):
    out = []
    for k, shape in enumerate(shapes):
        out.append(torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape) * 0.3 + 0.7 + k * 0.1)
    return out


class Program(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, f in ((n, f) for n, f in vars(Scenarios).items() if callable(f)):
        try:
            program = torch.export.export(Program(f), tuple(leaves(f.__defaults__)), strict=False)
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {str(e).splitlines()[0]}")
            continue
        torch.export.save(program, out / f"{name}.pt2")


if __name__ == "__main__":
    main()

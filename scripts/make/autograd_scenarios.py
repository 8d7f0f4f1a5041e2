#!/usr/bin/env python3
"""Exports small programs with in-place operators on views whose gradients are easy to get wrong.

    python scripts/make/autograd_scenarios.py fixtures/autograd

Each is a function of float64 leaves that gives a scalar, exported with values for its leaves as sample inputs. The true
gradient of each is what finite differences of its values say (crates/restride-testing/tests/autograd.rs); eager PyTorch
refuses some of them with a version error and is wrong about others. Those that eager PyTorch does not run at all, and
those that inspect the tape, are not here.
"""

import math
import sys
import warnings
from pathlib import Path

import torch

warnings.filterwarnings("ignore")
SCENARIOS = {}


def scenario(*shapes):
    def add(f):
        SCENARIOS[f.__name__] = (shapes, f)
        return f

    return add


def weighted(t):
    """A scalar in which every element counts differently."""
    return (t * torch.arange(1, t.numel() + 1, dtype=torch.float64).reshape(t.shape)).sum()


@scenario((3, 3), (3,))
def view_mul_base_bwd(x, y):
    """Modify a row view, backprop through base."""
    b = x.clone()
    b[1].mul_(y)
    return weighted(b)


@scenario((3, 3), (3,))
def base_mul_view_bwd(x, y):
    """Modify base, backprop through an older view."""
    b = x.clone()
    v = b[1]
    b.mul_(y)
    return weighted(v)


@scenario((2, 2))
def two_views(x):
    """Modify view v1, backprop through sibling v2 over same rows."""
    b = x.clone()
    v1 = b.narrow(0, 0, 1)
    v2 = b.narrow(0, 0, 1)
    v1.mul_(2)
    return weighted(v2)


@scenario((2, 2))
def view_of_view(x):
    """Modify view-of-view, backprop base."""
    b = x.clone()
    b.narrow(0, 0, 1).narrow(1, 1, 1).mul_(2)
    return weighted(b)


@scenario((6,), (3,))
def overlapping_views_chain(x, y):
    """Modify overlapping slices alternately."""
    b = x.clone()
    b[0:3].mul_(y)
    b[1:4].mul_(y)
    b[2:5].add_(b[0:3] * 1)
    return weighted(b)


@scenario((3, 2), (2, 3))
def transposed_view(x, y):
    """Modify a transposed non-contiguous view."""
    b = x.clone()
    b.t().mul_(y)
    return weighted(b)


@scenario((2, 3))
def noncontig_base(x):
    """Base itself is a non-contiguous (dense) clone."""
    b = x.t().clone()
    b.narrow(0, 0, 1).narrow(1, 1, 1).mul_(2)
    return weighted(b)


@scenario((4, 2))
def base_becomes_diff(y):
    """Base without grad becomes differentiable through view."""
    b = torch.ones(4, 4, dtype=torch.float64)
    b.narrow(1, 2, 2).mul_(y)
    return weighted(b * b)


@scenario((1,))
def old_view_becomes_diff(r):
    """Old view of a non-grad base becomes differentiable after base.add_(r)."""
    b = torch.ones(5, dtype=torch.float64)
    v = b.select(0, 1)
    b.add_(r)
    return weighted(v * v)


@scenario((3, 3))
def fill_through_view(x):
    """Zero_ through a view cuts gradient for those elements."""
    b = x * x
    b[1].zero_()
    return weighted(b)


@scenario((3, 3), (3,))
def copy_through_diag(x, y):
    """Diagonal().copy_(y)."""
    b = x * 1
    b.diagonal().copy_(y * y)
    return weighted(b)


@scenario((3, 3), (2,))
def index_put_view(x, y):
    """B[:, 0][idx] = y."""
    b = x * x
    b[:, 0][torch.tensor([2, 0])] = y
    return weighted(b)


@scenario((3, 3))
def masked_fill_view(x):
    """Masked_fill_ on a view."""
    b = x * x
    b[0].masked_fill_(torch.tensor([True, False, True]), 2.0)
    return weighted(b)


@scenario((4,))
def as_strided_overlap_mul(x):
    """In-place through overlapping as_strided (each element scaled per visit)."""
    b = x * 1
    b.as_strided((3, 2), (1, 1)).mul_(2)
    return weighted(b)


@scenario((4,), (3, 2))
def as_strided_overlap_add(x, y):
    """Add_(y) through overlapping as_strided."""
    b = x * 1
    b.as_strided((3, 2), (1, 1)).add_(y)
    return weighted(b)


@scenario((4,))
def as_strided_overlap_exp(x):
    """Exp_ through overlapping as_strided (result saved, elements visited twice)."""
    b = x * 0.1
    b.as_strided((3, 2), (1, 1)).exp_()
    return weighted(b)


@scenario((5,))
def unfold_overlap_mul(x):
    """In-place on overlapping unfold."""
    b = x * 1
    b.unfold(0, 3, 1).mul_(2)
    return weighted(b)


@scenario((5,))
def unfold_read(x):
    """Overlapping unfold read-only gradient."""
    return weighted(x.unfold(0, 3, 1) ** 2)


@scenario((2,))
def expand_input_as_strided(x):
    """As_strided of an expanded tensor, gradient."""
    e = x.expand(3, 2)
    return weighted(e.as_strided([3, 2], e.stride()))


@scenario((4,))
def split_inplace(x):
    """In-place on split output: raises."""
    b = x * 1
    b.split(2)[0].mul_(3)
    return weighted(b)


@scenario((4,))
def unsafe_split_inplace(x):
    """Unsafe_split output mutated (autograd treats it as non-view): base grad."""
    b = x * 1
    s, t = b.unsafe_split(2)
    s.mul_(3)
    return weighted(s) + weighted(t)


@scenario((4,))
def unsafe_split_base_read(x):
    """Unsafe_split output mutated, then BASE read (documented UB)."""
    b = x * 1
    s, t = b.unsafe_split(2)
    s.mul_(3)
    return weighted(b)


@scenario((4,))
def unbind_chain(x):
    """View_as of unbind output mutated: raises."""
    b = x * 1
    c = b.unbind(0)[0]
    c.view_as(c).mul_(2)
    return weighted(b)


@scenario((4,))
def nograd_view(x):
    """View made under no_grad, mutated with grad: raises."""
    b = x * 1
    with torch.no_grad():
        v = b[:2]
    v.mul_(2)
    return weighted(b)


@scenario((4,))
def nograd_view_nograd_mut_then_use(x):
    """View + mutation both in no_grad, then base used."""
    b = x * x
    with torch.no_grad():
        b[:2].mul_(5)
    return weighted(b)


@scenario((4,))
def view_leaf(x):
    """In-place on a view of a leaf requiring grad: raises."""
    x[:2].mul_(2)
    return weighted(x)


@scenario((3,))
def detach_mut_saved(x):
    """In-place on detach() of a saved tensor: version error."""
    y = x * 1
    z = y * y
    y.detach().mul_(2)
    return weighted(z)


@scenario((3,))
def data_mut_saved(x):
    """.data mutation of a saved tensor: NOT detected."""
    y = x * 1
    z = y * y
    y.data.mul_(2)
    return weighted(z)


@scenario((4,))
def view_mut_saved_base(x):
    """In-place on a disjoint view of a saved base: version error (conservative)."""
    b = x * 1
    z = b[2:] * b[2:]
    b[:2].mul_(2)
    return weighted(z)


@scenario((3,))
def exp_then_mul(x):
    """Exp saves its result; result mutated: version error."""
    y = x.exp()
    y.mul_(2)
    return weighted(y)


@scenario((3,))
def mul_scalar_inplace_ok(x):
    """Add_ on exp result still fails (result saved)."""
    y = x.exp()
    y.add_(1)
    return weighted(y)


@scenario((3,))
def sigmoid_inplace_chain(x):
    """Sigmoid_ then mul_ (result saved then mutated)."""
    y = x * 1
    y.sigmoid_()
    y.mul_(3)
    return weighted(y)


@scenario((3,))
def foreach_mut_saved_nograd(x):
    """_foreach_mul_ under no_grad on saved tensor: version error expected."""
    y = x.exp()
    z = y * y
    with torch.no_grad():
        torch._foreach_mul_([y], 2.0)
    return weighted(z)


@scenario((3, 2))
def cross_dtype_inplace_view(x):
    """Transpose_ on view_as_real view then += : gradient orientation."""
    b = torch.complex(x, x * 0) * 1
    r = torch.view_as_real(b)
    r.transpose_(0, 1)
    r += 1
    return weighted(r)


@scenario((3, 2))
def cross_dtype_outofplace_view(x):
    """Transpose (out of place) on view_as_real then +=."""
    b = torch.complex(x, x * 0) * 1
    r = torch.view_as_real(b).transpose(0, 1)
    r += 1
    return weighted(r)


@scenario((3, 2), (2, 3))
def transpose_then_mul(x, y):
    """Same-dtype transpose_ then mul_ on a view."""
    b = x * 1
    v = b.view(3, 2)
    v.transpose_(0, 1)
    v.mul_(y)
    return weighted(v) + weighted(b)


@scenario((3,))
def unsqueeze_view(x):
    """Unsqueeze_ on a view then add_."""
    b = x * x
    v = b[1:]
    v.unsqueeze_(0)
    v.mul_(3)
    return weighted(v) + weighted(b)


@scenario((3,))
def imag_view_mut(x):
    """Mutation through .imag of a complex intermediate."""
    b = torch.complex(x, x) * 1
    b.imag.mul_(3)
    return weighted(torch.view_as_real(b))


@scenario((3,))
def conj_view_mut(x):
    """Mutation through conj view."""
    b = torch.complex(x, x) * 1
    b.conj().mul_(2j)
    return weighted(torch.view_as_real(torch.resolve_conj(b)))


@scenario((4,))
def custom_fn_view_mut(x):
    """Custom Function returning a view, mutated: raises."""

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


@scenario((4,))
def mark_dirty_view(x):
    """Custom Function mark_dirty on a view input."""

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


@scenario((4, 3), (3,))
def setitem_broadcast(x, y):
    """B[1:3] = y (broadcast)."""
    b = x * x
    b[1:3] = y
    return weighted(b)


@scenario((4,))
def setitem_self(x):
    """B[1:] = b[:-1] * 2 (fresh rhs)."""
    b = x * x
    b[1:] = b[:-1] * 2
    return weighted(b)


@scenario((6,))
def loop_scan(x):
    """For i: b[i] += b[i-1] (sequential recurrence through views)."""
    b = x * 1
    for i in range(1, 6):
        b[i] += b[i - 1] * 0.5
    return weighted(b)


@scenario((5,))
def loop_scan_mul(x):
    """For i: b[i] *= b[i-1] : saved neighbour later mutated?."""
    b = x * 1
    for i in range(1, 5):
        b[i] *= b[i - 1]
    return weighted(b)


@scenario((4,))
def relu_residual(x):
    """Relu_ with residual read before."""
    b = x - 1.2
    r = b.clone()
    b.relu_()
    return weighted(b * r)


@scenario((4,))
def grad_of_view_grad_enabled(x):
    """Set_grad_enabled toggled between view and mutation of base."""
    b = x * x
    v = b[:2]
    with torch.no_grad():
        b.mul_(3)
    return weighted(v)


@scenario((3, 3), (3,))
def double_backward(x, y):
    """Gradgrad through in-place on view."""
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
    for name, (shapes, f) in SCENARIOS.items():
        try:
            program = torch.export.export(Program(f), tuple(leaves(shapes)), strict=False)
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {str(e).splitlines()[0]}")
            continue
        torch.export.save(program, out / f"{name}.pt2")


if __name__ == "__main__":
    main()

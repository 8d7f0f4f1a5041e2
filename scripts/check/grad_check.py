#!/usr/bin/env python3
"""Holds gradients to PyTorch's.

    cargo run -q -p restride-testing --example dump_gradients [OP ...] | python scripts/check/grad_check.py --ops -
    python scripts/check/grad_check.py --programs [--restride PATH]

The first compares gradients of each operator's sample calls, and gradients of some of these gradients, in double precision.
The second exports training programs, makes them joint by `restride grad`, and runs the joint program by `restride run` and,
loaded by torch.export.load, by PyTorch; some programs again with dynamic sizes, at several sizes.
Prints one line per difference, then a summary; fails at any difference.
"""

import copy
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import Restride
from lib.driver import parser, scratch
from lib.samples import argument, call, operator, tensor, tensors
from lib.values import load

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

# Samples, by number, for which restride's gradient is the derivative and PyTorch's is not.
BETTER = {
    "aten.index_put.default": ((1,), "of elements written to one place the last one counts"),
    "aten._unsafe_index_put.default": ((1,), "the same"),
    "aten._index_put_impl.default": ((1,), "the same"),
    "aten.index_copy.default": ((0,), "the same"),
    "aten.scatter.src": ((2, 13), "the same"),
    "aten.put.default": ((0, 1), "the same"),
    "aten.as_strided_scatter.default": ((0, 1, 2, 3, 4, 5), "PyTorch's keeps the region and cuts the rest"),
    "aten.polar.default": (
        (0, 1, 2, 3, 4),
        "PyTorch takes the direction from the result, which is the other way for negative lengths",
    ),
    "aten.index_add.default": ((4,), "PyTorch does not conjugate alpha"),
    "aten.ldexp.Tensor": (
        (3, 4, 5),
        "PyTorch multiplies by the power, which may have no float where the product has one",
    ),
    "aten.var.dim": ((2, 5), "PyTorch counts no elements where no dimensions are named, which means all"),
    "aten.std.dim": ((2, 5), "the same"),
    "aten.var_mean.dim": ((2, 5), "the same"),
    "aten.std_mean.dim": ((2, 5), "the same"),
    "aten.embedding_dense_backward.default": ((1, 3, 5), "PyTorch's leaves out the scale by frequency"),
    "aten._ctc_loss.default": ((0, 1), "PyTorch's is that of the scores before log_softmax"),
    "aten.ctc_loss.IntList": ((0, 1, 2, 3, 4, 5), "the same"),
    "aten._weight_norm_interface.default": (
        (0, 1, 2, 3),
        "PyTorch's leaves out the norm's part, which is a result too",
    ),
    "aten._scaled_dot_product_flash_attention_for_cpu.default": (
        (0, 1, 3, 4),
        "PyTorch's leaves out the part of logsumexp",
    ),
    "aten.upsample_nearest1d.default": (
        (3,),
        "forward PyTorch copies what keeps its sizes, backward it looks at the scale",
    ),
    "aten.upsample_nearest3d.default": ((3,), "the same"),
    "aten.upsample_nearest3d.vec": ((2,), "the same"),
    "aten.upsample_bicubic2d.default": ((5,), "the same"),
    "aten._upsample_bilinear2d_aa.default": ((5,), "the same"),
    "aten._upsample_bicubic2d_aa.default": ((5,), "the same"),
    "aten._upsample_lanczos2d_aa.default": ((5,), "the same"),
    "aten.special_bessel_j0.default": (
        (3,),
        "PyTorch's functions of order 0 and 1 are right to 1e-7 here, ours to 1e-15",
    ),
    "aten.special_bessel_j1.default": ((1, 4), "the same"),
    "aten.special_bessel_y0.default": ((0, 1, 2, 3, 4, 5), "the same"),
    "aten.linalg_cholesky_ex.default": ((6,), "PyTorch counts imaginary parts of the factor's diagonal, which is real"),
    "aten.linalg_cholesky.default": ((6,), "the same"),
    "aten.cholesky_inverse.default": ((2, 3), "PyTorch takes the diagonal of the factor's inverse to be real"),
}


# The same of gradients of gradients.
BETTER_TWICE = {
    "aten.special_bessel_y1.default": (
        (1,),
        "PyTorch's functions of order 0 and 1 are right to 1e-7 here, ours to 1e-15",
    ),
    "aten._pdist_backward.default": ((0,), "PyTorch's are NaN, ours the derivative, as differences show"),
    "aten._weight_norm.default": ((0, 1), "the norms that PyTorch's backward reads are constants there"),
}

# PyTorch's exceptions where it has no gradient.
NONE = (RuntimeError, NotImplementedError, AttributeError, TypeError, ValueError)


def weighted(tensors, weights):
    """The sum of floating tensors, each times its weights."""
    real = [torch.view_as_real(t) if t.is_complex() else t for t in tensors]
    return sum((t * tensor(w)).sum() for t, w in zip(real, weights, strict=True))


def difference(gradients, wrt, theirs):
    for (i, ours), t, g in zip(gradients, wrt, theirs, strict=True):
        ours = tensor(ours)
        g = torch.zeros_like(t) if g is None else g.resolve_conj()
        if not torch.allclose(ours, g, rtol=1e-6, atol=1e-8, equal_nan=True):
            return f"operand {i}: {ours.flatten()[:4].tolist()}, PyTorch {g.flatten()[:4].tolist()}"
    return None


def check_op(record):
    """The differences in first and in second gradients: None for none; False where PyTorch has no gradient."""
    args = [argument(a) for a in record["args"]]
    operands = list(tensors(args))
    wrt = [operands[i] for i, _ in record["gradients"]]
    for t in wrt:
        t.requires_grad_()
    twice = record.get("second")
    try:
        # The first of the results that are floating numbers: others are for the gradient alone.
        outs = [o for o in call(operator(record["op"]), args) if o.is_floating_point() or o.is_complex()]
        loss = weighted(outs[: len(record["weights"])], record["weights"])
        theirs = torch.autograd.grad(loss, wrt, allow_unused=True, retain_graph=bool(twice))
    except NONE:
        return False, False
    first = difference(record["gradients"], wrt, theirs)
    if not twice or first:
        return first, False
    try:
        theirs = torch.autograd.grad(loss, wrt, allow_unused=True, create_graph=True)
        theirs = [torch.zeros_like(t) if g is None else g for g, t in zip(theirs, wrt)]
        loss = weighted(theirs, twice["weights"])
        again = torch.autograd.grad(loss, wrt, allow_unused=True) if loss.requires_grad else [None] * len(wrt)
    except NONE:
        return first, False
    return first, difference(twice["gradients"], wrt, again)


class Found:
    """The results of one order."""

    def __init__(self, what, better):
        self.what, self.better = what, better
        self.seen, self.skipped, self.alone, self.differ = Counter(), Counter(), 0, []

    def add(self, record, why):
        op, index = record["op"], record["index"]
        if why is False:
            self.skipped[op] += 1
            return
        self.seen[op] += 1
        expected = index in self.better.get(op, ((), ""))[0]
        self.alone += expected
        if why and not expected:
            self.differ.append(f"{op} #{index}, {self.what}: {why}")
        if expected and not why:
            # A reason that has gone.
            self.differ.append(f"{op} #{index}, {self.what}: no longer different from PyTorch")

    def tell(self):
        for line in self.differ:
            print(line)
        none = sorted(op for op in self.skipped if op not in self.seen)
        print(f"no {self.what} in PyTorch: {', '.join(none)}")
        print(
            f"{self.what}: {len(self.seen)} operators, {sum(self.seen.values())} calls, "
            f"{self.alone} right here alone, {len(self.differ)} differ"
        )
        return not self.differ


def check_ops(lines):
    orders = Found("gradient", BETTER), Found("second gradient", BETTER_TWICE)
    for line in lines:
        record = json.loads(line)
        for order, why in zip(orders, check_op(record)):
            if order.what == "gradient" or "second" in record:
                order.add(record, why)
    told = [order.tell() for order in orders]
    return all(told)


class Mlp(nn.Module):
    """Writes through views, a buffer, and a region without gradients."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 3)
        self.norm = nn.LayerNorm(16)
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x, y):
        self.steps.add_(1)
        h = torch.relu(self.a(x)) * 1.0
        h[:, :4].mul_(2.0)
        h.view(-1)[3] = 0.5
        h = self.norm(self.b(h)).tanh_()
        with torch.no_grad():
            k = h.mean()
        return F.cross_entropy(self.c(h) * k.detach(), y)


class Convolutions(nn.Module):
    """Batch normalisation in training, pooling, dropout that drops nothing, interpolation."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.b = nn.Conv2d(6, 8, 3, padding="same", groups=2)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.n, self.m = nn.BatchNorm2d(6), nn.GroupNorm(2, 8)
        self.out = nn.Linear(4, 5)

    def forward(self, x, y):
        h = F.max_pool2d(F.silu(self.n(self.a(x))), 2)
        h = F.gelu(self.m(self.b(h)))
        h = F.interpolate(self.up(h), scale_factor=2, mode="bilinear")
        h = F.avg_pool2d(h, 2).mean((2, 3))
        return F.nll_loss(torch.log_softmax(self.out(h), -1), y)


class Transformer(nn.Module):
    """Embedding, causal attention with a mask, tied weights."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(11, 16)
        self.qkv, self.o = nn.Linear(16, 48), nn.Linear(16, 16)
        self.n, self.m = nn.LayerNorm(16), nn.RMSNorm(16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, t):
        h = self.e(t)
        q, k, v = self.qkv(self.n(h)).view(*t.shape, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.o(a.transpose(1, 2).reshape(h.shape))
        h = h + self.down(F.silu(self.up(self.m(h))))
        return F.cross_entropy((h @ self.e.weight.t()).flatten(0, 1), t.flatten())


class Recurrent(nn.Module):
    """An LSTM, and a state written step by step."""

    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(4, 6, batch_first=True)
        self.w = nn.Parameter(torch.randn(6))

    def forward(self, x):
        h, _ = self.r(x)
        s = torch.zeros(h.shape[0], h.shape[1], 6)
        for i in range(h.shape[1]):
            s[:, i] = h[:, i] * self.w + (s[:, i - 1] if i else 0)
        return F.mse_loss(s.cumsum(1), x.repeat(1, 1, 2)[..., :6])


class Detection(nn.Module):
    """Deformable convolution, whose offsets are learnt, and pooled regions."""

    def __init__(self):
        super().__init__()
        self.shift, self.scale = nn.Conv2d(4, 2 * 18, 3, padding=1), nn.Conv2d(4, 2 * 9, 3, padding=1)
        self.a = torchvision.ops.DeformConv2d(4, 6, 3, padding=1, groups=2)
        self.b = torchvision.ops.DeformConv2d(6, 4, 3, stride=2, bias=False)
        self.register_buffer("off", torch.randn(2, 18, 4, 4))

    def forward(self, x, regions):
        h = torch.relu(self.a(x, self.shift(x), torch.sigmoid(self.scale(x))))
        fixed = torchvision.ops.roi_align(h, regions, (3, 2), 0.7, 2, True)
        as_many = torchvision.ops.roi_align(h, regions, 2, 1.2, -1, False)
        return (self.b(h, self.off) ** 2).mean() + fixed.square().mean() + (as_many.sin()).mean()


class Solve(nn.Module):
    """One decomposition for several equations."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        lu, pivots = torch.linalg.lu_factor(x @ x.mT + self.w)
        y = torch.linalg.lu_solve(lu, pivots, x)
        z = torch.linalg.lu_solve(lu, pivots, x.mT, left=False, adjoint=True)
        return y.square().mean() + (torch.linalg.lu(x)[2] + z.mT).sin().mean()


class Attention(nn.Module):
    """Attention with its weights and feed-forward layers, as PyTorch has them; parts put together and written in place."""

    def __init__(self):
        super().__init__()
        self.e = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.g = nn.GRU(8, 5, batch_first=True)
        self.o = nn.Linear(10, 3)

    def forward(self, x, y):
        h = self.e(x)
        steps, _ = self.g(h[:, :3])
        z = torch.cat([steps[:, -1], steps.mean(1)], 1)
        z[:, 1:].mul_(2.0)
        z.masked_fill_(z > 1.5, 0.5)
        return F.cross_entropy(self.o(z), y)


class Mapped(nn.Module):
    """A body with several sums of gradients."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)

    def forward(self, x, y):
        return torch._higher_order_ops.map(lambda t, y: self.a(t).relu() + y, x, y).square().mean()


def programs():
    """(name, module, inputs, sizes that are open for each input, or none, inputs of other sizes)"""
    ints, randn = torch.randint, torch.randn
    mlp = lambda n: (randn(n, 8), ints(0, 3, (n,)))
    images = lambda n: (randn(n, 3, 16, 16), ints(0, 5, (n,)))
    text = lambda n, t: (ints(0, 11, (n, t)),)
    steps = lambda n: (randn(n, 5, 4),)
    tokens = lambda n, t: (randn(n, t, 8), ints(0, 3, (n,)))
    yield "mlp", Mlp(), mlp(5), None, ()
    yield "convolutions", Convolutions(), images(4), None, ()
    yield "transformer", Transformer(), text(2, 7), None, ()
    yield "recurrent", Recurrent(), steps(3), None, ()
    corners = torch.rand(5, 2) * 4
    regions = torch.cat([(torch.arange(5.0) % 2)[:, None], corners, corners + torch.rand(5, 2) * 5], 1)
    yield "detection", Detection(), (torch.randn(2, 4, 9, 9), regions), None, ()
    yield "solve", Solve(), (torch.randn(2, 4, 4),), None, ()
    yield "mapped", Mapped(), (torch.randn(5, 2, 4), torch.randn(3)), None, ()
    one, two = ((0,), (0,)), ((0, 1),)
    yield "mlp, any batch", Mlp(), mlp(5), one, (mlp(2), mlp(9))
    yield "convolutions, any batch", Convolutions(), images(4), one, (images(2), images(3))
    yield "transformer, any batch and length", Transformer(), text(2, 7), two, (text(3, 4), text(5, 9))
    yield "recurrent, any batch", Recurrent(), steps(3), ((0,),), (steps(2), steps(6))
    yield "attention, any batch and length", Attention(), tokens(4, 6), ((0, 1), (0,)), (tokens(2, 5), tokens(7, 9))


def close(ours, theirs):
    size = float(theirs.abs().max()) if theirs.numel() else 0.0
    return torch.allclose(ours, theirs, rtol=1e-4, atol=1e-6 + 1e-5 * size)


def check_program(folder, restride, name, module, args, opened, others):
    """The differences, as lines, and the number of gradients."""
    shapes = opened and tuple(dict.fromkeys(dims, torch.export.Dim.AUTO) for dims in opened)
    exported = torch.export.export(module, args, dynamic_shapes=shapes)
    names = [s.arg.name for s in exported.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    torch.export.save(exported, folder / "program.pt2")
    joint = folder / "joint.pt2"
    needed(restride("grad", folder / "program.pt2", "-o", joint))
    found, count = [], 0
    for inputs in (args, *others):
        more, gradients = check_gradients(folder, restride, joint, copy.deepcopy(module), dict(zip(names, inputs)))
        found += [f"{name}, {[list(a.shape) for a in inputs]}: {f}" for f in more]
        count += gradients
    return found, count


def needed(outcome):
    """Ends the script where a command fails that every program must pass."""
    if not outcome:
        raise SystemExit(f"{outcome.kind}: {outcome.stderr.strip()}")


def check_gradients(folder, restride, joint, module, inputs):
    """The differences at these inputs, and the number of gradients."""
    given = {n: a.clone().requires_grad_(a.is_floating_point()) for n, a in inputs.items()}
    np.savez(folder / "in.npz", **{n: a.numpy() for n, a in inputs.items()})
    needed(restride("run", joint, "--inputs", folder / "in.npz", "--outputs", folder / "out.npz"))
    ours = {k: torch.from_numpy(v) for k, v in load(folder / "out.npz").items()}
    # PyTorch on the file that restride wrote.
    loaded = torch.export.load(joint)
    state = {**loaded.state_dict, **loaded.constants}
    values = [state[s.target] if s.target in state else inputs[s.arg.name] for s in loaded.graph_signature.input_specs]
    with torch.no_grad():
        results = loaded.graph_module(*[v.clone() for v in values])
    specs = loaded.graph_signature.output_specs
    theirs_of_ours = {s.target: r for s, r in zip(specs, results) if "GRADIENT" in s.kind.name}
    loss = module(*given.values())
    loss.backward()
    wrt = {**dict(module.named_parameters()), **{n: t for n, t in given.items() if t.is_floating_point()}}
    # PyTorch has None instead of zeros where the loss does not depend on a tensor.
    expected = {n: torch.zeros_like(t) if t.grad is None else t.grad for n, t in wrt.items()}
    found = [] if close(ours["output.0"], loss.detach()) else ["the loss"]
    for n, g in expected.items():
        if not close(ours[f"grad.{n}"], g):
            found.append(f"grad.{n}")
        if not close(theirs_of_ours[n], g):
            found.append(f"grad.{n} as PyTorch runs the file")
    return found, len(expected)


def check_programs(restride):
    found, count, total = [], 0, 0
    with scratch() as folder:
        for program in programs():
            more, gradients = check_program(folder, restride, *program)
            found += more
            count, total = count + 1, total + gradients
    for line in found:
        print(line)
    print(f"{count} programs, {total} gradients, {len(found)} differ")
    return not found


def main():
    p = parser(__doc__)
    p.add_argument("--ops", metavar="FILE", help="what dump_gradients wrote; - for standard input")
    p.add_argument("--programs", action="store_true", help="the training programs")
    p.add_argument("--restride", help="default: the release build of this checkout")
    o = p.parse_args()
    torch.manual_seed(0)
    good = True
    if o.ops:
        good &= check_ops(sys.stdin if o.ops == "-" else open(o.ops))
    if o.programs:
        good &= check_programs(Restride(o.restride, timeout=600.0))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""The programs of fixtures/examples and fixtures/pt2; make_examples.py exports them.

Each is a module's forward, or a function that returns (module, args[, kwargs]); its name is the file's.
"""

import collections

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

PROGRAMS = {}


def program(folder, layouts=False, args=None, kwargs=dict, **options):
    """Register a program; `layouts`: also wanted from older torch. With `args`, the function is a module's forward on what
    `args` and `kwargs` give; without, it returns (module, args[, kwargs])."""

    def register(function):
        def build():
            module = type(function.__name__, (nn.Module,), {"forward": function})()
            return module, args(), kwargs()

        PROGRAMS[function.__name__] = (folder, layouts, options, build if args else function)
        return function

    return register


# ------------------------------------------------------------------------------- examples


class Attention(nn.Module):
    """Attention over a key-value cache of 16 positions: a prompt of several tokens, then one token at a time."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.register_buffer("k", torch.zeros(1, 2, 16, 4))
        self.register_buffer("v", torch.zeros(1, 2, 16, 4))

    def split(self, x):
        heads = self.qkv(x).view(1, -1, 3, 2, 4).permute(2, 0, 3, 1, 4)
        return heads.unbind(0)

    def attend(self, q, mask):
        y = F.scaled_dot_product_attention(q, self.k, self.v, mask)
        return self.out(y.transpose(1, 2).flatten(2))

    def prefill(self, x):
        q, k, v = self.split(x)
        n = x.shape[1]
        self.k[:, :, :n] = k
        self.v[:, :, :n] = v
        return self.attend(q, torch.arange(16) <= torch.arange(n)[:, None])

    def decode(self, x, position):
        q, k, v = self.split(x)
        self.k.index_copy_(2, position, k)
        self.v.index_copy_(2, position, v)
        return self.attend(q, torch.arange(16) <= position[:, None])


@program("examples", nograd=True)
def llama_decode():
    """One decode step of a small llama over a static key-value cache, as transformers exports it."""
    import models

    d = models.ZOO["hf_cache/llama"][1]()
    return d["mod"].eval(), d["args"], d["kwargs"]


@program("examples")
def box_decode():
    """detectron2's Box2BoxTransform.apply_deltas: results are assigned column by column, with a stride."""

    class ApplyDeltas(nn.Module):
        weights = (10.0, 10.0, 5.0, 5.0)
        scale_clamp = float(np.log(1000.0 / 16))

        def forward(self, deltas, boxes):
            widths = boxes[:, 2] - boxes[:, 0]
            heights = boxes[:, 3] - boxes[:, 1]
            ctr_x = boxes[:, 0] + 0.5 * widths
            ctr_y = boxes[:, 1] + 0.5 * heights
            wx, wy, ww, wh = self.weights
            dx = deltas[:, 0::4] / wx
            dy = deltas[:, 1::4] / wy
            dw = torch.clamp(deltas[:, 2::4] / ww, max=self.scale_clamp)
            dh = torch.clamp(deltas[:, 3::4] / wh, max=self.scale_clamp)
            pred_ctr_x = dx * widths[:, None] + ctr_x[:, None]
            pred_ctr_y = dy * heights[:, None] + ctr_y[:, None]
            pred_w = torch.exp(dw) * widths[:, None]
            pred_h = torch.exp(dh) * heights[:, None]
            pred_boxes = torch.zeros_like(deltas)
            pred_boxes[:, 0::4] = pred_ctr_x - 0.5 * pred_w
            pred_boxes[:, 1::4] = pred_ctr_y - 0.5 * pred_h
            pred_boxes[:, 2::4] = pred_ctr_x + 0.5 * pred_w
            pred_boxes[:, 3::4] = pred_ctr_y + 0.5 * pred_h
            return pred_boxes

    corner = torch.rand(40, 2) * 100
    return ApplyDeltas(), (torch.randn(40, 4 * 5) * 4, torch.cat([corner, corner + 1 + torch.rand(40, 2) * 50], 1))


@program("examples", train=True)
def classifier():
    """A classifier in training mode with its loss: what `restride grad` makes a training step of."""

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(1, 8, 3, padding=1),
                nn.BatchNorm2d(8),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(2),
                nn.Conv2d(8, 16, 3, padding=1),
                nn.BatchNorm2d(16),
                nn.ReLU(inplace=True),
                nn.AdaptiveAvgPool2d(1),
            )
            self.head = nn.Linear(16, 4)

        def forward(self, images, labels):
            return F.cross_entropy(self.head(self.features(images).flatten(1)), labels)

    return Classifier(), (torch.randn(16, 1, 12, 12), torch.randint(0, 4, (16,)))


@program("examples", train=True)
def batchnorm_train():
    """A convolutional network in training mode: BatchNorm's running statistics and counters are updated."""

    class Block(nn.Sequential):
        def __init__(self, i, o):
            super().__init__(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

    net = nn.Sequential(
        Block(3, 8),
        nn.MaxPool2d(2),
        Block(8, 16),
        Block(16, 16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    return net, (torch.randn(4, 3, 16, 16),)


@program("examples")
def vit_small():
    """A small vision transformer: patch convolution, class token, attention through scaled_dot_product_attention."""

    class Attention(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads, self.qkv, self.proj = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

        def forward(self, x):
            b, n, c = x.shape
            q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))

    class Block(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.norm1, self.attn, self.norm2 = nn.LayerNorm(dim), Attention(dim, heads), nn.LayerNorm(dim)
            self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

        def forward(self, x):
            x = x + self.attn(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class ViT(nn.Module):
        def __init__(self, size=32, patch=8, dim=32, depth=3, heads=4, classes=10):
            super().__init__()
            self.patch = nn.Conv2d(3, dim, patch, patch)
            self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
            self.pos = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim) * 0.02)
            self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
            self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
            return self.head(self.norm(self.blocks(x))[:, 0])

    return ViT().eval(), (torch.randn(1, 3, 32, 32),)


# ------------------------------------------------------------------------ small programs


@program("pt2", layouts=True)
def kv_cache():
    """Key-value caches written by index_copy_, by an indexed assignment and by copy_ into a slice."""

    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            for name in "kvw":
                self.register_buffer(name, torch.zeros(1, 2, 16, 4))
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x, pos):
            q, k, v = self.qkv(x).view(1, 1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
            self.k.index_copy_(2, pos, k)
            self.v[:, :, pos] = v
            self.w[:, :, 2:3].copy_(v)
            self.steps.add_(1)
            mask = (torch.arange(16) <= pos)[None]
            y = F.scaled_dot_product_attention(q, self.k, self.v + self.w, attn_mask=mask)
            return self.out(y.transpose(1, 2).reshape(1, 1, 8))

    return Cache(), (torch.randn(1, 1, 8), torch.tensor([3]))


@program("pt2", layouts=True)
def cond_branch():
    """cond with captured weights; the branches differ in what they read."""

    class Cond(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: self.l(x).sin(), lambda x: x.cos() - self.l.bias, (x,))

    return Cond(), (torch.randn(2, 4),)


@program("pt2")
def while_count():
    """while_loop whose trip count depends on data."""
    from torch._higher_order_ops.while_loop import while_loop

    class While(nn.Module):
        def forward(self, i, x):
            return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5 + i), (i, x))

    return While(), (torch.tensor(1), torch.randn(3))


@program("pt2")
def scan_cumulative():
    """scan: a carried state and stacked results."""
    from torch._higher_order_ops.scan import scan

    class Scan(nn.Module):
        def forward(self, h, xs):
            return scan(lambda h, x: (h * 0.9 + x, (h * x).sin()), h, xs, dim=0)

    return Scan(), (torch.randn(3), torch.randn(6, 3))


@program("pt2")
def map_rows():
    """map over the rows of an input, with an operand that every row reads."""
    from torch._higher_order_ops.map import map as tmap

    class Map(nn.Module):
        def forward(self, xs, y):
            return tmap(lambda x, y: (x @ y).relu(), xs, y)

    return Map(), (torch.randn(5, 2, 3), torch.randn(3, 3))


@program("pt2", layouts=True, dynamic=lambda: ({0: Dim("batch", min=2, max=64)},))
def dynamic_batch():
    """A symbolic batch of 2 to 64 that goes through views, a reduction and a factory."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 8), nn.Linear(8, 4)

        def forward(self, x):
            y = self.b(self.a(x.reshape(x.shape[0], -1)).relu_())
            return y - y.mean(0), torch.arange(x.shape[0]) + y.shape[0]

    return Net(), (torch.randn(3, 3, 4),)


def _half_guard():
    half = Dim("half", min=1, max=16)
    return ({0: 2 * half}, {0: half})


@program("pt2", dynamic=_half_guard, args=lambda: (torch.randn(6, 2), torch.randn(3, 2)))
def guarded_shapes(self, x, y):
    """Sizes tied to each other (2h and h): the program carries a guard that a run must enforce."""
    return x.view(2, -1, x.shape[1]).sum(0) + y


@program("pt2", dynamic=lambda: (None, Dim.DYNAMIC), args=lambda: (torch.randn(3), 5))
def sym_int_input(self, x, n):
    """A user input that is a symbolic integer, and sizes made of it."""
    return x * n, torch.zeros(n + 1) + n, n * 2


@program("pt2", args=lambda: (torch.randn(3), 2, 0.5, True, "sum", None))
def scalars(self, x, n: int, f: float, flag: bool, mode: str, nothing=None):
    """Inputs that are int, float, bool, str and None constants; outputs that are int, float, bool and None."""
    y = x * n + f if flag else x
    y = y.sum() if mode == "sum" else y
    return y, n, None, f, flag, x


Pair = collections.namedtuple("Pair", "left right")


@program("pt2")
def nested_pytree():
    """Dicts, lists and tuples in and out, keyword inputs, one output twice and one that is an input."""

    class Nested(nn.Module):
        def forward(self, items, *, table):
            a, (b, c) = items["a"], items["bc"]
            d = a + table["t"][0]
            return {"sum": d, "list": [b * c, (d, b)], "input": c}

    items = {"a": torch.randn(2), "bc": [torch.randn(2), torch.randn(2)]}
    return Nested(), (items,), {"table": {"t": (torch.randn(2),)}}


@program("pt2", layouts=True)
def tied_weights():
    """Tied parameters, buffers that are views of one another, a non-persistent buffer, a constant, infinities."""

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(10, 4)
            self.o = nn.Linear(4, 10, bias=False)
            self.o.weight = self.e.weight
            b = torch.randn(6, 4)
            self.register_buffer("b", b)
            self.register_buffer("bt", b.t())
            self.register_buffer("rows", b[2:4])
            self.register_buffer("np", torch.randn(4), persistent=False)
            self.c = torch.tensor([1.0, 2.0])
            self.h = nn.Parameter(torch.randn(3).half())

        def forward(self, x):
            logits = self.o(self.e(x)) + self.c.sum()
            logits = logits.masked_fill(logits < 0, float("-inf")).clamp(max=float("inf"))
            return (
                logits,
                self.bt.sum(1) + self.rows.sum() + self.np.sum() + self.h.float().sum(),
                self.b[1:9223372036854775807],
            )

    return Tied(), (torch.tensor([1, 2]),)


@program("pt2", train=True, layouts=True)
def buffer_step():
    """Training-mode BatchNorm1d and an integer counter: mutated buffers of two dtypes."""

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.l, self.bn = nn.Linear(4, 6), nn.BatchNorm1d(6)
            self.register_buffer("seen", torch.zeros((), dtype=torch.int32))

        def forward(self, x):
            self.seen += x.shape[0]
            return F.hardtanh_(self.bn(self.l(x)))

    return Step(), (torch.randn(5, 4),)


@program("pt2", nograd=True)
def parameter_step():
    """A step of gradient descent: parameters mutated in place, one of them through a view."""

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(3))

        def forward(self, x, g):
            y = F.linear(x, self.w, self.b)
            self.w.sub_(0.1 * g.t() @ x)
            self.w[0].mul_(0.5)
            self.b.sub_(g.sum(0), alpha=0.1)
            return y

    return Step(), (torch.randn(2, 4), torch.randn(2, 3))


@program("pt2", args=lambda: (torch.randn(4, 4), torch.randn(4)))
def input_mutation_views(self, x, y):
    """Inputs written through slices, a transpose, a flat view with a step; an unfolded and a diagonal view returned."""
    x[:, 1:3].mul_(2)
    x.transpose(0, 1)[0].add_(y)
    z = x.view(-1)
    z[::2].zero_()
    y.relu_()
    return z.unfold(0, 4, 2).sum(-1), x.diagonal()


@program("pt2")
def half_types():
    """bf16 and f16 weights and results beside f32."""

    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.b, self.h = nn.Linear(8, 4, dtype=torch.bfloat16), nn.Parameter(torch.randn(4).half())

        def forward(self, x):
            y = self.b(x.to(torch.bfloat16))
            return y, x[:, :4].half() * self.h, y.float() + x[:, 4:]

    return Half(), (torch.randn(2, 8),)


@program(
    "pt2",
    args=lambda: (torch.randn(4, 6), torch.randn(2, 20)),
    dynamic=lambda: ({0: 2 * Dim("half", min=2, max=8)}, None),
)
def number_out_of_autocast(self, x, y):
    """Regions of wrap_with_autocast, one of which gives the other a number besides a tensor; parts of symbolic sizes."""
    with torch.autocast("cpu", enabled=False):
        start = -x.shape[0]
        z = y[:, start:] * 2
    with torch.autocast("cpu", enabled=False):
        w = y[:, start:].sum(1)
    return z.sum(1) + w, x.chunk(2)[0], torch.tensor_split(x, 3, 0)[1]


@program("pt2", train=True)
def grad_mode_and_autocast():
    """Subgraphs of wrap_with_set_grad_enabled and wrap_with_autocast, a write inside the first."""

    class Modes(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)
            self.register_buffer("calls", torch.zeros(2))

        def forward(self, x):
            with torch.no_grad():
                self.calls.add_(1)
                y = self.l(x).sin()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                z = self.l(x)
            return y + z

    return Modes(), (torch.randn(2, 4),)


@program("pt2", args=lambda: (torch.randn(3, dtype=torch.complex64), torch.randn(3, 2)))
def complex_views(self, z, pairs):
    """Complex numbers: real and imaginary parts written through views, a lazy conjugate, view_as_complex."""
    z = z.clone()
    z.real.mul_(2)
    torch.view_as_real(z)[..., 1].add_(1)
    return z.conj() * torch.view_as_complex(pairs), z.imag, z.abs()


@program("pt2")
def strided_inputs():
    """Sample inputs and weights that are not contiguous: transposed, expanded, with gaps, channels last."""

    class Strided(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
            self.register_buffer("e", torch.randn(4, 1, 1).expand(4, 6, 6))

        def forward(self, x, t, g):
            return self.c(x) + self.e, t + t.t(), (g * 2).contiguous()

    image = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    return Strided(), (image, torch.randn(3, 3).t(), torch.randn(4, 6)[:, ::2])


@program("pt2", args=lambda: (torch.randn(0, 3), torch.tensor(2.5)))
def empty_and_scalar(self, e, s):
    """Sizes of zero and no dimensions at all."""
    cat = torch.cat([e, s.expand(2, 3)])
    return cat, e.sum(), e.sum(1), s * 2, e @ torch.ones(3, 2), s.view(1)[0:0]


@program("pt2", args=lambda: (torch.randn(4, 3), torch.tensor(2)))
def data_dependent(self, x, n):
    """item() makes an unbacked symbol with checks; nonzero and a mask make unbacked sizes."""
    u = n.item()
    torch._check(u >= 1)
    torch._check(u <= x.shape[0])
    return x[:u].sum(0), (x > 0).nonzero(), x[x > 0], torch.zeros(u) + u


@program("pt2", args=lambda: (torch.randint(0, 3, (3, 4)),))
def learnt_columns(self, x):
    """Results that share memory or stand in columns, which the exporter does not see."""
    rows, columns = torch.where(x > 0)
    values, inverse = torch.unique(x, dim=1, return_inverse=True)
    return rows, columns, values, inverse, torch.unique_consecutive(x, dim=1)


class ScaledWeight(torch.Tensor):
    """A quantized weight as torchao's are: bytes and a scale for each row."""

    @staticmethod
    def __new__(cls, bytes, scale):
        return torch.Tensor._make_wrapper_subclass(cls, bytes.shape, dtype=scale.dtype, requires_grad=False)

    def __init__(self, bytes, scale):
        self.bytes, self.scale = bytes, scale

    def __tensor_flatten__(self):
        return ["bytes", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, meta, size, stride):
        return cls(inner["bytes"], inner["scale"])

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is F.linear:
            x, weight, bias = args
            return x @ weight.bytes.t().to(x.dtype) * weight.scale + bias
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function in (torch.ops.aten.detach.default, torch.ops.aten.clone.default, torch.ops.aten.alias.default):
            return cls(args[0].bytes, args[0].scale)
        if function is torch.ops.aten.equal.default:
            return all(torch.equal(getattr(args[0], inner), getattr(args[1], inner)) for inner in ("bytes", "scale"))
        raise NotImplementedError(f"{function}")


torch.serialization.add_safe_globals([ScaledWeight])


@program("pt2")
def tensor_subclass():
    """A weight that is a tensor subclass, used twice; its inner tensors are accessed by name."""

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            bytes = torch.randint(-9, 9, (4, 4), dtype=torch.int8)
            weight = ScaledWeight(bytes, torch.rand(4))
            self.linear.weight = nn.Parameter(weight, requires_grad=False)

        def forward(self, x):
            return self.linear(self.linear(x).relu())

    return M(), (torch.randn(3, 4),)


@program("pt2", args=lambda: (torch.randn(6, 3), torch.tensor([-4, -1])))
def learnt_bounds(self, x, n):
    """Bounds of views that a run learns, and that count from the end; tensor_split at the indices of a tensor."""
    y = x * 1
    y[n[0].item() : n[1].item()].mul_(2)
    first, second, third = torch.tensor_split(y, n)
    second.add_(100)
    return y, x[n[0].item() :], first, second, third


@program("pt2", args=lambda: (torch.randn(3, 4),))
def multi_output(self, x):
    """Operators with several results, some of them unused; views that share one base; a list of results."""
    a, b, c = x.split([1, 2, 1], 1)
    values, _ = x.topk(2)
    _, where = x.max(1)
    b.mul_(10)
    return [a + 1, b, c], values, where, torch.stack(x.unbind(0), 1), torch.var_mean(x, 1)


@program("pt2", random=True, train=True, args=lambda: (torch.randn(4, 4),))
def random_dropout(self, x):
    """Dropout in training mode and other draws: outputs differ from run to run in PyTorch."""
    return (F.dropout(x, 0.5) + torch.rand_like(x), torch.bernoulli(torch.full_like(x, 0.5)), torch.randint(0, 5, (3,)))


@program("pt2", decompose=True, train=True)
def functional_batchnorm():
    """Functionalized by PyTorch itself: no write left, buffer mutations declared as outputs."""
    return nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()), (torch.randn(2, 2, 5, 5),)


@program("pt2", decompose=True, args=lambda: (torch.randn(2, 3), torch.randn(3)))
def functional_input_mutation(self, x, y):
    """Functionalized by PyTorch itself: a user input's mutation declared as an output."""
    x[0].add_(y)
    return x.sum(), y * 2


@program("pt2", args=lambda: (torch.tensor([-1.0, 2.0, 3.0]), torch.tensor([3, 4])))
def pinned_number(self, x, n):
    """Checks that pin numbers: the file has constants for them, in place of what it learns."""
    a, b = n[0].item(), n[1].item()
    torch._check(a == 3)
    torch._check(a * b <= 16)
    found = x[x > 0]
    torch._check(found.shape[0] == 2)
    torch.ops.aten._assert_async.msg(n[1] == 4, "the second number is four")
    return x * a + b, found * 2


@program("pt2", args=lambda: (torch.tensor([0.5, 2.0]),))
def nested_branches(self, x):
    """cond in the branches of cond: each module names its own graphs from 0."""

    def positive(x):
        return torch.cond(x[0] > 1, lambda x: x * 2, lambda x: x + 1, (x,))

    def negative(x):
        return torch.cond(x[0] > -1, lambda x: x * 4, lambda x: x - 1, (x,))

    return torch.cond(x.sum() > 0, positive, negative, (x,))


@program("pt2", decompose=True, args=lambda: (torch.zeros(2, 3, 4), torch.tensor(-2), torch.ones(3)))
def indexed_by_a_tensor(self, k, position, v):
    """Written at an index off a 0-d tensor, and functionalized by PyTorch: where the view starts has no number."""
    k = k.clone()
    k[0][:, position] = v
    return k


@program("pt2", default=torch.float64, args=lambda: (torch.arange(4, dtype=torch.float64),))
def default_double(self, x):
    """Exported where float64 is the default: factories and quotients of integers are of that type."""
    steps = torch.arange(0, 2, 0.5) + torch.ones(4)
    return steps + x, torch.arange(3) / 2, torch.full((2,), 1.5), torch.sqrt(torch.arange(3))


@program("pt2", args=lambda: (torch.randn(5, 3), torch.randn(5, 3)))
def mapped_by_vmap(self, x, w):
    """vmap as it is traced, of two operands and with one that is the same for all."""
    rows = torch.vmap(torch.dot)(x, w)
    return rows, torch.vmap(lambda a: a * w[0] + a.sum())(x)


@program(
    "pt2", dynamic=lambda: ({0: Dim.AUTO}, {0: Dim.AUTO}), args=lambda: (torch.randn(3, 2), torch.tensor([4, 0, 7]))
)
def written_at_positions(self, keys, positions):
    """A write whose two sizes the program does not say are equal."""
    cache = keys.new_zeros(8, 2)
    cache[positions] = keys
    return cache


@program("pt2", dynamic=lambda: ({0: Dim.AUTO, 1: Dim.AUTO},), args=lambda: (torch.randn(4, 6),))
def mapped_by_vmap_of_sizes(self, x):
    """vmap whose sizes are computed between its nodes, before they are used behind it."""
    y = torch.vmap(torch.outer)(x, x)
    return y * torch.arange(y.numel()).reshape(y.shape)


@program("pt2")
def scanned_by_association():
    """associative_scan, kept as one operator and taken apart for vmap."""
    from torch._higher_order_ops.associative_scan import associative_scan

    class Scanned(nn.Module):
        def forward(self, x):
            sums = associative_scan(lambda a, b: a + b, x, 0)
            return sums, associative_scan(lambda a, b: a * b, x, 1, combine_mode="generic")

    return Scanned(), (torch.randn(5, 3),)


@program("pt2", decompose=True, args=lambda: (torch.eye(3) * 2 + 0.25, torch.randn(3, 2)))
def checked_factors(self, a, b):
    """Decompositions of linear algebra that check what came of it, as an effect."""
    return torch.linalg.inv(a) @ b, torch.linalg.cholesky(a)


@program("pt2", args=lambda: (torch.arange(3.0).expand(4, 3), torch.ones(1)))
def expanded_sample(self, x, w):
    """Exported with an expanded tensor, which later calls need not give: whether a reshape copies depends on what is given."""
    rows = x.reshape(-1)
    q = x * w
    q.t()[0].mul_(3)
    w.add_(rows.sum())
    chosen = torch.cond(x.sum() > 0, lambda x: x.reshape(-1) + 1, lambda x: x.t().reshape(-1) * 2, (x,))
    return q, rows.view(3, 4), x.t().contiguous(), chosen


@program("pt2", args=lambda: (torch.tensor([1, 2], dtype=torch.int32), torch.tensor([0.5, 0.25])))
def promoted_types(self, x, y):
    """Element types that PyTorch finds while it traces leave calls behind that have no tensors."""
    both = torch.promote_types(x.dtype, y.dtype)
    return x.to(both) + y, torch.zeros(2, dtype=torch.result_type(x, 1.5)) + x


@program("pt2", decompose=True, args=lambda: (torch.tensor([[-1.0, 2.0, -3.0], [0.5, -0.5, 0.0]]),))
def functionalized_noise(self, x):
    """PyTorch's functional form of rrelu: the operator returns its noise instead of writing it."""
    noise = torch.empty_like(x).fill_(2)
    y = torch.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.3, False)
    return y, noise


@program(
    "pt2", args=lambda: (torch.randn(5, 3), torch.randn(2, 3, 4), torch.randn(5, 4), torch.tensor([True, True, False]))
)
def three_factors(self, x, w, y, flags):
    """Operators behind Bilinear and anomaly checks: a summed product of three, and whether all are true."""
    product = torch.ops.aten._trilinear(x, w, y, [1, 3], [0], [1, 2], [2, 3])
    return product, torch.ops.aten._is_all_true(flags), torch.ops.aten._is_any_true(flags)

#!/usr/bin/env python3
"""Write archives of an old PyTorch, with inputs and results as .npz, to a folder: python old_torchscript.py OUTDIR

fixtures/torchscript/old has some of those that PyTorch 1.4.0, 1.5.1, 1.6.0 (under Python 3.7), 1.7.1, 1.9.1 (3.8) and 1.11.0 (3.9) wrote,
installed from PyPI with NumPy before 1.24. This file is for those versions: it uses nothing newer.
"""

import os
import sys

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from typing import List, Dict, Optional, Tuple, NamedTuple

out = sys.argv[1]
tag = ".".join(torch.__version__.split("+")[0].split(".")[:2])
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(4 * 3 * 3, 5)

    def forward(self, x):
        x = self.pool(F.relu(self.bn(self.conv(x)), inplace=True))
        x = F.interpolate(x, size=(3, 3), mode="bilinear", align_corners=False)
        x = self.drop(x.view(x.size(0), -1))
        return F.log_softmax(self.fc(x), dim=1)


class Rec(nn.Module):
    def __init__(self, kind):
        super(Rec, self).__init__()
        self.rnn = getattr(nn, kind)(3, 4, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        y, h = self.rnn(x)
        return y


class Control(nn.Module):
    __constants__ = ["n"]

    def __init__(self):
        super(Control, self).__init__()
        self.n = 3
        self.w = nn.Parameter(torch.randn(3, 3))
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x, k: int, mask: Optional[torch.Tensor]):
        parts: List[torch.Tensor] = []
        for i in range(self.n):
            if i % 2 == 0:
                parts.append(x * i)
            else:
                parts.append(x - k)
        y = torch.stack(parts).sum(0)
        for layer in self.layers:
            y = torch.tanh(layer(y))
        if mask is not None:
            y = y.masked_fill(mask, 0.0)
        n = 0
        while n < k:
            y = y + self.w[n % 3]
            n += 1
        y[:, 0] = y[:, 1] / self.scale
        assert y.size(1) == 3, "three columns"
        d: Dict[str, torch.Tensor] = {"a": y, "b": y.t().contiguous()}
        return d["a"], d["b"], (y > 0).sum().to(torch.float)


class Data(nn.Module):
    def forward(self, x):
        if bool(x.sum() > 0):
            y = x * 2
        else:
            y = x - 1
        while bool(y.abs().max() < 100):
            y = y * 3
        return y


class Ints(nn.Module):
    """Operators whose meaning changed."""

    def forward(self, x, i):
        full = torch.full([2, 2], 1.5)
        lin = torch.linspace(0.0, 1.0, 5)
        a = x / 2.0
        return (
            a,
            lin,
            full,
            F.gelu(x),
            i // 2 if hasattr(torch, "nope") else torch.floor_divide(i, 2),
            i.to(torch.float) / 4,
        )


class IntDiv(nn.Module):
    def forward(self, i, j):
        return i / j if INTDIV else i * j


class FullInt(nn.Module):
    def forward(self, x):
        return torch.full([2, 3], 4) + x


class Boxes(nn.Module):
    def forward(self, x):
        x = x.clone()
        x[:, 0].clamp_(min=0, max=4)
        x[:, 1:3] = x[:, 1:3] * 2
        n = x.shape[0]
        return x.view(n, -1), torch.arange(n) + x.size(1), x.new_zeros(n, 2)


class Point(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


class Tup(nn.Module):
    def inner(self, x):
        # type: (torch.Tensor) -> Tuple[torch.Tensor, List[int]]
        return x + 1, [1, 2]

    def forward(self, x):
        y, l = self.inner(x)
        p = Point(y, x)
        s = "pos" if l[0] > 0 else "neg"
        z = p.a if s == "pos" else p.b
        return z, [z + v for v in l]


class Attention(nn.Module):
    def __init__(self):
        super(Attention, self).__init__()
        self.mha = nn.MultiheadAttention(8, 2)

    def forward(self, x):
        y, w = self.mha(x, x, x)
        return y, w


INTDIV = tag in ("1.4",)


def flat(v):
    if isinstance(v, (list, tuple)):
        return [l for i in v for l in flat(i)]
    if isinstance(v, dict):
        return [l for i in v.values() for l in flat(i)]
    return [v]


cases = [
    ("net", Net().eval(), (torch.randn(2, 2, 6, 6),), "ts"),
    ("lstm", Rec("LSTM").eval(), (torch.randn(2, 4, 3),), "ts"),
    ("gru", Rec("GRU").eval(), (torch.randn(2, 4, 3),), "ts"),
    ("rnn", Rec("RNN").eval(), (torch.randn(2, 4, 3),), "ts"),
    (
        "control",
        Control().eval(),
        (torch.randn(2, 3), 2, torch.tensor([[True, False, False], [False, True, False]])),
        "s",
    ),
    ("data", Data(), (torch.rand(2, 2),), "s"),
    ("ints", Ints(), (torch.randn(3), torch.tensor([5, 7, -3])), "t"),
    ("intdiv", IntDiv(), (torch.tensor([5, 7, -3]), torch.tensor([2, 2, 2])), "ts"),
    ("fullint", FullInt(), (torch.randn(2, 3),), "ts"),
    ("boxes", Boxes(), (torch.randn(3, 4) * 5,), "ts"),
    ("tup", Tup(), (torch.randn(2),), "s"),
    ("attention", Attention().eval(), (torch.randn(3, 2, 8),), "ts"),
]
for name, m, inputs, how in cases:
    for h in how:
        label = "%s_%s_%s" % (tag, name, {"t": "traced", "s": "scripted"}[h])
        try:
            with torch.no_grad():
                made = torch.jit.trace(m, inputs, check_trace=False) if h == "t" else torch.jit.script(m)
                made.save(os.path.join(out, label + ".pt"))
                loaded = torch.jit.load(os.path.join(out, label + ".pt"))
                args = [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs]
                want = flat(loaded(*args))
        except Exception as e:
            print(label, "torch refuses", " ".join(str(e).split())[:150])
            continue
        try:
            names = [a.name for a in loaded.forward.schema.arguments[1:]]
        except Exception:
            names = None
        if names is None:
            import inspect

            names = list(inspect.signature(m.forward).parameters)
        np.savez(
            os.path.join(out, label + ".inputs.npz"),
            **{n: (i.numpy() if isinstance(i, torch.Tensor) else np.array(i)) for n, i in zip(names, inputs)},
        )
        np.savez(
            os.path.join(out, label + ".outputs.npz"),
            **{
                "output.%d" % k: (w.numpy() if isinstance(w, torch.Tensor) else np.array(w)) for k, w in enumerate(want)
            },
        )
        print(label, "made")

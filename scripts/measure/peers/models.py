"""Eleven models whose memory matters, with random weights, and their export with eager PyTorch's results.

  models.py DIR [NAME ...]    (with the python of scripts/torch-env.sh)

Four of torchvision's convolutional networks and two of its transformers, a U-Net, one step of a decoder whose caches are buffers,
written in three idioms, and a recurrence that fills its output row by row. f32, batch 1, seed 0.

Writes the files that scripts/check/compare.py reads: NAME.pt2 as torch.export leaves it, NAME.inputs.npz with the inputs by name,
and NAME.expected.npz with output.I, and input.NAME and buffer.NAME where the run changed them.
"""

import copy
import math
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib.exported import reference

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# ---------------------------------------------------------------------------------- U-Net


def double_convolution(channels_in, channels):
    def half(i):
        return [nn.Conv2d(i, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]

    return nn.Sequential(*half(channels_in), *half(channels))


class UNet(nn.Module):
    """Each level's values are kept, and joined by `cat` on the way up."""

    def __init__(self, widths=(16, 32, 64, 128), channels_in=3, classes=2):
        super().__init__()
        self.down, self.up, self.join = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        width = channels_in
        for w in widths:
            self.down.append(double_convolution(width, w))
            width = w
        self.middle = double_convolution(width, 2 * width)
        width *= 2
        for w in reversed(widths):
            self.up.append(nn.ConvTranspose2d(width, w, 2, 2))
            self.join.append(double_convolution(2 * w, w))
            width = w
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for level in self.down:
            x = level(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join, skip in zip(self.up, self.join, reversed(kept)):
            x = join(torch.cat([skip, up(x)], 1))
        return self.head(x)


# ---------------------------------------------------------------------------------- decoder


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    """Attention over a cache of keys and values, which takes this step's by one of three idioms."""

    def __init__(self, width, heads, length, idiom, start):
        super().__init__()
        self.heads, self.size, self.length, self.idiom, self.start = heads, width // heads, length, idiom, start
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.register_buffer("keys", torch.zeros(1, heads, length, self.size))
        self.register_buffer("values", torch.zeros(1, heads, length, self.size))

    def write(self, new_keys, new_values, position):
        steps, pairs = new_keys.shape[2], ((self.keys, new_keys), (self.values, new_values))
        if self.idiom == "index":
            for cache, new in pairs:
                cache[:, :, position] = new
        elif self.idiom == "slice":
            for cache, new in pairs:
                cache[:, :, self.start : self.start + steps] = new
        elif self.idiom == "narrow":
            at = position[0].item()
            torch._check(at >= 0)
            torch._check(at + steps <= self.length)
            for cache, new in pairs:
                cache.narrow(2, at, steps).copy_(new)
        else:
            raise ValueError(self.idiom)

    def forward(self, x, position, cos, sin, mask):
        batch, steps, width = x.shape
        q, k, v = (f(x).view(batch, steps, self.heads, self.size).transpose(1, 2) for f in (self.q, self.k, self.v))

        def rotate(t):
            a, b = t[..., : self.size // 2], t[..., self.size // 2 :]
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

        q, k = rotate(q), rotate(k)
        self.write(k, v, position)
        scores = (q @ self.keys.transpose(-1, -2)) / math.sqrt(self.size) + mask
        return self.o((scores.softmax(-1) @ self.values).transpose(1, 2).reshape(batch, steps, width))


class Block(nn.Module):
    def __init__(self, width, *attention):
        super().__init__()
        self.before, self.between = RootMeanSquare(width), RootMeanSquare(width)
        self.attention = Attention(width, *attention)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x, *position):
        x = x + self.attention(self.before(x), *position)
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    """One step of decoding with caches of `length` positions."""

    def __init__(self, idiom, words=4096, width=256, layers=4, heads=8, length=512, start=17):
        super().__init__()
        self.length, size = length, width // heads
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads, length, idiom, start) for _ in range(layers))
        self.norm, self.head = RootMeanSquare(width), nn.Linear(width, words, bias=False)
        angles = torch.outer(torch.arange(length).float(), 1 / 10000 ** (torch.arange(0, size, 2).float() / size))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, token, position):
        x, cos, sin = self.embedding(token), self.cos[position], self.sin[position]
        mask = torch.where(torch.arange(self.length)[None, :] <= position[:, None], 0.0, -1e9)
        for block in self.blocks:
            x = block(x, position, cos, sin, mask)
        return self.head(self.norm(x))


# ---------------------------------------------------------------------------------- recurrence


class Recurrence(nn.Module):
    """An unrolled recurrent network that writes each step into its row of the output."""

    def __init__(self, steps=64, inputs=128, width=256):
        super().__init__()
        self.steps, self.width = steps, width
        self.x, self.h = nn.Linear(inputs, width), nn.Linear(width, width, bias=False)

    def forward(self, x, h):
        out = x.new_zeros(x.shape[0], self.steps, self.width)
        for t in range(self.steps):
            h = torch.tanh(self.x(x[:, t]) + self.h(h))
            out[:, t] = h
        return out, h


# ---------------------------------------------------------------------------------- all of them


def vision(name):
    def build():
        import torchvision

        image = torch.randn(1, 3, 224, 224)
        return getattr(torchvision.models, name)(weights=None), (image,)

    return build


def decoder(idiom):
    return lambda: (Decoder(idiom), (torch.randint(0, 4096, (1, 1)), torch.tensor([17])))


MODELS = {
    name: vision(name)
    for name in ("resnet18", "mobilenet_v3_small", "shufflenet_v2_x1_0", "densenet121", "vit_b_16", "swin_t")
}
MODELS["unet"] = lambda: (UNet(), (torch.randn(1, 3, 128, 128),))
MODELS |= {f"decoder_{idiom}": decoder(idiom) for idiom in ("index", "slice", "narrow")}
MODELS["recurrence"] = lambda: (Recurrence(), (torch.randn(4, 64, 128), torch.zeros(4, 256)))


def export(name, directory):
    torch.manual_seed(0)
    module, args = MODELS[name]()
    module.eval()
    with torch.no_grad():
        ep = torch.export.export(module, copy.deepcopy(args))
        names = [s.arg.name for s in ep.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        given, expected = reference(module, args, {}, names)
    stem = os.path.join(directory, name)
    torch.export.save(ep, stem + ".pt2")
    np.savez(stem + ".inputs.npz", **given)
    np.savez(stem + ".expected.npz", **expected)


if __name__ == "__main__":
    for chosen in sys.argv[2:] or MODELS:
        export(chosen, sys.argv[1])

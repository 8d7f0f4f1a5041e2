"""Small programs that mutate, which other compilers are tried on; run.py exports them.

Each is a module's forward, or a function that returns (module, two calls' arguments[, dynamic_shapes]); its name is the
program's. The second call has other values than the first, so that state that was lost, or was baked into the compiled
program, shows.
"""

import torch
from torch import nn

PROGRAMS = {}


def built(build):
    PROGRAMS[build.__name__] = build
    return build


def program(calls, base=nn.Module):
    """Register a forward, of a module like `base`, on the arguments that `calls` gives."""

    def register(forward):
        PROGRAMS[forward.__name__] = lambda: (type(forward.__name__, (base,), {"forward": forward})(), calls())
        return forward

    return register


class Cache(nn.Module):
    """One key cache of 16 positions."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 2, 16, 4))


def kv_and_query():
    return torch.randn(1, 2, 1, 4), torch.randn(1, 2, 1, 4)


@program(lambda: [(torch.randn(2, 3, 4), torch.randn(2, 3, 4)) for _ in range(2)])
def slice_assign(self, x, y):
    """A column of an intermediate is assigned; an alias of it is returned too."""
    y = y + 3
    y[:, 0] = x[:, 0]
    return y, y.view(-1)


@program(lambda: [(torch.randn(2, 3, 4), torch.randn(2, 3, 4)) for _ in range(2)])
def mutated_input(self, x, y):
    """A column of an input is assigned, which the caller sees."""
    y[:, 0] = x[:, 0]
    return y * 2


@program(lambda: [(kv, torch.tensor([at]), q) for at in (3, 5) for kv, q in [kv_and_query()]], Cache)
def cache_index_put(self, kv, pos, q):
    """A key cache written at positions that a tensor gives."""
    self.k[:, :, pos] = kv
    return q @ self.k.transpose(-1, -2)


@program(lambda: [kv_and_query() for _ in range(2)], Cache)
def cache_slice(self, kv, q):
    """A key cache written at a constant position."""
    self.k[:, :, 3:4] = kv
    return q @ self.k.transpose(-1, -2)


@program(lambda: [(kv, torch.tensor([at]), q) for at in (3, 5) for kv, q in [kv_and_query()]], Cache)
def cache_narrow(self, kv, pos, q):
    """A key cache written at a position that is read from a tensor as a number."""
    p = pos[0].item()
    torch._check(p >= 0)
    torch._check(p + 1 <= 16)
    self.k.narrow(2, p, 1).copy_(kv)
    return q @ self.k.transpose(-1, -2)


class Count(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", torch.zeros(1))


@program(lambda: [(torch.randn(3),) for _ in range(2)], Count)
def counter(self, x):
    """A buffer that counts the calls."""
    self.c.add_(1)
    return x + self.c


@program(lambda: [(torch.randn(2, 4, 8),) for _ in range(2)])
def written_steps(self, x):
    """A recurrence whose steps are written into columns of its result."""
    out, h = x.new_zeros(2, 4, 8), x[:, 0]
    for t in range(4):
        h = torch.tanh(h + x[:, t])
        out[:, t] = h
    return out


class Written(nn.Module):
    """Writes into regions of a new tensor."""

    def __init__(self, write):
        super().__init__()
        self.write = write

    def forward(self, x, v):
        y = x + 1
        self.write(y, v)
        return y * 2


def writing(x, v):
    """A program that writes regions of a tensor of sizes `x`, given values of sizes `v`."""

    def declare(write):
        PROGRAMS[write.__name__] = lambda: (Written(write), [(torch.randn(x), torch.randn(v)) for _ in range(2)])
        return write

    return declare


@writing((4, 5), (2, 2))
def slice_2d(y, v):
    """A block of rows and columns is assigned."""
    y[1:3, 0:2] = v


@writing((4, 5), (1,))
def row_tail(y, v):
    """The rest of a row is set to a number."""
    y[0, 1:] = 5


@writing((2, 3, 4, 5), (2,))
def nested_views(y, v):
    """Views of views are multiplied and added to in place."""
    y[1][2].mul_(2)
    y[0][:, 1:3].add_(v[0])


@writing((6, 6), (3, 3))
def steps_2d(y, v):
    """Every second row and column is assigned."""
    y[::2, 1::2] = v


@writing((2, 3, 4), (2, 2))
def reshaped_block(y, v):
    """A block of the tensor seen under other sizes is assigned."""
    y.view(6, 4)[1:3, 1:3] = v


@writing((2, 6, 4), (2, 3))
def transposed_block(y, v):
    """A block of a transposed view is assigned, its dimensions in another order."""
    y.permute(2, 0, 1)[1, :, 2:5] = v


@writing((4, 4), (4,))
def diagonal(y, v):
    """The diagonal is assigned."""
    y.diagonal().copy_(v)


@writing((2, 6, 4), (2, 3))
def chunks(y, v):
    """Parts of a split are changed, one whole and one in part."""
    a, b = y.chunk(2, dim=1)
    a.mul_(3)
    b[:, :, 1] = v


@program(lambda: [(torch.randn(1, 8, 8, 3),) for _ in range(2)])
def window_mask(self, x):
    """Swin's mask of shifted windows: blocks of an image numbered by slices of two dimensions."""
    mask, count = x.new_zeros(1, 8, 8, 1), 0
    bounds = (slice(0, -4), slice(-4, -2), slice(-2, None))
    for h in bounds:
        for w in bounds:
            mask[:, h, w, :] = count
            count += 1
    return x * mask


@built
def dynamic_block():
    """A block is assigned whose number of rows is a symbol."""

    class DynamicBlock(nn.Module):
        def forward(self, x):
            y = x + 1
            y[1:, 0, 2:4] = 5
            return y

    rows = torch.export.Dim("rows", min=3, max=64)
    return DynamicBlock(), [(torch.randn(n, 3, 6),) for n in (4, 7)], ({0: rows},)


class Decoder(nn.Module):
    """Two layers of attention over key and value caches, and how a step writes its keys and values there."""

    layers, heads, size, length = 2, 2, 4, 16

    def __init__(self):
        super().__init__()
        width = self.heads * self.size
        self.projections = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(self.layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(self.layers))
        for name in self.caches():
            self.register_buffer(name, torch.zeros(self.cache_sizes()))

    def caches(self):
        return [f"{kind}{layer}" for layer in range(self.layers) for kind in "kv"]

    def cache_sizes(self):
        return (1, self.heads, self.length, self.size)

    def updated(self, layer, k, v, pos):
        raise NotImplementedError

    def forward(self, x, pos):
        seen = torch.arange(self.length) <= pos
        for layer in range(self.layers):
            qkv = self.projections[layer](x).view(1, 1, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
            keys, values = self.updated(layer, qkv[1], qkv[2], pos)
            weights = (qkv[0] @ keys.transpose(-1, -2)).masked_fill(~seen, float("-inf")).softmax(-1)
            x = x + self.out[layer]((weights @ values).transpose(1, 2).reshape(1, 1, -1))
        return x


def decoding(decoder):
    return decoder, [(torch.randn(1, 1, 8), torch.tensor([at])) for at in (0, 1)]


@built
def decoder_index():
    """A decode step that writes its caches by index."""

    class DecoderIndex(Decoder):
        def updated(self, layer, k, v, pos):
            for kind, new in (("k", k), ("v", v)):
                getattr(self, f"{kind}{layer}")[:, :, pos] = new
            return getattr(self, f"k{layer}"), getattr(self, f"v{layer}")

    return decoding(DecoderIndex())


@built
def decoder_copy():
    """A decode step that writes its caches by index_copy_, as transformers' static cache does."""

    class DecoderCopy(Decoder):
        def updated(self, layer, k, v, pos):
            for kind, new in (("k", k), ("v", v)):
                getattr(self, f"{kind}{layer}").index_copy_(2, pos, new)
            return getattr(self, f"k{layer}"), getattr(self, f"v{layer}")

    return decoding(DecoderCopy())


@built
def decoder_layered():
    """A decode step whose layers share one cache of keys and one of values, written through views of views."""

    class DecoderLayered(Decoder):
        def caches(self):
            return ["k", "v"]

        def cache_sizes(self):
            return (self.layers, *super().cache_sizes())

        def updated(self, layer, k, v, pos):
            p = pos[0].item()
            torch._check(p >= 0)
            torch._check(p + 1 <= self.length)
            self.k[layer][:, :, p : p + 1] = k
            self.v[layer][:, :, p : p + 1] = v
            return self.k[layer], self.v[layer]

    return decoding(DecoderLayered())

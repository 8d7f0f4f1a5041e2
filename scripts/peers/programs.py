"""Small programs that mutate, which other compilers are tried on; run.py exports them.

Each is a function that returns (module, two calls' arguments); its name is the program's. The second call has other
values than the first, so that state which was lost, or was baked into the compiled program, shows.
"""

import torch
from torch import nn

PROGRAMS = {}


def program(build):
    PROGRAMS[build.__name__] = build
    return build


class Cache(nn.Module):
    """One key cache of 16 positions."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 2, 16, 4))


def kv_and_query():
    return torch.randn(1, 2, 1, 4), torch.randn(1, 2, 1, 4)


@program
def slice_assign():
    """A column of an intermediate is assigned; an alias of it is returned too."""

    class SliceAssign(nn.Module):
        def forward(self, x, y):
            y = y + 3
            y[:, 0] = x[:, 0]
            return y, y.view(-1)

    return SliceAssign(), [(torch.randn(2, 3, 4), torch.randn(2, 3, 4)) for _ in range(2)]


@program
def mutated_input():
    """A column of an input is assigned, which the caller sees."""

    class MutatedInput(nn.Module):
        def forward(self, x, y):
            y[:, 0] = x[:, 0]
            return y * 2

    return MutatedInput(), [(torch.randn(2, 3, 4), torch.randn(2, 3, 4)) for _ in range(2)]


@program
def cache_index_put():
    """A key cache written at positions that a tensor gives."""

    class CacheIndexPut(Cache):
        def forward(self, kv, pos, q):
            self.k[:, :, pos] = kv
            return q @ self.k.transpose(-1, -2)

    return CacheIndexPut(), [(kv, torch.tensor([at]), q) for at in (3, 5) for kv, q in [kv_and_query()]]


@program
def cache_slice():
    """A key cache written at a constant position."""

    class CacheSlice(Cache):
        def forward(self, kv, q):
            self.k[:, :, 3:4] = kv
            return q @ self.k.transpose(-1, -2)

    return CacheSlice(), [kv_and_query() for _ in range(2)]


@program
def cache_narrow():
    """A key cache written at a position that is read from a tensor as a number."""

    class CacheNarrow(Cache):
        def forward(self, kv, pos, q):
            p = pos[0].item()
            torch._check(p >= 0)
            torch._check(p + 1 <= 16)
            self.k.narrow(2, p, 1).copy_(kv)
            return q @ self.k.transpose(-1, -2)

    return CacheNarrow(), [(kv, torch.tensor([at]), q) for at in (3, 5) for kv, q in [kv_and_query()]]


@program
def counter():
    """A buffer that counts the calls."""

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("c", torch.zeros(1))

        def forward(self, x):
            self.c.add_(1)
            return x + self.c

    return Counter(), [(torch.randn(3),) for _ in range(2)]


@program
def written_steps():
    """A recurrence whose steps are written into columns of its result."""

    class WrittenSteps(nn.Module):
        def forward(self, x):
            out, h = x.new_zeros(2, 4, 8), x[:, 0]
            for t in range(4):
                h = torch.tanh(h + x[:, t])
                out[:, t] = h
            return out

    return WrittenSteps(), [(torch.randn(2, 4, 8),) for _ in range(2)]

"""What the forward part of a training step hands to the backward part, and the memory of results."""

import copy

import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


class Deep(nn.Module):
    """Values of many kinds that backward reads: views, masks, transposed ones, some that are results as well."""

    def __init__(self, width=12):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        kept = []
        for layer in self.layers:
            x = torch.tanh(layer(x)) * layer(x).t().contiguous().t().relu()
            x = self.norm(x).view(2, -1, x.shape[1]).transpose(0, 1).reshape(x.shape)
            kept.append(x.exp())
        return x.masked_fill(x > 0.5, 0.0), kept[2], kept[4].t()


def step(run, model, x):
    model.zero_grad()
    x = x.clone().requires_grad_()
    results = run(x)
    sum((r * r).mean() for r in results).backward()
    return [*(r.detach() for r in results), x.grad, *(p.grad for p in model.parameters())]


def close(have, want):
    return all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(have, want, strict=True))


def saved(run, x):
    """How many tensors a forward part saves."""
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        run(x.clone().requires_grad_())
    return len(seen)


def test_small_values_are_saved_together():
    m, x = Deep().double(), torch.randn(8, 12).double()
    own = copy.deepcopy(m)
    run = torch.compile(own, backend="restride", fullgraph=True)
    assert close(step(run, own, x), step(m, m, x))
    # Weights, the two results that backward reads, and a pack for each element type.
    assert saved(run, x) <= len(list(m.parameters())) + 5
    assert saved(run, x) < saved(m, x) / 3


def test_views_of_what_is_saved_are_made_again():
    m, x = nn.Linear(6, 6), torch.randn(5, 6)

    def function(x):
        y = m(x)
        return (y.t() @ y + y.view(6, 5) @ y).sum(0)

    def grads(run):
        given = x.clone().requires_grad_()
        m.zero_grad()
        run(given).square().sum().backward()
        return [given.grad, m.weight.grad, m.bias.grad]

    run = torch.compile(function, backend="restride", fullgraph=True)
    assert close(grads(run), grads(function))


def test_symbolic_sizes_are_saved_one_by_one():
    m = Deep().double()
    own = copy.deepcopy(m)
    run = torch.compile(own, backend="restride", dynamic=True)
    for rows in (8, 4, 10):
        x = torch.randn(rows, 12).double()
        assert close(step(run, own, x), step(m, m, x))


def test_memory_of_gradients_is_used_again():
    m = nn.Sequential(nn.Linear(300, 400), nn.Tanh(), nn.Linear(400, 300))
    own, x = copy.deepcopy(m), torch.randn(200, 300)
    run = torch.compile(own, backend="restride")

    def places(run):
        own.zero_grad()
        run(x).square().mean().backward()
        return [p.grad.data_ptr() for p in own.parameters()]

    first = places(run)
    second = places(run)
    assert {first[0], first[2]} == {second[0], second[2]}
    # A gradient that is kept stays as it is, and so does one that outlives the graph.
    held = own[0].weight.grad
    before = held.clone()
    own.zero_grad()
    with torch.no_grad():
        own[0].weight.mul_(2)
    run(torch.randn(200, 300)).square().mean().backward()
    assert torch.equal(held, before) and not torch.equal(own[0].weight.grad, before)
    last = own[0].weight.grad
    want = last.clone()
    del run
    torch._dynamo.reset()
    assert torch.equal(last, want) and torch.equal(held, before)


def test_threads_train_at_once():
    from concurrent.futures import ThreadPoolExecutor

    m, x = Deep(64), torch.randn(300, 64)
    run = torch.compile(m, backend="restride")
    want = torch.autograd.grad(sum(r.mean() for r in m(x)), list(m.parameters()))

    def grads(_):
        return torch.autograd.grad(sum(r.mean() for r in run(x)), list(m.parameters()))

    grads(0)
    with ThreadPoolExecutor(4) as pool:
        assert all(close(have, want) for have in pool.map(grads, range(12)))


class Joined(nn.Module):
    """Values that are parts of a `cat`, with and without backward nodes that read them, and batch norms without statistics to hand on."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm, self.last = nn.BatchNorm2d(4), nn.Conv2d(12, 5, 1)

    def forward(self, x):
        a = self.norm(self.first(x)).relu()
        b = self.second(a).sigmoid()
        c = (a * b).tanh()
        return self.last(torch.cat([a, b, c], 1)).tanh()


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("training", [False, True])
def test_parts_of_a_saved_whole_are_taken_out_of_it(batch, training):
    m, x = Joined().train(training).double(), torch.randn(batch, 3, 24, 24).double()
    own = copy.deepcopy(m)
    run = torch.compile(own, backend="restride", fullgraph=True)
    assert close(step(run, own, x), step(m, m, x))
    shapes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: shapes.append(t.shape) or t, lambda t: t):
        run(x.clone().requires_grad_())
    assert (0,) not in shapes
    # What the first convolution gives; the parts of the last `cat` are taken out of it.
    assert sum(s == (batch, 4, 24, 24) for s in shapes) <= 1

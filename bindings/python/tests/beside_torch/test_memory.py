"""Arguments on memory of their own kinds: subclasses of tensors, views, memory that is not aligned or not there."""

import numpy as np
import pytest
import restride
import torch
from torch import nn

NEG = restride.load(b"graph(%x: f32[3]) {\n  %y: f32[3] = aten.neg.default(%x)\n  return %y\n}\n")


class Own(torch.Tensor):
    pass


class OwnParameter(nn.Parameter):
    pass


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("kind", [nn.Parameter, OwnParameter, lambda t: t.as_subclass(Own)])
def test_subclasses_of_tensors_give_tensors(kind):
    x = torch.arange(3.0)
    out = NEG(kind(x))
    assert type(out) is torch.Tensor and out.tolist() == (-x).tolist()


def test_elements_without_memory_are_refused():
    with pytest.raises(restride.InputsError, match="input x has elements and no memory"):
        NEG(Wrapper(torch.ones(3)))
    run, x = torch.compile(lambda a: a + 1, backend="restride"), torch.ones(3)
    assert run(x).tolist() == [2, 2, 2]
    x.untyped_storage().resize_(0)
    with pytest.raises(restride.InputsError, match="has elements and no memory"):
        run(x)


def test_memory_that_is_not_aligned_is_refused():
    odd = torch.from_numpy(np.frombuffer(bytearray(64), np.float32, 3, offset=1))
    with pytest.raises(restride.InputsError, match="input x is not aligned"):
        NEG(odd)
    run = torch.compile(lambda a: a + 1, backend="restride")
    for _ in range(2):
        with pytest.raises(restride.InputsError, match="argument 0 is not aligned"):
            run(odd)
        # A graph that is bound to such sizes reads no others.
        assert run(odd.clone()).tolist() == [1, 1, 1]


def written(a, b):
    a.add_(1)
    b.mul_(2)
    return a + b


def half_written(a, b):
    a.add_(1)
    return b * 2


@pytest.mark.parametrize("function", [written, half_written])
@pytest.mark.parametrize("dynamic", [None, False, True])
def test_views_at_other_places_of_other_memory(function, dynamic):
    run = torch.compile(function, backend="restride", dynamic=dynamic)
    for size, offset in [(10, 0), (10, 0), (20, 0), (20, 7), (40, 3), (10, 0), *((30, i) for i in range(5))]:
        results = []
        for call in (function, run):
            memory = torch.arange(float(size))
            a, b = (memory[i : i + 6].view(2, 3) for i in (offset, offset + 2))
            results.append((call(a, b), memory))
        assert all(torch.equal(x, y) for x, y in zip(*results, strict=True)), (size, offset)


@pytest.mark.parametrize("first", ["apart", "together"])
def test_arguments_that_share_memory_in_some_calls(first):
    run = torch.compile(written, backend="restride")
    steps = [None, 1, 2, 0, 6, None, 7]
    for step in steps if first == "apart" else steps[1:] + steps[:1]:
        results = []
        for call in (written, run):
            memory = torch.arange(30.0)
            a, b = memory[3:9], torch.arange(6.0) if step is None else memory[3 + step : 9 + step]
            results.append((call(a, b), memory, b))
        assert all(torch.equal(x, y) for x, y in zip(*results, strict=True)), step


def test_gradients_through_views_at_other_places():
    def function(w, a, b):
        a.add_(1)
        return (w * a * b).sum()

    run = torch.compile(function, backend="restride")
    for size, offset in [(10, 0), (20, 7), (10, 0)]:
        results = []
        for call in (function, run):
            w, memory = torch.arange(6.0).requires_grad_(), torch.arange(float(size))
            loss = call(w, memory[offset : offset + 6], memory[offset + 1 : offset + 7])
            loss.backward()
            results.append((loss.detach(), w.grad, memory))
        assert all(torch.equal(x, y) for x, y in zip(*results, strict=True)), (size, offset)

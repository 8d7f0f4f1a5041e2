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

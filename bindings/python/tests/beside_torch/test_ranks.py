"""Programs with collectives on the ranks of `torch.distributed`."""

import socket
import time

import pytest
import restride
import restride.torch
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.multiprocessing as mp
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        y = x * 2
        dist.all_reduce(y[1:3])
        a = fc.all_gather_tensor(x, 0, dist.group.WORLD)
        b = fc.reduce_scatter_tensor(a, "avg", 0, dist.group.WORLD)
        n = x.shape[0] // dist.get_world_size()
        c = fc.all_to_all_single(x, [n] * dist.get_world_size(), [n] * dist.get_world_size(), dist.group.WORLD)
        d = fc.all_reduce(x > 0, "max", dist.group.WORLD)
        x.add_(fc.broadcast(y, 1, dist.group.WORLD))
        return y + b, c, d


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(rank, size, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)


def tensors(out):
    return [o.wait() if isinstance(o, fc.AsyncCollectiveTensor) else o for o in out]


def equal(rank, size, port):
    start(rank, size, port)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(rank))
    given, eager = x.clone(), x.clone()
    program = restride.torch.program(Model(), x.clone())
    with torch.no_grad():
        want = tensors(Model()(eager))
    with restride.torch.on_ranks():
        have = program(given)
        verdict = program.verify(x.clone())
    assert all(torch.allclose(a, b) and a.dtype == b.dtype for a, b in zip(have, want, strict=True))
    assert torch.allclose(given, eager)
    assert verdict
    # Alone again, a group of several ranks needs an engine.
    with pytest.raises(restride.Error, match="ranks"):
        program(x.clone())
    dist.barrier()
    dist.destroy_process_group()


class Picked(nn.Module):
    def forward(self, x, i):
        y = x[i] + 1
        dist.all_reduce(y)
        return y


def one_fails(rank, size, port):
    start(rank, size, port)
    x, i = torch.ones(4, 3), torch.tensor([0, 1])
    program = restride.torch.program(Picked(), x, i)
    with restride.torch.on_ranks():
        program(x, i)
        begin = time.monotonic()
        with pytest.raises(Exception, match=r"." if rank != 1 else r"(?i)index"):
            program(x, torch.tensor([0, 9]) if rank == 1 else i)
        assert time.monotonic() - begin < 20


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_compute_what_torch_distributed_computes(size):
    mp.spawn(equal, (size, free_port()), nprocs=size)


def test_a_rank_that_fails_ends_all():
    mp.spawn(one_fails, (2, free_port()), nprocs=2)

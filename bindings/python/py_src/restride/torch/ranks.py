"""Programs with collectives on the ranks of ``torch.distributed``: each process is one rank."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from restride import _restride

import torch
import torch.distributed as dist

__all__ = ["on_ranks"]

#: Names of PyTorch's operations; a mean is a sum that is divided here, which every backend has.
_REDUCTIONS = {
    "sum": "SUM",
    "avg": "SUM",
    "product": "PRODUCT",
    "min": "MIN",
    "max": "MAX",
    "band": "BAND",
    "bor": "BOR",
    "bxor": "BXOR",
}

#: A truth value is one byte, 0 or 1.
_TRUTH = {"sum": "max", "avg": "max", "product": "min", "band": "min", "bor": "max"}


def _operation(name: str) -> Any:
    return getattr(dist.ReduceOp, _REDUCTIONS[name])


def _tensor(memory: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    """Memory of a run as a tensor; it is valid during the exchange."""
    address, length = memory
    if length == 0:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer((ctypes.c_char * length).from_address(address), dtype=dtype)


def _references(*tensors: torch.Tensor) -> list[int]:
    return [sys.getrefcount(tensor) for tensor in tensors]


class _Engine:
    def __init__(self, groups: Mapping[str, dist.ProcessGroup]) -> None:
        self.groups = dict(groups)

    def process_group(self, name: str) -> dist.ProcessGroup:
        if name in self.groups:
            return self.groups[name]
        world = dist.group.WORLD
        assert world is not None, "torch.distributed is not initialised"
        if name:
            with contextlib.suppress(RuntimeError, ValueError, KeyError):
                return dist.distributed_c10d._resolve_process_group(name)
        return world

    def group(self, name: str) -> list[int]:
        return list(dist.get_process_group_ranks(self.process_group(name)))

    def exchange(
        self,
        pattern: str,
        reduction: str,
        root: int,
        name: str,
        dtype_name: str,
        send: tuple[int, int],
        receive: tuple[int, int],
        counts: tuple[list[int], list[int]],
    ) -> None:
        group, dtype = self.process_group(name), getattr(torch, dtype_name)
        mean = reduction == "avg"
        if dtype == torch.bool:
            dtype, reduction = torch.uint8, _TRUTH.get(reduction, reduction)
        into = _tensor(receive, dtype)
        given = into if send == receive else _tensor(send, dtype)
        if given is into and pattern in ("all_gather", "all_to_all"):
            given = into.clone()
        before, failed = _references(into, given), None
        try:
            self.carry_out(pattern, reduction, root, group, into, given, counts)
        except Exception as e:
            # The exception itself refers to the tensors.
            failed = str(e)
        # A thread of the backend drops the tensors after it said that the exchange is done, and takes Python's lock to do so. That is
        # awaited, because the memory is the run's again, and because such a thread aborts a process that ends meanwhile.
        end = time.monotonic() + 1
        while any(map(int.__gt__, _references(into, given), before)) and time.monotonic() < end:
            time.sleep(0)
        if failed is not None:
            raise RuntimeError(failed)
        if mean and into.numel() > 0:
            into.div_(dist.get_world_size(group))

    def carry_out(
        self,
        pattern: str,
        reduction: str,
        root: int,
        group: dist.ProcessGroup,
        into: torch.Tensor,
        given: torch.Tensor,
        counts: tuple[list[int], list[int]],
    ) -> None:
        if pattern in ("all_reduce", "broadcast"):
            if given is not into:
                into.copy_(given)
            if pattern == "all_reduce":
                dist.all_reduce(into, _operation(reduction), group)
            else:
                dist.broadcast(into, dist.get_global_rank(group, root), group)
        elif pattern == "all_gather":
            dist.all_gather_into_tensor(into, given, group)
        elif pattern == "reduce_scatter":
            dist.reduce_scatter_tensor(into, given, _operation(reduction), group)
        elif pattern == "all_to_all":
            sent, received = counts
            dist.all_to_all_single(into, given, received, sent, group)
        else:
            raise ValueError(f"torch.distributed has no {pattern}")

    def abort(self, why: str) -> None:
        # The other ranks' exchanges end with an error when this one leaves the group.
        with contextlib.suppress(Exception):
            dist.destroy_process_group()


@contextlib.contextmanager
def on_ranks(groups: Mapping[str, dist.ProcessGroup] | None = None) -> Iterator[None]:
    """Let runs exchange elements by ``torch.distributed``, which is initialised: this process is one of its ranks.

    A program names groups by strings. ``groups`` binds names to process groups; other names are those of ``torch.distributed``, or
    the group of all ranks.

    If a run fails on one rank, that rank leaves its process groups, so that the others' runs end with an error.

        dist.init_process_group("gloo")
        program = restride.load("model.pt2")
        with restride.torch.on_ranks():
            y = program(x)
    """
    engine: Any = _Engine(groups or {})
    _restride.use_engine(engine, dist.get_rank(), dist.get_world_size())
    try:
        yield
    finally:
        _restride.use_engine(None)

"""Comparison with eager PyTorch."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["Verification", "verify"]


@dataclasses.dataclass(frozen=True)
class Verification:
    """What `verify` found; true where nothing parts."""

    compared: int
    """Values compared: results of all nodes, outputs, and inputs after the run."""
    parts_at: str | None = None
    """The first value that differs, with its node and source line."""
    difference: str | None = None
    """How it differs."""

    def __bool__(self) -> bool:
        return self.parts_at is None

    def __str__(self) -> str:
        if self.parts_at is None:
            return f"restride and eager PyTorch agree on {self.compared} values"
        return f"restride parts from eager PyTorch at {self.parts_at}: {self.difference}"


def verify(
    model: Any, *inputs: Any, rtol: float | None = None, atol: float | None = None, **kwargs: Any
) -> Verification:
    """Compare a model with eager PyTorch, and say where they part first.

    Args:
        model: A module, a function, a ``torch.export.ExportedProgram``, or a `restride.Program`. A program of restride is held to
            the file's own graph, which PyTorch runs; the others to PyTorch's operators one by one.
        *inputs: Arguments; each side gets copies.
        rtol: Relative tolerance; by default what restride promises for the element type.
        atol: Absolute tolerance.
        **kwargs: Named arguments.
    """
    from restride.torch._verify import verify_model

    return verify_model(model, inputs, kwargs, rtol, atol)

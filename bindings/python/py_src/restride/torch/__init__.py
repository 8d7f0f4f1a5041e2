"""restride on PyTorch's own objects: ``ExportedProgram``, ``GraphModule``, modules and functions.

``torch.compile(model, backend="restride")`` needs no import of this module.
"""

from __future__ import annotations

import functools
import inspect
import io
from collections.abc import Sequence
from typing import Any, overload

from restride._program import Explanation, Plan, Program, load
from restride.torch.ranks import on_ranks

import torch
from torch import fx, nn
from torch.export import ExportedProgram

__all__ = ["explain", "exported", "functionalize", "grad", "on_ranks", "plan", "program", "reinplace", "train_step"]


class _Function(nn.Module):
    """A function as a module, which export asks for."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        # In stack traces, export keeps the lines of functions that it is told of, and of those named `forward`.
        tell = getattr(fx.proxy, "_register_stack_trace_anchor", None)
        if tell is not None:
            while isinstance(function, functools.partial):
                function = function.func
            tell(inspect.unwrap(function))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def program(model: Any, *args: Any, **kwargs: Any) -> Program:
    """The program of an ``ExportedProgram``, or of a module or function on these arguments.

    A module or function is exported for training, with its mutations and views as they are.
    """
    if isinstance(model, Program):
        return model
    if not isinstance(model, ExportedProgram):
        if not callable(model):
            raise TypeError(f"a program, a module or a function is expected, not a {type(model).__name__}")
        module = model if isinstance(model, nn.Module) else _Function(model)
        model = torch.export.export(module, args, kwargs, strict=False)
    file = io.BytesIO()
    torch.export.save(model, file)
    return load(file.getvalue())


def exported(made: Program) -> ExportedProgram:
    """A program of restride as an ``ExportedProgram``."""
    return torch.export.load(io.BytesIO(made.to_bytes()))


@overload
def functionalize(
    model: ExportedProgram, inputs: None = None, *, portable: bool = False, views: bool = False
) -> ExportedProgram: ...
@overload
def functionalize(
    model: fx.GraphModule, inputs: Sequence[Any], *, portable: bool = False, views: bool = False
) -> fx.GraphModule: ...
def functionalize(
    model: ExportedProgram | fx.GraphModule,
    inputs: Sequence[Any] | None = None,
    *,
    portable: bool = False,
    views: bool = False,
) -> ExportedProgram | fx.GraphModule:
    """A program without mutation.

    Of an ``ExportedProgram``, input and buffer mutations become declared outputs. Of a ``GraphModule``, which takes these inputs, the
    result is one that writes its inputs and buffers at its end alone.

    Args:
        model: The program.
        inputs: Of a ``GraphModule``: its inputs.
        portable: In Core ATen, which other compilers take.
        views: With views instead of copies of views.
    """
    if isinstance(inputs, torch.Tensor):
        raise TypeError("inputs is a tensor: pass a tuple of the inputs")
    given = () if inputs is None else tuple(inputs)
    made = exported(program(model, *given).functionalize(portable=portable, views=views))
    return made if isinstance(model, ExportedProgram) else made.module()


def reinplace(model: ExportedProgram, *, views: bool = False) -> ExportedProgram:
    """The program with in-place operators and views where they are right; with ``views``, with views alone.

    Run the result under ``torch.no_grad()``: it computes into memory that is no longer needed.
    """
    return exported(program(model).reinplace(views=views))


def grad(
    model: ExportedProgram,
    *,
    loss: int = 0,
    wrt: Sequence[str] | None = None,
    keep: str | int = "auto",
    max_trips: int | None = None,
) -> ExportedProgram:
    """Forward and backward as one program; the options are those of `restride.Program.grad`."""
    return exported(program(model).grad(loss=loss, wrt=wrt, keep=keep, max_trips=max_trips))


def train_step(model: ExportedProgram, optimizer: str = "adam", **options: Any) -> ExportedProgram:
    """A training step as one program; the options are those of `restride.Program.train_step`."""
    return exported(program(model).train_step(optimizer, **options))


def plan(model: Any, *args: Any, **kwargs: Any) -> Plan:
    """The memory plan of an ``ExportedProgram``, or of a module or function on these arguments."""
    return program(model, *args, **kwargs).plan()


def explain(model: Any, *args: Any, node: str | None = None, all: bool = False, **kwargs: Any) -> Explanation:
    """What is computed in place, what is not, and why: of an ``ExportedProgram``, or of a module or function on these arguments."""
    return program(model, *args, **kwargs).explain(node, all=all)

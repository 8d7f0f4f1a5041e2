"""Inputs that a program is opened for, from arguments as `torch.export.export` takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from restride._errors import InputsError

__all__ = ["given_inputs", "symbolic_sizes", "weights_of"]

LARGEST = 2**63 - 1

Place = tuple[str, int]
Size = tuple[str, int, tuple[int, int] | Place]
"""An input, a dimension, and the range of that size or the size that it equals."""


def given_inputs(inputs: Any) -> str | list[tuple[str | None, Any]] | None:
    """The inputs by name, those without a name in order; types as text are handed on."""
    if inputs is None or isinstance(inputs, str):
        return inputs
    if isinstance(inputs, Mapping):
        return list(inputs.items())
    if isinstance(inputs, (tuple, list)):
        return [(None, value) for value in inputs]
    raise TypeError(
        f"inputs is a {type(inputs).__name__}: pass a tuple of example arguments, a dictionary of them by name, "
        'or their types as text, such as "x=f32[2,3]"'
    )


def symbolic_sizes(dynamic: Any, inputs: Any) -> str | list[Size] | None:
    """The symbolic sizes of `dynamic_shapes` as `torch.export.export` takes them, by the names of parameters."""
    if dynamic is None or isinstance(dynamic, str):
        return dynamic
    if not isinstance(dynamic, Mapping):
        raise TypeError(
            f'dynamic is a {type(dynamic).__name__}: pass a dictionary such as {{"x": {{0: (1, 64)}}}}, or text such as "x.0=1..64"'
        )
    first: dict[str, Place] = {}
    out: list[Size] = []
    for name, spec in dynamic.items():
        example = inputs.get(name) if isinstance(inputs, Mapping) else None
        for leaf, dim, size in _leaves(str(name), spec, example):
            value = _size(leaf, dim, size, first)
            if value is not None:
                out.append((leaf, dim, value))
    return out


def _leaves(name: str, spec: Any, example: Any) -> Iterator[tuple[str, int, Any]]:
    """The leaf, the dimension and the specification of each size."""
    if spec is None:
        return
    if isinstance(spec, Mapping):
        by_dimension = all(isinstance(k, int) for k in spec)
        for key, value in spec.items():
            if by_dimension and not isinstance(example, Mapping):
                yield name, int(key), value
            else:
                yield from _leaves(f"{name}_{key}", value, example.get(key) if isinstance(example, Mapping) else None)
    elif isinstance(spec, (tuple, list)):
        nested = isinstance(example, (tuple, list)) or any(isinstance(s, (Mapping, list)) for s in spec)
        for i, value in enumerate(spec):
            if nested:
                inner = example[i] if isinstance(example, (tuple, list)) and i < len(example) else None
                yield from _leaves(f"{name}_{i}", value, inner)
            else:
                yield name, i, value
    else:
        raise TypeError(f"dynamic: {name} is a {type(spec).__name__}; it takes sizes by dimension, as {{0: (1, 64)}}")


def _size(leaf: str, dim: int, size: Any, first: dict[str, Place]) -> tuple[int, int] | Place | None:
    """A range, or the size that this one equals; `None` for a size that stays."""
    if size is None or isinstance(size, int):
        return None
    if isinstance(size, (tuple, list)) and len(size) == 2:
        return _bound(size[0], 0), _bound(size[1], LARGEST)
    low, high = _bound(getattr(size, "min", None), 0), _bound(getattr(size, "max", None), LARGEST)
    if isinstance(size, str):
        other, _, at = size.rpartition(".")
        if other and at.isdecimal():
            return other, int(at)
        name = size
    else:
        kind = getattr(getattr(size, "type", None), "name", None)
        if kind is not None:  # Dim.AUTO, Dim.DYNAMIC, Dim.STATIC
            # PyTorch specialises sizes of 0 and 1.
            return None if kind == "STATIC" else (max(low, 2), high)
        if hasattr(size, "root"):
            raise InputsError(f"dynamic: {leaf}.{dim} is computed from another size, which is not supported")
        name = getattr(size, "__name__", "")
        if not name:
            raise TypeError(
                f"dynamic: {leaf}.{dim} is a {type(size).__name__}; it takes (least, largest), a torch.export.Dim or a name"
            )
    if name in first:
        return first[name]
    first[name] = (leaf, dim)
    return low, high


def _bound(value: Any, otherwise: int) -> int:
    """A bound of a range; PyTorch's infinity is no integer."""
    return min(max(value, 0), LARGEST) if isinstance(value, int) else otherwise


def weights_of(weights: Any) -> list[tuple[str, Any, bool]] | None:
    """The tensors of a state dict by name, and whether each is a parameter; `None` for a path."""
    if not isinstance(weights, Mapping):
        return None
    out = []
    for name, tensor in weights.items():
        parameter = bool(getattr(tensor, "requires_grad", False))
        out.append((str(name), tensor.detach() if hasattr(tensor, "detach") else tensor, parameter))
    return out

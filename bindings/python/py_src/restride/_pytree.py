"""The nesting of arguments and results, as ``torch.export`` stores it; without PyTorch."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from restride._errors import ArgumentsError, FileError, InputsError, UnsupportedError

__all__ = ["TreeSpec", "check_call", "register_class", "register_dataclass"]

_LEAF = "leaf"
_DICTS = ("builtins.dict", "collections.OrderedDict", "collections.defaultdict")


@dataclasses.dataclass(frozen=True)
class _Node:
    """A class of containers: how its parts are taken out and put together."""

    cls: type
    flatten: Callable[[Any], Sequence[Any]]
    unflatten: Callable[[list[Any]], Any]


_registered: dict[str, Callable[[Any], _Node]] = {}


def register_class(
    name: str, cls: type, flatten: Callable[[Any], Sequence[Any]], unflatten: Callable[[list[Any]], Any]
) -> None:
    """Register a class of containers under the ``serialized_type_name`` that it was exported with.

    ``flatten`` gives the parts of a container, ``unflatten`` makes one of them.
    """
    _registered[name] = lambda _context: _Node(cls, flatten, unflatten)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> type:
    """Register a dataclass whose instances were arguments or results of an exported program.

    The name defaults to the one that ``torch.export.register_dataclass`` uses. Works as a decorator.
    """
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls!r} is no dataclass")
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    _registered[name] = lambda context: _dataclass_node(cls, context)
    return cls


def _dataclass_node(cls: type, context: Any) -> _Node:
    names, empty = _fields(context)

    def flatten(value: Any) -> Sequence[Any]:
        return [getattr(value, n) for n in names]

    def unflatten(parts: list[Any]) -> Any:
        return cls(**dict(zip(names, parts, strict=True)), **dict.fromkeys(empty))

    return _Node(cls, flatten, unflatten)


def _fields(context: Any) -> tuple[list[str], list[str]]:
    """The fields of a dataclass with values, and those that are ``None``."""
    if isinstance(context, str):
        context = json.loads(context)
    if isinstance(context, list) and len(context) == 2 and all(isinstance(c, list) for c in context):
        return list(context[0]), list(context[1])
    return [str(c) for c in context or []], []


def _find_class(name: str) -> type | None:
    """The class of a qualified name, if its module is there."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:cut]))
        if module is None:
            continue
        found: Any = module
        for part in parts[cut:]:
            found = getattr(found, part, None)
        if isinstance(found, type):
            return found
    return None


def check_call(positional: Sequence[str], named: Sequence[str], args: Sequence[Any], kwargs: Iterable[str]) -> None:
    """Refuse arguments that do not fit parameters, with the text that Python has for a function.

    Args:
        positional: Parameters that are given by position or by name.
        named: Parameters that are given by name alone.
        args: Arguments by position.
        kwargs: The names of the others.
    """
    given = set(kwargs)
    twice = [n for n in positional[: len(args)] if n in given]
    unknown = [n for n in kwargs if n not in positional and n not in named]
    missing = [n for n in positional[len(args) :] if n not in given]
    missing_named = [n for n in named if n not in given]
    if twice:
        what = f"got multiple values for argument {twice[0]!r}"
    elif unknown:
        what = f"got an unexpected keyword argument {unknown[0]!r}"
    elif len(args) > len(positional):
        s, were = "" if len(positional) == 1 else "s", "was" if len(args) == 1 else "were"
        what = f"takes {len(positional)} positional argument{s} but {len(args)} {were} given"
    elif missing or missing_named:
        names, kind = (missing, "positional") if missing else (missing_named, "keyword-only")
        listed = [repr(n) for n in names]
        if len(listed) > 1:
            listed[-2:] = [("{}, and {}" if len(listed) > 2 else "{} and {}").format(*listed[-2:])]
        what = f"missing {len(names)} required {kind} argument{'s' if len(names) > 1 else ''}: {', '.join(listed)}"
    else:
        return
    parameters = ", ".join([*positional, *(["*"] if named else []), *named])
    what, help = f"forward() {what}", f"the program is forward({parameters})"
    raise ArgumentsError(f"{what}; {help}", what, help=help)


class TreeSpec:
    """How values are nested."""

    __slots__ = ("children", "context", "kind", "leaves", "node")

    def __init__(self, kind: str, context: Any, children: list[TreeSpec]) -> None:
        self.kind = kind
        self.context = context
        self.children = children
        self.leaves: int = 1 if kind == _LEAF else sum(c.leaves for c in children)
        self.node: _Node | None = None

    @classmethod
    def parse(cls, text: str, record: str) -> TreeSpec:
        """Read PyTorch's JSON.

        Args:
            text: The JSON.
            record: The field of the program's signature that has it: ``in_spec``, the nesting of ``(args, kwargs)``, or ``out_spec``.
        """
        try:
            protocol, spec = json.loads(text)
            if protocol != 1:
                raise UnsupportedError(f"the record {record} is of pytree protocol {protocol}; 1 is known")
            made = cls._of(spec)
            if record == "in_spec" and [c.kind for c in made.children] != ["builtins.tuple", "builtins.dict"]:
                raise ValueError("it is no tuple of arguments and dict of arguments by name")
        except (ValueError, TypeError, KeyError, RecursionError) as e:
            why = f"the field {e} is missing" if isinstance(e, KeyError) else str(e)
            what = f"the record {record}, which tells how arguments are nested, is damaged: {why}"
            if record == "out_spec":
                what = what.replace("arguments", "results", 1)
            raise FileError(what) from e
        return made

    @classmethod
    def _of(cls, spec: Any) -> TreeSpec:
        if not isinstance(spec, dict):
            raise TypeError(f"{json.dumps(spec)[:40]} is no object")
        kind, parts, context = spec["type"], spec["children_spec"], spec["context"]
        if not isinstance(parts, list):
            raise TypeError(f"children_spec of {kind} is no list")
        if kind is None:
            if parts:
                raise ValueError("a leaf has children")
            return cls(_LEAF, None, [])
        if not isinstance(kind, str):
            raise TypeError(f"the type {json.dumps(kind)[:40]} is no string")
        if isinstance(context, str) and kind not in ("collections.namedtuple",):
            with contextlib.suppress(ValueError):
                context = json.loads(context)
        made = cls(kind, context, [cls._of(c) for c in parts])
        if kind in _DICTS and len(made._keys()) != len(parts):
            raise ValueError(f"a {kind} has {len(made._keys())} keys and {len(parts)} children")
        return made

    def _keys(self) -> list[Any]:
        """The keys of a dictionary."""
        if self.kind == "collections.defaultdict":
            return list(self.context["dict_context"])
        return list(self.context or [])

    def _custom(self) -> _Node:
        """The class of a container that is none of Python's own."""
        if self.node is None:
            self.node = self._resolve()
        return self.node

    def _resolve(self) -> _Node:
        made = _registered.get(self.kind)
        if made is not None:
            return made(self.context)
        if self.kind == "collections.namedtuple":
            found = _find_class(str(self.context))
            if found is not None:
                cls = found
                return _Node(cls, tuple, lambda parts: cls(*parts))
            name = str(self.context).rpartition(".")[2]
            stand_in = collections.namedtuple(  # type: ignore[misc]
                name if name.isidentifier() else "Outputs", [f"field_{i}" for i in range(len(self.children))]
            )
            return _Node(stand_in, tuple, lambda parts: stand_in(*parts))
        found = _find_class(self.kind)
        if found is not None and dataclasses.is_dataclass(found):
            return _dataclass_node(found, self.context)
        if found is not None and issubclass(found, tuple):
            cls = found
            return _Node(cls, tuple, lambda parts: cls(parts))
        return self._stand_in()

    def _stand_in(self) -> _Node:
        """A class for one that is not there, with its fields where the program has their names."""
        name = self.kind.rpartition(".")[2]
        name = name if name.isidentifier() else "Container"
        try:
            names, empty = _fields(self.context)
        except (TypeError, ValueError):
            names, empty = [], []
        if len(names) == len(self.children) and all(n.isidentifier() for n in [*names, *empty]) and names:
            cls = dataclasses.make_dataclass(name, [*names, *((n, Any, None) for n in empty)])
            return _dataclass_node(cls, [names, empty])
        stand_in = collections.namedtuple(name, [f"field_{i}" for i in range(len(self.children))])  # type: ignore[misc]
        return _Node(stand_in, tuple, lambda parts: stand_in(*parts))

    def flatten(self, value: Any, path: str, into: list[Any]) -> None:
        """Append the leaves of a value that is nested like this."""
        kind = self.kind
        if kind == _LEAF:
            into.append(value)
            return
        parts: Iterable[Any]
        if kind in ("builtins.tuple", "builtins.list", "collections.deque"):
            if not isinstance(value, (tuple, list, collections.deque)):
                raise InputsError(f"{path} must be a {kind.rpartition('.')[2]}, and is a {type(value).__name__}")
            parts = value
            names: Iterable[str] = (f"{path}[{i}]" for i in range(len(self.children)))
        elif kind in _DICTS:
            keys = self._keys()
            if not isinstance(value, Mapping):
                raise InputsError(f"{path} must be a dict, and is a {type(value).__name__}")
            # Numbers are JSON's in a file.
            missing = [k for k in keys if k not in value]
            extra = [k for k in value if k not in keys]
            if missing or extra:
                what = ", ".join([*(f"lacks {k!r}" for k in missing), *(f"has {k!r}" for k in extra)])
                raise InputsError(f"{path} must have the keys {keys}: it {what}")
            parts = [value[k] for k in keys]
            names = (f"{path}[{k!r}]" for k in keys)
        else:
            node = self._custom()
            if isinstance(value, node.cls):
                parts = node.flatten(value)
            elif kind == "collections.namedtuple" and isinstance(value, tuple):
                parts = value
            else:
                fields, _ = _fields(self.context) if kind != "collections.namedtuple" else ([], [])
                if not fields or not all(hasattr(value, f) for f in fields):
                    raise InputsError(f"{path} must be a {node.cls.__name__}, and is a {type(value).__name__}")
                parts = [getattr(value, f) for f in fields]
            names = (f"{path}[{i}]" for i in range(len(self.children)))
        parts = list(parts)
        if len(parts) != len(self.children):
            raise InputsError(f"{path} must have {len(self.children)} parts, and has {len(parts)}")
        for child, part, name in zip(self.children, parts, names, strict=True):
            child.flatten(part, name, into)

    def unflatten(self, leaves: Sequence[Any], at: int = 0) -> Any:
        """The value with these leaves, from the one at ``at`` on."""
        kind = self.kind
        if kind == _LEAF:
            return leaves[at]
        parts = []
        for child in self.children:
            parts.append(child.unflatten(leaves, at))
            at += child.leaves
        if kind == "builtins.tuple":
            return tuple(parts)
        if kind == "builtins.list":
            return parts
        if kind == "collections.deque":
            return collections.deque(parts, self.context)
        if kind == "builtins.dict":
            return dict(zip(self._keys(), parts, strict=True))
        if kind == "collections.OrderedDict":
            return collections.OrderedDict(zip(self._keys(), parts, strict=True))
        if kind == "collections.defaultdict":
            try:
                module = importlib.import_module(self.context["default_factory_module"])
                factory = getattr(module, self.context["default_factory_name"])
            except (ImportError, AttributeError):
                factory = None
            return collections.defaultdict(factory, zip(self._keys(), parts, strict=True))
        return self._custom().unflatten(parts)

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], names: Sequence[str] = ()) -> list[Any]:
        """The leaves of the arguments of a call, for a spec of ``(args, kwargs)``."""
        positional, named = self.children
        want = len(positional.children)
        # Files of early releases do not have the names.
        own = [names[i] if i < len(names) else f"argument {i}" for i in range(want)]
        keys = [str(key) for key in named._keys()]
        # An argument that was exported by position may be given by name, and the other way round.
        by_position = own + keys if len(args) > want else own
        check_call(by_position, [] if len(args) > want else keys, args, kwargs)
        given = {**dict(zip(by_position, args)), **kwargs}
        leaves: list[Any] = []
        for child, name in zip([*positional.children, *named.children], own + keys, strict=True):
            child.flatten(given[name], name, leaves)
        return leaves

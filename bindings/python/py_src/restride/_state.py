"""The state of programs, and the kind of tensors that they give."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from restride import _restride
from restride._errors import InputsError

__all__ = ["Like", "State", "like_of"]

Like = Any
"""``"numpy"``, ``"raw"`` for `restride.Tensor`, or a class of tensors that lends them by DLPack, such as ``torch.Tensor``."""


class State(MutableMapping[str, Any]):
    """Parameters, buffers and constants by name. Reading gives a copy; writing writes what runs read."""

    def __init__(self, native: _restride.Compiled | _restride.Instance | _restride.Session, like: Like) -> None:
        self._native = native
        self._like = like

    def __getitem__(self, name: str) -> Any:
        return self._native.state_get(name, self._like, True)

    def __contains__(self, name: object) -> bool:
        return name in self._native.state_names()

    def memory(self, name: str) -> Any:
        """A tensor on the state's own memory: shows what runs write, and runs see what is written there."""
        return self._native.state_get(name, self._like, False)

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(self._native, _restride.Session):
            raise InputsError("a session is bound to its state: write memory(name)")
        self._native.state_set(name, value)

    def __delitem__(self, name: str) -> None:
        raise TypeError("a program keeps all of its state")

    def __iter__(self) -> Iterator[str]:
        return iter(self._native.state_names())

    def __len__(self) -> int:
        return len(self._native.state_names())

    def __repr__(self) -> str:
        return f"State({', '.join(self)})"


def like_of(leaves: Sequence[Any]) -> Like:
    """PyTorch's tensors and those of its subclasses give PyTorch's, all else NumPy's."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor if tensor is not None and any(isinstance(leaf, tensor) for leaf in leaves) else "numpy"

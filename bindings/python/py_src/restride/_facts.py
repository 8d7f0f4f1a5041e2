"""What programs and their plans tell: values, memory, copies."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from restride import _display

__all__ = ["Explanation", "Plan", "Report", "ValueInfo"]


@dataclasses.dataclass(frozen=True)
class ValueInfo:
    """An input, an output or a tensor of the state, as the program declares it."""

    name: str
    kind: str
    """``tensor``, ``number``, ``fixed``, ``other``, ``parameter``, ``buffer`` or ``constant``."""
    dtype: str | None
    shape: tuple[int | str, ...]
    """Sizes: numbers, or expressions over symbols."""
    strides: tuple[int | str, ...]
    mutated: bool | None
    """Whether a run writes it; ``None`` where that depends on the inputs."""
    nbytes: int

    def __str__(self) -> str:
        sizes = ", ".join(str(s) for s in self.shape)
        what = f"{self.dtype}[{sizes}]" if self.dtype else self.kind
        return f"{self.name}: {what}{' (mutated)' if self.mutated else ''}"


def infos(rows: Sequence[Mapping[str, Any]]) -> tuple[ValueInfo, ...]:
    return tuple(ValueInfo(**{**r, "shape": tuple(r["shape"]), "strides": tuple(r["strides"])}) for r in rows)


class _Fields(Mapping[str, Any]):
    """The fields of a JSON object."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


class Plan(_Fields):
    """A memory plan: the fields of ``restride plan --json``, and a picture in a notebook."""

    @property
    def arena_bytes(self) -> int:
        """Bytes of intermediates and scratch."""
        return int(self._data["arena_bytes"])

    @property
    def lower_bound_bytes(self) -> int:
        """The largest sum of bytes that live at one step."""
        return int(self._data["lower_bound_bytes"])

    @property
    def buffers(self) -> list[dict[str, Any]]:
        """Offset, bytes, steps and values of each buffer."""
        return list(self._data["buffers"])

    def peak(self) -> tuple[int, list[dict[str, Any]]]:
        """The step at which most bytes live, and the buffers that live then, largest first."""
        return _display.peak(self.buffers)

    def __repr__(self) -> str:
        return _display.plan_text(self._data)

    def _repr_html_(self) -> str:
        return _display.plan_html(self._data)


class Report(_Fields):
    """Numbers of compiling: the fields of ``restride compile --json``."""

    def __init__(self, data: dict[str, Any], text: str, page: Callable[[], str]) -> None:
        super().__init__(data)
        self._text = text
        self._page = page

    def html(self) -> str:
        """A page with memory over steps, the peak and every copy, as ``restride compile --report`` writes it."""
        return self._page()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())

    def __repr__(self) -> str:
        return _display.plain(self._text)

    def _repr_html_(self) -> str:
        return _display.report_html(self._data, self._text)


class Explanation(_Fields):
    """What is computed in place, what is not, and every copy with its reason: ``restride explain --json``."""

    def __init__(self, data: dict[str, Any], text: str) -> None:
        super().__init__(data)
        self._text = text

    @property
    def copies(self) -> list[dict[str, Any]]:
        """The copies that stay, with bytes and reasons."""
        return list(self._data["copies"])

    def __repr__(self) -> str:
        return _display.plain(self._text)

    def _repr_html_(self) -> str:
        return _display.preformatted(self._text)

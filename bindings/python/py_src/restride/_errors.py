"""The exceptions of restride."""

from __future__ import annotations

__all__ = [
    "ArgumentsError",
    "CheckError",
    "Error",
    "FileError",
    "InputsError",
    "InvalidError",
    "LimitError",
    "OutOfBoundsError",
    "ProgramError",
    "UnsupportedError",
]


class Error(RuntimeError):
    """An error: what is wrong, at which node and source line, and what to do.

    ``str(error)`` is all of it on one line.
    """

    what: str
    """What is wrong, without place and advice."""
    node: str | None
    """The node, as ``%name = op``."""
    source: str | None
    """The line of the model's source, as ``file.py:12``."""
    code: str | None
    """The text of that line."""
    help: str | None
    """What to do about it."""

    def __init__(
        self,
        text: str,
        what: str | None = None,
        node: str | None = None,
        source: str | None = None,
        code: str | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(text)
        self.what = text if what is None else what
        self.node = node
        self.source = source
        self.code = code
        self.help = help


class FileError(Error, OSError):
    """The file is damaged, missing, or of another format."""


class InvalidError(Error):
    """The program contradicts itself."""


class ProgramError(Error):
    """PyTorch itself refuses the program, or refuses these inputs."""


class OutOfBoundsError(ProgramError, IndexError):
    """An index, a class or a dimension that a tensor does not have."""


class UnsupportedError(Error, NotImplementedError):
    """restride does not support a feature of the program."""


class LimitError(Error, MemoryError):
    """The program asks for more than its limits allow."""


class InputsError(Error, ValueError):
    """The inputs do not fit the program."""


class ArgumentsError(InputsError, TypeError):
    """The arguments of a call do not fit the program's parameters."""


class CheckError(Error):
    """A checker rejects a decision of a pass: a bug in restride."""

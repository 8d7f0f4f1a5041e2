"""Open, functionalize, differentiate, place, check and run PyTorch programs without PyTorch.

>>> import restride
>>> program = restride.load("model.pt2")
>>> logits = program(image)  # NumPy arrays, PyTorch tensors, anything that has ``__dlpack__``

Inputs are read where they are, and inputs that the program mutates are written there. ``restride.torch`` works on
PyTorch's own objects, and ``torch.compile(model, backend="restride")`` runs a model by restride.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

from restride import _restride
from restride._errors import (
    ArgumentsError,
    CheckError,
    Error,
    FileError,
    InputsError,
    InvalidError,
    LimitError,
    OutOfBoundsError,
    ProgramError,
    UnsupportedError,
)
from restride._program import (
    Compiled,
    Explanation,
    Instance,
    Plan,
    Program,
    Report,
    Session,
    State,
    ValueInfo,
    load,
    models,
)
from restride._pytree import register_class, register_dataclass
from restride._restride import Tensor
from restride._verify import Verification, verify

__version__: str = _restride.__version__

__all__ = [
    "ArgumentsError",
    "CheckError",
    "Compiled",
    "Error",
    "Explanation",
    "FileError",
    "InputsError",
    "Instance",
    "InvalidError",
    "LimitError",
    "OutOfBoundsError",
    "Plan",
    "Program",
    "ProgramError",
    "Report",
    "Session",
    "State",
    "Tensor",
    "UnsupportedError",
    "ValueInfo",
    "Verification",
    "load",
    "models",
    "ops",
    "register_class",
    "register_dataclass",
    "verify",
]


def ops() -> list[dict[str, Any]]:
    """All operators with the parts that each declares, as ``restride ops --json`` has them."""
    table: list[dict[str, Any]] = json.loads(_restride.ops())
    return table


def __getattr__(name: str) -> Any:
    # PyTorch is loaded only where `restride.torch` is used.
    if name == "torch":
        return importlib.import_module("restride.torch")
    raise AttributeError(f"module 'restride' has no attribute '{name}'")

"""restride on PyTorch's own objects: ``ExportedProgram``, ``GraphModule``, functions.

``torch.compile(model, backend="restride")`` needs no import of this module.
"""

from __future__ import annotations

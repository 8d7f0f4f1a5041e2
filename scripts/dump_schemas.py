#!/usr/bin/env python3
"""Writes crates/restride-ops/data/schemas.txt: the schema of every operator in the dispatcher of the installed
PyTorch (namespaces aten, prims and, where installed, torchvision), one a line, sorted.

    python scripts/dump_schemas.py
"""
import pathlib

import torch
import torch._prims  # noqa: F401  registers prims

try:
    import torchvision  # noqa: F401  registers torchvision
except ImportError:
    print("torchvision is not installed: its operators will be missing")

NAMESPACES = ("aten", "prims", "torchvision")
OUT = pathlib.Path(__file__).resolve().parent.parent / "crates/restride-ops/data/schemas.txt"

names = set(torch._C._dispatch_get_all_op_names())
schemas = set()
for schema in torch._C._jit_get_all_schemas():
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    if name in names and schema.name.split("::")[0] in NAMESPACES:
        schemas.add(str(schema))
OUT.write_text("".join(f"{s}\n" for s in sorted(schemas)))
print(f"{len(schemas)} schemas of torch {torch.__version__} in {OUT}")

#!/usr/bin/env python3
"""Write the lists of PyTorch's operators that the crates hold as data.

crates/restride-ops/data/schemas.txt: the schema of every operator in the dispatcher of the installed PyTorch (namespaces aten,
prims, those of functional collectives and of quantized programs and, where installed, torchvision), one a line, sorted.
core.txt beside it: the operators of Core ATen, which PyTorch asks every backend to support (`torch.Tag.core`). out_forms.txt: the
out= forms that write elements or matrix products straight into `out`; the others (tagged `generated`) make a tensor and copy it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT

import torch
import torch._prims
import torch.ao.quantization.fx._decomposed  # registers the operators of quantized programs
import torch.distributed._functional_collectives  # registers the functional collectives

try:
    import torchvision  # noqa: F401  registers torchvision
except ImportError:
    print("torchvision is not installed: its operators will be missing")

NAMESPACES = (
    "aten",
    "prims",
    "torchvision",
    "_c10d_functional",
    "_c10d_functional_autograd",
    "_dtensor",
    "quantized_decomposed",
)
CRATES = ROOT / "crates"
OUT = CRATES / "restride-ops/data/schemas.txt"
CORE = CRATES / "restride-ops/data/core.txt"
OUT_FORMS = CRATES / "restride-ops/data/out_forms.txt"
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")

names = set(torch._C._dispatch_get_all_op_names())
schemas = set()
for schema in torch._C._jit_get_all_schemas():
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    if name in names and schema.name.split("::")[0] in NAMESPACES:
        schemas.add(str(schema))
OUT.write_text("".join(f"{s}\n" for s in sorted(schemas)))
print(f"{len(schemas)} schemas of torch {torch.__version__} in {OUT}")


def writes_there(name):
    """Is this an out= form of one result with a CPU kernel that writes into `out`?"""
    packet, _, overload = name.removeprefix("aten::").partition(".")
    try:
        packet = getattr(torch.ops.aten, packet)
        op = getattr(packet, overload)
    except AttributeError:
        return False
    outs = [a for a in op._schema.arguments if a.kwarg_only and a.alias_info is not None and a.alias_info.is_write]
    overloads = [getattr(packet, o) for o in packet.overloads()]
    kind = any(torch.Tag.pointwise in o.tags for o in overloads) or packet.__name__ in PRODUCTS
    on_cpu = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU")
    return len(outs) == 1 and kind and on_cpu and torch.Tag.generated not in op.tags


forms = sorted(n.replace("::", ".") for n in names if n.startswith("aten::") and "." in n and writes_there(n))
OUT_FORMS.write_text("".join(f"{n}\n" for n in forms))
print(f"{len(forms)} out= forms in {OUT_FORMS}")


def is_core(name):
    """Does PyTorch tag this operator of the dispatcher as one of Core ATen?"""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    try:
        return torch.Tag.core in getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default").tags
    except AttributeError:
        return False


def full(name):
    """`aten.add.Tensor` of `aten::add.Tensor`; `aten.relu.default` of `aten::relu`."""
    plain = name.replace("::", ".")
    return plain if plain.count(".") == 2 else f"{plain}.default"


core = sorted(full(n) for n in names if n.split("::")[0] in NAMESPACES and is_core(n))
CORE.write_text("".join(f"{n}\n" for n in core))
print(f"{len(core)} operators of Core ATen in {CORE}")

"""Sample calls of operators as the Rust examples dump them (JSON lines), made in PyTorch. Needs torch."""

import contextlib
import struct
import warnings

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators of quantized programs
from torch._decomp import decomposition_table

with contextlib.suppress(ImportError):
    import torchvision  # noqa: F401 - registers its operators

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


def number(bits):
    return struct.unpack(">d", bytes.fromhex(bits))[0]


def tensor(spec):
    dtype = getattr(torch, spec["dtype"])
    raw = bytearray.fromhex(spec["data"])
    cells = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    # In memory of PyTorch's own: frombuffer's is not resizable.
    view = cells.clone().as_strided(spec["size"], spec["stride"], spec["offset"])
    if spec.get("conj"):
        view = torch._conj(view)
    return torch._neg_view(view) if spec.get("neg") else view


def argument(spec):
    if isinstance(spec, list):
        return [argument(s) for s in spec]
    if not isinstance(spec, dict):
        return spec
    if "data" in spec:
        return tensor(spec)
    if "float" in spec:
        return number(spec["float"])
    if "complex" in spec:
        return complex(*map(number, spec["complex"]))
    if "dtype" in spec:
        return getattr(torch, spec["dtype"])
    if "device" in spec:
        return torch.device(spec["device"])
    return torch.strided if "layout" in spec else getattr(torch, spec["memory_format"])


def operator(name):
    """The overload of a full name, such as `aten.add.Tensor`."""
    namespace, op, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), op), overload)


def spread(value, schema):
    """A list where the operator's handle wants one; PyTorch's Python binding makes it of one number."""
    if type(value) is int and str(schema.type) in ("List[int]", "Optional[List[int]]"):
        value = [value]
    # A single number stands for a list of known length.
    return [value] * schema.N if schema.N and isinstance(value, (int, float)) else value


def call(op, args):
    """The results of a call, lists of them flattened."""
    schema = op._schema.arguments
    args = [spread(a, s) for a, s in zip(args, schema, strict=False)]
    positional = [a for a, s in zip(args, schema, strict=False) if not s.kwarg_only]
    keyword = {s.name: a for a, s in zip(args, schema, strict=False) if s.kwarg_only}
    try:
        out = op(*positional, **keyword)
    except NotImplementedError as e:
        # An operator without a CPU kernel (not: without one for an element type) runs as its decomposition.
        if op not in decomposition_table or "Could not run" not in str(e):
            raise
        out = decomposition_table[op](*positional, **keyword)
    flat = []
    for x in out if isinstance(out, (tuple, list)) else [out]:
        flat.extend(x) if isinstance(x, (tuple, list)) else flat.append(x)
    return flat


def tensors(args):
    """The tensors among arguments, lists included."""
    for a in args:
        if isinstance(a, torch.Tensor):
            yield a
        elif isinstance(a, list):
            yield from tensors(a)

#!/usr/bin/env python3
"""Replays restride's sample calls in PyTorch and compares results: element types, sizes, strides, aliasing, values.

    cargo run -q -p restride-ops --example dump_samples [OP ...] | python scripts/check/ops_check.py

A call that PyTorch refuses must be refused by restride and the other way round. Prints one line per difference, then a
summary; fails if there is a difference. With --all-ok prints every operator that agrees as well.
"""

import argparse
import json
import math
import struct
import sys
import warnings
from collections import Counter

import torch
from torch._decomp import decomposition_table

try:
    import torchvision  # noqa: F401 - registers its operators
except ImportError:
    pass

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# What one rounding more or less may change, where a result is not exact.
LEAST = {torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 8e-3)}


def number(bits):
    return struct.unpack(">d", bytes.fromhex(bits))[0]


def tensor(spec):
    dtype = getattr(torch, spec["dtype"])
    raw = bytearray.fromhex(spec["data"])
    cells = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    # On memory of PyTorch's own: frombuffer's is not resizable.
    view = cells.clone().as_strided(spec["size"], spec["stride"], spec["offset"])
    if spec.get("conj"):
        view = torch._conj(view)
    if spec.get("neg"):
        view = torch._neg_view(view)
    return view


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
    if "layout" in spec:
        return torch.strided
    return getattr(torch, spec["memory_format"])


def operator(name):
    namespace, op, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), op), overload)


def spread(value, schema):
    """One number for a list of them: PyTorch's Python binding makes a list of it, the operator's own handle does not."""
    wants_list = str(schema.type) in ("List[int]", "Optional[List[int]]")
    return [value] if wants_list and type(value) is int else value


def call(op, args):
    schema = op._schema.arguments
    args = [spread(a, s) for a, s in zip(args, schema)]
    # A single number stands for a list of known length.
    args = [[a] * s.N if s.N and isinstance(a, (int, float)) else a for a, s in zip(args, schema)]
    positional = [a for a, s in zip(args, schema) if not s.kwarg_only]
    keyword = {s.name: a for a, s in zip(args, schema) if s.kwarg_only}
    try:
        out = op(*positional, **keyword)
    except NotImplementedError as e:
        # No kernel for the CPU (not: none for an element type): what PyTorch says that it is composed of.
        if op not in decomposition_table or "Could not run" not in str(e):
            raise
        out = decomposition_table[op](*positional, **keyword)
    flat = []
    for x in out if isinstance(out, (tuple, list)) else [out]:
        flat.extend(x) if isinstance(x, (tuple, list)) else flat.append(x)
    return flat


def tensors(args):
    for a in args:
        if isinstance(a, torch.Tensor):
            yield a
        elif isinstance(a, list):
            yield from tensors(a)


def alias_of(result, args):
    if result.untyped_storage().nbytes() == 0:
        return None
    here = result.untyped_storage().data_ptr()
    return next((i for i, a in enumerate(tensors(args)) if a.untyped_storage().data_ptr() == here), None)


def compare_values(ours, theirs, tolerance):
    if ours.is_conj() != theirs.is_conj() or ours.is_neg() != theirs.is_neg():
        return f"lazy bits conj={ours.is_conj()} neg={ours.is_neg()}, PyTorch conj={theirs.is_conj()} neg={theirs.is_neg()}"
    if ours.dtype != torch.bool:
        ours, theirs = ours.resolve_conj().resolve_neg(), theirs.resolve_conj().resolve_neg()
    if tolerance == "random" or ours.numel() == 0:
        return None
    if tolerance == "exact" or not (ours.is_floating_point() or ours.is_complex()):
        same = (ours == theirs) | ((ours != ours) & (theirs != theirs))
        if bool(same.all()):
            return None
        where = (~same).nonzero()[0].tolist()
    else:
        rtol, atol = tolerance
        more = LEAST.get(ours.dtype, (0.0, 0.0))
        wide = torch.complex128 if ours.is_complex() else torch.float64
        # Terms of sums that PyTorch rounds on the way are as large as the results.
        sizes = theirs.to(wide).abs().flatten()
        size = max([1.0, *sizes[sizes.isfinite()].tolist()])
        rtol, atol = max(rtol, more[0]), max(atol, more[1] * size)
        same = torch.isclose(ours.to(wide), theirs.to(wide), rtol=rtol, atol=atol, equal_nan=True)
        if bool(same.all()):
            return None
        where = (~same).nonzero()[0].tolist()
    at = tuple(where)
    return f"at {where}: {ours[at].item()!r}, PyTorch {theirs[at].item()!r} ({int((~same).sum())} of {same.numel()} differ)"


def compare(spec, theirs, args, tolerance, mutable):
    if not isinstance(theirs, torch.Tensor):
        ours = argument(spec)
        if tolerance == "random" or ours == theirs or (ours != ours and theirs != theirs):
            return None
        if isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=1e-4, abs_tol=1e-5):
            return None
        return f"number {ours!r}, PyTorch {theirs!r}"
    ours = tensor(spec["tensor"])
    if ours.dtype != theirs.dtype:
        return f"type {ours.dtype}, PyTorch {theirs.dtype}"
    if ours.size() != theirs.size():
        return f"sizes {list(ours.size())}, PyTorch {list(theirs.size())}"
    if ours.stride() != theirs.stride():
        return f"strides {list(ours.stride())}, PyTorch {list(theirs.stride())} for sizes {list(ours.size())}"
    if ours.numel():
        # What a mutating operator returns is compared as it is after the call.
        if not mutable and spec["alias"] != (base := alias_of(theirs, args)):
            return f"view of operand {spec['alias']}, PyTorch {base}"
        if ours.storage_offset() != theirs.storage_offset():
            return f"offset {ours.storage_offset()}, PyTorch {theirs.storage_offset()}"
    return compare_values(ours, theirs, tolerance)


def check(record):
    """What differs, or None."""
    try:
        op = operator(record["op"])
    except AttributeError:
        # Other packages' operators are not registered here.
        ours = record["op"].split(".")[0] in ("aten", "prims")
        return "PyTorch has no such operator" if ours else None
    args = [argument(a) for a in record["args"]]
    try:
        with torch.no_grad():
            theirs = call(op, args)
    except Exception as e:  # noqa: BLE001 - whatever PyTorch raises is a refusal
        if "error" in record:
            return None
        return f"PyTorch refuses: {str(e).splitlines()[0] if str(e) else type(e).__name__}"
    if "error" in record:
        return f"refused here: {record['error']}"
    if len(record["results"]) != len(theirs):
        return f"{len(record['results'])} results, PyTorch {len(theirs)}"
    for i, (spec, t) in enumerate(zip(record["results"], theirs)):
        if t is None:
            continue
        why = compare(spec, t, args, record["tolerance"], op._schema.is_mutable)
        if why:
            return f"result {i}: {why}"
    return None


def shown(record):
    def arg(a):
        if isinstance(a, dict) and "data" in a:
            return f"{a['dtype']}{a['size']}{a['stride']}"
        if isinstance(a, list):
            return "[" + ", ".join(map(arg, a)) + "]"
        return str(argument(a))

    return f"{record['op']} #{record['index']}({', '.join(map(arg, record['args']))})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", help="what dump_samples wrote; standard input if left out")
    parser.add_argument("--all-ok", action="store_true", help="name the operators that agree")
    options = parser.parse_args()
    source = open(options.file) if options.file else sys.stdin
    calls, refused, bad, names = 0, 0, Counter(), {}
    for line in source:
        record = json.loads(line)
        calls += 1
        refused += "error" in record
        names[record["op"]] = True
        try:
            why = check(record)
        except Exception as e:  # noqa: BLE001 - one call must not hide the others
            why = f"not compared: {type(e).__name__}: {e}"
        if why:
            bad[record["op"]] += 1
            print(f"DIFFERS {shown(record)}: {why}")
    if options.all_ok:
        print("agree:", *(n for n in names if n not in bad))
    print(
        f"{len(names)} operators, {calls} calls ({refused} refused on both sides or differing): "
        f"{sum(bad.values())} calls of {len(bad)} operators differ"
    )
    sys.exit(1 if bad or not calls else 0)


if __name__ == "__main__":
    main()

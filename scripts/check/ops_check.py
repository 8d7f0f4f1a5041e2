#!/usr/bin/env python3
"""Replays restride's sample calls in PyTorch and compares results: element types, sizes, strides, aliasing, values.

    cargo run -q -p restride-ops --example dump_samples [OP ...] | python scripts/check/ops_check.py

A call that PyTorch refuses must be refused by restride and the other way round. Prints one line per difference, then a
summary; fails at any difference. --all-ok also prints every operator that agrees.
"""

import json
import math
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.driver import parser
from lib.samples import argument, call, operator, tensor, tensors

import torch

# The effect of one rounding, where a result is not exact.
LEAST = {torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 8e-3)}


def alias_of(result, args):
    if result._is_zerotensor() or result.untyped_storage().nbytes() == 0:
        return None
    here = result.untyped_storage().data_ptr()
    return next((i for i, a in enumerate(tensors(args)) if a.untyped_storage().data_ptr() == here), None)


def compare_values(ours, theirs, tolerance):
    if theirs._is_zerotensor():
        theirs = torch.zeros_like(theirs, memory_format=torch.contiguous_format)
    if ours.is_conj() != theirs.is_conj() or ours.is_neg() != theirs.is_neg():
        return f"lazy bits conj={ours.is_conj()} neg={ours.is_neg()}, PyTorch conj={theirs.is_conj()} neg={theirs.is_neg()}"
    if ours.dtype != torch.bool:
        ours, theirs = ours.resolve_conj().resolve_neg(), theirs.resolve_conj().resolve_neg()
    if tolerance == "random" or ours.numel() == 0:
        return None
    if tolerance == "exact" or not (ours.is_floating_point() or ours.is_complex()):
        same = (ours == theirs) | ((ours != ours) & (theirs != theirs))
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
        # The results of a mutating operator are compared after the call.
        if not mutable and spec["alias"] != (base := alias_of(theirs, args)):
            return f"view of operand {spec['alias']}, PyTorch {base}"
        if ours.storage_offset() != theirs.storage_offset():
            return f"offset {ours.storage_offset()}, PyTorch {theirs.storage_offset()}"
    return compare_values(ours, theirs, tolerance)


def check(record):
    """The difference, or None."""
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
    except Exception as e:
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
    p = parser(__doc__)
    p.add_argument("file", nargs="?", help="what dump_samples wrote; standard input if left out")
    p.add_argument("--all-ok", action="store_true", help="name the operators that agree")
    o = p.parse_args()
    calls, refused, bad, names = 0, 0, Counter(), {}
    for line in open(o.file) if o.file else sys.stdin:
        record = json.loads(line)
        calls += 1
        refused += "error" in record
        names[record["op"]] = True
        try:
            why = check(record)
        except Exception as e:
            # The other calls are still compared.
            why = f"not compared: {type(e).__name__}: {e}"
        if why:
            bad[record["op"]] += 1
            print(f"DIFFERS {shown(record)}: {why}")
    if o.all_ok:
        print("agree:", *(n for n in names if n not in bad))
    print(
        f"{len(names)} operators, {calls} calls ({refused} refused on both sides or differing): "
        f"{sum(bad.values())} calls of {len(bad)} operators differ"
    )
    return 1 if bad or not calls else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The list of values that PyTorch's autograd saves for the backward pass: crates/restride-ops/src/gradient/saved.txt.

    cargo run -q -p restride-ops --example dump_samples | python scripts/check/saved_values.py [--write]

Where PyTorch has a formula for an operator (`derivatives.yaml`, part of its package), PyTorch's generator tells what is kept under
which condition. Where PyTorch composes an operator and restride has a rule for it, restride's sample calls are measured. Calls
of both kinds run under `saved_tensors_hooks`, and must keep what the line says. Without --write, fails if the file differs.
"""

import itertools
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT
from lib.driver import parser
from lib.samples import argument, call, operator, tensors

import torch
import torchgen
from torchgen.gen import parse_native_yaml
from torchgen.packaged.autograd.load_derivatives import load_derivatives

FILE = ROOT / "crates/restride-ops/src/gradient/saved.txt"
HEADER = """\
# What PyTorch keeps of a call for its backward pass, for each operator that it differentiates. `self`: an argument. `self?other`: an
# argument kept only if the gradient of `other` is asked for (`a?b|c`: of one of both). `=0`: a result. `!`: has no gradient.
# Written by scripts/check/saved_values.py.
"""

# Neither a formula nor a sample tells: `copy_` is written by hand (VariableTypeManual.cpp), a power in double precision keeps its base.
KNOWN = {"aten.copy.default": [], "aten.float_power.Tensor_Scalar": ["self"]}

# Where the saved values depend on the call, the line is an upper bound.
AT_MOST = {
    "aten.float_power.Tensor_Tensor": "a copy in double precision is kept of what is not",
    "aten.float_power.Scalar": "the same",
    "aten.linear.default": "a copy is kept of what cannot be viewed as one matrix",
    "aten.matmul.default": "the same",
}

# Sample calls of each operator that are run.
SAMPLES = 40


def formulas():
    """PyTorch's formulas by operator, for differentiable operators that it does not compose."""
    root = Path(torchgen.__file__).parent / "packaged"
    native = root / "ATen/native"
    files = str(native / "native_functions.yaml"), str(native / "tags.yaml")
    composed = {
        str(f.func.name) for f in parse_native_yaml(*files).native_functions if f.has_composite_implicit_autograd_kernel
    }
    found, _ = load_derivatives(str(root / "autograd/derivatives.yaml"), *files)
    out = {}
    for schema, by_key in found.items():
        info = by_key.get("Default")
        if info is not None and any(d.var_names for d in info.derivatives) and str(schema.name) not in composed:
            out[f"aten.{schema.name.name}.{schema.name.overload_name or 'default'}"] = info
    return out


def is_tensor(attribute):
    kind = str(attribute.nctype.type)
    return "name='Tensor'" in kind or "TensorList" in kind or "ITensorListRef" in kind


def condition(info, attribute, differentiated, lists):
    """The arguments of whose gradients one must be asked for; None if it is kept anyway. As `guard_for` in PyTorch's
    gen_variable_type.py."""
    name = str(attribute.nctype.name)
    if lists or "backward" in info.name or len(differentiated) <= 1:
        return None
    if str(attribute.nctype.type) != "BaseCType(type=BaseCppType(ns='at', name='Tensor'))":
        return None
    used = [d for d in info.derivatives if attribute in d.saved_inputs]
    if len(used) != 1:
        return None
    if len(used[0].var_names) == 1:
        return [used[0].var_names[0]]
    wrapped = re.search(rf"wrap_opt_if\({name},(.*?)\)", used[0].formula)
    if wrapped is None:
        return None
    return [differentiated[int(i)] for i in re.findall(r"grad_input_mask\[(\d+)\]", wrapped.group(1))]


def declared(name, info):
    """The line of an operator with a formula."""
    schema = operator(name)._schema
    arguments = [a.name for a in schema.arguments]
    asked = {n for d in info.derivatives for n in d.var_names}
    differentiated = [n for n in arguments if n in asked]
    lists = any("List[Tensor]" in str(a.type) for a in schema.arguments)
    words = {}
    for a in info.all_saved_inputs:
        if not is_tensor(a):
            continue
        own = str(a.nctype.name)
        if own not in arguments:
            raise SystemExit(f"{name} keeps {own}, which is no argument: {a.expr}")
        words[own] = condition(info, a, differentiated, lists)
    results = [
        str(r.name or ("result" if len(schema.returns) == 1 else f"result{i}")) for i, r in enumerate(schema.returns)
    ]
    outs = set()
    for a in info.all_saved_outputs:
        if is_tensor(a):
            own = str(a.nctype.name)
            outs.add(results.index(own) if own in results else int(own.removeprefix("result") or 0))
    return [(words[n] is None and n) or f"{n}?{'|'.join(words[n])}" for n in arguments if n in words] + [
        f"={k}" for k in sorted(outs)
    ]


def floating(t):
    return t.is_floating_point() or t.is_complex()


def measured(name, record):
    """(arguments whose gradients are asked for, saved values, values with an address) for sets of arguments; nothing for
    calls without a gradient."""
    op = operator(name)
    names = [a.name for a in op._schema.arguments]

    def named(args):
        return [(n, t) for n, a in zip(names, args) for t in tensors([a])]

    first = named([argument(a) for a in record["args"]])
    asking = sorted({n for n, t in first if floating(t)}, key=names.index)
    sets = [s for k in range(1, len(asking) + 1) for s in itertools.combinations(asking, k)]
    if len(asking) > 4:
        sets = [s for s in sets if len(s) in (1, len(asking))]
    for wanted in sets:
        args = [argument(a) for a in record["args"]]
        operands = named(args)
        for n, t in operands:
            if n in wanted and floating(t):
                t.requires_grad_()
        kept = []

        def pack(t, kept=kept):
            kept.append(t)
            return t

        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                outs = call(op, args)
        except Exception:
            # PyTorch refuses the sample, or has no gradient of it.
            continue
        outs = [o for o in outs if isinstance(o, torch.Tensor)]
        if not any(o.requires_grad for o in outs):
            continue

        def at(t):
            return t.untyped_storage().data_ptr() if t.untyped_storage().nbytes() else None

        where = {at(t) for t in kept} - {None}
        own = {n for n, t in operands if at(t) in where}
        inside = {at(t) for _, t in operands}
        own |= {f"={k}" for k, o in enumerate(outs) if at(o) in where and at(o) not in inside}
        if any(o.grad_fn is not None and o.grad_fn.name().endswith("::NotImplemented") for o in outs):
            yield frozenset(wanted), {"!"}, set()
            continue
        # Empty tensors have no address to compare.
        there = {n for n, t in operands if at(t) is not None} | {
            f"={k}" for k, o in enumerate(outs) if at(o) is not None
        }
        yield frozenset(wanted), own, there


def fit(name, seen):
    """The words that say what was measured."""
    words = []
    if any("!" in own for _, own, _ in seen):
        return ["!"]
    subjects = sorted({w for _, own, _ in seen for w in own})
    schema = [a.name for a in operator(name)._schema.arguments]
    asking = sorted({n for wanted, _, _ in seen for n in wanted}, key=schema.index)
    for w in subjects:
        with_it = [wanted for wanted, own, there in seen if w in own]
        without = [wanted for wanted, own, there in seen if w not in own and w in there]
        kept = tuple(asking)
        if without and not w.startswith("="):
            # The condition that says the least too much: PyTorch may keep a copy in its place.
            subsets = [c for k in range(1, len(asking) + 1) for c in itertools.combinations(asking, k)]
            enough = [c for c in subsets if all(set(c) & s for s in with_it)]
            kept = min(enough, key=lambda c: sum(bool(set(c) & s) for s in without))
        words.append(w if kept == tuple(asking) else f"{w}?{'|'.join(kept)}")
    order = {n: i for i, n in enumerate(schema)}
    return sorted(words, key=lambda w: (w.startswith("="), order.get(w.split("?")[0], 0), w))


def expected(line, wanted, there):
    """The values that a line declares as saved."""
    out = set()
    for word in line:
        own, _, asked = word.partition("?")
        if own in there and (not asked or set(asked.split("|")) & wanted):
            out.add(own)
    return out


def main():
    p = parser(__doc__)
    p.add_argument("--write", action="store_true", help="write the file instead of comparing")
    p.add_argument("--show", metavar="OPERATOR", help="print what is measured of this operator")
    options = p.parse_args()
    known = formulas()
    records, kinds = defaultdict(list), {}
    for text in sys.stdin:
        record = json.loads(text)
        kinds[record["op"]] = record["gradient"]
        if "error" not in record and len(records[record["op"]]) < SAMPLES:
            records[record["op"]].append(record)
    lines, different = {}, defaultdict(list)
    for name, kind in kinds.items():
        if not name.startswith("aten.") or kind is None:
            continue
        if name in KNOWN:
            lines[name] = KNOWN[name]
            continue
        own = known.get(name)
        if own is None and kind not in ("rule", "zero"):
            continue
        seen = [m for r in records[name] for m in measured(name, r)]
        if name == options.show:
            for m in seen:
                print(m)
        if own is None and not seen:
            continue
        lines[name] = declared(name, own) if own is not None else fit(name, seen)
        if kind == "view" and not lines[name]:
            del lines[name]
            continue
        for wanted, kept, there in seen:
            says = {"!"} if lines[name] == ["!"] else expected(lines[name], wanted, there)
            if says != kept and not (name in AT_MOST and kept < says):
                different[name].append(f"{sorted(wanted)} asked: {sorted(kept)} kept, the line says {sorted(says)}")
    # In-place forms with formulas of their own.
    for name in list(lines):
        base, overload = name.rsplit(".", 1)
        form = f"{base}_.{overload}"
        if form in known and (own := declared(form, known[form])) != lines[name]:
            lines[form] = own
    text = HEADER + "".join(f"{' '.join([name, *line])}\n" for name, line in sorted(lines.items()))
    for name, found in different.items():
        print(f"{name} ({' '.join(lines[name])}): {len(found)} calls: {found[0]}")
    print(f"{len(lines)} operators, {sum(map(len, different.values()))} calls of {len(different)} keep something else")
    if options.write:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        sys.exit(f"{FILE} says something else; --write writes it anew")


if __name__ == "__main__":
    main()

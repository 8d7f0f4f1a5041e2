#!/usr/bin/env python3
"""The list of what PyTorch's out= forms do where `out` overlaps itself or an operand: crates/restride-ops/data/out_overlaps.txt.

    cargo run -q -p restride-ops --example dump_samples | python scripts/check/out_overlaps.py [--write]

Makes restride's sample calls of each functional operator through every out= form that the installed PyTorch has of it, with an `out`
in each position that the file's first lines name, and compares the results with the functional operator's. Without --write, fails
if the file differs.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT
from lib.driver import parser
from lib.samples import argument, call, spread

import torch

FILE = ROOT / "crates/restride-ops/data/out_overlaps.txt"
HEADER = """\
# What PyTorch's out= forms do where `out` overlaps itself or an operand. `#1` after a name: the second tensor that the form writes. Two
# letters for an `out` with several elements in one cell (a dimension has stride 0):
#   1  it has the sizes of the result
#   2  it has others, so the call resizes it
# A third: c where the form computes its result apart and copies it. Then four letters for each tensor, or list of tensors, among the
# arguments, whose memory `out` shares:
#   1  all its elements in their order; `out` has the sizes of the result
#   2  some cells; the same
#   3  no cells, but some after the resize
#   4  some cells, but none after the resize
# r: PyTorch refuses each call. a: the result is that of memory apart. w: PyTorch writes a cell more than once.
# -: this depends on more, or no sample tells.
# Written by scripts/check/out_overlaps.py.
"""

# Samples of each operator that are run.
SAMPLES = 40
# Calls that show results of memory apart, at least, where the operator does not say that it copies.
SHOWN = 2
# Operators that read neighbours of an element: some of their samples have windows of one element only.
WINDOWS = ("pool", "_pad")
REFUSALS = (
    "more than one element of the written-to tensor refers to a single memory location",
    "some elements of the input tensor and the written-to tensor refer to a single memory location",
)


def written(argument):
    return argument.alias_info is not None and argument.alias_info.is_write


def out_forms():
    """Every out= form of the dispatcher, with its name."""
    for full in sorted(torch._C._dispatch_get_all_op_names()):
        namespace, _, rest = full.partition("::")
        name, _, overload = rest.partition(".")
        if namespace not in ("aten", "prims", "torchvision") or not overload:
            continue
        try:
            op = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        except AttributeError:
            continue
        outs = [a for a in op._schema.arguments if written(a)]
        if outs and all(a.kwarg_only and str(a.type) == "Tensor" for a in outs):
            yield f"{namespace}.{name}.{overload}", op


def functional(op):
    """The first overload that takes the other arguments and writes none."""
    wanted = [str(a.type) for a in op._schema.arguments if not written(a)]
    for overload in op.overloadpacket.overloads():
        plain = getattr(op.overloadpacket, overload)
        given = plain._schema.arguments
        if not any(written(a) for a in given) and [str(a.type) for a in given] == wanted:
            return plain
    return None


def tensors_at(args):
    for i, a in enumerate(args):
        for j, t in enumerate(a) if isinstance(a, list) else [(None, a)]:
            if isinstance(t, torch.Tensor):
                yield (i, j), t


def stretched(result, resized):
    wide = [d for d, n in enumerate(result.size()) if n > 1]
    if resized:
        shape = [2] * (result.dim() + 1) + [3]
        return torch.zeros(3, dtype=result.dtype).expand(shape) if result.numel() else None
    if not wide or not result.numel():
        return None
    strides = list(torch.empty(result.size(), device="meta").stride())
    strides[wide[0]] = 0
    return torch.zeros(result.numel(), dtype=result.dtype).as_strided(result.size(), strides)


def sharing(result, operand, position):
    """An operand and an `out` on one memory, or None where the sizes do not allow it."""
    n, m = operand.numel(), result.numel()
    plain = operand.is_contiguous() and not operand.is_conj() and not operand.is_neg()
    if not plain or not n or not m or operand.dtype != result.dtype:
        return None
    memory = torch.zeros(n + m + 8, dtype=operand.dtype)

    def placed(at):
        memory[at : at + n] = operand.reshape(-1)
        return memory[at : at + n].view(operand.size())

    if position == 2 and operand.size() == result.size():
        return placed(0), memory[:n].view(result.size())
    if position == 3 and max(n, m) > 1:
        return placed(0), memory[n - 1 : n - 1 + m].view(result.size())
    if position == 4 and m > 1:
        return placed(1), memory[:1]
    if position == 5 and n > 1:
        return placed(m), memory[: m + 1]
    return None


def same(a, b):
    if a.dtype != b.dtype or a.size() != b.size():
        return False
    a, b = a.resolve_conj().resolve_neg(), b.resolve_conj().resolve_neg()
    if a.dtype == torch.bool or not (a.is_floating_point() or a.is_complex()):
        return bool((a == b).all())
    return torch.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)


def outcome(op, args, outs, k, want):
    """A letter, or None for a call that PyTorch refuses for another reason."""
    positional, keyword = [], {}
    args, rest, missing = iter(args), iter(outs), object()
    for a in op._schema.arguments:
        value = next(rest) if written(a) else next(args, missing)
        if value is missing:
            continue
        value = spread(value, a)
        if a.kwarg_only:
            keyword[a.name] = value
        else:
            positional.append(value)
    try:
        op(*positional, **keyword)
    except Exception as e:
        return "r" if any(r in str(e) for r in REFUSALS) else None
    return "a" if want is None or same(outs[k], want) else "w"


def letters(op, plain, records, random):
    """The word of each `out`."""
    count = sum(written(a) for a in op._schema.arguments)
    copies = torch.Tag.generated in op.tags
    places = [i for i, a in enumerate(plain._schema.arguments) if "Tensor" in str(a.type)]
    # By `out`, argument (None: `out` overlaps itself) and position, how often each letter was seen.
    found = defaultdict(lambda: defaultdict(int))
    for record in records[:SAMPLES]:
        try:
            want = call(plain, [argument(a) for a in record["args"]])
        except Exception:
            continue
        if len(want) != count or not all(isinstance(r, torch.Tensor) for r in want):
            continue
        cases = [(None, position) for position in (0, 1)]
        cases += [
            (p, position) for p, _ in tensors_at([argument(a) for a in record["args"]]) for position in (2, 3, 4, 5)
        ]
        for k in range(count):
            for place, position in cases:
                args = [argument(a) for a in record["args"]]
                outs = [torch.empty_strided(r.size(), r.stride(), dtype=r.dtype) for r in want]
                if place is None:
                    outs[k] = stretched(want[k], position == 1)
                else:
                    pair = sharing(want[k], dict(tensors_at(args))[place], position)
                    outs[k] = pair and pair[1]
                    if pair and place[1] is None:
                        args[place[0]] = pair[0]
                    elif pair:
                        args[place[0]][place[1]] = pair[0]
                if outs[k] is None:
                    continue
                letter = outcome(op, args, outs, k, None if random else want[k])
                if letter is not None:
                    found[k, place and place[0], position][letter] += 1

    def letter(k, place, position):
        seen = found[k, place, position]
        if position == 0 and seen and "r" not in seen:
            return "w"
        if len(seen) != 1:
            return "-"
        ((only, times),) = seen.items()
        # Calls on small tensors may be right by the order of a loop.
        lucky = not copies and (position in (3, 4) or times < SHOWN or any(w in str(op) for w in WINDOWS))
        return "-" if position > 1 and (only == "w" or (only == "a" and (random or lucky))) else only

    def word(k):
        own = "".join(letter(k, None, p) for p in (0, 1)) + ("c" if copies else "-")
        return "/".join([own] + ["".join(letter(k, place, p) for p in (2, 3, 4, 5)) for place in places])

    return [word(k) for k in range(count)]


def main():
    p = parser(__doc__)
    p.add_argument("--write", action="store_true", help="write the file")
    o = p.parse_args()
    records = defaultdict(list)
    for line in sys.stdin:
        record = json.loads(line)
        if "error" not in record:
            records[record["op"]].append(record)
    classes = defaultdict(list)
    forms = 0
    for name, op in out_forms():
        plain = functional(op)
        if plain is None:
            continue
        full = plain.name().replace("::", ".")
        own = records.get(full if full.count(".") == 2 else f"{full}.default")
        if not own:
            continue
        forms += 1
        for k, word in enumerate(letters(op, plain, own, own[0]["tolerance"] == "random")):
            classes[word].append(f"{name}#{k}" if k else name)
    text = HEADER + "".join(f"{word} {' '.join(names)}\n" for word, names in sorted(classes.items()))
    print(f"{forms} out= forms of PyTorch {torch.__version__} in {len(classes)} classes")
    if o.write:
        FILE.write_text(text)
        return 0
    stood = FILE.read_text() if FILE.exists() else ""
    if stood == text:
        return 0
    before = {n: w for w, *ns in map(str.split, stood.splitlines()) if w != "#" for n in ns}
    after = {n: w for w, ns in classes.items() for n in ns}
    for n in sorted(before.keys() | after.keys()):
        if before.get(n) != after.get(n):
            print(f"DIFFERS {n}: the file says {before.get(n)}, PyTorch {after.get(n)}")
    return 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Show that the shared comparisons fail where they must: each case spoils one thing, and one problem must be found."""

import copy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib import command, exported, tensor_files
from lib.values import bit_difference, difference

import numpy as np
import torch

ONES, NAN = torch.ones(3), float("nan")
CALLS = {"output.0": ONES, "output.1": 5, "input 0": ONES * 2, "b0": ONES[:1], "lifted_tensor_0": ONES}
SPOILT_CALLS = [
    *({"output.0": t} for t in (ONES * 1.0001, torch.tensor([1, 1, NAN]), ONES.double(), ONES[None])),
    *({"output.1": v} for v in (6, 5.0, ONES, None)),
    *({name: ONES * 7} for name in ("input 0", "b0", "b1", "output.2")),
]
FILE = {
    "tensors": [
        dict(dtype="torch.float32", size=[2], stride=[1], offset=offset, storage=storage)
        for offset, storage in ((0, 0), (2, 0), (0, 1))
    ]
    + [{"scalar": 3}],
    "storages": [
        {"id": 0, "dtype": "torch.float32", "data": [1, 2, 3, 4, 5]},
        {"id": 1, "dtype": "torch.float32", "data": [1, 2, 3, 4]},
    ],
}
SPOILT_FILES = {
    "value": ("storages", 1, "data", [1, 2.5, 3, 4]),
    "input's cell that no tensor shows": ("storages", 0, "data", [1, 2, 3, 4, 6]),
    "sizes": ("tensors", 2, "size", [1]),
    "strides": ("tensors", 2, "stride", [2]),
    "offset in an input's storage": ("tensors", 1, "offset", 1),
    "element type": ("tensors", 2, "dtype", "torch.int32"),
    "sharing": ("tensors", 2, "storage", 0),
    "no sharing": ("tensors", 1, "storage", 1),
    "scalar": ("tensors", 3, "scalar", 4),
}
F32 = np.arange(1, 4, dtype=np.float32)
SPOILT_ARRAYS = [F32 * 1.001, F32[:2], F32.astype(np.float64), np.array([1, 2, NAN], np.float32), F32 + np.inf]


def calls_missed():
    for spoilt in SPOILT_CALLS:
        if len(exported.differences([CALLS, CALLS], [CALLS, CALLS | spoilt], exported.exactly)) != 1:
            yield f"calls: {spoilt}"
    for name in ("output.0", "input 0", "b0"):
        left = {k: v for k, v in CALLS.items() if k != name}
        if len(exported.differences([CALLS], [left], exported.exactly)) != 1:
            yield f"calls: {name} is missing"
    if exported.differences([CALLS], [{k: v for k, v in CALLS.items() if "lifted" not in k}], exported.exactly):
        yield "calls: a constant may be missing"


def files_missed():
    if tensor_files.differences(FILE, FILE, 1) or not tensor_files.differences(FILE, FILE | {"tensors": []}, 1):
        yield "tensor files: number of tensors"
    for name, (part, index, key, value) in SPOILT_FILES.items():
        got = copy.deepcopy(FILE)
        got[part][index][key] = value
        if not tensor_files.differences(FILE, got, 1):
            yield f"tensor files: {name}"
    conjugates = [torch.ones(3, dtype=torch.complex64).conj() for _ in range(4)]
    if [t["storage"] for t in tensor_files.content_of(conjugates)["tensors"]] != [0, 1, 2, 3]:
        yield "files: tensors of their own seem to share a storage"


def arrays_missed():
    if (
        difference(F32 * 1.00001, F32)
        or bit_difference(F32, F32.copy())
        or not bit_difference(F32, np.nextafter(F32, 9))
    ):
        yield "arrays: tolerance"
    for got in SPOILT_ARRAYS:
        if not (difference(got, F32) and bit_difference(got, F32)):
            yield f"arrays: {got!r}"
    if not difference(np.array([1, 3]), np.array([1, 2])) or not bit_difference(np.zeros(1), -np.zeros(1)):
        yield "arrays: integers, signs of zero"


def ends_missed():
    codes = {"exit 0": "ok", "exit 1": "refused", "exit 2": "usage", "exit 101": "crash", "kill -6 $$": "crash"}
    for code, kind in [*codes.items(), ("sleep 9", "timeout")]:
        outcome = command.run(["sh", "-c", code], 0.5 if kind == "timeout" else 60)
        if outcome.kind != kind or bool(outcome) != (kind == "ok"):
            yield f"{code}: {outcome}"


def main():
    missed = [*calls_missed(), *files_missed(), *arrays_missed(), *ends_missed()]
    print(*missed, f"{len(missed)} differences are missed", sep="\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

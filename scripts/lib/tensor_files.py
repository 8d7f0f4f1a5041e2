"""Tensor files in restride's JSON: tensors on the storages that they share. Needs torch."""

from lib.values import difference

import torch


def dtype_of(name):
    return getattr(torch, name.removeprefix("torch."))


class Tensors:
    """The content of a .json tensor file, with its storages as real ones."""

    def __init__(self, data):
        self.entries, self.storages = data["tensors"], {}
        for s in data["storages"]:
            dtype = dtype_of(s["dtype"])
            number = complex if dtype.is_complex else float if dtype.is_floating_point else lambda x: x
            if s["id"] in self.storages:
                raise ValueError(f"storage {s['id']} is listed twice")
            self.storages[s["id"]] = torch.tensor([number(x) for x in s["data"]], dtype=dtype)

    def tensor(self, entry):
        dtype, base = dtype_of(entry["dtype"]), self.storages[entry["storage"]]
        size, stride = entry["size"], entry["stride"]
        span = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
        if (entry["offset"] + span) * dtype.itemsize > base.untyped_storage().nbytes():
            raise ValueError(f"a tensor reaches beyond storage {entry['storage']}")
        return torch.empty(0, dtype=dtype).set_(base.untyped_storage(), entry["offset"], size, stride)

    def all(self):
        return [e["scalar"] if "scalar" in e else self.tensor(e) for e in self.entries]


def content_of(values, dtypes=()):
    """Tensors and scalars as the content of a tensor file, storages whole; `dtypes` say how to read the first storages."""
    tensors, storages, ids = [], [], {}
    # A resolved copy would free its storage, and the next one could take over its address: `kept` holds every storage until the end.
    kept = []
    for i, t in enumerate(values):
        if not isinstance(t, torch.Tensor):
            tensors.append({"scalar": t})
            continue
        t = t.detach().resolve_conj().resolve_neg()
        storage, dtype = t.untyped_storage(), t.dtype
        kept.append(storage)
        if i < len(dtypes) and dtypes[i]:
            dtype = dtype_of(dtypes[i])
        if storage._cdata not in ids:
            ids[storage._cdata] = len(storages)
            flat = torch.empty(0, dtype=dtype).set_(storage, 0, (storage.nbytes() // dtype.itemsize,), (1,))
            storages.append({"id": len(storages), "dtype": str(dtype), "data": flat.tolist()})
        entry = {"dtype": str(t.dtype), "size": list(t.size()), "stride": list(t.stride())}
        tensors.append(entry | {"offset": t.storage_offset(), "storage": ids[storage._cdata]})
    return {"tensors": tensors, "storages": storages}


def different(a, b):
    """The difference between two tensors of one type, halves widened but with their own tolerance."""
    half = (b.is_floating_point() and b.dtype.itemsize == 2) or str(b.dtype) == "torch.complex32"
    a, b = ((t.float() if t.dtype.itemsize == 2 and t.is_floating_point() else t).numpy() for t in (a, b))
    return difference(a, b, half)


def differences(want, got, n_inputs):
    """The differences between the contents of two tensor files, as lines.

    Values agree within tolerance, integers and input storages in full; types, sizes and strides exactly. Two tensors share a
    storage exactly where they do in `want`; offsets are equal in the storages of inputs, and up to one constant a storage elsewhere.
    """
    label = [f"input {i}" if i < n_inputs else f"output {i - n_inputs}" for i in range(len(want["tensors"]))]
    if len(got["tensors"]) != len(want["tensors"]):
        return [f"{len(got['tensors'])} tensors, not {len(want['tensors'])} ({n_inputs} inputs)"]
    w, g, problems = Tensors(want), Tensors(got), []
    of_input, first = set(), {}
    to, back = {}, {}
    for i, (name, a, b) in enumerate(zip(label, w.entries, g.entries, strict=True)):
        if "scalar" in a or "scalar" in b:
            if a != b:
                problems.append(f"{name}: {b}, not {a}")
            continue
        problems += [f"{name}: {key} {b[key]}, not {a[key]}" for key in ("dtype", "size", "stride") if a[key] != b[key]]
        if i < n_inputs:
            of_input.add(a["storage"])
        # A one-to-one relation between eager's storages and ours.
        if to.setdefault(a["storage"], b["storage"]) != b["storage"]:
            problems.append(f"{name}: should share storage with {first[a['storage']]}")
        elif back.setdefault(b["storage"], a["storage"]) != a["storage"]:
            problems.append(f"{name}: shares storage with {first[back[b['storage']]]}, should not")
        base = label.index(first.setdefault(a["storage"], name))
        moved = 0 if a["storage"] in of_input else g.entries[base]["offset"] - w.entries[base]["offset"]
        if b["offset"] - moved != a["offset"]:
            problems.append(f"{name}: offset {b['offset']}, not {a['offset'] + moved}")
        if a["dtype"] == b["dtype"] and a["size"] == b["size"] and (found := different(g.tensor(b), w.tensor(a))):
            problems.append(f"{name}: {found}")
    for storage in sorted(of_input):
        x, y = w.storages[storage], g.storages.get(to.get(storage))
        if y is None or x.dtype != y.dtype:
            problems.append(f"storage of {first[storage]}: dtype {y is not None and y.dtype}, not {x.dtype}")
        elif found := different(y, x):
            problems.append(f"storage of {first[storage]}: {found}")
    return problems

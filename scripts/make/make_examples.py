#!/usr/bin/env python3
"""Make the .pt2 files of fixtures/examples and fixtures/pt2 with PyTorch.

  make_examples.py [NAME ...] [--out fixtures]      with the torch of scripts/torch-env.sh
  make_examples.py --layouts [--out fixtures]       with an older torch: its own layout of a few of the programs,
                                                    as fixtures/pt2/torch_2_7_NAME.pt2 and so on

Each program is a function of example_programs.py, drawn with seed 0. Beside NAME.pt2 stand NAME.inputs.npz and
NAME.expected.npz as scripts/make/zoo/export.py writes them (output.I, and input.NAME, buffer.NAME, parameter.NAME where the
run changed them), all from eager PyTorch; each folder has an index.jsonl. Stack traces hold no path of the machine. The program
of a file over 300 kB is compressed; a file that stays over is an error.
"""

import io
import json
import os
import re
import struct
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent / "zoo"))  # models, for llama_decode
from lib.command import ROOT
from lib.driver import parser
from lib.exported import reference

import numpy as np
import torch
from example_programs import PROGRAMS
from foreign_pt2 import foreign_minimal

LIMIT = 300_000


# ---------------------------------------------------------------------------------- saving


def clean(ep):
    """Take this machine's paths out of the stack traces."""
    for graph in ep.graph_module.modules():
        for node in getattr(getattr(graph, "graph", None), "nodes", ()):
            trace = node.meta.get("stack_trace")
            if trace:
                trace = re.sub(r'File "[^"]*/site-packages/', 'File "', trace)
                node.meta["stack_trace"] = re.sub(rf'File "{re.escape(str(ROOT))}/', 'File "', trace)


def deflate(path, which):
    """Write an archive again with the entries that `which` names compressed, the others on 64 bytes as torch has them."""
    with zipfile.ZipFile(path) as z:
        entries = [(i.filename, z.read(i)) for i in z.infolist()]
    with zipfile.ZipFile(path, "w") as z:
        for name, data in entries:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED if which(name) else zipfile.ZIP_STORED
            # Local header, name, and the extra field's own four bytes come before the padding.
            padding = -(z.fp.tell() + 30 + len(name.encode()) + 4) % 64
            info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
            z.writestr(info, data)


def check_file(path):
    size = os.path.getsize(path)
    assert size < LIMIT, f"{path}: {size} bytes"
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            data = z.read(name)
            for trace in (os.path.expanduser("~"), str(ROOT), sys.prefix, "site-packages"):
                assert trace.encode() not in data, f"{path}: {name} holds {trace}"


def export(build, options):
    torch.set_default_dtype(options.get("default", torch.float32))
    torch.manual_seed(0)
    module, args, *rest = build()
    kwargs = rest[0] if rest else {}
    train = options.get("train", False)
    module.train(train)
    dynamic = options["dynamic"]() if "dynamic" in options else None
    with torch.set_grad_enabled(train and not options.get("nograd", False)):
        # strict=False is the default of torch.export since 2.9.
        ep = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic, strict=False)
        user = [s.arg.name for s in ep.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        given, want = reference(module, args, kwargs, user)
        if options.get("decompose"):
            ep = ep.run_decompositions({})
    torch.set_default_dtype(torch.float32)
    clean(ep)
    return ep, args, kwargs, given, want


def save(out, folder, name, ep, given, want):
    stem = os.path.join(out, folder, name)
    os.makedirs(os.path.dirname(stem), exist_ok=True)
    torch.export.save(ep, stem + ".pt2")
    if os.path.getsize(stem + ".pt2") > LIMIT:
        deflate(stem + ".pt2", lambda entry: entry.endswith("/model.json"))
    check_file(stem + ".pt2")
    np.savez(stem + ".inputs.npz", **given)
    np.savez(stem + ".expected.npz", **want)
    return stem


def reload_and_compare(stem, args, kwargs, want, random):
    """Assert that the file, loaded by PyTorch, gives eager's results."""
    from torch.utils import _pytree as pytree

    with torch.no_grad():
        out = torch.export.load(stem + ".pt2").module()(*args, **kwargs)
    for i, o in enumerate(pytree.tree_leaves(out)):
        if isinstance(o, torch.Tensor):
            w = torch.from_numpy(np.ascontiguousarray(want[f"output.{i}"]))
            got = o.detach().resolve_conj().float() if o.dtype == torch.bfloat16 else o.detach().resolve_conj()
            assert got.shape == want[f"output.{i}"].shape, (stem, i)
            if not random:
                torch.testing.assert_close(got, w.view(got.shape), equal_nan=True)


# ------------------------------------------------------------- archives of other kinds


def other_archives(out):
    """Archives that differ in their container rather than in their program; the names of those with expected results."""
    folder = os.path.join(out, "pt2")

    stem = os.path.join(folder, "foreign_minimal")
    foreign_minimal(stem + ".pt2")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = torch.export.load(stem + ".pt2").module()(torch.from_numpy(x)).detach().numpy()
    np.savez(stem + ".inputs.npz", x=x)
    np.savez(stem + ".expected.npz", **{"output.0": y, "buffer.n": np.int64(42)})

    # Several programs in one archive, the weights of both numbered through.
    from torch.export.pt2_archive._package import package_pt2

    a, *_ = export(PROGRAMS["dynamic_batch"][3], PROGRAMS["dynamic_batch"][2])
    b, *_ = export(PROGRAMS["buffer_step"][3], PROGRAMS["buffer_step"][2])
    buffer = io.BytesIO()
    package_pt2(buffer, exported_programs={"dynamic_batch": a, "buffer_step": b})
    with open(os.path.join(folder, "two_models.pt2"), "wb") as f:
        f.write(buffer.getvalue())
    check_file(os.path.join(folder, "two_models.pt2"))

    methods(folder)

    # Compressed entries and an extra file: torch reads both.
    ep, args, kwargs, given, want = export(PROGRAMS["kv_cache"][3], PROGRAMS["kv_cache"][2])
    stem = save(out, "pt2", "deflated_with_extra", ep, given, want)
    torch.export.save(ep, stem + ".pt2", extra_files={"note.txt": "kept as it is"})
    deflate(stem + ".pt2", lambda entry: True)
    check_file(stem + ".pt2")
    reload_and_compare(stem, args, kwargs, want, False)
    return ["foreign_minimal", "deflated_with_extra"]


def methods(folder):
    """Two methods of one module over its key-value cache, and what eager PyTorch gives for one prompt and three tokens."""
    from example_programs import Attention
    from torch.export.pt2_archive._package import package_pt2

    class Method(torch.nn.Module):
        def __init__(self, attention, name):
            super().__init__()
            self.attention, self.name = attention, name

        def forward(self, *args):
            return getattr(self.attention, self.name)(*args)

    torch.manual_seed(0)
    attention = Attention().eval()
    prompt, tokens = torch.randn(1, 4, 8), [torch.randn(1, 1, 8) for _ in range(3)]
    calls = [("prefill", (prompt,))] + [("decode", (t, torch.tensor([4 + i]))) for i, t in enumerate(tokens)]
    stem = os.path.join(folder, "prefill_decode")
    with torch.no_grad():
        exported = {
            name: torch.export.export(Method(attention, name), args) for name, args in dict(reversed(calls)).items()
        }
        for ep in exported.values():
            clean(ep)
        buffer = io.BytesIO()
        package_pt2(buffer, exported_programs=exported)
        results = [getattr(attention, name)(*args) for name, args in calls]
    with open(stem + ".pt2", "wb") as f:
        f.write(buffer.getvalue())
    check_file(stem + ".pt2")
    arrays = {f"{i}.{name}.{j}": a.numpy() for i, (name, args) in enumerate(calls) for j, a in enumerate(args)}
    arrays |= {f"{i}.{name}.output": r.numpy() for i, ((name, _), r) in enumerate(zip(calls, results))}
    np.savez(stem + ".calls.npz", **arrays, **{"buffer.k": attention.k.numpy(), "buffer.v": attention.v.numpy()})


def write_index(out, rows):
    """Merge rows into each folder's index.jsonl, which scripts/check/compare.py reads."""
    for folder in sorted({folder for folder, _ in rows}):
        path = os.path.join(out, folder, "index.jsonl")
        known = {}
        if os.path.exists(path):
            with open(path) as f:
                known = {row["name"]: row for row in map(json.loads, f)}
        known |= {row["name"]: row for at, row in rows if at == folder}
        with open(path, "w") as f:
            for name in sorted(known):
                f.write(json.dumps(known[name]) + "\n")


def main():
    p = parser(__doc__, "names")
    p.add_argument("--out", default=ROOT / "fixtures")
    p.add_argument("--layouts", action="store_true", help="an older torch's own layout of a few programs")
    o = p.parse_intermixed_args()
    rows = []
    prefix = "torch_" + "_".join(torch.__version__.split(".")[:2]) + "_" if o.layouts else ""
    for name, (folder, layouts, options, build) in PROGRAMS.items():
        if (o.names and name not in o.names) or (o.layouts and not layouts):
            continue
        ep, args, kwargs, given, want = export(build, options)
        stem = save(o.out, folder, prefix + name, ep, given, want)
        if not options.get("random"):
            # The run below may change args; it is the last use of them.
            torch.set_default_dtype(options.get("default", torch.float32))
            reload_and_compare(stem, args, kwargs, want, False)
            torch.set_default_dtype(torch.float32)
        nodes = len(ep.graph.nodes)
        rows.append(
            (
                folder,
                dict(name=prefix + name, file=prefix + name, ok=True, random=options.get("random", False), nodes=nodes),
            )
        )
        print(f"{stem}.pt2: {os.path.getsize(stem + '.pt2')} bytes, {nodes} nodes", flush=True)
    if not o.layouts and not o.names:
        rows += [("pt2", dict(name=n, file=n, ok=True, random=False)) for n in other_archives(o.out)]
    write_index(o.out, rows)


if __name__ == "__main__":
    main()

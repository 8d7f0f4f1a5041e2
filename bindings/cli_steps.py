#!/usr/bin/env python3
"""The examples' steps by the command `restride`: each step is a run of its own, on an archive that holds the state of the last one.

    cli_steps.py RESTRIDE decode MODEL.pt2 TOKENS RESULTS
    cli_steps.py RESTRIDE train STEP.pt2 10 RESULTS

Writes the file of results that bindings/c/decode.c and train.c write. Needs Python's standard library only.
"""

import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def tensors(path):
    """The tensors of a .safetensors file, as bytes."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    head = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    return {n: body[slice(*t["data_offsets"])] for n, t in head.items() if n != "__metadata__"}


class Archive:
    """A .pt2 whose state can be replaced."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.entries = {i.filename: archive.read(i) for i in archive.infolist()}
        self.state = {}
        for name in self.entries:
            if name.endswith("_config.json"):
                folder = name.rsplit("/", 1)[0]
                for tensor, where in json.loads(self.entries[name])["config"].items():
                    self.state[tensor] = f"{folder}/{where['path_name']}"

    def write(self, path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for name, data in self.entries.items():
                archive.writestr(name, data)

    def replace(self, results):
        for name, data in results.items():
            kind, _, tensor = name.partition(".")
            if kind in ("buffer", "parameter"):
                entry = self.state[tensor]
                assert len(self.entries[entry]) == len(data), f"{tensor} is a part of its storage"
                self.entries[entry] = data


def run(command, archive, folder, inputs):
    model, out = folder / "step.pt2", folder / "out.safetensors"
    archive.write(model)
    given = []
    if inputs is not None:
        (folder / "in.json").write_text(json.dumps(inputs))
        given = ["--inputs", folder / "in.json"]
    subprocess.run([command, "run", model, *given, "--outputs", out, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    results = tensors(out)
    archive.replace(results)
    return results


def numbers(*all_sizes_and_data):
    """Inputs of 64-bit integers, in the .json form."""
    rows, storages = [], []
    for i, (size, data) in enumerate(all_sizes_and_data):
        rows.append({"dtype": "int64", "size": size, "stride": [1] * len(size), "offset": 0, "storage": i})
        storages.append({"id": i, "dtype": "int64", "data": data})
    return {"tensors": rows, "storages": storages}


def decode(command, archive, folder, steps, write):
    token = 1
    taken = []
    # A step that leaves a buffer as it was does not tell that it writes it: another one does.
    changed = set()
    for position in range(steps):
        results = run(command, archive, folder, numbers(([1, 1], [token]), ([1], [position])))
        changed |= {n.partition(".")[2] for n in results if n.startswith("buffer.")}
        taken.append((results["output.0"], {n: archive.entries[e] for n, e in archive.state.items()}))
        logits = struct.unpack("<128f", results["output.0"])
        token = max(range(128), key=lambda i: (logits[i], i))
    for logits, state in taken:
        write("output.0", logits)
        for name in sorted(changed):
            write(name, state[name])


def train(command, archive, folder, steps, write):
    for at in range(steps):
        results = run(command, archive, folder, None)
        write("output.0", results["output.0"])
        if at in (0, steps - 1):
            for name in sorted(archive.state):
                write(f"{at}.{name}", archive.entries[archive.state[name]])


def main():
    command, what, model, steps, path = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, open(path, "w") as results:

        def write(name, data):
            results.write(f"{name} {data.hex()}\n")

        {"decode": decode, "train": train}[what](command, Archive(model), Path(folder), int(steps), write)


if __name__ == "__main__":
    main()

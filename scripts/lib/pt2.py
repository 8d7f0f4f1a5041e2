"""The parts of a .pt2 that checks read without torch."""

import json
import zipfile
from dataclasses import dataclass, field

import numpy as np

HALF_TYPES = {6, 9, 13}  # HALF, COMPLEXHALF, BFLOAT16 as the format numbers them
NUMPY = dict(
    zip(
        (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 28, 34, 35),
        map(np.dtype, "u1 i1 i2 i4 i8 f2 f4 f8 c8 c16 ? u2 u4 u8".split()),
        strict=True,
    )
)


def names_in(value):
    """Every tensor or symbol name in an argument of the format's JSON (subgraphs left out)."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("as_name", "name") and isinstance(inner, str):
                yield inner
            elif key not in ("graph", "as_graph", "as_string", "as_operator"):
                yield from names_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names_in(inner)


@dataclass
class Pt2:
    """The parts of a .pt2 that judging a run needs; `configs` only in today's layout, of torch 2.9 on."""

    path: str
    model: dict = field(repr=False)
    configs: dict = field(repr=False)

    @staticmethod
    def read(path):
        with zipfile.ZipFile(path) as z:
            flat = "serialized_exported_program.json"  # up to torch 2.7
            if flat in z.namelist():
                return Pt2(path, json.loads(z.read(flat)), {})
            root = z.namelist()[0].split("/")[0] + "/"
            model = json.loads(z.read(root + "models/model.json"))
            configs = {}
            for folder in ("weights", "constants"):
                name = f"{root}data/{folder}/model_{folder}_config.json"
                if name in z.namelist():
                    for key, meta in json.loads(z.read(name))["config"].items():
                        configs[key] = (f"{root}data/{folder}/{meta['path_name']}", meta)
        return Pt2(path, model, configs)

    @property
    def graph(self):
        return self.model["graph_module"]["graph"]

    def targets(self):
        """The operators of all graphs."""
        found, todo = set(), [self.graph]
        while todo:
            for node in todo.pop()["nodes"]:
                found.add(node["target"])
                todo += [a["arg"]["as_graph"]["graph"] for a in node["inputs"] if "as_graph" in a["arg"]]
        return found

    def user_outputs(self):
        """The arguments of the user outputs, in order."""
        specs = self.model["graph_module"]["signature"]["output_specs"]
        return [s["user_output"]["arg"] for s in specs if "user_output" in s]

    def _makes_half(self, graph, node):
        produced = [n for out in node["outputs"] for n in names_in(out)]
        if any(graph["tensor_values"].get(n, {}).get("dtype") in HALF_TYPES for n in produced):
            return True
        inner = [a["arg"]["as_graph"]["graph"] for a in node["inputs"] if "as_graph" in a["arg"]]
        return any(self._makes_half(g, n) for g in inner for n in g["nodes"])

    def half_keys(self):
        """Which of `output.I` went through a half type on their way; `*` stands for any mutated state.

        Following names does not see writes through aliases; those only make the judgement stricter.
        """
        graph = self.graph
        half, maker = set(), {}
        for node in graph["nodes"]:
            if self._makes_half(graph, node):
                half.add(id(node))
            for name in (n for out in node["outputs"] for n in names_in(out)):
                maker[name] = node
        keys = {"*"} if half else set()
        for i, out in enumerate(self.user_outputs()):
            todo, seen = list(names_in(out)), set()
            if any(graph["tensor_values"].get(n, {}).get("dtype") in HALF_TYPES for n in todo):
                keys.add(f"output.{i}")
            while todo:
                node = maker.get(todo.pop())
                if node is None or id(node) in seen:
                    continue
                seen.add(id(node))
                if id(node) in half:
                    keys.add(f"output.{i}")
                    break
                todo += [n for a in node["inputs"] for n in names_in(a["arg"])]
        return keys

    def state(self, name):
        """The stored value of a parameter or buffer as tensor files hold it, or None when it cannot be read."""
        if name not in self.configs:
            return None
        entry, meta = self.configs[name]
        tensor = meta["tensor_meta"]
        if meta["use_pickle"] or (tensor["dtype"] not in NUMPY and tensor["dtype"] != 13):
            return None
        with zipfile.ZipFile(self.path) as z:
            raw = z.read(entry)
        sizes, strides = ([d["as_int"] for d in tensor[k]] for k in ("sizes", "strides"))
        if tensor["dtype"] == 13:  # bf16 is written to tensor files as f32
            flat = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            flat = np.frombuffer(raw, NUMPY[tensor["dtype"]])
        flat = flat[tensor["storage_offset"]["as_int"] :]
        if 0 in sizes:
            return np.zeros(sizes, flat.dtype)
        return np.lib.stride_tricks.as_strided(flat, sizes, [s * flat.itemsize for s in strides]).copy()

    def tied_to(self, name):
        """Other names of exactly the same stored elements."""
        if name not in self.configs:
            return []
        entry, meta = self.configs[name]
        keys = ("dtype", "sizes", "strides", "storage_offset")
        same = lambda m: m["tensor_meta"] and all(m["tensor_meta"][k] == meta["tensor_meta"][k] for k in keys)
        return [n for n, (e, m) in self.configs.items() if n != name and e == entry and same(m)]

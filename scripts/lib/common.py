"""What the checking scripts share: running restride, judging numbers, reading a .pt2, printing tables.

Needs numpy only.
"""

import json
import os
import re
import signal
import subprocess
import time
import zipfile
from dataclasses import dataclass, field

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# ---------------------------------------------------------------------------------- running


def binary(given=None):
    """The restride to test: what was asked for, $RESTRIDE, or the release build of this checkout."""
    path = given or os.environ.get("RESTRIDE")
    if not path:
        target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
        path = os.path.join(target, "release", "restride")
    path = os.path.abspath(path)
    if not os.access(path, os.X_OK):
        raise SystemExit(f"no restride at {path}: cargo build --release -p restride-cli, or name one with --binary")
    return path


@dataclass
class Outcome:
    """How one command ended. `kind` is ok, refused (exit 1), usage (exit 2), crash or timeout."""

    kind: str
    line: str = ""
    lines: int = 0
    seconds: float = 0.0
    stdout: str = ""

    def __bool__(self):
        return self.kind == "ok"


def run(command, timeout):
    """Run a command to its end or its timeout (the whole process group is killed then)."""
    start = time.monotonic()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return Outcome("timeout", f"over {timeout:.0f} s", 0, time.monotonic() - start)
    seconds = time.monotonic() - start
    text = [line for line in err.decode(errors="replace").splitlines() if line.strip()]
    code, last = child.returncode, text[-1] if text else ""
    if code == 0:
        kind = "ok"
    elif code < 0:
        name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else str(-code)
        kind, last = "crash", f"{name} {last}".strip()
    elif code == 1:
        kind = "refused"
    elif code == 2:
        kind = "usage"
    else:
        # A Rust panic ends with status 101; nothing else than 0, 1 and 2 is ever meant.
        panic = next((line for line in text if "panicked at" in line), last)
        kind, last = "crash", f"exit {code}: {panic}"
    return Outcome(kind, last, len(text), seconds, out.decode(errors="replace"))


# ---------------------------------------------------------------------------------- numbers


def difference(got, want, half=False, slack=0.0):
    """None when `got` agrees with `want`, else what is different.

    Floats agree within rtol 1e-4 and an atol of 1e-5 plus 1e-5 of the largest magnitude of `want`; with `half`
    (the value went through f16 or bf16) the relative parts are 1e-2. `slack` is allowed on top. NaNs and
    infinities must be in the same places. Everything else is exact, as are shapes and the kind of dtype.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, not {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, not {want.dtype}"
    if want.dtype.kind not in "fc":
        bad = got != want
        if not bad.any():
            return None
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return f"{int(bad.sum())} of {bad.size} differ, first {list(at)}: {got[at]}, not {want[at]}"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    g, w = got.astype(wide), want.astype(wide)
    finite = np.isfinite(w)
    with np.errstate(invalid="ignore"):
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        error = np.abs(g - w)
    relative = 1e-2 if half or want.dtype == np.float16 else 1e-4
    largest = float(np.abs(w[finite]).max()) if finite.any() else 0.0
    allowed = slack + 1e-5 + (1e-2 if relative == 1e-2 else 1e-5) * largest + relative * np.abs(np.where(finite, w, 0))
    bad = ~same & ~(finite & np.isfinite(g) & (error <= allowed))
    if not bad.any():
        return None
    error = np.where(np.isfinite(error), error, np.inf)
    at = tuple(int(i) for i in np.argwhere(bad & (error == error[bad].max()))[0])
    return f"{int(bad.sum())} of {bad.size} differ, worst {list(at)}: {got[at]}, not {want[at]} (max diff {error[bad].max():.3g})"


def bit_difference(a, b):
    """None when two arrays are equal bit for bit (any NaN equals any NaN, -0 is not 0), else what differs."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    if a.dtype.kind == "c":
        part = np.float32 if a.dtype == np.complex64 else np.float64
        a, b = (np.ascontiguousarray(x).reshape(-1).view(part) for x in (a, b))
    if a.dtype.kind == "f":
        bits = np.dtype(f"u{a.dtype.itemsize}")
        x, y = (np.ascontiguousarray(v).reshape(-1).view(bits) for v in (a, b))
        bad = (x != y) & ~(np.isnan(a) & np.isnan(b)).reshape(-1)
    else:
        bad = (a != b).reshape(-1)
    if not bad.any():
        return None
    i = int(np.argmax(bad))
    return f"{int(bad.sum())} of {bad.size} differ in bits, first {a.reshape(-1)[i]} and {b.reshape(-1)[i]}"


# ---------------------------------------------------------------------------------- .pt2

HALF_TYPES = {6, 9, 13}  # HALF, COMPLEXHALF, BFLOAT16 as the format numbers them
NUMPY = {
    1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.float16, 7: np.float32, 8: np.float64,
    10: np.complex64, 11: np.complex128, 12: np.bool_, 28: np.uint16, 34: np.uint32, 35: np.uint64,
}


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
        flat = flat[tensor["storage_offset"]["as_int"]:]
        if 0 in sizes:
            return np.zeros(sizes, flat.dtype)
        return np.lib.stride_tricks.as_strided(flat, sizes, [s * flat.itemsize for s in strides]).copy()

    def tied_to(self, name):
        """Other names of exactly the same stored elements."""
        if name not in self.configs:
            return []
        entry, meta = self.configs[name]
        where = [meta["tensor_meta"][k] for k in ("dtype", "sizes", "strides", "storage_offset")]
        return [
            other
            for other, (e, m) in self.configs.items()
            if other != name and e == entry
            and m["tensor_meta"] and [m["tensor_meta"][k] for k in ("dtype", "sizes", "strides", "storage_offset")] == where
        ]


# ---------------------------------------------------------------------------------- tables


def operator_of(line):
    """The operator an error line names, to group refusals by, or the line cut short."""
    found = re.search(r"\b(?:torch\.ops\.)?((?:aten|prims|prim|torchvision|transformers|higher_order|_operator)(?:\.|::)[\w.]+)", line)
    return found.group(1).rstrip(".") if found else line[:100]


def print_table(header, rows, widths=None):
    """Columns wide enough for all but the last, which runs on."""
    cells = [[str(c) for c in row] for row in [header, *rows]]
    wide = [max(len(row[i]) for row in cells) for i in range(len(header) - 1)]
    for row in cells:
        print("  ".join([c.ljust(w) for c, w in zip(row, wide)] + row[len(wide):]).rstrip())

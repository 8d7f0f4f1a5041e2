#!/usr/bin/env python3
"""Hold programs that PyTorch has functionalized to the same programs as exported.

  decomposed_check.py [FILE_OR_DIR ...] [--match PATTERN ...] [--from FILE] [--generated FROM..TO] [--show SEED]
                      [--binary F] [--timeout S] [--json F] [--decomposed DIR]

Takes what torch_roundtrip.py takes. `ep.run_decompositions({})` decomposes each program; it writes through views of views as
scatters into scatters, and decomposes nothing else. --generated adds programs of nested writes (select, slice, diagonal,
as_strided, unbind, split, permute and view to depth 4; half of them with symbolic sizes). `restride compile` takes both
forms with the same inputs. The decomposed form may have no more than the exported one of:

  copies   `placed.copies` and `placed.copy_bytes`
  arena    `plan.arena_bytes`
  scatters the *_scatter calls that `restride reinplace` leaves; none where the exported program has none (not compared where
           only one of the two stays symbolic)

Programs of OPEN are known to have more; they fail once they have not, or more of something else.

A pair is not compared, with the reason, where PyTorch cannot decompose the program, or where PyTorch itself runs the
decomposed one to other values, or to outputs and inputs that share other memory.
Exit status 1 when any pair differs. The last line is `N passed, N failed`.
"""

import collections
import copy
import itertools
import json
import random
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import Restride
from lib.driver import finish, parser, quiet, scratch, seeds
from lib.exported import as_example, case_inputs, libraries, module_of, program_options, programs, short
from lib.pt2 import Pt2

import torch
from torch.utils import _pytree as pytree

# Programs whose decomposed form has more, of what, and why.
OPEN = {
    "seed 29": (
        "scatters",
        "a part of a part: that a slice to the end has the part's size, over nested divisions, is not proved",
    )
}
SCATTERS = ("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter")


def scatters(model):
    """Scatters of regions in a file's graphs."""
    found, todo = 0, [model.graph]
    while todo:
        for node in todo.pop()["nodes"]:
            found += node["target"].split(".")[-2] in SCATTERS
            todo += [a["arg"]["as_graph"]["graph"] for a in node["inputs"] if "as_graph" in a["arg"]]
    return found


def left(ep, example):
    """The tensors after a run (inputs, state, outputs), and for each the first one on the same storage."""
    args, kwargs = copy.deepcopy(example)
    module = ep.module(check_guards=False)
    torch.manual_seed(0)
    with torch.no_grad():
        out = module(*args, **kwargs)
    state = [t for _, t in sorted([*module.named_parameters(), *module.named_buffers()], key=lambda s: s[0])]
    every = [
        t for t in pytree.tree_leaves((args, kwargs)) + state + pytree.tree_leaves(out) if isinstance(t, torch.Tensor)
    ]
    first = {}
    return every, [first.setdefault(t.untyped_storage().data_ptr() or id(t), i) for i, t in enumerate(every)]


def incomparable(path, other, case):
    """Why a decomposed program is another program in PyTorch itself, or nothing."""
    ep, decomposed = torch.export.load(path), torch.export.load(other)
    example = as_example(case, ep.example_inputs) if case else ep.example_inputs
    want, sharing = left(ep, example)
    try:
        got, shared = left(decomposed, example)
    except Exception as e:
        return f"PyTorch does not run it: {short(e)}"
    same = lambda a, b: a.shape == b.shape and torch.allclose(a, b, 1e-3, 1e-4, equal_nan=True)
    if len(want) != len(got) or not all(map(same, want, got)):
        return "PyTorch decomposes it to a program that computes something else"
    if sharing != shared:
        return "PyTorch decomposes it to a program whose outputs and inputs share other memory"
    return None


def compiled(path, given, restride, folder):
    """(figures, None), or (None, why not)."""
    report, out = folder / "report.json", folder / "out.pt2"
    options = ["--inputs", given] if given else []
    outcome = restride("compile", path, "--json", report, *options)
    if outcome.kind == "usage":
        outcome = restride("compile", path, "--json", report, *options, "--random", "1")
    if not outcome:
        return None, f"{outcome.kind}: {outcome.line}"
    report = json.loads(report.read_text())
    figures = dict(
        copies=report["placed"]["copies"],
        copy_bytes=report["placed"]["copy_bytes"],
        arena=report["plan"]["arena_bytes"],
    )
    outcome = restride("reinplace", path, "-o", out, *options)
    written = Pt2.read(out) if outcome else None
    figures["scatters"] = scatters(written) if written else outcome.line
    figures["symbolic"] = written is not None and "as_expr" in json.dumps(written.graph["tensor_values"])
    return figures, None


def decompose(ep, other):
    """Save the decomposed program at `other`."""
    with quiet():
        torch.export.save(ep.run_decompositions({}), other)


def pair(path, other, given, restride, folder, case=None):
    """One row; the program is decomposed unless `other` is newer than `path`."""
    try:
        if not (other.exists() and other.stat().st_mtime > Path(path).stat().st_mtime):
            decompose(torch.export.load(path), other)
    except Exception as e:
        return dict(status="n/a", detail=f"PyTorch does not decompose it: {short(e)}")
    ours, refused = compiled(path, given, restride, folder)
    if ours is None:
        return dict(status="n/a", detail=f"exported: {refused}")
    theirs, refused = compiled(other, given, restride, folder)
    row = dict(exported=ours, decomposed=theirs)
    if theirs is None:
        status, detail = "refused", f"decomposed: {refused}"
    else:
        number = lambda n: n if isinstance(n, int) else 0
        # A program for some sizes and one for all sizes are not comparable.
        alike = theirs["symbolic"] == ours["symbolic"]
        compared = ["copies", "copy_bytes", "arena", *(["scatters"] if alike else [])]
        worse = [k for k in compared if number(theirs[k]) > number(ours[k])]
        if alike and not worse and number(theirs["scatters"]) and not scatters(Pt2.read(path)):
            worse = ["scatters"]
        if not worse:
            less = any(number(theirs[k]) < number(ours[k]) for k in compared)
            return row | dict(status="less" if less else "equal", detail="")
        status, detail = "MORE", ", ".join(f"{k} {ours[k]} -> {theirs[k]}" for k in worse)
    try:
        why = incomparable(path, other, case)
    except Exception as e:
        why = None if isinstance(e, AssertionError) else f"PyTorch: {short(e)}"
    return row | (dict(status="n/a", detail=f"{why} ({detail})") if why else dict(status=status, detail=detail))


# ---------------------------------------------------------------------------------- generated programs


class Nested:
    """A program that writes through views of views."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.symbolic = seed % 2 == 1
        self.lines, self.count = [], 0
        rng = self.rng
        base = rng.choice(("x * 2", "x.clone()", "x", "torch.zeros_like(x)", "torch.cat([x, x]) + 1"))
        self.lines.append(f"y = {base}")
        world = {"torch": torch, "x": self.example()[0].clone(), "v": self.example()[1]}
        exec(self.lines[0], world)
        for _ in range(1 + rng.randrange(4)):
            self.write(world)
        self.lines.append(f"return {rng.choice(('y', 'y, y * 2', 'y.sum(0), y', 'y.flatten() + 1', 'y * 3'))}")

    def example(self):
        g = torch.Generator().manual_seed(1)
        return torch.randn(6, 4, 8, generator=g), torch.randn(1, generator=g)

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def line(self, world, line):
        exec(line, world)
        self.lines.append(line)

    def write(self, world):
        rng, at = self.rng, "y"
        for _ in range(rng.randrange(1, 5)):
            at = self.view(world, at)
        t = world[at]
        copied = "{a}.copy_(v.expand_as({a}))" if t.dim() else "{a}.copy_(v[0])"
        shapes = ["{a}.mul_(2)", "{a}.add_(1)", copied, "{a}.fill_(3)", "{a}.add_({a})", "{a}.neg_()"]
        if t.dim():
            shapes += ["{a}[0] = 5", "{a}[1:] = {a}[1:] * 2", "{a}[-1].mul_(3)", "{a}[..., 0] = v"]
        self.line(world, rng.choice(shapes).format(a=at))
        if rng.random() < 0.2:
            self.line(world, f"y = y + {at}.sum()")
        elif rng.random() < 0.2:
            name = self.name()
            self.line(world, f"{name} = {at} * 2")
            self.line(world, f"y[0] = {name}.sum()")

    def view(self, world, a):
        rng = self.rng
        for _ in range(20):
            t, name = world[a], self.name()
            d = rng.randrange(max(t.dim(), 1))
            n = t.shape[d] if t.dim() else 1
            shapes = [
                f"{a}.select({d}, {rng.randrange(n)})", f"{a}.narrow({d}, {rng.randrange(n)}, {1 + rng.randrange(n)})",
                f"torch.ops.aten.slice({a}, {d}, {rng.randrange(n)}, None, {1 + rng.randrange(2)})",
                f"{a}.diagonal()", f"{a}.diagonal({rng.randrange(-1, 2)}, 0, -1)", f"{a}.unbind({d})[{rng.randrange(n)}]",
                f"{a}.split({1 + rng.randrange(n)}, {d})[0]", f"{a}.chunk(2, {d})[1]", f"{a}.transpose(0, {d})",
                f"{a}.unsqueeze({d})", f"{a}.flatten()", f"{a}.view(-1)", f"{a}.permute(*reversed(range({t.dim()})))",
            ]  # fmt: skip
            if a == "y" and not self.symbolic:  # of a view PyTorch does not functionalize it
                size, stride = [1 + rng.randrange(2), 1 + rng.randrange(2)], [rng.choice((3, 4, 9)), rng.choice((1, 2))]
                shapes.append(f"{a}.as_strided({size}, {stride})")
            line = f"{name} = {rng.choice(shapes)}"
            tried = dict(world)
            try:
                exec(line, tried)
            except Exception:
                continue
            if (
                isinstance(tried[name], torch.Tensor) and tried[name].numel() and tried[name]._base is not None
            ) or tried[name] is t:
                world[name] = tried[name]
                self.lines.append(line)
                return name
        return a

    def text(self):
        return "def forward(self, x, v):\n" + "".join(f"    {line}\n" for line in self.lines)

    def exported(self):
        module = module_of(self.text(), "Nested")
        auto = torch.export.Dim.AUTO
        shapes = ({0: auto, 1: auto, 2: auto}, None) if self.symbolic else None
        with quiet():
            return torch.export.export(module, self.example(), dynamic_shapes=shapes)


class Cache(torch.nn.Module):
    """A cache of several layers; each step writes one position of each layer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(4, 1, 2, 64, 8))

    def forward(self, x, v):
        for layer in range(4):
            self.k[layer][:, :, 7:8] = x[:1, :2, :].unsqueeze(2) * (layer + 1)
            x = x + self.k[layer].sum()
        return x


class Mask(torch.nn.Module):
    """The mask of shifted windows."""

    def forward(self, x, v):
        mask, count = x.new_zeros(8, 8), 0
        for h in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            for w in (slice(0, -4), slice(-4, -2), slice(-2, None)):
                mask[h, w] = count
                count += 1
        mask = mask.view(2, 4, 2, 4).permute(0, 2, 1, 3).reshape(4, 16)
        return mask.unsqueeze(1) - mask.unsqueeze(2)


class Parts(torch.nn.Module):
    """Writes of parts of parts, one read in between, one given another shape."""

    def forward(self, x, v):
        y = x * 2
        y[1][2].mul_(2)
        y[1:3, 0:2] = v
        s = y[2].sum()
        y[2].diagonal()[1:].add_(s)
        a, b = y.flatten(1).chunk(2, 1)
        a[0].copy_(b[1])
        return y, a * s


NAMED = (Cache, Mask, Parts)


def generated(numbers, restride, show, kept):
    """(name, row) of each program that torch.export takes; those with names first."""
    for module in NAMED if not show and numbers else ():
        with scratch() as tmp:
            path, other = (tmp / f"{module.__name__}{end}.pt2" for end in ("", "-decomposed"))
            torch.export.save(torch.export.export(module(), Nested(0).example()), path)
            yield module.__name__, pair(path, other, None, restride, tmp)
    for seed in numbers:
        program = Nested(seed)
        if show:
            print(program.text())
        with scratch() as tmp:
            # Another text is another program.
            stem = f"generated-{zlib.crc32(repr((program.text(), program.symbolic)).encode()):08x}"
            path, other = ((kept or tmp) / f"{stem}{end}.pt2" for end in ("", "-decomposed"))
            if not other.exists():
                try:
                    ep = program.exported()
                    torch.export.save(ep, path)
                    decompose(ep, other)
                except Exception as e:
                    yield f"seed {seed}", dict(status="n/a", detail=f"not exported or decomposed: {short(e)}")
                    continue
            yield f"seed {seed}", pair(path, other, None, restride, tmp)


def files(o, restride):
    """(name, row) of each file."""
    for name, path, _ in programs(o):
        case = case_inputs(path)
        with scratch() as tmp:
            given, other = None, (o.decomposed or tmp) / Path(path).name
            if case is not None:
                given = tmp / "inputs.json"
                given.write_text(json.dumps(case))
            yield name, pair(path, other, given, restride, tmp, case)


def main():
    p = parser(__doc__, "--binary", "--timeout", "--json", "--show", timeout=300.0)
    program_options(p)
    p.add_argument("--generated", type=seeds, default=range(0), metavar="FROM..TO", help="seeds of generated programs")
    p.add_argument("--decomposed", type=Path, metavar="DIR", help="where decomposed files stay, to be used again")
    o = p.parse_intermixed_args()
    restride = Restride(o.binary, o.timeout)
    torch.set_num_threads(1)
    if o.paths:
        libraries()
    if o.decomposed:
        o.decomposed.mkdir(parents=True, exist_ok=True)
    numbers = o.generated if o.show is None else range(o.show, o.show + 1)
    rows = []
    for name, row in itertools.chain(
        files(o, restride), generated(numbers, restride, o.show is not None, o.decomposed)
    ):
        if name in OPEN and row["status"] in ("equal", "less", "MORE"):
            what, why = OPEN[name]
            if row["detail"].startswith(f"{what} ") and "," not in row["detail"]:
                row = row | dict(status="open", detail=f"{row['detail']}: {why}")
            else:
                row = row | dict(status="MORE", detail=f"no longer as OPEN says: {row['detail'] or row['status']}")
        rows.append(dict(name=name) | row)
        if row["status"] not in ("equal", "less"):
            print(f"{name}: {row['status']} {row['detail']}", flush=True)
    counts = collections.Counter(r["status"] for r in rows)
    total = lambda form, key: sum(r[form][key] for r in rows if r["status"] in ("equal", "less", "MORE"))
    print(", ".join(f"{n} {s}" for s, n in sorted(counts.items())))
    print(f"copies {total('exported', 'copies')} exported, {total('decomposed', 'copies')} decomposed")
    passed, failed = counts["equal"] + counts["less"], counts["MORE"] + counts["refused"]
    return finish(passed, failed, o.json, rows=rows, counts=counts)


if __name__ == "__main__":
    sys.exit(main())

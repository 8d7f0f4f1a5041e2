#!/usr/bin/env python3
"""Hold random programs with symbolic sizes to eager PyTorch.

A program is lines of Python on tensors with sizes `n` and `m`: views, writes through them, pure calls. A line is kept if eager
runs it for every binding of the two sizes. torch.export exports the program once with both sizes dynamic, for training, so that
views and mutations stay; restride runs the file for each binding as interp, functional and plan (compiled without sizes, then
bound). The comparison is that of alias_check.py: values, inputs in full, metadata, sharing. All numbers are small integers.
With --written, torch.export.load also runs the files that `restride reinplace` writes, in place and in the view form, for the
bindings that they accept: values and inputs must be equal.

Programs that torch cannot export are counted and left out, and so are programs whose exported module differs from the
original in PyTorch itself. Exit status 1 when any program differs.
"""

import collections
import copy
import json
import logging
import random
import re
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import VIAS, Outcome, Restride
from lib.driver import parser, quiet, scratch, seeds
from lib.exported import module_of
from lib.tensor_files import content_of, differences

import torch

torch.set_num_threads(1)
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

BINDINGS = ((5, 3), (8, 7), (4, 4), (7, 2))
"""`n` and `m`; the first is the one that is exported with."""

VIEWS = (
    "{a}[1:]", "{a}[:-1]", "{a}[::2]", "{a}[:, 1:]", "{a}[..., :2]", "{a}[0]", "{a}[-1]", "{a}[:, 0]", "{a}[None]",
    "{a}.t()", "{a}.transpose(0, 1)", "{a}.unsqueeze({k})", "{a}.squeeze()", "{a}.view(-1)", "{a}.reshape(-1)",
    "{a}.flatten(0, 1)", "{a}.view(-1, 2)", "{a}.unflatten(0, (-1, 1))", "{a}.narrow(0, 1, {a}.shape[0] - 2)",
    "{a}.select(0, {a}.shape[0] - 1)", "{a}.diagonal()", "{a}.unfold(0, 2, 1)", "{a}.unfold({k}, 2, 2)",
    "{a}.expand(2, *{a}.shape)", "{a}.movedim(0, -1)", "{a}.chunk(2)[0]", "{a}.chunk(2, -1)[1]", "{a}.detach()",
    "{a}.split(2, -1)[0]", "{a}.as_strided(({a}.shape[0] - 1, 2), (1, 1))", "{a}.view_as({b})", "{a}.unbind(-1)[0]",
    "{a}.permute(*reversed(range({a}.dim())))", "{a}.as_strided((n, 2), ({a}.stride(0), 0))", "{a}.swapaxes(0, -1)",
    "{a}.view({a}.shape[0], -1)", "{a}.expand_as({b})", "{a}.ravel()", "{a}.contiguous()", "{a}.narrow(-1, 0, 2)",
    "{a}[: n - 2]", "{a}[m:]", "{a}[:m, 1:]", "{a}[n // 2 :]", "{a}[:, :m]",
)  # fmt: skip
WRITES = (
    "{a}.add_({c})", "{a}.mul_({c})", "{a}.copy_({b})", "{a}.fill_({c})", "{a}.zero_()", "{a}.sub_({b})",
    "{a}.add_({b}, alpha={c})", "{a}[1:] = {b}", "{a}[:, 1:] = {c}", "{a}[::2].add_({c})", "{a}[0] = {b}",
    "{a}[1:].add_({a}[:-1].clone())", "{a}.masked_fill_({a} > {c}, {c})", "{a}.clamp_(-3, 3)", "{a}.neg_()",
    "{a}.index_fill_(0, torch.tensor([0, 2]), {c})", "{a}[torch.tensor([1, 0])] = {b}", "{a}.t().mul_({b})",
    "{a}.index_add_(0, torch.tensor([1, 0, 1]), {a}[:3].clone())", "{a}.t_()", "{a}.unsqueeze_({k})", "{a}.squeeze_()",
    "{a}.transpose_(0, 1)", "{a}[{a} > {c}] = {c}", "{a}.diagonal().add_({c})", "{a}.view(-1)[::2] = {c}",
    "{a}.index_copy_(0, torch.arange({a}.shape[0] - 1), {a}[1:].clone())", "{a}.cumsum_(0)", "{a}.triu_()",
    "{a}.scatter_(0, torch.zeros_like({a}, dtype=torch.int64), {a}.clone())", "{a}.narrow(0, 1, 2).copy_({b})",
    "torch.add({a}, {b}, out={a})", "{a}.unfold(0, 2, 2).mul_({c})", "{a}[m - 1 :] = {c}", "{a}.add_(n)",
    "{a}.as_strided((n - 1,), (1,)).add_({c})", "{a}[:, -1].copy_({b})", "torch._foreach_add_([{a}, {b}], {c})",
    "{a}.masked_scatter_({a} > 0, {a}.clone())", "{a}[n - 3] = {b}", "{a}.fill_diagonal_({c})",
)  # fmt: skip
PURE = (
    "{a} + {b}", "{a} - {c}", "{a} * {c}", "torch.cat([{a}, {b}])", "torch.cat([{a}, {b}], -1)", "torch.stack([{a}, {b}])",
    "{a}.sum(0)", "{a}.sum(-1, keepdim=True)", "{a}.clone()", "torch.where({a} > {c}, {a}, {b})", "{a}.flip(0)",
    "{a}.amax(0)", "{a}.new_zeros(n, 2)", "torch.arange(n, dtype={a}.dtype)", "torch.zeros(m, n)", "{a}.repeat(2, 1)",
    "{a}.roll(1, 0)", "torch.zeros_like({a})", "{a}.index_select(0, torch.tensor([1, 0, 1]))", "{a}.relu()",
    "torch.nn.functional.pad({a}, (1, 1))", "{a}.float()", "{a}.to(torch.int64)", "torch.ones(n, m)", "{a} @ {b}",
    "torch.full((n, n), {c}).float()", "{a}.reshape(-1, 1)", "{a}.tril()", "{a}[torch.tensor([0, 1])]", "{a} * n",
    "{a}.sort(0)[0]", "torch.constant_pad_nd({a}, (0, m))", "{a}.clone(memory_format=torch.contiguous_format)",
)  # fmt: skip


class Program:
    """Lines, what goes in and what comes out."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.names = [], ["x", "y", "z"]
        worlds = [self.world(n, m) for n, m in BINDINGS]
        for _ in range(3 + self.rng.randrange(10)):
            for _ in range(12):
                if self.extend(worlds):
                    break
        late = self.names + self.names[3:] * 2
        self.returns = [self.rng.choice(late) for _ in range(1 + self.rng.randrange(3))]
        self.lines.append(f"return ({', '.join(self.returns)},)")

    def world(self, n, m):
        """The names that the lines see."""
        given = self.inputs(n, m)
        return {"torch": torch, "n": n, "m": m, **dict(zip(("x", "y", "z"), given))}

    def inputs(self, n, m):
        g = torch.Generator().manual_seed(n * 100 + m)
        draw = lambda *s: torch.randint(-4, 5, s, generator=g)
        return draw(n, 4).float(), draw(m, n).float(), draw(n)

    def extend(self, worlds):
        """Adds a line that runs everywhere, if the one that was thought of does."""
        draw = self.rng.random()
        shape = self.rng.choice(VIEWS if draw < 0.4 else WRITES if draw < 0.8 else PURE)
        name = None if draw >= 0.4 and draw < 0.8 else f"t{len(self.names)}"
        pick = lambda: self.names[max(self.rng.randrange(len(self.names)) for _ in range(2))]
        line = shape.format(a=pick(), b=pick(), c=self.rng.randrange(-3, 4), k=self.rng.randrange(0, 2))
        line = f"{name} = {line}" if name else line
        tried = copy.deepcopy([{k: v for k, v in w.items() if k != "torch"} for w in worlds])
        for world in tried:
            world["torch"] = torch
            try:
                exec(line, world)
            except Exception:
                return False
            for key in [name] if name else self.names:
                if not self.fit(world[key]):
                    return False
        for world, new in zip(worlds, tried):
            world.update(new)
        self.lines.append(line)
        if name:
            self.names.append(name)
        return True

    def fit(self, t):
        """Whether a tensor is small, and its numbers exact."""
        small = isinstance(t, torch.Tensor) and 0 < t.numel() <= 600 and t.dim() <= 5
        return small and bool((t.abs() < 2**16).all()) and bool((t == t.round()).all())

    def text(self):
        body = ["n, m = x.shape[0], y.shape[0]", *self.lines]
        return "def forward(self, x, y, z):\n" + "".join(f"    {line}\n" for line in body)

    def module(self):
        return module_of(self.text(), "Random")


def after(program, run, binding):
    """The tensor file's content after a run, and its tensors: inputs, then outputs."""
    given = list(program.inputs(*binding))
    out = run(*given)
    return content_of(given + list(out)), given + list(out)


def exported(program):
    """The program as torch.export has it."""
    n, m = torch.export.Dim.AUTO, torch.export.Dim.AUTO
    with quiet():
        return torch.export.export(
            program.module(), program.inputs(*BINDINGS[0]), dynamic_shapes=({0: n}, {0: m, 1: n}, {0: n})
        )


WRITTEN = {"in place": [], "in views": ["--views"]}


def written(restride, file, folder):
    """The files that restride writes from this one, by name, as modules."""
    made = {}
    for name, options in WRITTEN.items():
        out = folder / f"{name.replace(' ', '_')}.pt2"
        ran = restride("reinplace", file, "-o", out, *options)
        if ran.kind == "refused":
            continue
        made[name] = torch.export.load(out).module() if ran else ran
    return made


def written_problems(program, made, binding, eager):
    """Their differences from eager, at one binding."""
    problems = []
    for name, module in made.items():
        if isinstance(module, Outcome):
            problems.append(f"{name}: {module.kind} {module.line}")
            continue
        try:
            with torch.no_grad():
                _, own = after(program, module, binding)
        except AssertionError:
            continue  # it is for other sizes
        bad = [i for i, (a, b) in enumerate(zip(eager, own)) if a.shape != b.shape or not torch.equal(a, b)]
        problems += [f"n, m = {binding}, {name}: tensor {i} (inputs come first)" for i in bad]
    return problems


def check(restride, program, folder, with_written):
    """(what became of it, detail)."""
    try:
        made = exported(program)
        file = folder / "program.pt2"
        torch.export.save(made, file)
    except Exception as e:
        return "not exported", type(e).__name__
    module, problems, bound = made.module(), [], 0
    ours = written(restride, file, folder) if with_written else {}
    for binding in BINDINGS:
        want, eager = after(program, program.module(), binding)
        try:
            theirs, own = after(program, module, binding)
        except Exception:
            continue  # the export settled on other sizes
        if any(a.shape != b.shape or not torch.equal(a, b) for a, b in zip(eager, own)):
            return "torch differs", f"for n, m = {binding}"
        bound += 1
        problems += written_problems(program, ours, binding, own)
        given, out = folder / "in.json", folder / "out.json"
        given.write_text(json.dumps(content_of(program.inputs(*binding))))
        for via in VIAS:
            ran = restride.run(file, via, out, inputs=given)
            if ran.kind == "refused":
                return "refused", f"{via}: {ran.line}"
            if not ran:
                return "DIFFERENT", f"{via}: {ran.kind} {ran.line}"
            # Sharing is the exported module's: a file cannot express every sharing of the program.
            found = differences(theirs, json.loads(out.read_text()), 3)
            problems += [f"n, m = {binding}, {via}: {p}" for p in found]
    if not bound:
        return "not exported", "no binding fits"
    return ("DIFFERENT", problems[0]) if problems else ("equal", "")


def main():
    p = parser(__doc__, "--seeds", "--seconds", "--binary", "--show", seeds=seeds("0..100000"))
    p.add_argument("--written", action="store_true", help="files that are written back, too")
    p.add_argument("--keep", type=Path, metavar="DIR", help="where the files stay")
    o = p.parse_args()
    restride, begin = Restride(o.binary), time.monotonic()
    counts, refusals = collections.Counter(), collections.defaultdict(list)
    for seed in o.seeds if o.show is None else [o.show]:
        if o.seconds and time.monotonic() - begin > o.seconds:
            break
        program = Program(seed)
        if o.show is not None:
            print(program.text())
        with scratch() as tmp:
            folder = o.keep or tmp
            folder.mkdir(parents=True, exist_ok=True)
            status, detail = check(restride, program, folder, o.written)
        counts[status] += 1
        if status == "refused":
            # Sizes and names differ from program to program.
            refusals[re.sub(r"\[[^]]*\]|\d+|%\w+", "_", detail)].append((seed, detail))
        if status in ("DIFFERENT", "torch differs") or o.show is not None:
            print(f"seed {seed}: {status} {detail}", flush=True)
    for found in sorted(refusals.values(), key=len, reverse=True)[:20]:
        print(f"{len(found):5} refused, as seed {found[0][0]}: {found[0][1][:200]}")
    print(", ".join(f"{n} {status}" for status, n in sorted(counts.items())))
    return 1 if counts["DIFFERENT"] or not counts["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())

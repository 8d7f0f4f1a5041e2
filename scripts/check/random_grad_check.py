#!/usr/bin/env python3
"""Hold gradients of random programs with views and in-place operations to PyTorch's, in double precision.

Each program is exported and differentiated in two ways: in the graph, made joint by `restride grad` and run by `restride run`, and
on the eager tape (`tape_gradients`, an example of restride-testing). Both must give the gradient of PyTorch's own backward. Where
PyTorch refuses because a saved tensor was overwritten, both must agree with finite differences. Two of three programs also
compute, view and write under `no_grad` and through detached tensors, so that values do not determine the gradient: then the
reference is PyTorch with copies of all saved tensors, and the graph may refuse what PyTorch refuses. Every eighth program is also
a training step: one update of its parameters by `restride grad --optimizer sgd` must be PyTorch's.

The tape runs with its three guards of saved values. With copies before a write it must give the gradient of every program; by
regions, that gradient or PyTorch's refusal; under the strict guard it must refuse exactly the programs that PyTorch refuses.
Prints one line per difference, then a summary; fails at any difference.
"""

import collections
import functools
import json
import random
import subprocess
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import Restride, example
from lib.driver import chunks, parser, pooled, scratch, seeds

import numpy as np
import torch

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# The code of a step on a tensor `t`, with another one `o`.
VIEWS = [
    "t[{i}]", "t[..., {a}:{b}]", "t[{a}:{b}]", "t[::2]", "t.transpose(0, -1)", "t.reshape(-1)", "t.unsqueeze({d})",
    "t.diagonal()", "t.view(-1)", "t.unfold(0, 2, 1)", "t.select(-1, {i})", "t.as_strided((2, 2), (1, 2), {z})", "t.squeeze()",
    "t.split(2)[0]", "t.unbind(0)[{i}]", "t.chunk(2, -1)[-1]", "t.expand_as(t)", "t.permute(*reversed(range(t.dim())))",
    "t.view_as(t)", "t.flatten()", "t.narrow(0, {a}, 1)", "t.movedim(0, -1)",
]  # fmt: skip
PURE = [
    "t.sin()", "t * {s}", "t + o", "t * o", "t.tanh()", "t.exp()", "t - o", "t.sum(0)", "t.cumsum(0)", "t.flip(0)",
    "torch.cat([t, t])", "t.clone()", "t.mean(-1, keepdim=True)", "torch.where(t > o, t, o)", "t.softmax(-1)", "t.roll(1, 0)",
    "t.masked_fill(t > 0.3, {s})", "t.square()", "torch.stack([t, t * {s}])", "t.maximum(o)", "t.contiguous()", "t.abs()",
    "constant(t) * t",
]  # fmt: skip
WRITES = [
    "t.mul_({s})", "t.add_(o)", "t.mul_(o)", "t.sin_()", "t.copy_(o)", "t.fill_({s})", "t.zero_()", "t.tanh_()",
    "t.sub_(o, alpha={s})", "t.masked_fill_(o > 0.2, {s})", "t.addcmul_(o, o)", "t.exp_()", "t.neg_()", "t.clamp_(-0.5, 0.5)",
    "t.index_add_(0, torch.tensor([0]), o[:1])", "t.index_put_((torch.tensor([0]),), o[0])", "t.square_()", "t.sigmoid_()",
    "t.cumsum_(0)", "t.lerp_(o, {s})", "t.relu_()",
]  # fmt: skip

# Unrecorded steps: detached views, and any step above under `no_grad`.
DETACHED = ["t.detach()", "t.detach()", "t.detach()[{a}:{b}]", "t.detach().transpose(0, -1)", "t.view(torch.float64)"]
NO_GRAD = "no_grad: "

REFUSED = (
    "in the order of PyTorch's loop",
    "in an order that depends on the processor",
    "into a tensor with several elements in one cell",
)


def writes(code):
    """Whether a step writes a tensor instead of making one."""
    return "_(" in code


def unrecorded(steps):
    """Whether PyTorch leaves a step unrecorded."""
    return any(code.startswith(NO_GRAD) or "detach" in code or "torch.float64" in code for code, *_ in steps)


def overlaps(t):
    """Whether a tensor has several elements in one cell."""
    cells = torch.arange(t.untyped_storage().nbytes()).as_strided(t.shape, t.stride(), 0)
    return cells.unique().numel() < t.numel()


def no_derivative(code, t, o):
    """Whether PyTorch's gradient of a step is not the derivative: a write through a view that overlaps itself, one that reads
    another view of what it writes, and a view of cells beyond the tensor's own. Differences tell so, but not where something is
    not recorded."""
    beyond = "as_strided" in code and t.numel() * t.element_size() < t.untyped_storage().nbytes()
    same = (t.shape, t.stride(), t.storage_offset()) == (o.shape, o.stride(), o.storage_offset())
    reads = "(o" in code and not same and t.untyped_storage()._cdata == o.untyped_storage()._cdata
    return beyond or (writes(code) and (overlaps(t) or reads))


class Program(torch.nn.Module):
    """Steps on a growing list of tensors; the loss weighs every element of all of them."""

    def __init__(self, steps, weights):
        super().__init__()
        self.steps, self.weights = steps, weights

    def forward(self, x, y, constant=torch.Tensor.detach):
        tensors = self.run(x, y, constant)
        loss = tensors[0].new_zeros(())
        for t, w in zip(tensors, self.weights):
            loss = loss + (t * w).sum()
        return loss

    def run(self, x, y, constant=torch.Tensor.detach):
        tensors = [x * 1.0, y * 1.0]
        for code, t, o in self.steps:
            names = {"torch": torch, "constant": constant, "t": tensors[t], "o": tensors[o]}
            if code.startswith(NO_GRAD):
                with torch.no_grad():
                    made = eval(code.removeprefix(NO_GRAD), names)
            else:
                made = eval(code, names)
            if not writes(code):
                tensors.append(made)
        return tensors


class Trained(Program):
    """The same on parameters."""

    def __init__(self, module, inputs):
        super().__init__(module.steps, module.weights)
        self.x, self.y = (torch.nn.Parameter(t.clone()) for t in inputs)

    def forward(self, one):
        return super().forward(self.x, self.y) * one


def program(seed):
    """A program with its inputs."""
    pick = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.rand(s, generator=generator, dtype=torch.float64) * 2 - 1 for s in ((4, 3), (4, 3)))
    steps = []
    for _ in range(200):
        if len(steps) >= 4 + seed % 9:
            break
        tensors = Program(steps, None).run(x, y)
        kinds = [VIEWS, VIEWS, PURE, WRITES, WRITES]
        mixed = seed % 3 > 0
        kind = pick.choice([*kinds, DETACHED, DETACHED] if mixed else kinds)
        numbers = dict(
            i=pick.randrange(2), a=pick.randrange(2), b=2 + pick.randrange(2), d=pick.randrange(2), z=pick.randrange(3),
            s=round(pick.uniform(0.2, 1.8), 2),
        )  # fmt: skip
        code = pick.choice(kind).format(**numbers)
        if mixed and pick.random() < (0.5 if kind is WRITES else 0.15):
            code = NO_GRAD + code
        step = (code, pick.randrange(len(tensors)), pick.randrange(len(tensors)))
        if mixed and no_derivative(code, *(tensors[i] for i in step[1:])):
            continue
        try:
            after = Program([*steps, step], None).run(x, y)
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
        if all(0 < t.numel() <= 64 and t.dim() <= 4 and bool(t.abs().max() < 50) for t in after):
            steps.append(step)
    shapes = [t.shape for t in Program(steps, None).run(x, y)]
    weights = [torch.rand(s, generator=generator, dtype=torch.float64) for s in shapes]
    return Program(steps, weights), (x, y)


def differences(module, inputs, eps=1e-6):
    """Gradients from differences; None where they do not settle, as at a kink. What is detached stays what it was."""
    out, constants = [], []
    with torch.no_grad():

        def keep(t):
            constants.append(t.clone())
            return constants[-1]

        module(*(t.clone() for t in inputs), keep)
        for k, x in enumerate(inputs):
            g = torch.zeros_like(x)
            for i in range(x.numel()):

                def at(by):
                    moved = [t.clone() for t in inputs]
                    moved[k].view(-1)[i] += by
                    kept = iter(constants)
                    return float(module(*moved, lambda _: next(kept).clone()))

                near, far = (at(eps) - at(-eps)) / (2 * eps), (at(2 * eps) - at(-2 * eps)) / (4 * eps)
                if abs(near - far) > 1e-5 * max(1.0, abs(near)):
                    return None
                g.view(-1)[i] = near
            out.append(g)
    return out


def as_saved(module, inputs):
    """PyTorch's gradients where saved tensors that are overwritten are what they were; None where it has none all the same."""
    given = [t.clone().requires_grad_() for t in inputs]
    try:
        # allow_mutation_on_saved_tensors copies before a write through the saved tensor itself, not through another view of its memory.
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t):
            module(*given).backward()
    except (RuntimeError, AssertionError, IndexError):
        return None
    return [torch.zeros_like(t) if t.grad is None else t.grad for t in given]


def agree(ours, theirs, tolerance):
    size = max(1.0, *(float(b.abs().max()) for b in theirs))
    return all(torch.allclose(a, b, rtol=tolerance, atol=tolerance * size) for a, b in zip(ours, theirs))


class Tape:
    """`tape_gradients`, which answers as often as it is asked."""

    def __init__(self, binary):
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, how, file):
        """Gradients of x and y, or the error."""
        self.process.stdin.write(f"{how} {file}\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "the tape has ended"}')
        if "error" in answer:
            return answer["error"]
        numbers = [[float("nan") if n is None else n for n in g] for g in answer["gradients"]]
        return [torch.tensor(g, dtype=torch.float64) for g in numbers]


# The errors of PyTorch and of the tape where they have no gradient.
RAISED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation",
    "output of a function that returns multiple views",
    "created in no_grad mode",
)
# The graph's error where an unrecorded write overwrote a saved tensor.
STALE = "is saved for the gradient of"
CONSTANT = "does not require grad and does not have a grad_fn"


def on_tape(tape, file, ours, raised):
    """The difference between the tape and the graph, or, under the strict guard, between its errors and PyTorch's."""
    shaped = lambda made: [t.view_as(o) for t, o in zip(made, ours, strict=True)]
    for how in ("clone", "regions", "strict"):
        made = tape.ask(how, file)
        if not isinstance(made, str):
            if how == "strict" and raised and any(r in raised for r in RAISED):
                return f"the strict tape has a gradient, PyTorch says: {raised}"
            # PyTorch gives a write to such a view no meaning at all.
            undefined = raised and "created in no_grad mode" in raised
            if not undefined and not agree(shaped(made), ours, 1e-9):
                return f"{how} tape: {[t.flatten()[:6].tolist() for t in made]}, graph {[t.flatten()[:6].tolist() for t in ours]}"
        elif any(r in made for r in REFUSED):
            return None  # What restride does not do, and says so.
        elif how == "clone" or not any(r in made for r in RAISED):
            return f"{how} tape: {made}"
        elif how == "strict" and not any(r in (raised or "") for r in RAISED):
            return f"the strict tape says: {made}; PyTorch: {raised}"
    return None


RATE = 0.5


def step(module, inputs, theirs, restride, folder):
    """The difference after a training step."""
    one = torch.ones((), dtype=torch.float64)
    torch.export.save(torch.export.export(Trained(module, inputs), (one,), strict=False), folder / "t.pt2")
    optimizer = ["--optimizer", "sgd", "--lr", str(RATE)]
    grad = ["grad", folder / "t.pt2", "-o", folder / "s.pt2", *optimizer]
    for command in (grad, ["run", folder / "s.pt2", "--outputs", folder / "s.npz"]):
        made = restride(*command)
        if not made:
            return f"the training step: {made.stderr.strip()}"
    out = np.load(folder / "s.npz")
    for name, before, g in zip("xy", inputs, theirs):
        # Unchanged parameters are not among the outputs.
        ours = torch.from_numpy(out[f"parameter.{name}"]) if f"parameter.{name}" in out else before
        if not agree([ours], [before - RATE * g], 1e-9):
            return f"the training step: {name} is {ours.flatten()[:6].tolist()}, by torch {(before - RATE * g).flatten()[:6].tolist()}"
    return None


def check(seed, restride, tape, folder):
    """The reference that was used, and the difference from it."""
    module, inputs = program(seed)
    exported = torch.export.export(module, tuple(t.clone() for t in inputs), strict=False)
    whole, joint, results = folder / "p.pt2", folder / "j.pt2", folder / "out.npz"
    torch.export.save(exported, whole)
    given = [t.clone().requires_grad_() for t in inputs]
    raised = None
    try:
        module(*given).backward()
    except RuntimeError as e:
        raised = None if CONSTANT in str(e) else str(e)
    asked, theirs, tolerance = "torch", [torch.zeros_like(t) if t.grad is None else t.grad for t in given], 1e-9
    for command in (["grad", whole, "-o", joint], ["run", joint, "--outputs", results]):
        made = restride(*command)
        if not made and raised and STALE in made.stderr:
            made = tape.ask("strict", whole)
            fits = isinstance(made, str) and any(r in made for r in RAISED)
            return "refused by both", None if fits else f"the strict tape: {made}; PyTorch: {raised}"
        if not made:
            # Only these refusals are expected.
            return "refused", None if any(r in made.stderr for r in REFUSED) else made.stderr.strip()
    ours = [torch.from_numpy(np.load(results)[f"grad.{n}"]) for n in ("x", "y")]
    why = on_tape(tape, whole, ours, raised)
    if why:
        return "the tape", why
    if raised and unrecorded(module.steps):
        asked, theirs = "torch with saved tensors kept", as_saved(module, inputs)
    elif raised:
        asked, theirs, tolerance = "differences", differences(module, inputs), 1e-5
    if asked == "torch" and not unrecorded(module.steps) and not agree(ours, theirs, tolerance):
        # A write through a view that overlaps itself: PyTorch's gradient of it is not the derivative.
        slopes = differences(module, inputs)
        if slopes is not None and agree(ours, slopes, 1e-5) and not agree(theirs, slopes, 1e-3):
            return "torch is wrong", None
    if theirs is None:
        return "kink" if asked == "differences" else "no reference", None
    for name, a, b in zip("xy", ours, theirs):
        if not agree([a], [b], tolerance):
            return asked, f"grad.{name}: {a.flatten()[:6].tolist()}, {asked} {b.flatten()[:6].tolist()}"
    return asked, step(module, inputs, theirs, restride, folder) if asked == "torch" and seed % 8 == 1 else None


# Programs that are checked in one process, one after the other.
CHUNK = 25


tape_of = functools.cache(Tape)


def chunk(restride, tape, first, last):
    """How often each reference was used, and the differences, for some seeds."""
    asked, found = collections.Counter(), []
    with scratch() as folder:
        for seed in range(first, last):
            who, why = check(seed, restride, tape_of(tape), folder)
            asked[who] += 1
            if why:
                found.append(f"seed {seed}: {why}")
    return asked, found


def main():
    p = parser(__doc__, "--seeds", "--jobs", "--show", seeds=seeds("0..500"))
    p.add_argument("--restride", help="default: the release build of this checkout")
    p.add_argument("--tape", help="tape_gradients (default: the debug build)")
    o = p.parse_args()
    restride, tape = Restride(o.restride), str(Path(o.tape or example("tape_gradients")).resolve())
    if o.show is not None:
        for one in program(o.show)[0].steps:
            print(*one)
        o.seeds = range(o.show, o.show + 1)
    asked, found = collections.Counter(), []
    for own, lines in pooled(chunk, ((restride, tape, *c) for c in chunks(o.seeds, CHUNK)), o.jobs):
        asked += own
        found += lines
        for line in lines:
            print(line, flush=True)
    print(f"{len(o.seeds)} programs ({', '.join(f'{n} {w}' for w, n in sorted(asked.items()))}), {len(found)} differ")
    return 1 if found or not asked["torch"] else 0


if __name__ == "__main__":
    sys.exit(main())

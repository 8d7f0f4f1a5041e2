#!/usr/bin/env python3
"""Hold recorded checks to eager PyTorch: every way of running refuses the inputs that `torch._check` and its like refuse.

The same for bounds of views that a run learns: negative ones count from the end, and those outside are cut off or refused. Each
case is a small module with inputs that pass its checks and inputs that may fail one, exported as is and after
run_decompositions({}). `run --via interp|functional|plan`, and the files that functionalize, reinplace and compile write, run
by PyTorch, must give the outputs of the exported module and raise where it raises; restride runs the file that grad writes.
Exit status 1 when one does not; the last line is `N passed, N failed`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import VIAS, Restride
from lib.driver import chosen, finish, parser, scratch

import numpy as np
import torch
from torch.export import Dim

CASES = {}
X = torch.arange(4.0)


def case(good, *bad, dynamic=None):
    """A case of a function that becomes a module's forward."""

    def register(forward):
        module = type(forward.__name__, (torch.nn.Module,), {"forward": forward})
        CASES[forward.__name__] = (module, good, bad, dynamic)
        return forward

    return register


def numbers(*n):
    return torch.tensor(n), X


@case(numbers(3), numbers(4), numbers(-3))
def pinned(self, n, x):
    u = n[0].item()
    torch._check(u == 3)
    return (x * u).sum()


@case(numbers(3, 4), numbers(3, 6), numbers(0, 4))
def product(self, n, x):
    u, v = n[0].item(), n[1].item()
    torch._check(u >= 1)
    torch._check(v >= 1)
    torch._check(u * v <= 16)
    return (torch.ones(u, v).sum() + x).sum()


@case(numbers(3), numbers(5), numbers(1))
def narrowed(self, n, x):
    u = n[0].item()
    torch._check(u >= 2)
    torch._check(u <= 4)
    return torch.narrow(x, 0, 0, u).sum()


@case(numbers(6), numbers(4), numbers(7))
def remainder(self, n, x):
    u = n[0].item()
    torch._check(u % 2 == 0)
    torch._check(u != 4)
    return (x * u).sum()


@case(numbers(3, 3), numbers(3, 4), numbers(6, 6))
def equal(self, n, x):
    u, v = n[0].item(), n[1].item()
    torch._check(u == v)
    torch._check(u + v <= 10)
    return (torch.zeros(u) + torch.ones(v)).sum() + x.sum()


@case((torch.tensor([1, 2, 3, 4]), X), (torch.tensor([1, 3, 3, 4]), X))
def counted(self, n, x):
    found = x[n > 2]
    torch._check(found.shape[0] == 2)
    return found.sum()


@case((torch.tensor([4]), X), (torch.tensor([5]), X), dynamic=(None, {0: Dim.DYNAMIC}))
def as_long(self, n, x):
    u = n[0].item()
    torch._check(u == x.shape[0])
    return (x * u).sum()


@case((torch.tensor([True]), X), (torch.tensor([False]), X))
def truth(self, n, x):
    torch._check(n[0].item())
    return x.sum()


@case(numbers(3, 4), numbers(3, 5), numbers(2, 4))
def asynchronous(self, n, x):
    torch._assert_async(n[0] == 3)
    torch.ops.aten._assert_async.msg(n[1] == 4, "not four")
    return x.sum()


@case(numbers(3), numbers(4))
def before_a_write(self, n, x):
    u = n[0].item()
    y = x.clone()
    y[:2].mul_(u)
    torch._check(u * u == 9)
    return y.sum()


@case((torch.eye(3) * 2, X), (torch.zeros(3, 3), X), (-torch.eye(3), X))
def factors(self, n, x):
    return torch.linalg.cholesky(n).sum() + x.sum()


@case(numbers(1, 3), numbers(-3, 9), numbers(-9, -1), numbers(3, 1))
def bounds(self, n, x):
    y = x * 1
    y[n[0].item() : n[1].item()].mul_(2)
    return (y * (x + 1) ** 2).sum() + (x[n[0].item() :] ** 3).sum()


@case(numbers(1), numbers(-3), numbers(0), numbers(2), numbers(5))
def start(self, n, x):
    y = x * 1
    y.narrow(0, n[0].item(), 2).mul_(2)
    return (y * (x + 1) ** 2).sum() + (x.narrow(0, n[0].item(), 2) ** 3).sum()


@case(numbers(1, 3), numbers(-3, 9), numbers(-9, -1), numbers(3, 1))
def splits(self, n, x):
    first, second, third = torch.tensor_split(x * 1, n, 0)
    second.add_(100)
    return first.sum() + 2 * second.sum() + 5 * third.sum()


def outcome(call):
    try:
        return call()
    except Exception as e:
        return e


def same(got, want):
    if isinstance(want, Exception):
        return isinstance(got, Exception)
    return not isinstance(got, Exception) and np.allclose(got, want)


def loaded(path, inputs):
    """The first output of a written file, run by PyTorch."""
    module = torch.export.load(path).module()
    with torch.no_grad():
        found = module(*(t.clone() for t in inputs))
    return (found[0] if isinstance(found, (tuple, list)) else found).numpy()


def judge(restride, folder, name):
    """The differences of one case, form by form and way by way."""
    module, good, bad, dynamic = CASES[name]
    program = torch.export.export(module(), good, dynamic_shapes=dynamic, strict=False)
    given, left = folder / "given.npz", folder / "left.npz"
    for form, ep in [("exported", program), ("decomposed", program.run_decompositions({}))]:
        path = folder / f"{name}-{form}.pt2"
        torch.export.save(ep, path)
        written = {}
        for command in ["functionalize", "reinplace", "compile", "grad"]:
            out = folder / f"{name}-{form}-{command}.pt2"
            done = restride(command, path, "-o", out, *(["--wrt", "x"] if command == "grad" else []))
            if done:
                written[command] = out
            else:
                yield f"{form} {command}: {done.kind} {done.line}"
        for inputs in [good, *bad]:
            # PyTorch's own decompositions lose `_assert_async` without a message.
            want = outcome(lambda: ep.module()(*(t.clone() for t in inputs)).numpy())
            np.savez(given, n=inputs[0].numpy(), x=inputs[1].numpy())
            for via in VIAS:
                done = restride.run(path, via, left, inputs=given)
                got = np.load(left)["output.0"] if done else RuntimeError(done.line)
                if not same(got, want) or done.kind not in ("ok", "refused"):
                    yield f"{form} {via} on {inputs[0].tolist()}: {got!r} for {want!r}"
            for command, out in written.items():
                if command == "grad":
                    # The outputs of a joint program are more than its module's.
                    done = restride("run", out, "--inputs", given)
                    if done.kind != ("refused" if isinstance(want, Exception) else "ok"):
                        yield f"{form} grad, run, on {inputs[0].tolist()}: {done.kind} {done.line}"
                    continue
                got = outcome(lambda: loaded(out, inputs))
                if not same(got, want):
                    yield f"{form} {command}, loaded, on {inputs[0].tolist()}: {got!r} for {want!r}"


def main():
    p = parser(__doc__, "names", "--binary", "--timeout")
    o = p.parse_args()
    restride, failed, cases = Restride(o.binary, o.timeout), 0, chosen(p, o, CASES)
    with scratch() as folder:
        for name in cases:
            wrong = list(judge(restride, folder, name))
            failed += bool(wrong)
            print(f"{name}: {'ok' if not wrong else ''}", *wrong, sep="\n  " if wrong else "", flush=True)
    return finish(len(cases) - failed, failed)


if __name__ == "__main__":
    sys.exit(main())

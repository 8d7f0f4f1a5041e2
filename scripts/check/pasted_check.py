#!/usr/bin/env python3
"""Hold printed graphs to eager PyTorch: each program in each text form, read back and run as interp, functional and plan.

The programs are those of fixtures/alias, and modules and functions of this file, which torch.fx and TorchScript trace above the
operators. The forms:

  nodes      print(graph) of the exported graph; `older` has its users as [#users=N], `unlifted` is that of ep.module()
  code       gm.code of the exported graph, without types; `printed` is print(ep.module()), which lists its modules
  readable   print_readable() of the exported graph, with types; `unlifted-readable` is that of ep.module()
  exported   print(ep), with signature and range constraints
  jit        print(traced.graph), with the graphs of its modules; `nested` is that of a module around it, `inlined`
             print(traced.inlined_graph)

The programs of scripts/lib/pasted_texts.py are printed by torch.compile and AOTAutograd, with what people paste around a graph:
prefixes of logs, prompts, line numbers, colours, quotes.

The texts come from torch; a text of control flow without its bodies must be refused, naming print_readable(). The results of a form
are held to what eager PyTorch leaves (values, types, strides, sharing), those of TorchScript IR to torch's own run of it.

Needs PyTorch. Exit status 1 when any text fails; the last line is `N passed, N failed`.
"""

import functools
import json
import operator
import re
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib import pasted_texts
from lib.command import ROOT, VIAS, Restride
from lib.driver import finish, first_of, forked, parser, print_table, scratch
from lib.tensor_files import Tensors, content_of, differences

import torch
import torch._export.verifier
from torch.utils._pytree import tree_leaves

warnings.simplefilter("ignore")
nn, F = torch.nn, torch.nn.functional
# A file of an older PyTorch whose nodes lack a value is printed all the same.
torch._export.verifier.Verifier.check = lambda self, ep: None

LIBRARY = torch.library.Library("abugs", "DEF")
CUSTOM = {
    "two_inplace(Tensor(a!) a, Tensor(b!) b) -> ()": lambda a, b: (a.add_(1), b.add_(2)),
    "sum_out(Tensor a, Tensor b, Tensor(c!) o) -> ()": lambda a, b, o: o.copy_(a + b + 2),
    "seq_write(Tensor(a!) a, Tensor(b!) b) -> ()": lambda a, b: (a.fill_(1), b.add_(2)),
    "sin_(Tensor(a!) x) -> ()": lambda x: x.sin_(),
    "list_mut(Tensor(a!)[] xs) -> ()": lambda xs: [x.add_(i + 1) for i, x in enumerate(xs)],
}
for schema, kernel in CUSTOM.items():
    LIBRARY.define(schema)
    LIBRARY.impl(schema.split("(")[0], lambda *a, kernel=kernel: (kernel(*a), None)[1], "CompositeExplicitAutograd")


class Around(nn.Module):
    """A module that calls another one."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs):
        return self.inner(*inputs)


# ---------------------------------------------------------------------------------- modules and functions


class Methods(nn.Module):
    """Methods of tensors, Python's operators, functions of torch and torch.nn.functional, defaults."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.seq = nn.Sequential(nn.Conv2d(1, 2, 1, padding=1), nn.BatchNorm2d(2), nn.ReLU())
        self.w = nn.Parameter(torch.randn(3))
        self.d = nn.ModuleDict({"a": nn.PReLU()})

    def forward(self, x, k: int = 2, flag=None):
        y = F.relu(self.lin(x), inplace=True)
        y += 1
        z = self.seq(y[None, None])
        a, _ = y.chunk(2)
        n = y.shape[0] + 1
        return (
            *((z.view(-1) * self.w.sum()).sum(dim=0, keepdim=True).to(torch.float64), -y, n, y @ y.t(), y.T),
            *(torch.cat([y, y], dim=1), y.contiguous(memory_format=torch.contiguous_format), self.d["a"](a)),
            *(y[..., 1:], y[:, None, 0], float("inf") * y, y.masked_fill(y > 0, float("-inf")), 2 / (y + 1)),
            *(torch.zeros(2, device=x.device, dtype=x.dtype), 2 - y, y // 2, y**2, y % 2, ~(y > 1), (y > 1) & (y < 3)),
        )


def in_place(x, y):
    x.add_(y).mul_(2)
    x[:, 1:].sub_(1)
    torch.relu_(x)
    F.hardtanh(y, inplace=True)
    z = torch.add(x, y, alpha=2)
    return z.unsqueeze_(0), x.view(-1)


MODULES = {
    "Linear": (lambda: nn.Linear(4, 3, bias=False), (2, 4)),
    "Conv1d": (lambda: nn.Conv1d(2, 4, 3, stride=2, padding=1, groups=2), (1, 2, 8)),
    "Conv2d": (lambda: nn.Conv2d(2, 3, (3, 2), dilation=2, padding="same"), (1, 2, 8, 8)),
    "Conv2d circular": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (1, 2, 8, 8)),
    "Conv3d": (lambda: nn.Conv3d(1, 2, 2, bias=False), (1, 1, 3, 4, 4)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1), (1, 2, 5)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 4, 3, padding=1, groups=2), (1, 2, 5, 5)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), (4, 3)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3, eps=1e-3, affine=False), (2, 3, 4, 4)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 4)),
    "LayerNorm": (lambda: nn.LayerNorm((3, 4)), (2, 3, 4)),
    "RMSNorm": (lambda: nn.RMSNorm(4, eps=1e-5), (2, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "Embedding": (lambda: nn.Embedding(5, 3, padding_idx=0), None),
    "Dropout": (lambda: nn.Dropout(0.3), (2, 3)),
    "Identity": (lambda: nn.Identity(), (2, 3)),
    "Flatten": (lambda: nn.Flatten(), (2, 3, 4)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 3)), (2, 6)),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), (1, 2, 8, 8)),
    "AvgPool2d": (lambda: nn.AvgPool2d(2, stride=1, padding=1), (1, 2, 8, 8)),
    "AvgPool1d": (lambda: nn.AvgPool1d(2), (1, 2, 8)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((1, None)), (1, 2, 6, 6)),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(2), (1, 2, 6, 6)),
    "Softmax": (lambda: nn.Softmax(dim=-1), (2, 3)),
    "LogSoftmax": (lambda: nn.LogSoftmax(dim=1), (2, 3)),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 3, 3)),
    "Upsample nearest": (lambda: nn.Upsample(size=(5, 4)), (1, 2, 3, 3)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (1, 4, 3, 3)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), (1, 1, 4, 4)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), (1, 4, 3, 3)),
    "ZeroPad2d": (lambda: nn.ZeroPad2d((1, 2, 0, 1)), (1, 2, 3, 3)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d(1), (1, 2, 3, 3)),
    "ReplicationPad1d": (lambda: nn.ReplicationPad1d(2), (1, 2, 3)),
    "ConstantPad1d": (lambda: nn.ConstantPad1d(2, 3.5), (1, 2, 3)),
    "CosineSimilarity": (lambda: nn.CosineSimilarity(dim=1), (2, 3)),
    "Bilinear": (lambda: nn.Bilinear(3, 3, 2), (2, 3)),
    "PReLU": (lambda: nn.PReLU(3), (2, 3)),
    "GLU": (lambda: nn.GLU(), (2, 4)),
    "GELU": (lambda: nn.GELU(approximate="tanh"), (2, 3)),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.2, inplace=True), (2, 3)),
    "Softplus": (lambda: nn.Softplus(beta=2.0), (2, 3)),
    "Hardtanh": (lambda: nn.Hardtanh(-0.5, 0.5), (2, 3)),
    "Threshold": (lambda: nn.Threshold(0.1, 20.0), (2, 3)),
    "Softshrink": (lambda: nn.Softshrink(0.2), (2, 3)),
    **{
        n: (lambda n=n: getattr(nn, n)(), (2, 3))
        for n in "ReLU ReLU6 SiLU Hardswish Hardsigmoid Sigmoid Tanh Mish ELU SELU CELU Softsign LogSigmoid Tanhshrink".split()
    },
    "Softmin": (lambda: nn.Softmin(dim=0), (2, 3)),
    "ParameterList": (lambda: nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 2))), (2, 3)),
}


class Looped(nn.Module):
    """Loops and branches, which TorchScript prints as blocks; modules that are called."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.seq = nn.Sequential(nn.Linear(3, 2), nn.ReLU())

    def forward(self, x):
        y = F.relu(self.lin(x))
        n = 0
        while n < 3:
            if y.shape[0] > 1 or n == 2:
                y = y + n
            n += 1
        parts = [y, y * 2]
        for i in range(2):
            y[i, 0] = float(i)
            parts.append(y * i)
        total = torch.zeros(3)
        if y.sum() > 0:  # noqa: SIM108 (a branch on data is what this is about)
            total = total + 1
        else:
            total = total - y[0]
        while bool(total.sum() < 50):
            total = total * 2 + 1
        return self.seq(y), torch.stack(parts), {"t": total}, x[:, ::2]


def functions():
    """(name, module, inputs) of what torch.fx traces symbolically."""
    torch.manual_seed(0)
    yield "methods", Methods().eval(), [torch.rand(3, 3)]
    yield "in_place", in_place, [torch.randn(2, 3), torch.randn(2, 3)]
    for name, (make, size) in MODULES.items():
        inputs = [torch.tensor([[0, 1], [4, 2]])] if size is None else [torch.randn(size)]
        if name in ("CosineSimilarity", "Bilinear"):
            inputs.append(torch.randn(size))
        yield name, One(make(), len(inputs)).eval(), inputs


class One(nn.Module):
    def __init__(self, m, n):
        super().__init__()
        self.m, self.n = m, n

    def forward(self, x, y=None):
        return self.m(x) if self.n == 1 else self.m(x, y)


# ---------------------------------------------------------------------------------- texts


def readable(gm):
    return gm.print_readable(print_output=False)


def weights_of(module, path):
    state = dict(module.named_parameters(remove_duplicate=False))
    state.update(module.named_buffers(remove_duplicate=False))
    for name, m in module.named_modules():
        for key, value in vars(m).items():
            if isinstance(value, torch.Tensor):
                state[f"{name}.{key}".strip(".")] = value
    torch.save({k: v.detach() for k, v in state.items()}, path)
    return ["--weights", path] if state else []


def older(text):
    return text.replace("[num_users=", "[#users=")


def left(run, inputs):
    """What a run leaves: the inputs, then the results, as a tensor file."""
    out = []

    def leaves(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (tuple, list)):
            for v in value:
                leaves(v)
        else:
            out.append(value)

    with torch.no_grad():
        leaves(run(*inputs))
    return content_of([*inputs, *out])


def graphs(module):
    """TorchScript IR of a module and of all modules below it."""
    own = [module, *(m for name, m in module.named_modules() if name)]
    out = []
    for m in own:
        try:
            out.append(str(m.graph))
        except (AttributeError, RuntimeError):
            continue
    return "\n".join(out)


def exported(ep):
    """The texts of an exported program: form, text, and whether weights are inputs."""
    gm, own = ep.module(), ep.graph_module
    yield "nodes", str(ep.graph), True
    yield "older", older(str(ep.graph)), True
    yield "code", own.code, True
    yield "readable", readable(own), True
    yield "unlifted", str(gm.graph), False
    yield "printed", str(gm), False
    yield "unlifted-readable", readable(gm), False
    yield "exported", str(ep), False


class Fresh:
    """Inputs of a case, new each time."""

    def __init__(self, content):
        self.content = content

    def __call__(self):
        return Tensors(json.loads(json.dumps(self.content))).all()


def judge(restride, text, name, folder, content, want, n_inputs, bodies=True, more=()):
    """(status, detail) by way of one text."""
    file, given, out = folder / f"{name}.txt", folder / "inputs.json", folder / "outputs.json"
    file.write_bytes(text.encode())
    given.write_text(json.dumps(content))
    result = {}
    for via in VIAS:
        outcome = restride.run(file, via, out, *more, inputs=given)
        if not bodies:
            refused = outcome.kind == "refused" and "print_readable()" in outcome.line
            result[via] = ("ok", "") if refused else ("WRONG", f"not refused for its bodies: {outcome.line}")
        elif want is None:
            result[via] = ("ok", "") if outcome.kind == "refused" and outcome.errors == 1 else ("accepted", "")
        elif not outcome:
            result[via] = (outcome.kind, outcome.line)
        else:
            problems = differences(want, json.loads(out.read_text()), n_inputs)
            result[via] = ("WRONG", first_of(problems)) if problems else ("ok", "")
    return result


def alias_case(restride, file, folder):
    """The results of a program of fixtures/alias, by form."""
    case = json.loads(file.with_suffix(".json").read_text())
    ep = torch.export.load(file)
    fresh, n = Fresh(case["inputs"]), case["n_inputs"] if "n_inputs" in case else len(case["inputs"]["tensors"])
    weights = folder / "weights.pt"
    more = weights_of(ep.module(), weights)
    custom = "torch.ops.abugs." in ep.graph_module.code
    if custom:
        ops = folder / "ops.txt"
        ops.write_text("".join(f"abugs::{s}\n" for s in CUSTOM))
        more += ["--ops", ops]
    lifted = [
        ep.state_dict.get(t.target, ep.constants.get(t.target)) for t in ep.graph_signature.input_specs if t.target
    ]
    for form, text, weights_are_inputs in exported(ep):
        bodies = "torch.ops.higher_order" not in text or "(torch.nn.Module):" in text
        if custom:
            # Operators without bodies cannot run; they are functionalized, as those of a .pt2.
            path = folder / "custom.txt"
            path.write_text(text)
            (folder / "inputs.json").write_text(json.dumps(case["inputs"]))
            types = ["--inputs", folder / "inputs.json"]
            outcome = restride("functionalize", path, *more, *types, "-o", folder / "custom.fx")
            yield form, dict.fromkeys(VIAS, (outcome.kind, "" if outcome else outcome.line))
            continue
        content, want, count = case["inputs"], case.get("after"), n
        if weights_are_inputs and lifted:
            inputs = [*(t.detach().clone() for t in lifted), *fresh()]
            content, count = content_of(inputs), len(inputs)
            run = torch.fx.Interpreter(ep.graph_module).run
            # The order of storages is the file's.
            want = left(run, Tensors(json.loads(json.dumps(content))).all())
        yield form, judge(restride, text, form, folder, content, want, count, bodies, more)
    if custom or "after" not in case:
        return
    try:
        trace = lambda m: torch.jit.trace(m, tuple(fresh()), check_trace=False, strict=False)
        own, traced = trace(ep.module()), trace(Around(ep.module()))
        want = left(own, fresh())
        forms = [("jit", graphs(own)), ("inlined", str(traced.inlined_graph)), ("nested", graphs(traced))]
    except Exception as e:
        yield "jit", {v: ("n/a", f"torch does not trace it: {' '.join(str(e).split())[:60]}") for v in VIAS}
        return
    for form, text in forms:
        more = weights_of(ep.module() if form == "jit" else Around(ep.module()), weights)
        yield form, judge(restride, text, form, folder, case["inputs"], want, n, True, more)


def function_case(restride, module, inputs, folder):
    """The results of a module that torch.fx traces, by form."""
    gm = torch.fx.symbolic_trace(module)
    content = content_of(inputs)
    fresh = Fresh(content)
    want = left(gm, fresh())
    weights = folder / "weights.pt"
    more = weights_of(gm, weights)
    listing = re.split(r"\n\s*def forward", str(gm))[0]
    nodes = f"{listing}\n{gm.graph}"
    for form, text in (("nodes", nodes), ("older", older(nodes)), ("printed", str(gm))):
        yield form, judge(restride, text, form, folder, content, want, len(inputs), True, more)
    yield (
        "readable",
        judge(restride, f"{listing}\n{readable(gm)}", "readable", folder, content, want, len(inputs), True, more),
    )


def scripted_case(restride, module, inputs, folder):
    content = content_of(inputs)
    fresh = Fresh(content)
    weights = folder / "weights.pt"
    more = weights_of(module, weights)
    made = torch.jit.script(module)
    want = left(made, fresh())
    for form, text in (("nested", graphs(made)), ("inlined", str(made.inlined_graph))):
        yield form, judge(restride, text, form, folder, content, want, len(inputs), True, more)


def without_tokens(gm):
    """A call of a graph that gives None for the tokens that order effects, as restride does: they have no value."""

    def token(node):
        maker = node.args[0] if isinstance(node, torch.fx.Node) and node.target is operator.getitem else None
        return maker is not None and "with_effects" in str(maker.target) and node.args[1] == 0

    tokens = [token(node) for node in tree_leaves(gm.graph.output_node().args[0])]
    return lambda *args: [None if t else v for t, v in zip(tokens, tree_leaves(gm(*args)), strict=True)]


def pasted_case(restride, gm, inputs, text, folder):
    content = content_of(inputs)
    want = left(without_tokens(gm), Fresh(content)())
    more = weights_of(gm, folder / "weights.pt")
    yield "", judge(restride, text, "pasted", folder, content, want, len(inputs), True, more)


def worked(restride, name, case, *arguments):
    with scratch() as folder:
        return list(case(restride, *arguments, folder))


def main():
    p = parser(__doc__, "names", "--binary", "--timeout", "--jobs", "--json")
    o = p.parse_intermixed_args()
    restride = Restride(o.binary, o.timeout)
    rows, statuses = [], []

    def take(name, results):
        for form, result in results:
            detail = next((f"{via}: {d}" for via, (_, d) in result.items() if d), "")
            states = [result[via][0] for via in VIAS]
            statuses.extend(states)
            if set(states) != {"ok"}:
                rows.append((name, form, *states, detail[:300]))

    alias = ((f.stem, alias_case, f) for f in sorted((ROOT / "fixtures" / "alias").glob("*.pt2")))
    traced = ((name, function_case, module, inputs) for name, module, inputs in functions())
    torch.manual_seed(0)
    scripted = [("looped", scripted_case, Looped().eval(), [torch.rand(2, 3)])]
    # Name, function and its arguments.
    cases = []
    for name, form, gm, inputs, text in pasted_texts.texts(o.names):
        if gm is None:
            rows.append((name, form, "n/a", "n/a", "n/a", text))
        else:
            cases.append((f"{name}, {form}", pasted_case, gm, inputs, text))
    cases.extend(c for c in (*alias, *traced, *scripted) if not o.names or c[0] in o.names)
    for (name, *_), results in forked(functools.partial(worked, restride), cases, o.jobs):
        take(name, results)
    print_table(("program", "form", *VIAS, ""), rows)
    passed, untraced = statuses.count("ok"), statuses.count("n/a")
    return finish(passed, len(statuses) - passed - untraced, o.json, rows=rows)


if __name__ == "__main__":
    sys.exit(main())

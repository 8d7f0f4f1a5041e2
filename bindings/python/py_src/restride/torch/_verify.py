"""`restride.verify`: eager PyTorch's values beside restride's, and the first node at which they part."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from restride import _restride
from restride._errors import UnsupportedError
from restride._program import Program
from restride._verify import Verification
from restride.torch import exported, program
from restride.torch._graphs import archive, describe_node, random_node

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

# Relative and absolute tolerances; beside the absolute one counts as much of the largest magnitude.
_TOLERANCES = {
    torch.float32: (1e-4, 1e-5),
    torch.complex64: (1e-4, 1e-5),
    torch.float64: (1e-9, 1e-11),
    torch.complex128: (1e-9, 1e-11),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (1e-2, 1e-2),
}


def difference(have: Any, want: Any, rtol: float | None = None, atol: float | None = None) -> str | None:
    """How a value differs from eager's; ``None`` within tolerance."""
    if not isinstance(want, torch.Tensor):
        if isinstance(want, float) and isinstance(have, float):
            want, have = torch.tensor(want, dtype=torch.float64), torch.tensor(have, dtype=torch.float64)
        else:
            return None if have == want else f"{have!r} instead of {want!r}"
    if not isinstance(have, torch.Tensor):
        return f"a {type(have).__name__} instead of a tensor"
    if have.dtype != want.dtype or have.shape != want.shape:
        return f"{have.dtype}{list(have.shape)} instead of {want.dtype}{list(want.shape)}"
    have, want = have.detach(), want.detach()
    if want.layout != have.layout:
        return f"{have.layout} instead of {want.layout}"
    if want.layout != torch.strided:
        have, want = have.to_dense(), want.to_dense()
    if want.dtype == torch.complex32:
        have, want = have.to(torch.complex64), want.to(torch.complex64)
    if not (want.dtype.is_floating_point or want.dtype.is_complex):
        wrong = int((have != want).sum())
        return f"{wrong} of {want.numel()} elements differ" if wrong else None
    relative, absolute = _TOLERANCES.get(want.dtype, (1e-4, 1e-5))
    relative = relative if rtol is None else rtol
    finite = want[torch.isfinite(want)].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    slack = absolute + absolute * largest if atol is None else atol
    near = torch.isclose(have, want, rtol=relative, atol=slack, equal_nan=True)
    if bool(near.all()):
        return None
    most = float((have - want).abs().nan_to_num().max())
    return f"{int((~near).sum())} of {want.numel()} elements differ, by up to {most:.3g}"


def _copies(value: Any) -> Any:
    """The same nesting on memory of its own, shared as it is here."""
    return copy.deepcopy(pytree.tree_map_only(torch.Tensor, lambda t: t.detach(), value))


def _outcome(run: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The leaves of a result, and the inputs after it."""
    with torch.no_grad():
        result = run(*args, **kwargs)
    leaves = [(f"output.{i}", v) for i, v in enumerate(pytree.tree_leaves(result))]
    return leaves + [(f"input {i} after the run", v) for i, v in enumerate(pytree.tree_leaves((args, kwargs)))]


def verify_model(
    model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], rtol: float | None, atol: float | None
) -> Verification:
    """Compare with eager PyTorch; see `restride.verify`."""
    ep: ExportedProgram
    if isinstance(model, Program):
        ep = exported(model)
    elif isinstance(model, ExportedProgram):
        ep = model
    else:
        ep = exported(program(copy.deepcopy(model), *_copies(args), **_copies(dict(kwargs))))
    if not args and not kwargs and ep.example_inputs is not None:
        args, kwargs = ep.example_inputs
    own = program(ep)
    node = random_node(ep.graph_module)
    if node is not None:
        raise UnsupportedError(
            f"the program draws random numbers at {describe_node(node)}: there is nothing to compare"
        )
    eager = ep.module() if isinstance(model, (Program, ExportedProgram)) else copy.deepcopy(model)
    want = _outcome(eager, _copies(args), _copies(dict(kwargs)))
    have = _outcome(own, _copies(args), _copies(dict(kwargs)))
    for (name, a), (_, b) in zip(want, have, strict=True):
        differs = difference(b, a, rtol, atol)
        if differs is not None:
            first = _first_node(ep, args, kwargs, rtol, atol)
            return first or Verification(len(want), name, differs)
    return Verification(len(want))


def _tensors(gm: fx.GraphModule) -> Iterator[fx.Node]:
    for node in gm.graph.nodes:
        if node.op == "call_function" and isinstance(node.meta.get("val"), torch.Tensor):
            yield node


class _Recorder(fx.Interpreter):
    """Runs a graph of PyTorch and keeps the tensors that its nodes give."""

    def __init__(self, gm: fx.GraphModule) -> None:
        super().__init__(gm)
        self.values: dict[str, torch.Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if isinstance(value, torch.Tensor):
            self.values[n.name] = value.detach().clone()
        return value


def _first_node(
    ep: ExportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any], rtol: float | None, atol: float | None
) -> Verification | None:
    """The first node of the functional graph whose value differs."""
    functional = ep.run_decompositions({})
    flat = _flat_inputs(functional, _copies(args), _copies(dict(kwargs)))
    gm = functional.graph_module
    recorder = _Recorder(gm)
    with torch.no_grad():
        recorder.run(*[v.clone() if isinstance(v, torch.Tensor) else v for v in flat])
    nodes = list(_tensors(gm))
    shown = copy.deepcopy(gm)
    by_name = {n.name: n for n in shown.graph.nodes}
    output = next(n for n in shown.graph.nodes if n.op == "output")
    output.args = (tuple(by_name[n.name] for n in nodes),)
    graph = _restride.Graph(archive(shown), [], torch.get_num_threads())
    values = graph([v.detach() if isinstance(v, torch.Tensor) else v for v in flat])
    for i, (node, value) in enumerate(zip(nodes, values, strict=True)):
        differs = difference(value, recorder.values[node.name], rtol, atol)
        if differs is not None:
            return Verification(i + 1, describe_node(node), differs)
    return None


def _flat_inputs(ep: ExportedProgram, args: Any, kwargs: Any) -> list[Any]:
    """The values of all placeholders: state, then the user's."""
    user = iter(pytree.tree_leaves((args, kwargs)))
    state = {**ep.state_dict, **ep.constants}
    out = []
    for spec in ep.graph_signature.input_specs:
        out.append(state[spec.target] if spec.target is not None and spec.target in state else next(user))
    return out

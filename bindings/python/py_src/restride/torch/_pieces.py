"""A graph in pieces: what restride runs, and what is left to eager PyTorch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from restride import _restride
from restride._errors import Error, UnsupportedError
from restride.torch._graphs import draws, is_symbolic, refusal, unwritable

import torch
from torch import fx
from torch._ops import OpOverload

__all__ = ["Piece", "cut", "joined", "named", "unfit"]


class Piece:
    """A part of a graph, as a graph of its own."""

    def __init__(self, gm: fx.GraphModule, own: bool, inputs: list[fx.Node], outputs: list[fx.Node]) -> None:
        self.gm = gm
        self.own = own
        """Whether restride is to run it."""
        self.inputs = inputs
        """The nodes of the whole graph that it takes."""
        self.outputs = outputs
        """The nodes of the whole graph that it gives."""


def _operator(target: Any) -> str:
    return f"{target.namespace}.{target._schema.name.partition('::')[2]}.{target._overloadname}"


def _unfit(gm: fx.GraphModule, node: fx.Node, random: bool) -> UnsupportedError | None:
    target = node.target
    name = _operator(target) if isinstance(target, OpOverload) else str(target)
    if isinstance(target, OpOverload) and not is_symbolic(node) and not _restride.runs(name):
        return refusal(f"operator {name} is not known", node)
    if node.meta.get("unbacked_bindings"):
        return refusal(f"sizes that data decide, at {name}", node)
    if random and draws(gm, node):
        return refusal(f"the random operator {name} (option fallback_random)", node)
    return unwritable(gm, node)


def unfit(gm: fx.GraphModule, random: bool) -> dict[fx.Node, Error]:
    """The calls that restride cannot run, as far as one call shows it, with the reasons.

    Args:
        gm: The graph.
        random: Whether operators that draw random numbers are among them.
    """
    out: dict[fx.Node, Error] = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            error = _unfit(gm, node, random)
            if error is not None:
                out[node] = error
    return out


def named(gm: fx.GraphModule, error: Error) -> fx.Node | None:
    """The call that an error names, as ``%name = operator``, or that has a body with it."""
    name = (error.node or "").partition(" = ")[0].removeprefix("%")
    for node in gm.graph.nodes:
        if node.op != "call_function":
            continue
        if node.name == name:
            return node.args[0] if node.target is operator.getitem else node
        bodies = [getattr(gm, str(n.target), None) for n in node.all_input_nodes if n.op == "get_attr"]
        inner = [m for b in bodies if isinstance(b, fx.GraphModule) for m in b.modules()]
        if any(n.name == name for m in inner if isinstance(m, fx.GraphModule) for n in m.graph.nodes):
            return node
    return None


def _mutates(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def _stages(gm: fx.GraphModule, eager: Iterable[fx.Node]) -> dict[fx.Node, int]:
    """The stage in which each call runs: restride has the even ones, eager PyTorch the odd ones."""
    left = set(eager)
    stages: dict[fx.Node, int] = {}
    # A write is behind all that was before it, and before all behind it; random numbers are drawn in their order.
    least = latest = drawn = 0
    for node in gm.graph.nodes:
        if node.op != "call_function":
            continue
        before = [stages[n] for n in node.all_input_nodes if n in stages]
        if node.target is operator.getitem:
            stages[node] = before[0] if before else least
            continue
        stage = max([least, *before])
        random = draws(gm, node)
        if random:
            stage = max(stage, drawn)
        if _mutates(node):
            stage = max(stage, latest)
        if stage % 2 != (node in left):
            stage += 1
        if _mutates(node):
            least = stage
        if random:
            drawn = stage
        stages[node], latest = stage, max(latest, stage)
    return stages


def _symbols(value: Any) -> Iterator[Any]:
    for one in value if isinstance(value, (list, tuple)) else [value]:
        parts: list[Any] = [one]
        if isinstance(one, torch.Tensor):
            parts = [*one.shape, *one.stride(), one.storage_offset()]
        for part in parts:
            if isinstance(part, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                yield from part.node.expr.free_symbols


def _passes(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return value is None or isinstance(
        value, (torch.Tensor, bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)
    )


def cut(gm: fx.GraphModule, eager: Iterable[fx.Node]) -> list[Piece] | None:
    """The graph in pieces, in the order in which they run; ``None`` where a value between them is no tensor and no number."""
    stages = _stages(gm, eager)
    members: dict[int, list[fx.Node]] = {}
    for node, stage in stages.items():
        members.setdefault(stage, []).append(node)
    # Symbols of sizes are arguments of every piece that has them.
    sources: dict[Any, fx.Node] = {}
    for node in gm.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
            sources.setdefault(value.node.expr, node)
    pieces = []
    for stage in sorted(members):
        nodes = members[stage]
        inside = set(nodes)
        taken: dict[fx.Node, None] = {}
        for node in nodes:
            for n in node.all_input_nodes:
                if n not in inside and n.op != "get_attr":
                    taken.setdefault(n)
        views = _views(taken, nodes) if stage % 2 == 0 and any(_mutates(n) for n in nodes) else {}
        if views:
            needed = dict.fromkeys(n for view in views for n in view.all_input_nodes if n.op != "get_attr")
            taken = {n: None for n in [*taken, *needed] if n not in views and n not in inside}
        for node in [*taken, *views, *nodes]:
            for symbol in _symbols(node.meta.get("val")):
                source = sources.get(symbol)
                if source is not None and source not in inside and stages.get(source, -1) < stage:
                    taken.setdefault(source)
        given = [n for n in nodes if any(u not in inside for u in n.users)]
        if not all(_passes(n) for n in [*taken, *given]):
            return None
        pieces.append(Piece(_graph(gm, list(taken), [*views, *nodes], given), stage % 2 == 0, list(taken), given))
    return pieces


def _views(taken: Iterable[fx.Node], nodes: Iterable[fx.Node]) -> dict[fx.Node, None]:
    """The views among what a piece that writes takes, each behind its base: the piece makes them itself. Given beside their base, they
    would be inputs on one memory that is written."""
    views: dict[fx.Node, None] = {}
    inside = set(nodes)

    def add(node: fx.Node) -> None:
        if node in inside or node in views or not isinstance(node.target, OpOverload) or not node.target.is_view:
            return
        for n in node.all_input_nodes:
            add(n)
        views[node] = None

    for node in taken:
        add(node)
    return views


def _graph(gm: fx.GraphModule, taken: list[fx.Node], nodes: list[fx.Node], given: list[fx.Node]) -> fx.GraphModule:
    graph = fx.Graph()
    env: dict[fx.Node, fx.Node] = {}
    for node in taken:
        env[node] = graph.placeholder(node.name)
        env[node].meta = dict(node.meta)

    def of(node: fx.Node) -> fx.Node:
        if node not in env and node.op == "get_attr":
            env[node] = graph.node_copy(node)
        return env[node]

    for node in nodes:
        for n in node.all_input_nodes:
            of(n)
        env[node] = graph.node_copy(node, of)
    graph.output(tuple(env[n] for n in given))
    return fx.GraphModule(gm, graph)


def joined(
    gm: fx.GraphModule, pieces: list[Piece], runs: list[Callable[[list[Any]], Any]]
) -> Callable[[list[Any]], Any]:
    """A callable for the whole graph, of callables for its pieces."""
    # Values have numbers; each is let go after its last reader.
    numbers: dict[fx.Node, int] = {}
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            numbers[node] = len(numbers)
    arguments = len(numbers)
    for piece in pieces:
        for node in piece.outputs:
            numbers[node] = len(numbers)
    results = next(n for n in gm.graph.nodes if n.op == "output").args[0]
    single = isinstance(results, fx.Node)
    kept = {numbers[r] for r in ([results] if single else results) if isinstance(r, fx.Node) and r in numbers}
    last = {numbers[n]: i for i, piece in enumerate(pieces) for n in piece.inputs}
    steps = []
    for i, (piece, run) in enumerate(zip(pieces, runs)):
        given = [numbers[n] for n in piece.inputs]
        gone = [k for k, at in last.items() if at == i and k not in kept]
        steps.append((run, given, [numbers[n] for n in piece.outputs], gone))

    def attribute(node: fx.Node) -> Any:
        value: Any = gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        return value

    def value_of(result: Any, env: list[Any]) -> Any:
        if not isinstance(result, fx.Node):
            return result
        return env[numbers[result]] if result in numbers else attribute(result)

    def call(args: list[Any]) -> Any:
        env = [*args, *[None] * (len(numbers) - arguments)]
        args.clear()
        for run, given, made, gone in steps:
            taken = [env[k] for k in given]
            for k in gone:
                env[k] = None
            for k, value in zip(made, run(taken)):
                env[k] = value
        if single:
            return value_of(results, env)
        return [value_of(r, env) for r in results]

    call._boxed_call = True  # type: ignore[attr-defined]
    return call

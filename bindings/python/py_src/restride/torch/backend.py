"""``torch.compile(model, backend="restride")``."""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from restride import _restride
from restride._errors import Error, InputsError, LimitError, UnsupportedError
from restride.torch._graphs import archive, lift_constants, random_node
from restride.torch._handover import lighten, retype_statistics
from restride.torch._pieces import cut, joined, named, unfit

import torch
from torch import fx

__all__ = ["restride"]

log = logging.getLogger(__name__)
_warned: set[str] = set()

_OPTIONS = {"fallback", "fallback_random", "static_weights", "threads", "check"}


def restride(
    gm: fx.GraphModule, example_inputs: Sequence[Any], *, options: dict[str, Any] | None = None, **kwargs: Any
) -> Any:
    """Compile a graph of TorchDynamo; the backend that ``torch.compile(..., backend="restride")`` names.

    PyTorch's AOTAutograd functionalizes and differentiates; restride places, checks and runs what it gives.

    Options (``torch.compile(..., options={...})``):

    - ``fallback``: leave operators that restride cannot run to eager PyTorch, with a warning (default), and compile the rest of the
      graph; ``False`` raises, as ``fullgraph=True`` does.
    - ``fallback_random``: leave random operators to eager PyTorch, which then draws the same numbers as without
      ``torch.compile``. By default they draw from restride's generator, seeded by PyTorch's: ``torch.manual_seed`` makes them
      reproducible, and the numbers are others than eager's.
    - ``static_weights``: pack the weights of inference once (default). Changes that PyTorch counts, which are all but writes
      through ``.data`` and aliases of other libraries, are seen; turn it off if you write so.
    - ``threads``: threads of a kernel; ``torch.get_num_threads()`` by default.
    - ``check``: check each placement (default).
    """
    from torch._dynamo.backends.common import aot_autograd

    unknown = set(options or {}) - _OPTIONS
    if unknown:
        raise ValueError(f"unknown options {sorted(unknown)}; there are {sorted(_OPTIONS)}")
    settings = _Settings(**(options or {}))
    if _whole_graph():
        settings.fallback = False
    compiler = aot_autograd(
        fw_compiler=functools.partial(_compile, settings=settings, static=False),
        bw_compiler=functools.partial(_compile, settings=settings, static=False),
        inference_compiler=functools.partial(_compile, settings=settings, static=settings.static_weights),
        partition_fn=_partition,
        decompositions={**_decompositions(), **_decompositions_of_dynamo()},
        keep_inference_input_mutations=True,
    )
    places = _shared_places(example_inputs)
    run = compiler(gm, example_inputs)
    return _at_places(gm, compiler, run, places, settings) if _writes_arguments() else run


Places = list[tuple[int, int, int]]
"""Arguments that share memory with others: position, offset in elements, and bytes of the memory."""

_VARIANTS = 8


def _shared_places(args: Sequence[Any]) -> Places:
    """The places of the arguments that share memory, as far as they are numbers."""
    memory: dict[int, list[int]] = {}
    for i, arg in enumerate(args):
        if isinstance(arg, torch.Tensor) and torch._C._has_storage(arg):
            memory.setdefault(arg.untyped_storage()._cdata, []).append(i)
    shared = [i for group in memory.values() if len(group) > 1 for i in group]
    places = [(i, args[i].storage_offset(), args[i].untyped_storage().nbytes()) for i in shared]
    return [p for p in places if isinstance(p[1], int) and isinstance(p[2], int)]


def _writes_arguments() -> bool:
    """Whether the graph that was just compiled writes an argument."""
    metadata = getattr(torch._guards.TracingContext.try_get(), "fw_metadata", None)
    return any(info.mutates_data for info in getattr(metadata, "input_info", ()))


def _at_places(
    gm: fx.GraphModule, compiler: Callable[..., Any], first: Callable[..., Any], places: Places, settings: _Settings
) -> Callable[..., Any]:
    """A callable that compiles a graph again where its arguments share memory, or are at other places of the memory that they share.

    AOTAutograd writes such arguments through one tensor on all of the memory, with the offsets of the compiled call. TorchDynamo guards
    neither the offsets nor the size of the memory, nor that arguments share none.
    """
    runs: dict[tuple[tuple[int, ...], ...], Callable[..., Any]] = {tuple(p[1:] for p in places): first}
    positions = [p[0] for p in places]

    def compiled(key: tuple[tuple[int, ...], ...], args: tuple[Any, ...]) -> Callable[..., Any]:
        if key not in runs:
            # A graph with sizes among its arguments would be compiled for these sizes alone. Eager PyTorch has the views themselves.
            if len(runs) >= _VARIANTS or not all(isinstance(a, torch.Tensor) for a in args):
                eager: Callable[..., Any] = gm
                return eager
            runs[key] = compiler(gm, args)
        return runs[key]

    def run(*args: Any) -> Any:
        key = tuple((args[i].storage_offset(), args[i].untyped_storage().nbytes()) for i in positions)
        try:
            return compiled(key, args)(*args)
        except InputsError:
            shared = tuple(_shared_places(args))
            # Eager PyTorch may have run a piece.
            if not shared or settings.pieces:
                raise
        # Nothing has run.
        return compiled(shared, args)(*args)

    return run


def _partition(joint: fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Forward and backward. The simple partition keeps what backward reads: recomputation costs time where nothing is fused."""
    from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition

    retype_statistics(joint)
    lighten(joint, kwargs["num_fwd_outputs"])
    try:
        parts = default_partition(joint, inputs, **kwargs)
    except AssertionError:
        # It does not know values that are no tensors, such as what some higher-order operators return.
        parts = min_cut_rematerialization_partition(joint, inputs, **kwargs)
    forward, backward = parts
    return forward, backward


class _Settings:
    def __init__(
        self,
        fallback: bool = True,
        fallback_random: bool = False,
        static_weights: bool = True,
        threads: int | None = None,
        check: bool = True,
    ) -> None:
        self.fallback = fallback
        self.fallback_random = fallback_random
        self.static_weights = static_weights
        self.threads = threads or torch.get_num_threads()
        self.check = check
        self.pieces = False
        """Whether eager PyTorch runs a part of a graph."""


def _whole_graph() -> bool:
    """Whether TorchDynamo was asked for one graph."""
    try:
        from torch._dynamo.symbolic_convert import InstructionTranslator

        return bool(InstructionTranslator.current_tx().one_graph)
    except AttributeError:
        return False


@functools.cache
def _known() -> frozenset[str]:
    """The operators that restride runs."""
    import json

    return frozenset(row["name"] for row in json.loads(_restride.ops()) if row["runs"] != "-")


@functools.cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions of the operators that restride lacks."""
    from torch._decomp import decomposition_table

    table: dict[Any, Callable[..., Any]] = {}
    for op, rule in decomposition_table.items():
        if isinstance(op, torch._ops.OpOverload):
            name = f"{op.namespace}.{op._schema.name.partition('::')[2]}.{op._overloadname}"
            if name not in _known():
                table[op] = rule
    table[torch.ops.aten.unfold_backward.default] = _unfold_backward
    return table


def _unfold_backward(grad: Any, sizes: Sequence[int], dim: int, size: int, step: int) -> Any:
    """PyTorch's `istft` gives one row of windows for all rows of its result."""
    want = [*sizes, size]
    want[dim] = (sizes[dim] - size) // step + 1
    if all(have != 1 or n == 1 for have, n in zip(grad.shape, want)):
        return NotImplemented
    return torch.ops.aten.unfold_backward.default(grad.expand(want), sizes, dim, size, step)


def _decompositions_of_dynamo() -> dict[Any, Callable[..., Any]]:
    """Operators of TorchInductor that TorchDynamo itself writes for in-place calls with a scalar, such as ``addcmul_``.

    They exist once TorchDynamo has imported TorchInductor for them.
    """
    fma = getattr(torch.ops.prims, "fma", None)
    return {} if fma is None else {fma.default: lambda a, b, c: a * b + c}


def _written(gm: fx.GraphModule) -> set[fx.Node]:
    """The placeholders that the graph writes."""
    out: set[fx.Node] = set()
    for node in gm.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            out.update(a for a in node.all_input_nodes)
    return out


def _static_nodes(gm: fx.GraphModule) -> set[fx.Node]:
    """The arguments that are weights: those that TorchDynamo knows as static, and that the graph does not write."""
    context = torch._guards.TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    static = getattr(metadata, "static_input_indices", None) or []
    places = [n for n in gm.graph.nodes if n.op == "placeholder"]
    values = [(places[i], places[i].meta.get("val")) for i in static if i < len(places)]
    # What PyTorch conjugates or negates lazily is copied in each call.
    tensors = {n for n, v in values if isinstance(v, torch.Tensor) and not v.is_conj() and not v.is_neg()}
    return tensors - _written(gm)


def _tell(error: Error, left: str = "a graph") -> None:
    """Warn once that a graph, or an operator of it, is left to eager PyTorch."""
    text = f"restride leaves {left} to eager PyTorch: {error}"
    if error.what not in _warned:
        _warned.add(error.what)
        warnings.warn(text, UserWarning, stacklevel=2)
    log.info(text)


def _refused(error: Error) -> Error:
    """The error of a graph that has to be restride's as a whole."""
    advice = "without fullgraph=True and fallback=False, eager PyTorch computes it"
    text = str(error).removesuffix(f"; {error.help}")
    return type(error)(f"{text}; {advice}", error.what, error.node, error.source, error.code, advice)


def _eager(gm: fx.GraphModule) -> Callable[[list[Any]], Any]:
    forward = gm.forward

    def run(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        return forward(*given)

    run._boxed_call = True  # type: ignore[attr-defined]
    run._restride_eager = True  # type: ignore[attr-defined]
    return run


def _compile(gm: fx.GraphModule, example_inputs: Sequence[Any], *, settings: _Settings, static: bool) -> Any:
    """A callable for a graph of ATen operators, as AOTAutograd's compilers give it."""
    if not any(n.op == "call_function" for n in gm.graph.nodes):
        return _eager(gm)
    weights = _static_nodes(gm) if static else set()
    retype_statistics(gm)
    try:
        random = random_node(gm)
        if random is not None and settings.fallback_random:
            raise UnsupportedError(f"the random operator {random.target} (option fallback_random)")
        places = [n for n in gm.graph.nodes if n.op == "placeholder"]
        return _own(gm, [n in weights for n in places], settings, static)
    except Error as error:
        if not settings.fallback:
            raise _refused(error) from None
        run = _in_pieces(gm, error, weights, settings, static)
        if run is None:
            _tell(error)
        return run or _eager(gm)


def _own(gm: fx.GraphModule, weights: list[bool], settings: _Settings, static: bool) -> Callable[[list[Any]], Any]:
    """A callable that restride runs. ``weights`` tells which arguments stay the same from call to call.

    Raises:
        Error: restride cannot run it.
    """
    lifted, constants = lift_constants(gm)
    positions = [i for i, weight in enumerate(weights) if weight]
    if static:
        positions += range(len(weights), len(weights) + len(constants))
    graph = _restride.Graph(archive(lifted), positions, settings.threads, fold=static, check=settings.check)
    random = random_node(gm) is not None
    if not random and not constants and not graph.symbolic:

        def call(args: list[Any]) -> Any:
            return graph(args)

        call._boxed_call = True  # type: ignore[attr-defined]
        run: Callable[[list[Any]], Any] = call
    else:
        run = _call(gm, graph, constants, random, settings)
    tokens, twins = _tokens(gm), _twins(gm)
    if twins:
        run = _with_twins(run, twins)
    return _with_tokens(run, tokens) if tokens else run


def _in_pieces(
    gm: fx.GraphModule, first: Error, weights: set[fx.Node], settings: _Settings, static: bool
) -> Callable[[list[Any]], Any] | None:
    """A callable of which restride runs what it can, and eager PyTorch the rest; ``None`` where nothing is left to restride."""
    eager = unfit(gm, settings.fallback_random)
    node = named(gm, first)
    if node is not None:
        eager.setdefault(node, first)
    if not eager:
        return None
    # Each round leaves at least one more call to eager PyTorch.
    while True:
        pieces = cut(gm, eager)
        if pieces is None or not any(p.own for p in pieces):
            return None
        runs = []
        for piece in pieces:
            if not piece.own:
                runs.append(_eager(piece.gm))
                continue
            try:
                runs.append(_own(piece.gm, [n in weights for n in piece.inputs], settings, static))
            except Error as error:
                node = named(piece.gm, error)
                calls = {n.name: n for n in gm.graph.nodes if n.op == "call_function"}
                inside = [node] if node is not None else [n for n in piece.gm.graph.nodes if n.name in calls]
                for n in inside:
                    eager.setdefault(calls[n.name], error)
                break
        else:
            for reason in eager.values():
                _tell(reason, "an operator")
            settings.pieces = True
            return joined(gm, pieces, runs)


def _tokens(gm: fx.GraphModule) -> list[int]:
    """Positions of the arguments that order effects, such as the error of a singular matrix."""
    effects = getattr(torch.ops.higher_order, "with_effects", None)
    places = [n for n in gm.graph.nodes if n.op == "placeholder"]
    return [i for i, n in enumerate(places) if any(u.target is effects and u.args[0] is n for u in n.users)]


def _with_tokens(run: Callable[[list[Any]], Any], tokens: list[int]) -> Callable[[list[Any]], Any]:
    """AOTAutograd traces a token as a tensor without elements, and gives ``None`` for it."""

    def call(args: list[Any]) -> Any:
        for i in tokens:
            if args[i] is None:
                args[i] = torch.empty(0)
        return run(args)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _twins(gm: fx.GraphModule) -> list[tuple[int, int]]:
    """Positions of results that an earlier result is, and of that one: a value that is returned and kept for backward."""
    (results,) = next(n for n in gm.graph.nodes if n.op == "output").args
    first: dict[Any, int] = {}
    if not isinstance(results, (list, tuple)):
        return []
    return [(i, first[r]) for i, r in enumerate(results) if isinstance(r, fx.Node) and first.setdefault(r, i) != i]


def _with_twins(run: Callable[[list[Any]], Any], twins: list[tuple[int, int]]) -> Callable[[list[Any]], Any]:
    """Gives such results as one tensor: a write into it by the user is seen by the check of what is kept for backward."""

    def call(args: list[Any]) -> Any:
        results = list(run(args))
        for i, earlier in twins:
            results[i] = results[earlier]
        return results

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _call(
    gm: fx.GraphModule, graph: _restride.Graph, constants: list[torch.Tensor], random: bool, settings: _Settings
) -> Callable[[list[Any]], Any]:
    eager: Callable[[list[Any]], Any] | None = None

    def run(args: list[Any]) -> Any:
        nonlocal eager
        if eager is not None:
            return eager(args)
        count = len(args)
        args.extend(constants)
        seed = int(torch.empty((), dtype=torch.int64).random_().item()) if random else None
        try:
            return graph(args, seed)
        except (UnsupportedError, LimitError) as error:
            # Sizes that were not known before: nothing has run yet.
            if not settings.fallback or not getattr(error, "unprepared", False):
                raise
            _tell(error)
            eager = _eager(gm)
            del args[count:]
            return eager(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run

"""What a training graph's forward part hands to its backward part: few tensors instead of many, for each costs a call a microsecond or two.

Works on AOTAutograd's joint graph, before its partition saves each forward value that a backward node reads.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

__all__ = ["lighten", "retype_statistics"]

# Bytes of the largest value that is packed, which is copied no slower than handed over, and of all values of a pack.
_VALUE = 1 << 15
_PACK = 1 << 24
# Fewest values of a pack.
_FEW = 3

_aten = torch.ops.aten

# Views that exist of tensors of any strides.
_OF_ANY_STRIDES = {
    _aten.alias.default,
    _aten.detach.default,
    _aten.expand.default,
    _aten.permute.default,
    _aten.select.int,
    _aten.slice.Tensor,
    _aten.t.default,
    _aten.transpose.int,
    _aten.unsqueeze.default,
}


def lighten(joint: fx.GraphModule, outputs: int) -> None:
    """Change a joint graph, whose first results are the forward part's, so that fewer values are saved.

    A saved view becomes its saved base, and a saved operand of a saved `cat` its part: the backward part makes the view. It makes values
    without elements as well. Small values become parts of one tensor.
    Values of symbolic sizes stay as they are, and so do graphs in which the user says what is recomputed.
    """
    graph = joint.graph
    if any("recompute" in n.meta for n in graph.nodes):
        return
    forward = _forward(graph)
    if not forward:
        return
    changes = _Changes(graph, forward)
    changes.views()
    results = next(reversed(graph.find_nodes(op="output"))).args[0]
    returned = {_root(n) for n in results[:outputs] if isinstance(n, fx.Node)}
    changes.parts(returned)
    changes.empty(returned)
    changes.pack(returned)
    graph.lint()
    joint.recompile()


def _forward(graph: fx.Graph) -> list[fx.Node]:
    """The nodes of the forward part: all up to the last one that is tagged."""
    nodes = [n for n in graph.nodes if not (n.op == "placeholder" and "tangents" in str(n.target))]
    tagged = [i for i, n in enumerate(nodes) if n.meta.get("partitioner_tag") == "is_forward"]
    return nodes[: tagged[-1] + 1] if tagged else []


def _value(node: fx.Node) -> torch.Tensor | None:
    """The tensor of known sizes that a node gives."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.device.type != "cpu":
        return None
    numbers = (*value.shape, *value.stride(), value.storage_offset())
    return value if all(isinstance(n, int) for n in numbers) else None


def _is_view(node: fx.Node) -> bool:
    """Whether a node gives one view of its first argument, which numbers alone decide."""
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return False
    if not node.target.is_view and node.target is not _aten._unsafe_view.default:
        return False
    return _value(node) is not None and list(node.all_input_nodes) == [node.args[0]]


def _takes_strides(node: fx.Node) -> bool:
    """Whether a node, and what reads it if it is a view, reads an operand whose strides are not those of its sizes."""
    return not _is_view(node) or (node.target in _OF_ANY_STRIDES and all(_takes_strides(u) for u in node.users))


def _root(node: fx.Node) -> fx.Node:
    while _is_view(node):
        node = node.all_input_nodes[0]
    return node


class _Changes:
    def __init__(self, graph: fx.Graph, forward: list[fx.Node]) -> None:
        self.graph = graph
        self.forward = forward
        self.inside = set(forward)
        # New nodes of each part go behind these.
        self.last = self.behind = forward[-1]

    def saved(self, node: fx.Node) -> list[fx.Node]:
        """The nodes of the backward part that read a value."""
        return [u for u in node.users if u not in self.inside and u.op != "output"]

    def add(self, backward: bool, target: OpOverload, *args: Any) -> fx.Node:
        """A new call."""
        values = fx.map_arg(args, lambda n: n.meta["val"])
        with torch.no_grad():
            value = target(*values)
        return self.insert(backward, target, args, {}, value)

    def insert(
        self, backward: bool, target: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], value: torch.Tensor
    ) -> fx.Node:
        """A new call, which gives tensors like a value."""
        with self.graph.inserting_after(self.behind if backward else self.last):
            node = self.graph.call_function(target, args, kwargs)
        node.meta["val"] = value
        node.meta["partitioner_tag"] = "is_backward" if backward else "is_forward"
        if backward:
            self.behind = node
        else:
            self.inside.add(node)
            if self.behind is self.last:
                self.behind = node
            self.last = node
        return node

    def views(self) -> None:
        """Lets the backward part make views of values that are saved, or no larger than the views."""
        again: dict[fx.Node, fx.Node] = {}
        for node in self.forward:
            users = self.saved(node)
            if not users or not _is_view(node):
                continue
            root = _root(node)
            base, value = _value(root), _value(node)
            if base is None or value is None:
                continue
            if root.op != "placeholder" and not self.saved(root) and base.numel() > value.numel():
                continue
            chain = [node]
            while chain[-1] not in again and chain[-1].all_input_nodes[0] is not root:
                chain.append(chain[-1].all_input_nodes[0])
            for view in reversed(chain):
                if view not in again:
                    of = view.all_input_nodes[0]
                    again[view] = self.add(True, view.target, again.get(of, of), *view.args[1:])
            for user in users:
                user.replace_input_with(node, again[node])

    def parts(self, returned: set[fx.Node]) -> None:
        """Lets the backward part take operands of a `cat` that is saved out of it."""
        for whole in self.forward:
            value = _value(whole)
            if whole.target is not _aten.cat.default or value is None or not value.is_contiguous():
                continue
            if not self.saved(whole):
                continue
            operands, dim = whole.args[0], whole.args[1] if len(whole.args) > 1 else 0
            start = 0
            for node in operands:
                own = _value(node)
                if own is None or own.dim() != value.dim():
                    break
                end = start + own.shape[dim]
                users = self.saved(node)
                if (
                    users
                    and operands.count(node) == 1
                    and node not in returned
                    and _computes(node)
                    and own.dtype == value.dtype
                    and own.is_contiguous()
                    and all(_takes_strides(u) for u in users)
                ):
                    # In front of the views that are made of it.
                    self.behind = self.last
                    part = self.add(True, _aten.slice.Tensor, whole, dim, start, end)
                    for user in users:
                        user.replace_input_with(node, part)
                start = end

    def empty(self, returned: set[fx.Node]) -> None:
        """Lets the backward part make values that have no elements."""
        made: dict[tuple[Any, ...], fx.Node] = {}
        for node in self.forward:
            value = _value(node)
            users = self.saved(node)
            if value is None or value.numel() > 0 or not users or node in returned or not _computes(node):
                continue
            key = (tuple(value.shape), value.stride(), value.dtype)
            self.behind = self.last
            if key not in made:
                form = (list(value.shape), list(value.stride()))
                made[key] = self.insert(True, _aten.empty_strided.default, form, {"dtype": value.dtype}, value)
            for user in users:
                user.replace_input_with(node, made[key])

    def pack(self, returned: set[fx.Node]) -> None:
        """Makes small values that are saved parts of one tensor."""
        packs: dict[torch.dtype, list[tuple[fx.Node, list[int]]]] = {}
        sizes: dict[torch.dtype, int] = {}
        for node in self.forward:
            value = _value(node)
            if value is None or node in returned or not self.saved(node) or not _computes(node):
                continue
            keys = [
                (-stride, -size, d) for d, (stride, size) in enumerate(zip(value.stride(), value.shape, strict=True))
            ]
            order = [d for *_, d in sorted(keys)]
            bytes = value.numel() * value.element_size()
            if not 0 < bytes <= _VALUE or not value.permute(order).is_contiguous():
                continue
            sizes[value.dtype] = sizes.get(value.dtype, 0) + bytes
            if sizes[value.dtype] <= _PACK:
                packs.setdefault(value.dtype, []).append((node, order))
        made = []
        for parts in packs.values():
            if len(parts) >= _FEW:
                flat = [self.flat(node, order) for node, order in parts]
                made.append((self.add(False, _aten.cat.default, flat), parts))
        # Views are made of parts: they come behind them.
        self.behind = self.last
        for pack, parts in made:
            start = 0
            for node, order in parts:
                value = node.meta["val"]
                part = self.add(True, _aten.slice.Tensor, pack, 0, start, start + value.numel())
                part = self.add(True, _aten.view.default, part, [value.shape[d] for d in order])
                if order != sorted(order):
                    part = self.add(True, _aten.permute.default, part, [order.index(d) for d in range(len(order))])
                for user in self.saved(node):
                    user.replace_input_with(node, part)
                start += value.numel()

    def flat(self, node: fx.Node, order: list[int]) -> fx.Node:
        """A value's elements as they lie in memory."""
        if order != sorted(order):
            node = self.add(False, _aten.permute.default, node, order)
        return self.add(False, _aten.view.default, node, [node.meta["val"].numel()])


def _computes(node: fx.Node) -> bool:
    """Whether a node is a result of an operator of ATen that is no view."""
    if _is_view(node):
        return False
    for one in _with_tuple(node):
        if isinstance(one.target, OpOverload):
            return one.target.namespace in ("aten", "prims") and not one.target._schema.is_mutable
    return False


def _with_tuple(node: fx.Node) -> Iterator[fx.Node]:
    """A node, and the call whose result it takes out of a tuple."""
    yield node
    if node.op == "call_function" and node.target is operator.getitem and isinstance(node.args[0], fx.Node):
        yield node.args[0]


def retype_statistics(gm: fx.GraphModule) -> None:
    """Give the statistics of norms the element type that PyTorch's kernels give them.

    Of half-precision elements under single-precision weights they are in single precision; PyTorch's rules of types do not say so.
    """
    aten = torch.ops.aten
    norms = (aten.native_layer_norm.default, aten.native_group_norm.default, aten.native_batch_norm.default)
    for node in gm.graph.nodes:
        if node.target not in norms:
            continue
        taken = [n.meta.get("val") for n in node.all_input_nodes]
        types = [t.dtype for t in taken if isinstance(t, torch.Tensor)]
        if not types or types[0] not in (torch.float16, torch.bfloat16) or torch.float32 not in types:
            continue
        first, *statistics = node.meta["val"]
        node.meta["val"] = (first, *(s.to(torch.float32) for s in statistics))
        for user in node.users:
            if user.target is operator.getitem:
                _retype(user, node.meta["val"][user.args[1]])


def _retype(node: fx.Node, value: torch.Tensor) -> None:
    node.meta["val"] = value
    for user in node.users:
        if user.target in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            _retype(user, value)

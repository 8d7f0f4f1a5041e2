"""FX graphs of ATen operators as archives in memory, which restride imports like any ``.pt2``."""

from __future__ import annotations

import io
import json
import math
import operator
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from restride._errors import UnsupportedError

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload

__all__ = ["archive", "describe_node", "draws", "is_symbolic", "lift_constants", "random_node", "refusal", "unwritable"]

_MODEL = "models/model.json"


def refusal(what: str, node: fx.Node | None = None) -> UnsupportedError:
    """What is not supported, at a node."""
    if node is None:
        return UnsupportedError(what)
    place, source = _place(node), _source(node)
    return UnsupportedError(f"{what} (at {describe_node(node)})", what, place, source)


def _place(node: fx.Node) -> str:
    return f"%{node.name} = {node.target}" if node.op == "call_function" else f"%{node.name}"


def describe_node(node: fx.Node) -> str:
    """A node with its source line."""
    source = _source(node)
    return f"{_place(node)}{', ' + source if source else ''}"


def _draws(node: fx.Node) -> bool:
    """Whether a call itself draws random numbers: not what is called for inference, nor attention that drops nothing."""
    target = node.target
    if torch.Tag.nondeterministic_seeded not in getattr(target, "tags", ()):
        return False
    if not isinstance(target, OpOverload):
        return True
    given = {a.name: a.default_value for a in target._schema.arguments}
    given.update(zip(given, node.args))
    given.update(node.kwargs)
    chance = given.get("dropout_p", given.get("dropout"))
    drops = not isinstance(chance, (int, float)) or chance > 0
    return drops and given.get("train") is not False and given.get("training") is not False


def random_node(gm: fx.GraphModule) -> fx.Node | None:
    """A node that draws random numbers, bodies included."""
    for module in gm.modules():
        if not isinstance(module, fx.GraphModule):
            continue
        for node in module.graph.nodes:
            if _draws(node):
                return node
    return None


def draws(gm: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a call draws random numbers, in its bodies too."""
    if _draws(node):
        return True
    bodies = (getattr(gm, str(n.target), None) for n in node.all_input_nodes if n.op == "get_attr")
    return any(isinstance(b, fx.GraphModule) and random_node(b) is not None for b in bodies)


def _source(node: fx.Node) -> str | None:
    """The last line of the user's program that made a node."""
    trace = node.meta.get("stack_trace")
    if not trace:
        return None
    for line in reversed(str(trace).splitlines()):
        line = line.strip()
        if line.startswith('File "'):
            file, _, rest = line[6:].partition('", line ')
            return f"{file.rpartition('/')[2]}:{rest.partition(',')[0]}"
    return None


def lift_constants(gm: fx.GraphModule) -> tuple[fx.GraphModule, list[torch.Tensor]]:
    """A graph whose tensor attributes are placeholders after the others, and their values."""
    tensors: dict[str, torch.Tensor] = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            value: Any = gm
            for part in str(node.target).split("."):
                value = getattr(value, part)
            if isinstance(value, torch.Tensor):
                tensors[str(node.target)] = value
    if not tensors:
        return gm, []
    graph = fx.Graph()
    env: dict[fx.Node, fx.Node] = {}
    lifted: dict[str, fx.Node] = {}

    def lift() -> None:
        for name, value in tensors.items():
            lifted[name] = graph.placeholder(f"constant_{len(lifted)}")
            lifted[name].meta["val"] = value

    opened = True
    for node in gm.graph.nodes:
        if opened and node.op != "placeholder":
            opened = False
            lift()
        if node.op == "get_attr" and str(node.target) in lifted:
            env[node] = lifted[str(node.target)]
            continue
        env[node] = graph.node_copy(node, lambda n: env[n])
    return fx.GraphModule(gm, graph), list(tensors.values())


class _Tables:
    """PyTorch's codes of element types, layouts and memory formats in files."""

    def __init__(self) -> None:
        from torch._export.serde import serialize as s

        self.dtypes = {k: int(v) for k, v in s._TORCH_TO_SERIALIZE_DTYPE.items()}
        self.layouts = {k: int(v) for k, v in s._TORCH_TO_SERIALIZE_LAYOUT.items()}
        self.formats = {k: int(v) for k, v in s._TORCH_TO_SERIALIZE_MEMORY_FORMAT.items()}
        self.symbolic = set(s._SYM_OPS)


_tables: _Tables | None = None


def _codes() -> _Tables:
    global _tables
    if _tables is None:
        _tables = _Tables()
    return _tables


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


class _Writer:
    """One graph."""

    def __init__(self, gm: fx.GraphModule) -> None:
        self.gm = gm
        self.codes = _codes()
        self.tensors: dict[str, Any] = {}
        self.ints: dict[str, Any] = {}
        self.floats: dict[str, Any] = {}
        self.bools: dict[str, Any] = {}
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.single = False
        self.exprs: dict[Any, str] = {}
        self.at: fx.Node | None = None
        # `getitem`s of one result have one name.
        self.same: dict[str, str] = {}

    def write(self) -> dict[str, Any]:
        for node in self.gm.graph.nodes:
            self.at = node
            if node.op == "placeholder":
                self.inputs.append(self.placeholder(node))
            elif node.op == "call_function":
                if node.target is not operator.getitem:
                    self.nodes.append(self.call(node))
            elif node.op == "output":
                given = node.args[0]
                self.single = isinstance(given, fx.Node)
                self.outputs = [self.output(a) for a in ([given] if self.single else given)]
            elif node.op != "get_attr":
                raise refusal(f"a call of {node.op}", node)
        return {
            "inputs": self.inputs,
            "outputs": self.outputs,
            "nodes": self.nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.ints,
            "sym_bool_values": self.bools,
            "sym_float_values": self.floats,
            "is_single_tensor_return": self.single,
            "custom_obj_values": {},
        }

    # Types.

    def expr(self, value: Any) -> dict[str, Any]:
        expr = value.node.expr
        text = self.exprs.get(expr)
        if text is None:
            import sympy

            text = self.exprs[expr] = str(sympy.printing.repr.srepr(expr))
        out: dict[str, Any] = {"expr_str": text}
        hint = value.node.hint if value.node.has_hint() else None
        if _is_symbolic(hint):
            raise refusal("a size of a nested tensor", self.at)
        if hint is not None:
            kind = "as_bool" if isinstance(hint, bool) else "as_int" if isinstance(hint, int) else "as_float"
            out["hint"] = {kind: hint}
        return {"as_expr": out}

    def size(self, value: Any) -> dict[str, Any]:
        if type(value) is int:
            return {"as_int": value}
        known = value.node.maybe_as_int()
        return self.expr(value) if known is None else {"as_int": int(known)}

    def tensor(self, name: str, value: torch.Tensor) -> dict[str, Any]:
        if value.device.type != "cpu":
            raise refusal(f"a tensor on {value.device.type}", self.at)
        if value.layout != torch.strided or value.is_quantized or value.is_nested:
            raise refusal("a tensor that is sparse, nested or quantized", self.at)
        if value.dtype not in self.codes.dtypes:
            raise refusal(f"a tensor of {value.dtype}", self.at)
        self.tensors[name] = {
            "dtype": self.codes.dtypes[value.dtype],
            "sizes": [self.size(s) for s in value.shape],
            "requires_grad": False,
            "device": {"type": "cpu", "index": None},
            "strides": [self.size(s) for s in value.stride()],
            "storage_offset": {"as_int": 0},
            "layout": self.codes.layouts[torch.strided],
        }
        return {"name": name}

    def result(self, name: str, value: Any) -> dict[str, Any]:
        if value is None:
            return {"as_none": True}
        if isinstance(value, torch.Tensor):
            return {"as_tensor": self.tensor(name, value)}
        if isinstance(value, (bool, torch.SymBool)):
            self.bools[name] = {"as_bool": value} if isinstance(value, bool) else self.expr(value)
            return {"as_sym_bool": {"as_name": name}}
        if isinstance(value, (int, torch.SymInt)):
            self.ints[name] = self.size(value)
            return {"as_sym_int": {"as_name": name}}
        if isinstance(value, (float, torch.SymFloat)):
            self.floats[name] = {"as_float": value} if isinstance(value, float) else self.expr(value)
            return {"as_sym_float": {"as_name": name}}
        raise refusal(f"a result that is a {type(value).__name__}", self.at)

    # Arguments.

    def placeholder(self, node: fx.Node) -> dict[str, Any]:
        value = node.meta.get("val")
        if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
            return self.argument(value)
        if isinstance(value, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)):
            if isinstance(value, torch.Tensor) and (value.is_conj() or value.is_neg()):
                return self.lazy_placeholder(node, value)
            return self.result(node.name, value)
        raise refusal(f"an argument that is a {type(value).__name__}", node)

    def output(self, given: Any) -> dict[str, Any]:
        """A result; what PyTorch conjugates or negates lazily is a copy with the elements that it has."""
        value = given.meta.get("val") if isinstance(given, fx.Node) else None
        if not isinstance(value, torch.Tensor) or given.op == "placeholder":
            return self.argument(given)
        name = self.name(given)
        for operator_name in _lazy(value, "resolve_conj", "resolve_neg"):
            name = self.unary(given, operator_name, name, f"{name}_{operator_name}", value)
        return {"as_tensor": {"name": name}}

    def lazy_placeholder(self, node: fx.Node, value: torch.Tensor) -> dict[str, Any]:
        """An argument that PyTorch conjugates or negates lazily: a run gets its elements, and the graph has the lazy tensor of them."""
        if any(isinstance(u.target, OpOverload) and u.target._schema.is_mutable for u in node.users):
            raise refusal("a write into a lazy conjugate or negative view that is an argument", node)
        first = name = f"{node.name}_elements"
        given = self.result(first, value)
        steps = [*_lazy(value, "conj_physical", "neg"), *_lazy(value, "_conj", "_neg_view")]
        for i, operator_name in enumerate(steps, 1):
            name = self.unary(node, operator_name, name, node.name if i == len(steps) else f"{first}_{i}", value)
        return given

    def unary(self, node: fx.Node, operator_name: str, operand: str, name: str, value: torch.Tensor) -> str:
        """Writes a call of one tensor, and gives the name of its result."""
        if name not in self.tensors:
            taken = {"name": "self", "arg": {"as_tensor": {"name": operand}}, "kind": 1}
            call = {"name": name, "target": f"torch.ops.aten.{operator_name}.default", "metadata": _metadata(node)}
            self.nodes.append({**call, "inputs": [taken], "outputs": [self.result(name, value)]})
        return name

    def name(self, node: fx.Node) -> str:
        return self.same.get(str(node.name), str(node.name))

    def node(self, node: fx.Node) -> dict[str, Any]:
        if node.op == "get_attr":
            value = getattr(self.gm, str(node.target))
            if isinstance(value, fx.GraphModule):
                return {"as_graph": {"name": str(node.target), "graph": _Writer(value).write()}}
            raise refusal(f"an attribute that is a {type(value).__name__}", node)
        value = node.meta.get("val")
        if isinstance(value, (bool, torch.SymBool)):
            return {"as_sym_bool": {"as_name": self.name(node)}}
        if isinstance(value, (int, torch.SymInt)):
            return {"as_sym_int": {"as_name": self.name(node)}}
        if isinstance(value, (float, torch.SymFloat)):
            return {"as_sym_float": {"as_name": self.name(node)}}
        if isinstance(value, torch.Tensor):
            return {"as_tensor": {"name": self.name(node)}}
        if isinstance(value, (list, tuple)) and all(isinstance(v, torch.Tensor) for v in value):
            return {"as_tensors": [{"name": n} for n in self.part_names(node)]}
        raise refusal(f"an argument that is a {type(value).__name__}", node)

    def argument(self, arg: Any, kind: Any = None) -> dict[str, Any]:
        if isinstance(arg, fx.Node):
            return self.node(arg)
        if arg is None:
            return {"as_none": True}
        if type(arg) is bool:
            return {"as_bool": arg}
        if type(arg) is int:
            return {"as_int": arg}
        if type(arg) is float:
            return {"as_float": _float(arg)}
        if type(arg) is str:
            return {"as_string": arg}
        if type(arg) is complex:
            return {"as_complex": {"real": _float(arg.real), "imag": _float(arg.imag)}}
        if isinstance(arg, (list, tuple)):
            return self.sequence(arg, kind)
        if isinstance(arg, torch.dtype):
            if arg not in self.codes.dtypes:
                raise refusal(f"the element type {arg}", self.at)
            return {"as_scalar_type": self.codes.dtypes[arg]}
        if isinstance(arg, torch.device):
            if arg.type not in ("cpu", "meta"):
                raise refusal(f"the device {arg}", self.at)
            return {"as_device": {"type": arg.type, "index": arg.index}}
        if isinstance(arg, torch.memory_format):
            return {"as_memory_format": self.codes.formats[arg]}
        if isinstance(arg, torch.layout):
            return {"as_layout": self.codes.layouts[arg]}
        if isinstance(arg, (OpOverload, HigherOrderOperator)):
            return {"as_operator": _target(arg)}
        if isinstance(arg, dict):
            return {"as_string_to_argument": {str(k): self.argument(v) for k, v in arg.items()}}
        if _is_symbolic(arg):
            raise refusal("a symbolic number that no node computes", self.at)
        raise refusal(f"an argument that is a {type(arg).__name__}", self.at)

    def sequence(self, args: Sequence[Any], kind: Any) -> dict[str, Any]:
        if not args:
            return {_empty(kind): []}
        if all(type(a) is bool for a in args):
            return {"as_bools": list(args)}
        if all(type(a) is int for a in args):
            return {"as_ints": list(args)}
        if all(type(a) in (float, int) for a in args):
            return {"as_floats": [_float(float(a)) for a in args]}
        if all(type(a) is str for a in args):
            return {"as_strings": list(args)}
        made = [self.argument(a) for a in args]
        keys = {next(iter(m)) for m in made}
        parts = [next(iter(m.values())) for m in made]
        if keys == {"as_tensor"}:
            return {"as_tensors": parts}
        if keys <= {"as_tensor", "as_none"}:
            return {"as_optional_tensors": made}
        if keys <= {"as_int", "as_sym_int"}:
            return {"as_sym_ints": [m.get("as_sym_int", m) for m in made]}
        if keys <= {"as_float", "as_sym_float"}:
            return {"as_sym_floats": [m.get("as_sym_float", m) for m in made]}
        if keys <= {"as_bool", "as_sym_bool"}:
            return {"as_sym_bools": [m.get("as_sym_bool", m) for m in made]}
        if keys == {"as_tensors"}:
            return {"as_nested_tensors": parts}
        if keys == {"as_ints"}:
            return {"as_int_lists": parts}
        if keys == {"as_floats"}:
            return {"as_float_lists": parts}
        if keys <= {"as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"} and all(
            isinstance(a, fx.Node) for a in args
        ):
            # PyTorch writes the operands of a higher-order operator by name, tensors and numbers.
            return {"as_tensors": [{"name": p.get("name", p.get("as_name"))} for p in parts]}
        raise refusal(f"a list of {', '.join(sorted(keys))}", self.at)

    # Calls.

    def call(self, node: fx.Node) -> dict[str, Any]:
        target = node.target
        value = node.meta.get("val")
        out: dict[str, Any] = {"name": node.name, "target": _target(target), "metadata": _metadata(node)}
        if target in self.codes.symbolic or _is_symbolic(value):
            out["inputs"] = self.symbolic(target, node)
            out["outputs"] = [self.result(node.name, value)]
        elif isinstance(target, OpOverload):
            out["inputs"] = list(self.by_schema(target, node))
            out["outputs"] = self.by_returns(target, node, value)
        elif isinstance(target, HigherOrderOperator):
            positional = [{"name": "", "arg": self.argument(a), "kind": 1} for a in node.args]
            named = [{"name": k, "arg": self.argument(a), "kind": 2} for k, a in node.kwargs.items()]
            out["inputs"] = positional + named
            out["outputs"] = self.of_body(node, value)
            out["is_hop_single_tensor_return"] = isinstance(value, torch.Tensor)
        else:
            raise refusal(f"the Python function {_target(target)}", node)
        return out

    def symbolic(self, target: Any, node: fx.Node) -> list[Any]:
        if isinstance(target, OpOverload):
            names = [a.name for a in target._schema.arguments]
        else:
            import inspect

            names = list(inspect.signature(target).parameters)
        return [{"name": n, "arg": self.argument(a), "kind": 1} for n, a in zip(names, node.args)]

    def by_schema(self, target: OpOverload, node: fx.Node) -> Iterator[dict[str, Any]]:
        for i, a in enumerate(target._schema.arguments):
            if a.name in node.kwargs:
                yield {"name": a.name, "arg": self.argument(node.kwargs[a.name], a.type), "kind": 2}
            elif not a.kwarg_only and i < len(node.args):
                yield {"name": a.name, "arg": self.argument(node.args[i], a.type), "kind": 1}

    def parts(self, node: fx.Node) -> dict[Any, fx.Node]:
        """The `getitem`s of a node, one for each position."""
        out: dict[Any, fx.Node] = {}
        for user in node.users:
            if user.target is operator.getitem and user.args[0] is node:
                first = out.setdefault(user.args[1], user)
                if first is not user:
                    self.same[user.name] = first.name
        return out

    def part_names(self, node: fx.Node) -> list[str]:
        own = self.parts(node)
        return [own[i].name if i in own else f"{node.name}_unused_{i}" for i in range(len(node.meta["val"]))]

    def by_returns(self, target: OpOverload, node: fx.Node, value: Any) -> list[Any]:
        returns = target._schema.returns
        if not returns:
            return []
        if isinstance(value, (list, tuple)) and len(returns) == 1:
            pairs = zip(self.part_names(node), value)
            return [{"as_tensors": [self.tensor(n, v) for n, v in pairs]}]
        if len(returns) == 1:
            return [self.result(node.name, value)]
        own = self.parts(node)
        out = []
        for i, v in enumerate(value):
            name = own[i].name if i in own else f"{node.name}_unused_{i}"
            if isinstance(v, (list, tuple)):
                inner = self.parts(own[i]) if i in own else {}
                names = [inner[j].name if j in inner else f"{name}_unused_{j}" for j in range(len(v))]
                out.append({"as_tensors": [self.tensor(n, t) for n, t in zip(names, v) if t is not None]})
            else:
                out.append(self.result(name, v))
        return out

    def of_body(self, node: fx.Node, value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            return [self.result(node.name, value)]
        own = self.parts(node)
        out = []
        for i, v in enumerate(value):
            name = own[i].name if i in own else f"{node.name}_unused_{i}"
            out.append(self.result(name, v))
        return out


def _lazy(value: torch.Tensor, conj: str, neg: str) -> list[str]:
    """The operators for the lazy bits that a tensor has."""
    return [name for name, lazy in ((conj, value.is_conj()), (neg, value.is_neg())) if lazy]


def _float(x: float) -> float | str:
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "Infinity" if x > 0 else "-Infinity"
    return x


def _empty(kind: Any) -> str:
    """The field of an empty list of this type."""
    if isinstance(kind, torch.OptionalType):
        kind = kind.getElementType()
    inner = kind.getElementType() if isinstance(kind, torch.ListType) else None
    if isinstance(inner, torch.OptionalType):
        inner = inner.getElementType()
    for cls, field in (
        (torch.BoolType, "as_bools"),
        (torch.IntType, "as_ints"),
        (torch.FloatType, "as_floats"),
        (torch.StringType, "as_strings"),
    ):
        if isinstance(inner, cls):
            return field
    return "as_tensors"


def _target(target: Any) -> str:
    if target.__module__.startswith("torch._ops"):
        return f"{target.__module__.replace('torch._ops', 'torch.ops')}.{target.__name__}"
    return str(f"{target.__module__}.{target.__name__}")


def _metadata(node: fx.Node) -> dict[str, str]:
    trace = node.meta.get("stack_trace")
    return {"stack_trace": str(trace)} if trace else {}


def _ranges(gm: fx.GraphModule) -> dict[str, Any]:
    """The ranges of the symbols in a graph."""
    out: dict[str, Any] = {}
    for node in gm.graph.nodes:
        values = node.meta.get("val")
        for value in values if isinstance(values, (list, tuple)) else [values]:
            parts: Iterable[Any] = [value]
            if isinstance(value, torch.Tensor):
                parts = [*value.shape, *value.stride()]
            for part in parts:
                if not isinstance(part, torch.SymInt):
                    continue
                env = part.node.shape_env
                for symbol in part.node.expr.free_symbols:
                    bounds = env.var_to_range.get(symbol)
                    if str(symbol) not in out and bounds is not None:
                        out[str(symbol)] = {"min_val": _bound(bounds.lower), "max_val": _bound(bounds.upper)}
    return out


def unwritable(gm: fx.GraphModule, node: fx.Node) -> UnsupportedError | None:
    """Why a file cannot hold a call or its operands."""
    writer = _Writer(gm)
    writer.at = node
    try:
        for operand in node.all_input_nodes:
            value = operand.meta.get("val")
            for one in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(one, torch.Tensor):
                    writer.tensor(operand.name, one)
        writer.call(node)
    except UnsupportedError as error:
        return error
    return None


def is_symbolic(node: fx.Node) -> bool:
    """Whether a node computes numbers from sizes."""
    return node.target in _codes().symbolic or _is_symbolic(node.meta.get("val"))


def _bound(value: Any) -> int | None:
    """An end of a range; ``None`` where it is open."""
    if not getattr(value, "is_Integer", False):
        return None
    return int(value) if abs(int(value)) < 2**62 else None


def archive(gm: fx.GraphModule) -> bytes:
    """The bytes of a ``.pt2`` whose program takes the graph's placeholders as user inputs, and gives its outputs.

    Raises:
        UnsupportedError: What a file cannot hold, with the node and its source line.
    """
    graph = _Writer(gm).write()
    model = {
        "graph_module": {
            "graph": graph,
            "signature": {
                "input_specs": [{"user_input": {"arg": a}} for a in graph["inputs"]],
                "output_specs": [{"user_output": {"arg": a}} for a in graph["outputs"]],
            },
            "module_call_graph": [],
        },
        "opset_version": {"aten": 10},
        "range_constraints": _ranges(gm),
        "schema_version": {"major": 8, "minor": 20},
        "verifiers": ["TRAINING"],
        "torch_version": str(torch.__version__),
    }
    out = io.BytesIO()
    entries = {
        "archive_format": b"pt2",
        "archive_version": b"0",
        "byteorder": b"little",
        _MODEL: json.dumps(model, allow_nan=False).encode(),
        "data/weights/model_weights_config.json": b'{"config": {}}',
        "data/constants/model_constants_config.json": b'{"config": {}}',
    }
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, data in entries.items():
            file.writestr(zipfile.ZipInfo(f"graph/{name}"), data)
    return out.getvalue()

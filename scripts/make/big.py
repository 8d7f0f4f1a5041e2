#!/usr/bin/env python3
"""Write a .pt2 of N operator nodes of one kind, as torch.export would. Standard library only.

big.py KIND N OUT.pt2     KIND: inplace views setitem kv func fan (64x16 f32 tensors)
"""

import json
import struct
import sys
import zipfile

ROWS, COLS = 64, 16
FULL, ROW, TWO = ((ROWS, COLS), (COLS, 1)), ((COLS,), (1,)), ((2, COLS), (COLS, 1))


def ints(values):
    return [{"as_int": x} for x in values]


def meta(sizes, strides, offset=0):
    cpu = {"type": "cpu", "index": None}
    layout = dict(
        sizes=ints(sizes), requires_grad=False, device=cpu, strides=ints(strides), storage_offset={"as_int": offset}
    )
    return dict(dtype=7, **layout, layout=7)


def tensor(name):
    return {"as_tensor": {"name": name}}


def argument(value):
    """A string names a tensor."""
    if isinstance(value, str):
        return tensor(value)
    return {"as_int": value} if isinstance(value, int) else {"as_float": value}


class Graph:
    def __init__(self, inputs):
        self.inputs, self.nodes, self.values = inputs, [], {n: meta(*FULL) for n in inputs}

    def op(self, target, type=FULL, offset=0, /, **args):
        """Append a call; its result's name."""
        out = f"v{len(self.nodes)}"
        trace = {"stack_trace": f'File "big.py", line {len(self.nodes) + 1}, in forward'}
        inputs = [dict(name=n, arg=argument(v), kind=1) for n, v in args.items()]
        node = dict(target=f"torch.ops.aten.{target}", inputs=inputs, outputs=[tensor(out)], metadata=trace)
        self.nodes.append(node | dict(is_hop_single_tensor_return=None, name=out))
        self.values[out] = meta(*type, offset)
        return out

    def row(self, of, i):
        return self.op("select.int", ROW, i % ROWS * COLS, self=of, dim=0, index=i % ROWS)


def written(g, kind, n):
    """Writes through views of one tensor, or into it."""
    a, i = g.op("clone.default", self="x"), 0
    while len(g.nodes) < n:
        i += 1
        at, j = i % ROWS * COLS, i % (ROWS - 2)
        if kind == "inplace":
            g.op("add_.Tensor", self=a, other=1)
        elif kind == "views":
            g.op("add_.Tensor", ROW, at, self=g.row(a, i), other=1)
        else:
            cut = lambda j=j: g.op("slice.Tensor", TWO, j * COLS, self=a, dim=0, start=j, end=j + 2)
            m = g.op("mul.Tensor", TWO, self=cut(), other=2)
            m = g.op("add.Tensor", TWO, self=m, other=1)
            g.op("copy_.default", TWO, j * COLS, self=cut(), src=m)
    return [a]


def cached(g, n):
    """Rows of two inputs written in turn, as a key-value cache is."""
    h, i = g.op("sin.default", self="x"), 0
    while len(g.nodes) < n:
        i += 1
        for k in "xy":
            row, to = g.row(h, i), g.row(k, i)
            g.op("copy_.default", ROW, i % ROWS * COLS, self=to, src=row)
        h = g.op("mul.Tensor", self=h, other="x")
        h = g.op("add.Tensor", self=h, other="y")
        h = g.op("tanh.default", self=h)
    return [h]


def pure(g, n, chains):
    """Chains of pointwise calls, added up."""
    hs = ["x"] * chains
    while len(g.nodes) < n:
        hs = [g.op(["sin", "cos", "tanh", "relu"][len(g.nodes) % 4] + ".default", self=h) for h in hs]
    while len(hs) > 1:
        hs = [*hs[2:], g.op("add.Tensor", self=hs[0], other=hs[1])]
    return hs


def tree(kind, context, children):
    return {"type": f"builtins.{kind}", "context": context, "children_spec": children}


def model(g, outs):
    lists = dict(
        inputs=[tensor(x) for x in g.inputs], outputs=[tensor(o) for o in outs], nodes=g.nodes, tensor_values=g.values
    )
    kinds = dict(sym_int_values={}, sym_bool_values={}, custom_obj_values={}, sym_float_values={})
    leaf = {"type": None, "context": None, "children_spec": []}
    leaves = lambda names: tree("tuple", "null", [leaf] * len(names))
    in_spec = json.dumps([1, tree("tuple", "null", [leaves(g.inputs), tree("dict", "[]", [])])])
    called = dict(inputs=[], outputs=[], in_spec=in_spec, out_spec=json.dumps([1, leaves(outs)]))
    signature = dict(
        input_specs=[{"user_input": {"arg": tensor(x)}} for x in g.inputs],
        output_specs=[{"user_output": {"arg": tensor(o)}} for o in outs],
    )
    graph = dict(**lists, **kinds, is_single_tensor_return=False)
    return dict(
        graph_module=dict(graph=graph, signature=signature, module_call_graph=[dict(fqn="", signature=called)]),
        opset_version={"aten": 10},
        range_constraints={},
        schema_version={"major": 8, "minor": 20},
        verifiers=["TRAINING"],
        torch_version="2.15.0",
    )


def main():
    kind, n, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    g = Graph(["x", "y"] if kind == "kv" else ["x"])
    if kind in ("inplace", "views", "setitem"):
        outs = written(g, kind, n)
    else:
        outs = cached(g, n) if kind == "kv" else pure(g, n, 8 if kind == "fan" else 1)
    files = {
        "archive_format": b"pt2",
        "archive_version": b"0",
        ".data/version": b"6",
        "byteorder": b"little",
        "models/model.json": json.dumps(model(g, outs)).encode(),
        "data/weights/model_weights_config.json": b'{"config": {}}',
        "data/constants/model_constants_config.json": b'{"config": {}}',
        "data/sample_inputs/model.pt": b"",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for name, data in files.items():
            info = zipfile.ZipInfo(f"big/{name}", (1980, 1, 1, 0, 0, 0))
            pad = -(z.fp.tell() + 30 + len(info.filename) + 4) % 64
            info.extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
            z.writestr(info, data)


if __name__ == "__main__":
    main()

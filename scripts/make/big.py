#!/usr/bin/env python3
"""Write a .pt2 of N operator nodes of one kind, as torch.export would, with the standard library alone.

  big.py KIND N OUT.pt2     KIND: inplace views setitem kv func fan (64x16 f32 tensors)
"""
import json, struct, sys, zipfile

ROWS, COLS = 64, 16
ti = lambda xs: [{"as_int": x} for x in xs]
meta = lambda sizes, strides, off=0: dict(dtype=7, sizes=ti(sizes), requires_grad=False, device={"type": "cpu", "index": None},
                                          strides=ti(strides), storage_offset={"as_int": off}, layout=7)
T = lambda n: {"as_tensor": {"name": n}}
FULL, ROW = ((ROWS, COLS), (COLS, 1)), ((COLS,), (1,))


class G:
    def __init__(g, inputs):
        g.inputs, g.nodes, g.values = inputs, [], {n: meta(*FULL) for n in inputs}

    def op(g, target, *args, ty=FULL, off=0):
        """args: (name, value) pairs; a str value is a tensor."""
        out = f"v{len(g.nodes)}"
        wrap = lambda v: T(v) if isinstance(v, str) else {"as_int": v} if isinstance(v, int) else {"as_float": v}
        g.nodes.append(dict(target="torch.ops.aten." + target, inputs=[dict(name=n, arg=wrap(v), kind=1) for n, v in args], outputs=[T(out)],
                            metadata={"stack_trace": f'File "big.py", line {len(g.nodes) + 1}, in forward'}, is_hop_single_tensor_return=None, name=out))
        g.values[out] = meta(*ty, off)
        return out


def build(kind, n):
    g = G(["x", "y"] if kind == "kv" else ["x"])
    full = lambda: len(g.nodes) >= n
    if kind in ("inplace", "views", "setitem"):
        a, i = g.op("clone.default", ("self", "x")), 0
        while not full():
            i += 1
            if kind == "inplace":
                g.op("add_.Tensor", ("self", a), ("other", 1))
            elif kind == "views":
                r = g.op("select.int", ("self", a), ("dim", 0), ("index", i % ROWS), ty=ROW, off=i % ROWS * COLS)
                g.op("add_.Tensor", ("self", r), ("other", 1), ty=ROW, off=i % ROWS * COLS)
            else:
                j = i % (ROWS - 2)
                two = ((2, COLS), (COLS, 1))
                cut = lambda: g.op("slice.Tensor", ("self", a), ("dim", 0), ("start", j), ("end", j + 2), ty=two, off=j * COLS)
                m = g.op("mul.Tensor", ("self", cut()), ("other", 2), ty=two)
                m = g.op("add.Tensor", ("self", m), ("other", 1), ty=two)
                g.op("copy_.default", ("self", cut()), ("src", m), ty=two, off=j * COLS)
        outs = [a]
    elif kind == "kv":
        h, i = g.op("sin.default", ("self", "x")), 0
        while not full():
            i += 1
            for k in "xy":
                r = g.op("select.int", ("self", h), ("dim", 0), ("index", i % ROWS), ty=ROW, off=i % ROWS * COLS)
                d = g.op("select.int", ("self", k), ("dim", 0), ("index", i % ROWS), ty=ROW, off=i % ROWS * COLS)
                g.op("copy_.default", ("self", d), ("src", r), ty=ROW, off=i % ROWS * COLS)
            h = g.op("mul.Tensor", ("self", h), ("other", "x"))
            h = g.op("add.Tensor", ("self", h), ("other", "y"))
            h = g.op("tanh.default", ("self", h))
        outs = [h]
    else:
        hs = ["x"] * (8 if kind == "fan" else 1)
        while not full():
            hs = [g.op(["sin", "cos", "tanh", "relu"][len(g.nodes) % 4] + ".default", ("self", h)) for h in hs]
        while len(hs) > 1:
            hs = hs[2:] + [g.op("add.Tensor", ("self", hs[0]), ("other", hs[1]))]
        outs = hs
    return g, outs


def main():
    kind, n, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    g, outs = build(kind, n)
    graph = dict(inputs=[T(x) for x in g.inputs], outputs=[T(o) for o in outs], nodes=g.nodes, tensor_values=g.values, sym_int_values={},
                 sym_bool_values={}, is_single_tensor_return=False, custom_obj_values={}, sym_float_values={})
    leaf = '{"type": null, "context": null, "children_spec": []}'
    spec = lambda k, t: '{"type": "builtins.tuple", "context": "null", "children_spec": [%s]}' % ", ".join([leaf] * k) if t else None
    in_spec = '[1, {"type": "builtins.tuple", "context": "null", "children_spec": [%s, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}]' % spec(len(g.inputs), 1)
    sig = dict(input_specs=[{"user_input": {"arg": T(x)}} for x in g.inputs], output_specs=[{"user_output": {"arg": T(o)}} for o in outs])
    model = dict(graph_module=dict(graph=graph, signature=sig, module_call_graph=[dict(fqn="", signature=dict(inputs=[], outputs=[], in_spec=in_spec, out_spec="[1, %s]" % spec(len(outs), 1)))]),
                 opset_version={"aten": 10}, range_constraints={}, schema_version={"major": 8, "minor": 20}, verifiers=["TRAINING"], torch_version="2.15.0")
    files = {"archive_format": b"pt2", "archive_version": b"0", ".data/version": b"6", "byteorder": b"little", "models/model.json": json.dumps(model).encode(),
             "data/weights/model_weights_config.json": b'{"config": {}}', "data/constants/model_constants_config.json": b'{"config": {}}', "data/sample_inputs/model.pt": b""}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for name, data in files.items():
            name = "big/" + name
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            pad = -(z.fp.tell() + 30 + len(name) + 4) % 64
            info.extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
            z.writestr(info, data)


main()

"""A .pt2 written without torch, as another exporter would write it."""

import json
import struct
import zipfile


def foreign_minimal(path):
    """A .pt2 as another program would write it: the fewest entries, no metadata, no sample inputs, a counter.

    y = relu(x @ w.T + b), n += 1, with a batch of 1 to 16.
    """
    ints = lambda *xs: [{"as_int": x} for x in xs]
    batch = {"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)", "hint": {"as_int": 2}}}

    def meta(dtype, sizes, strides, grad=False):
        where = dict(device={"type": "cpu"}, strides=strides, storage_offset={"as_int": 0}, layout=7)
        return dict(dtype=dtype, sizes=sizes, requires_grad=grad, **where)

    tensor = lambda name: {"as_tensor": {"name": name}}
    node = lambda op, result, **inputs: dict(
        target=f"torch.ops.aten.{op}",
        inputs=[dict(name=k, arg=v) for k, v in inputs.items()],
        outputs=[tensor(result)],
        metadata={},
    )
    f32, i64 = 7, 5
    weights = {
        "w": ("weight_0", True, meta(f32, ints(2, 3), ints(3, 1), True), struct.pack("<6f", 1, 2, 3, 4, 5, 6)),
        "b": ("weight_1", True, meta(f32, ints(2), ints(1), True), struct.pack("<2f", 0.5, -100)),
        "n": ("weight_2", False, meta(i64, [], []), struct.pack("<q", 41)),
    }
    graph = dict(
        inputs=[tensor(n) for n in ("p_w", "p_b", "b_n", "x")],
        outputs=[tensor("n2"), tensor("y")],
        nodes=[
            node("t.default", "wt", self=tensor("p_w")),
            node("addmm.default", "h", self=tensor("p_b"), mat1=tensor("x"), mat2=tensor("wt")),
            node("relu.default", "y", self=tensor("h")),
            node("add.Tensor", "n2", self=tensor("b_n"), other={"as_int": 1}),
        ],
        tensor_values=dict(
            p_w=weights["w"][2],
            p_b=weights["b"][2],
            b_n=weights["n"][2],
            n2=weights["n"][2],
            x=meta(f32, [batch, *ints(3)], ints(3, 1)),
            wt=meta(f32, ints(3, 2), ints(1, 3)),
            h=meta(f32, [batch, *ints(2)], ints(2, 1)),
            y=meta(f32, [batch, *ints(2)], ints(2, 1)),
        ),
        sym_int_values={},
        sym_bool_values={},
    )
    signature = dict(
        input_specs=[
            {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
            {"parameter": {"arg": {"name": "p_b"}, "parameter_name": "b"}},
            {"buffer": {"arg": {"name": "b_n"}, "buffer_name": "n", "persistent": True}},
            {"user_input": {"arg": tensor("x")}},
        ],
        output_specs=[
            {"buffer_mutation": {"arg": {"name": "n2"}, "buffer_name": "n"}},
            {"user_output": {"arg": tensor("y")}},
        ],
    )
    leaf = {"type": None, "context": None, "children_spec": []}
    spec = lambda kind, context, children: {"type": f"builtins.{kind}", "context": context, "children_spec": children}
    in_spec = [1, spec("tuple", "null", [spec("tuple", "null", [leaf]), spec("dict", "[]", [])])]
    call = dict(inputs=[], outputs=[], in_spec=json.dumps(in_spec), out_spec=json.dumps([1, leaf]))
    model = dict(
        graph_module=dict(graph=graph, signature=signature, module_call_graph=[dict(fqn="", signature=call)]),
        opset_version={"aten": 10},
        range_constraints={"s77": {"min_val": 1, "max_val": 16}},
        schema_version={"major": 8, "minor": 20},
    )
    config = {k: dict(path_name=p, is_param=q, use_pickle=False, tensor_meta=m) for k, (p, q, m, _) in weights.items()}
    files = {
        "archive_format": b"pt2",
        "archive_version": b"0",
        ".data/version": b"6",
        "byteorder": b"little",
        "models/model.json": json.dumps(model).encode(),
        "data/weights/model_weights_config.json": json.dumps({"config": config}).encode(),
        "data/constants/model_constants_config.json": b'{"config": {}}',
        "data/sample_inputs/model.pt": b"",
        **{f"data/weights/{p}": data for p, _, _, data in weights.values()},
    }
    with zipfile.ZipFile(path, "w") as z:
        for name, data in files.items():
            z.writestr(zipfile.ZipInfo("foreign/" + name, (1980, 1, 1, 0, 0, 0)), data)

"""Measure the arena that ExecuTorch plans for a program, and the copies in its final graph.

  executorch_memory.py PROGRAM.pt2 OUT.json    (with the python of ExecuTorch's environment)

`to_edge` and `to_executorch` as shipped: greedy planner; inputs, outputs and mutated buffers in the arena; `view_copy` of
static sizes elided. Then once more with inputs and outputs left to the caller. OUT.json has the bytes of both arenas, and the
number and written bytes of each kind of node that only moves elements.
"""

import copy
import json
import logging
import sys

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass

# The operators that restride counts, too; without `constant_pad_nd` and its like, which also make elements.
MOVES = {
    "alias_copy",
    "as_strided_copy",
    "cat",
    "clone",
    "_clone_dim_order",
    "copy",
    "copy_",
    "detach_copy",
    "diagonal_copy",
    "diagonal_scatter",
    "expand_copy",
    "lift_fresh_copy",
    "narrow_copy",
    "permute_copy",
    "select_copy",
    "select_scatter",
    "slice_copy",
    "slice_scatter",
    "split_copy",
    "split_with_sizes_copy",
    "squeeze_copy",
    "stack",
    "t_copy",
    "transpose_copy",
    "unbind_copy",
    "unfold_copy",
    "unsqueeze_copy",
    "view_copy",
}
# The base is written anew, and then at the places that the indices name.
MOVES |= {"index_copy", "index_put", "scatter"}
# These move where they do not convert.
CONVERTS = {"_to_copy", "_to_dim_order_copy"}


def operator(node):
    """The plain name of a node's operator, as `permute_copy`; empty for what is none (`memory.view`, `memory.alloc`)."""
    schema = getattr(node.target, "_schema", None)
    return schema.name.split("::")[1] if schema else ""


def size(value):
    if isinstance(value, (list, tuple)):
        return sum(map(size, value))
    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else 0


def moves(graph):
    found = {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        name, value = operator(node), node.meta.get("val")
        same = name in CONVERTS and node.args[0].meta["val"].dtype == value.dtype
        if name in MOVES or same:
            kind = found.setdefault(name, dict(nodes=0, bytes=0))
            kind["nodes"] += 1
            kind["bytes"] += size(value)
    return found


def lowered(edge, **planning):
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(**planning)))


def arena(program):
    (plan,) = program.executorch_program.execution_plan
    return sum(plan.non_const_buffer_sizes)


def main(program, out):
    logging.disable(logging.WARNING)
    with torch.no_grad():
        edge = to_edge(torch.export.load(program))
        # Lowering changes its argument.
        again = copy.deepcopy(edge)
        everything, inner = lowered(edge), lowered(again, alloc_graph_input=False, alloc_graph_output=False)
    graph_module = everything.exported_program().graph_module
    if inside := [m for m in graph_module.children() if isinstance(m, torch.fx.GraphModule)]:
        raise NotImplementedError(f"{len(inside)} graphs inside of the program's graph")
    with open(out, "w") as f:
        json.dump(dict(arena=arena(everything), inner_arena=arena(inner), moves=moves(graph_module.graph)), f)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""ExecuTorch: lowered by `to_edge` and `to_executorch`, run by the runtime of its package with portable kernels.

Buffers are the loaded method's own state; a pass keeps their initial values.
"""

import logging

import harness
import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.runtime import Runtime, Verification

logging.disable(logging.WARNING)


def built(ep, partitioner):
    buffers = list(ep.graph_signature.inputs_to_buffers.values())
    with torch.no_grad():
        edge = to_edge_transform_and_lower(ep, partitioner=partitioner, compile_config=EdgeCompileConfig())
        program = edge.to_executorch(ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(buffers)]))
    # The method borrows from the loaded program.
    loaded = Runtime.get().load_program(program.buffer, verification=Verification.Minimal)
    method = loaded.load_method("forward")

    def call(inputs):
        given = [torch.from_numpy(a) for a in inputs]
        made = [t.numpy().copy() for t in method.execute(given)]
        return harness.Result(made, inputs={i: t.numpy().copy() for i, t in enumerate(given)})

    call.keep = (program, loaded)
    return call


def build(ep):
    return built(ep, None)


if __name__ == "__main__":
    harness.main(build)

"""ONNX Runtime: `torch.onnx.export` of a torch.export program, run on the CPU. Buffers are inputs and outputs."""

import harness
import onnxruntime
import torch


def build(ep):
    explicit = harness.explicit_state(ep)
    exported = torch.onnx.export(explicit.program, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(exported.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]

    def run(arrays):
        # Arguments that the program does not read are no inputs of the session.
        made = session.run(None, {name: a for name, a in zip(given, arrays) if name in names})
        return list(made), arrays

    given = [spec.arg.name for spec in explicit.program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    return lambda inputs: explicit.call(run, inputs)


if __name__ == "__main__":
    harness.main(build)

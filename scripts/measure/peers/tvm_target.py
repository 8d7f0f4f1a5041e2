"""TVM: relax's importer of torch.export programs without decomposition by torch, compiled for the CPU."""

import harness
import tvm
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program


def build(ep):
    # The importer drops results that are declared to be mutations; as plain results it keeps them.
    explicit = harness.explicit_state(ep)
    module = from_exported_program(explicit.program, run_ep_decomposition=False)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())

    def run(arrays):
        given = [tvm.runtime.tensor(a) for a in arrays]
        made = [t.numpy() for t in machine["main"](*given)]
        return made, [t.numpy() for t in given]

    return lambda inputs: explicit.call(run, inputs)


if __name__ == "__main__":
    harness.main(build)

"""IREE: turbine's import of a torch.export program, compiled for the CPU. Buffers are the module's own state."""

import harness
from iree import runtime
from iree.turbine import aot


def build(ep):
    binary = aot.export(ep).compile(save_to=None, target_backends="llvm-cpu")
    config = runtime.Config("local-task")
    module = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, binary.map_memory()), config)

    def call(inputs):
        given = [runtime.asdevicearray(config.device, a) for a in inputs]
        made = module.main(*given)
        made = made if isinstance(made, (tuple, list)) else [made]
        after = {i: t.to_host().copy() for i, t in enumerate(given)}
        return harness.Result([t.to_host().copy() for t in made], inputs=after)

    return call


if __name__ == "__main__":
    harness.main(build)

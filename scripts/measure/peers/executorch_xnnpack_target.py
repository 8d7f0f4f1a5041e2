"""ExecuTorch with its XNNPACK delegate for what that takes; otherwise as executorch_target.py."""

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

import executorch_target
import harness


def build(ep):
    return executorch_target.built(ep, [XnnpackPartitioner()])


if __name__ == "__main__":
    harness.main(build)

"""ExecuTorch with its XNNPACK delegate where that applies; otherwise as executorch_target.py."""

import executorch_target
import harness
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner


def build(ep):
    return executorch_target.built(ep, [XnnpackPartitioner()])


if __name__ == "__main__":
    harness.main(build)

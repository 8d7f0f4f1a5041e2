"""PyTorch itself: the module that `torch.export.load` makes of the file, unchanged."""

import harness
import torch


def build(ep):
    module = ep.module()

    def call(inputs):
        given = [torch.from_numpy(a) for a in inputs]
        with torch.no_grad():
            made = module(*given)
        made = made if isinstance(made, (tuple, list)) else [made]
        return harness.Result(
            [t.numpy().copy() for t in made],
            {name: t.numpy().copy() for name, t in module.named_buffers()},
            {i: t.numpy().copy() for i, t in enumerate(given)},
        )

    return call


if __name__ == "__main__":
    harness.main(build)

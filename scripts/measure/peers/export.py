"""Export the programs of programs.py and the box decoding example, with the results of two eager calls.

  export.py DIR    (with the python of scripts/torch-env.sh)

Writes NAME.original.pt2; NAME.calls.npz with N.given.I, input I of call N; NAME.expected.npz with N.output.I, and
N.buffer.NAME and N.input.I, the buffers and inputs that the program changes, after call N. shows.json tells for each program
whether the second call's outputs depend on the first call.
"""

import copy
import json
import sys
from pathlib import Path

import numpy as np
import programs
import torch

BOX_DECODE = Path(__file__).resolve().parents[3] / "fixtures/examples/box_decode.pt2"


def box_decode():
    """The exported example, since it stands in the repository as a file; its second call has the deltas negated."""
    ep = torch.export.load(BOX_DECODE)
    deltas, boxes = ep.example_inputs[0]
    return ep, ep.module(), [(deltas, boxes), (-deltas, boxes)]


def built(name):
    torch.manual_seed(0)
    module, calls, *dynamic = programs.PROGRAMS[name]()
    copies = tuple(a.clone() for a in calls[0])
    return torch.export.export(module.eval(), copies, dynamic_shapes=dynamic[0] if dynamic else None), module, calls


def expected(module, calls):
    found, changed = {}, set()
    for n, args in enumerate(calls):
        before = {f"buffer.{name}": t.clone() for name, t in module.named_buffers()}
        before |= {f"input.{i}": t.clone() for i, t in enumerate(args)}
        given = [t.clone() for t in args]
        with torch.no_grad():
            made = module(*given)
        made = made if isinstance(made, (tuple, list)) else [made]
        found |= {f"{n}.output.{i}": t.clone() for i, t in enumerate(made)}
        after = {f"buffer.{name}": t.clone() for name, t in module.named_buffers()}
        after |= {f"input.{i}": t for i, t in enumerate(given)}
        found |= {f"{n}.{key}": t for key, t in after.items()}
        changed |= {key for key, t in after.items() if not torch.equal(t, before[key])}
    keep = [k for k in found if k.split(".", 1)[1].startswith("output.") or k.split(".", 1)[1] in changed]
    return {key: found[key].numpy() for key in keep}


def shows_state(module, calls, found):
    with torch.no_grad():
        made = module(*[t.clone() for t in calls[1]])
    made = made if isinstance(made, (tuple, list)) else [made]
    return any(not np.array_equal(t.numpy(), found[f"1.output.{i}"]) for i, t in enumerate(made))


def main(directory):
    shows = {}
    for name in [*programs.PROGRAMS, "box_decode"]:
        ep, module, calls = box_decode() if name == "box_decode" else built(name)
        torch.export.save(ep, directory / f"{name}.original.pt2")
        given = {f"{n}.given.{i}": a.numpy() for n, args in enumerate(calls) for i, a in enumerate(args)}
        np.savez(directory / f"{name}.calls.npz", **given)
        fresh = copy.deepcopy(module)
        found = expected(module, calls)
        np.savez(directory / f"{name}.expected.npz", **found)
        shows[name] = shows_state(fresh, calls, found)
    (directory / "shows.json").write_text(json.dumps(shows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

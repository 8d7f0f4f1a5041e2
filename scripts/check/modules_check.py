#!/usr/bin/env python3
"""Modules of torch.nn as FX leaves them in a graph, `call_module`, printed by print(gm): what restride makes of each class.

Samples are those of PyTorch's module_db, in evaluation mode, and of this file. A class is taken where all of its samples agree with eager
PyTorch; where a sample asks for an option that PyTorch does not print, the run must have named that option in a note. --table prints the
classes and what becomes of them.

Needs PyTorch. Exit status 1 when a result differs without a note; the last line is `N passed, N failed`.
"""

import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import Restride
from lib.driver import finish, first_of, parser, scratch
from lib.tensor_files import Tensors, content_of, differences

import torch
from pasted_check import weights_of
from torch import fx, nn
from torch.testing._internal.common_modules import module_db

warnings.simplefilter("ignore")


def r(*sizes):
    return torch.randn(*sizes)


OWN = {
    "ChannelShuffle": ((2,), (r(1, 4, 3, 3),)),
    "CosineSimilarity": ((), (r(2, 3), r(2, 3))),
    "PairwiseDistance": ((), (r(2, 3), r(2, 3))),
    "AlphaDropout": ((), (r(2, 3),)),
    "Dropout": ((), (r(2, 3),)),
    "Dropout1d": ((), (r(2, 3, 4),)),
    "Dropout2d": ((), (r(2, 3, 4, 4),)),
    "Dropout3d": ((), (r(2, 3, 4, 4, 2),)),
    "FeatureAlphaDropout": ((), (r(2, 3, 4),)),
    "Flatten": ((), (r(2, 3, 4),)),
    "Unflatten": ((1, (1, 3)), (r(2, 3, 4),)),
    "Fold": (((4, 5), (2, 2)), (r(1, 12, 12),)),
    "Unfold": ((2,), (r(1, 3, 4, 5),)),
    "Hardsigmoid": ((), (r(2, 3),)),
    "Identity": ((), (r(2, 3),)),
    "MaxUnpool2d": ((2,), nn.MaxPool2d(2, return_indices=True)(r(1, 2, 6, 6))),
    "PixelShuffle": ((2,), (r(1, 4, 3, 3),)),
    "PixelUnshuffle": ((2,), (r(1, 1, 4, 4),)),
    "RReLU": ((0.1, 0.3), (r(2, 3),)),
    "SyncBatchNorm": ((3,), (r(2, 3, 4),)),
    "TripletMarginLoss": ((), (r(2, 3), r(2, 3), r(2, 3))),
    "Upsample": (((4, 5),), (r(1, 2, 3, 3),)),
    "UpsamplingNearest2d": (((4, 5),), (r(1, 2, 3, 3),)),
    "UpsamplingBilinear2d": ((None, 2), (r(1, 2, 3, 3),)),
    "EmbeddingBag": ((5, 3), (torch.tensor([[0, 1], [4, 2]]),)),
    "AdaptiveLogSoftmaxWithLoss": ((8, 10, [4, 6]), (r(3, 8), torch.tensor([0, 5, 9]))),
}


def cases(names, most):
    """(class, module, arguments, named arguments)"""
    for info in module_db:
        name = info.name.rpartition(".")[2]
        if names and name not in names:
            continue
        torch.manual_seed(0)
        samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=False)
        for sample in samples[:: max(1, len(samples) // most)][:most]:
            module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs).eval()
            given = sample.forward_input
            if name.startswith("Lazy"):
                module(*given.args, **given.kwargs)
            yield name, module, given.args, given.kwargs
    for name, (options, args) in OWN.items():
        if not names or name in names:
            yield name, getattr(nn, name)(*options).eval(), args, {}


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def run(restride, module, args, kwargs, folder):
    """(status, detail): ok, noted, refused, WRONG, or n/a where PyTorch or a tensor file does not take the sample."""
    root, graph, inputs = nn.Module(), fx.Graph(), []
    root.m = module

    def leaf(value):
        if isinstance(value, torch.Tensor):
            inputs.append(value.detach())
            return graph.placeholder(f"x{len(inputs)}")
        return type(value)(leaf(v) for v in value) if isinstance(value, (tuple, list)) else value

    try:
        graph.output(graph.call_module("m", tuple(map(leaf, args)), {k: leaf(v) for k, v in kwargs.items()}))
        gm = fx.GraphModule(root, graph)
        content = content_of([t.clone() for t in inputs])
        fresh = Tensors(json.loads(json.dumps(content))).all()
        with torch.no_grad():
            want = content_of([*fresh, *flat(gm(*fresh))])
    except Exception as e:
        return "n/a", " ".join(str(e).split())[:80]
    text, given, out = folder / "graph.txt", folder / "inputs.json", folder / "outputs.json"
    text.write_text(str(gm))
    given.write_text(json.dumps(content))
    if "NaN" in given.read_text():
        return "n/a", "NaN in the inputs"
    outcome = restride.run(text, "plan", out, *weights_of(gm, folder / "weights.pt"), inputs=given)
    if not outcome:
        return outcome.kind, outcome.line.split(" --> ")[0].removeprefix("error: ")
    problems = differences(want, json.loads(out.read_text()), len(inputs))
    if not problems:
        return "ok", ""
    notes = [line for line in outcome.stderr.splitlines() if "which its printed form does not say" in line]
    return ("noted", "") if notes else ("WRONG", first_of(problems))


def main():
    p = parser(__doc__, "names", "--binary", "--timeout", "--json")
    p.add_argument("--samples", type=int, default=8, help="most samples of a class")
    p.add_argument("--table", action="store_true", help="print each class")
    o = p.parse_args()
    restride, found = Restride(o.binary, o.timeout), {}
    with scratch() as folder:
        for name, *case in cases(o.names, o.samples):
            found.setdefault(name, []).append(run(restride, *case, Path(folder)))
    failed = sum(status in ("WRONG", "crash", "timeout") for rows in found.values() for status, _ in rows)
    for name, rows in sorted(found.items()):
        states = [status for status, _ in rows]
        detail = next((d for s, d in rows if s in ("WRONG", "refused", "crash", "timeout", "usage")), "")
        if o.table or "WRONG" in states:
            print(
                f"{name}: {', '.join(f'{states.count(s)} {s}' for s in dict.fromkeys(states))} {detail[:140]}".strip()
            )
    return finish(sum(len(rows) for rows in found.values()) - failed, failed, o.json)


if __name__ == "__main__":
    sys.exit(main())

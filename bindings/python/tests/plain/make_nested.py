"""Writes data/nested.pt2, with PyTorch: containers as arguments and results, a dataclass among them."""

import collections
import dataclasses
import pathlib

import torch


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    y: torch.Tensor
    label: object = None


Pair = collections.namedtuple("Pair", ["twice", "scaled"])
torch.export.register_dataclass(Point, serialized_type_name="nested.Point")
torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="nested.Pair")


class Nested(torch.nn.Module):
    def forward(self, tree, *, scale):
        total = tree["a"] + tree["b"][0] + tree["b"][1][0]
        return {"sum": total, "pair": Pair(tree["a"] * 2, total * scale), "point": Point(tree["a"].clone(), total - 1)}


a = torch.arange(3.0)
program = torch.export.export(Nested(), ({"a": a, "b": [a + 1, (a + 2,)]},), {"scale": a * 0 + 2})
torch.export.save(program, pathlib.Path(__file__).parent / "data" / "nested.pt2")

#!/usr/bin/env python3
"""Write fixtures/torchscript: small archives of torch.jit.save, printed graphs, and what torch.jit.load computes of them.

Each program is NAME.pt (or NAME.txt with NAME.weights.pt), NAME.inputs.json and NAME.outputs.npz, whose names are those that
`restride run --outputs` writes: `output.I`, `input.NAME`, `buffer.NAME`. A program with state has a second call, NAME.again.npz.

Needs PyTorch and torchvision.
"""

import json
import math
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import torch
import torchvision

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT

warnings.simplefilter("ignore")
OUT = ROOT / "fixtures" / "torchscript"


class Boxes(torch.nn.Module):
    """Box regression and clipping as detectron2 writes them: slices of an input are written in place."""

    def forward(self, deltas, boxes):
        w = boxes[:, 2] - boxes[:, 0]
        h = boxes[:, 3] - boxes[:, 1]
        x = boxes[:, 0] + 0.5 * w
        y = boxes[:, 1] + 0.5 * h
        dx, dy, dw, dh = deltas[:, 0::4] / 10, deltas[:, 1::4] / 10, deltas[:, 2::4] / 5, deltas[:, 3::4] / 5
        dw.clamp_(max=4.135)
        dh.clamp_(max=4.135)
        px, py = dx * w[:, None] + x[:, None], dy * h[:, None] + y[:, None]
        pw, ph = torch.exp(dw) * w[:, None], torch.exp(dh) * h[:, None]
        out = torch.zeros_like(deltas)
        out[:, 0::4] = px - 0.5 * pw
        out[:, 1::4] = py - 0.5 * ph
        out[:, 2::4] = px + 0.5 * pw
        out[:, 3::4] = py + 0.5 * ph
        boxes[:, 0].clamp_(min=0, max=20)
        boxes[:, 1].clamp_(min=0, max=10)
        return out


class Everything(torch.nn.Module):
    """Scripted code with most of what TorchScript has."""

    names: list[str]

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3))
        self.register_buffer("count", torch.zeros(1))
        self.names = ["a", "b"]
        self.table = {"k": 1.5, "j": 2.0}
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])
        self.last = torch.zeros(3)

    def forward(self, x: torch.Tensor, parts: list[torch.Tensor], flag: bool = True, more: torch.Tensor | None = None):
        outs: dict[str, torch.Tensor] = {}
        self.count += 1
        for i, layer in enumerate(self.layers):
            x = torch.relu(layer(x)) * self.weight
            outs[self.names[i]] = x
        if more is not None:
            x = x + more
        elif len(parts) == 0:
            raise ValueError("no parts")
        assert x.dim() == 2, "two dimensions"
        sizes = [n * 2 for n in x.shape]
        x[:, 1:] += 1
        x[0] = 3.0
        if x.sum() > 0:  # noqa: SIM108 (a branch on data is what this is about)
            x = x * 2
        else:
            x = x - 1
        total = 0
        k = 0
        while k < x.size(0):
            k += 1
            if k > 3:
                break
            total += k
        self.last = x[0]
        y = x
        while bool(y.sum() < 1000.0):
            y = y * 2 + total
        return outs, y.view(sizes[0] // 2, -1), parts[-1].to(torch.float64) * self.table["k"], x.shape[1] // 2


class Decoder(torch.nn.Module):
    """State as speech models have it: empty at first, then of the batch's size, and a number beside it."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.LSTMCell(4, 4)
        self.state = torch.zeros(0)
        self.rate = 0

    def forward(self, x: torch.Tensor, rate: int):
        if self.rate != rate:
            self.state = torch.zeros([2, x.size(0), 4])
        if len(self.state) == 0:
            h, c = self.cell(x)
        else:
            h, c = self.cell(x, (self.state[0], self.state[1]))
        self.state = torch.stack([h, c])
        self.rate = rate
        return h


class Found(torch.nn.Module):
    """Boxes that data picks."""

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor, labels: torch.Tensor):
        picked = scores > 0.5
        boxes, scores, labels = boxes[picked], scores[picked], labels[picked]
        keep = torchvision.ops.batched_nms(boxes, scores, labels, 0.5)
        return boxes[keep], scores[keep], labels[keep]


class Growing(torch.nn.Module):
    """Loops that run as often as data decides and add a row each time: to a tensor, to lists, and into a picture."""

    def forward(self, x, boxes, scores):
        boxes = boxes[scores > 0.4]
        sums = x[:1]
        rows: list[torch.Tensor] = []
        pieces: list[torch.Tensor] = [x[0]]
        for i in range(boxes.size(0)):
            box = boxes[i]
            top, left = max(int(box[0]), 0), max(int(box[1]), 0)
            bottom, right = min(int(box[2]) + 1, x.size(0)), min(int(box[3]) + 1, x.size(1))
            picture = torch.zeros_like(x)
            picture[top:bottom, left:right] = torch.ones([bottom - top, right - left])
            rows.append(picture + len(rows))
            pieces.append(picture.sum(0) * sums.size(0))
            sums = torch.cat([sums, picture.sum(0).unsqueeze(0) + sums[-1:]])
        pictures = torch.stack(rows) if len(rows) > 0 else x.new_empty((0, 4, 5))
        return sums, pictures, torch.cat(pieces), len(pieces)


class Decisions(torch.nn.Module):
    """Truth values and numbers from data that branches and loops take, set, carry and return."""

    def decided(self, x: torch.Tensor):
        if x.sum() > 0:
            return x + 1
        elif x.min() < -1:
            return x - 1
        y = x * 3
        return y if y.max() > 1 else y[:2]

    def first(self, x: torch.Tensor):
        for i in range(x.size(0)):
            if x[i].sum() > 2:
                return x[i], i
        return x[0] * 2, -1

    def forward(self, x: torch.Tensor):
        some, every = bool((x > 0).any()), bool((x > 0).all())
        either = (not every and some) or bool(x.sum() == 0)
        best, at = -100.0, -1
        for i in range(x.size(0)):
            total = float(x[i].sum())
            if total > best:
                best, at = total, i
        n = int(x.max().item())
        k, odd = 0, False
        while k < n:
            k += 2
            odd = not odd
        whole = n if n > 0 else -n
        numbers = (
            math.floor(best / 2),
            math.ceil(best / 2),
            math.sqrt(abs(best)),
            whole & 1,
            whole | 4,
            best // 4,
            best % 4,
        )
        scores = [best, 1.5, float(x[0].sum())]
        scores.sort()
        flags = [some, every, either]
        return self.decided(x), self.first(x), numbers, (k, odd, at, any(flags), all(flags)), x * best, scores


class Picked(torch.nn.Module):
    """Lists that branches on data extend or make, and writes to what such branches give."""

    def halves(self, row: torch.Tensor, up: bool):
        parts = [row[i] for i in range(row.size(0))] if up else [row.sum(), row.mean(), row.max()]
        return parts[0] + parts[-1]

    def largest(self, x: torch.Tensor) -> tuple[torch.Tensor, int] | None:
        best: torch.Tensor | None = None
        at: int | None = None
        for i in range(x.size(0)):
            if x[i].sum() > 0 and (best is None or x[i].sum() > best.sum()):
                best, at = x[i], i
        if best is not None and at is not None:
            return best * 2, at + 1
        return None

    def forward(self, x: torch.Tensor):
        largest = self.largest(x)
        none = self.largest(-x.abs())
        found = (torch.zeros(3), 0 if none is None else 1) if largest is None else largest
        order = x.sum(1).argsort(descending=True)
        kept: list[torch.Tensor] = []
        near = torch.zeros(x.size(0), dtype=torch.bool)
        marks = torch.zeros(x.size(0))
        for i in range(x.size(0)):
            at = order[i]
            if near[at]:
                continue
            kept.append(at)
            near = near | ((x - x[at]).abs().sum(1) < 10)
            if x[at].sum() > 0:
                marks[i] = 1.0
        tally: list[torch.Tensor] = []
        for i in range(x.size(0)):
            if x[i].sum() > 100:
                near, tally = ~near, tally + [x[i]]  # noqa: RUF005 (what scripting knows)
        total = torch.zeros(3)
        if len(kept) > 1:
            total = total + x[0]
        total[0] = 5.0
        rows = torch.stack(kept)
        sums = torch.zeros(3)
        for i in range(len(kept)):
            sums = sums + x[kept[0]] * i
        sums[1] = 7.0
        steps: list[torch.Tensor] = []
        last = x[:1]
        for i in range(6):
            sums = sums * 0.5
            steps.append(sums + i)
            last = torch.cat([last, sums.unsqueeze(0)])
            if sums.abs().sum() < 3:
                break
        walk = torch.stack(steps, 1), last, len(steps), steps[0]
        return (
            found,
            walk,
            rows,
            x[rows],
            marks,
            total,
            sums,
            self.halves(x[0], bool(x.sum() > 0)),
            len(kept),
            near,
            len(tally),
        )


class Texts(torch.nn.Module):
    """Lists that change in place, and texts as TorchScript prints them, which choose entries of a dictionary."""

    def forward(self, x: torch.Tensor):
        sizes = [3, 1]
        sizes += [2]
        sizes *= 2
        names = ["b", "a"]
        names += ["%s-%d%%" % ("c", 2)]  # noqa: UP031
        entries = {
            "[1, 1, 2, 2, 3, 3]": x[0],
            "[a, b, c-2%]": x[1],
            "{0} 2.": x[2],
            "0.10000000000000001 {k: [1.5]}": x[3],
        }
        first = entries[str(sorted(sizes))] - entries[str(sorted(names))]
        second = entries["{0} {}".format(2.0)] - entries["{} {}".format(0.1, {"k": [1.5]})]  # noqa: F525
        rows, columns = torch.where(x > 0)
        return first, second, torch.nonzero(x > 0), rows - columns, "a b".rsplit(" ", 1)[1].splitlines() == ["b"]


class Old(torch.nn.Module):
    """Calls that meant something else in archives of before."""

    def forward(self, x: torch.Tensor, n: torch.Tensor):
        held = torch.zeros([3], dtype=torch.int64)
        torch.div(n, torch.full_like(n, 2), out=held)
        parts = [torch.div(n, 2), n / held, n / x, torch.div(n, 2.5), torch.div(n, 2, rounding_mode="floor")]
        fills = [torch.full([2], 3), torch.full([2], True), torch.full([2], 3, dtype=torch.int64), torch.full([2], 0.5)]
        steps = [torch.linspace(0.0, 1.0, 7), torch.logspace(0.0, 1.0, 7, 2.0), torch.linspace(1, 4, 4)]
        n.div_(-2)
        return parts, fills, steps, torch.nn.functional.gelu(x)


def older(path, version, changes):
    """Makes an archive one of an older version, whose code says what today's schemas do not take."""
    with zipfile.ZipFile(path) as z:
        entries = [(i.filename, z.read(i)) for i in z.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for name, data in entries:
            if name.endswith("version"):
                data = f"{version}\n".encode()
            if name.endswith(".py"):
                for old, new in changes.items():
                    assert old.encode() in data, old
                    data = data.replace(old.encode(), new.encode())
            z.writestr(zipfile.ZipInfo(name), data)


def traced(module, inputs):
    return torch.jit.trace(module.eval(), tuple(i.clone() for i in inputs), check_trace=False, strict=False)


def flat(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in flat(item)]
    return [value]


def write_inputs(path, leaves):
    tensors, storages = [], []
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            tensors.append({"scalar": leaf})
            continue
        at = len(storages)
        data = leaf.reshape(-1).tolist()
        storages.append({"id": at, "dtype": str(leaf.dtype).removeprefix("torch."), "data": data})
        tensors.append(
            {
                "dtype": storages[-1]["dtype"],
                "size": list(leaf.shape),
                "stride": list(leaf.stride()),
                "offset": 0,
                "storage": at,
            }
        )
    path.write_text(json.dumps({"tensors": tensors, "storages": storages}))


def call(module, arguments, path):
    """One call, and what it leaves."""
    before = {n: b.clone() for n, b in module.named_buffers()} if isinstance(module, torch.nn.Module) else {}
    given = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    outputs = flat(module(*given))
    arrays = {
        f"output.{i}": np.asarray(o.detach() if isinstance(o, torch.Tensor) else o)
        for i, o in enumerate(outputs)
        if o is not None
    }
    for i, (old, new) in enumerate(zip(arguments, given)):
        if isinstance(old, torch.Tensor) and not torch.equal(old, new):
            arrays[f"input.{i}"] = new.numpy()
    for name, old in before.items():
        new = dict(module.named_buffers())[name]
        if old.shape == new.shape and not torch.equal(old, new):
            arrays[f"buffer.{name}"] = new.detach().numpy()
    np.savez(path, **arrays)


def archive(name, module, arguments, again=False, version=None, changes=None):
    path = OUT / f"{name}.pt"
    module.save(str(path))
    if version is not None:
        older(path, version, changes)
    loaded = torch.jit.load(str(path))
    write_inputs(OUT / f"{name}.inputs.json", flat(list(arguments)))
    call(loaded, arguments, OUT / f"{name}.outputs.npz")
    if again:
        call(loaded, arguments, OUT / f"{name}.again.npz")


def text(name, printed, module, arguments):
    (OUT / f"{name}.txt").write_text(printed)
    torch.save(module.state_dict(), OUT / f"{name}.weights.pt")
    write_inputs(OUT / f"{name}.inputs.json", flat(list(arguments)))
    call(module, arguments, OUT / f"{name}.outputs.npz")


class Small(torch.nn.Module):
    """A module with a buffer, for printed graphs."""

    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 4)
        self.register_buffer("b", torch.zeros(4))

    def forward(self, x):
        y = self.lin(x)
        y[:, 0].fill_(1.5)
        self.b.add_(y.sum(0))
        z = torch.nn.functional.relu(y, inplace=True) + self.b
        a, b = z.split(2, 1)
        w = torch.cat([a, b * 2], dim=-1).view(x.size(0), -1)[..., None]
        return w / 2, a.max(dim=1)[0], -b


def main():
    OUT.mkdir(exist_ok=True)
    torch.manual_seed(0)
    boxes = (torch.randn(5, 8), torch.rand(5, 4) * 20)
    archive("traced_boxes", traced(Boxes(), boxes), boxes)
    image = (torch.randn(2, 3, 8, 8),)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(inplace=True),
        torch.nn.Upsample(scale_factor=2.0),
    )
    archive("traced_network", traced(network, image), image)
    archive("scripted_code", torch.jit.script(Everything()), (torch.randn(4, 3), [torch.randn(2), torch.randn(2)]))
    archive("scripted_state", torch.jit.script(Decoder()), (torch.randn(2, 4), 16000), again=True)
    found = (torch.rand(12, 4) * 10, torch.rand(12), torch.randint(0, 3, (12,)))
    found[0][:, 2:] += found[0][:, :2]
    archive("traced_found", traced(Found(), found), found)
    archive("scripted_found", torch.jit.script(Found()), found)
    x = (torch.randn(2, 3),)
    symbolic = torch.fx.symbolic_trace(Small())
    text("fx_nodes", ">>> print(gm.graph)\n" + str(symbolic.graph), symbolic, x)
    symbolic = torch.fx.symbolic_trace(Small())
    text("fx_code", str(symbolic), symbolic, x)
    small = Small()
    exported = torch.export.export(small, x)
    text("exported", "```\n" + str(exported) + "\n```\n", small, x)
    function = torch.jit.trace(lambda x: torch.relu(x.view(-1)[1:]).sigmoid_() + x.size(0), x)
    (OUT / "jit_ir.txt").write_text(str(function.graph))
    write_inputs(OUT / "jit_ir.inputs.json", list(x))
    call(function, x, OUT / "jit_ir.outputs.npz")
    torch.save(network.state_dict(), OUT / "state_dict.pt")
    old()
    growing()
    decisions()


def old():
    """One archive, as of two versions."""
    arguments = (torch.tensor([0.5, -1.5, 2.0]), torch.tensor([7, -7, 4]))
    changes = {
        "torch.linspace(0., 1., 7)": "torch.linspace(0., 1., None)",
        "logspace(0., 1., 7,": "logspace(0., 1., None,",
    }
    archive("old_version_3", torch.jit.script(Old()), arguments, version=3, changes=changes)
    changes = {
        "torch.div_(n, -2)": 'torch.div_(n, -2, rounding_mode="trunc")',
        "torch.div(n, torch.full_like(n, 2), out=held)": "torch.copy_(held, n)",
    }
    archive("old_version_5", torch.jit.script(Old()), arguments, version=5, changes=changes)


def growing():
    """One archive, on data that lets its loop run three times."""
    boxes = torch.tensor([[0, 1, 2, 3], [2, 2, 9, 9], [1, 0, 1, 4], [-2, -1, 0, 2]])
    arguments = (torch.arange(20.0).reshape(4, 5) / 4, boxes, torch.tensor([0.5, 0.9, 0.1, 0.6]))
    archive("scripted_growing", torch.jit.script(Growing()), arguments)


def decisions():
    x = torch.arange(-8.0, 4.0).reshape(4, 3)
    archive("scripted_decisions", torch.jit.script(Decisions()), (x,))
    archive("scripted_picked", torch.jit.script(Picked()), (x,))
    archive("scripted_texts", torch.jit.script(Texts()), (x,))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measure small programs beside eager PyTorch and torch.compile: losses, norms, optimizers, boxes, masks, movement.

  small_programs.py [PATTERN ...] [--threads 1] [--ways eager,compile] [--binary F] [--json F] [--rows F ...] [--write-docs]

Use the python that scripts/torch-env.sh prints. Each row is exported with its inputs and run by `restride bench`, then by PyTorch;
a time is the fastest run. PATTERNs choose rows by a part of their name. `--rows` takes rows of earlier runs' --json besides;
`--write-docs` puts the table into docs/speed.md.
"""

import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from environments import vectors
from latency_worker import timed
from torch import nn, rand, randint, randn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib.command import ROOT, Restride
from lib.driver import finish, markdown, parser, quiet, replace_between, scratch

DOCS = ROOT / "docs/speed.md"
BEGIN = "<!-- begin: written by scripts/measure/peers/small_programs.py --write-docs, {} -->"
END = "<!-- end of programs -->"
SECONDS = 0.3
WAYS = {"eager": "PyTorch eager", "compile": "torch.compile"}


class Function(nn.Module):
    """A function as a module, which torch.export wants."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


# Of a model's parameters.
SIZES = [(256, 128, 3, 3), (256,), (768, 768), (768,), (1000, 512), (1000,), (64, 64), (64,)]


class Step(nn.Module):
    """A step of an optimizer on eight parameters, with two states of each."""

    def __init__(self, update):
        super().__init__()
        self.update = update
        for i, size in enumerate(SIZES):
            self.register_buffer(f"p{i}", randn(size))
            self.register_buffer(f"m{i}", randn(size) * 0.1)
            self.register_buffer(f"v{i}", rand(size) * 0.1)
        self.register_buffer("done", torch.tensor(3.0))

    def forward(self, *gradients):
        of = lambda kind: [getattr(self, f"{kind}{i}") for i in range(len(SIZES))]
        self.update(of("p"), list(gradients), of("m"), of("v"))
        return self.done


def each(update):
    """An update of lists from one of a parameter, its gradient and its states."""
    return lambda *lists: [update(*one) for one in zip(*lists)]


def sgd(p, g, m, v):
    m.mul_(0.9).add_(g)
    p.add_(m, alpha=-0.01)


def sgd_foreach(p, g, m, v):
    torch._foreach_mul_(m, 0.9)
    torch._foreach_add_(m, g)
    torch._foreach_add_(p, m, alpha=-0.01)


def adam(p, g, m, v):
    m.lerp_(g, 0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    p.addcdiv_(m, (v.sqrt() / 0.05).add_(1e-8), value=-1e-3)


def adam_foreach(p, g, m, v):
    torch._foreach_lerp_(m, g, 0.1)
    torch._foreach_mul_(v, 0.999)
    torch._foreach_addcmul_(v, g, g, 0.001)
    roots = torch._foreach_sqrt(v)
    torch._foreach_div_(roots, 0.05)
    torch._foreach_add_(roots, 1e-8)
    torch._foreach_addcdiv_(p, m, roots, -1e-3)


def rmsprop(p, g, m, v):
    v.mul_(0.99).addcmul_(g, g, value=0.01)
    p.addcdiv_(g, v.sqrt().add_(1e-8), value=-0.01)


def lion(p, g, m, v):
    p.add_(torch.sign(m * 0.9 + g * 0.1), alpha=-1e-4)
    m.lerp_(g, 0.01)


def average(p, g, m, v):
    m.mul_(0.999).add_(p, alpha=0.001)


def clipped(p, g, m, v):
    total = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(g, 2)))
    torch._foreach_add_(p, torch._foreach_mul(g, (1.0 / (total + 1e-6)).clamp(max=1.0)), alpha=-0.01)


def dice(x, t):
    p = x.sigmoid()
    return 1 - (2 * (p * t).sum((2, 3)) / (p.sum((2, 3)) + t.sum((2, 3)) + 1e-6)).mean()


def focal(x, t):
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    return ((1 - torch.exp(-loss)) ** 2 * loss).mean()


def decoded(deltas, boxes):
    w, h = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    x, y = boxes[:, 0] + 0.5 * w, boxes[:, 1] + 0.5 * h
    dx, dy = deltas[:, 0::4] / 10, deltas[:, 1::4] / 10
    dw, dh = (deltas[:, 2::4] / 5).clamp(max=4.13), (deltas[:, 3::4] / 5).clamp(max=4.13)
    x, y = dx * w[:, None] + x[:, None], dy * h[:, None] + y[:, None]
    w, h = dw.exp() * w[:, None], dh.exp() * h[:, None]
    return torch.stack((x - 0.5 * w, y - 0.5 * h, x + 0.5 * w, y + 0.5 * h), 2).flatten(1)


def overlap(a, b):
    area = lambda x: (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])
    sides = (torch.min(a[:, None, 2:], b[:, 2:]) - torch.max(a[:, None, :2], b[:, :2])).clamp(min=0)
    both = sides[..., 0] * sides[..., 1]
    return both / (area(a)[:, None] + area(b) - both)


def grid_boxes(x):
    b, _, h, w = x.shape
    x = x.view(b, 3, 85, h, w).permute(0, 1, 3, 4, 2).sigmoid()
    grid = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")[::-1], -1).float()
    return torch.cat(((x[..., :2] * 2 - 0.5 + grid) * 8, (x[..., 2:4] * 2) ** 2 * 16, x[..., 4:]), -1).view(b, -1, 85)


def rotated(q, cos, sin):
    a, b = q.chunk(2, -1)
    return q * cos + torch.cat((-b, a), -1) * sin


def rms(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def pair():
    return randn(1024, 768), randn(1024, 768)


# Name → module and inputs.
PROGRAMS = {
    "cross_entropy 256 × 10000": lambda: (F.cross_entropy, randn(256, 10000), randint(0, 10000, (256,))),
    "cross_entropy 256 × 10000, smoothed": lambda: (
        lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
        randn(256, 10000),
        randint(0, 10000, (256,)),
    ),
    "cross_entropy 2 × 21 × 128²": lambda: (F.cross_entropy, randn(2, 21, 128, 128), randint(0, 21, (2, 128, 128))),
    "mse_loss": lambda: (F.mse_loss, *pair()),
    "l1_loss": lambda: (F.l1_loss, *pair()),
    "smooth_l1_loss": lambda: (F.smooth_l1_loss, *pair()),
    "huber_loss": lambda: (F.huber_loss, *pair()),
    "binary_cross_entropy": lambda: (F.binary_cross_entropy, rand(1024, 768), rand(1024, 768)),
    "binary_cross_entropy_with_logits": lambda: (F.binary_cross_entropy_with_logits, *pair()),
    "kl_div 512 × 1000": lambda: (
        lambda x, t: F.kl_div(F.log_softmax(x, -1), F.softmax(t, -1), reduction="batchmean"),
        randn(512, 1000),
        randn(512, 1000),
    ),
    "triplet_margin_loss 1024 × 512": lambda: (F.triplet_margin_loss, *(randn(1024, 512) for _ in range(3))),
    "dice 4 × 8 × 128²": lambda: (dice, randn(4, 8, 128, 128), (randn(4, 8, 128, 128) > 0).float()),
    "focal 1024 × 256": lambda: (focal, randn(1024, 256), (randn(1024, 256) > 0).float()),
    "batch_norm 8 × 64 × 56², training": lambda: (nn.BatchNorm2d(64).train(), randn(8, 64, 56, 56)),
    "batch_norm 1024 × 512, training": lambda: (nn.BatchNorm1d(512).train(), randn(1024, 512)),
    "group_norm 2 × 256 × 64², 32": lambda: (nn.GroupNorm(32, 256), randn(2, 256, 64, 64)),
    "instance_norm 4 × 64 × 64²": lambda: (nn.InstanceNorm2d(64, affine=True), randn(4, 64, 64, 64)),
    "layer_norm 8 × 197 × 768": lambda: (nn.LayerNorm(768), randn(8, 197, 768)),
    "rms_norm 8 × 197 × 768": lambda: (nn.RMSNorm(768), randn(8, 197, 768)),
    "rms_norm 8 × 197 × 768, by hand": lambda: (rms, randn(8, 197, 768), randn(768)),
    "normalize": lambda: (lambda x: F.normalize(x, dim=-1), randn(1024, 768)),
    "softmax 8 × 12 × 197²": lambda: (lambda x: F.softmax(x, -1), randn(8, 12, 197, 197)),
    "softmax 8 × 12 × 197², masked": lambda: (
        lambda x, m: F.softmax(x.masked_fill(m, float("-inf")), -1),
        randn(8, 12, 197, 197),
        randn(197, 197) > 0,
    ),
    "gelu(layer_norm(a + b))": lambda: (
        lambda a, b, w: F.gelu(F.layer_norm(a + b, (768,), w)),
        randn(8, 197, 768),
        randn(8, 197, 768),
        randn(768),
    ),
    **{
        f"step of {name}": lambda update=update: (Step(update), *(randn(s) for s in SIZES))
        for name, update in {
            "sgd": each(sgd),
            "sgd, foreach": sgd_foreach,
            "adam": each(adam),
            "adam, foreach": adam_foreach,
            "rmsprop": each(rmsprop),
            "lion": each(lion),
            "a moving average": each(average),
            "sgd, clipped": clipped,
        }.items()
    },
    "boxes decoded, 1000 × 91": lambda: (decoded, randn(1000, 364), rand(1000, 4) * 100),
    "boxes decoded, 60000": lambda: (decoded, randn(60000, 4), rand(60000, 4) * 100),
    "overlap of 1000 and 300 boxes": lambda: (overlap, rand(1000, 4) * 100, rand(300, 4) * 100),
    "boxes of a grid, 80²": lambda: (grid_boxes, randn(1, 255, 80, 80)),
    "dropout": lambda: (lambda x: F.dropout(x, 0.1, True), randn(1024, 768)),
    "randn_like": lambda: (lambda x: torch.randn_like(x) * x, randn(1024, 768)),
    "where": lambda: (torch.where, randn(1024, 768) > 0, *pair()),
    "and of masks": lambda: (torch.logical_and, randn(1024, 768) > 0, randn(1024, 768) > 0),
    "image of bytes, normalized": lambda: (
        lambda x, mean, std: (x.float() / 255 - mean) / std,
        randint(0, 255, (4, 3, 224, 224), dtype=torch.uint8),
        rand(3, 1, 1),
        rand(3, 1, 1),
    ),
    "rotary embedding 4 × 12 × 256 × 64": lambda: (rotated, randn(4, 12, 256, 64), randn(256, 64), randn(256, 64)),
    "scatter_reduce of means, 4096 × 256": lambda: (
        lambda x, i: torch.zeros(1000, 256).scatter_reduce(
            0, i[:, None].expand(-1, 256), x, "mean", include_self=False
        ),
        randn(4096, 256),
        randint(0, 1000, (4096,)),
    ),
    "cdist 512 × 512 × 64": lambda: (torch.cdist, randn(512, 64), randn(512, 64)),
    "grid_sample 2 × 32 × 64²": lambda: (
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        randn(2, 32, 64, 64),
        rand(2, 64, 64, 2) * 2 - 1,
    ),
    "interpolate 64 × 64² to 128²": lambda: (
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
        randn(1, 64, 64, 64),
    ),
    "reflection pad 2 × 32 × 128²": lambda: (lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect"), randn(2, 32, 128, 128)),
    "lstm 4 × 32 × 128 × 256": lambda: (nn.LSTM(128, 256, batch_first=True), randn(4, 32, 128)),
}


def fastest(run):
    """Microseconds of the fastest run; the first, which may compile, does not count."""
    run()
    return timed(run, SECONDS)[0] * 1e3


def measured(name, ways, restride, threads, folder):
    torch.manual_seed(0)
    program, *inputs = PROGRAMS[name]()
    module = program if isinstance(program, nn.Module) else Function(program)
    path, out = folder / "program.pt2", folder / "bench.json"
    with quiet():
        torch.export.save(torch.export.export(module, tuple(inputs)), path)
    done = restride("bench", path, "--threads", threads, "--json", out)
    if not done:
        raise SystemExit(f"{name}: {done.line}")
    row = dict(name=name, threads=threads, restride_us=json.loads(out.read_text())["time_us"]["plan"]["fastest"])
    if "eager" in ways:
        row["eager_us"] = fastest(lambda: module(*inputs))
    if "compile" in ways:
        torch._dynamo.reset()
        compiled = torch.compile(module)
        row["compile_us"] = fastest(lambda: compiled(*inputs))
    return row


def ratio(row):
    others = [row[f"{way}_us"] for way in WAYS if f"{way}_us" in row]
    return f"{row['restride_us'] / min(others):.2f}" if others else ""


def text_of(rows):
    """Tables by threads."""
    texts = []
    for threads in sorted({r["threads"] for r in rows}):
        lines = [
            [r["name"], f"{r['restride_us']:.0f}"]
            + [f"{r[f'{way}_us']:.0f}" if f"{way}_us" in r else "" for way in WAYS]
            + [ratio(r)]
            for r in rows
            if r["threads"] == threads
        ]
        head = ["program", "restride", *WAYS.values(), "restride / fastest other"]
        texts.append(f"#### Microseconds a run, {threads} thread{'s' * (threads > 1)}")
        texts.append("\n".join(markdown(head, lines)))
    return "\n\n".join(texts)


def main():
    p = parser(__doc__, "--binary", "--timeout", "--json", "--write-docs", timeout=120.0)
    p.add_argument("patterns", nargs="*")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--ways", default=",".join(WAYS))
    p.add_argument("--rows", nargs="*", default=[])
    o = p.parse_intermixed_args()
    restride = Restride(o.binary, o.timeout)
    torch.set_num_threads(o.threads)
    rows = [row for f in o.rows for row in json.loads(Path(f).read_text())["rows"]]
    with scratch() as folder, torch.no_grad():
        for name in PROGRAMS:
            chosen = any(pattern in name for pattern in o.patterns) if o.patterns else not o.rows
            if chosen:
                rows.append(measured(name, o.ways.split(","), restride, o.threads, folder))
                print(f"{name:40} {rows[-1]['restride_us']:10.0f} {ratio(rows[-1])}", file=sys.stderr, flush=True)
    text = text_of(rows)
    print(text)
    if o.write_docs:
        kind = vectors(torch.backends.cpu.get_cpu_capability())
        said = f"### {kind}\n\nPyTorch {torch.__version__.partition('+')[0]}; f32, 1024 × 768 where no sizes are given."
        replace_between(DOCS, BEGIN.format(kind), END, f"\n{said}\n\n{text}\n\n")
    return finish(len(rows), 0, o.json, ran=True, rows=rows)


if __name__ == "__main__":
    sys.exit(main())

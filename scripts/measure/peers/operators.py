#!/usr/bin/env python3
"""Measure single operators beside eager PyTorch: products, convolutions, attention, pointwise operators, norms, reductions.

  operators.py [PATTERN ...] [--threads 1] [--rounds N] [--json F] [--write-docs]

Use the python that scripts/torch-env.sh prints. Each row is a program of one operator, run by `restride bench` and by PyTorch in
turn, for --rounds rounds; a time is the fastest of all. PATTERNs choose rows by a part of their name. `--write-docs` puts the
tables into docs/speed.md.
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from memory import table

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib.command import ROOT, Restride
from lib.driver import finish, parser, replace_between, scratch

DOCS = ROOT / "docs/speed.md"
BEGIN, END = "<!-- begin: written by scripts/measure/peers/operators.py --write-docs -->", "<!-- end of operators -->"
SECONDS = 0.3


@dataclass
class Row:
    """One operator on random f32 operands. `macs` counts multiply-adds, 0 for operators that only go through memory."""

    name: str
    call: str
    inputs: list
    result: list
    torch: object
    macs: int = 0
    channels_last: bool = False

    def text(self):
        kinds = [self.type_of(s) for s in self.inputs]
        given = ", ".join(f"%x{i}: {kind}" for i, kind in enumerate(kinds))
        return f"graph({given}) {{\n  %y: {self.type_of(self.result)} = aten.{self.call}\n  return %y\n}}\n"

    def type_of(self, sizes):
        strides = ""
        if self.channels_last and len(sizes) == 4:
            _, c, h, w = sizes
            strides = f"[{c * h * w}, 1, {w * c}, {c}]"
        return f"f32[{', '.join(map(str, sizes))}]{strides}"

    def operands(self):
        operands = [torch.randn(s) for s in self.inputs]
        if self.channels_last:
            operands = [t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t for t in operands]
        return operands


def product(m, n, k):
    return Row(f"mm {m} × {n} × {k}", "mm.default(%x0, %x1)", [[m, k], [k, n]], [m, n], torch.mm, m * n * k)


def linear(m, n, k):
    f = torch.nn.functional.linear
    return Row(f"linear {m} × {n} × {k}", "linear.default(%x0, %x1)", [[m, k], [n, k]], [m, n], f, m * n * k)


def convolution(cin, size, window, cout, groups=1, stride=1):
    pad = window // 2
    out = (size + 2 * pad - window) // stride + 1
    macs = out * out * cout * cin // groups * window * window

    def run(x, w):
        return torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups)

    name = (
        f"conv2d {cin} × {size}², {window}², {cout}"
        + f", groups {groups}" * (groups > 1)
        + f", stride {stride}" * (stride > 1)
    )
    call = f"conv2d.default(%x0, %x1, None, [{stride}, {stride}], [{pad}, {pad}], [1, 1], {groups})"
    shapes = [[1, cin, size, size], [cout, cin // groups, window, window]]
    return [
        Row(name + last * ", channels-last", call, shapes, [1, cout, out, out], run, macs, last)
        for last in (False, True)
    ]


def attention(heads, queries, keys, width):
    f = torch.nn.functional.scaled_dot_product_attention
    inputs = [[1, heads, queries, width], [1, heads, keys, width], [1, heads, keys, width]]
    call = "scaled_dot_product_attention.default(%x0, %x1, %x2)"
    return Row(
        f"attention {heads} × {queries} × {keys} × {width}",
        call,
        inputs,
        inputs[0],
        f,
        2 * heads * queries * keys * width,
    )


def elementwise(name, f, call=None, operands=1, sizes=(1024, 768), result=None):
    args = ", ".join(f"%x{i}" for i in range(operands))
    return Row(
        name,
        (call or f"{name}.default(%args)").replace("%args", args),
        [list(sizes)] * operands,
        list(result or sizes),
        f,
    )


F = torch.nn.functional
ROWS = [
    *(product(n, n, n) for n in (64, 128, 256, 512, 1024, 2048)),
    product(197, 768, 768),
    product(197, 3072, 768),
    product(64, 3136, 576),
    product(512, 49, 4608),
    product(12544, 16, 27),
    product(1, 4096, 4096),
    product(4, 4096, 4096),
    linear(1, 4096, 4096),
    linear(197, 3072, 768),
    linear(4, 4096, 4096),
    *convolution(64, 56, 3, 64),
    *convolution(128, 28, 3, 128),
    *convolution(512, 7, 3, 512),
    *convolution(3, 224, 7, 64, stride=2),
    *convolution(3, 224, 3, 16, stride=2),
    *convolution(96, 14, 1, 576),
    *convolution(64, 112, 1, 64),
    *convolution(240, 14, 5, 240, groups=240),
    *convolution(16, 112, 3, 16, groups=16),
    *convolution(16, 112, 3, 16, groups=16, stride=2),
    attention(12, 197, 197, 64),
    attention(8, 1024, 1024, 64),
    elementwise("tanh", torch.tanh),
    elementwise("gelu", F.gelu),
    elementwise("erf", torch.erf),
    elementwise("sin", torch.sin),
    elementwise("exp", torch.exp),
    elementwise("sigmoid", torch.sigmoid),
    elementwise("silu", F.silu),
    elementwise("pow 2.5", lambda x: torch.pow(x, 2.5), "pow.Tensor_Scalar(%args, 2.5)"),
    elementwise("hardswish", F.hardswish),
    elementwise("relu", torch.relu),
    elementwise("add", torch.add, "add.Tensor(%args)", 2),
    elementwise("mul", torch.mul, "mul.Tensor(%args)", 2),
    elementwise("softmax", lambda x: x.softmax(-1), "_softmax.default(%args, -1, False)"),
    elementwise("layer_norm", lambda x: F.layer_norm(x, [768]), "layer_norm.default(%args, [768])"),
    elementwise("sum over rows", lambda x: x.sum(-1), "sum.dim_IntList(%args, [-1])", result=[1024]),
    elementwise("max over rows", lambda x: x.amax(-1), "amax.default(%args, [-1])", result=[1024]),
]


def fastest(row, operands, seconds):
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        row.torch(*operands)
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def measured(row, restride, threads, rounds, folder):
    program, out = folder / "operator.fx", folder / "bench.json"
    program.write_text(row.text())
    operands, ours, theirs = row.operands(), [], []
    fastest(row, operands, 0.05)
    for _ in range(rounds):
        done = restride("bench", program, "--random", "1", "--threads", threads, "--json", out)
        if not done:
            raise SystemExit(f"{row.name}: {done.line}\n{row.text()}")
        ours.append(json.loads(out.read_text())["time_us"]["plan"]["fastest"])
        theirs.append(fastest(row, operands, SECONDS))
    return dict(name=row.name, threads=threads, macs=row.macs, restride_us=min(ours), torch_us=min(theirs))


def text_of(rows):
    lines = []
    for r in rows:
        rate = lambda us: f"{us:.0f}" + f" ({2e-3 * r['macs'] / us:.0f})" * bool(r["macs"])
        lines.append(
            [r["name"], rate(r["restride_us"]), rate(r["torch_us"]), f"{r['restride_us'] / r['torch_us']:.2f}"]
        )
    head = ["operator", "restride", "PyTorch", "restride / PyTorch"]
    return "\n".join(["Microseconds, and GFLOP/s of sums of products, f32.", "", *table(head, lines)])


def main():
    p = parser(__doc__, "--binary", "--timeout", "--json", timeout=120.0)
    p.add_argument("patterns", nargs="*")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--write-docs", action="store_true")
    o = p.parse_intermixed_args()
    restride = Restride(o.binary, o.timeout)
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    rows = []
    with scratch() as folder, torch.no_grad():
        for row in ROWS:
            if not o.patterns or any(pattern in row.name for pattern in o.patterns):
                rows.append(measured(row, restride, o.threads, o.rounds, folder))
                r = rows[-1]
                print(
                    f"{r['name']:45} {r['restride_us']:10.0f} {r['torch_us']:10.0f} {r['restride_us'] / r['torch_us']:6.2f}",
                    file=sys.stderr,
                    flush=True,
                )
    text = text_of(rows)
    print(text)
    if o.write_docs:
        said = f"PyTorch {torch.__version__.partition('+')[0]}, {o.threads} thread{'s' * (o.threads > 1)}."
        replace_between(DOCS, BEGIN, END, f"\n{said} {text}\n")
    return finish(len(rows), 0, o.json, ran=True, rows=rows)


if __name__ == "__main__":
    sys.exit(main())

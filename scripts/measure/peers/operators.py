#!/usr/bin/env python3
"""Measure single operators beside eager PyTorch: products, convolutions, attention, pointwise operators, norms, reductions.

  operators.py [PATTERN ...] [--threads 1] [--rounds N] [--json F] [--write-docs]

Use the python that scripts/torch-env.sh prints. Each row is a program of one operator, run by `restride bench` and by PyTorch in
turn, for --rounds rounds; a time is the fastest of all. PATTERNs choose rows by a part of their name. `--write-docs` puts the
tables into docs/speed.md.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from environments import vectors
from latency_worker import timed

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib.command import ROOT, Restride
from lib.driver import finish, markdown, parser, replace_between, scratch

DOCS = ROOT / "docs/speed.md"
# Each kind of vectors has a table of its own.
BEGIN = "<!-- begin: written by scripts/measure/peers/operators.py --write-docs, {} -->"
END = "<!-- end of operators -->"
SECONDS = 0.3
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}


@dataclass
class Row:
    """One operator on random operands. `macs` counts multiply-adds, 0 for operators that only go through memory."""

    name: str
    call: str
    inputs: list
    result: list
    torch: object
    macs: int = 0
    channels_last: bool = False
    dtype: str = "f32"
    result_dtype: str | None = None
    # Types of all results and which of them is returned, of an operator with several.
    results: list | None = None
    returned: int = 0

    def text(self):
        kinds = [self.type_of(s, self.dtype) for s in self.inputs]
        given = ", ".join(f"%x{i}: {kind}" for i, kind in enumerate(kinds))
        results = self.results or [self.type_of(self.result, self.result_dtype or self.dtype)]
        results = ", ".join(f"%y{i}: {kind}" for i, kind in enumerate(results))
        return f"graph({given}) {{\n  {results} = aten.{self.call}\n  return %y{self.returned}\n}}\n"

    def type_of(self, sizes, dtype):
        strides = ""
        if self.channels_last and len(sizes) == 4:
            _, c, h, w = sizes
            strides = f"[{c * h * w}, 1, {w * c}, {c}]"
        return f"{dtype}[{', '.join(map(str, sizes))}]{strides}"

    def operands(self):
        operands = [torch.randn(s).to(TYPES[self.dtype]) for s in self.inputs]
        if self.channels_last:
            operands = [t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t for t in operands]
        return operands


def product(m, n, k):
    return Row(f"mm {m} × {n} × {k}", "mm.default(%x0, %x1)", [[m, k], [k, n]], [m, n], torch.mm, m * n * k)


def linear(m, n, k, dtype="f32"):
    f = torch.nn.functional.linear
    name = f"linear {m} × {n} × {k}" + f", {dtype}" * (dtype != "f32")
    return Row(name, "linear.default(%x0, %x1)", [[m, k], [n, k]], [m, n], f, m * n * k, dtype=dtype)


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


def gradient(cin, size, window, cout, stride=1):
    """The gradients of a convolution's input and of its weight."""
    pad = window // 2
    out = (size + 2 * pad - window) // stride + 1
    x, w = [1, cin, size, size], [cout, cin, window, window]
    rows = []
    for of, (name, result) in enumerate([("input", x), ("weight", w)]):
        mask = [of == 0, of == 1, False]
        settings = [[stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, mask]

        def run(g, x, w, of=of, settings=settings):
            return torch.ops.aten.convolution_backward(g, x, w, None, *settings)[of]

        settings = ", ".join(map(str, settings))
        call = f"convolution_backward.default(%x0, %x1, %x2, None, {settings})"
        row = Row(
            f"{name} gradient of conv2d {cin} × {size}², {window}², {cout}" + f", stride {stride}" * (stride > 1),
            call,
            [[1, cout, out, out], x, w],
            result,
            run,
            out * out * cout * cin * window * window,
        )
        row.results = [row.type_of(result, "f32") if given else "None" for given in mask]
        row.returned = of
        rows.append(row)
    return rows


def transposed(cin, size, window, cout):
    def run(x, w):
        return torch.nn.functional.conv_transpose2d(x, w, None, window)

    out = size * window
    call = f"conv_transpose2d.input(%x0, %x1, None, [{window}, {window}])"
    name = f"conv_transpose2d {cin} × {size}², {window}², {cout}, stride {window}"
    macs = size * size * cin * cout * window * window
    return Row(name, call, [[1, cin, size, size], [cin, cout, window, window]], [1, cout, out, out], run, macs)


def attention(heads, queries, keys, width, causal=False):
    def run(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    inputs = [[1, heads, queries, width], [1, heads, keys, width], [1, heads, keys, width]]
    call = f"scaled_dot_product_attention.default(%x0, %x1, %x2, None, 0.0, {causal})"
    name = f"attention {heads} × {queries} × {keys} × {width}" + ", causal" * causal
    macs = 2 * heads * queries * keys * width // (1 + causal)
    return Row(name, call, inputs, inputs[0], run, macs)


def pooling(name, call, f, channels, size, out):
    sizes = [1, channels, size, size]
    return [
        Row(name + last * ", channels-last", call, [sizes], [1, channels, out, out], f, channels_last=last)
        for last in (False, True)
    ]


def elementwise(name, f, call=None, operands=1, sizes=(1024, 768), result=None, **more):
    args = ", ".join(f"%x{i}" for i in range(operands))
    return Row(
        name,
        (call or f"{name}.default(%args)").replace("%args", args),
        [list(sizes)] * operands,
        list(sizes if result is None else result),
        f,
        **more,
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
    linear(1, 4096, 4096, "bf16"),
    linear(197, 3072, 768, "bf16"),
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
    transposed(128, 28, 2, 64),
    *gradient(64, 56, 3, 64),
    *gradient(128, 28, 3, 128),
    *gradient(256, 14, 3, 256),
    *gradient(64, 56, 3, 128, stride=2),
    *gradient(64, 56, 1, 256),
    attention(12, 197, 197, 64),
    attention(8, 512, 512, 64),
    attention(8, 1024, 1024, 64),
    attention(8, 2048, 2048, 64),
    attention(8, 2048, 2048, 64, causal=True),
    attention(2, 4096, 4096, 64),
    attention(8, 1, 2048, 64),
    *pooling(
        "adaptive_avg_pool2d 240 × 14², 1",
        "adaptive_avg_pool2d.default(%x0, [1, 1])",
        lambda x: F.adaptive_avg_pool2d(x, 1),
        240,
        14,
        1,
    ),
    *pooling(
        "adaptive_avg_pool2d 576 × 7², 1",
        "adaptive_avg_pool2d.default(%x0, [1, 1])",
        lambda x: F.adaptive_avg_pool2d(x, 1),
        576,
        7,
        1,
    ),
    *pooling(
        "avg_pool2d 128 × 56², 2²", "avg_pool2d.default(%x0, [2, 2], [2, 2])", lambda x: F.avg_pool2d(x, 2), 128, 56, 28
    ),
    *pooling(
        "max_pool2d 64 × 112², 3², stride 2",
        "max_pool2d.default(%x0, [3, 3], [2, 2], [1, 1])",
        lambda x: F.max_pool2d(x, 3, 2, 1),
        64,
        112,
        56,
    ),
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
    elementwise("sum over columns", lambda x: x.sum(0), "sum.dim_IntList(%args, [0])", result=[768]),
    elementwise("sum of all", torch.sum, "sum.default(%args)", result=[]),
    elementwise("max over rows", lambda x: x.amax(-1), "amax.default(%args, [-1])", result=[1024]),
    elementwise("max over columns", lambda x: x.amax(0), "amax.default(%args, [0])", result=[768]),
    elementwise(
        "argmax over rows", lambda x: x.argmax(-1), "argmax.default(%args, -1)", result=[1024], result_dtype="i64"
    ),
    elementwise("var over rows", lambda x: x.var(-1), "var.correction(%args, [-1])", result=[1024]),
    elementwise("cumsum", lambda x: x.cumsum(-1), "cumsum.default(%args, -1)"),
    elementwise("cat of two", lambda x, y: torch.cat([x, y], 1), "cat.default([%args], 1)", 2, result=[1024, 1536]),
    elementwise("transposed copy", lambda x: x.t().contiguous(), "t_copy.default(%args)", result=[768, 1024]),
    elementwise(
        "f32 to bf16", lambda x: x.to(torch.bfloat16), "_to_copy.default(%args, dtype=bf16)", result_dtype="bf16"
    ),
    elementwise(
        "bf16 to f32",
        lambda x: x.to(torch.float32),
        "_to_copy.default(%args, dtype=f32)",
        dtype="bf16",
        result_dtype="f32",
    ),
    elementwise("add, bf16", torch.add, "add.Tensor(%args)", 2, dtype="bf16"),
    elementwise("gelu, bf16", F.gelu, "gelu.default(%args)", dtype="bf16"),
    elementwise("exp, f64", torch.exp, "exp.default(%args)", dtype="f64"),
]


def fastest(row, operands, seconds):
    return timed(lambda: row.torch(*operands), seconds)[0] * 1e3


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
    return "\n".join(
        [
            "Microseconds, and GFLOP/s of sums of products, f32 unless the row says another type.",
            "",
            *markdown(head, lines),
        ]
    )


def main():
    p = parser(__doc__, "--binary", "--timeout", "--rounds", "--json", "--write-docs", timeout=120.0)
    p.add_argument("patterns", nargs="*")
    p.add_argument("--threads", type=int, default=1)
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
        kind = vectors(torch.backends.cpu.get_cpu_capability())
        said = (
            f"### {kind}\n\nPyTorch {torch.__version__.partition('+')[0]}, {o.threads} thread{'s' * (o.threads > 1)}."
        )
        replace_between(DOCS, BEGIN.format(kind), END, f"\n{said} {text}\n")
    return finish(len(rows), 0, o.json, ran=True, rows=rows)


if __name__ == "__main__":
    sys.exit(main())

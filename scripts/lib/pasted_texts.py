"""Texts of graphs as people paste them: what stands around a graph, and programs that torch.compile and AOTAutograd print."""

import math

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.utils.checkpoint import checkpoint

nn, F = torch.nn, torch.nn.functional
FILE = "/site-packages/torch/fx/_lazy_graph_module.py"


def each(prefix):
    """A prefix before each line."""
    return lambda text: "".join(f"{prefix}{line}\n" for line in text.splitlines())


def numbered(form):
    return lambda text: "".join(form.format(i + 1, line) for i, line in enumerate(text.splitlines()))


def headed(text):
    """The line of a class as logs print it, behind the file of the graph's code."""
    lines = text.strip("\n").splitlines()
    lines[0] = f"{FILE} {lines[0].strip()}" if lines[0].lstrip().startswith("class ") else lines[0]
    return "\n ".join(["TRACED GRAPH", "===== __compiled_fn_0 =====", lines[0]]) + "\n" + "\n".join(lines[1:]) + "\n"


def coloured(text):
    """A terminal's colours for comments, and for the types behind names."""
    out = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            line = f"\x1b[2m{line}\x1b[0m"
        elif ': "' in line:
            line = line.replace(': "', ': "\x1b[31m', 1).replace('" =', '\x1b[0m" =', 1)
        out.append(line)
    return "\n".join(out) + "\n"


def html(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


GLOG = "V0301 12:00:00.000000 139 torch/_dynamo/output_graph.py:1"
AROUND = {
    "alone": lambda t: t,
    "prompt": lambda t: f">>> print(gm.graph)\n{t}>>> \n",
    "notebook": lambda t: "In [3]: gm.print_readable()\n" + "Out[3]: " + t.lstrip("\n"),
    "fence": lambda t: f"Hi, this graph is slow:\n\n```python\n{t}\n```\n\nHow do I remove the copies? Thanks!\n",
    "mail": lambda t: "On Tuesday someone wrote:\n" + each("> ")(t),
    "forum": lambda t: "[quote]\n" + each("    ")(t) + "[/quote]\n",
    "log": lambda t: each(f"{GLOG}] [0/0] [__graph_code] ")(headed(t)),
    "rank": lambda t: each(f"[rank0]:{GLOG}] [1/0_1] [__aot_graphs] ")(headed(t)),
    "old log": lambda t: each("[2023-10-01 12:00:00,000] [0/0] torch._dynamo.output_graph.__graph_code: [DEBUG] ")(
        "TRACED GRAPH\n ===== __compiled_fn_0 =====\n <eval_with_key>.0 " + t.lstrip("\n")
    ),
    "build log": lambda t: each("2024-01-10T08:11:38.1234567Z ")(t),
    "cat -n": numbered("{:6d}\t{}\n"),
    "editor": numbered("{:4d} | {}\n"),
    "colours": coloured,
    "html": html,
    "crlf": lambda t: t.replace("\n", "\r\n"),
    "nbsp": lambda t: t.replace("    ", "\u00a0\u00a0 \u00a0"),
}


# ------------------------------------------------------------------------------------------------------------ programs


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        y = F.relu(self.norm(self.conv(x)), inplace=True)
        return F.adaptive_avg_pool2d(y, (1, None)).flatten(1) * self.count


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8, bias=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(-2))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, xs, h):
        out = []
        for x in xs.unbind(1):
            h = self.cell(x, h)
            out.append(h)
        return torch.stack(out, 1), {"state": h}


def r(*sizes):
    return torch.randn(*sizes)


def cached(cache, new, at: int):
    cache[:, at : at + 1].copy_(new)
    return cache.sum(1), cache[:, : at + 1]


def boxes(a, b):
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])
    return inter / (area(a)[:, None] + area(b) - inter)


def rope(x, cos, sin):
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1).flatten(-2)


def masked(x, mask):
    x = x.masked_fill(~mask, float("-inf"))
    p = torch.softmax(x, dim=-1, dtype=torch.float64)
    return torch.where(mask, p, torch.zeros((), dtype=p.dtype)), p.argmax(-1)


def written(x, y):
    x[..., 0] = 1.5
    x[:, 1:3] += y
    x.view(-1)[-2:].mul_(3)
    y.t_()
    return x.t(), y.unsqueeze(0)


def checkpointed(x, w):
    return checkpoint(lambda t: (t @ w).relu().sum(-1), x, use_reentrant=False) * math.sqrt(2)


def spectral(x):
    f = torch.fft.rfft(x, dim=-1, norm="ortho")
    return torch.fft.irfft(f * torch.exp(-f.abs()), n=x.shape[-1], dim=-1), torch.view_as_real(f)


def decomposed(x):
    q, r_ = torch.linalg.qr(x)
    return torch.linalg.vector_norm(r_, dim=0), q @ r_, torch.linalg.inv(x @ x.mT + torch.eye(x.shape[0]))


def special(x):
    return torch.special.expit(x), torch.special.i0e(x), torch.special.log_ndtr(x), torch.special.xlog1py(x, x.abs())


def numpy_names(x):
    return (
        x.mean(axis=1, keepdims=True),
        torch.sum(x, axis=0),
        torch.std(input=x, dim=-1, unbiased=False),
        x.amax(axis=-1),
    )


def scattered(x, index):
    out = torch.zeros(4, 3).scatter_add_(0, index, x)
    out.index_add_(0, torch.tensor([0, 2]), x[:2], alpha=-2.0)
    return out, torch.gather(x, 0, index.clamp(max=1)), x.topk(2, dim=-1)


def split(x):
    a, b, c = torch.split(x, [1, 2, 3], dim=1)
    return torch.cat((c, a), dim=-1), b.repeat(1, 2), torch.vstack([a, a]), torch.hstack((b, c)).roll(1, dims=(1,))


def types(x):
    y = x.to(torch.float16).to(dtype=torch.float32)
    return y.type_as(x).long(), x.double().bool(), (x > 0) & (x < 1) | ~(x != x), x.to("cpu", torch.bfloat16, copy=True)


def losses(x, t):
    return F.cross_entropy(x, t, label_smoothing=0.1), F.smooth_l1_loss(x[:, 0], t.float(), reduction="none", beta=0.5)


def einsums(x, y):
    return (
        torch.einsum("bij,bjk->bik", x, y),
        torch.baddbmm(x @ y, x, y, beta=0.5),
        torch.tensordot(x, y, dims=([2], [1])),
    )


def grids(x):
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, 4), torch.linspace(-1, 1, 5), indexing="ij")
    grid = torch.stack((xs, ys), -1)[None]
    return F.grid_sample(x, grid, align_corners=False), F.interpolate(x, scale_factor=2.0, mode="bilinear")


def padded(x):
    return (
        F.pad(x, (1, 2), value=2.5),
        F.pad(x[None], (1, 1), mode="reflect"),
        x.unfold(1, 2, 1),
        x.tril(-1),
        x.diagonal(),
    )


def layered(x, w, b):
    y = F.layer_norm(x, (4,), w, b, eps=1e-3)
    return F.gelu(y, approximate="tanh"), F.glu(x, dim=-1), F.normalize(x, dim=-1), F.local_response_norm(x[None], 3)


def counted(x):
    n = x.size(0)
    return (
        x.new_full((n, 2), float(n)),
        torch.arange(n, dtype=torch.float32) / n,
        x.expand(3, n, 4).reshape(-1),
        x.numel() + x,
    )


PROGRAMS = {
    "norms": (Norms().eval(), (r(1, 2, 4, 4),)),
    "attention": (Attention(), (r(2, 3, 8),)),
    "recurrent": (Recurrent(), (r(2, 3, 3), r(2, 4))),
    "cached": (cached, (torch.zeros(2, 4, 3), r(2, 1, 3), 2)),
    "boxes": (boxes, (torch.rand(3, 4), torch.rand(2, 4))),
    "rope": (rope, (r(2, 3, 8), r(3, 4), r(3, 4))),
    "masked": (masked, (r(2, 4), torch.tensor([[True, False, True, True], [True, True, False, False]]))),
    "written": (written, (r(3, 4), r(3, 2))),
    "checkpointed": (checkpointed, (r(3, 4), r(4, 2))),
    "spectral": (spectral, (r(2, 6),)),
    "decomposed": (decomposed, (r(3, 3),)),
    "special": (special, (r(2, 3),)),
    "numpy_names": (numpy_names, (r(3, 4),)),
    "scattered": (scattered, (r(3, 3), torch.tensor([[0, 1, 2], [3, 0, 1], [1, 2, 0]]))),
    "split": (split, (r(2, 6),)),
    "types": (types, (r(2, 3),)),
    "losses": (losses, (r(3, 5), torch.tensor([1, 4, 0]))),
    "einsums": (einsums, (r(2, 3, 4), r(2, 4, 3))),
    "grids": (grids, (r(1, 2, 3, 3),)),
    "padded": (padded, (r(3, 4),)),
    "layered": (layered, (r(3, 4), r(4), r(4))),
    "counted": (counted, (r(3, 4),)),
}


def copies(values):
    return tuple(v.detach().clone() if isinstance(v, torch.Tensor) else v for v in values)


def dynamo(function, inputs, dynamic=False):
    """The graph that torch.compile traces, and its inputs."""
    got = []

    def backend(gm, example):
        got.append((gm, example))
        return gm.forward

    torch._dynamo.reset()
    torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)(*copies(inputs))
    gm, example = got[0]
    return gm, example


def aot(function, inputs, gradients):
    """The graph of AOTAutograd's forward, of inference unless gradients are asked for, and its inputs."""
    got = []

    def forward(gm, example):
        got.append(gm)

        def run(args):
            got.append(list(args))
            return gm.forward(*args)

        run._boxed_call = True
        return run

    torch._dynamo.reset()
    made = torch.compile(function, backend=aot_autograd(fw_compiler=forward, bw_compiler=forward), fullgraph=True)
    given = copies(inputs)
    if gradients:
        given = tuple(v.requires_grad_() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in given)
        made(*given)
    else:
        with torch.no_grad():
            made(*given)
    gm = next(g for g in got if isinstance(g, torch.fx.GraphModule))
    return gm, next(g for g in got if isinstance(g, list))


def texts(names=()):
    """(name, form, graph module, inputs, text) of the programs, each in one of the surroundings in turn."""
    torch.manual_seed(0)
    around = list(AROUND.items())
    at = 0
    for name, (function, inputs) in PROGRAMS.items():
        if names and name not in names:
            continue
        graphs = {
            "compiled": lambda: dynamo(function, inputs),
            "symbolic": lambda: dynamo(function, inputs, dynamic=True),
            "inference": lambda: aot(function, inputs, False),
        }
        if name in ("norms", "attention", "rope", "layered", "losses"):
            graphs["forward"] = lambda: aot(function, inputs, True)
        for kind, make in graphs.items():
            try:
                gm, example = make()
            except Exception as e:
                yield name, kind, None, None, f"torch does not trace it: {' '.join(str(e).split())[:80]}"
                continue
            example = [
                v.detach().clone() if isinstance(v, torch.Tensor) else v if v is None else int(v) for v in example
            ]
            for form in ("readable", "nodes"):
                if form == "nodes":
                    if kind != "compiled" or "higher_order" in gm.code:
                        continue
                    text = str(gm.graph) + "\n"
                else:
                    text = (
                        gm.print_readable(print_output=False, include_stride=at % 2 == 0, include_device=at % 2 == 0)
                        + "\n"
                    )
                label, wrap = around[at % len(around)]
                at += 1
                yield name, f"{kind} {form}, {label}", gm, example, wrap(text)

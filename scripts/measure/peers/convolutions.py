#!/usr/bin/env python3
"""Measure the convolutions of networks layer by layer beside eager PyTorch and ExecuTorch with XNNPACK.

  convolutions.py [MODEL ...] [--threads 1] [--rounds N] [--json F] [--write-docs]

Use the python that scripts/torch-env.sh prints; the script goes on with that of ExecuTorch's environment, which has PyTorch too.
Layers with the same sizes are one row. Each is exported alone, with its weights, and timed the three ways in turn for --rounds
rounds; a time is the fastest of all. The last rows add up a network's layers. `--write-docs` puts the table into
docs/convolutions.md.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path

from environments import environment, torch_python, torch_version, versions

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib.command import ROOT, Restride
from lib.driver import finish, markdown, parser, quiet, replace_between, scratch

DOCS = ROOT / "docs/convolutions.md"
BEGIN, END = "<!-- begin: written by scripts/measure/peers/convolutions.py --write-docs -->", "<!-- end -->"
NETWORKS = ["resnet18", "mobilenet_v3_small", "densenet121"]
WAYS = {"restride": "restride", "eager": "PyTorch eager", "xnnpack": "ExecuTorch, XNNPACK"}
SECONDS = 0.15


def layers(name):
    """How often a network runs each convolution: its module and its input's sizes, by the row's name."""
    import models
    import torch

    module, args = models.MODELS[name]()
    found, count = {}, Counter()

    def seen(conv, given, result):
        cin, size, out = conv.in_channels, given[0].shape[-1], conv.out_channels
        row = f"{cin} × {size}², {conv.kernel_size[0]}², {out}"
        row += f", stride {conv.stride[0]}" * (conv.stride[0] > 1) + f", groups {conv.groups}" * (conv.groups > 1)
        row += ", bias" * (conv.bias is not None)
        macs = result.numel() * conv.weight[0].numel()
        count[row] += 1
        found.setdefault(row, (conv, list(given[0].shape), macs))

    for conv in module.modules():
        if isinstance(conv, torch.nn.Conv2d):
            conv.register_forward_hook(seen)
    with torch.no_grad():
        module.eval()(*args)
    for conv, _, _ in found.values():
        conv._forward_hooks.clear()
    return found, count


def measured(conv, sizes, threads, rounds, restride, folder):
    """Microseconds by way."""
    import latency_worker
    import torch

    args = (torch.randn(sizes),)
    program, out = folder / "layer.pt2", folder / "bench.json"
    with quiet():
        torch.export.save(torch.export.export(conv, args), program)
        ways = {way: latency_worker.WAYS[way](conv, args, threads) for way in ("eager", "xnnpack")}
    times = {}
    for _ in range(rounds):
        done = restride("bench", program, "--random", "1", "--threads", threads, "--json", out)
        if not done:
            raise SystemExit(f"bench: {done.line}")
        times.setdefault("restride", []).append(json.loads(out.read_text())["time_us"]["plan"]["fastest"])
        for way, run in ways.items():
            times.setdefault(way, []).append(latency_worker.timed(run, SECONDS)[0] * 1e3)
    return {way: min(each) for way, each in times.items()}


def ratio(times):
    return f"{times['restride'] / min(times['eager'], times['xnnpack']):.2f}"


def table(rows):
    header = ["network", "convolution", "times", *WAYS.values(), "restride / fastest other"]
    lines = []
    for r in rows:
        rate = lambda us, macs=r["macs"]: f"{us:.0f} ({2e-3 * macs / us:.0f})"
        lines.append(
            [f"`{r['network']}`", r["name"], r["count"], *(rate(r["times"][w]) for w in WAYS), ratio(r["times"])]
        )
    for name in dict.fromkeys(r["network"] for r in rows):
        own = [r for r in rows if r["network"] == name]
        total = {way: sum(r["count"] * r["times"][way] for r in own) for way in WAYS}
        lines.append(
            [f"`{name}`", "all", sum(r["count"] for r in own), *(f"{total[w]:.0f}" for w in WAYS), ratio(total)]
        )
    return markdown(header, lines)


def main():
    p = parser(__doc__, "--binary", "--timeout", "--rounds", "--json", "--write-docs", timeout=120.0, rounds=2)
    p.add_argument("models", nargs="*")
    p.add_argument("--threads", type=int, default=1)
    o = p.parse_intermixed_args()
    torch_env = torch_python()
    python, missing = environment("executorch", torch_env)
    if missing:
        raise SystemExit(f"executorch: {missing}")
    if Path(sys.executable) != Path(python):
        os.environ["OMP_NUM_THREADS"] = str(o.threads)
        os.execv(python, [python, *sys.argv])
    import torch

    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    restride, rows = Restride(o.binary, o.timeout), []
    with scratch() as folder, torch.no_grad():
        for network in o.models or NETWORKS:
            found, count = layers(network)
            for name, (conv, sizes, macs) in found.items():
                times = measured(conv, sizes, o.threads, o.rounds, restride, folder)
                rows.append(dict(network=network, name=name, count=count[name], macs=macs, times=times))
                said = "  ".join(f"{way} {us:.0f}" for way, us in times.items())
                print(f"{network} {name}: {said}  ({ratio(times)})", file=sys.stderr, flush=True)
    said = (
        f"PyTorch {torch_version(torch_env)}, {versions(python, 'executorch')}; {o.threads} "
        f"thread{'s' * (o.threads > 1)}, f32, batch 1. Microseconds (GFLOP/s)."
    )
    text = "\n".join([said, "", *table(rows)])
    print(text)
    if o.write_docs:
        replace_between(DOCS, BEGIN, END, f"\n{text}\n")
    return finish(len(rows), 0, o.json, ran=True, rows=rows)


if __name__ == "__main__":
    sys.exit(main())

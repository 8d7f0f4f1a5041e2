#!/usr/bin/env python3
"""Hold models under `torch.compile(backend="restride")` to eager PyTorch: inference, and the gradients of one training step; with times.

    compile_models.py                          the 20 models of MODELS, values only
    compile_models.py --times hf/gpt2          and times beside eager PyTorch and torch.compile()
    compile_models.py --peers FILE.py          the models that a file's build(NAME) makes for the names in its ALL
    compile_models.py --table FILE             also writes Markdown

Models are the zoo's (scripts/make/zoo), with weights drawn by liven.py. Each runs in a process of its own. Times are minima of runs in
turn, one thread, after a run of each; --json has the seconds of the first calls as well. Fails at any other value than eager's.
"""

import argparse
import copy
import importlib.util
import json
import multiprocessing
import os
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "wheel-site"
sys.path.insert(0, str(ROOT / "scripts/make/zoo"))
if SITE.exists():
    sys.path.insert(0, str(SITE))
os.environ.update(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

import torch
from torch._decomp import decomposition_table
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

MODELS = """
timm/convnextv2_atto timm/vit_tiny_patch16_224 timm/mobilenetv3_small_050 timm/tf_efficientnet_b0 timm/resnet18 timm/regnety_002
timm/mixer_s32_224 timm/ghostnet_050 timm/levit_128s timm/edgenext_xx_small
hf/bert hf/gpt2 hf/llama hf/t5 hf/distilbert hf/electra hf/opt hf/qwen2 hf/whisper hf/mamba
""".split()


def difference(*values, **allowed):
    from restride.torch import _verify

    return _verify.difference(*values, **allowed)


def built(name, peers):
    """A model, its arguments and named arguments."""
    torch.manual_seed(0)
    if peers:
        spec = importlib.util.spec_from_file_location("peers_models", peers)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        model, args = module.build(name)
        return model.eval(), tuple(args), {}
    import liven
    import models

    made = models.ZOO[name][1]()
    model = made["mod"].eval()
    liven.liven(model, made["args"], made["kwargs"])
    return model, tuple(made["args"]), made["kwargs"]


def leaves(value):
    return [v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def copies(value):
    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), value)


def without_gradients(run, args, kwargs):
    with torch.no_grad():
        return run(*args, **kwargs)


def step(run, model, args, kwargs):
    """The gradients of a loss over all floating results, by parameter; `None` where a parameter has none."""
    model.zero_grad()
    for buffer in model.buffers():
        buffer.detach_()
    results = [v for v in leaves(run(*args, **kwargs)) if v.is_floating_point() and v.requires_grad]
    sum(r.float().square().mean() for r in results).backward()
    return [p.grad for p in model.parameters()]


def in_double(model, args, kwargs):
    """The model and its arguments in double precision."""
    double = lambda t: t.detach().double() if t.is_floating_point() else t.clone()
    return copy.deepcopy(model).double(), pytree.tree_map_only(torch.Tensor, double, (args, kwargs))


class Decomposed(TorchDispatchMode):
    """Computes what PyTorch's CPU kernel computes wrongly: the backward of a batch norm whose gradient comes transposed for one sample."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.native_batch_norm_backward.default:
            func = decomposition_table[func]
        return func(*args, **(kwargs or {}))


def differences(have, want, **allowed):
    """What differs between two lists of tensors, by position."""
    found = {i: difference(a, b, **allowed) for i, (a, b) in enumerate(zip(have, want, strict=True))}
    return {i: text for i, text in found.items() if text}


def farther(faults, have, want, true):
    """The faults at values that are farther from those in double precision than eager PyTorch's: the others are sums in another order."""

    def far(v, i):
        if not all(isinstance(t, torch.Tensor) and t.is_floating_point() for t in (v[i], true[i])):
            return float("inf")
        return float((v[i].double() - true[i]).norm())

    return {i: text for i, text in faults.items() if not far(have, i) <= 3 * far(want, i) + 1e-12}


def fastest(runs, seconds):
    """The shortest time of each function, called in turn for so long."""
    best = dict.fromkeys(runs, float("inf"))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for kind, run in runs.items():
            start = time.perf_counter()
            run()
            best[kind] = min(best[kind], time.perf_counter() - start)
    return best


def work(job):
    name, peers, times = job
    import logging

    import transformers
    from restride.torch import backend

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    left = []
    backend._tell = lambda error: left.append(str(error))
    row = {"name": name, "inference": "right", "training": "right", "left": 0}
    try:
        model, args, kwargs = built(name, peers)
    except Exception as e:
        return {**row, "inference": f"not built: {type(e).__name__}: {str(e)[:80]}", "training": ""}
    runs = {"eager": model}

    def compiled(backend):
        own = copy.deepcopy(model)
        start = time.perf_counter()
        run = torch.compile(own, backend=backend)
        with torch.no_grad():
            run(*copies(args), **copies(kwargs))
        row[f"compile_{backend}"] = time.perf_counter() - start
        return own, run

    try:
        _, runs["restride"] = compiled("restride")
        fresh, other = copy.deepcopy(model), copy.deepcopy(model)
        torch._dynamo.reset()
        run = torch.compile(other, backend="restride")
        given, eager = (copies(args), copies(kwargs)), (copies(args), copies(kwargs))
        with torch.no_grad():
            have, want = leaves(run(*given[0], **given[1])), leaves(fresh(*eager[0], **eager[1]))
        have, want = have + leaves(given), want + leaves(eager)
        faults = differences(have, want)
        if faults:
            exact, doubles = in_double(model, args, kwargs)
            with torch.no_grad():
                true = leaves(exact(*doubles[0], **doubles[1])) + leaves(doubles)
            faults = farther(faults, have, want, true)
        row["inference"] = next(iter(faults.values()), "right")
    except Exception as e:
        row["inference"] = f"{type(e).__name__}: {' '.join(str(e).split())[:120]}"
    try:
        fresh, other = copy.deepcopy(model), copy.deepcopy(model)
        torch._dynamo.reset()
        run = torch.compile(other, backend="restride")
        have = step(run, other, copies(args), copies(kwargs))
        want = step(fresh, fresh, copies(args), copies(kwargs))
        faults = differences(have, want, rtol=1e-3)
        if faults:
            exact, doubles = in_double(model, args, kwargs)
            with Decomposed():
                true = step(exact, exact, *doubles)
            faults = farther(faults, have, want, true)
        row["training"] = next(iter(faults.values()), "right")
    except Exception as e:
        row["training"] = f"{type(e).__name__}: {' '.join(str(e).split())[:120]}"
    row["left"] = len(left)
    row["why"] = sorted({one.split(" (at")[0][:100] for one in left})
    if times and "restride" in runs:
        torch._dynamo.reset()
        _, runs["inductor"] = compiled("inductor")
        _, runs["restride"] = compiled("restride")
        calls = {kind: lambda run=run: without_gradients(run, args, kwargs) for kind, run in runs.items()}
        steps = {}
        for kind in runs if row["training"] == "right" else ():
            own = copy.deepcopy(model)
            run = own if kind == "eager" else torch.compile(own, backend=kind)
            steps[kind] = lambda run=run, own=own: step(run, own, args, kwargs)
        for run in (*steps.values(), *calls.values()):
            run()
        row.update({f"ms_{k}": v * 1e3 for k, v in fastest(calls, times).items()})
        row.update({f"step_{k}": v * 1e3 for k, v in fastest(steps, times).items()} if steps else {})
    return row


def table(rows):
    timed = any("ms_eager" in r for r in rows)
    more = (
        " | inference, ms: eager | torch.compile() | restride | training step, ms: eager | torch.compile() | restride"
        if timed
        else ""
    )
    lines = [
        f"| model | inference | training step | graphs left to eager{more} |",
        "|---|---|---|---" + "|---" * (6 if timed else 0) + "|",
    ]
    for r in rows:
        cells = [
            r["name"],
            r["inference"],
            r["training"],
            str(r["left"]) + "".join(f" ({w})" for w in r.get("why", [])),
        ]
        if timed:
            keys = [f"{part}_{kind}" for part in ("ms", "step") for kind in ("eager", "inductor", "restride")]
            cells += [f"{r[k]:.2f}" if k in r else "" for k in keys]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("names", nargs="*")
    args.add_argument("--peers", metavar="FILE")
    args.add_argument(
        "--times",
        type=float,
        nargs="?",
        const=5.0,
        default=0.0,
        metavar="SECONDS",
        help="run inference, and the step, for so long",
    )
    args.add_argument("--jobs", type=int, default=1)
    args.add_argument("--json", type=Path)
    args.add_argument("--table", type=Path)
    args = args.parse_args()
    names = args.names
    if not names and args.peers:
        spec = importlib.util.spec_from_file_location("peers_models", args.peers)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        names = module.ALL
    rows = []
    jobs = [(n, args.peers, args.times) for n in names or MODELS]
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=1) as pool:
        for row in pool.imap(work, jobs):
            rows.append(row)
            print(json.dumps(row), flush=True)
            if args.json:
                args.json.write_text(json.dumps(rows))
            if args.table:
                args.table.write_text(table(rows))
    print(table(rows))
    bad = [r for r in rows if r["inference"] != "right" or r["training"] != "right"]
    print(f"compile_models: {len(rows) - len(bad)} passed, {len(bad)} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

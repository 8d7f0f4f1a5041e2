#!/usr/bin/env python3
"""Compare training steps with PyTorch's: losses, memory and time.

For each model, with SGD and with Adam: ten steps by eager PyTorch, by torch.compile (model and optimizer), and by the
program that `restride grad --optimizer` makes of the exported model, run by the example `train` of the crate restride. Each
runs in a process of its own, one after the other, on one thread. The losses must follow those of eager PyTorch in double
precision, or be at most twice as far from them as eager's in single precision: training multiplies rounding.

Memory is counted alike for all three: the state that lives from step to step (parameters, buffers, the optimizer's state) and
the most that a step allocates beside it. For PyTorch these are its allocator's bytes, as the profiler records them (zero_grad
frees gradients before the step); for restride the plan's state, arena and outputs. Neither includes memory that libraries
allocate inside a kernel. `resident` is the largest growth of the process, from before the model to after the last step.

restride runs twice: with the default of `grad`, which recomputes cheap values (`--keep auto`), and keeping all that backward
reads of forward (`--keep all`); both must give the same losses. Prints a table, and writes it as Markdown (--markdown). Fails
where losses differ, or where restride's peak is not the lowest.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "make/zoo"))
from lib.command import artifact
from lib.driver import parser, scratch, write_json

os.environ.update(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

import torch
import torchvision
import transformers

OPTIMIZERS = {
    "sgd": (dict(lr=0.01, momentum=0.9), ["--optimizer", "sgd", "--lr", "0.01", "--momentum", "0.9"]),
    "adam": (dict(lr=0.001), ["--optimizer", "adam", "--lr", "0.001"]),
}
# `grad --keep`: the values of forward that backward reads.
KEEP = {"restride": "auto", "all": "all"}
# Steps that are left out of the time: compilation, first touches.
WARM = 3


def trained(model, loss):
    """A module of two arguments that gives a model's loss for them."""

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = model

        def forward(self, x, y):
            return loss(self.m, x, y)

    return Loss()


def resnet18():
    module = trained(torchvision.models.resnet18(), lambda m, x, y: torch.nn.functional.cross_entropy(m(x), y))
    return module, (torch.randn(8, 3, 64, 64), torch.randint(0, 1000, (8,)))


def unet():
    import models

    module = trained(models.unet(), lambda m, x, y: torch.nn.functional.binary_cross_entropy(m(x), y))
    return module, (torch.randn(4, 3, 128, 128), torch.rand(4, 1, 128, 128))


def bert():
    config = transformers.BertConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, vocab_size=8192,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    module = trained(transformers.BertForSequenceClassification(config), lambda m, x, y: m(input_ids=x, labels=y).loss)
    return module, (torch.randint(0, 8192, (4, 128)), torch.tensor([0, 1, 1, 0]))


def llama():
    config = transformers.LlamaConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, intermediate_size=704,
        vocab_size=4096, max_position_embeddings=256,
    )  # fmt: skip
    loss = lambda m, x, y: m(input_ids=x, labels=y, use_cache=False).loss
    tokens = torch.randint(0, 4096, (4, 128))
    return trained(transformers.LlamaForCausalLM(config), loss), (tokens, tokens.clone())


MODELS = {"tv_train/resnet18": resnet18, "nn/unet_train": unet, "hf/bert": bert, "hf/llama": llama}


def built(name):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, args = MODELS[name]()
    return module.train(), args


def status(key):
    """A line of /proc/self/status in bytes."""
    with open("/proc/self/status") as f:
        return next((int(line.split()[1]) * 1024 for line in f if line.startswith(key + ":")), None)


def storages(tensors):
    """Bytes of the storages of tensors, each once."""
    unique = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(unique.values())


def optimizer_of(module, optimizer):
    kind = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
    return kind(module.parameters(), **OPTIMIZERS[optimizer][0])


def in_double(name, optimizer, steps):
    """Losses by PyTorch in double precision."""
    module, args = built(name)
    module, args = module.double(), [a.double() if a.is_floating_point() else a for a in args]
    chosen, losses = optimizer_of(module, optimizer), []
    for _ in range(steps):
        chosen.zero_grad()
        loss = module(*args)
        loss.backward()
        chosen.step()
        losses.append(float(loss.detach()))
    return dict(losses=losses)


def by_torch(name, optimizer, compiled, steps):
    """Losses, seconds of each step and bytes, by PyTorch."""
    torch.zeros(1).sum()
    before = status("VmRSS")
    module, args = built(name)
    chosen = optimizer_of(module, optimizer)
    forward = torch.compile(module) if compiled else module
    update = torch.compile(chosen.step) if compiled else chosen.step
    losses, times = [], []

    def step():
        chosen.zero_grad(set_to_none=True)
        start = time.perf_counter()
        loss = forward(*args)
        loss.backward()
        update()
        times.append(time.perf_counter() - start)
        losses.append(float(loss.detach()))

    for _ in range(steps):
        step()
    resident = status("VmHWM") - before
    chosen.zero_grad(set_to_none=True)
    kept = [*module.parameters(), *module.buffers()]
    kept += [t for s in chosen.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        loss = forward(*args)
        loss.backward()
        update()
    events = profile.profiler.kineto_results.events()
    moves = sorted((e.start_ns(), k, e.nbytes()) for k, e in enumerate(events) if e.name() == "[memory]")
    now = peak = 0
    for _, _, size in moves:
        now += size
        peak = max(peak, now)
    assert peak > 0, "the profiler has recorded no allocation"
    state = storages(kept)
    return dict(losses=losses, times=times[WARM:], peak=state + peak, state=state, resident=resident)


def by_restride(name, optimizer, steps, keep, restride, train, folder):
    module, args = built(name)
    exported = torch.export.export(module, args, strict=False)
    whole, step = folder / "model.pt2", folder / "step.pt2"
    torch.export.save(exported, whole)
    subprocess.run([restride, "grad", whole, "-o", step, "--keep", keep, *OPTIMIZERS[optimizer][1]], check=True)
    out = subprocess.run([train, step, str(steps)], check=True, stdout=subprocess.PIPE, text=True).stdout
    numbers = lambda pattern: [float(x) for x in re.findall(pattern, out)]
    plan = [int(x) for x in re.search(r"arena_bytes (\d+) state_bytes (\d+) output_bytes (\d+)", out).groups()]
    before, after = (int(x) for x in re.search(r"before_bytes (\d+) after_bytes (\d+)", out).groups())
    return dict(
        losses=numbers(r"loss (\S+)"), times=[t / 1e6 for t in numbers(r"time_us (\d+)")][WARM:],
        peak=sum(plan), arena=plan[0], state=plan[1], resident=after - before,
    )  # fmt: skip


def alone(name, optimizer, way, options):
    """One way in a process of its own."""
    command = [sys.executable, __file__, "--one", name, optimizer, way, "--steps", str(options.steps)]
    command += ["--restride", options.restride, "--train", options.train]
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        return dict(error=f"{way} ends with status {made.returncode}")
    return json.loads(made.stdout.splitlines()[-1])


def one(options):
    name, optimizer, way = options.one
    if way in KEEP:
        with scratch() as folder:
            made = by_restride(name, optimizer, options.steps, KEEP[way], options.restride, options.train, folder)
    elif way == "double":
        made = in_double(name, optimizer, options.steps)
    else:
        made = by_torch(name, optimizer, way == "compile", options.steps)
    print(json.dumps(made))


def differ(ours, eager, double):
    """The first step whose loss is too far from PyTorch's, in words."""
    for k, (a, b, true) in enumerate(zip(ours, eager, double, strict=True)):
        if abs(a - true) > max(1e-4 * abs(true) + 1e-5, 2 * abs(b - true)):
            return f"step {k}: loss {a}, eager {b}, in double precision {true}"
    return None


def median(times):
    return sorted(times)[len(times) // 2]


def drift(losses, double):
    """The largest difference from the losses in double precision, relative."""
    return max(abs(a - true) / max(abs(true), 1e-6) for a, true in zip(losses, double, strict=True))


HEAD = """\
# Training steps beside PyTorch

`scripts/measure/train_check.py` makes this table: {steps} steps of four models with SGD (momentum 0.9) and with Adam, by eager
PyTorch, by torch.compile (model and optimizer) and by restride, each in a process of its own, one thread, one run on one
machine. The peak is the state (parameters, buffers, the optimizer's state) plus the most that a step allocates beside it:
what PyTorch's allocator hands out, or restride's arena and outputs. By default (`--keep auto`) `grad` recomputes cheap
values, as torch.compile does; the columns "keeping all" show `--keep all`.

Losses are compared with PyTorch's in double precision, since training multiplies rounding: the column gives the largest
relative difference of a step's loss.
{note}"""


def markdown(rows, options):
    """The text of docs/training.md."""
    mb = lambda n: f"{n / 1e6:.1f}"
    ways = ["eager", "compile", "restride", "all"]
    names = "torch.compile | restride"
    columns = f"peak MB: eager | {names} | keeping all | ms a step: eager | {names} | keeping all | loss differs: eager | {names}"
    out = [
        HEAD.format(steps=options.steps, note=f"\n{options.note}\n" if options.note else ""),
        f"| model, optimizer | {columns} |",
        "|---" + "|---:" * 11 + "|",
    ]
    for model, optimizer in dict.fromkeys((r["model"], r["optimizer"]) for r in rows):
        own = {r["way"]: r for r in rows if (r["model"], r["optimizer"]) == (model, optimizer)}
        cell = lambda way, say: say(own[way]) if way in own and "error" not in own[way] else "-"
        peaks = [cell(w, lambda r: mb(r["peak"])) for w in ways]
        times = [cell(w, lambda r: f"{median(r['times']) * 1e3:.0f}") for w in ways]
        losses = [cell(w, lambda r: f"{r['drift']:.1e}") for w in ways[:3]]
        out.append(f"| {model} {optimizer} | " + " | ".join([*peaks, *times, *losses]) + " |")
    return "\n".join(out) + "\n"


def main():
    p = parser(__doc__, "--json")
    p.add_argument("--models", default=",".join(MODELS), metavar="NAME,…")
    p.add_argument("--optimizers", default=",".join(OPTIMIZERS))
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--restride", default=str(artifact("restride")))
    p.add_argument("--train", default=str(artifact("examples/train")))
    p.add_argument(
        "--no-compile", dest="compile", action="store_false", help="leave torch.compile out, which takes minutes"
    )
    p.add_argument("--markdown", metavar="FILE", help="write the table as Markdown, as docs/training.md")
    p.add_argument("--note", metavar="TEXT", help="a sentence above the table")
    p.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.one:
        return one(options)
    found, rows = [], []
    print(
        f"{'':26} {'way':9} {'loss at the end':>15} {'peak MB':>9} {'state MB':>9} {'resident MB':>12} {'ms a step':>10}"
    )
    for name in options.models.split(","):
        for optimizer in options.optimizers.split(","):
            double = alone(name, optimizer, "double", options)
            theirs = ("eager", "compile") if options.compile else ("eager",)
            made = {way: alone(name, optimizer, way, options) for way in (*theirs, *KEEP)}
            for way, m in made.items():
                rows.append(dict(model=name, optimizer=optimizer, way=way, **m))
                if "error" in m:
                    found.append(f"{name} {optimizer}: {m['error']}")
                    continue
                if "error" not in double:
                    rows[-1]["drift"] = drift(m["losses"], double["losses"])
                mb = [f"{m[k] / 1e6:.2f}" for k in ("peak", "state", "resident")]
                label = f"{name} {optimizer}" if way == "eager" else ""
                figures = f"{mb[0]:>9} {mb[1]:>9} {mb[2]:>12} {median(m['times']) * 1e3:>10.1f}"
                print(f"{label:26} {way:9} {m['losses'][-1]:>15.6f} {figures}", flush=True)
            if "error" in double:
                found.append(f"{name} {optimizer}: {double['error']}")
            if any("error" in m for m in [double, *made.values()]):
                continue
            for way in KEEP:
                if why := differ(made[way]["losses"], made["eager"]["losses"], double["losses"]):
                    found.append(f"{name} {optimizer} {way}: {why}")
            own = made["restride"]
            if own["losses"] != made["all"]["losses"]:
                found.append(f"{name} {optimizer}: other losses with all kept")
            for way in (*theirs, "all"):
                if own["peak"] >= made[way]["peak"]:
                    found.append(f"{name} {optimizer}: a peak of {own['peak']} bytes, {way} {made[way]['peak']}")
    write_json(options.json, rows)
    if options.markdown:
        Path(options.markdown).write_text(markdown(rows, options))
    for line in found:
        print(line)
    print(f"{len(rows)} runs, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Hold TorchScript archives to torch.jit.load: traced and scripted models through interp, functional and plan.

Models of torchvision and timm are made with random weights, traced and scripted, and saved to a scratch directory;
restride runs each archive on the inputs that PyTorch ran it on. `silero` is the archive of the package silero-vad, which pip downloads
once: 100 chunks at 16 and at 8 kHz, each run from the state that the one before left. `written` are scripted programs in which data
decides: their functional programs as torch.export.load reads and runs them, on inputs that take different branches. `--converter`
prints what PyTorch's own converter and restride make of fixtures/torchscript and of some models. Names select models.

Needs PyTorch, torchvision and timm. Exit status 1 when a result differs or an archive of the list is refused; the last line counts.
"""

import json
import math
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import List  # noqa: UP035 (what scripting knows)

import numpy as np
import timm
import torch
import torchvision

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, Restride
from lib.driver import parser, scratch
from lib.tensor_files import Tensors

warnings.simplefilter("ignore")
V = torchvision.models
WAYS = ("interp", "functional", "plan")


def classify(make, size=64, **options):
    return lambda: (make(weights=None, **options).eval(), (torch.randn(1, 3, size, size),))


def timm_model(name, size=64):
    def make():
        model = timm.create_model(name, pretrained=False).eval()
        own = size or model.default_cfg["input_size"][1]
        return model, (torch.randn(1, 3, own, own),)

    return make


def segment(make):
    return lambda: (make(weights=None, weights_backbone=None, num_classes=4).eval(), (torch.randn(1, 3, 64, 64),))


class Detector(torch.nn.Module):
    """A detector of one image, with its results as a list. Scripted detectors return their losses, too."""

    keys: List[str]  # noqa: UP006

    def __init__(self, model, keys):
        super().__init__()
        self.model, self.keys = model, ["boxes", "labels", "scores", *keys]

    def forward(self, image):
        found = self.model([image])
        if torch.jit.is_scripting():  # noqa: SIM108 (scripting leaves the other side out)
            one = found[1][0]
        else:
            one = found[0]
        return [one[key] for key in self.keys]


def calibrate(model):
    """Sets the statistics of normalisations, without which the features of an untrained network are all alike."""
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.reset_running_stats()
            part.momentum = None
    features = model.backbone.train()(torch.rand(2, 3, 128, 160))
    model.head.train()(list(features.values()))


def detect(make, *keys, size=(64, 80), **options):
    """A detector whose scores differ: PyTorch's sort leaves equal ones in an order that depends on the processor."""

    def model():
        made = make(weights=None, weights_backbone=None, **{"num_classes": 7} | options).eval()
        with torch.no_grad():
            if hasattr(made, "head"):
                calibrate(made)
            made.eval()
        return Detector(made, keys).eval(), (torch.rand(3, *size),)

    return model


class Recurrent(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = getattr(torch.nn, kind)(8, 12, 2, batch_first=True, bidirectional=True)
        self.out = torch.nn.Linear(24, 3)

    def forward(self, x):
        return self.out(self.layers(x)[0])


def recurrent(kind):
    return lambda: (Recurrent(kind).eval(), (torch.randn(2, 5, 8),))


MODELS = {
    "resnet18": classify(V.resnet18),
    "mobilenet_v2": classify(V.mobilenet_v2),
    "mobilenet_v3_small": classify(V.mobilenet_v3_small),
    "squeezenet1_1": classify(V.squeezenet1_1),
    "shufflenet": classify(V.shufflenet_v2_x0_5),
    "densenet121": classify(V.densenet121),
    "mnasnet": classify(V.mnasnet0_5),
    "efficientnet_b0": classify(V.efficientnet_b0),
    "regnet": classify(V.regnet_y_400mf),
    "convnext_tiny": classify(V.convnext_tiny),
    "vit_b_32": classify(V.vit_b_32, image_size=64),
    "swin_t": classify(V.swin_t),
    "alexnet": classify(V.alexnet),
    "fcn": segment(V.segmentation.fcn_resnet50),
    "deeplab": segment(V.segmentation.deeplabv3_mobilenet_v3_large),
    "lraspp": segment(V.segmentation.lraspp_mobilenet_v3_large),
    "r3d": lambda: (V.video.r3d_18(weights=None).eval(), (torch.randn(1, 3, 4, 32, 32),)),
    "mc3": lambda: (V.video.mc3_18(weights=None).eval(), (torch.randn(1, 3, 4, 32, 32),)),
    "fasterrcnn": detect(V.detection.fasterrcnn_mobilenet_v3_large_320_fpn, min_size=64, max_size=96),
    "retinanet": detect(
        V.detection.retinanet_resnet50_fpn, min_size=64, max_size=96, score_thresh=0.0, detections_per_img=20
    ),
    "fcos": detect(V.detection.fcos_resnet50_fpn, min_size=64, max_size=96, score_thresh=0.0, detections_per_img=20),
    "maskrcnn": detect(V.detection.maskrcnn_resnet50_fpn, "masks", min_size=64, max_size=96),
    "keypointrcnn": detect(
        V.detection.keypointrcnn_resnet50_fpn, "keypoints", "keypoints_scores", num_classes=2, min_size=64, max_size=96
    ),
    "ssdlite": detect(V.detection.ssdlite320_mobilenet_v3_large, detections_per_img=20),
    "rnn_LSTM": recurrent("LSTM"),
    "rnn_GRU": recurrent("GRU"),
    "rnn_RNN": recurrent("RNN"),
    "transformer": lambda: (
        torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2).eval(),
        (torch.randn(2, 5, 16),),
    ),
    **{
        f"timm_{n}": timm_model(n)
        for n in ("ghostnet_100", "hrnet_w18_small", "edgenext_xx_small", "mobilevit_xxs", "tf_efficientnet_lite0")
    },
    **{
        f"timm_{n}": timm_model(n)
        for n in ("fastvit_t8", "repvgg_a0", "convmixer_768_32", "gcresnet33ts", "poolformer_s12", "dla34")
    },
    **{
        f"timm_{n}": timm_model(n, None)
        for n in ("deit_tiny_patch16_224", "levit_128s", "resmlp_12_224", "visformer_tiny")
    },
}
# The models of the table of docs/torchscript.md.
CONVERTED = (
    *("resnet18", "mobilenet_v3_small", "vit_b_32", "swin_t", "lraspp", "fasterrcnn", "maskrcnn", "keypointrcnn"),
    *("retinanet", "fcos", "ssdlite", "rnn_LSTM", "rnn_GRU", "transformer", "timm_mobilevit_xxs", "timm_levit_128s"),
)
# What scripting refuses, or takes minutes: traces alone.
TRACED = {"timm_hrnet_w18_small"}


def flat(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in flat(item)]
    return [] if value is None else [value]


def differs(got, want, noise=0.0):
    """How numbers differ, beyond rounding; `noise` is how far PyTorch's own kernels are apart."""
    want = want.detach().numpy() if isinstance(want, torch.Tensor) else np.asarray(want)
    if got.shape != want.shape:
        return f"sizes {got.shape}, not {want.shape}"
    if want.dtype.kind not in "fc":
        return None if (got == want).all() else "other numbers"
    bound = 1e-5 + 1e-5 * (np.abs(want).max() if want.size else 0) + 2 * noise
    return (
        None if np.allclose(got, want, rtol=1e-4, atol=bound, equal_nan=True) else f"off by {np.abs(got - want).max()}"
    )


def run_once(restride, archive, given, want, out, way, *more, noise=None):
    """What is wrong with the results of one run, if anything; `noise` is of each result."""
    done = restride.run(archive, way, out, *more, inputs=given)
    if not done:
        return f"{way}: {done.line[:200]}"
    with np.load(out) as arrays:
        names = sorted((n for n in arrays if n.startswith("output.")), key=lambda n: int(n[7:]))
        got = [arrays[n] for n in names]
    if len(got) != len(want):
        return f"{way}: {len(got)} results, not {len(want)}"
    for i, (a, b) in enumerate(zip(got, want)):
        if why := differs(a, b, noise[i] if noise else 0.0):
            return f"{way}: output {i}: {why}"
    return None


def apart(a, b):
    """For each result, how far PyTorch's two ways are apart."""
    same = len(a) == len(b) and all(getattr(x, "shape", 0) == getattr(y, "shape", 0) for x, y in zip(a, b))
    floats = [same and isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel() > 0 for x in a]
    return [(x - y).abs().max().item() if f else 0.0 for x, y, f in zip(a, b, floats)]


def run(restride, archive, inputs, want, noise, directory):
    """What is wrong with an archive's results, if anything."""
    given = directory / "inputs.npz"
    np.savez(given, **{name: tensor.numpy() for name, tensor in inputs.items()})
    for way in WAYS:
        if why := run_once(restride, archive, given, want, directory / "outputs.npz", way, noise=noise):
            return why
    return None


# The package whose archive is run as it is shipped.
SILERO = "silero-vad==6.2.3"


def silero_archive():
    """The shipped archive, downloaded once."""
    folder = Path.home() / ".cache" / "restride" / SILERO.replace("==", "-")
    archive = folder / "silero_vad.jit"
    if not archive.exists():
        with scratch() as directory:
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(directory), SILERO]
            subprocess.run(pip, check=True)
            (wheel,) = directory.glob("*.whl")
            folder.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(wheel) as z:
                archive.write_bytes(z.read("silero_vad/data/silero_vad.jit"))
    return archive


def silero(restride, directory, chunks=100):
    """(name, what is wrong) of the shipped archive at each rate: chunks one after another, through each way."""
    archive = silero_archive()
    for rate, size in ((16000, 512), (8000, 256)):
        for way in WAYS:
            model, why = torch.jit.load(str(archive)), None
            torch.manual_seed(2)
            state = directory / "state.npz"
            state.unlink(missing_ok=True)
            for at in range(chunks):
                # Voice-like: a tone that comes and goes in noise.
                time = (torch.arange(size) + at * size) / rate
                chunk = torch.sin(time * 6.283 * 220) * torch.sin(time * 3) + 0.05 * torch.randn(size)
                with torch.no_grad():
                    want = flat(model(chunk[None], rate))
                given = directory / "inputs.npz"
                np.savez(given, x=chunk[None].numpy(), sr=np.array(rate))
                more = ("--state", state) if at else ()
                if why := run_once(restride, archive, given, want, state, way, *more):
                    why = f"chunk {at}: {why}"
                    break
            yield f"silero {rate} Hz, {way}, {at + 1} chunks", why


def archives(name, directory):
    """The saved forms of a model, with inputs, results, and how far PyTorch's kernels are apart."""
    torch.manual_seed(1)
    model, inputs = MODELS[name]()
    for form in ("trace",) if name in TRACED else ("trace", "script"):
        path = directory / f"{name}.{form}.pt"
        with torch.no_grad():
            if form == "trace":
                made = torch.jit.trace(model, inputs, check_trace=False, strict=False)
            else:
                try:
                    made = torch.jit.script(model)
                except Exception:
                    continue
            made.save(str(path))
            loaded = torch.jit.load(str(path))
            names = [a.name for a in loaded.forward.schema.arguments[1:]]
            want = flat(loaded(*inputs))
            # Detectors select and resize by numbers that kernels round differently: oneDNN's and PyTorch's own.
            with torch.backends.mkldnn.flags(enabled=False):
                noise = apart(want, flat(loaded(*inputs)))
            yield path, dict(zip(names, inputs)), want, noise


class Written(torch.nn.Module):
    """Numbers and truth values from data, in branches, in loops and as results."""

    def forward(self, x: torch.Tensor):
        some, every = bool((x > 0).any()), bool((x > 0).all())
        best, at, flip = -100.0, -1, False
        for i in range(x.size(0)):
            total = float(x[i].sum())
            if total > best:
                best, at = total, i
        n, k = int(x.max().item()), 0
        while k < n:
            k += 2
            flip = not flip
        if x.sum() > 20:
            return x + 1, best, at, some, (n & 1) + k
        elif (not every and x.min() < -5) or flip:
            return x - 1, math.sqrt(abs(best)), math.floor(best / 2), every, n | 4
        y = x * best
        return y, best, abs(n), flip, k


class Early(torch.nn.Module):
    """Loops that are left from inside, with what was found."""

    def forward(self, x: torch.Tensor):
        found: List[torch.Tensor] = [x[0], x[1]]  # noqa: UP006
        steps, i = 0, 0
        halves: List[torch.Tensor] = []  # noqa: UP006
        for k in range(5):
            x = x * 0.5
            halves.append(x[k % 3])
            if x.abs().sum() < 8:
                break
        found[1] = torch.stack(halves).sum(0) + len(halves)
        kept = [x[0]]
        for k in range(x.size(0)):
            if x[k].sum() > 0:
                kept.append(x[k] // 1)
        found[0] = found[0] + torch.stack(kept).sum(0) * len(kept)
        while found[0].abs().sum() > 1:
            found = [found[0] * 0.5, found[0] + found[1]]
            steps += 1
            if steps > 3 and found[1].sum() > 0:
                break
        while i < x.size(0):
            if x[i].sum() > 0:
                return found, steps, (x[i], i)
            i += 1
        return found, steps, (x[0] * 2, -1)


def written(restride, directory):
    """(name, what is wrong) of each program in which data decides, as PyTorch reads and runs what restride writes of it."""
    torch.manual_seed(3)
    x = torch.arange(-6.0, 6.0).reshape(4, 3)
    inputs = (x, -x, x.abs(), x * 0, x - 20, x / 8, torch.randn(4, 3))
    for module in (Written(), Early()):
        name = type(module).__name__
        archive, file, given = (directory / f"{name}{end}" for end in (".pt", ".pt2", ".npz"))
        torch.jit.script(module).save(str(archive))
        np.savez(given, x=x.numpy())
        done = restride("functionalize", archive, "--inputs", given, "-o", file)
        if not done:
            yield name, done.line[:200]
            continue
        loaded = torch.export.load(file).module()
        for i, x in enumerate(inputs):
            want, got = flat(module(x)), flat(loaded(x))
            kinds = [type(a) for a in got] == [type(a) for a in want]
            wrong = [why for a, b in zip(got, want) if (why := differs(np.asarray(a), b))] if kinds else ["other kinds"]
            yield f"{name}, input {i}", wrong[0] if wrong else None


def copies(value):
    """The same inputs on memory of their own."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    return type(value)(copies(v) for v in value) if isinstance(value, (list, tuple)) else value


def converted(loaded, inputs, want, noise=None):
    """What PyTorch's converter makes of a program."""
    from torch._export.converter import TS2EPConverter

    try:
        made = TS2EPConverter(loaded, copies(inputs)).convert()
        again = [a.detach() if isinstance(a, torch.Tensor) else a for a in flat(made.module()(*copies(inputs)))]
    except Exception as e:
        # Some errors begin with the graph.
        said = " ".join(str(e).split())
        said = said[said.find("Exception:") :] if "Exception:" in said else said
        return "refuses: " + said[:90].replace("|", "/")
    noise = noise or [0.0] * len(want)
    if len(again) != len(want):
        return f"{len(again)} results, not {len(want)}"
    wrong = [why for a, b, n in zip(again, want, noise) if (why := differs(np.asarray(a), b, n))]
    return f"other results: {wrong[0]}" if wrong else "converts"


def fixture_inputs(path):
    """The arguments of a fixture's call: inputs in the order of the parameters, a list from the leaves that are left."""
    leaves = Tensors(json.loads(path.with_suffix("").with_suffix(".inputs.json").read_text())).all()
    schema = torch.jit.load(str(path)).forward.schema.arguments[1:]
    lists = [i for i, a in enumerate(schema) if str(a.type).startswith("List")]
    inputs = tuple(leaves) if not lists else (*leaves[: lists[0]], leaves[lists[0] :])
    return inputs + tuple(a.default_value for a in schema[len(inputs) :])


def converter(restride, names):
    """What PyTorch's converter and restride make of the fixtures and of models, as a table. The number that restride gets wrong."""
    failed = 0

    def row(name, says, wrong):
        nonlocal failed
        failed += wrong is not None
        print(f"| {name} | {says} | {wrong or 'runs, agrees'} |", flush=True)

    print("| program | `TS2EPConverter` | restride |\n|---|---|---|")
    with scratch() as directory:
        for path in sorted((ROOT / "fixtures" / "torchscript").glob("*ed_*.pt")):
            inputs = fixture_inputs(path)
            with torch.no_grad():
                want = flat(torch.jit.load(str(path))(*copies(inputs)))
            says = converted(torch.jit.load(str(path)), inputs, want)
            file = path.with_suffix("").with_suffix(".inputs.json")
            each = (run_once(restride, path, file, want, directory / "outputs.npz", way) for way in WAYS)
            row(path.stem, says, next(filter(None, each), None))
        for name in names or CONVERTED:
            for path, inputs, want, noise in archives(name, directory):
                says = converted(torch.jit.load(str(path)), tuple(inputs.values()), want, noise)
                row(path.stem, says, run(restride, path, inputs, want, noise, directory))
                path.unlink()
    return failed


def main():
    options = parser(__doc__, "names", "--binary")
    options.add_argument("--converter", action="store_true", help="print the table of docs/torchscript.md")
    args = options.parse_args()
    restride = Restride(args.binary)
    if args.converter:
        sys.exit(converter(restride, args.names) > 0)
    failed = count = 0
    with scratch() as directory:
        directory = Path(directory)
        several = {"silero": silero, "written": written}
        for name in args.names or (*MODELS, *several):
            if name in several:
                for label, why in several[name](restride, directory):
                    count += 1
                    failed += why is not None
                    print(f"{label}: {why or 'ok'}", flush=True)
                continue
            for path, inputs, want, noise in archives(name, directory):
                count += 1
                why = run(restride, path, inputs, want, noise, directory)
                failed += why is not None
                print(f"{path.stem}: {why or 'ok'}", flush=True)
                path.unlink()
    print(f"{count} archives, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

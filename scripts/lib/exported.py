"""Exported programs in PyTorch: which are asked for, what they write, what calls leave and allocate. Needs torch."""

import contextlib
import copy
import fnmatch
import json
import logging
import sys
import warnings
from pathlib import Path

from lib.driver import forked, patterns_of
from lib.pt2 import Pt2
from lib.tensor_files import Tensors

import numpy as np
import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

# Operators that write running_mean and running_var, when given and when this argument is set, without saying so in their schemas.
SILENT_WRITERS = {
    "aten::batch_norm": "training",
    "aten::native_batch_norm": "training",
    "aten::cudnn_batch_norm": "training",
    "aten::_batch_norm_impl_index": "training",
    "aten::instance_norm": "use_input_stats",
}


def libraries():
    """Import the packages that register operators and output classes of programs."""
    for name in ("torchvision", "transformers"):
        with contextlib.suppress(ImportError):
            __import__(name)


def short(error):
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


# ---------------------------------------------------------------------------------- programs


def program_options(p):
    """Add the options that `programs` reads."""
    p.add_argument("paths", nargs="*", help=".pt2 files, or folders of them")
    p.add_argument("--match", action="append", default=[], help="of a zoo, names that match this pattern")
    p.add_argument("--from", dest="file", metavar="FILE", help="patterns, one a line")


def programs(o):
    """(name, path, random) of the programs that the options ask for."""
    patterns = o.match + (patterns_of(o.file) if o.file else [])
    for folder in map(Path, o.paths):
        index = folder / "index.jsonl"
        if not folder.is_dir():
            yield folder.stem, str(folder), False
        elif index.exists():
            rows = {row["name"]: row for row in map(json.loads, index.open())}
            for name, row in rows.items():
                zoo = "/" in name
                if row["ok"] and (not patterns or not zoo or any(fnmatch.fnmatchcase(name, q) for q in patterns)):
                    yield name, str(folder / (row["file"] + ".pt2")), bool(row.get("random"))
        else:
            for file in sorted(folder.glob("*.pt2")):
                case = file.with_suffix(".json")
                # A case that eager refuses leaves nothing to compare with; custom operators are not registered here.
                if case.exists() and "after" not in json.loads(case.read_text()):
                    continue
                if not any(t.startswith("torch.ops.abugs.") for t in Pt2.read(file).targets()):
                    yield file.stem, str(file), False


def case_inputs(path):
    """The inputs of the alias case that a program belongs to, if it belongs to one."""
    case = Path(path).with_suffix(".json")
    return json.loads(case.read_text())["inputs"] if case.exists() else None


def as_example(given, example):
    """A case's inputs in the structure of the sample inputs, sharing storage as the case says."""
    values = Tensors(given).all()
    leaves, spec = pytree.tree_flatten(example)
    if len(values) != len(leaves):
        raise ValueError(f"{len(values)} inputs in the case, {len(leaves)} in the program")
    return pytree.tree_unflatten(values, spec)


def module_of(text, name="Program"):
    """A module whose `forward` is this text."""
    space = {"torch": torch}
    exec(text, space)
    return type(name, (torch.nn.Module,), {"forward": space["forward"]})()


def each_program(o, judge):
    """The rows that `judge(path, random)` gives for the programs asked for, with their names, and how many have none."""
    libraries()
    rows, pure = [], 0
    for (name, _, _), row in forked(lambda _, path, random: judge(path, random), programs(o), o.jobs):
        if row is None:
            pure += 1
            continue
        rows.append(dict(name=name) | row)
        statuses = [row["status"]] if "status" in row else [s for s, _ in row["results"].values()]
        print(f"{name}: {', '.join(statuses)}", file=sys.stderr, flush=True)
    return rows, pure


# ---------------------------------------------------------------------------------- graphs


def graphs(ep):
    """The graph modules of a program, bodies included."""
    return [m for m in ep.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]


def writes(node):
    """Whether a call of this graph writes one of its arguments."""
    op = node.target
    if node.op != "call_function" or not isinstance(op, torch._ops.OpOverload):
        return False
    if any(a.alias_info is not None and a.alias_info.is_write for a in op._schema.arguments):
        return True
    if op._schema.name not in SILENT_WRITERS:
        return False
    names = [a.name for a in op._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | node.kwargs
    return given.get("running_mean") is not None and given.get(SILENT_WRITERS[op._schema.name]) is not False


def writers(ep):
    """The mutating calls of a program, in words, bodies included."""
    return [f"{n.name} = {n.target}" for g in graphs(ep) for n in g.graph.nodes if writes(n)]


# ---------------------------------------------------------------------------------- calls


def array(t):
    """A tensor as tensor files hold it."""
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    return (t.float() if t.dtype == torch.bfloat16 else t).numpy()


def reference(module, args, kwargs, user):
    """One eager run on copies: (inputs by name, what the run gave and changed), as the tensor files hold them."""
    ref, a, k = copy.deepcopy(module), copy.deepcopy(args), copy.deepcopy(kwargs)
    state = list(ref.named_buffers()) + list(ref.named_parameters())
    before = {n: v.clone() for n, v in state}
    given = list(zip(user, pytree.tree_leaves((args, kwargs)), pytree.tree_leaves((a, k))))
    out = ref(*a, **k)
    want = {f"output.{i}": array(o) for i, o in enumerate(pytree.tree_leaves(out)) if isinstance(o, torch.Tensor)}
    for n, x, y in given:
        if isinstance(x, torch.Tensor) and not torch.equal(x, y):
            want["input." + n] = array(y)
    parameters = {n for n, _ in ref.named_parameters()}
    for n, v in state:
        # A buffer that comes back in another size was given other memory, which no exported program does.
        if before[n].shape == v.shape and not torch.equal(before[n], v):
            want[f"{'parameter' if n in parameters else 'buffer'}.{n}"] = array(v)
    inputs = {n: array(x) if isinstance(x, torch.Tensor) else np.asarray(x) for n, x, _ in given if x is not None}
    return inputs, want


def calls_left(module, example):
    """The state after each of two calls of a module: {label: value} of outputs, inputs and state."""
    calls = []
    for call in (1, 2):
        args, kwargs = copy.deepcopy(example)
        before = [x if isinstance(x, torch.Tensor) else None for x in pytree.tree_leaves((args, kwargs))]
        layouts = [t if t is None else (t.size(), t.stride(), t.storage_offset()) for t in before]
        torch.manual_seed(call)
        with torch.no_grad():
            outputs = module(*args, **kwargs)
        # In the layout they came in: a program can transpose an input in place, which no file can say.
        after = [t if t is None else t.detach().as_strided(*at) for t, at in zip(before, layouts, strict=True)]
        state = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
        values = [(f"output.{i}", x) for i, x in enumerate(pytree.tree_leaves(outputs))]
        values += [(f"input {i}", t) for i, t in enumerate(after) if t is not None]
        values += state
        calls.append({name: x.detach().clone() if isinstance(x, torch.Tensor) else x for name, x in values})
    return calls


def allocated(ep, example):
    """Bytes that a call of a fresh module() allocates: its second call, since the first may set things up."""
    module = ep.module(check_guards=False)
    for _ in range(2):
        args, kwargs = copy.deepcopy(example)
        with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
            module(*args, **kwargs)
    total, events = 0, list(profiled.profiler.kineto_results.experimental_event_tree())
    while events:
        event = events.pop()
        events += event.children
        if event.tag == _EventType.Allocation:
            total += max(event.typed[1].alloc_size, 0)
    return total


def allocates_more(given, ours, example):
    """The bytes that a call of ours allocates beyond one of the given program, as a list of one line or none."""
    before, after = allocated(given, example), allocated(ours, example)
    return [f"allocates {after} bytes, the given program {before}"] if after > before else []


def differences(want, got, compare):
    """The differences between `calls_left` of the original and of ours, as lines. `compare(name, ours, theirs)` says how two
    tensors of one shape and type differ, if they do."""
    problems = []
    for call, (w, g) in enumerate(zip(want, got, strict=True), 1):
        for name, theirs in w.items():
            at = f"call {call}: {name}"
            if name not in g:
                # Constants that only the original's form needs may be gone; outputs, inputs and buffers may not.
                problems += [] if "lifted_tensor" in name else [f"{at}: missing"]
                continue
            ours = g[name]
            if not isinstance(theirs, torch.Tensor) or not isinstance(ours, torch.Tensor):
                if type(theirs) is not type(ours) or theirs != ours:
                    problems.append(f"{at}: {ours!r}, not {theirs!r}")
            elif (theirs.shape, theirs.dtype) != (ours.shape, ours.dtype):
                problems.append(f"{at}: {ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}")
            elif found := compare(name, ours, theirs):
                problems.append(f"{at}: {found}")
        # Within tolerance, ours may hold constants under names of its own.
        own = lambda name: compare is not exactly or "lifted" in name
        more = [name for name in g if name not in w and (name.startswith("output.") or not own(name))]
        problems += [f"call {call}: {name}: the original has none" for name in more]
    return problems


def exactly(_, ours, theirs):
    """A comparison for `differences`: every element is equal."""
    return None if torch.equal(ours, theirs) else f"{ours.flatten().tolist()[:8]}, not {theirs.flatten().tolist()[:8]}"


def judged(outcome, out, want, example, more):
    """(status, detail) of a file that a command wrote: PyTorch loads it, and two calls leave `want`. `more(ours)` gives further
    problems, if it finds none before."""
    if not outcome:
        return outcome.kind, outcome.line
    try:
        ours = torch.export.load(out)
        problems = differences(want, calls_left(ours.module(check_guards=False), example), exactly) or more(ours)
    except Exception as e:
        problems = [short(e)]
    return ("WRONG", problems[0]) if problems else ("ok", "")

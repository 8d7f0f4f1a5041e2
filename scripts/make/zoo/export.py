#!/usr/bin/env python3
"""Export zoo models with random weights (drawn by liven.py) and keep what real PyTorch computes for them.

  python export.py OUTDIR [PATTERN ...] [--from FILE] [--missing] [--limit SECONDS] [--list]

For each model that matches (shell patterns over names such as 'tv/*', 'hf/llama*', also one a line in FILE;
default all; with --missing only those which OUTDIR does not hold yet) writes
  OUTDIR/NAME.pt2           torch.export.export of it, un-functionalised, as torch.export.save stores it
  OUTDIR/NAME.inputs.npz    its user inputs by name
  OUTDIR/NAME.expected.npz  output.I, and input.NAME / buffer.NAME / parameter.NAME for what the run changed
and a line in OUTDIR/index.jsonl: {name, family, file, ok, random, nodes, export_s, eager_s, silent, drawn, error}; `silent` lists the
parameters that no output depends on, where autograd can tell, and `drawn` is the version of the drawing of parameters.
`random` marks programs whose outputs change with the seed, so that values cannot be compared. '/' in names becomes '__'.
Needs torch, torchvision, timm and transformers from PyPI; downloads nothing else. One forked process a model.
"""
import argparse, copy, fnmatch, json, logging, multiprocessing as mp, os, sys, time, warnings

os.environ.update(TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


def array(t):
    import torch
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    return (t.float() if t.dtype in (torch.bfloat16,) else t).numpy()


def reference(module, args, kwargs, user):
    """One eager run on copies: (inputs by name, what the run gave and changed), as the tensor files hold them."""
    import numpy as np, torch
    from torch.utils import _pytree as pytree
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


def export(name, outdir):
    import numpy as np, torch
    from torch.utils import _pytree as pytree
    import liven, models
    torch.manual_seed(0)
    family, build = models.ZOO[name]
    row = dict(name=name, family=family, file=name.replace("/", "__"), ok=False)
    try:
        d = build()
        m = d["mod"].train() if d["train"] else d["mod"].eval()
        args, kwargs = d["args"], d["kwargs"]
        liven.liven(m, args, kwargs)
        row.update(silent=liven.silent(m, args, kwargs), drawn=liven.VERSION)
        torch.manual_seed(0)
        ctx = torch.no_grad if d.get("nograd") or not d["train"] else torch.enable_grad
        t = time.time()
        with ctx():
            ep = torch.export.export(m, copy.deepcopy(args), copy.deepcopy(kwargs), dynamic_shapes=d["dyn"], strict=d.get("strict", False))
        row.update(export_s=round(time.time() - t, 2), nodes=len(ep.graph.nodes))
        path = os.path.join(outdir, row["file"])
        torch.export.save(ep, path + ".pt2")
        user = [s.arg.name for s in ep.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        run = lambda seed, mod, a, k: (torch.manual_seed(seed), [array(o) for o in pytree.tree_leaves(mod(*a, **k)) if isinstance(o, torch.Tensor)])[1]
        with torch.no_grad():
            one, two = (run(seed, copy.deepcopy(m), copy.deepcopy(args), copy.deepcopy(kwargs)) for seed in (2, 3))
        row["random"] = not all(np.array_equal(x, y, equal_nan=True) if x.dtype.kind in "fc" else np.array_equal(x, y) for x, y in zip(one, two))
        torch.manual_seed(1)
        t = time.time()
        with ctx():
            given, want = reference(m, args, kwargs, user)
        row["eager_s"] = round(time.time() - t, 3)
        np.savez(path + ".inputs.npz", **given)
        np.savez(path + ".expected.npz", **want)
        row["ok"] = True
    except BaseException as e:
        row["error"] = f"{type(e).__name__}: {e}".splitlines()[0][:300]
    with open(os.path.join(outdir, "index.jsonl"), "a") as f:
        f.write(json.dumps(row) + "\n")
    os._exit(0)


def exported(outdir):
    """The names whose last row in OUTDIR's index is a success with today's parameters and whose files are there."""
    import liven
    index, ok = os.path.join(outdir, "index.jsonl"), {}
    for line in open(index) if os.path.exists(index) else ():
        row = json.loads(line)
        files = (os.path.join(outdir, row["file"]) + end for end in (".pt2", ".inputs.npz", ".expected.npz"))
        ok[row["name"]] = row["ok"] and row.get("drawn") == liven.VERSION and all(map(os.path.exists, files))
    return {n for n, good in ok.items() if good}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("outdir")
    p.add_argument("patterns", nargs="*")
    p.add_argument("--from", dest="file", help="patterns, one a line, '#' starts a comment")
    p.add_argument("--missing", action="store_true", help="skip what OUTDIR holds already")
    p.add_argument("--limit", type=float, default=120., help="seconds a model")
    p.add_argument("--list", action="store_true", help="print the names and stop")
    o = p.parse_intermixed_args()
    if o.file:
        o.patterns += [q for q in (line.split("#")[0].strip() for line in open(o.file)) if q]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    done = exported(o.outdir) if o.missing else set()
    import torch, torchvision, timm, transformers, models
    for q in o.patterns:
        if not fnmatch.filter(models.ZOO, q):
            p.error(f"no model is called {q}")
    names = [n for n in models.ZOO if n not in done and any(fnmatch.fnmatchcase(n, q) for q in o.patterns or ["*"])]
    if o.list:
        print("\n".join(names)); return
    os.makedirs(o.outdir, exist_ok=True)
    fork = mp.get_context("fork")
    for i, n in enumerate(names):
        child = fork.Process(target=export, args=(n, o.outdir)); t = time.time(); child.start(); child.join(o.limit)
        if child.is_alive():
            child.kill(); child.join()
            with open(os.path.join(o.outdir, "index.jsonl"), "a") as f:
                f.write(json.dumps(dict(name=n, family=models.ZOO[n][0], file=n.replace("/", "__"), ok=False, error=f"over {o.limit:.0f} s")) + "\n")
        print(f"[{i + 1}/{len(names)}] {n} {time.time() - t:.1f} s", flush=True)


if __name__ == "__main__":
    main()

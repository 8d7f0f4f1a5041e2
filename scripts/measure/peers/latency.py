#!/usr/bin/env python3
"""Measure the latency and the peak memory of eleven models beside eager PyTorch and the compilers that people use instead.

  latency.py [MODEL ...] [--threads 1,2] [--ways eager,compile,...] [--rounds N] [--rows F ...] [--json F] [--write-docs]

Use the python that scripts/torch-env.sh prints. Each way has a process of its own, made once a model; they run in turn, for
--rounds rounds, so that other load on the machine slows all alike. A time is the median over the rounds of the fastest run in
each. The ways besides PyTorch's own have the environments of run.py's targets; one that cannot be made or refuses a model
leaves its cell empty, with a note. The last table says where restride's time goes: the operators of `restride bench` with
the largest shares, in GFLOP/s beside a plain product of the same run.

`--write-docs` puts the tables into docs/speed.md. `--rows` takes rows of earlier runs' --json instead of measuring, so that a busy
machine can measure model by model.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from environments import HERE, environment, model_names, output_of, torch_python, torch_version, vectors, versions
from memory import size

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib.command import ROOT, Restride
from lib.driver import finish, markdown, parser, replace_between, scratch

DOCS = ROOT / "docs/speed.md"
# Each kind of vectors has tables of its own.
BEGIN, END = "<!-- begin: written by scripts/measure/peers/latency.py --write-docs, {} -->", "<!-- end -->"
# Title, name of the environment.
WAYS = {
    "eager": ("PyTorch eager", ""),
    "compile": ("torch.compile", ""),
    "aoti": ("AOTInductor", ""),
    "xnnpack": ("ExecuTorch, XNNPACK", "executorch"),
    "onnx": ("ONNX Runtime", "onnxruntime"),
}
SECONDS = 1.0


class Worker:
    """A process of latency_worker.py that waits for rounds."""

    def __init__(self, python, name, way, threads, log):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads))
        command = [python, HERE / "latency_worker.py", name, way, str(threads)]
        self.log = open(log, "w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env
        )

    def ready(self):
        """Whether it built the model; others print on its output too."""
        return any(line.strip() == "ready" for line in iter(self.process.stdout.readline, ""))

    def why(self):
        self.log.seek(0)
        lines = [line for line in self.log.read().splitlines() if line.strip()]
        return lines[-1][:160] if lines else "ended without a word"

    def round(self):
        print(SECONDS, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


def ours(restride, program, threads, out):
    done = restride("bench", program, "--random", "1", "--threads", threads, "--json", out)
    if not done:
        raise SystemExit(f"bench {program.stem}: {done.line}")
    return json.loads(out.read_text())


def peak_of(restride, program, threads):
    """Bytes of a process that runs the program once."""
    command = [restride.path, "run", program, "--random", "1", "--threads", str(threads)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    return used.ru_maxrss * 1024


def measured(name, threads, pythons, restride, folder, rounds):
    """Times in milliseconds and peaks in bytes by way, notes, and the profile of restride's run."""
    program = folder / f"{name}.pt2"
    workers, notes, times, peaks, profile = {}, [], {"restride": []}, {}, None
    for way, python in pythons.items():
        workers[way] = Worker(python, name, way, threads, folder / f"{name}.{way}.log")
        if not workers[way].ready():
            notes.append(f"`{name}`, {WAYS[way][0]}: {workers[way].why()}")
            workers.pop(way).end()
    for _ in range(rounds):
        found = ours(restride, program, threads, folder / "bench.json")
        times["restride"].append(found["time_us"]["plan"]["fastest"] / 1e3)
        profile = found["profile"]
        for way, worker in workers.items():
            found = worker.round()
            times.setdefault(way, []).append(found["fastest"])
            peaks[way] = found["peak"]
    for worker in workers.values():
        worker.end()
    peaks["restride"] = peak_of(restride, program, threads)
    times = {way: statistics.median(each) for way, each in times.items()}
    return dict(name=name, threads=threads, times=times, peaks=peaks, notes=notes, profile=profile)


def ratio(row):
    others = [t for way, t in row["times"].items() if way != "restride"]
    return f"{row['times']['restride'] / min(others):.2f}" if others else ""


def latency_table(rows, ways):
    header = ["model", "restride", *(WAYS[w][0] for w in ways), "restride / fastest other"]
    cell = lambda row, way: f"{row['times'][way]:.3g}" if way in row["times"] else "–"
    return markdown(header, [[f"`{r['name']}`", *(cell(r, w) for w in ("restride", *ways)), ratio(r)] for r in rows])


def memory_table(rows, ways):
    header = ["model", "restride", *(WAYS[w][0] for w in ways)]
    cell = lambda row, way: size(row["peaks"][way]) if way in row["peaks"] else "–"
    return markdown(header, [[f"`{r['name']}`", *(cell(r, w) for w in ("restride", *ways))] for r in rows])


def profile_table(rows):
    lines = []
    for row in rows:
        profile = row["profile"]
        if not profile:
            continue
        total = sum(o["time_us"] for o in profile["operators"]) or 1
        largest = []
        for o in profile["operators"][:4]:
            rate = f", {2e-3 * o['macs'] / o['time_us']:.0f} GFLOP/s" if o["macs"] and o["time_us"] else ""
            largest.append(
                f"`{o['operator'].split('.')[1] if '.' in o['operator'] else o['operator']}` "
                f"{100 * o['time_us'] / total:.0f} %{rate}"
            )
        plain = 2e-9 * profile["machine"]["product_macs_per_second"]
        lines.append([f"`{row['name']}`", "; ".join(largest), f"{plain:.0f} GFLOP/s"])
    return markdown(["model", "operators with the largest shares", "a plain product"], lines)


def text_of(rows, ways, said, kind):
    out = [f"### {kind}", "", said, ""]
    for threads in sorted({r["threads"] for r in rows}):
        these = [r for r in rows if r["threads"] == threads]
        out += [f"#### Milliseconds a run, {threads} thread{'s' * (threads > 1)}", "", *latency_table(these, ways)]
    first = [r for r in rows if r["threads"] == rows[0]["threads"]]
    out += ["#### Peak memory of the process", "", *memory_table(first, ways)]
    out += ["#### Where restride's time goes", "", *profile_table(first)]
    if notes := sorted({n for r in rows for n in r["notes"]}):
        out += ["Left out:", "", *(f"- {n}" for n in notes), ""]
    return "\n".join(out).rstrip() + "\n"


def main():
    p = parser(__doc__, "--binary", "--timeout", "--rounds", "--json", "--write-docs", timeout=600.0)
    p.add_argument("models", nargs="*")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--ways", default=",".join(WAYS))
    p.add_argument("--rows", nargs="+", type=Path, default=[])
    o = p.parse_intermixed_args()
    restride, torch = Restride(o.binary, o.timeout), torch_python()
    listed = model_names(torch)
    if unknown := set(o.models) - set(listed) or set(o.ways.split(",")) - {"", *WAYS}:
        p.error(f"no model or way {', '.join(sorted(unknown))}")
    pythons = {}
    for way in filter(None, o.ways.split(",")):
        python, missing = environment(WAYS[way][1], torch)
        if missing:
            print(f"{WAYS[way][0]}: {missing}", file=sys.stderr)
        else:
            pythons[way] = python
    rows = [row for file in o.rows for row in json.loads(file.read_text())["rows"]]
    with scratch() as folder:
        for name in [] if o.rows else o.models or listed:
            subprocess.run([torch, HERE / "models.py", folder, name], check=True)
            for threads in map(int, o.threads.split(",")):
                rows.append(measured(name, threads, pythons, restride, folder, o.rounds))
                times = "  ".join(f"{way} {t:.3g}" for way, t in rows[-1]["times"].items())
                print(f"{name}, {threads}: {times}  ({ratio(rows[-1])})", file=sys.stderr, flush=True)
            # One model's files at a time: the weights of all are over a gigabyte.
            for file in folder.iterdir():
                file.unlink()
    rows.sort(key=lambda r: (r["threads"], listed.index(r["name"])))
    installed = ", ".join(versions(pythons[w], WAYS[w][1]) for w in pythons if WAYS[w][1])
    said = f"PyTorch {torch_version(torch)}{', ' + installed if installed else ''}; f32, batch 1, on {os.cpu_count()} cores."
    kind = vectors(output_of(torch, "import torch; print(torch.backends.cpu.get_cpu_capability())"))
    text = text_of(rows, list(pythons), said, kind)
    print(text)
    if o.write_docs:
        replace_between(DOCS, BEGIN.format(kind), END, f"\n{text}\n")
    return finish(len(rows), 0, o.json, ran=True, rows=rows)


if __name__ == "__main__":
    sys.exit(main())

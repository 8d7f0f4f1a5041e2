#!/usr/bin/env python3
"""Run the command on damaged files: every run ends with status 0, 1 or 2, in time and in 4 GiB of address space.
Work on large tensors may take longer.

A case is a number. It chooses a file of `fixtures` or the filetests, or a compiled one with its plan; the level of the damage
(bytes, zip, JSON, pickle, text, tensors, plan, an archive of torch.jit.save, a printed graph; scripts/check/mutations.py); and a
command with its options. A panic, a signal, another exit status and a run over time are failures; each kind is printed once, with its
first case. `--show CASE` makes one case again, runs it, and prints how it ends.

Standard library only. Exit status 1 when a case fails; the last line is `N runs, N failed`.
"""

import collections
import itertools
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import mutations as m

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib.command import ROOT, Restride
from lib.driver import parser, print_table, scratch, seeds, write_json

ADDRESS_SPACE = 4 << 30
LARGEST_SEED = 80_000
# Time is counted in the process's own seconds, so that a busy machine fails nothing; a run that waits forever ends after ten times that.
PATIENCE = 10
# Bytes of a tensor or an arena from which a run may take more than its time.
LARGE_WORK = 32 << 20


# ---------------------------------------------------------------------------------- the damage


def files(pattern):
    """(name, contents) of the small files that match."""
    small = (f for f in sorted(ROOT.glob(pattern), key=str) if f.stat().st_size <= LARGEST_SEED)
    return [(str(f.relative_to(ROOT)), f.read_bytes()) for f in small]


class Seeds:
    """The files that cases begin with, and what of one may be put into another."""

    def __init__(self, restride, directory):
        self.archives = [f for f in files("fixtures/**/*.pt2") if zipfile.is_zipfile(ROOT / f[0])]
        self.texts = files("crates/restride-testing/filetests/**/*.fx") + files("fixtures/hostile/*.fx")
        # Files that are too much for a limit are tests of their own (crates/restride-cli/tests/hostile.rs).
        self.texts = [t for t in self.texts if "hang-" not in t[0]]
        self.programs = dict(self.archives)
        self.inputs = []
        for name, data in files("fixtures/**/*.inputs.npz"):
            program = name.replace(".inputs.npz", ".pt2")
            if program in self.programs:
                self.inputs.append((program, "npz", data))
                if tensors := m.safetensors_of(data):
                    self.inputs.append((program, "safetensors", tensors))
        for name, data in files("fixtures/alias/*.json"):
            if name.replace(".json", ".pt2") in self.programs:
                self.inputs.append((name.replace(".json", ".pt2"), "json", data))
        # Programs of torch.jit.save and printed graphs, with the inputs that give them types.
        folder = "fixtures/torchscript/"
        given = {name.replace(".inputs.json", ""): data for name, data in files(folder + "**/*.inputs.json")}
        stem = lambda name: name.rsplit(".", 1)[0]
        self.scripted = [(stem(n), data) for n, data in files(folder + "**/*.pt") if stem(n) in given]
        self.pasted = [(stem(n), data) for n, data in files(folder + "**/*.txt") if stem(n) in given]
        self.given = given
        code = [c.decode() for _, data in self.scripted for n, c in m.zip_entries(data) if n.endswith(".py")]
        self.python = m.Text(code + [data.decode() for _, data in self.pasted])
        self.planned = list(self.with_plans(restride, directory))
        self.strings = set()
        for _, data in self.archives[::4]:
            for entry, content in m.zip_entries(data):
                if entry.endswith(".json"):
                    self.strings |= strings(json.loads(content))
        self.json = m.Json(self.strings)
        self.text = m.Text([data.decode() for _, data in self.texts])

    def with_plans(self, restride, directory):
        """Programs compiled with their plans."""
        chosen = [f for f in self.archives if f[0].startswith(("fixtures/pt2/", "fixtures/examples/"))] + self.archives[
            ::10
        ]
        for i, (name, _) in enumerate(chosen):
            out = directory / f"planned-{i}.pt2"
            if restride("compile", ROOT / name, "-o", out).kind == "ok":
                yield name, out.read_bytes()


def strings(value):
    if isinstance(value, str):
        return {value} if len(value) < 80 else set()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = set(value) if isinstance(value, dict) else set()
    return found.union(*map(strings, inner))


def is_json(name):
    return name.endswith(".json")


LEVELS = ["bytes", "zip", "json", "pickle", "text", "tensors", "plan", "torchscript", "pasted"]


def damaged(rng, seeds, levels=LEVELS):
    """The level, the program's file name and contents, more options, and whose contents the inputs are."""
    level = rng.choices(LEVELS, [8, 10, 25, 10, 30, 9, 8, 15, 15])[0]
    if level not in levels:
        return None
    if level == "torchscript":
        name, data = rng.choice(seeds.scripted)
        kind = rng.random()
        if kind < 0.5:
            data = m.in_entry(rng, data, lambda n: n.endswith(".py"), seeds.python.changed)
        elif kind < 0.8:
            data = m.in_entry(rng, data, lambda n: n.endswith((".pkl", "version")), m.in_pickle)
        else:
            data = m.in_zip(rng, data) if kind < 0.9 else m.in_bytes(rng, data)
        return level, "program.pt", data, ("inputs.json", seeds.given[name])
    if level == "pasted":
        name, data = rng.choice(seeds.pasted)
        data = seeds.python.changed(rng, data) if rng.random() < 0.9 else m.in_bytes(rng, data)
        return level, "program.txt", data, ("inputs.json", seeds.given[name])
    if level == "text":
        return level, "program.fx", seeds.text.changed(rng, rng.choice(seeds.texts)[1]), None
    if level == "tensors":
        program, kind, data = rng.choice(seeds.inputs)
        if rng.random() < 0.2:
            data = m.in_bytes(rng, data)
        elif kind == "json":
            data = seeds.json.changed(rng, data)
        elif kind == "safetensors":
            data = m.in_safetensors(rng, data, seeds.json.changed)
        elif rng.random() < 0.6:
            data = m.in_entry(rng, data, lambda name: True, m.in_npy) or data
        else:
            data = m.in_zip(rng, data)
        return level, "program.pt2", seeds.programs[program], ("inputs." + kind, data)
    if level == "plan":
        name, data = rng.choice(seeds.planned)
        return level, "program.pt2", m.in_entry(rng, data, lambda n: n.endswith("plan.json"), seeds.json.changed), None
    name, data = rng.choice(seeds.archives)
    if level == "bytes":
        if rng.random() < 0.1:
            return level, "program.fx", m.in_bytes(rng, rng.choice(seeds.texts)[1]), None
        data = m.in_bytes(rng, data)
    elif level == "zip":
        data = m.in_zip(rng, data)
    elif level == "json":
        chosen = (lambda n: "/models/" in n) if rng.random() < 0.8 else is_json
        data = m.in_entry(rng, data, lambda n: is_json(n) and chosen(n), seeds.json.changed) or data
    else:
        data = m.in_entry(rng, data, lambda n: n.endswith((".pt", ".pkl")), m.in_nested_archive) or m.in_zip(rng, data)
    return level, "program.pt2", data, None


def command(rng, level):
    """A command and its options; OUT stands for a file that it writes."""
    name = rng.choice("show run run run verify functionalize reinplace compile grad plan explain".split())
    if level == "plan":
        name = rng.choice("run run run run show verify compile plan".split())
    options = {
        "show": [[], ["--stage", "imported"], ["--stage", "functional"], ["--stage", "placed"]],
        "run": [
            *([], ["--via", "plan", "--no-check"], ["--via", "interp"], ["--via", "functional"]),
            *(["--outputs", f"OUT.{end}"] for end in ("json", "safetensors", "npz")),
        ],
        "verify": [[], ["--threads", "2"]],
        "functionalize": [
            ["-o", "OUT.pt2"],
            ["-o", "OUT.fx"],
            ["-o", "OUT.pt2", "--portable"],
            ["-o", "OUT.pt2", "--views"],
        ],
        "reinplace": [["-o", "OUT.pt2"], ["-o", "OUT.fx"], ["-o", "OUT.pt2", "--views"]],
        "compile": [
            *([], ["-o", "OUT.pt2"], ["--report", "OUT.html"], ["--json", "OUT.json"]),
            *(["--budget", "4kB"], ["--memories", "fast=1kB,slow"]),
        ],
        "grad": [["-o", "OUT.pt2"], ["-o", "OUT.fx", "--keep", "none"], ["-o", "OUT.pt2", "--optimizer", "adam"]],
        "plan": [[], ["--no-reorder"], ["--search-steps", "0"]],
        "explain": [[], ["--all"]],
    }[name]
    more = rng.choice(options)
    if level == "plan" and name == "run":
        more = rng.choice([[], ["--no-check"], ["--threads", "2"]])
    plans = name not in ("functionalize", "reinplace", "grad")
    further = rng.choice(["--no-check", "--no-mmap", *(["--no-views", "--no-reorder"] if plans else [])])
    if rng.random() < 0.2 and further not in more:
        more = [*more, further]
    return name, more


# ---------------------------------------------------------------------------------- one run


class Late(Exception):
    pass


def late(*_):
    raise Late


def run(arguments, seconds, errors):
    """The end of a process: its status (negative for a signal; None over time), its errors, its seconds."""
    with open(errors, "wb") as err:
        null = os.open(os.devnull, os.O_RDWR)
        pid = os.posix_spawn(
            arguments[0],
            arguments,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, null, 1),
                (os.POSIX_SPAWN_DUP2, err.fileno(), 2),
            ],
            setsigdef=[signal.SIGXCPU],
        )
        os.close(null)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE)
        _, status, used = os.wait4(pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Late:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None, "", 0.0
    with open(errors, "rb") as err:
        said = err.read(20000).decode(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    took = used.ru_utime + used.ru_stime
    return (None if code == -signal.SIGXCPU else code), said, took


def fault(code, said):
    """The fault of an end, if it is one."""
    if code is None:
        return "over time"
    panic = re.search(r"panicked at ([^\n]*)\n([^\n]*)", said)
    if panic:
        return f"panic at {panic[1]} {panic[2][:100]}"
    if code < 0:
        last = said.strip().splitlines()[-1:] or [""]
        return f"{signal.Signals(-code).name} {re.sub('[0-9]+', 'N', last[0])[:100]}"
    if code not in (0, 1, 2):
        return f"exit status {code}"
    lines = said.strip().splitlines()
    if code and len([line for line in lines if line.startswith("error: ")]) != 1:
        return f"exit status {code} without its one error"
    return None


def case(number, directory, seeds, restride, seconds, levels=LEVELS):
    """Runs a case. Its level, command, end, what is wrong, seconds, command line. None if it is of another level."""
    rng = random.Random(f"mutate {number}")
    made = damaged(rng, seeds, levels)
    if made is None:
        return None
    level, file, data, inputs = made
    path = os.path.join(directory, file)
    with open(path, "wb") as f:
        f.write(data)
    name, options = command(rng, level)
    # A loop may do nothing but go on: its iterations are bounded, for time.
    arguments = [restride, name, path, "--limit", "trips=10000"] + [
        o.replace("OUT", os.path.join(directory, "out")) for o in options
    ]
    if inputs:
        with open(os.path.join(directory, inputs[0]), "wb") as f:
            f.write(inputs[1])
        arguments += ["--inputs", os.path.join(directory, inputs[0])]
    elif file.endswith(".fx") or rng.random() < 0.3:
        arguments += ["--random", "0"]
    errors = os.path.join(directory, "stderr")
    code, said, took = run(arguments, seconds, errors)
    wrong = fault(code, said)
    # Large sizes may be honest work (six products of 4096 x 4096 are 800 GFLOP): what still takes its time with small tensors is not.
    if code is None and name in ("run", "verify"):
        arguments += ["--limit", f"memory={LARGE_WORK}"]
        code, said, took = run(arguments, seconds, errors)
        wrong = fault(code, said)
    # A written file can be read.
    out = os.path.join(directory, "out.pt2")
    if code == 0 and not wrong and "-o" in options and os.path.exists(out) and rng.random() < 0.5:
        arguments = [restride, rng.choice(["run", "verify"]), out, "--limit", "trips=10000", "--random", "0"]
        code, said, took = run(arguments, seconds, errors)
        wrong = fault(code, said)
    return level, name, code, wrong, took, arguments


STATE = {}


def begin(directory, seeds, restride, seconds, keep, levels):
    own = tempfile.mkdtemp(dir=directory)
    STATE.update(directory=own, seeds=seeds, restride=restride, seconds=seconds, keep=keep, levels=levels)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Children have the limit from here; it is nothing to this process, which ignores its signal.
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, late)


def work(number):
    s = STATE
    ran = case(number, s["directory"], s["seeds"], s["restride"], s["seconds"], s["levels"])
    if ran is None:
        return None
    level, name, code, wrong, took, arguments = ran
    if wrong and s["keep"]:
        slug = re.sub(r"[^A-Za-z0-9]+", "-", wrong)[:60]
        into = os.path.join(s["keep"], slug)
        if not os.path.exists(into) or len(os.listdir(into)) < 5:
            os.makedirs(into, exist_ok=True)
            own = lambda a: os.path.isfile(a) and a.startswith(s["directory"])
            kept = [os.path.join(into, f"{number}-{os.path.basename(a)}") if own(a) else a for a in arguments]
            for a, b in zip(arguments, kept):
                if a != b:
                    shutil.copy(a, b)
            with open(os.path.join(into, f"{number}.sh"), "w") as f:
                f.write(f"ulimit -v {ADDRESS_SPACE >> 10}\n{' '.join(kept)}\n")
    return number, level, name, code, wrong, took


def main():
    p = parser(__doc__, "--seconds", "--jobs", "--binary", "--json", jobs=os.cpu_count())
    p.add_argument("--cases", type=seeds, default=range(2000), metavar="A..B")
    p.add_argument("--timeout", type=int, default=10, help="seconds of processor time for one run")
    p.add_argument("--levels", nargs="+", choices=LEVELS, default=LEVELS, help="cases of these levels alone")
    p.add_argument("--keep", metavar="DIR", help="where failing files are put")
    p.add_argument("--show", type=int, metavar="CASE")
    o = p.parse_args()
    restride = Restride(o.binary, timeout=600.0)
    with scratch() as folder:
        # The files of one case stay.
        directory = Path(tempfile.mkdtemp(prefix="restride-mutate-")) if o.show is not None else folder
        files = Seeds(restride, directory)
        given = (str(directory), files, restride.path, o.timeout, o.keep and os.path.abspath(o.keep), o.levels)
        if o.show is None:
            return campaign(o, given)
        begin(*given)
        level, _, code, wrong, took, arguments = case(o.show, STATE["directory"], files, restride.path, o.timeout)
        said = Path(STATE["directory"], "stderr").read_text()
        print(" ".join(arguments), said, f"{level}: exit {code}, {took:.2f} s, {wrong or 'as it should be'}", sep="\n")
        return 1 if wrong else 0


def campaign(o, given):
    start = time.monotonic()
    ends, faults, slowest, total = collections.defaultdict(collections.Counter), {}, [], 0
    source = itertools.takewhile(lambda _: o.seconds is None or time.monotonic() - start < o.seconds, o.cases)
    with multiprocessing.Pool(o.jobs, begin, given) as pool:
        while chunk := list(itertools.islice(source, 64 * o.jobs)):
            for number, level, name, code, wrong, took in filter(None, pool.imap_unordered(work, chunk, 8)):
                total += 1
                end = "failed" if wrong else code
                ends[level][end] += 1
                ends[name][end] += 1
                slowest = sorted([*slowest, (took, number)], reverse=True)[:3]
                if wrong:
                    faults.setdefault(wrong, []).append(number)
                    if len(faults[wrong]) == 1:
                        print(f"case {number} ({level}, {name}): {wrong}", flush=True)
    seconds = time.monotonic() - start
    kinds = (0, 1, 2, "failed")
    print_table(
        ("", "exit 0", "exit 1", "exit 2", "failed"), [(row, *(ends[row][k] for k in kinds)) for row in sorted(ends)]
    )
    for wrong, cases in sorted(faults.items(), key=lambda f: -len(f[1])):
        print(f"{len(cases):6} × {wrong} (mutate.py --show {cases[0]})")
    print("slowest: " + ", ".join(f"{took:.1f} s (case {number})" for took, number in slowest))
    print(f"{total / seconds * 60:.0f} a minute")
    failed = sum(map(len, faults.values()))
    print(f"{total} runs, {failed} failed")
    write_json(o.json, dict(runs=total, seconds=seconds, failed=failed, faults=faults, ends=ends))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Shared by the targets: reads a program and its calls, makes its state arguments and results, writes the results.

A target is a file beside this one with `build(ep)`, which compiles a torch.export program and returns a function from one
call's inputs to a Result. `python TARGET.py JOBS.json` runs in the target's own environment and does each job ({program,
calls, out, log, timeout}) in a process of its own: the calls one after the other, on one compiled program. The results go to
OUT.npz; if the target refuses, the exception goes to OUT.json.
"""

import json
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec
from torch.utils import _pytree as pytree


@dataclass
class Result:
    """One call: user outputs in order, and what the target can say of mutated buffers (by name) and inputs (by place)."""

    outputs: list
    buffers: dict = field(default_factory=dict)
    inputs: dict = field(default_factory=dict)


@dataclass
class Explicit:
    """A program whose mutated buffers are arguments, and whose new buffers and inputs are results.

    `arguments` has ("buffer", name) or ("input", I) for each argument, `results` the same and ("output", I).
    """

    program: torch.export.ExportedProgram
    arguments: list
    results: list
    state: dict

    def call(self, run, inputs):
        """One call through `run(arrays) -> (results, arrays afterwards)`; the state is kept here, as whoever calls a
        stateless function does."""
        given = [self.state[key] if kind == "buffer" else inputs[key] for kind, key in self.arguments]
        made, after = run(given)
        if len(made) != len(self.results):
            raise ValueError(f"{len(made)} results, not {len(self.results)}")
        result = Result([])
        result.inputs = {key: np.array(a) for (kind, key), a in zip(self.arguments, after) if kind == "input"}
        for (kind, key), value in zip(self.results, made):
            # Some hand out views into storage that the next call reuses.
            value = np.array(value)
            if kind == "output":
                result.outputs.append(value)
            elif kind == "buffer":
                result.buffers[key] = self.state[key] = value
            else:
                result.inputs[key] = value
        return result


def explicit_state(ep):
    """The same graph with another signature. What a program does not declare (the originals declare nothing) stays hidden."""
    signature, arguments, state = ep.graph_signature, [], {}
    mutated = set(signature.buffers_to_mutate.values())
    place = {}
    inputs = []
    for spec in signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            place[spec.arg.name] = len(place)
            arguments.append(("input", place[spec.arg.name]))
        elif spec.kind == InputKind.BUFFER and spec.target in mutated:
            arguments.append(("buffer", spec.target))
            value = ep.state_dict[spec.target] if spec.persistent else ep.constants[spec.target]
            state[spec.target] = value.detach().numpy().copy()
            spec = InputSpec(InputKind.USER_INPUT, spec.arg, None)
        inputs.append(spec)
    outputs, results = [], []
    for spec in signature.output_specs:
        if spec.kind == OutputKind.BUFFER_MUTATION:
            results.append(("buffer", spec.target))
        elif spec.kind == OutputKind.USER_INPUT_MUTATION:
            results.append(("input", place[spec.target]))
        else:
            results.append(("output", sum(kind == "output" for kind, _ in results)))
        outputs.append(OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None))
    signature.input_specs[:], signature.output_specs[:] = inputs, outputs
    # Who decomposes the program reads its arguments by the structure that it says.
    called = ep.module_call_graph[0].signature
    called.in_spec = pytree.tree_structure((tuple(range(len(arguments))), {}))
    called.out_spec = pytree.tree_structure(tuple(range(len(results))))
    called.forward_arg_names = [spec.arg.name for spec in inputs if spec.kind == InputKind.USER_INPUT]
    ep._example_inputs = None
    return Explicit(ep, arguments, results, state)


def attempt(build, job):
    """One job, in this process; the exit status."""
    try:
        with np.load(job["calls"]) as z:
            given = {key: z[key] for key in z.files}
        call, written = build(torch.export.load(job["program"])), {}
        for n in range(1 + max(int(key.split(".")[0]) for key in given)):
            inputs = [given[f"{n}.given.{i}"] for i in range(sum(key.startswith(f"{n}.given.") for key in given))]
            result = call([a.copy() for a in inputs])
            written |= {f"{n}.output.{i}": a for i, a in enumerate(result.outputs)}
            written |= {f"{n}.buffer.{name}": a for name, a in result.buffers.items()}
            written |= {f"{n}.input.{i}": a for i, a in result.inputs.items()}
        np.savez(job["out"] + ".npz", **written)
        return 0
    except Exception as e:
        traceback.print_exc()
        with open(job["out"] + ".json", "w") as f:
            json.dump(dict(kind=type(e).__name__, message=str(e)), f)
        return 1


def main(build):
    with open(sys.argv[1]) as f:
        jobs = json.load(f)
    for job in jobs:
        child = os.fork()
        if child == 0:
            log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            status = attempt(build, job)
            sys.stdout.flush()
            sys.stderr.flush()
            # Without the exit handlers of a compiler's threads, which are not under test.
            os._exit(status)
        end, status = time.monotonic() + job["timeout"], None
        while status is None:
            done, code = os.waitpid(child, os.WNOHANG)
            if done:
                status = os.waitstatus_to_exitcode(code)
            elif time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                status = "timeout"
            else:
                time.sleep(0.05)
        if status not in (0, 1):
            ended = f"over {job['timeout']} s" if status == "timeout" else f"the process ended with {status}"
            with open(job["out"] + ".json", "w") as f:
                json.dump(dict(kind="Crash", message=ended), f)

"""Programs, compiled programs, instances and sessions."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import IO, Any

from restride import _display, _restride
from restride._facts import Explanation, Plan, Report, ValueInfo, infos
from restride._opening import given_inputs, symbolic_sizes, weights_of
from restride._pytree import TreeSpec, check_call
from restride._state import Like, State, like_of

__all__ = [
    "Compiled",
    "Explanation",
    "Instance",
    "Plan",
    "Program",
    "Report",
    "Session",
    "State",
    "ValueInfo",
    "load",
    "models",
]


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes],
    *,
    model: str | None = None,
    inputs: Sequence[Any] | Mapping[str, Any] | str | None = None,
    dynamic: Mapping[str, Any] | str | None = None,
    weights: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    ops: str | os.PathLike[str] | None = None,
    mmap: bool = True,
    max_memory: int | None = None,
) -> Program:
    """Open a program: a ``.pt2`` that ``torch.export.save`` wrote, an archive of ``torch.jit.save``, a printed graph or a ``.fx`` text.

    Args:
        source: A path, the bytes, or a file that is open for reading.
        model: The model of an archive with several, the method of a TorchScript archive, or the number, from 1, of a text's graph.
        inputs: Example arguments of a TorchScript archive or printed graph that does not hold their types: a tuple, a dictionary
            by name, or types as text, ``"x=f32[2,3],n=4"``. Numbers, strings and ``None`` are fixed; of tensors the types are read.
        dynamic: Sizes of those inputs that stay symbolic, as ``dynamic_shapes`` of ``torch.export.export``: ``{"x": {0: (1, 64)}}``,
            with a range, a ``torch.export.Dim`` or a name for each size, or text, ``"x.0=1..64,y.0=x.0"``. Sizes of one name are equal.
        weights: The weights of a text: a file (``.pt2``, TorchScript archive, ``.safetensors``, state dict in a ``.pt`` or ``.npz``)
            or the tensors by name, such as ``module.state_dict()``.
        ops: A file with schemas of custom operators.
        mmap: Read weights where they are in the file, which must stay as it is.
        max_memory: The most bytes that an arena may take.
    """
    tensors = weights_of(weights)
    options = {
        "model": model,
        "inputs": given_inputs(inputs),
        "dynamic": symbolic_sizes(dynamic, inputs),
        "weights": weights if tensors is None else None,
        "weight_tensors": tensors,
        "ops": ops,
        "mmap": mmap,
        "max_memory": max_memory,
    }
    if isinstance(source, (str, os.PathLike)):
        return Program(_restride.open(source, **options))
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    elif callable(getattr(source, "read", None)):
        read: bytes | str = source.read()
        data = read.encode() if isinstance(read, str) else bytes(read)
    else:
        raise TypeError(f"source is a {type(source).__name__}: pass a path, bytes or a file that is open for reading")
    return Program(_restride.open_bytes(data, **options))


def models(path: str | os.PathLike[str]) -> list[str]:
    """The names of the models in an archive."""
    return _restride.models(path)


class _Calls:
    """Arguments to leaves, and leaves to results, for one program."""

    def __init__(self, native: _restride.Program) -> None:
        self.native = native
        spec = native.pytree
        self.ins = TreeSpec.parse(spec[0], "in_spec") if spec else None
        self.outs = TreeSpec.parse(spec[1], "out_spec") if spec else None
        self.names = list(native.input_names)
        self.forward = list(native.forward_args)
        if self.ins is not None and self.ins.leaves != len(self.names):
            self.ins = None

    def leaves(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        if self.ins is not None:
            return self.ins.arguments(args, kwargs, self.forward)
        check_call(self.names, [], args, kwargs)
        return [*args, *(kwargs[name] for name in self.names[len(args) :])]

    def result(self, values: list[Any], gradients: Mapping[str, Any]) -> Any:
        if self.outs is not None and self.outs.leaves == len(values):
            out = self.outs.unflatten(values)
        else:
            out = values[0] if len(values) == 1 else tuple(values)
        return (out, dict(gradients)) if gradients else out

    def optional(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any] | None:
        return self.leaves(args, kwargs) if args or kwargs else None


class _Planned:
    """What a compiled program tells."""

    _native: _restride.Compiled
    _calls: _Calls

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """The memory plan for these inputs; without any, for the sample inputs or the declared sizes."""
        return Plan(json.loads(self._native.plan(self._calls.optional(args, kwargs))))

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Numbers of compiling for these inputs; without any, for the sample inputs or the declared sizes."""
        leaves = self._calls.optional(args, kwargs)
        data, text = self._native.report(leaves)
        return Report(json.loads(data), text, lambda: self._native.page(leaves))

    def explain(self, node: str | None = None, *args: Any, all: bool = False, **kwargs: Any) -> Explanation:
        """What is done in place, what is not, and why; about one node, or all of them."""
        data, text = self._native.explain(self._calls.optional(args, kwargs), node, all)
        return Explanation(json.loads(data), text)


class Program:
    """A program: what ``torch.export.save`` wrote, or what a transformation made of it.

    Calling it runs it, on a state of its own. Threads may call it at the same time; runs that write the state take turns.
    """

    def __init__(self, native: _restride.Program) -> None:
        self._native = native
        self._calls = _Calls(native)

    @functools.cached_property
    def _compiled(self) -> Compiled:
        return Compiled(self, self._native.compile())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on arguments nested as they were exported.

        Gives NumPy arrays, or PyTorch's tensors where an argument is one. A joint program gives ``(result, gradients)``.
        """
        return self._compiled(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name, of the file that it was read from."""
        return self._native.name

    @property
    def stage(self) -> str:
        """``imported`` or ``functional``."""
        return self._native.stage

    @functools.cached_property
    def _described(self) -> tuple[tuple[ValueInfo, ...], ...]:
        return tuple(infos(rows) for rows in self._native.describe())

    @property
    def inputs(self) -> tuple[ValueInfo, ...]:
        """The user inputs."""
        return self._described[0]

    @property
    def outputs(self) -> tuple[ValueInfo, ...]:
        """The user outputs, then gradients."""
        return self._described[1]

    @property
    def weights(self) -> tuple[ValueInfo, ...]:
        """Parameters, buffers and constants, as they are declared."""
        return self._described[2]

    @property
    def notes(self) -> list[str]:
        """Warnings of the import."""
        return self._native.notes

    @property
    def state(self) -> State:
        """The state that calls of this object read and write."""
        return self._compiled.state

    def reset(self) -> None:
        """Go back to the state that the program was exported with."""
        self._compiled.reset()

    def sample_inputs(self, like: Like = "numpy") -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The sample inputs in the file, as ``(args, kwargs)``."""
        leaves = self._native.samples(like)
        return None if leaves is None else self._nested(leaves)

    def random_inputs(self, seed: int = 0, like: Like = "numpy") -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Inputs drawn from a seed, as ``(args, kwargs)``."""
        return self._nested(self._native.random_inputs(seed, like))

    def _nested(self, leaves: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._calls.ins is None:
            return tuple(leaves), {}
        args, kwargs = self._calls.ins.unflatten(leaves)
        return args, kwargs

    def compile(
        self,
        *,
        threads: int | None = None,
        budget: int | None = None,
        check: bool = True,
        reorder: bool = True,
        fold: bool = True,
        fuse: bool = True,
        fuse_limit: int | None = None,
        views: bool = True,
        align: int | None = None,
        search_steps: int | None = None,
        memories: Sequence[tuple[str, int | None]] | None = None,
    ) -> Compiled:
        """Compile with options.

        Args:
            threads: Threads of a kernel; all of the machine by default. Results do not depend on it.
            budget: The most bytes of the arena: cheap values are recomputed instead of kept.
            check: Check placement and plan.
            reorder: Change the order of nodes where that makes the arena smaller.
            fold: Compute once what weights alone decide, and pack the weights that products read.
            fuse: Fuse chains of operators into steps that do not write what the operators only hand on.
            fuse_limit: Most operators of a fused step.
            views: Let views share memory.
            align: Alignment of offsets in bytes.
            search_steps: Steps of the search for the smallest plan.
            memories: Names and bytes of the memories that the arena consists of, fastest first.
        """
        options = {
            "threads": threads,
            "budget": budget,
            "check": check,
            "reorder": reorder,
            "fold": fold,
            "fuse": fuse,
            "fuse_limit": fuse_limit,
            "views": views,
            "align": align,
            "search_steps": search_steps,
            "memories": memories,
        }
        return Compiled(self, self._native.compile(**options))

    def instance(self) -> Instance:
        """An arena and a state of its own."""
        return self._compiled.instance()

    def session(self, *args: Any, outputs: Sequence[Any] | None = None, seed: int = 0, **kwargs: Any) -> Session:
        """Bind inputs and outputs for many runs, which do nothing but compute."""
        return self.instance().session(*args, outputs=outputs, seed=seed, **kwargs)

    def functionalize(self, *args: Any, portable: bool = False, views: bool = False, **kwargs: Any) -> Program:
        """The program without mutation: writes of inputs and buffers are declared outputs.

        Args:
            *args: Inputs, where some of them share memory.
            portable: In Core ATen, which other compilers take.
            views: With views instead of copies of views.
            **kwargs: Inputs by name.
        """
        leaves = self._calls.optional(args, kwargs)
        return Program(self._native.functionalize(leaves, portable=portable, views=views))

    def reinplace(self, *args: Any, views: bool = False, **kwargs: Any) -> Program:
        """The program with in-place operators and views where they are right; with ``views``, with views alone."""
        return Program(self._native.reinplace(self._calls.optional(args, kwargs), views=views))

    def grad(
        self,
        *args: Any,
        loss: int = 0,
        wrt: Sequence[str] | None = None,
        keep: str | int = "auto",
        max_trips: int | None = None,
        **kwargs: Any,
    ) -> Program:
        """Forward and backward as one program. Calling it gives ``(result, gradients by name)``.

        Args:
            *args: Inputs, where some of them share memory.
            loss: Which output is the loss.
            wrt: Parameters and inputs by name; by default all parameters that ask for gradients, and all floating inputs.
            keep: What backward keeps of forward: ``auto``, ``all``, ``none`` or bytes.
            max_trips: The most iterations of a ``while_loop``.
            **kwargs: Inputs by name.
        """
        leaves = self._calls.optional(args, kwargs)
        wanted = None if wrt is None else list(wrt)
        return Program(self._native.grad(leaves, loss=loss, wrt=wanted, max_trips=max_trips, keep_values=keep))

    def train_step(
        self,
        optimizer: str = "adam",
        *args: Any,
        loss: int = 0,
        wrt: Sequence[str] | None = None,
        keep: str | int = "auto",
        max_trips: int | None = None,
        **options: Any,
    ) -> Program:
        """A training step as one program: forward, backward and the update of every parameter in its own memory.

        Args:
            optimizer: ``sgd``, ``adam`` or ``adamw``.
            *args: Inputs, where some of them share memory.
            loss: Which output is the loss.
            wrt: Parameters by name.
            keep: What backward keeps of forward: ``auto``, ``all``, ``none`` or bytes.
            max_trips: The most iterations of a ``while_loop``.
            **options: Of the optimizer, as PyTorch calls them: ``lr``, ``betas``, ``momentum``, …
        """
        leaves = self._calls.optional(args, {})
        wanted = None if wrt is None else list(wrt)
        return Program(
            self._native.grad(
                leaves,
                loss=loss,
                wrt=wanted,
                max_trips=max_trips,
                keep_values=keep,
                optimizer_name=optimizer,
                options=options,
            )
        )

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """The memory plan for these inputs; without any, for the sample inputs or the declared sizes."""
        return self._compiled.plan(*args, **kwargs)

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Numbers of compiling, as a table and as a page."""
        return self._compiled.report(*args, **kwargs)

    def explain(self, node: str | None = None, *args: Any, all: bool = False, **kwargs: Any) -> Explanation:
        """What is done in place, what is not, and why; about one node, or all of them."""
        return self._compiled.explain(node, *args, all=all, **kwargs)

    def verify(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Run every stage on the same inputs and compare bit for bit, with the checkers.

        Raises:
            CheckError: The stages part; the message says where.
        """
        data, fault = self._native.verify(self._calls.optional(args, kwargs))
        if fault is not None:
            from restride._errors import CheckError

            raise CheckError(fault)
        verdict: dict[str, Any] = json.loads(data)
        return verdict

    def interpret(self, *args: Any, seed: int = 0, **kwargs: Any) -> Any:
        """Run on the state of the file with PyTorch's true aliasing, without compiling: the oracle."""
        leaves = self._calls.leaves(args, kwargs)
        return self._calls.result(self._native.interpret(leaves, like_of(leaves), seed), {})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program: text for ``.fx``, else a ``.pt2`` that ``torch.export.load`` takes."""
        if os.fspath(path).endswith(".fx"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(self._native.written_text())
        else:
            self._native.save(path)

    def to_bytes(self) -> bytes:
        """The bytes of a ``.pt2``."""
        return self._native.to_bytes()

    def text(self) -> str:
        """The program as text."""
        return self._native.text()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return _display.program_text(self.name, self.stage, self._native.nodes, *self._described)

    def _repr_html_(self) -> str:
        try:
            picture = self.plan()._repr_html_()
        except Exception as e:
            picture = _display.preformatted(f"no plan: {e}")
        return _display.program_html(repr(self), picture)


class Compiled(_Planned):
    """A compiled program with one state, for any number of threads."""

    def __init__(self, program: Program, native: _restride.Compiled) -> None:
        self._program = program
        self._native = native
        self._calls = program._calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on arguments nested as they were exported."""
        leaves = self._calls.leaves(args, kwargs)
        return self._calls.result(*self._native.run(leaves, like_of(leaves)))

    def run(self, *args: Any, seed: int = 0, like: Like | None = None, **kwargs: Any) -> Any:
        """As a call, with a seed for random operators and the kind of arrays to give."""
        leaves = self._calls.leaves(args, kwargs)
        return self._calls.result(*self._native.run(leaves, like_of(leaves) if like is None else like, seed))

    @property
    def threads(self) -> int:
        """Threads of a kernel."""
        return self._native.threads

    @property
    def program(self) -> Program:
        """The program that was compiled."""
        return self._program

    def functional(self) -> Program:
        """The program without mutation."""
        return Program(self._native.functional())

    def prepare(self, *args: Any, **kwargs: Any) -> Compiled:
        """Place, plan and check for these inputs now, so that the first run with their sizes only runs."""
        self._native.prepare(self._calls.optional(args, kwargs))
        return self

    @property
    def state(self) -> State:
        """The state that calls read and write."""
        return State(self._native, "numpy")

    def reset(self) -> None:
        """Go back to the state that the program was exported with."""
        self._native.reset()

    def instance(self) -> Instance:
        """An arena and a state of its own."""
        return Instance(self, self._native.instance())

    def session(self, *args: Any, outputs: Sequence[Any] | None = None, seed: int = 0, **kwargs: Any) -> Session:
        """Bind inputs and outputs for many runs, which do nothing but compute."""
        return self.instance().session(*args, outputs=outputs, seed=seed, **kwargs)

    def save(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Write the functional program with the plan for these inputs inside."""
        self._native.save(path, self._calls.optional(args, kwargs))

    def show(self, *args: Any, **kwargs: Any) -> str:
        """The placed program as text: every step, and where each value is."""
        return self._native.show(self._calls.optional(args, kwargs))

    def __repr__(self) -> str:
        return f"Compiled({self._program!r})"

    def _repr_html_(self) -> str:
        return _display.program_html(repr(self._program), self.plan()._repr_html_())


class Instance:
    """An arena and a state of its own. Threads take turns."""

    def __init__(self, compiled: Compiled, native: _restride.Instance) -> None:
        self._compiled = compiled
        self._native = native
        self._calls = compiled._calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on arguments nested as they were exported, in the declared strides."""
        return self.run(*args, **kwargs)

    def run(self, *args: Any, seed: int = 0, like: Like | None = None, **kwargs: Any) -> Any:
        """As a call, with a seed for random operators and the kind of arrays to give."""
        leaves = self._calls.leaves(args, kwargs)
        return self._calls.result(*self._native.run(leaves, like_of(leaves) if like is None else like, seed))

    @property
    def state(self) -> State:
        """The state of this instance."""
        return State(self._native, "numpy")

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena that there are."""
        return self._native.arena_bytes

    def reserve(self) -> int:
        """Take the largest arena that any sizes within their ranges need."""
        return self._native.reserve()

    def reset(self) -> None:
        """Go back to the state that the program was exported with."""
        self._native.reset()

    def session(self, *args: Any, outputs: Sequence[Any] | None = None, seed: int = 0, **kwargs: Any) -> Session:
        """Bind the instance to inputs and outputs for many runs. The session has the instance from then on.

        Args:
            *args: Inputs, whose memory every run reads and writes.
            outputs: Memory for outputs by position; ``None`` where restride makes it.
            seed: Seed of random operators.
            **kwargs: Inputs by name.
        """
        leaves = self._calls.leaves(args, kwargs)
        given = None if outputs is None else list(outputs)
        return Session(self, self._native.session(leaves, given, seed), leaves)


class Session:
    """An instance bound to memory: a run reads the inputs' and writes the outputs', and does nothing but compute."""

    def __init__(self, instance: Instance, native: _restride.Session, leaves: list[Any]) -> None:
        self._calls = instance._calls
        self._native = native
        self._leaves = leaves
        self._outputs: Any = None

    def run(self) -> Any:
        """Run once, and give the outputs, which every run leaves in the same memory."""
        self._native.run()
        return self.outputs

    __call__ = run

    @property
    def outputs(self) -> Any:
        """The outputs."""
        if self._outputs is None:
            self._outputs = self._calls.result(*self._native.outputs(like_of(self._leaves)))
        return self._outputs

    @property
    def state(self) -> State:
        """The state of the session."""
        return State(self._native, "numpy")

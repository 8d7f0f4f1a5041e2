"""A user's program, for the type checker."""

import pathlib
from typing import Any

import numpy as np
import restride
from typing_extensions import assert_type


def main(path: pathlib.Path) -> None:
    program = restride.load(path)
    assert_type(program, restride.Program)
    assert_type(program.plan().arena_bytes, int)
    result: Any = program(np.zeros(3))
    print(result, [v.shape for v in program.inputs], program.state["weight"])
    assert_type(program.functionalize().grad().compile(threads=2, budget=10**6), restride.Compiled)
    session = program.session(np.zeros(3), outputs=[None])
    assert_type(session, restride.Session)
    array = np.zeros((2, 3), np.float32)
    restride.load("graph.txt", inputs=(array, 2, [array]), dynamic={"x": {0: (1, 64)}}, weights={"w": array})
    restride.load("scripted.pt", inputs={"x": array}, dynamic="x.0=1..64")
    try:
        session.run()
    except restride.UnsupportedError as e:
        assert_type(e.node, str | None)

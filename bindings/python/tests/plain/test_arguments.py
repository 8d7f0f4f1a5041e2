"""Arguments of calls: numbers, names, memory, and the errors about them."""

import concurrent.futures
import enum
import io
import json
import pathlib
import re
import zipfile

import numpy as np
import pytest
import restride

DATA = pathlib.Path(__file__).parent / "data"


def graph(text: str) -> restride.Program:
    return restride.load(text.encode())


SUM = graph("graph(%x: f32[3], %y: f32[3]) {\n  %z: f32[3] = aten.add.Tensor(%x, %y)\n  return %z\n}\n")
A = np.arange(3, dtype=np.float32)


def forward(x, y):
    return x + y


class Two(enum.IntEnum):
    TWO = 2


def test_numbers_of_numpy_are_numbers():
    text = b"def forward(self, x, n):\n    mul = x * n\n    return mul\n"
    for n in (2, 2.5, True):
        program = restride.load(text, inputs=(A, n))
        for kind in {int: (np.int64, np.uint8), float: (np.float64, np.float32), bool: (np.bool_,)}[type(n)]:
            assert program(A, kind(n)).tolist() == (A * n).tolist()
    assert restride.load(text, inputs=(A, 2))(A, Two.TWO).tolist() == [0, 2, 4]
    with pytest.raises(restride.InputsError):
        restride.load(text, inputs=(A, 2))(A, np.int64(3))
    symbolic = graph(
        "symbol n in [0, 9]\ngraph(%x: f32[3], %n: Sym(n)) {\n  %z: f32[3] = aten.mul.Tensor(%x, n)\n  return %z\n}\n"
    )
    assert symbolic(A, np.int32(4)).tolist() == [0, 4, 8]
    # Where a program takes a tensor, they are tensors without dimensions.
    tensor = graph("graph(%x: f32[]) {\n  %z: f32[] = aten.neg.default(%x)\n  return %z\n}\n")
    assert tensor(np.float32(2)) == -2
    with pytest.raises(TypeError, match="is a date"):
        symbolic(A, np.datetime64("2020-01-01"))


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((A, A), {"q": A}, "forward() got an unexpected keyword argument 'q'"),
        ((A,), {"x": A}, "forward() got multiple values for argument 'x'"),
        ((A,), {}, "forward() missing 1 required positional argument: 'y'"),
        ((), {}, "forward() missing 2 required positional arguments: 'x' and 'y'"),
        ((A, A, A), {}, "forward() takes 2 positional arguments but 3 were given"),
    ],
)
def test_wrong_arguments_are_refused_with_the_text_of_python(args, kwargs, text):
    for call in (SUM, SUM.compile(), SUM.instance()):
        with pytest.raises(TypeError, match=re.escape(text)) as e:
            call(*args, **kwargs)
        assert isinstance(e.value, restride.ArgumentsError) and isinstance(e.value, restride.InputsError)
        assert e.value.help == "the program is forward(x, y)"
        # A function of Python says the same.
        with pytest.raises(TypeError, match=re.escape(text)):
            forward(*args, **kwargs)


def test_arguments_by_name_and_by_position():
    program = restride.load(DATA / "nested.pt2")
    tree = {"a": A, "b": [A, (A,)]}
    want = program(tree, scale=A)["sum"].tolist()
    for out in (program(tree=tree, scale=A), program(scale=A, tree=tree), program(tree, A)):
        assert out["sum"].tolist() == want
    for args, kwargs, text in [
        ((tree,), {}, "missing 1 required keyword-only argument: 'scale'"),
        ((), {"scale": A}, "missing 1 required positional argument: 'tree'"),
        ((tree,), {"scale": A, "other": A}, "unexpected keyword argument 'other'"),
        ((tree, A), {"scale": A}, "multiple values for argument 'scale'"),
        ((tree, A, A), {}, "takes 2 positional arguments but 3 were given"),
    ]:
        with pytest.raises(restride.ArgumentsError, match=text) as e:
            program(*args, **kwargs)
        assert e.value.help.replace("*, ", "") == "the program is forward(tree, scale)"


def test_an_index_that_a_tensor_does_not_have_is_an_index_error():
    i = np.array([0, 7])
    for call in (
        "aten.index.Tensor(%x, [%i])",
        "aten.index_select.default(%x, 0, %i)",
        "aten.gather.default(%x, 0, %i)",
    ):
        program = graph(f"graph(%x: f32[5], %i: i64[2]) {{\n  %y: f32[2] = {call}\n  return %y\n}}\n")
        with pytest.raises(IndexError, match=r"ndex.* out of") as e:
            program(np.zeros(5, np.float32), i)
        assert isinstance(e.value, restride.OutOfBoundsError) and isinstance(e.value, restride.ProgramError)
        assert e.value.node.startswith("%y = ")


def changed(field: str, change) -> bytes:
    """The archive nested.pt2 with another value of a field of its signature."""
    out = io.BytesIO()
    with zipfile.ZipFile(DATA / "nested.pt2") as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("models/model.json"):
                model = json.loads(data)
                signature = model["graph_module"]["module_call_graph"][0]["signature"]
                signature[field] = change(signature[field])
                data = json.dumps(model).encode()
            new.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: s[:-9], "line 1 column"),
        (lambda s: "", "Expecting value"),
        (lambda s: "[1, 5]", "5 is no object"),
        (lambda s: s.replace('"children_spec"', '"children"', 1), "the field 'children_spec' is missing"),
        (lambda s: s.replace("builtins.dict", "builtins.tuple"), "is no tuple of arguments and dict"),
        (lambda s: s.replace('\\"scale\\"', '\\"scale\\", \\"b\\"'), "2 keys and 1 children"),
    ],
)
def test_a_damaged_record_of_nesting_is_named(change, text):
    restride.load(changed("in_spec", lambda s: s))
    with pytest.raises(restride.FileError, match=f"the record in_spec, .* is damaged: .*{text}"):
        restride.load(changed("in_spec", change))


def test_a_damaged_record_of_results_is_named():
    with pytest.raises(restride.FileError, match="the record out_spec, which tells how results are nested, is damaged"):
        restride.load(changed("out_spec", lambda s: s[1:]))
    with pytest.raises(restride.UnsupportedError, match="out_spec is of pytree protocol 2"):
        restride.load(changed("out_spec", lambda s: s.replace("[1,", "[2,", 1)))


def test_memory_that_is_not_aligned_is_refused():
    memory = bytearray(64)
    for x in (np.frombuffer(memory, np.float32, 3, offset=1), np.frombuffer(memory, np.float32, 6, offset=1)[::2]):
        with pytest.raises(restride.InputsError, match=r"input x is not aligned: f32 .* of 4; pass a copy"):
            SUM(x, A)
        assert SUM(x.copy(), A).tolist() == A.tolist()


def test_threads_that_return_what_they_write():
    text = b"def forward(self, x):\n    n = self.n\n    add_ = n.add_(x)\n    return add_\n"
    x = np.ones(1000, np.float32)
    program = restride.load(text, inputs=(x,), weights={"n": x * 0})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: program(x), range(400)))
    assert program.state["n"].tolist() == [400] * 1000
    assert all(np.shares_memory(r, program.state.memory("n")) for r in results)

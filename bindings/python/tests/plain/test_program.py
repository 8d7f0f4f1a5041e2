"""The package without PyTorch."""

import concurrent.futures
import dataclasses
import io
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import restride

DATA = pathlib.Path(__file__).parent / "data"
EXAMPLES = ["llama_decode", "vit_small", "batchnorm_train", "box_decode", "classifier"]


def graph(text: str) -> restride.Program:
    return restride.load(text.encode())


ADD_ = graph("graph(%x: f32[2, 3], %y: f32[3]) {\n  %z: f32[2, 3] = aten.add_.Tensor(%x, %y)\n  return %z\n}\n")


def leaves(value: object) -> list[np.ndarray]:
    return [np.asarray(v) for v in (value if isinstance(value, tuple) else (value,))]


def command(*args: str, **kwargs: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "restride", *args], capture_output=True, text=True, **kwargs)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_call_equals_the_command_bit_for_bit(name, examples, tmp_path):
    path = examples / f"{name}.pt2"
    program = restride.load(path)
    args, kwargs = program.sample_inputs()
    got = leaves(program(*args, **kwargs))
    done = command("run", str(path), "--outputs", str(tmp_path / "out.npz"))
    assert done.returncode == 0, done.stderr
    want = np.load(tmp_path / "out.npz")
    assert got
    for i, value in enumerate(got):
        assert value.tobytes() == want[f"output.{i}"].tobytes()
    for key in want.files:
        kind, _, rest = key.partition(".")
        if kind in ("buffer", "parameter"):
            assert program.state[rest].tobytes() == want[key].tobytes()


def test_sources(examples):
    path = examples / "box_decode.pt2"
    of_path, of_text = restride.load(path), restride.load(str(path))
    of_bytes, of_file = restride.load(path.read_bytes()), restride.load(io.BytesIO(path.read_bytes()))
    args, _ = of_path.sample_inputs()
    results = [leaves(p(*args)) for p in (of_path, of_text, of_bytes, of_file)]
    for other in results[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(results[0], other, strict=True))


FX_TEXT = b"""\
>>> print(gm.code)

def forward(self, x, y, n):
    lin = torch.nn.functional.linear(x, self.w)
    add = lin + y
    return add * n
"""


def test_inputs_of_a_text_without_types():
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    x, y = np.ones((4, 3), np.float32), np.zeros((4, 1), np.float32)
    with pytest.raises(restride.InputsError, match="types of its inputs"):
        restride.load(FX_TEXT)
    for inputs in ((x, y, 2), {"n": 2, "x": x, "y": y}, "x=f32[4,3],y=f32[4,1],n=2"):
        program = restride.load(FX_TEXT, inputs=inputs, weights={"w": w})
        assert program(x, y, 2).tolist() == [[6, 24]] * 4
        assert program.state["w"].tolist() == w.tolist()
    with pytest.raises(TypeError, match="pass a tuple"):
        restride.load(FX_TEXT, inputs=x, weights={"w": w})
    with pytest.raises(restride.InputsError, match="z"):
        restride.load(FX_TEXT, inputs={"x": x, "y": y, "n": 2, "z": y}, weights={"w": w})


@pytest.mark.parametrize(
    "dynamic",
    [
        "x.0=1..64,y.0=x.0",
        "y.0=x.0,x.0=1..64",
        {"x": {0: (1, 64)}, "y": {0: "x.0"}},
        {"y": {0: "batch"}, "x": {0: "batch"}},
        {"x": ("batch", None), "y": ["batch", None], "n": None},
    ],
)
def test_symbolic_sizes_of_a_text(dynamic):
    w, x, y = (np.ones(s, np.float32) for s in ((2, 3), (4, 3), (4, 1)))
    program = restride.load(FX_TEXT, inputs=(x, y, 2), dynamic=dynamic, weights={"w": w})
    for rows in (1, 4, 9):
        assert program(np.ones((rows, 3), np.float32), np.ones((rows, 1), np.float32), 2).shape == (rows, 2)
    with pytest.raises(restride.Error):
        program(np.ones((5, 3), np.float32), np.ones((4, 1), np.float32), 2)
    with pytest.raises(restride.InputsError, match=r"no input has the dimension x\.7"):
        restride.load(FX_TEXT, inputs=(x, y, 2), dynamic={"x": {7: (1, 2)}}, weights={"w": w})
    with pytest.raises(restride.InputsError, match=r"outside of 5\.\.6"):
        restride.load(FX_TEXT, inputs=(x, y, 2), dynamic={"x": {0: (5, 6)}}, weights={"w": w})
    with pytest.raises(restride.InputsError, match="must be equal"):
        restride.load(FX_TEXT, inputs=(x, y, 2), dynamic={"x": {0: "n"}, "y": {1: "n"}}, weights={"w": w})
    with pytest.raises(TypeError, match="dynamic"):
        restride.load(FX_TEXT, inputs=(x, y, 2), dynamic=3, weights={"w": w})


def test_advice_names_arguments_of_python():
    unknown = "def forward(self, x):\n    y = torch.ops.mylib.twist.default(x);  x = None\n    return (y,)\n"
    with pytest.raises(restride.UnsupportedError, match="not known") as e:
        restride.load(unknown.encode(), inputs=(np.ones(3, np.float32),))
    assert e.value.help == "give its schema in a file with the argument ops"
    assert str(e.value).endswith(e.value.help)


def test_inputs_of_a_scripted_archive(torchscript):
    archive = torchscript / "scripted_found.pt"
    given = json.loads((torchscript / "scripted_found.inputs.json").read_text())
    with pytest.raises(restride.InputsError, match="types of its inputs"):
        restride.load(archive)
    arrays = tuple(
        np.array(given["storages"][t["storage"]]["data"], t["dtype"]).reshape(t["size"]) for t in given["tensors"]
    )
    want = np.load(torchscript / "scripted_found.outputs.npz")
    got = leaves(restride.load(archive, inputs=arrays)(*arrays))
    assert got
    for i, value in enumerate(got):
        np.testing.assert_allclose(value, want[f"output.{i}"], rtol=1e-5)


def test_a_file_of_text():
    text = "graph(%x: f32[2]) {\n  %y: f32[2] = aten.neg.default(%x)\n  return %y\n}\n"
    assert restride.load(io.StringIO(text))(np.ones(2, np.float32)).tolist() == [-1, -1]


def test_mutated_inputs_are_written_where_they_are():
    x, y = np.zeros((2, 3), np.float32), np.arange(3, dtype=np.float32)
    z = ADD_(x, y)
    assert x.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert np.shares_memory(z, x)
    z[0, 0] = 7
    assert x[0, 0] == 7


def test_read_only_memory_is_refused_where_it_is_written():
    x, y = np.zeros((2, 3), np.float32), np.arange(3, dtype=np.float32)
    y.flags.writeable = False
    ADD_(x, y)
    x.flags.writeable = False
    with pytest.raises(restride.InputsError, match="read-only"):
        ADD_(x, y)
    assert x.tolist() == [[0, 1, 2], [0, 1, 2]]


def test_other_strides_and_shared_memory_are_compiled_for():
    big = np.zeros((3, 2), np.float32)
    ADD_(big.T, np.ones(3, np.float32))
    assert big.tolist() == [[1, 1]] * 3
    flipped = np.zeros((2, 6), np.float32)[:, ::2]
    ADD_(flipped, np.arange(3, dtype=np.float32))
    assert flipped.tolist() == [[0, 1, 2]] * 2
    # Eager PyTorch refuses a partial overlap within one tensor, and so does restride, wherever the arrays come from.
    shared = np.arange(6, dtype=np.float32).reshape(2, 3)
    with pytest.raises(restride.ProgramError, match="single memory location"):
        ADD_(shared, shared[0])
    square = np.ones((3, 3), np.float32)
    double = graph("graph(%x: f32[3], %y: f32[3]) {\n  %z: f32[3] = aten.add_.Tensor(%x, %y)\n  return %z, %y\n}\n")
    first, second = double(square[1], square[1])
    assert square.tolist() == [[1, 1, 1], [2, 2, 2], [1, 1, 1]] and np.shares_memory(first, second)


def test_negative_strides_are_refused_as_pytorch_refuses_them():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(restride.InputsError, match="negative strides"):
        ADD_(x, np.arange(3, dtype=np.float32)[::-1])


def test_arrays_that_lend_by_dlpack_alone():
    class Lender:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = np.zeros((2, 3), np.float32)
    ADD_(Lender(x), Lender(np.ones(3, np.float32)))
    assert x.tolist() == [[1, 1, 1]] * 2


def test_tensors_of_restride_go_in_and_out():
    bf16 = graph("graph(%x: f32[2]) {\n  %y: bf16[2] = aten._to_copy.default(%x, dtype=bf16)\n  return %y\n}\n")
    back = graph("graph(%x: bf16[2]) {\n  %y: f32[2] = aten._to_copy.default(%x, dtype=f32)\n  return %y\n}\n")
    half = bf16(np.array([1.5, -2], np.float32))
    assert isinstance(half, restride.Tensor)
    assert (half.dtype, half.shape, half.strides) == ("bfloat16", (2,), (1,))
    assert np.asarray(back(half)).tolist() == [1.5, -2]
    with pytest.raises(AttributeError, match="NumPy has no bf16"):
        _ = half.__array_interface__


def test_errors_say_what_where_and_how():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(restride.InputsError, match="input y") as e:
        ADD_(x, np.zeros(4, np.float32))
    assert isinstance(e.value, ValueError)
    with pytest.raises(TypeError, match="is a list"):
        ADD_(x, [1.0, 2.0, 3.0])
    gather = graph(
        "graph(%x: f32[3], %i: i64[1]) {\n  %y: f32[1] = aten.index_select.default(%x, 0, %i)\n  return %y\n}\n"
    )
    with pytest.raises(restride.ProgramError) as e:
        gather(np.zeros(3, np.float32), np.array([5]))
    assert e.value.node == "%y = aten.index_select.default"
    assert e.value.what and e.value.what in str(e.value)
    with pytest.raises(restride.FileError):
        restride.load("there is no such file.pt2")
    with pytest.raises(restride.FileError, match="directory"):
        restride.load(pathlib.Path(__file__).parent)
    with pytest.raises(TypeError, match="pass a path, bytes or a file"):
        restride.load(None)
    with pytest.raises(OSError, match="neither"):
        restride.load(b"\xff\xfe")
    with pytest.raises(TypeError, match="unknown option"):
        ADD_._native.compile(sizes=1)


def test_an_error_names_the_source_line(examples):
    program = restride.load(examples / "llama_decode.pt2")
    args, kwargs = program.sample_inputs()
    token, *rest = args if args else list(kwargs.values())
    token = np.full_like(token, 10**6)
    with pytest.raises(restride.ProgramError) as e:
        program(token, *rest) if args else program(**{**kwargs, next(iter(kwargs)): token})
    assert e.value.source and ".py:" in e.value.source


def test_state_reads_and_writes(examples):
    program = restride.load(examples / "batchnorm_train.pt2")
    args, kwargs = program.sample_inputs()
    name = "0.1.running_mean"
    before = program.state[name]
    program(*args, **kwargs)
    after = program.state[name]
    assert not np.array_equal(before, after)
    program.state[name] = before
    assert np.array_equal(program.state[name], before)
    live = program.state.memory(name)
    live[:] = 3
    assert program.state[name].tolist() == live.tolist() and live[0] == 3
    program.reset()
    assert np.array_equal(program.state[name], before)
    assert name in program.state and len(program.state) == len(list(program.state))
    assert "no such" not in program.state and 3 not in program.state
    with pytest.raises(KeyError, match="it has"):
        program.state["no such"]
    with pytest.raises(restride.InputsError):
        program.state[name] = np.zeros(3, np.int32)


def test_instances_have_states_of_their_own(examples):
    program = restride.load(examples / "batchnorm_train.pt2")
    args, kwargs = program.sample_inputs()
    one, two = program.instance(), program.instance()
    one(*args, **kwargs)
    assert one.state["0.1.num_batches_tracked"] == 1
    assert two.state["0.1.num_batches_tracked"] == 0
    assert one.arena_bytes > 0


def test_a_session_runs_on_the_same_memory(examples):
    program = restride.load(examples / "vit_small.pt2")
    args, kwargs = program.sample_inputs()
    session = program.session(*args, **kwargs)
    first = session.run()
    want = np.array(first)
    args[0][:] = 0
    again = session.run()
    assert again is first and not np.array_equal(again, want)
    assert np.array_equal(again, program(*args, **kwargs))
    out = np.zeros_like(want)
    program.session(*args, outputs=[out], **kwargs).run()
    assert np.array_equal(out, again)


def test_weights_that_change_are_packed_again(examples):
    program = restride.load(examples / "vit_small.pt2")
    args, kwargs = program.sample_inputs()
    before = np.array(program(*args, **kwargs))
    name = "head.weight"
    weight = program.state[name]
    program.state[name] = weight * 2
    assert not np.array_equal(program(*args, **kwargs), before)
    program.state[name] = weight
    assert np.array_equal(program(*args, **kwargs), before)


def test_threads(examples):
    program = restride.load(examples / "vit_small.pt2")
    args, kwargs = program.sample_inputs()
    want = np.array(program(*args, **kwargs))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: np.array(program(*args, **kwargs)), range(64)))
    assert all(np.array_equal(r, want) for r in results)


def test_threads_that_write_the_state_take_turns(examples):
    program = restride.load(examples / "batchnorm_train.pt2")
    args, kwargs = program.sample_inputs()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: program(*args, **kwargs), range(40)))
    assert program.state["0.1.num_batches_tracked"] == 40


def test_gradients_and_training(examples):
    program = restride.load(examples / "classifier.pt2")
    args, kwargs = program.sample_inputs()
    loss, gradients = program.grad()(*args, **kwargs)
    assert {"head.weight", "features.0.weight"} <= set(gradients)
    name = "head.bias"
    step = 1e-3
    bias = program.state[name]
    slope = []
    for sign in (1, -1):
        moved = bias.copy()
        moved[0] += sign * step
        program.state[name] = moved
        slope.append(float(program(*args, **kwargs)))
    assert abs((slope[0] - slope[1]) / (2 * step) - gradients[name][0]) < 1e-2
    train = program.train_step("adam", lr=0.01)
    losses = [float(train(*args, **kwargs)) for _ in range(8)]
    assert abs(losses[0] - float(loss)) < 1e-5 and losses[-1] < losses[0]
    with pytest.raises(TypeError, match="unknown option"):
        program.train_step("sgd", betas=(0.9, 0.9))
    with pytest.raises(restride.InputsError, match="no optimizer"):
        program.train_step("lion")


def test_transformations_write_files(examples, tmp_path):
    program = restride.load(examples / "llama_decode.pt2")
    args, kwargs = program.sample_inputs()
    want = np.array(program(*args, **kwargs))
    functional = program.functionalize()
    assert functional.stage == "functional" and program.stage == "imported"
    for made in (
        functional,
        program.functionalize(portable=True),
        program.functionalize(views=True),
        program.reinplace(),
    ):
        made.save(tmp_path / "made.pt2")
        again = restride.load(tmp_path / "made.pt2")
        assert np.allclose(again(*args, **kwargs), want, atol=1e-6)
        assert np.array_equal(restride.load(made.to_bytes())(*args, **kwargs), again(*args, **kwargs))
    program.save(tmp_path / "text.fx")
    assert "graph(" in (tmp_path / "text.fx").read_text()
    program.compile().save(tmp_path / "planned.pt2")
    assert np.array_equal(restride.load(tmp_path / "planned.pt2")(*args, **kwargs), want)


def test_plans_reports_and_explanations(examples):
    program = restride.load(examples / "llama_decode.pt2")
    plan = program.plan()
    assert plan.arena_bytes >= plan.lower_bound_bytes > 0
    assert plan["buffers"] and dict(plan)["arena_bytes"] == plan.arena_bytes
    step, live = plan.peak()
    assert 0 < sum(b["bytes"] for b in live) <= plan.arena_bytes and step >= 0
    page = plan._repr_html_()
    assert "<svg" in page and "</svg>" in page and page.count("<rect") >= len(plan.buffers)
    assert "arena" in repr(plan)
    report = program.report()
    assert report["plan"]["arena_bytes"] == plan.arena_bytes and "checks" in report
    assert report.html().startswith("<!") and "\x1b" not in repr(report)
    why = program.explain("cat_1")
    assert why.copies and "copies that stay" in repr(why)
    assert "Program(llama_decode" in repr(program)
    assert "&lt;" not in program._repr_html_() or "<pre>" in program._repr_html_()
    with pytest.raises(restride.Error):
        program.explain("no_such_value")


def test_a_budget_is_kept(examples):
    program = restride.load(examples / "classifier.pt2").grad(keep="all")
    full = program.plan().arena_bytes
    budget = program.compile(budget=int(full * 0.9)).plan().arena_bytes
    assert budget <= full * 0.9
    with pytest.raises(restride.Error):
        program.compile(budget=100).plan()


def test_verify_and_the_oracle(examples):
    program = restride.load(examples / "box_decode.pt2")
    verdict = program.verify()
    assert verdict["checks"]["plan"] == "ok"
    args, kwargs = program.sample_inputs()
    for a, b in zip(leaves(program.interpret(*args, **kwargs)), leaves(program(*args, **kwargs)), strict=True):
        assert a.tobytes() == b.tobytes()


def test_symbolic_sizes(pt2):
    program = restride.load(pt2 / "dynamic_batch.pt2")
    assert any(isinstance(s, str) for s in program.inputs[0].shape)
    for n in (2, 5, 3):
        (x, *rest), kwargs = program.random_inputs()
        x = np.resize(x, (n, *x.shape[1:]))
        out = leaves(program(x, *rest, **kwargs))
        assert out[0].shape[0] == n


Point = dataclasses.make_dataclass("Point", ["x", "y", ("label", object, None)])


def test_nesting():
    """Of arguments and results: as exported by make_nested.py."""
    program = restride.load(DATA / "nested.pt2")
    a = np.arange(3, dtype=np.float32)
    out = program({"a": a, "b": [a + 1, (a + 2,)]}, scale=a * 0 + 2)
    assert set(out) == {"sum", "pair", "point"}
    assert out["sum"].tolist() == (a * 3 + 3).tolist()
    pair = out["pair"]
    assert isinstance(pair, tuple) and pair[0].tolist() == (a * 2).tolist()
    assert out["point"].x.tolist() == a.tolist() and out["point"].label is None
    with pytest.raises(restride.InputsError, match="lacks 'b'"):
        program({"a": a}, scale=a)
    restride.register_dataclass(Point, serialized_type_name="nested.Point")
    again = restride.load(DATA / "nested.pt2")({"a": a, "b": [a + 1, (a + 2,)]}, scale=a)
    assert isinstance(again["point"], Point)


def test_models_of_an_archive(pt2):
    assert restride.models(pt2 / "prefill_decode.pt2") == ["decode", "prefill"]
    assert restride.load(pt2 / "prefill_decode.pt2", model="decode").inputs
    with pytest.raises(restride.Error):
        restride.load(pt2 / "prefill_decode.pt2", model="other")


def test_the_command():
    assert command("--version").stdout.split()[1] == restride.__version__
    assert "functionalize" in command("--help").stdout
    wrong = command("compile", "no-such-file.pt2")
    assert wrong.returncode == 1 and "no-such-file" in wrong.stderr
    assert command("frobnicate").returncode == 2
    assert any(row["name"] == "aten.add.Tensor" for row in restride.ops())


def test_a_wheel_has_its_types():
    root = pathlib.Path(restride.__file__).parent
    assert (root / "py.typed").exists() and (root / "_restride.pyi").exists()


def test_nothing_imports_torch():
    done = subprocess.run(
        [sys.executable, "-c", "import restride, sys; sys.exit('torch' in sys.modules)"], capture_output=True
    )
    assert done.returncode == 0

"""`torch.compile(backend="restride")` beside eager PyTorch."""

import gc
import warnings
import weakref

import pytest
import restride
import torch
from torch import nn


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        # What the tests compile, restride runs.
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        yield


def compiled(model, **kwargs):
    return torch.compile(model, backend="restride", **kwargs)


def network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8 * 36, 5)
    )


def test_the_backend_is_known_by_name():
    assert "restride" in torch._dynamo.list_backends()


def test_inference():
    m, x = network().eval(), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        assert torch.allclose(compiled(m, fullgraph=True)(x), m(x), atol=1e-5)


def test_training_steps_follow_eager():
    def train(wrap):
        torch.manual_seed(0)
        m = network()
        run, optimizer = wrap(m), torch.optim.SGD(m.parameters(), lr=0.1)
        for step in range(4):
            x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(step))
            loss = run(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [loss.detach(), *(p.detach() for p in m.parameters()), *m.buffers()]

    for a, b in zip(train(compiled), train(lambda m: m), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_weights_that_change_are_seen():
    m, x = nn.Linear(64, 64).eval(), torch.randn(2, 64)
    c = compiled(m)
    with torch.no_grad():
        for change in (
            lambda: m.weight.mul_(2),
            lambda: m.load_state_dict(nn.Linear(64, 64).state_dict()),
            lambda: setattr(m.weight, "data", torch.randn(64, 64)),
            lambda: m.weight.data.mul_(3),
            lambda: setattr(m, "weight", nn.Parameter(torch.randn(64, 64))),
            *[lambda: m.bias.add_(1)] * 6,
        ):
            assert torch.allclose(c(x), m(x), atol=1e-4)
            change()
            assert torch.allclose(c(x), m(x), atol=1e-4)


def test_weights_are_not_kept_alive():
    m, x = nn.Linear(8, 8).eval(), torch.randn(2, 8)
    with torch.no_grad():
        compiled(m)(x)
    gone = weakref.ref(m.weight)
    del m
    torch._dynamo.reset()
    gc.collect()
    assert gone() is None


def test_inputs_and_buffers_are_mutated_in_place():
    def f(x, y):
        x.add_(1)
        y[:, 0] = x[:, 1]
        return x * 2, y.t(), y[1]

    given = [torch.randn(3, 4), torch.randn(3, 4)]
    eager = [t.clone() for t in given]
    got, want = compiled(f, fullgraph=True)(*given), f(*eager)
    for a, b in zip([*given, *got], [*eager, *want], strict=True):
        assert torch.equal(a, b)
    # A view of an input is one here, too.
    assert got[1]._base is given[1]
    got[2].fill_(9)
    assert given[1][1].tolist() == [9] * 4


def test_aliased_inputs():
    def f(x, y):
        x.mul_(2)
        return x + y

    base, other = torch.randn(6), None
    other = base.clone()
    assert torch.equal(compiled(f)(base[:4], base[2:]), f(other[:4], other[2:])) and torch.equal(base, other)


def test_returned_arguments_share_memory_with_written_ones():
    def f(a, b):
        a[0] = 2
        return b

    a = torch.ones(1)
    b = a.squeeze()
    got = compiled(f, fullgraph=True)(a, b)
    assert got.data_ptr() == a.data_ptr() and got.item() == 2

    # Here PyTorch gives the graph both, although they share memory.
    def g():
        a = torch.tensor([1])
        b = a.squeeze()
        a[0] = 0
        torch._dynamo.graph_break()
        a[0] = 2
        return b

    assert compiled(g)().item() == 2


def test_dynamic_shapes():
    def f(x):
        return (x.sin() + x.shape[0]).sum(0), x.reshape(-1), x.shape[0] * 2

    c = compiled(f, dynamic=True, fullgraph=True)
    for n in (3, 5, 7, 3):
        x = torch.randn(n, 4)
        for a, b in zip(c(x), f(x), strict=True):
            assert torch.allclose(a, b) if isinstance(a, torch.Tensor) else a == b
    x = torch.randn(6, 4, requires_grad=True)
    c(x)[0].sum().backward()
    grad, x.grad = x.grad, None
    f(x)[0].sum().backward()
    assert torch.allclose(grad, x.grad)


def test_random_numbers_follow_the_seed():
    c = compiled(lambda x: nn.functional.dropout(x, 0.5, training=True))
    x = torch.ones(1000)
    torch.manual_seed(3)
    first, second = c(x), c(x)
    torch.manual_seed(3)
    assert torch.equal(c(x), first) and not torch.equal(first, second)
    assert 350 < int((first == 0).sum()) < 650 and set(first.tolist()) == {0.0, 2.0}
    m = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    x = torch.ones(2, 4, requires_grad=True)
    out = compiled(m)(x)
    out.sum().backward()
    # Backward has forward's mask.
    m.zero_grad()
    mask = (out != 0).float() * 2
    assert torch.allclose(x.grad, mask @ m[0].weight, atol=1e-6)
    with pytest.warns(UserWarning, match="random"):
        torch._dynamo.reset()
        e = compiled(lambda x: nn.functional.dropout(x, 0.5, training=True), options={"fallback_random": True})
        torch.manual_seed(3)
        a = e(torch.ones(10))
    torch.manual_seed(3)
    assert torch.equal(a, nn.functional.dropout(torch.ones(10), 0.5, training=True))


def test_attention_that_drops_nothing_draws_nothing():
    q = torch.randn(1, 2, 4, 8)
    ends = []
    for run in (
        nn.functional.scaled_dot_product_attention,
        compiled(nn.functional.scaled_dot_product_attention, fullgraph=True, options={"fallback_random": True}),
    ):
        torch.manual_seed(3)
        ends.append((run(q, q, q), torch.rand(2)))
    torch.testing.assert_close(*ends)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adadelta"])
def test_compiled_optimizers(name):
    def train(wrap):
        torch.manual_seed(0)
        m, x = nn.Linear(6, 3), torch.randn(4, 6)
        optimizer = getattr(torch.optim, name)(m.parameters(), lr=0.01)
        step = wrap(lambda: optimizer.step())
        for _ in range(4):
            m(x).square().sum().backward()
            step()
        return [p.detach() for p in m.parameters()]

    torch.testing.assert_close(train(compiled), train(lambda f: f))


def test_nested_tensors_are_left_to_eager():
    x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with pytest.warns(UserWarning, match="a size of a nested tensor"):
        y = compiled(lambda a: a + 1)(x)
    assert y.values().tolist() == [2.0] * 5


def test_autocast_and_no_grad():
    m, x = nn.Linear(8, 8), torch.randn(2, 8)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return m(x)

    with torch.no_grad():
        got = compiled(f)(x)
        assert got.dtype == torch.bfloat16 and torch.allclose(got.float(), f(x).float(), atol=2e-2)
        assert not compiled(m)(x).requires_grad
    with torch.inference_mode():
        inside = nn.Linear(8, 8)
        assert torch.allclose(compiled(inside)(x), inside(x), atol=1e-5)


def test_graph_breaks():
    def f(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    x = torch.randn(4)
    assert torch.allclose(compiled(f)(x), f(x))


def unknown(x):
    return torch.ops.demo.unknown(x.sin()) + 1


@torch.library.custom_op("demo::unknown", mutates_args=())
def _unknown(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@_unknown.register_fake
def _(x):
    return torch.empty_like(x)


_unknown.register_autograd(lambda context, g: torch.ops.demo.unknown(g))


def test_what_restride_cannot_run_is_left_to_eager_by_name():
    x = torch.randn(4)
    with pytest.warns(UserWarning, match=r"operator to eager PyTorch.*demo\.unknown"):
        assert torch.allclose(compiled(unknown)(x), unknown(x))
    torch._dynamo.reset()
    assert torch.allclose(compiled(unknown)(x), unknown(x))  # warned once
    for options in ({"fullgraph": True}, {"options": {"fallback": False}}):
        torch._dynamo.reset()
        with pytest.raises(Exception, match=r"demo\.unknown") as e:
            compiled(unknown, **options)(x)
        refused = e.value.__cause__ or e.value.inner_exception
        assert isinstance(refused, restride.Error)
        assert "without fullgraph=True" in refused.help and "--ops" not in str(e.value)


@pytest.fixture
def pieces(monkeypatch):
    """The pieces of each graph: whose they are, and their operators."""
    from restride.torch import backend

    found = []
    cut = backend.cut

    def noted(gm, eager):
        made = cut(gm, eager)
        calls = lambda p: [str(n.target).removesuffix(".default") for n in p.gm.graph.nodes if n.op == "call_function"]
        found.append([("restride" if p.own else "eager", *calls(p)) for p in made])
        return made

    monkeypatch.setattr(backend, "cut", noted)
    # What is left to eager PyTorch has been named.
    monkeypatch.setattr(backend, "_tell", lambda *a: None)
    return found


def test_one_operator_leaves_the_others_to_restride(pieces):
    def f(x):
        u = torch.ops.demo.unknown
        return u(x.sin()).cos() + u(x.cos()).sin()

    x = torch.randn(4)
    assert torch.allclose(compiled(f)(x), f(x))
    # Independent calls share a piece.
    assert pieces == [
        [
            ("restride", "aten.sin", "aten.cos"),
            ("eager", "demo.unknown", "demo.unknown"),
            ("restride", "aten.cos", "aten.sin", "aten.add.Tensor"),
        ]
    ]


def test_pieces_have_gradients_and_weights(pieces):
    m = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))

    def f(x):
        return m[1](torch.ops.demo.unknown(m[0](x)))

    x = torch.randn(3, 4)
    c = compiled(f)
    with torch.no_grad():
        for _ in range(3):
            assert torch.allclose(c(x), f(x), atol=1e-5)
            m[0].weight.mul_(2)
    x.requires_grad_()
    c(x).square().sum().backward()
    have = [x.grad, *(p.grad for p in m.parameters())]
    x.grad = None
    m.zero_grad()
    f(x).square().sum().backward()
    for a, b in zip(have, [x.grad, *(p.grad for p in m.parameters())], strict=True):
        assert torch.allclose(a, b, atol=1e-3)
    assert {kind for graph in pieces for kind, *_ in graph} == {"restride", "eager"}


def test_writes_stay_in_order_between_pieces(pieces):
    def f(x, y):
        z = torch.ops.demo.unknown(x) + 1
        before = x.t()
        x.add_(z.sin())
        y.mul_(torch.ops.demo.unknown(x))
        return x + y, z.view(-1), before, before * 2

    given = [torch.randn(3, 3), torch.randn(3, 3)]
    eager = [t.clone() for t in given]
    got, want = compiled(f)(*given), f(*eager)
    for a, b in zip([*given, *got], [*eager, *want], strict=True):
        assert torch.allclose(a, b)
    assert got[2]._base is given[0]


def test_pieces_of_changing_sizes(pieces):
    def f(x):
        y = torch.ops.demo.unknown(x.sin().reshape(-1))
        return y.reshape(x.shape) * x.shape[0], x.shape[0] + 1

    c = compiled(f, dynamic=True)
    for n in (3, 5, 7, 3):
        x = torch.randn(n, 4)
        (a, n), (b, m) = c(x), f(x)
        assert torch.allclose(a, b) and n == m
    assert len(pieces) == 1


def test_sizes_that_data_decide_are_left_to_eager(pieces):
    def f(x):
        return (x > 0).nonzero()[:, 0].float().sin() * 2

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        c = compiled(f)
        for n in (4, 6):
            x = torch.randn(n, 5)
            torch.testing.assert_close(c(x), f(x))
    assert [kind for kind, *_ in pieces[0]] == ["restride", "eager", "restride"]


def test_a_view_in_another_element_type():
    x = torch.randn(3, 2)
    c = compiled(lambda x: (torch.view_as_complex(x)[1:], x * 2), fullgraph=True)
    view, _ = c(x)
    assert view.dtype == torch.complex64
    x.fill_(7)
    assert torch.equal(view, torch.view_as_complex(x)[1:])


def test_errors_of_operators_are_raised():
    c = compiled(lambda x, i: x[i])
    assert c(torch.arange(3.0), torch.tensor([1])).tolist() == [1.0]
    with pytest.raises(restride.ProgramError, match="out of"):
        c(torch.arange(3.0), torch.tensor([5]))


def test_unknown_options():
    with pytest.raises(Exception, match="unknown options"):
        compiled(lambda x: x + 1, options={"max_autotune": True})(torch.ones(1))


def test_threads():
    import concurrent.futures

    m, x = network().eval(), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        c, want = compiled(m), m(x)
        c(x)

    def run(_):
        with torch.no_grad():
            return c(x)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(torch.allclose(r, want, atol=1e-5) for r in pool.map(run, range(32)))


def test_outputs_are_fresh_memory():
    c, x = compiled(lambda x: x + 1), torch.zeros(3)
    first = c(x)
    c(torch.ones(3))
    assert first.tolist() == [1, 1, 1]
    first.resize_(6)


def test_control_flow():
    def f(x, n):
        return torch.cond(n.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    c = compiled(f, fullgraph=True)
    for n in (torch.ones(1), -torch.ones(1)):
        x = torch.randn(3)
        assert torch.allclose(c(x, n), f(x, n))


def test_a_dictionary_of_outputs():
    c = compiled(lambda d: {"a": d["x"] + 1, "b": [d["x"], None]})
    x = torch.ones(2)
    out = c({"x": x})
    assert out["b"][0] is x and out["b"][1] is None and out["a"].tolist() == [2, 2]


def test_errors_of_factorisations_are_raised():
    # AOTAutograd orders such effects by tokens, which a call gets as None.
    inverse = torch.compile(torch.linalg.inv, backend="restride", fullgraph=True)
    x = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
    assert torch.allclose(inverse(x), torch.linalg.inv(x))
    with pytest.raises(restride.Error, match="singular"):
        inverse(torch.zeros(2, 2))


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_one_operator_in_training(masked):
    from restride.torch import backend

    graphs = []
    made = backend.archive

    def seen(gm):
        graphs.append(str(gm.graph))
        return made(gm)

    def attend(q, k, v, mask):
        return nn.functional.scaled_dot_product_attention(q, k, v, mask)

    mask = torch.randn(5, 7) if masked else None
    qkv = [torch.randn(2, 3, n, 4, requires_grad=True) for n in (5, 7, 7)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "archive", seen)
        have = torch.autograd.grad(compiled(attend)(*qkv, mask).square().sum(), qkv)
    want = torch.autograd.grad(attend(*qkv, mask).square().sum(), qkv)
    assert len(graphs) == 2
    assert "_scaled_dot_product_flash_attention_for_cpu" in graphs[0]
    assert "_scaled_dot_product_flash_attention_for_cpu_backward" in graphs[1]
    for a, b in zip(have, want, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_lazily_conjugated_and_negated_values():
    def f(z, x):
        # `imag` of a conjugate is negated lazily.
        return z.conj() * x, z.conj().imag, torch.view_as_complex(x.reshape(2, 2)).conj()

    z, x = torch.randn(4, dtype=torch.complex64), torch.randn(4)
    for one in (z, z.conj()):
        for own, eager in zip(compiled(f, fullgraph=True)(one, x), f(one, x), strict=True):
            assert torch.equal(own, eager)
    # Autograd hands a conjugated gradient over.
    leaves = [[t.clone().requires_grad_() for t in (z, x)] for _ in range(2)]
    for (a, b), run in zip(leaves, (compiled(f), f), strict=True):
        first, second, third = run(a, b)
        (first.conj().sum().imag + (second * x).sum() + third.imag.sum()).backward()
    for own, eager in zip(*leaves, strict=True):
        assert torch.allclose(own.grad, eager.grad)


def test_norms_under_autocast_train():
    norm, linear = nn.LayerNorm(8), nn.Linear(8, 8)

    def f(x):
        with torch.autocast("cpu", torch.bfloat16):
            return norm(linear(x)).float()

    x, grads = torch.randn(4, 8), []
    for run in (f, compiled(f), compiled(f, dynamic=True)):
        norm.zero_grad()
        run(x).square().sum().backward()
        grads.append(norm.weight.grad.clone())
    assert torch.allclose(grads[0], grads[1], rtol=0.05) and torch.allclose(grads[0], grads[2], rtol=0.05)


def test_a_branch_reads_a_size_of_the_graph():
    def f(x):
        def big(x):
            return x.sin() * x.shape[0]

        return torch.cond(x.sum() > 0, big, lambda x: x.cos(), (x,))

    run = compiled(f, dynamic=True, fullgraph=True)
    with torch.no_grad():
        for n in (3, 5):
            for x in (torch.ones(n, 2), -torch.ones(n, 2)):
                assert torch.allclose(run(x), f(x))


def test_istft_of_several_signals():
    window = torch.hann_window(16)

    def f(x):
        return torch.istft(torch.stft(x, 16, 4, window=window, return_complex=True) * 2, 16, 4, window=window)

    x = torch.randn(3, 64)
    assert torch.allclose(compiled(f, fullgraph=True)(x), f(x), atol=1e-5)


def test_a_write_into_a_result_that_backward_keeps_is_seen():
    x = torch.ones(2, requires_grad=True)
    y = compiled(torch.exp)(x)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("of", ["part", "column", "expanded", "imaginary"])
def test_inputs_that_are_conjugated_lazily_need_not_be_dense(of):
    z = torch.complex(torch.arange(12.0), torch.ones(12)).view(3, 4)
    x = {
        "part": z[:, ::2].conj(),
        "column": z.conj()[:, 1],
        "expanded": z[:1].conj().expand(3, 4),
        "imaginary": z.mH.imag,
    }[of]
    assert torch.equal(compiled(lambda x: x * 2)(x), x * 2)


def test_a_view_of_a_written_input_crosses_a_cut():
    @torch.library.custom_op("restride_test::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    square.register_fake(lambda x: torch.empty_like(x))

    def step(x):
        x[0].add_(square(x[0]))
        return x.t()

    x, y = torch.ones(2, 2), torch.ones(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(compiled(step)(x), step(y))
    assert torch.equal(x, y)

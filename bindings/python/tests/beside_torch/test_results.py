"""Results' memory is PyTorch's: it is resized, shared and freed as eager's is, and it is never another tensor's."""

import gc

import pytest
import torch

LARGE, SMALL = (300, 200), (3, 2)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def function(x, w):
    """Results of their own memory, and one that is a view of such."""
    return (x * w).tanh(), (x + w).t()


def compiled(train, sizes=LARGE):
    """A function that runs the compiled one on new numbers, and gives its results and the gradient."""
    run = torch.compile(function, backend="restride", fullgraph=True)
    w = torch.randn(sizes, requires_grad=train)

    def call():
        x, w.grad = torch.randn(sizes), None
        results = run(x, w)
        wants = [r.detach() for r in function(x, w)]
        if train:
            sum(r.sum() for r in results).backward()
            want = torch.autograd.grad(sum(r.sum() for r in function(x, w)), [w])
            return [*(r.detach() for r in results), w.grad], [*wants, *want]
        return list(results), wants

    return call


def same(have, want):
    return all(torch.allclose(a, b, atol=1e-5) for a, b in zip(have, want, strict=True))


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("sizes", [LARGE, SMALL])
def test_results_are_resized_as_eagers(train, sizes):
    call = compiled(train, sizes)

    def larger(t):
        before, count = t.clone().t().contiguous() if t.stride(0) == 1 else t.clone(), t.numel()
        t.resize_(2 * sizes[0], 3 * sizes[1]).view(-1)[count:] = 7.0
        assert torch.equal(t.view(-1)[:count], before.view(-1))

    def smaller(t):
        assert t.resize_(2, 2).shape == (2, 2)

    def freed(t):
        t.untyped_storage().resize_(0)
        assert t.untyped_storage().nbytes() == 0

    def set_(t):
        assert t.set_(torch.ones(3)).sum() == 3

    def numpy(t):
        t.numpy()[:] = 1.0

    def shared(t):
        assert t.share_memory_().is_shared()

    for change in (larger, smaller, freed, set_, numpy, shared):
        have, want = call()
        assert same(have, want)
        assert all(t.untyped_storage().resizable() and t._version == 0 for t in have[: len(have) - train])
        assert [t.untyped_storage().nbytes() for t in have] == [t.untyped_storage().nbytes() for t in want]
        for t in have:
            change(t)
        have, want = call()
        assert same(have, want)


HOLDERS = {
    "tensor": lambda t: t,
    "detached": lambda t: t.detach(),
    "view": lambda t: t[1:2],
    "storage": lambda t: t.untyped_storage(),
    "typed storage": lambda t: t.storage(),
    "set on": lambda t: torch.empty(0).set_(t.untyped_storage(), 0, (2,)),
    "numpy": lambda t: t.numpy(),
    "dlpack": lambda t: torch.utils.dlpack.to_dlpack(t),
    "data": lambda t: t.data,
    "lazy clone": lambda t: t._lazy_clone(),
    "parameter": lambda t: torch.nn.Parameter(t),
    "saved for backward": lambda t: torch.ones(2, requires_grad=True)[0] * t,
    "swapped data": lambda t: swapped(t),
}


def swapped(t):
    other = torch.empty(t.numel()).untyped_storage()
    other._swap_data_ptr_(t.untyped_storage())
    return other


@pytest.mark.parametrize("how", HOLDERS)
def test_memory_that_is_in_use_is_not_taken(how):
    call = compiled(True)
    call()
    have, want = call()
    assert same(have, want)
    places = [(t.data_ptr(), t.untyped_storage().nbytes()) for t in have]
    held = [HOLDERS[how](t) for t in have]
    del have
    gc.collect()
    for _ in range(3):
        now, want = call()
        assert same(now, want)
        for t in now:
            ends = [(s, s + n) for s, n in places]
            assert not any(s <= t.data_ptr() < e for s, e in ends)
    del held


def test_memory_is_taken_again_and_bounded():
    call = compiled(True)
    first = {t.data_ptr() for t in call()[0]}
    # What the forward part saved is given back with the results.
    again = {t.data_ptr() for t in call()[0]}
    assert first & again
    seen = set()
    for _ in range(8):
        seen |= {t.data_ptr() for t in call()[0]}
    assert len(seen) <= 2 * len(first)


def test_the_most_bytes_of_results_are_kept():
    from restride import _restride
    from restride.torch._graphs import archive
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(LARGE)
    gm = make_fx(lambda x: (x * 2, x.t() + 1, (x - 1)[1:]))(x)
    graph, bytes = _restride.Graph(archive(gm), [], 1, fold=False), x.numel() * 4

    def want():
        return [x * 2, x.t() + 1, (x - 1)[1:]]

    assert graph.kept == 0
    one = graph([x])
    assert same(one, want()) and graph.kept == 0
    two = graph([x])
    del one
    assert graph.kept == 3 * bytes
    three = graph([x])
    assert graph.kept == 0 and same(three, want())
    two[0].untyped_storage().resize_(20 * bytes)
    three[1].untyped_storage().resize_(0)
    del two, three
    four = graph([x])
    assert same(four, want()) and graph.kept <= 3 * bytes
    del four
    last = graph([x])
    assert same(last, want()) and graph.kept <= 3 * bytes
    # A result outlives the graph.
    del graph
    gc.collect()
    assert same(last, want())


def test_views_of_one_result_share_its_memory():
    from restride import _restride
    from restride.torch._graphs import archive
    from torch.fx.experimental.proxy_tensor import make_fx

    def views(x):
        y = x.relu()
        return y, y.t(), y[1:], y.view(torch.int32)

    for sizes in (LARGE, SMALL):
        x = torch.randn(sizes)
        for fold in (True, False):
            graph = _restride.Graph(archive(make_fx(views)(x)), [], 1, fold=fold)
            for _ in range(3):
                have, want = graph([x]), views(x)
                assert all(torch.equal(a, b) and a.stride() == b.stride() for a, b in zip(have, want))
                assert len({t.untyped_storage()._cdata for t in have}) == 1
                assert have[0].untyped_storage().resizable()
                assert have[0].untyped_storage().nbytes() == want[0].untyped_storage().nbytes()
                have[1].fill_(3.0)
                assert (have[0] == 3.0).all()


def test_inference_mode_leaves_no_tensors_of_its_own():
    m = torch.nn.Linear(300, 300)
    run = torch.compile(m, backend="restride")

    def step(mode):
        m.zero_grad()
        loss = run(torch.randn(200, 300)).square().mean()
        with torch.inference_mode(mode):
            loss.backward()
        return m.weight.grad

    step(True)
    for _ in range(3):
        grad = step(False)
        assert not grad.is_inference()
        (grad.requires_grad_() * 2).sum().backward()


@pytest.mark.parametrize("gradients", [True, False])
def test_a_view_of_all_of_a_result_has_eagers_storage(gradients):
    views = {
        "reshaped": lambda y: (y.view(12),),
        "turned": lambda y: (y.t(),),
        "expanded": lambda y: (y[0].relu().expand(5, 4),),
        "a part": lambda y: (y[1:],),
        "a part at the front": lambda y: (y[:2],),
        "two": lambda y: (y.t(), y.view(2, 6)),
        "itself and another": lambda y: (y, y.view(12)),
        "other elements": lambda y: (y.view(torch.int32),),
        "another shape of bytes": lambda y: (y.view(torch.uint8)[:, 4:],),
    }

    def storage(t):
        return t.untyped_storage().nbytes(), t.storage_offset(), t.stride(), t.shape, t.dtype

    for how, of in views.items():
        torch._dynamo.reset()
        run = torch.compile(lambda x, of=of: of(x * 2), backend="restride", fullgraph=True)
        kept = []
        for step in range(3):
            x = torch.randn(3, 4) + step
            with torch.set_grad_enabled(gradients):
                have, want = run(x), of(x * 2)
            assert [storage(t) for t in have] == [storage(t) for t in want], how
            shared = [len({t.untyped_storage().data_ptr() for t in all}) for all in (have, want)]
            assert shared[0] == shared[1], how
            kept.append((have, want))
        # Calls that came later have left them as they were.
        assert all(torch.equal(a, b) for have, want in kept for a, b in zip(have, want, strict=True)), how


def test_gradients_of_biases_are_tensors_of_their_own():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    run = torch.compile(model, backend="restride", fullgraph=True)
    kept = []
    for _ in range(3):
        x = torch.randn(5, 4)
        model.zero_grad()
        run(x).square().sum().backward()
        have = [p.grad for p in model.parameters()]
        want = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
        assert all(g.untyped_storage().nbytes() == 4 * g.numel() and not g._is_view() for g in have)
        kept.append((have, want))
    assert all(same(have, want) for have, want in kept)
    assert len({g.data_ptr() for have, _ in kept for g in have}) == 12


def test_arguments_that_are_written_are_looked_at_in_each_call():
    import restride
    from restride import _restride
    from restride.torch._graphs import archive
    from torch.fx.experimental.proxy_tensor import make_fx

    def writes(x, y):
        x.add_(y)
        return x * 2

    graph = _restride.Graph(archive(make_fx(writes)(torch.ones(4), torch.ones(4))), [], 1)
    memory = torch.arange(12.0)
    places = [(0, 4, True), (8, 4, True), (0, 3, False), (2, 2, False), (5, 1, True), (6, 4, False), (0, 8, True)]
    for a, b, apart in places:
        other = memory.clone()
        given = memory[a : a + 4], memory[b : b + 4]
        if apart:
            assert torch.equal(graph(list(given))[0], writes(other[a : a + 4], other[b : b + 4]))
        else:
            with pytest.raises(restride.InputsError, match="is written and shares memory"):
                graph(list(given))
        assert torch.equal(memory, other)
    assert graph.sessions == 1
    with pytest.raises(restride.InputsError, match="must have size 4"):
        graph([torch.ones(5), torch.ones(5)])
    with pytest.raises(restride.InputsError, match="must be of f32"):
        graph([torch.ones(4), torch.ones(4, dtype=torch.float64)])

"""`restride.torch` and `restride.verify`: PyTorch's own objects in and out."""

import functools
import io

import pytest
import restride
import restride.torch
import torch
from torch import nn


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        y = self.linear(x)
        self.seen += y[0]
        x[:, 0] = 7
        return y.relu_()


def export(module, *args):
    return torch.export.export(module, args, strict=False)


def mutations(gm):
    return [n for n in gm.graph.nodes if isinstance(n.target, torch._ops.OpOverload) and n.target._schema.is_mutable]


@pytest.fixture
def case():
    torch.manual_seed(0)
    return Cache().eval(), torch.randn(3, 4)


def test_functionalize_an_exported_program(case):
    module, x = case
    ep = export(module, x.clone())
    assert mutations(ep.graph_module)
    made = restride.torch.functionalize(ep)
    assert isinstance(made, torch.export.ExportedProgram) and not mutations(made.graph_module)
    given, eager = x.clone(), x.clone()
    with torch.no_grad():
        assert torch.allclose(made.module()(given), module(eager))
    assert torch.equal(given, eager)
    assert restride.torch.reinplace(ep) is not None


def test_functionalize_a_graph_module(case):
    module, x = case
    gm = export(module, x.clone()).module()
    made = restride.torch.functionalize(gm, [x.clone()])
    assert isinstance(made, torch.fx.GraphModule)
    assert all(n.target is torch.ops.aten.copy_.default for n in mutations(made))
    given, eager = x.clone(), x.clone()
    with torch.no_grad():
        assert torch.allclose(made(given), module(eager))
    assert torch.equal(given, eager)


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.linear(x), y)


def test_grad_and_train_step():
    torch.manual_seed(0)
    module, args = Loss(), (torch.randn(5, 4), torch.randint(0, 3, (5,)))
    ep = export(module, *args)
    joint = restride.torch.grad(ep, wrt=["linear.weight", "linear.bias"])
    kinds = {s.kind for s in joint.graph_signature.output_specs}
    assert torch.export.graph_signature.OutputKind.GRADIENT_TO_PARAMETER in kinds
    module(*args).backward()
    loss, gradients = restride.torch.program(ep).grad()(*args)
    assert torch.allclose(loss, module(*args)) and torch.allclose(
        gradients["linear.weight"], module.linear.weight.grad, atol=1e-6
    )
    step = restride.torch.train_step(ep, "sgd", lr=0.1)
    before = step.state_dict["linear.weight"].clone()
    with torch.no_grad():
        step.module()(*args)
    assert before.shape == (3, 4)


def test_plan_and_explain(case):
    module, x = case
    assert restride.torch.plan(export(module, x)).arena_bytes >= 0
    assert restride.torch.plan(module, x).arena_bytes >= 0

    def f(a):
        b = a.sin()
        return torch.cat([b, b + 1])

    said = repr(restride.torch.explain(f, x))
    # Lines are the function's own, not those of what calls it.
    assert "copies that stay" in said and "test_torch.py:" in said and "__init__.py" not in said
    assert "test_torch.py:" in repr(restride.torch.explain(functools.partial(f), x))
    for no_model in ("model.pt2", 5):
        with pytest.raises(TypeError, match="a module or a function is expected"):
            restride.torch.plan(no_model)
    with pytest.raises(TypeError, match="a tuple of the inputs"):
        restride.torch.functionalize(torch.fx.symbolic_trace(nn.ReLU()), x)


def test_tensors_of_pytorch_in_and_out(case):
    module, x = case
    file = io.BytesIO()
    torch.export.save(export(module, x.clone()), file)
    file.seek(0)
    program = restride.load(file)
    given, eager = x.clone(), x.clone()
    out = program(given)
    assert isinstance(out, torch.Tensor) and torch.allclose(out, module(eager), atol=1e-6)
    assert torch.equal(given, eager)
    # Leaves that ask for gradients are read where they are.
    assert program(x.clone().requires_grad_().detach()).shape == out.shape
    half = restride.load(b"graph(%x: bf16[2]) {\n  %y: bf16[2] = aten.neg.default(%x)\n  return %y\n}\n")
    assert half(torch.tensor([1.0, -2.0], dtype=torch.bfloat16)).tolist() == [-1.0, 2.0]
    with pytest.raises(restride.InputsError, match="resolve_conj"):
        z = restride.load(b"graph(%x: c64[2]) {\n  %y: c64[2] = aten.neg.default(%x)\n  return %y\n}\n")
        z(torch.zeros(2, dtype=torch.complex64).conj())
    for no_memory in (torch.zeros(3, 4, device="meta"), torch.eye(3, 4).to_sparse()):
        with pytest.raises(restride.InputsError, match=r"input x lends no memory: Cannot [^\n]*$") as e:
            program(no_memory)
        assert isinstance(e.value.__cause__, RuntimeError)


def test_verify(case):
    module, x = case
    found = restride.verify(module, x)
    assert found and found.compared >= 2 and "agree" in str(found)
    assert restride.verify(export(module, x), x)
    with pytest.raises(restride.UnsupportedError, match="random"):
        restride.verify(lambda a: a + torch.rand(2), torch.zeros(2))


def test_verify_compares_what_may_draw_and_does_not():
    torch.manual_seed(0)
    assert restride.verify(nn.Dropout().eval(), torch.ones(3))
    assert restride.verify(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.randn(1, 4, 8))
    assert restride.verify(nn.LSTM(4, 5, 2, dropout=0.5).eval(), torch.randn(3, 1, 4))
    for draws in (nn.Dropout(), nn.LSTM(4, 5, 2, dropout=0.5)):
        with pytest.raises(restride.UnsupportedError, match="random"):
            restride.verify(draws, torch.randn(3, 1, 4))


def test_verify_says_where_values_part(case):
    _, x = case

    class Wrong(nn.Module):
        def forward(self, a):
            b = a.sin()
            # Export records the branch that its own call takes; eager takes the other one.
            return b * (2 if torch.compiler.is_exporting() else 3)

    found = restride.verify(Wrong(), x)
    assert not found and "output.0" in str(found) and "elements differ" in str(found)

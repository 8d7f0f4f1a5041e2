"""Draw a model's parameters anew so that every block shows in its outputs.

Fresh models hide most of their blocks: layer scales of 1e-6, residual branches that end in a gain of 0, running statistics that
fit no activation, weights that shrink the signal layer by layer until outputs are 0 or 1e-14. A wrong kernel in a
hidden block passes every comparison. `liven` prevents that in two steps, both deterministic for a seed:

1. It draws parameters that repeat one value (gains, layer scales, biases, tokens): biases from N(0, 0.1), others from U(0.5, 1.5).
2. One forward pass scales each convolution and linear layer to outputs of unit root mean square, in the order in which the layers
   run (layer-sequential unit variance, Mishkin and Matas, "All you need is a good init", 2016), and gives each batch norm
   statistics that fit its input.

Other buffers (caches, counters) keep their contents.
"""

import copy

import torch
from torch import nn

# Exports of another version are made again.
VERSION = 4

PRODUCTS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Linear)
BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)


def liven(module, args, kwargs, seed=0):
    """Draw and calibrate `module` in place for inputs such as `args` and `kwargs`."""
    draw = torch.Generator().manual_seed(seed)
    frozen = {name: b.clone() for name, b in module.named_buffers()}
    hooks, done, measured = [], set(), set()
    with torch.no_grad():
        for name, p in module.named_parameters():
            if p.is_floating_point() and p.numel() and bool((p == p.flatten()[0]).all()):
                redraw(p, name, draw)

        def scale(layer, _, out):
            if layer in done or not isinstance(out, torch.Tensor) or out.numel() < 2:
                return None
            done.add(layer)
            bias = (
                0
                if layer.bias is None
                else layer.bias.view(-1, *[1] * (0 if isinstance(layer, nn.Linear) else out.dim() - 2))
            )
            size = (out - bias).square().mean().sqrt()
            if not torch.isfinite(size) or size < 1e-12:
                return None
            layer.weight.div_(size)
            return (out - bias) / size + bias

        def calibrate(norm, given):
            x = given[0]
            if norm in measured or norm.running_mean is None or x.dim() < 2:
                return
            measured.add(norm)
            over = [d for d in range(x.dim()) if d != 1]
            # The full mean and variance make a deep network of random weights chaotic: rounding grows by a factor a norm
            # (Yang et al., "A mean field theory of batch normalization", 2019). Half the mean and the second moment do not.
            norm.running_mean.copy_(0.5 * x.mean(over))
            # Nor may a channel that happens to be near 0 be magnified.
            second = x.square().mean(over)
            norm.running_var.copy_(second.clamp_min(max(0.3 * float(second.mean()), 1e-6)))

        for layer in module.modules():
            if isinstance(layer, PRODUCTS):
                hooks.append(layer.register_forward_hook(scale))
            elif isinstance(layer, BATCH_NORMS):
                hooks.append(layer.register_forward_pre_hook(calibrate))
        try:
            module(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        except torch._dynamo.exc.TorchDynamoException:
            # Eager control flow is captured, and hooks cannot be. Parameters drawn so far stay.
            torch._dynamo.reset()
        finally:
            for hook in hooks:
                hook.remove()
        statistics = {id(b) for norm in measured for b in (norm.running_mean, norm.running_var)}
        for name, b in module.named_buffers():
            if id(b) not in statistics and b.shape == frozen[name].shape:
                b.copy_(frozen[name])


def redraw(p, name, draw):
    """Draw a parameter that repeats one value."""
    # Parameters may be views that overlap themselves; those keep their value.
    if any(s == 0 and n > 1 for s, n in zip(p.stride(), p.shape)):
        return
    if name.rpartition(".")[2].startswith("bias") or name.endswith("bias"):
        p.copy_(0.1 * torch.randn(p.shape, generator=draw))
    else:
        p.copy_(0.5 + torch.rand(p.shape, generator=draw))


def silent(module, args, kwargs):
    """The names of parameters that no output depends on, by one backward pass; None where autograd cannot tell."""
    module, args, kwargs = copy.deepcopy((module, args, kwargs))
    try:
        with torch.enable_grad():
            named = [(n, p) for n, p in module.named_parameters() if p.is_floating_point()]
            for _, p in named:
                p.requires_grad_(True)
            leaves = torch.utils._pytree.tree_leaves(module(*args, **kwargs))
            outputs = [o for o in leaves if isinstance(o, torch.Tensor) and o.is_floating_point() and o.requires_grad]
            if not outputs:
                return None
            loss = sum((o.double() * torch.rand(o.shape, dtype=torch.float64)).sum() for o in outputs)
            grads = torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)
        scale = max(float(o.detach().abs().max()) for o in outputs if o.numel()) or 1.0
        shows = lambda p, g: g is not None and float((p.detach() * g).abs().max()) > 1e-9 * scale
        return [n for (n, p), g in zip(named, grads) if not shows(p, g)]
    except Exception:
        return None

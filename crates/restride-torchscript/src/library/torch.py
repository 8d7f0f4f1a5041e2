# Functions and methods of torch whose arguments are not those of an operator, as PyTorch writes them in torch/functional.py.


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    modes = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}
    return torch.ops.aten.cdist(x1, x2, p, modes[compute_mode])


def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    return torch.ops.aten.stft.center(
        input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window
    )


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    dims = [dim] if isinstance(dim, int) else dim
    if isinstance(p, str):
        if p == "fro" and (dims is None or len(dims) <= 2):
            return torch.ops.aten.linalg_vector_norm(input, 2, dims, keepdim, dtype=dtype)
        if dims is None:
            dims = range(input.dim())
        return torch.ops.aten.linalg_matrix_norm(input, p, dims, keepdim, dtype=dtype)
    return torch.ops.aten.linalg_vector_norm(input, 2.0 if p is None else p, dims, keepdim, dtype=dtype)


def tensordot(a, b, dims=2, out=None):
    if isinstance(dims, int):
        left = range(a.dim() - dims, a.dim())
        right = range(dims)
    else:
        left, right = dims
        left = [left] if isinstance(left, int) else left
        right = [right] if isinstance(right, int) else right
    return torch.ops.aten.tensordot(a, b, left, right)


def cov(input, correction=1, fweights=None, aweights=None):
    rows = input.reshape([1, -1]) if input.dim() < 2 else input
    weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        total = rows.size(1)
        mean = rows.mean(1)
        factor = max(total - correction, 0)
        centred = rows - mean.unsqueeze(1)
        second = centred
    else:
        total = weights.sum()
        mean = (rows * weights).sum(1) / total
        if aweights is not None and correction != 0:
            factor = total - correction * (weights * aweights).sum() / total
        else:
            factor = total - correction
        factor = torch.ops.aten.clamp_min(factor, 0)
        centred = rows - mean.unsqueeze(1)
        second = centred * weights
    return (torch.ops.aten.mm(centred, second.t().conj()) / factor).squeeze()


def corrcoef(input):
    c = cov(input)
    if c.dim() == 0:
        return c / c
    d = torch.ops.aten.diagonal(c)
    if c.is_complex():
        d = d.real
    deviation = d.sqrt()
    return c / deviation.unsqueeze(1) / deviation.unsqueeze(0)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    if dim is not None:
        out = torch.ops.aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        out = torch.ops.aten._unique2(input, sorted, return_inverse, return_counts)
    return wanted(out, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    out = torch.ops.aten.unique_consecutive(input, return_inverse, return_counts, dim)
    return wanted(out, return_inverse, return_counts)


def wanted(out, inverse, counts):
    if inverse and counts:
        return out[0], out[1], out[2]
    if inverse:
        return out[0], out[1]
    return (out[0], out[2]) if counts else out[0]


def nonzero(input, as_tuple=False):
    if as_tuple:
        return tuple(torch.ops.aten.nonzero_numpy(input))
    return torch.ops.aten.nonzero(input)


def lu(A, pivot=True, get_infos=False, out=None):
    factors, pivots, infos = torch.ops.aten._lu_with_info(A, pivot, not get_infos)
    return (factors, pivots, infos) if get_infos else (factors, pivots)


def broadcast_shapes(*shapes):
    sizes = [[s] if isinstance(s, int) else s for s in shapes]
    rank = max([0] + [len(s) for s in sizes])
    out = [1] * rank
    for s in sizes:
        for d in range(len(s)):
            at = rank - len(s) + d
            if s[d] != 1:
                out[at] = s[d]
    return out


def unravel_index(indices, shape):
    shape = [shape] if isinstance(shape, int) else [s for s in shape]
    out = []
    rest = indices
    for size in reversed(shape):
        out = [rest % size] + out
        rest = torch.ops.aten.floor_divide(rest, size)
    return tuple(torch.ops.aten.stack(out, -1).unbind(-1))


def chain_matmul(*matrices):
    return torch.ops.aten.linalg_multi_dot(matrices)


def narrow(input, dim, start, length):
    return torch.ops.aten.narrow.default(input, dim, int(start), length)

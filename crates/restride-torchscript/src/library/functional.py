# Functions of torch.nn.functional whose arguments are not those of an operator, as PyTorch writes them.


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    no_weight(weight, "mse_loss")
    return torch.ops.aten.mse_loss(input, target, reduction_number(reduction, size_average, reduce))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    no_weight(weight, "l1_loss")
    return torch.ops.aten.l1_loss(input, target, reduction_number(reduction, size_average, reduce))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    if beta == 0.0:
        return torch.ops.aten.l1_loss(input, target, reduction_number(reduction, size_average, reduce))
    return torch.ops.aten.smooth_l1_loss(input, target, reduction_number(reduction, size_average, reduce), beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    no_weight(weight, "huber_loss")
    return torch.ops.aten.huber_loss(input, target, reduction_number(reduction, None, None), delta)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    if reduction == "batchmean":
        total = torch.ops.aten.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() != 0 else total
    return torch.ops.aten.kl_div(input, target, reduction_number(reduction, size_average, reduce), log_target=log_target)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return torch.ops.aten.nll_loss_nd(input, target, weight, reduction_number(reduction, size_average, reduce), ignore_index)


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    number = reduction_number(reduction, size_average, reduce)
    return torch.ops.aten.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    if weight is not None:
        weight = weight.expand(target.size())
    return torch.ops.aten.binary_cross_entropy(input, target, weight, reduction_number(reduction, size_average, reduce))


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    number = reduction_number(reduction, size_average, reduce)
    return torch.ops.aten.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return torch.ops.aten.soft_margin_loss(input, target, reduction_number(reduction, size_average, reduce))


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    return torch.ops.aten.hinge_embedding_loss(input, target, margin, reduction_number(reduction, size_average, reduce))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    number = reduction_number(reduction, size_average, reduce)
    return torch.ops.aten.margin_ranking_loss(input1, input2, target, margin, number)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    number = reduction_number(reduction, size_average, reduce)
    return torch.ops.aten.cosine_embedding_loss(input1, input2, target, margin, number)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return torch.ops.aten.multilabel_margin_loss(input, target, reduction_number(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    loss = -(target * torch.ops.aten.log_sigmoid(input) + (1 - target) * torch.ops.aten.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    class_dim = input.dim() - 1
    loss = loss.sum(dim=class_dim) / input.size(class_dim)
    number = reduction_number(reduction, size_average, reduce)
    if number == 0:
        return loss
    return loss.mean() if number == 1 else loss.sum()


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    number = reduction_number(reduction, size_average, reduce)
    return torch.ops.aten.multi_margin_loss(input, target, p, margin, weight, number)


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    number = reduction_number(reduction, size_average, reduce)
    return torch.ops.aten.poisson_nll_loss(input, target, log_input, full, eps, number)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    if isinstance(var, float):
        var = var * torch.ops.aten.ones_like(input)
    elif var.size() != input.size() and input.size()[:-1] == var.size():
        var = var.unsqueeze(-1)
    var = torch.ops.aten.clamp_min(var.clone(), eps)
    difference = input - target
    loss = 0.5 * (torch.ops.aten.log(var) + difference * difference / var)
    if full:
        loss = loss + 0.9189385332046727
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    number = reduction_number(reduction, size_average, reduce)
    return torch.ops.aten.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    if distance_function is not None:
        raise NotImplementedError("triplet_margin_with_distance_loss with a distance function")
    near = torch.ops.aten.pairwise_distance(anchor, positive)
    far = torch.ops.aten.pairwise_distance(anchor, negative)
    if swap:
        far = torch.ops.aten.minimum(far, torch.ops.aten.pairwise_distance(positive, negative))
    loss = torch.ops.aten.clamp_min(margin + near - far, 0)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    number = reduction_number(reduction, None, None)
    return torch.ops.aten.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)


def local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0):
    div = input.mul(input)
    if input.dim() == 3:
        div = torch.ops.aten.pad(div.unsqueeze(1), [0, 0, size // 2, (size - 1) // 2])
        div = torch.ops.aten.avg_pool2d(div, [size, 1], [1, 1]).squeeze(1)
    else:
        sizes = input.size()
        div = div.view([sizes[0], 1, sizes[1], sizes[2], -1])
        div = torch.ops.aten.pad(div, [0, 0, 0, 0, size // 2, (size - 1) // 2])
        div = torch.ops.aten.avg_pool3d(div, [size, 1, 1], [1, 1, 1]).squeeze(1)
        div = div.view(sizes)
    return input / div.mul(alpha).add(k).pow(beta)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    out = torch.ops.aten.avg_pool1d(input.pow(norm_type), kernel_size, [] if stride is None else stride, 0, ceil_mode)
    return powers(out, kernel_size, norm_type)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    size = repeated(kernel_size, 2)
    out = torch.ops.aten.avg_pool2d(input.pow(norm_type), size, [] if stride is None else stride, 0, ceil_mode)
    return powers(out, size[0] * size[1], norm_type)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    size = repeated(kernel_size, 3)
    out = torch.ops.aten.avg_pool3d(input.pow(norm_type), size, [] if stride is None else stride, 0, ceil_mode)
    return powers(out, size[0] * size[1] * size[2], norm_type)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    size = unpooled(input, kernel_size, stride, padding, output_size, 1)
    size = size + [1]
    return torch.ops.aten.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), size).squeeze(-1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    size = unpooled(input, kernel_size, stride, padding, output_size, 2)
    return torch.ops.aten.max_unpool2d(input, indices, size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    size = unpooled(input, kernel_size, stride, padding, output_size, 3)
    steps = repeated(kernel_size if stride is None else stride, 3)
    return torch.ops.aten.max_unpool3d(input, indices, size, steps, repeated(padding, 3))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    sizes = [repeated(size, 2) for size in [output_size, kernel_size, dilation, padding, stride]]
    return torch.ops.aten.col2im(input, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4])


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    sizes = [repeated(size, 2) for size in [kernel_size, dilation, padding, stride]]
    return torch.ops.aten.im2col(input, sizes[0], sizes[1], sizes[2], sizes[3])


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    if max_norm is not None:
        raise NotImplementedError("embedding_bag with max_norm")
    if input.dim() == 2:
        offsets = torch.ops.aten.arange(0, input.numel(), input.size(1), dtype=input.dtype)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    number = {"sum": 0, "mean": 1, "max": 2}[mode]
    return torch.ops.aten.embedding_bag.padding_idx(
        weight, input, offsets, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    return torch.ops.aten.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    how = {"bilinear": 0, "nearest": 1, "bicubic": 2}[mode]
    padding = {"zeros": 0, "border": 1, "reflection": 2}[padding_mode]
    return torch.ops.aten.grid_sampler(input, grid, how, padding, align_corners is True)


def affine_grid(theta, size, align_corners=None):
    return torch.ops.aten.affine_grid_generator(theta, size, align_corners is True)


def adaptive_avg_pool2d(input, output_size):
    return torch.ops.aten.adaptive_avg_pool2d(input, own_sizes(input, output_size, 2))


def adaptive_avg_pool3d(input, output_size):
    return torch.ops.aten.adaptive_avg_pool3d(input, own_sizes(input, output_size, 3))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    both = torch.ops.aten.adaptive_max_pool1d(input, own_sizes(input, output_size, 1))
    return both if return_indices else both[0]


def adaptive_max_pool2d(input, output_size, return_indices=False):
    both = torch.ops.aten.adaptive_max_pool2d(input, own_sizes(input, output_size, 2))
    return both if return_indices else both[0]


def adaptive_max_pool3d(input, output_size, return_indices=False):
    both = torch.ops.aten.adaptive_max_pool3d(input, own_sizes(input, output_size, 3))
    return both if return_indices else both[0]


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return torch.ops.aten.softmax(input, implicit_dim(input) if dim is None else dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return torch.ops.aten.log_softmax(input, implicit_dim(input) if dim is None else dim, dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    return torch.ops.aten.softmax(-input, implicit_dim(input) if dim is None else dim, dtype)


def softsign(input):
    return input / (input.abs() + 1)


def tanhshrink(input):
    return input - input.tanh()


def dropout1d(input, p=0.5, training=True, inplace=False):
    return dropped(input, training, "dropout1d")


def dropout2d(input, p=0.5, training=True, inplace=False):
    return dropped(input, training, "dropout2d")


def dropout3d(input, p=0.5, training=True, inplace=False):
    return dropped(input, training, "dropout3d")


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    return dropped(input, training, "alpha_dropout")


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    return dropped(input, training, "feature_alpha_dropout")


def rrelu(input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False):
    if training:
        raise NotImplementedError("rrelu in training")
    slope = (lower + upper) / 2
    return torch.ops.aten.leaky_relu_(input, slope) if inplace else torch.ops.aten.leaky_relu(input, slope)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    return torch.nn.functional.interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    return torch.nn.functional.interpolate(input, size, scale_factor, "bilinear", True)


# ------------------------------------------------------------------------------------------------------------- helpers


def reduction_number(reduction, size_average, reduce):
    if size_average is not None or reduce is not None:
        if reduce is False:
            return 0
        return 2 if size_average is False else 1
    return {"none": 0, "mean": 1, "sum": 2}[reduction]


def no_weight(weight, name):
    if weight is not None:
        raise NotImplementedError(name + " with weight")


def repeated(size, n):
    return [size] * n if isinstance(size, int) else [s for s in size]


def powers(out, count, norm_type):
    return (out.sign() * out.abs().relu()).mul(count).pow(1.0 / norm_type)


def unpooled(input, kernel_size, stride, padding, output_size, rank):
    if output_size is not None:
        given = [s for s in output_size]
        return given[len(given) - rank :]
    kernel = repeated(kernel_size, rank)
    steps = kernel if stride is None else repeated(stride, rank)
    padding = repeated(padding, rank)
    sizes = [s for s in input.size()]
    sizes = sizes[len(sizes) - rank :]
    return [(sizes[d] - 1) * steps[d] + kernel[d] - 2 * padding[d] for d in range(rank)]


def own_sizes(input, output_size, rank):
    sizes = [s for s in input.size()]
    sizes = sizes[len(sizes) - rank :]
    wanted = [output_size] * rank if output_size is None or isinstance(output_size, int) else [s for s in output_size]
    return [sizes[d] if wanted[d] is None else wanted[d] for d in range(rank)]


def implicit_dim(input):
    return 0 if input.dim() == 0 or input.dim() == 1 or input.dim() == 3 else 1


def dropped(input, training, name):
    if training:
        raise NotImplementedError(name + " in training")
    return input

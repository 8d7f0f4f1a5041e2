# Modules of torch.nn that are more than one operator's call. Arguments of the call come first; those after `*` are the options that
# `print(module)` shows, by name or in this order. "unprinted" marks an option that it does not show: its default is taken, with a note;
# "training" one that matters in training alone.


def AvgPool1d(self, input, *, kernel_size, stride, padding=0, ceil_mode: "unprinted" = False, count_include_pad: "unprinted" = True):
    return torch.ops.aten.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def AvgPool2d(
    self,
    input,
    *,
    kernel_size,
    stride,
    padding=0,
    ceil_mode: "unprinted" = False,
    count_include_pad: "unprinted" = True,
    divisor_override: "unprinted" = None,
):
    return torch.ops.aten.avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def AvgPool3d(
    self,
    input,
    *,
    kernel_size,
    stride,
    padding=0,
    ceil_mode: "unprinted" = False,
    count_include_pad: "unprinted" = True,
    divisor_override: "unprinted" = None,
):
    return torch.ops.aten.avg_pool3d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def BCELoss(self, input, target, *, reduction: "unprinted" = "mean"):
    return torch.nn.functional.binary_cross_entropy(input, target, weight=getattr(self, "weight", None), reduction=reduction)


def BCEWithLogitsLoss(self, input, target, *, reduction: "unprinted" = "mean"):
    weight = getattr(self, "weight", None)
    pos_weight = getattr(self, "pos_weight", None)
    return torch.nn.functional.binary_cross_entropy_with_logits(input, target, weight=weight, pos_weight=pos_weight, reduction=reduction)


def CTCLoss(
    self,
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    *,
    blank: "unprinted" = 0,
    reduction: "unprinted" = "mean",
    zero_infinity: "unprinted" = False,
):
    return torch.nn.functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


def CosineEmbeddingLoss(self, input1, input2, target, *, margin: "unprinted" = 0.0, reduction: "unprinted" = "mean"):
    return torch.nn.functional.cosine_embedding_loss(input1, input2, target, margin=margin, reduction=reduction)


def CosineSimilarity(self, x1, x2, *, dim: "unprinted" = 1, eps: "unprinted" = 1e-8):
    return torch.ops.aten.cosine_similarity(x1, x2, dim, eps)


def CrossEntropyLoss(
    self, input, target, *, ignore_index: "unprinted" = -100, reduction: "unprinted" = "mean", label_smoothing: "unprinted" = 0.0
):
    weight = getattr(self, "weight", None)
    return torch.nn.functional.cross_entropy(
        input, target, weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


def EmbeddingBag(
    self,
    input,
    offsets=None,
    per_sample_weights=None,
    *,
    num_embeddings,
    embedding_dim,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    mode="mean",
    padding_idx=None,
    include_last_offset: "unprinted" = False,
):
    return torch.nn.functional.embedding_bag(
        input,
        self.weight,
        offsets,
        max_norm=max_norm,
        norm_type=norm_type,
        mode=mode,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )


def Fold(self, input, *, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return torch.nn.functional.fold(input, output_size, kernel_size, dilation, padding, stride)


def GRU(self, input, hx=None, *, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout: "training" = 0.0, bidirectional=False):
    return recurrent(self, "gru", input, hx, hidden_size, num_layers, bias, batch_first, bidirectional)


def GRUCell(self, input, hx=None, *, input_size, hidden_size, bias=True):
    return cell(self, "gru", input, hx, hidden_size, bias)


def GaussianNLLLoss(self, input, target, var, *, full: "unprinted" = False, eps: "unprinted" = 1e-6, reduction: "unprinted" = "mean"):
    return torch.nn.functional.gaussian_nll_loss(input, target, var, full=full, eps=eps, reduction=reduction)


def HingeEmbeddingLoss(self, input, target, *, margin: "unprinted" = 1.0, reduction: "unprinted" = "mean"):
    return torch.nn.functional.hinge_embedding_loss(input, target, margin=margin, reduction=reduction)


def HuberLoss(self, input, target, *, reduction: "unprinted" = "mean", delta: "unprinted" = 1.0):
    return torch.nn.functional.huber_loss(input, target, reduction=reduction, delta=delta)


def InstanceNorm1d(
    self, input, *, num_features, eps=1e-05, momentum=0.1, affine=False, bias=True, track_running_stats: "training" = False
):
    return instance_norm(self, input, 2, eps, affine, bias, track_running_stats)


def InstanceNorm2d(
    self, input, *, num_features, eps=1e-05, momentum=0.1, affine=False, bias=True, track_running_stats: "training" = False
):
    return instance_norm(self, input, 3, eps, affine, bias, track_running_stats)


def InstanceNorm3d(
    self, input, *, num_features, eps=1e-05, momentum=0.1, affine=False, bias=True, track_running_stats: "training" = False
):
    return instance_norm(self, input, 4, eps, affine, bias, track_running_stats)


def KLDivLoss(self, input, target, *, reduction: "unprinted" = "mean", log_target: "unprinted" = False):
    return torch.nn.functional.kl_div(input, target, reduction=reduction, log_target=log_target)


def L1Loss(self, input, target, *, reduction: "unprinted" = "mean"):
    return torch.nn.functional.l1_loss(input, target, reduction=reduction)


def LPPool1d(self, input, *, norm_type, kernel_size, stride=None, ceil_mode=False):
    return torch.nn.functional.lp_pool1d(input, norm_type, kernel_size, stride, ceil_mode)


def LPPool2d(self, input, *, norm_type, kernel_size, stride=None, ceil_mode=False):
    return torch.nn.functional.lp_pool2d(input, norm_type, kernel_size, stride, ceil_mode)


def LPPool3d(self, input, *, norm_type, kernel_size, stride=None, ceil_mode=False):
    return torch.nn.functional.lp_pool3d(input, norm_type, kernel_size, stride, ceil_mode)


def LSTM(
    self,
    input,
    hx=None,
    *,
    input_size,
    hidden_size,
    proj_size=0,
    num_layers=1,
    bias=True,
    batch_first=False,
    dropout: "training" = 0.0,
    bidirectional=False,
):
    batched = input.dim() == 3
    if not batched:
        input = input.unsqueeze(0 if batch_first else 1)
    rows = num_layers * (2 if bidirectional else 1)
    if hx is None:
        batch = input.size(0 if batch_first else 1)
        size = proj_size if proj_size > 0 else hidden_size
        state = [input.new_zeros([rows, batch, size]), input.new_zeros([rows, batch, hidden_size])]
    elif batched:
        state = [hx[0], hx[1]]
    else:
        state = [hx[0].unsqueeze(1), hx[1].unsqueeze(1)]
    flat = flat_weights(self, num_layers, bias, bidirectional, proj_size > 0)
    out, h, c = torch.ops.aten.lstm.input(input, state, flat, bias, num_layers, 0.0, False, bidirectional, batch_first)
    if not batched:
        return out.squeeze(0 if batch_first else 1), (h.squeeze(1), c.squeeze(1))
    return out, (h, c)


def LSTMCell(self, input, hx=None, *, input_size, hidden_size, bias=True):
    batched = input.dim() == 2
    if not batched:
        input = input.unsqueeze(0)
    if hx is None:
        zeros = input.new_zeros([input.size(0), hidden_size])
        state = [zeros, zeros]
    elif batched:
        state = [hx[0], hx[1]]
    else:
        state = [hx[0].unsqueeze(0), hx[1].unsqueeze(0)]
    b_ih = self.bias_ih if bias else None
    b_hh = self.bias_hh if bias else None
    h, c = torch.ops.aten.lstm_cell(input, state, self.weight_ih, self.weight_hh, b_ih, b_hh)
    return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


def LocalResponseNorm(self, input, *, size, alpha=0.0001, beta=0.75, k=1.0):
    return torch.nn.functional.local_response_norm(input, size, alpha, beta, k)


def MSELoss(self, input, target, *, reduction: "unprinted" = "mean"):
    return torch.nn.functional.mse_loss(input, target, reduction=reduction)


def MarginRankingLoss(self, input1, input2, target, *, margin: "unprinted" = 0.0, reduction: "unprinted" = "mean"):
    return torch.nn.functional.margin_ranking_loss(input1, input2, target, margin=margin, reduction=reduction)


def AdaptiveMaxPool1d(self, input, *, output_size, return_indices: "unprinted" = False):
    return torch.nn.functional.adaptive_max_pool1d(input, output_size, return_indices)


def MaxPool1d(
    self, input, *, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices: "unprinted" = False
):
    return torch.nn.functional.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def AdaptiveMaxPool2d(self, input, *, output_size, return_indices: "unprinted" = False):
    return torch.nn.functional.adaptive_max_pool2d(input, output_size, return_indices)


def MaxPool2d(
    self, input, *, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices: "unprinted" = False
):
    return torch.nn.functional.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def AdaptiveMaxPool3d(self, input, *, output_size, return_indices: "unprinted" = False):
    return torch.nn.functional.adaptive_max_pool3d(input, output_size, return_indices)


def MaxPool3d(
    self, input, *, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices: "unprinted" = False
):
    return torch.nn.functional.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def MaxUnpool1d(self, input, indices, output_size=None, *, kernel_size, stride=None, padding=0):
    return torch.nn.functional.max_unpool1d(input, indices, kernel_size, stride, padding, output_size)


def MaxUnpool2d(self, input, indices, output_size=None, *, kernel_size, stride=None, padding=0):
    return torch.nn.functional.max_unpool2d(input, indices, kernel_size, stride, padding, output_size)


def MaxUnpool3d(self, input, indices, output_size=None, *, kernel_size, stride=None, padding=0):
    return torch.nn.functional.max_unpool3d(input, indices, kernel_size, stride, padding, output_size)


def MultiLabelMarginLoss(self, input, target, *, reduction: "unprinted" = "mean"):
    return torch.nn.functional.multilabel_margin_loss(input, target, reduction=reduction)


def MultiLabelSoftMarginLoss(self, input, target, *, reduction: "unprinted" = "mean"):
    return torch.nn.functional.multilabel_soft_margin_loss(input, target, weight=getattr(self, "weight", None), reduction=reduction)


def MultiMarginLoss(self, input, target, *, p: "unprinted" = 1, margin: "unprinted" = 1.0, reduction: "unprinted" = "mean"):
    return torch.nn.functional.multi_margin_loss(
        input, target, p=p, margin=margin, weight=getattr(self, "weight", None), reduction=reduction
    )


def NLLLoss(self, input, target, *, ignore_index: "unprinted" = -100, reduction: "unprinted" = "mean"):
    weight = getattr(self, "weight", None)
    return torch.nn.functional.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def PairwiseDistance(self, x1, x2, *, p: "unprinted" = 2.0, eps: "unprinted" = 1e-6, keepdim: "unprinted" = False):
    return torch.ops.aten.pairwise_distance(x1, x2, p, eps, keepdim)


def PoissonNLLLoss(
    self,
    log_input,
    target,
    *,
    log_input_: "unprinted" = True,
    full: "unprinted" = False,
    eps: "unprinted" = 1e-8,
    reduction: "unprinted" = "mean",
):
    return torch.nn.functional.poisson_nll_loss(log_input, target, log_input_, full, eps=eps, reduction=reduction)


def RNN(
    self,
    input,
    hx=None,
    *,
    input_size,
    hidden_size,
    num_layers=1,
    bias=True,
    batch_first=False,
    dropout: "training" = 0.0,
    bidirectional=False,
    nonlinearity: "unprinted" = "tanh",
):
    return recurrent(self, "rnn_" + nonlinearity, input, hx, hidden_size, num_layers, bias, batch_first, bidirectional)


def RNNCell(self, input, hx=None, *, input_size, hidden_size, bias=True, nonlinearity="tanh"):
    return cell(self, "rnn_" + nonlinearity, input, hx, hidden_size, bias)


def RReLU(self, input, *, lower: "training" = 0.125, upper=0.3333333333333333, inplace=False):
    slope = (lower + upper) / 2
    return torch.ops.aten.leaky_relu_(input, slope) if inplace else torch.ops.aten.leaky_relu(input, slope)


def SmoothL1Loss(self, input, target, *, reduction: "unprinted" = "mean", beta: "unprinted" = 1.0):
    return torch.nn.functional.smooth_l1_loss(input, target, reduction=reduction, beta=beta)


def SoftMarginLoss(self, input, target, *, reduction: "unprinted" = "mean"):
    return torch.nn.functional.soft_margin_loss(input, target, reduction=reduction)


def Softmax2d(self, input):
    return torch.ops.aten.softmax(input, -3)


def TripletMarginLoss(
    self,
    anchor,
    positive,
    negative,
    *,
    margin: "unprinted" = 1.0,
    p: "unprinted" = 2.0,
    eps: "unprinted" = 1e-6,
    swap: "unprinted" = False,
    reduction: "unprinted" = "mean",
):
    return torch.nn.functional.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=reduction)


def Unfold(self, input, *, kernel_size, dilation=1, padding=0, stride=1):
    return torch.nn.functional.unfold(input, kernel_size, dilation, padding, stride)


def UpsamplingBilinear2d(self, input, *, scale_factor=None, size=None, mode="bilinear"):
    return torch.nn.functional.interpolate(input, size, scale_factor, "bilinear", True)


def UpsamplingNearest2d(self, input, *, scale_factor=None, size=None, mode="nearest"):
    return torch.nn.functional.interpolate(input, size, scale_factor, "nearest")


def flat_weights(self, num_layers, bias, bidirectional, projected):
    flat = []
    for layer in range(num_layers):
        for suffix in ["", "_reverse"] if bidirectional else [""]:
            names = ["weight_ih_l", "weight_hh_l"]
            if bias:
                names = names + ["bias_ih_l", "bias_hh_l"]
            if projected:
                names = names + ["weight_hr_l"]
            for name in names:
                flat.append(getattr(self, name + str(layer) + suffix))
    return flat


def recurrent(self, kind, input, hx, hidden_size, num_layers, bias, batch_first, bidirectional):
    batched = input.dim() == 3
    if not batched:
        input = input.unsqueeze(0 if batch_first else 1)
    if hx is None:
        batch = input.size(0 if batch_first else 1)
        hx = input.new_zeros([num_layers * (2 if bidirectional else 1), batch, hidden_size])
    elif not batched:
        hx = hx.unsqueeze(1)
    flat = flat_weights(self, num_layers, bias, bidirectional, False)
    if kind == "gru":
        out, h = torch.ops.aten.gru.input(input, hx, flat, bias, num_layers, 0.0, False, bidirectional, batch_first)
    elif kind == "rnn_tanh":
        out, h = torch.ops.aten.rnn_tanh.input(input, hx, flat, bias, num_layers, 0.0, False, bidirectional, batch_first)
    else:
        out, h = torch.ops.aten.rnn_relu.input(input, hx, flat, bias, num_layers, 0.0, False, bidirectional, batch_first)
    return (out, h) if batched else (out.squeeze(0 if batch_first else 1), h.squeeze(1))


def cell(self, kind, input, hx, hidden_size, bias):
    batched = input.dim() == 2
    if not batched:
        input = input.unsqueeze(0)
    if hx is None:
        hx = input.new_zeros([input.size(0), hidden_size])
    elif not batched:
        hx = hx.unsqueeze(0)
    b_ih = self.bias_ih if bias else None
    b_hh = self.bias_hh if bias else None
    if kind == "gru":
        h = torch.ops.aten.gru_cell(input, hx, self.weight_ih, self.weight_hh, b_ih, b_hh)
    elif kind == "rnn_tanh":
        h = torch.ops.aten.rnn_tanh_cell(input, hx, self.weight_ih, self.weight_hh, b_ih, b_hh)
    else:
        h = torch.ops.aten.rnn_relu_cell(input, hx, self.weight_ih, self.weight_hh, b_ih, b_hh)
    return h if batched else h.squeeze(0)


def instance_norm(self, input, unbatched, eps, affine, bias, track_running_stats):
    one = input.dim() == unbatched
    x = input.unsqueeze(0) if one else input
    weight = self.weight if affine else None
    offset = self.bias if affine and bias else None
    mean = self.running_mean if track_running_stats else None
    var = self.running_var if track_running_stats else None
    y = torch.ops.aten.instance_norm(x, weight, offset, mean, var, not track_running_stats, 0.1, eps, True)
    return y.squeeze(0) if one else y

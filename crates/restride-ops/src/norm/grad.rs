//! Gradients of softmax, normalisations, pooling, interpolation, embeddings, attention and losses.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, Operand, T, form, op, product, rule, wrap};
use restride_ir::{Arg, DType, Dim, Expr};

fn softmax<'c>(c: &'c Cx<'c>, backward: &str) {
    let dtype = c.result().dtype();
    c.set(0, op!(c, backward, c.grad(), c.result(), c.raw(1), dtype));
}

/// `_softmax_backward_data(grad_output, output, dim, input_dtype)`
fn softmax_backward<'c>(c: &'c Cx<'c>) {
    let (g, y) = (c.arg(0), c.arg(1));
    let d = if y.rank() == 0 { Vec::new() } else { vec![c.int(2)] };
    c.give(0, || op!(c, "aten._softmax_backward_data.default", c.grad(), y, c.raw(2), c.raw(3)));
    c.give(1, || {
        let h = c.grad();
        h * g - h * (g * y).sum(d.clone(), true) - g * (h * y).sum(d.clone(), true)
    });
}

fn log_softmax_backward<'c>(c: &'c Cx<'c>) {
    let (g, y) = (c.arg(0), c.arg(1));
    let d = if y.rank() == 0 { Vec::new() } else { vec![c.int(2)] };
    let h = c.grad();
    c.give(0, || h - (h * y.exp()).sum(d.clone(), true));
    c.give(1, || -h * y.exp() * g.sum(d.clone(), true));
}

fn layer_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    vec![op!(c, "aten.native_layer_norm.default", c.arg(0), c.raw(1), c.raw(2), c.raw(3), c.raw(4))]
}

fn set_masked<'c>(c: &'c Cx<'c>, at: &[usize], all: Vec<T<'c>>) {
    for (i, g) in at.iter().zip(all) {
        if c.needs(*i) {
            c.set(*i, g);
        }
    }
}

fn native_layer_norm<'c>(c: &'c Cx<'c>) {
    if !c.only_first() {
        return;
    }
    let mask = [c.needs(0), c.needs(2), c.needs(3)];
    let args = [
        c.grad().operand(),
        c.arg(0).operand(),
        c.raw(1),
        c.result_at(1).operand(),
        c.result_at(2).operand(),
        c.raw(2),
        c.raw(3),
        mask.operand(),
    ];
    set_masked(c, &[0, 2, 3], c.calls("aten.native_layer_norm_backward.default", &args));
}

/// Composed of plain arithmetic: PyTorch has no gradient operator for all devices.
fn fused_rms_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0);
    let dtype = x.dtype();
    let wide = x.to(if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype });
    let least = if matches!(dtype, DType::F64 | DType::C128) { f64::EPSILON } else { f32::EPSILON.into() };
    let dims: Vec<i64> = (1..=c.nums(1).len() as i64).map(|d| -d).collect();
    let mean = op!(c, "aten.mean.dim", wide.square(), dims, true);
    let scale = (mean + c.opt_float(3).unwrap_or(least)).rsqrt();
    let mut out = wide * scale;
    if let Some(w) = c.opt(2) {
        out = out * w;
    }
    vec![out.to(dtype), scale]
}

fn rms_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    fused_rms_norm(c).into_iter().take(1).collect()
}

fn group_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0);
    let sizes = x.sizes();
    let (n, channels, inner) = (x.size(0), x.size(1), product(sizes.iter().skip(2)));
    vec![op!(c, "aten.native_group_norm.default", x, c.raw(2), c.raw(3), n, channels, inner, c.raw(1), c.raw(4))]
}

fn native_group_norm<'c>(c: &'c Cx<'c>) {
    if !c.only_first() {
        return;
    }
    let mask = [c.needs(0), c.needs(1), c.needs(2)];
    let args = [
        c.grad().operand(),
        c.arg(0).operand(),
        c.result_at(1).operand(),
        c.result_at(2).operand(),
        c.raw(1),
        c.raw(3),
        c.raw(4),
        c.raw(5),
        c.raw(6),
        mask.operand(),
    ];
    set_masked(c, &[0, 1, 2], c.calls("aten.native_group_norm_backward.default", &args));
}

/// `batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)`. In a functional
/// program, a call that updates running statistics is another operator.
fn batch_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    // An empty input returns unchanged.
    if c.arg(0).rank() < 2 {
        return vec![c.arg(0) * 1.0];
    }
    let common = [c.raw(0), c.raw(1), c.raw(2)];
    let mut args = common.to_vec();
    if c.flag(5) {
        args.extend([c.raw(5), c.raw(6), c.raw(7)]);
        return vec![c.call("aten._native_batch_norm_legit.no_stats", &args)];
    }
    args.extend([c.raw(3), c.raw(4), c.raw(6), c.raw(7)]);
    vec![c.call("aten._native_batch_norm_legit_no_training.default", &args)]
}

/// Batch normalisation with batch statistics (results 1 and 2) or running statistics (arguments 3 and 4).
fn native_batch_norm<'c>(c: &'c Cx<'c>, running: bool, train: bool, eps: usize) {
    if !c.only_first() {
        return;
    }
    if c.arg(0).rank() < 2 {
        (1..3).for_each(|i| c.zero(i));
        return c.give(0, || c.grad());
    }
    if running && !train && (c.needs(3) || c.needs(4)) {
        return c.fail("the gradient of running statistics");
    }
    let stats = |i: usize| if running { c.raw(i) } else { Arg::None };
    let saved = |k: usize| if train { c.result_at(k).operand() } else { Arg::None };
    let mask = [c.needs(0), c.needs(1), c.needs(2)];
    let args = [
        c.grad().operand(),
        c.arg(0).operand(),
        c.raw(1),
        stats(3),
        stats(4),
        saved(1),
        saved(2),
        train.operand(),
        c.raw(eps),
        mask.operand(),
    ];
    set_masked(c, &[0, 1, 2], c.calls("aten.native_batch_norm_backward.default", &args));
}

/// Quantization with a learnt scale and zero point.
fn learnable<'c>(c: &'c Cx<'c>, arguments: usize, back: &'static str) {
    let mut args = vec![c.grad().operand()];
    args.extend((0..arguments).map(|i| c.raw(i)));
    set_masked(c, &[0, 1, 2], c.calls(back, &args));
}

/// Scales `v` to the norms `g`, computed over all dimensions but `dim`.
fn weight_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (v, g) = (c.arg(0), c.arg(1));
    let rank = v.rank();
    let dim = c.int_or(2, 0);
    let others: Vec<i64> = (0..rank as i64).filter(|d| dim == -1 || *d != wrap(dim, rank) as i64).collect();
    let norm = op!(c, "aten.linalg_vector_norm.default", v, 2, others, dim != -1);
    vec![v * (g / norm), norm]
}

fn max_pool<'c>(c: &'c Cx<'c>, name: &str) -> Vec<T<'c>> {
    let args: Vec<_> = (0..6).map(|i| c.raw(i)).collect();
    vec![c.call(name, &args)]
}
fn max_pool2d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    max_pool(c, "aten.max_pool2d_with_indices.default")
}
fn max_pool3d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    max_pool(c, "aten.max_pool3d_with_indices.default")
}

/// The numbers at argument `i` with `first` in front; an empty list stays empty.
fn before(c: &Cx<'_>, i: usize, first: i64) -> Arg<restride_ir::Val, Expr> {
    let mut given = c.nums(i);
    if !given.is_empty() {
        given.insert(0, Expr::Int(first));
    }
    Arg::Scalars(given)
}

/// Pools rows as images of height one.
fn max_pool1d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0).unsqueeze(-2);
    let (k, s, p, d) = (before(c, 1, 1), before(c, 2, 1), before(c, 3, 0), before(c, 4, 1));
    let args = [x.operand(), k, s, p, d, c.raw(5)];
    c.calls("aten.max_pool2d_with_indices.default", &args).into_iter().map(|t| t.squeeze(-2)).collect()
}

fn avg_pool1d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0).unsqueeze(-2);
    let args = [x.operand(), before(c, 1, 1), before(c, 2, 1), before(c, 3, 0), c.raw(4), c.raw(5)];
    vec![c.call("aten.avg_pool2d.default", &args).squeeze(-2)]
}

fn adaptive_avg_pool1d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0).unsqueeze(-2);
    vec![op!(c, "aten._adaptive_avg_pool2d.default", x, before(c, 1, 1)).squeeze(-2)]
}
fn adaptive_avg_pool2d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    vec![op!(c, "aten._adaptive_avg_pool2d.default", c.arg(0), c.raw(1))]
}
fn adaptive_avg_pool3d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    vec![op!(c, "aten._adaptive_avg_pool3d.default", c.arg(0), c.raw(1))]
}
fn adaptive_max_pool1d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0).unsqueeze(-2);
    let args = [x.operand(), before(c, 1, 1)];
    c.calls("aten.adaptive_max_pool2d.default", &args).into_iter().map(|t| t.squeeze(-2)).collect()
}

/// Gradient of a pooling: its backward operator takes the gradient, the operand, and the numbers from argument 1 on.
fn pool_backward<'c>(c: &'c Cx<'c>, name: &str, numbers: usize, indices: bool) {
    let mut args = vec![c.grad().operand(), c.arg(0).operand()];
    args.extend((1..=numbers).map(|i| c.raw(i)));
    if indices {
        args.push(c.result_at(1).operand());
    }
    c.set(0, c.call(name, &args));
}

/// The backward of a linear pooling has the pooling as its gradient.
fn pool_again<'c>(c: &'c Cx<'c>, name: &str, numbers: usize) {
    c.zero(1);
    c.give(0, || {
        let mut args = vec![c.grad().operand()];
        args.extend((2..2 + numbers).map(|i| c.raw(i)));
        c.call(name, &args)
    });
}

/// Gradient of an indexed pooling's backward: gathers the elements at the indices.
fn indexed_again<'c>(c: &'c Cx<'c>, indices: usize, dims: usize) {
    c.zero(1);
    c.give(0, || {
        let (g, at) = (c.grad(), c.arg(indices));
        let flat = |t: T<'c>| {
            let mut sizes = t.sizes();
            let inner = sizes.split_off(sizes.len() - dims);
            sizes.push(product(&inner));
            t.reshape(sizes)
        };
        op!(c, "aten.gather.default", flat(g), -1, flat(at)).reshape(at.sizes())
    });
}

/// Interpolation is linear and separable: each dimension's matrix is the interpolated identity.
fn upsample<'c>(c: &'c Cx<'c>, name: &str, dims: usize, aligns: bool) {
    let x = c.arg(0);
    let out = c.nums(1);
    if out.len() != dims {
        return c.fail("interpolation to other numbers of sizes");
    }
    let numbers: Vec<_> = (2..2 + usize::from(aligns)).map(|i| c.raw(i)).collect();
    let scales = 2 + usize::from(aligns);
    let mut g = c.grad();
    let dtype = g.dtype();
    // If all sizes are equal, the operator copies the elements, whatever the scales.
    let copies = (0..dims).all(|d| x.size(d as i64 + 2).equals(&out[d]) == Some(true));
    for d in 0..dims {
        let n = x.size(d as i64 + 2);
        let eye = op!(c, "aten.eye.default", &n, dtype);
        let mut sizes = vec![Expr::Int(1); dims + 2];
        (sizes[1], sizes[d + 2]) = (n.clone(), n.clone());
        let mut to = vec![Expr::Int(1); dims];
        to[d] = out[d].clone();
        let beside = (d + 1) % dims;
        let stretched = !copies && dims > 1 && !matches!(c.raw(scales + d), Arg::None);
        if stretched {
            to[beside] = Expr::Int(2);
        }
        let mut args = vec![eye.reshape(sizes).operand(), to.clone().operand()];
        args.extend(numbers.iter().cloned());
        args.extend((0..dims).map(|k| if k == d { c.raw(scales + d) } else { Arg::None }));
        let mut matrix = c.call(name, &args);
        if stretched {
            matrix = matrix.slice(beside as i64 + 2, Expr::Int(0), Expr::Int(1));
        }
        let matrix = matrix.reshape(vec![n, to[d].clone()]);
        let last = dims as i64 + 1;
        let at = d as i64 + 2;
        g = g.transpose(at, last).matmul(matrix.mt()).transpose(at, last);
    }
    c.set(0, g);
}

fn embedding<'c>(c: &'c Cx<'c>) {
    let rows = c.arg(0).size(0);
    c.set(0, op!(c, "aten.embedding_dense_backward.default", c.grad(), c.arg(1), rows, c.raw(2), c.raw(3)));
}

/// Number of occurrences of each index into a table of `rows` rows.
fn frequency<'c>(at: T<'c>, rows: Expr, dtype: DType) -> T<'c> {
    let c = at.cx();
    let filled = |n: Expr, with: i64| op!(c, "aten.full.default", vec![n], with, dtype);
    let counts = op!(c, "aten.index_add.default", filled(rows, 0), 0, at, filled(at.numel(), 1));
    op!(c, "aten.index_select.default", counts, 0, at)
}

/// `embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)`
fn embedding_again<'c>(c: &'c Cx<'c>) {
    let (padding, at) = (c.int(3), c.arg(1));
    c.give(0, || {
        let mut rows = op!(c, "aten.embedding.default", c.grad(), at);
        if c.flag(4) {
            let flat = at.reshape(vec![at.numel()]).to(DType::I64);
            rows = rows / frequency(flat, c.num(2), rows.dtype()).reshape(at.sizes()).unsqueeze(-1);
        }
        if padding < 0 { rows } else { rows.except(at.is("eq", padding).unsqueeze(-1)) }
    });
}

/// `embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
/// padding_idx)`; a negative padding index counts from the end if `wraps`, otherwise it means none.
fn embedding_bag<'c>(c: &'c Cx<'c>, wraps: bool) {
    let (table, at, g) = (c.arg(0), c.arg(1).to(DType::I64), c.grad());
    if at.rank() != 1 {
        return c.fail("the gradient of bags that are given as rows");
    }
    let mode = c.int(4);
    if mode == 2 {
        // Source rows of the maxima; an empty bag has none.
        let empty = c.result_at(2).is("eq", 0).unsqueeze(1);
        return c.give(0, || {
            op!(c, "aten.scatter_add.default", table.zeros_like(), 0, c.result_at(3).to(DType::I64), g.except(empty))
        });
    }
    let mut offsets = c.arg(2).to(DType::I64);
    if c.flag(7) {
        offsets = offsets.slice(0, Expr::Int(0), offsets.size(0).minus(&Expr::Int(1)));
    }
    let place = op!(c, "aten.arange.default", &at.size(0));
    let bag = op!(c, "aten.searchsorted.Tensor", offsets, place, false, true) - 1.0;
    let bag = bag.to(DType::I64);
    let padding = match c.int_or(8, -1) {
        n if n < 0 && wraps && !c.is_none(8) => Some(table.size(0).plus(&Expr::Int(n))),
        n if n < 0 => None,
        n => Some(Expr::Int(n)),
    };
    let skipped = padding.map(|p| at.is("eq", p));
    let kept = |t: T<'c>, mask: Option<T<'c>>| mask.map_or(t, |m| t.except(m));
    let mut rows = op!(c, "aten.index_select.default", g, 0, bag);
    if mode == 1 {
        let ones = op!(c, "aten.full.default", vec![at.size(0)], 1, g.dtype());
        let none = op!(c, "aten.full.default", vec![g.size(0)], 0, g.dtype());
        let n = op!(c, "aten.index_add.default", none, 0, bag, kept(ones, skipped));
        let n = op!(c, "aten.clamp_min.default", n, 1);
        rows = rows / op!(c, "aten.index_select.default", n, 0, bag).unsqueeze(1);
    }
    let weights = c.opt(6);
    c.give(0, || {
        let mut rows = weights.map_or(rows, |w| rows * w.unsqueeze(1));
        if c.flag(3) {
            rows = rows / frequency(at, table.size(0), rows.dtype()).unsqueeze(1);
        }
        let rows = kept(rows, skipped.map(|m| m.unsqueeze(1)));
        op!(c, "aten.index_add.default", table.zeros_like(), 0, at, rows)
    });
    if weights.is_some() {
        c.give(6, || {
            let own = op!(c, "aten.index_select.default", table, 0, at);
            kept((rows * own).sum(vec![1], false), skipped)
        });
    }
}

/// `nll_loss_forward(self, target, weight, reduction, ignore_index)`
fn nll_loss<'c>(c: &'c Cx<'c>, backward: &str) {
    // The total weight depends on the class weights alone, which have no gradient.
    if !c.has_grad(0) {
        return c.zero(0);
    }
    let args = [
        c.grad().operand(),
        c.arg(0).operand(),
        c.arg(1).operand(),
        c.raw(2),
        c.raw(3),
        c.raw(4),
        c.result_at(1).operand(),
    ];
    c.give(0, || c.call(backward, &args));
}

/// `binary_cross_entropy(self, target, weight, reduction)`
fn bce<'c>(c: &'c Cx<'c>) {
    c.give(0, || {
        op!(c, "aten.binary_cross_entropy_backward.default", c.grad(), c.arg(0), c.arg(1), c.raw(2), c.raw(3))
    });
    c.give(1, || {
        let x = c.arg(0);
        let clamped = |t: T<'c>| op!(c, "aten.clamp_min.default", t.log(), -100);
        let mut g = (clamped(1.0 - x) - clamped(x)) * c.grad();
        if let Some(w) = c.opt(2) {
            g = g * w;
        }
        if c.int_or(3, 1) == 1 { g.over(&x.numel()) } else { g }
    });
    if c.opt(2).is_some() && c.needs(2) {
        c.fail("the gradient of the weight of binary_cross_entropy");
    }
}

macro_rules! upsamples {
    ($($name:literal $dims:literal $aligns:literal;)*) => {
        &[$((&[$name], rule!(|c| upsample(c, concat!("aten.", $name, ".default"), $dims, $aligns)))),*]
    };
}

/// Interpolations.
pub(crate) static UPSAMPLES: Rules = upsamples! {
    "upsample_nearest1d" 1 false;
    "upsample_nearest2d" 2 false;
    "upsample_nearest3d" 3 false;
    "_upsample_nearest_exact1d" 1 false;
    "_upsample_nearest_exact2d" 2 false;
    "_upsample_nearest_exact3d" 3 false;
    "upsample_linear1d" 1 true;
    "upsample_bilinear2d" 2 true;
    "upsample_trilinear3d" 3 true;
    "upsample_bicubic2d" 2 true;
    "_upsample_bilinear2d_aa" 2 true;
    "_upsample_bicubic2d_aa" 2 true;
};

/// `pad(self, pad, mode, value)`, whose sizes may be symbolic.
fn pad<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let mode = c.str(2).unwrap_or("constant");
    if mode == "constant" {
        let value = if c.is_none(3) { 0.0.operand() } else { c.raw(3) };
        return vec![op!(c, "aten.constant_pad_nd.default", c.arg(0), c.raw(1), value)];
    }
    // Shape rules have already refused unknown modes.
    let name = crate::movement::pad::moving(mode, c.nums(1).len() / 2).unwrap_or("aten._pad_circular.default");
    vec![op!(c, name, c.arg(0), c.raw(1))]
}

pub(crate) static GRADS: Rules = &[
    (&["pad"], form!(pad)),
    (&["softmax.int", "_softmax", "_safe_softmax"], rule!(|c| softmax(c, "aten._softmax_backward_data.default"))),
    (&["log_softmax.int", "_log_softmax"], rule!(|c| softmax(c, "aten._log_softmax_backward_data.default"))),
    (&["_softmax_backward_data"], rule!(softmax_backward)),
    (&["_log_softmax_backward_data"], rule!(log_softmax_backward)),
    (&["layer_norm"], form!(layer_norm)),
    (&["native_layer_norm"], rule!(native_layer_norm)),
    (&["rms_norm"], form!(rms_norm)),
    (&["_fused_rms_norm"], form!(fused_rms_norm)),
    (&["group_norm"], form!(group_norm)),
    (&["native_group_norm"], rule!(native_group_norm)),
    (
        &["_fake_quantize_learnable_per_tensor_affine"],
        rule!(|c| learnable(c, 6, "aten._fake_quantize_learnable_per_tensor_affine_backward.default")),
    ),
    (
        &["_fake_quantize_learnable_per_channel_affine"],
        rule!(|c| learnable(c, 7, "aten._fake_quantize_learnable_per_channel_affine_backward.default")),
    ),
    (&["batch_norm"], form!(batch_norm)),
    (
        &["native_batch_norm", "_native_batch_norm_legit_functional"],
        rule!(|c| native_batch_norm(c, true, c.flag(5), 7)),
    ),
    (&["_native_batch_norm_legit.no_stats"], rule!(|c| native_batch_norm(c, false, true, 5))),
    (
        &["_native_batch_norm_legit_no_training", "_batch_norm_no_update"],
        rule!(|c| native_batch_norm(c, true, false, 6)),
    ),
    (&["_batch_norm_with_update_functional"], rule!(|c| native_batch_norm(c, true, true, 6))),
    (&["_weight_norm_interface"], form!(weight_norm)),
    (&["_weight_norm"], form!(weight_norm_value)),
    (&["max_pool1d"], form!(max_pool1d_value)),
    (&["max_pool1d_with_indices"], form!(max_pool1d)),
    (&["max_pool2d"], form!(max_pool2d)),
    (&["max_pool3d"], form!(max_pool3d)),
    (
        &["max_pool2d_with_indices"],
        rule!(|c| pool_backward(c, "aten.max_pool2d_with_indices_backward.default", 5, true)),
    ),
    (
        &["max_pool3d_with_indices"],
        rule!(|c| pool_backward(c, "aten.max_pool3d_with_indices_backward.default", 5, true)),
    ),
    (&["adaptive_max_pool2d"], rule!(|c| pool_backward(c, "aten.adaptive_max_pool2d_backward.default", 0, true))),
    (&["adaptive_max_pool3d"], rule!(|c| pool_backward(c, "aten.adaptive_max_pool3d_backward.default", 0, true))),
    (&["adaptive_max_pool1d"], form!(adaptive_max_pool1d)),
    (&["avg_pool1d"], form!(avg_pool1d)),
    (&["avg_pool2d"], rule!(|c| pool_backward(c, "aten.avg_pool2d_backward.default", 6, false))),
    (&["avg_pool3d"], rule!(|c| pool_backward(c, "aten.avg_pool3d_backward.default", 6, false))),
    (&["adaptive_avg_pool1d"], form!(adaptive_avg_pool1d)),
    (&["adaptive_avg_pool2d"], form!(adaptive_avg_pool2d)),
    (&["adaptive_avg_pool3d"], form!(adaptive_avg_pool3d)),
    (&["_adaptive_avg_pool2d"], rule!(|c| pool_backward(c, "aten._adaptive_avg_pool2d_backward.default", 0, false))),
    (&["_adaptive_avg_pool3d"], rule!(|c| pool_backward(c, "aten._adaptive_avg_pool3d_backward.default", 0, false))),
    (&["avg_pool2d_backward"], rule!(|c| pool_again(c, "aten.avg_pool2d.default", 6))),
    (&["avg_pool3d_backward"], rule!(|c| pool_again(c, "aten.avg_pool3d.default", 6))),
    (
        &["_adaptive_avg_pool2d_backward"],
        rule!(|c| {
            c.zero(1);
            c.give(0, || op!(c, "aten._adaptive_avg_pool2d.default", c.grad(), tail(c.arg(0), 2)));
        }),
    ),
    (
        &["_adaptive_avg_pool3d_backward"],
        rule!(|c| {
            c.zero(1);
            c.give(0, || op!(c, "aten._adaptive_avg_pool3d.default", c.grad(), tail(c.arg(0), 3)));
        }),
    ),
    (&["max_pool2d_with_indices_backward"], rule!(|c| indexed_again(c, 7, 2))),
    (&["max_pool3d_with_indices_backward"], rule!(|c| indexed_again(c, 7, 3))),
    (&["adaptive_max_pool2d_backward"], rule!(|c| indexed_again(c, 2, 2))),
    (&["adaptive_max_pool3d_backward"], rule!(|c| indexed_again(c, 2, 3))),
    (&["_embedding_bag", "_embedding_bag_forward_only"], rule!(|c| embedding_bag(c, false))),
    (&["embedding_bag.padding_idx", "embedding_bag"], rule!(|c| embedding_bag(c, true))),
    (&["embedding"], rule!(embedding)),
    (&["embedding_dense_backward"], rule!(embedding_again)),
    (&["nll_loss_forward"], rule!(|c| nll_loss(c, "aten.nll_loss_backward.default"))),
    (&["nll_loss2d_forward"], rule!(|c| nll_loss(c, "aten.nll_loss2d_backward.default"))),
    (&["binary_cross_entropy"], rule!(bce)),
];

fn weight_norm_value<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    weight_norm(c).into_iter().take(1).collect()
}

fn max_pool1d_value<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    max_pool1d(c).into_iter().take(1).collect()
}

/// The last `n` sizes.
fn tail(t: T<'_>, n: usize) -> Vec<Expr> {
    let sizes = t.sizes();
    sizes[sizes.len().saturating_sub(n)..].to_vec()
}

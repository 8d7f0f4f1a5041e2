//! Scaled dot-product attention: the general operator, PyTorch's flash form for the CPU, and their gradients.
//!
//! A kernel computes it without dropout; with dropout it is composed of a softmax, `dropout` and products.

mod grad;

use crate::support::composite::composite;
use crate::support::scratch::{opt_stored, stored};
use crate::support::*;
use restride_ir::{Arg, Args, ByBatch, Call, DType, Emit, Expr, ExprFn, Layout, Meta, OpDef, Scalar, TensorType, Val};
use restride_kernels::attention::{self, Results, Settings};
use smallvec::smallvec;

/// Argument positions of one form; query, key and value are the first three.
#[derive(Clone, Copy)]
struct AttentionForm {
    mask: usize,
    dropout: usize,
    causal: usize,
    scale: usize,
    grouped: Option<usize>,
    /// A `bool` mask selects scores; otherwise it is added to the scores as ones and zeros.
    selects: bool,
}

const PUBLIC: AttentionForm =
    AttentionForm { mask: 3, dropout: 4, causal: 5, scale: 6, grouped: Some(7), selects: true };
const MATH: AttentionForm =
    AttentionForm { mask: 3, dropout: 4, causal: 5, scale: 7, grouped: Some(8), selects: false };
const FLASH: AttentionForm = AttentionForm { mask: 5, dropout: 3, causal: 4, scale: 6, grouped: None, selects: false };

/// The checked sizes and options of a call.
struct Checked {
    /// Sizes before the last two dimensions.
    outer: Vec<i64>,
    queries: i64,
    keys: i64,
    width: i64,
    /// Whether heads of keys and values repeat.
    grouped: bool,
}

fn check(a: &Args<'_, Meta>, f: &AttentionForm) -> Result<Checked> {
    let (q, k, v) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    ensure!(
        q.dtype == k.dtype && q.dtype == v.dtype,
        "Expected query, key, and value to have the same dtype, but got query.dtype: {}, key.dtype: {} and value.dtype: {} \
         instead.",
        q.dtype,
        k.dtype,
        v.dtype
    );
    ensure!(
        q.dtype.is_float(),
        "scaled_dot_product_attention is not implemented for '{}'",
        crate::support::promote::name(q.dtype)
    );
    ensure!(
        q.rank() >= 2 && k.rank() >= 2 && v.rank() >= 2,
        "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {}, key.dim: {} and \
         value.dim: {} instead.",
        q.rank(),
        k.rank(),
        v.rank()
    );
    let last = |m: &Meta, back: usize| m.sizes()[m.rank() - back];
    let (queries, width) = (last(q, 2), last(v, 1));
    let keys = last(k, 2);
    ensure!(last(q, 1) == last(k, 1), "query and key must have the same last dimension, got {q} and {k}");
    ensure!(keys == last(v, 2), "key and value must have the same number of rows, got {k} and {v}");
    let grouped = match f.grouped {
        Some(i) => a.bool(i)?,
        None => true,
    };
    let mut outers: Vec<Vec<i64>> = [q, k, v].iter().map(|m| m.sizes()[..m.rank() - 2].to_vec()).collect();
    let heads: Vec<i64> = outers.iter().map(|o| o.last().copied().unwrap_or(1)).collect();
    let mut repeats = false;
    if grouped && q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3 && (heads[0] != heads[1] || heads[0] != heads[2]) {
        ensure!(
            heads[1] > 0 && heads[2] > 0 && heads[0] % heads[1] == 0 && heads[0] % heads[2] == 0,
            "Number of heads in key and value must divide the number of heads in query"
        );
        ensure!(
            q.rank() == k.rank() && q.rank() == v.rank(),
            "with heads in groups, query, key and value must have as many dimensions"
        );
        let n = outers[0].len() - 1;
        (outers[1][n], outers[2][n]) = (heads[0], heads[0]);
        repeats = true;
    }
    let outer = crate::support::strides::broadcast_sizes(&outers.iter().map(|o| &o[..]).collect::<Vec<_>>())?.to_vec();
    if let Some(m) = a.opt_tensor(f.mask)? {
        ensure!(
            !a.bool(f.causal)?,
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        );
        ensure!(
            m.dtype == DType::Bool || m.dtype == DType::F32 || m.dtype == q.dtype,
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  \
             query.dtype: {} instead.",
            m.dtype,
            q.dtype
        );
        let scores: Vec<i64> = outer.iter().copied().chain([queries, keys]).collect();
        ensure!(m.rank() >= 2, "attn_mask must have at least 2 dimensions, got {m}");
        ensure!(
            m.rank() <= scores.len() && m.layout.expand(&scores).is_ok(),
            "attn_mask of shape {:?} does not fit scores of shape {scores:?}",
            m.sizes()
        );
    }
    Ok(Checked { outer, queries, keys, width, grouped: repeats })
}

impl Checked {
    fn sizes(&self, last: &[i64]) -> Vec<i64> {
        self.outer.iter().chain(last).copied().collect()
    }
}

/// Whether PyTorch would run its flash kernel, whose results follow the query's strides.
fn takes_flash(a: &Args<'_, Meta>, c: &Checked) -> Result<bool> {
    let (q, k, v) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let rank = q.rank();
    let same_rank = (rank == 3 || rank == 4) && k.rank() == rank && v.rank() == rank;
    if !same_rank || a.float(PUBLIC.dropout)? > 0.0 {
        return Ok(false);
    }
    // A call of three dimensions has a batch of one.
    let batch = |m: &Meta| if rank == 4 { m.sizes()[0] } else { 1 };
    let heads = |m: &Meta| m.sizes()[rank - 3];
    let dense = |m: &Meta| m.layout.strides[rank - 1] == 1;
    let mask = match a.opt_tensor(PUBLIC.mask)? {
        None => true,
        Some(m) => m.rank() == 2 || m.rank() == 4 && rank == 4,
    };
    Ok(batch(q) == batch(k)
        && batch(q) == batch(v)
        && heads(k) == heads(v)
        && (heads(q) == heads(k) || heads(k) > 0 && heads(q) % heads(k) == 0)
        && q.sizes()[rank - 1] == v.sizes()[rank - 1]
        && c.queries > 0
        && c.keys > 0
        && dense(q)
        && dense(k)
        && dense(v)
        && mask)
}

fn infer(a: &Args<'_, Meta>) -> Metas {
    let c = check(a, &PUBLIC)?;
    let q = a.tensor(0)?;
    let sizes = c.sizes(&[c.queries, c.width]);
    if !takes_flash(a, &c)? {
        return one(fresh(q.dtype, &sizes));
    }
    let layout = if q.rank() == 3 {
        crate::support::strides::dense_like(&q.layout.unsqueeze(0)?).select(0, &0)?
    } else {
        crate::support::strides::dense_like(&q.layout)
    };
    one(Meta::new(q.dtype, layout))
}

fn math_infer(a: &Args<'_, Meta>) -> Metas {
    ensure!(a.is_none(6), "_scaled_dot_product_attention_math: a given dropout_mask is not supported");
    let c = check(a, &MATH)?;
    let d = a.tensor(0)?.dtype;
    Ok(smallvec![fresh(d, &c.sizes(&[c.queries, c.width])), fresh(d, &c.sizes(&[c.queries, c.keys]))])
}

/// Result, and log-sum-exp of the scores in heads-first order.
fn flash_infer(a: &Args<'_, Meta>) -> Metas {
    let what = "scaled_dot_product_attention_flash_attention";
    let c = check(a, &FLASH)?;
    let (q, v) = (a.tensor(0)?, a.tensor(2)?);
    ensure!(q.rank() == 4 && v.rank() == 4, "{what}: Accept only 4 dims inputs shape of {{B, H, T, K}}");
    ensure!(a.float(FLASH.dropout)? == 0.0, "{what}: Currently do not support dropout > 0");
    ensure!(q.sizes()[3] == v.sizes()[3], "{what}: Q/K/V should have the same head size");
    if let Some(m) = a.opt_tensor(FLASH.mask)? {
        ensure!(
            m.dtype == q.dtype || m.dtype == DType::F32 && q.dtype != DType::F64,
            "{what}: Attention mask is the same data type as query"
        );
        ensure!(m.rank() == 2 || m.rank() == 4, "{what}: Attention mask dim in {{2, 4}}");
    }
    ensure!(c.outer == q.sizes()[..2], "{what}: the key has more batch entries or heads than the query");
    let (b, h, l) = (c.outer[0], c.outer[1], c.queries);
    let wide = if q.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let sums = Layout::contiguous(&[b, l, h]).transpose(1, 2)?;
    Ok(smallvec![Meta::new(q.dtype, crate::support::strides::dense_like(&q.layout)), Meta::new(wide, sums)])
}

/// Whether heads of keys and values repeat, given the sizes of query, key and value.
/// The shape rule has already checked the call.
fn repeats<V>(a: &Args<'_, V>, f: &AttentionForm, sizes: [&[i64]; 3]) -> Result<bool> {
    let grouped = match f.grouped {
        Some(i) => a.bool(i)?,
        None => true,
    };
    let heads = sizes.map(|s| s.len().checked_sub(3).map(|d| s[d]));
    Ok(grouped && heads.iter().all(Option::is_some) && (heads[0] != heads[1] || heads[0] != heads[2]))
}

fn scratch(a: &Args<'_, Meta>, outs: &[Meta], f: &AttentionForm, logsumexp: bool, weights: bool) -> Result<usize> {
    let (q, k, v) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let operands = [Some(stored(q)), Some(stored(k)), Some(stored(v)), opt_stored(a, f.mask)?];
    let keys = k.sizes()[k.rank() - 2] as usize;
    Ok(attention::attention_room(operands, keys, stored(&outs[0]), logsumexp, weights))
}

fn run(c: &Call<'_>, f: &AttentionForm, logsumexp: Option<usize>, weights: Option<usize>) -> Result<()> {
    let (q, k, v) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.tensor(2)?);
    let grouped = repeats(&c.args, f, [q.sizes(), k.sizes(), v.sizes()])?;
    let width = q.sizes()[q.sizes().len() - 1] as f64;
    let mask = c.args.opt_tensor(f.mask)?;
    let settings = Settings {
        mask: mask.copied(),
        selects: f.selects && mask.is_some_and(|m| m.dtype() == DType::Bool),
        causal: c.args.bool(f.causal)?,
        scale: c.args.opt_float(f.scale)?.unwrap_or(1.0 / width.sqrt()),
    };
    let results =
        Results { out: &c.outs[0], logsumexp: logsumexp.map(|i| &c.outs[i]), weights: weights.map(|i| &c.outs[i]) };
    ran(attention::attention(q, k, v, grouped, &settings, &results, c.ctx.threads))
}

/// Result and weights, with dropout applied to the weights.
fn compose(e: &mut dyn Emit, a: &ValArgs<'_>, f: &AttentionForm) -> Result<(Val, Val)> {
    let metas: Vec<Arg<Meta, Scalar>> = a.0.iter().map(|x| x.map_values(|v| e.meta(*v))).collect();
    let c = check(&Args(&metas), f)?;
    let (q, mut k, mut v) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let dtype = e.meta(q).dtype;
    if c.grouped {
        let heads = *c.outer.last().expect("grouped calls have heads");
        for x in [&mut k, &mut v] {
            let s = sizes(e, *x);
            let have = s[s.len() - 3];
            if have != heads {
                *x = emit!(e, "aten.repeat_interleave.self_int", *x, heads / have, -3)?;
            }
        }
    }
    let width = *sizes(e, q).last().expect("checked") as f64;
    let scale = a.opt_float(f.scale)?.unwrap_or(1.0 / width.sqrt());
    let half = matches!(dtype, DType::F16 | DType::BF16);
    let wide = |e: &mut dyn Emit, x: Val| if half { emit!(e, "aten._to_copy.default", x, DType::F32) } else { Ok(x) };
    let (q, k, v) = (wide(e, q)?, wide(e, k)?, wide(e, v)?);
    let k = emit!(e, "aten.transpose.int", k, -2, -1)?;
    let scores = emit!(e, "aten.matmul.default", q, k)?;
    let mut scores = emit!(e, "aten.mul.Scalar", scores, scale)?;
    let hide = |e: &mut dyn Emit, scores: Val, seen: Val| {
        let hidden = emit!(e, "aten.logical_not.default", seen)?;
        emit!(e, "aten.masked_fill.Scalar", scores, hidden, f64::NEG_INFINITY)
    };
    if let Some(&m) = a.opt_tensor(f.mask)? {
        let selects = f.selects && e.meta(m).dtype == DType::Bool;
        scores = if selects { hide(e, scores, m)? } else { emit!(e, "aten.add.Tensor", scores, m)? };
    }
    if a.bool(f.causal)? {
        let ones = emit!(e, "aten.ones.default", [c.queries, c.keys], DType::Bool)?;
        let seen = emit!(e, "aten.tril.default", ones)?;
        scores = hide(e, scores, seen)?;
    }
    let weights = emit!(e, "aten._safe_softmax.default", scores, -1)?;
    let weights = emit!(e, "aten.dropout.default", weights, a.float(f.dropout)?, true)?;
    let out = emit!(e, "aten.matmul.default", weights, v)?;
    let narrow = |e: &mut dyn Emit, x: Val| if half { emit!(e, "aten._to_copy.default", x, dtype) } else { Ok(x) };
    Ok((narrow(e, out)?, narrow(e, weights)?))
}

fn drops(a: &Args<'_, Meta>) -> bool {
    a.float(PUBLIC.dropout).is_ok_and(|p| p != 0.0)
}

fn decompose(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![compose(e, a, &PUBLIC)?.0])
}

fn math_decompose(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    ensure!(a.is_none(6), "_scaled_dot_product_attention_math: a given dropout_mask is not supported");
    let (out, weights) = compose(e, a, &MATH)?;
    Ok(smallvec![out, weights])
}

/// Multiply-adds: of queries and keys, then of weights and values. A causal mask halves neither, as PyTorch counts.
fn macs(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<i64> {
    let (q, k) = (a.tensor(0)?, a.tensor(1)?);
    let keys = k.sizes()[k.rank() - 2];
    Ok(q.layout.numel().saturating_add(outs[0].layout.numel()).saturating_mul(keys))
}

/// `_scaled_dot_product_flash_attention_for_cpu_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal,
/// attn_mask, scale)`: computes the weights again from the logarithms of the sums.
fn flash_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let [g, q, k, v, out, sums] = [0, 1, 2, 3, 4, 5].map(|i| a.tensor(i).copied());
    let (g, q, k, v, out, sums) = (g?, q?, k?, v?, out?, sums?);
    let own = e.meta(q).dtype;
    let what = "scaled_dot_product_attention_flash_attention";
    for t in [g, q, k, v, out] {
        ensure!(e.meta(t).rank() == 4 && e.meta(t).dtype == own, "{what}: Accept only 4 dims inputs of one type");
    }
    ensure!(a.float(6)? == 0.0, "{what}: Currently do not support dropout > 0");
    let (heads, groups) = (sizes(e, q)[1], sizes(e, k)[1]);
    ensure!(groups > 0 && heads % groups == 0 && groups == sizes(e, v)[1], "{what}: {heads} heads for {groups}");
    let times = heads / groups;
    let dtype = if own == DType::F64 { own } else { DType::F32 };
    let wide =
        |e: &mut dyn Emit, t: Val| if own == dtype { Ok(t) } else { emit!(e, "aten._to_copy.default", t, dtype) };
    let all = |e: &mut dyn Emit, t: Val| {
        let t = wide(e, t)?;
        if times == 1 { Ok(t) } else { emit!(e, "aten.repeat_interleave.self_int", t, times, 1) }
    };
    let (g, q, out, k, v) = (wide(e, g)?, wide(e, q)?, wide(e, out)?, all(e, k)?, all(e, v)?);
    let scale = a.opt_float(9)?.unwrap_or_else(|| 1.0 / (sizes(e, q)[3] as f64).sqrt());
    let turned = |e: &mut dyn Emit, t: Val| emit!(e, "aten.transpose.int", t, -2, -1);
    let keys = turned(e, k)?;
    let scaled = emit!(e, "aten.mul.Scalar", q, scale)?;
    let mut scores = emit!(e, "aten.matmul.default", scaled, keys)?;
    if let Some(mask) = a.opt_tensor(8)?.copied() {
        let mask = wide(e, mask)?;
        scores = emit!(e, "aten.add.Tensor", scores, mask)?;
    }
    if a.bool(7)? {
        let shape = sizes(e, scores)[2..].to_vec();
        let ones = emit!(e, "aten.full.default", shape, true, DType::Bool)?;
        let later = emit!(e, "aten.triu.default", ones, 1)?;
        scores = emit!(e, "aten.masked_fill.Scalar", scores, later, f64::NEG_INFINITY)?;
    }
    let sums = emit!(e, "aten.unsqueeze.default", sums, -1)?;
    let weights = emit!(e, "aten.sub.Tensor", scores, sums)?;
    let weights = emit!(e, "aten.exp.default", weights)?;
    let values = turned(e, v)?;
    let by_weight = emit!(e, "aten.matmul.default", g, values)?;
    let mean = emit!(e, "aten.mul.Tensor", g, out)?;
    let mean = emit!(e, "aten.sum.dim_IntList", mean, [-1], true)?;
    let by_score = emit!(e, "aten.sub.Tensor", by_weight, mean)?;
    let by_score = emit!(e, "aten.mul.Tensor", weights, by_score)?;
    let by_score = emit!(e, "aten.mul.Scalar", by_score, scale)?;
    let (columns, weights) = (turned(e, by_score)?, turned(e, weights)?);
    let grads = [
        (emit!(e, "aten.matmul.default", by_score, k)?, 1),
        (emit!(e, "aten.matmul.default", columns, q)?, times),
        (emit!(e, "aten.matmul.default", weights, g)?, times),
    ];
    let mut results = smallvec![];
    for (mut t, times) in grads {
        if times > 1 {
            let mut shape = sizes(e, t);
            shape.splice(1..2, [groups, times]);
            t = emit!(e, "aten.view.default", t, shape)?;
            t = emit!(e, "aten.sum.dim_IntList", t, [2])?;
        }
        // In PyTorch's layout: the heads of a place are side by side.
        let t = emit!(e, "aten._to_copy.default", t, own)?;
        let t = emit!(e, "aten.transpose.int", t, 1, 2)?;
        let t = emit!(e, "aten.contiguous.default", t)?;
        results.push(emit!(e, "aten.transpose.int", t, 1, 2)?);
    }
    Ok(results)
}

/// The schema of attention without dropout.
const ATTENTION: &str = "restride::attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, \
    float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor";

/// Keys and values have equally many rows, queries and keys equally long ones. PyTorch's shape functions do not compare symbols.
fn equal_rows(a: &Args<'_, TensorType, Expr>) -> Vec<Expr> {
    let size = |i: usize, from_end: usize| a.tensor(i).ok()?.layout.sizes.iter().rev().nth(from_end).cloned();
    let equal = |x: Option<Expr>, y: Option<Expr>| Some(Expr::call(ExprFn::Eq, vec![x?, y?]));
    [equal(size(1, 1), size(2, 1)), equal(size(0, 0), size(1, 0))].into_iter().flatten().collect()
}

/// Declares attention: schema, shape rule, form, positions of the results with logarithms of sums and with weights, samples.
macro_rules! attention {
    ($schema:expr, $infer:expr, $form:expr, $sums:expr, $weights:expr, $samples:expr) => {
        OpDef {
            requires: Some(equal_rows),
            ..close(
                $schema,
                $infer,
                |c| run(c, &$form, $sums, $weights),
                |a, outs| scratch(a, outs, &$form, $sums.is_some(), $weights.is_some()),
                samples!($samples),
            )
        }
        .counted(macs)
    };
}
const NONE: Option<usize> = None;
const PER_HEAD: Option<&ByBatch> = Some(&ByBatch { each: &[0, 1, 2], broadcast: &[3] });

pub(crate) static OPS: &[OpDef] = table![
    OpDef {
        composed: Some(drops),
        decompose: Some(decompose),
        by_batch: PER_HEAD,
        ..attention!("scaled_dot_product_attention", infer, PUBLIC, NONE, NONE, samples)
    }
    .noted("softmax(q k^T scale + mask) v"),
    OpDef {
        decompose: Some(|e, a| e.call("aten.scaled_dot_product_attention.default", a.0)),
        by_batch: PER_HEAD,
        ..attention!(ATTENTION, infer, PUBLIC, NONE, NONE, samples)
    }
    .noted("scaled_dot_product_attention without dropout: its gradient computes the weights again"),
    attention!("_scaled_dot_product_flash_attention_for_cpu", flash_infer, FLASH, Some(1), NONE, flash_samples)
        .noted("Attention with the logarithms of the sums of exponentials"),
    composite!(flash_backward, flash_backward_samples(), "_scaled_dot_product_flash_attention_for_cpu_backward"),
    OpDef {
        composed: Some(drops),
        decompose: Some(math_decompose),
        ..attention!("_scaled_dot_product_attention_math", math_infer, MATH, NONE, Some(1), math_samples)
    }
    .noted("Attention with its weights"),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family { ops: &[OPS], gradients: &[grad::GRADS], aliases: &[] };

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    /// Query, key and value of each element type and in several shapes.
    pub(crate) fn operands() -> Vec<[RawTensor; 3]> {
        let mut out = Vec::new();
        for d in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            out.push([tensor(d, &[2, 3, 4, 8], 1), tensor(d, &[2, 3, 5, 8], 2), tensor(d, &[2, 3, 5, 8], 3)]);
            let heads_inside =
                |l: i64, seed| crate::support::samples::laid(d, Layout::permuted(&[2, 3, l, 8], &[0, 2, 1, 3]), seed);
            out.push([heads_inside(4, 1), heads_inside(5, 2), heads_inside(5, 3)]);
            out.push([strided(d, &[2, 3, 4, 8], 1), tensor(d, &[2, 3, 5, 8], 2), transposed(d, &[2, 3, 5, 8], 3)]);
        }
        let d = DType::F32;
        out.push([tensor(d, &[1, 2, 70, 16], 1), tensor(d, &[1, 2, 70, 16], 2), tensor(d, &[1, 2, 70, 16], 3)]);
        out
    }

    /// Query, key and value of the given shapes.
    pub(crate) fn of(q: &[i64], k: &[i64], v: &[i64]) -> [RawTensor; 3] {
        let d = DType::F32;
        [tensor(d, q, 1), tensor(d, k, 2), tensor(d, v, 3)]
    }

    /// Boolean mask: the second row selects no score, every other row selects at least the first.
    pub(crate) fn mask(sizes: &[i64]) -> RawTensor {
        let t = tensor(DType::Bool, sizes, 77);
        let (n, rows) = (sizes[sizes.len() - 1] as usize, sizes[sizes.len() - 2] as usize);
        let mut bits: Vec<u8> = t.to_elements::<u8>();
        for (i, row) in bits.chunks_mut(n.max(1)).enumerate() {
            row[0] = 1;
            if rows > 1 && i % rows == 1 {
                row.fill(0);
            }
        }
        t.storage().write(&bits);
        t
    }

    pub(crate) fn samples() -> Samples {
        let mut out = Vec::new();
        for [q, k, v] in operands() {
            let d = q.dtype();
            let scores = [q.read().view().sizes()[2], k.read().view().sizes()[2]];
            out.push(sample![&q, &k, &v]);
            out.push(sample![&q, &k, &v, (), 0.0, true]);
            out.push(sample![&q, &k, &v, mask(&scores), 0.0, false, 0.3]);
            out.push(sample![&q, &k, &v, tensor(d, &scores, 9)]);
        }
        let [q, k, v] = of(&[2, 3, 4, 8], &[2, 3, 5, 8], &[2, 3, 5, 8]);
        let d = DType::F32;
        for m in [&[4, 1][..], &[1, 5], &[2, 1, 4, 5], &[2, 3, 1, 5], &[3, 4, 5]] {
            out.push(sample![&q, &k, &v, mask(m)]);
            out.push(sample![&q, &k, &v, in_range(d, Layout::contiguous(m), 3, -3.0, 3.0)]);
        }
        out.push(sample![&q, &k, &v, transposed(d, &[4, 5], 3)]);
        out.push(sample![&q, &k, &v, crate::support::samples::expanded(d, &[2, 3, 4, 5], 3)]);
        // Refused: a mask of another type, a mask that does not broadcast, and a mask together with is_causal.
        out.push(sample![&q, &k, &v, tensor(DType::F64, &[4, 5], 3)]);
        out.push(sample![&q, &k, &v, tensor(d, &[3, 5], 3)]);
        out.push(sample![&q, &k, &v, tensor(d, &[4, 5], 3), 0.0, true]);
        for (q, k, v) in [
            (&[2, 3, 4, 8][..], &[2, 3, 5, 8][..], &[2, 3, 5, 6][..]),
            (&[3, 4, 8], &[3, 5, 8], &[3, 5, 8]),
            (&[4, 8], &[5, 8], &[5, 8]),
            (&[1, 2, 3, 4, 8], &[1, 2, 3, 5, 8], &[1, 2, 3, 5, 8]),
            (&[1, 3, 4, 8], &[2, 3, 5, 8], &[2, 3, 5, 8]),
            (&[2, 3, 4, 8], &[1, 3, 5, 8], &[1, 3, 5, 8]),
            (&[2, 3, 4, 8], &[2, 1, 5, 8], &[2, 1, 5, 8]),
            (&[2, 3, 0, 8], &[2, 3, 5, 8], &[2, 3, 5, 8]),
            (&[2, 3, 4, 8], &[2, 3, 0, 8], &[2, 3, 0, 8]),
            (&[0, 3, 4, 8], &[0, 3, 5, 8], &[0, 3, 5, 8]),
            (&[2, 6, 4, 8], &[2, 2, 5, 8], &[2, 2, 5, 8]),
            (&[2, 3, 4, 8], &[2, 3, 5, 7], &[2, 3, 5, 8]),
        ] {
            let [q, k, v] = of(q, k, v);
            out.push(sample![&q, &k, &v]);
        }
        for (q, k, v) in [
            (&[2, 6, 4, 8][..], &[2, 2, 5, 8][..], &[2, 2, 5, 8][..]),
            (&[2, 6, 4, 8], &[2, 2, 5, 8], &[2, 3, 5, 8]),
            (&[6, 4, 8], &[2, 5, 8], &[2, 5, 8]),
            (&[2, 5, 4, 8], &[2, 2, 5, 8], &[2, 2, 5, 8]),
        ] {
            let [q, k, v] = of(q, k, v);
            out.push(sample![&q, &k, &v, (), 0.0, true, (), true]);
        }
        out
    }

    pub(crate) fn flash_backward_samples() -> Samples {
        let mut out = Vec::new();
        for (d, keys) in [(DType::F32, 4), (DType::F64, 4), (DType::F32, 2), (DType::BF16, 4)] {
            let [q, g, o] = [1, 2, 3].map(|s| tensor(d, &[2, 4, 5, 8], s));
            let [k, v] = [4, 5].map(|s| tensor(d, &[2, keys, 6, 8], s));
            let wide = if d == DType::F64 { d } else { DType::F32 };
            let sums = in_range(wide, Layout::contiguous(&[2, 4, 5]), 6, 2.0, 4.0);
            out.push(sample![&g, &q, &k, &v, &o, &sums, 0.0, false]);
            out.push(sample![&g, &q, &k, &v, &o, &sums, 0.0, true, (), 0.2]);
            out.push(sample![&g, &q, &k, &v, &o, &sums, 0.0, false, tensor(wide, &[5, 6], 5)]);
        }
        out
    }

    pub(crate) fn flash_samples() -> Samples {
        let mut out = Vec::new();
        for [q, k, v] in operands().into_iter().filter(|[_, _, v]| v.read().view().strides()[3] == 1) {
            let d = q.dtype();
            let scores = [q.read().view().sizes()[2], k.read().view().sizes()[2]];
            out.push(sample![&q, &k, &v]);
            out.push(sample![&q, &k, &v, 0.0, true, (), 0.2]);
            out.push(sample![&q, &k, &v, 0.0, false, tensor(d, &scores, 5)]);
        }
        let [q, k, v] = of(&[2, 6, 4, 8], &[2, 2, 5, 8], &[2, 2, 5, 8]);
        out.push(sample![&q, &k, &v]);
        out.push(sample![&q, &k, &v, 0.5]);
        out
    }

    pub(crate) fn math_samples() -> Samples {
        let mut out = Vec::new();
        for [q, k, v] in operands() {
            let scores = [q.read().view().sizes()[2], k.read().view().sizes()[2]];
            out.push(sample![&q, &k, &v]);
            out.push(sample![&q, &k, &v, (), 0.0, true]);
            out.push(sample![&q, &k, &v, mask(&scores), 0.0, false, (), 0.3]);
        }
        out
    }
}

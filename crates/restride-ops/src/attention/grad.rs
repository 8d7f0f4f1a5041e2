//! Gradients of attention.
//!
//! Without dropout the rule recomputes the weights: storing them takes queries times keys elements. With dropout the rule
//! differentiates the operator's composition.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, form, op, rule};
use restride_ir::{DType, Dim, Expr};

/// Arguments of an attention call.
struct Attention<'c> {
    mask: Option<T<'c>>,
    causal: bool,
    scale: Option<f64>,
    grouped: bool,
}

/// Query, key and value with all heads, and the scale of the scores.
struct Heads<'c> {
    q: T<'c>,
    k: T<'c>,
    v: T<'c>,
    scale: f64,
}

impl<'c> Heads<'c> {
    fn of(c: &'c Cx<'c>, how: &Attention<'c>) -> Heads<'c> {
        let [q, k, v] = [0, 1, 2].map(|i| c.arg(i));
        let mut out = Heads { q, k, v, scale: 1.0 };
        match (how.scale, q.size(-1).constant()) {
            (Some(s), _) => out.scale = s,
            (None, Some(n)) => out.scale = 1.0 / n.as_f64().sqrt(),
            (None, None) => c.fail("attention over a symbolic number of features"),
        }
        out
    }

    /// Repeats the heads of keys and values to the number of query heads.
    fn repeated(self, c: &'c Cx<'c>) -> Heads<'c> {
        let (Some(heads), Some(k), Some(v)) =
            (self.q.size(-3).constant(), self.k.size(-3).constant(), self.v.size(-3).constant())
        else {
            c.fail("grouped heads of symbolic number");
            return self;
        };
        let repeat = |x: T<'c>, own: i64| match heads.as_i64() / own.max(1) {
            1 => x,
            times => op!(c, "aten.repeat_interleave.self_int", x, times, -3),
        };
        let (k, v) = (repeat(self.k, k.as_i64()), repeat(self.v, v.as_i64()));
        Heads { k, v, ..self }
    }

    /// Scaled and masked scores.
    fn scores(&self, c: &'c Cx<'c>, how: &Attention<'c>) -> T<'c> {
        let mut scores = (self.q * self.scale).matmul(self.k.mt());
        let low = f64::NEG_INFINITY;
        if how.causal {
            let ones = op!(c, "aten.full.default", vec![self.q.size(-2), self.k.size(-2)], true, DType::Bool);
            let later = op!(c, "aten.triu.default", ones, 1);
            scores = op!(c, "aten.masked_fill.Scalar", scores, later, low);
        }
        match how.mask {
            Some(mask) if mask.dtype() == DType::Bool => {
                op!(c, "aten.masked_fill.Scalar", scores, mask.unary("aten.logical_not.default"), low)
            }
            Some(mask) => scores + mask,
            None => scores,
        }
    }
}

fn how<'c>(c: &'c Cx<'c>) -> Attention<'c> {
    let grouped = c.flag(7) && c.arg(0).rank() > 2;
    Attention { mask: c.opt(3), causal: c.flag(5), scale: c.opt_float(6), grouped }
}

/// `scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)`
fn attention<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let dropout = c.float(4);
    if dropout == 0.0 {
        let args: Vec<_> = (0..8).map(|i| c.raw(i)).collect();
        return vec![c.call("restride.attention.default", &args)];
    }
    let how = how(c);
    let mut heads = Heads::of(c, &how);
    if how.grouped {
        heads = heads.repeated(c);
    }
    let weights = op!(c, "aten._safe_softmax.default", heads.scores(c, &how), -1);
    let kept = op!(c, "aten.native_dropout.default", weights, dropout, true);
    vec![kept.matmul(heads.v)]
}

/// Gradient of `scaled_dot_product_attention` without dropout.
fn attention_rule<'c>(c: &'c Cx<'c>) {
    let how = how(c);
    let own = Heads::of(c, &how);
    let (own_k, own_v) = (own.k, own.v);
    let mut heads = if how.grouped { own.repeated(c) } else { own };
    let mut g = c.grad();
    if matches!(heads.q.dtype(), DType::F16 | DType::BF16) {
        let wide = |t: T<'c>| t.to(DType::F32);
        g = wide(g);
        heads = Heads { q: wide(heads.q), k: wide(heads.k), v: wide(heads.v), ..heads };
    }
    let weights = op!(c, "aten._safe_softmax.default", heads.scores(c, &how), -1);
    // Repeated heads sum their gradients.
    let folded = |g: T<'c>, own: T<'c>| match (g.size(-3).constant(), own.size(-3).constant()) {
        (Some(all), Some(n)) if how.grouped && all.as_i64() != n.as_i64() => {
            let mut sizes = g.sizes();
            let at = sizes.len() - 3;
            sizes.splice(at..=at, [Expr::Int(n.as_i64()), Expr::Int(all.as_i64() / n.as_i64().max(1))]);
            g.reshape(sizes).sum(vec![-3], false)
        }
        _ => g,
    };
    c.give(2, || folded(weights.mt().matmul(g), own_v));
    let mask = how.mask.is_some() && c.needs(3);
    if !(c.needs(0) || c.needs(1) || mask) {
        return;
    }
    let dtype = weights.dtype();
    let scores = op!(c, "aten._softmax_backward_data.default", g.matmul(heads.v.mt()), weights, -1, dtype);
    if mask {
        c.set(3, scores);
    }
    c.give(0, || scores.matmul(heads.k) * heads.scale);
    c.give(1, || folded(scores.mt().matmul(heads.q) * heads.scale, own_k));
}

/// `_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, attn_mask, scale)`
fn flash_attention<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let grouped = c.arg(0).size(-3).equals(&c.arg(1).size(-3)) == Some(false);
    let how = Attention { mask: c.opt(5), causal: c.flag(4), scale: c.opt_float(6), grouped };
    let mut heads = Heads::of(c, &how);
    if how.grouped {
        heads = heads.repeated(c);
    }
    let scores = heads.scores(c, &how);
    let weights = op!(c, "aten._safe_softmax.default", scores, -1);
    vec![weights.matmul(heads.v), op!(c, "aten.logsumexp.default", scores, [-1])]
}

pub(crate) static GRADS: Rules = &[
    (&["scaled_dot_product_attention"], form!(attention)),
    (&["restride::attention"], rule!(attention_rule)),
    (&["_scaled_dot_product_flash_attention_for_cpu"], form!(flash_attention)),
];

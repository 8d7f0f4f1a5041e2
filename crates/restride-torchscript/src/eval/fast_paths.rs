//! PyTorch's fused layers of transformers, which it calls where no gradient is asked for, as the operators that they stand for.

use super::Evaluator;
use super::expressions::refused;
use crate::record::{CallArg, TensorRef};
use crate::value::PyValue;
use restride_ir::{Arg, DType, Error, Expr, Result};
use std::sync::Arc;

fn number(n: i64) -> CallArg {
    Arg::Scalar(Expr::Int(n))
}

impl Evaluator<'_, '_> {
    /// A call of a fused layer; `None` for all other names.
    pub(crate) fn fast_path(
        &mut self,
        name: &str,
        args: &[PyValue],
        kwargs: &[(Arc<str>, PyValue)],
    ) -> Result<Option<PyValue>> {
        let names: &[&str] = match name {
            "_native_multi_head_attention" => &[
                "query",
                "key",
                "value",
                "embed_dim",
                "num_head",
                "qkv_weight",
                "qkv_bias",
                "proj_weight",
                "proj_bias",
                "mask",
                "need_weights",
                "average_attn_weights",
                "mask_type",
            ],
            "_transformer_encoder_layer_fwd" => &[
                "src",
                "embed_dim",
                "num_heads",
                "qkv_weight",
                "qkv_bias",
                "proj_weight",
                "proj_bias",
                "use_gelu",
                "norm_first",
                "eps",
                "norm_weight_1",
                "norm_bias_1",
                "norm_weight_2",
                "norm_bias_2",
                "ffn_weight_1",
                "ffn_bias_1",
                "ffn_weight_2",
                "ffn_bias_2",
                "mask",
                "mask_type",
            ],
            _ => return Ok(None),
        };
        let get = |n: &str| {
            let at = names.iter().position(|m| *m == n).and_then(|i| args.get(i));
            at.or_else(|| kwargs.iter().find(|k| &*k.0 == n).map(|k| &k.1)).cloned().unwrap_or(PyValue::None)
        };
        let tensor = |n: &str| match get(n) {
            PyValue::Tensor(t) => Ok(t),
            other => Err(refused(format!("{name} needs a tensor for {n}, got {}", other.kind()))),
        };
        let flag = |n: &str, default: bool| match get(n) {
            PyValue::Num(Expr::Bool(b)) => b,
            _ => default,
        };
        let mask = match get("mask") {
            PyValue::Tensor(t) => Some(t),
            _ => None,
        };
        let mask_type = match get("mask_type") {
            PyValue::Num(Expr::Int(i)) => i,
            _ => 2,
        };
        let heads = self
            .known_int(&get(if name.starts_with("_native") { "num_head" } else { "num_heads" }), "a number of heads")?;
        let weights = [tensor("qkv_weight")?, tensor("qkv_bias")?, tensor("proj_weight")?, tensor("proj_bias")?];
        if name == "_native_multi_head_attention" {
            let qkv = [tensor("query")?, tensor("key")?, tensor("value")?];
            let (out, attention) = self.heads(qkv, heads, &weights, mask, mask_type)?;
            let attention = if !flag("need_weights", true) {
                PyValue::None
            } else if flag("average_attn_weights", true) {
                PyValue::Tensor(
                    self.rec.tensor("aten.mean.dim", vec![Arg::Value(attention), Arg::Scalars(vec![Expr::Int(1)])])?,
                )
            } else {
                PyValue::Tensor(attention)
            };
            return Ok(Some(PyValue::tuple(vec![PyValue::Tensor(out), attention])));
        }
        let eps = self.number(&get("eps"))?;
        let norm = |me: &mut Self, x: &TensorRef, which: u8| -> Result<TensorRef> {
            let (w, b) = (tensor(&format!("norm_weight_{which}"))?, tensor(&format!("norm_bias_{which}"))?);
            let shape = w.ty().layout.sizes.to_vec();
            let args = vec![
                Arg::Value(x.clone()),
                Arg::Scalars(shape),
                Arg::Value(w),
                Arg::Value(b),
                Arg::Scalar(eps.clone()),
            ];
            me.rec.tensor("aten.layer_norm.default", args)
        };
        let add = |me: &mut Self, a: &TensorRef, b: &TensorRef| {
            me.rec.tensor("aten.add.Tensor", vec![Arg::Value(a.clone()), Arg::Value(b.clone())])
        };
        let first = flag("norm_first", false);
        let src = tensor("src")?;
        let x = if first { norm(self, &src, 1)? } else { src.clone() };
        let (attended, _) = self.heads([x.clone(), x.clone(), x], heads, &weights, mask, mask_type)?;
        let mut x = add(self, &attended, &src)?;
        if !first {
            x = norm(self, &x, 1)?;
        }
        let before = x.clone();
        let inner = if first { norm(self, &x, 2)? } else { x };
        let hidden = self.linear(&inner, tensor("ffn_weight_1")?, tensor("ffn_bias_1")?)?;
        let act = if flag("use_gelu", false) { "aten.gelu.default" } else { "aten.relu.default" };
        let hidden = self.rec.tensor(act, vec![Arg::Value(hidden)])?;
        let out = self.linear(&hidden, tensor("ffn_weight_2")?, tensor("ffn_bias_2")?)?;
        let mut out = add(self, &out, &before)?;
        if !first {
            out = norm(self, &out, 2)?;
        }
        Ok(Some(PyValue::Tensor(out)))
    }

    fn linear(&mut self, x: &TensorRef, weight: TensorRef, bias: TensorRef) -> Result<TensorRef> {
        self.rec.tensor("aten.linear.default", vec![Arg::Value(x.clone()), Arg::Value(weight), Arg::Value(bias)])
    }

    /// Multi-head attention: the result and the attention of each head.
    fn heads(
        &mut self,
        qkv: [TensorRef; 3],
        heads: i64,
        weights: &[TensorRef; 4],
        mask: Option<TensorRef>,
        mask_type: i64,
    ) -> Result<(TensorRef, TensorRef)> {
        if qkv[0].rank() != 3 {
            return Err(Error::unsupported("fused attention of a tensor of other than 3 dimensions"));
        }
        let [weight, bias, out_weight, out_bias] = weights;
        let mut parts = Vec::new();
        let width = weight.ty().layout.sizes[0].clone();
        let each = restride_ir::Dim::floor_div(&width, &Expr::Int(3));
        for (i, x) in qkv.iter().enumerate() {
            let bound = |k: i64| restride_ir::Dim::times(&each, &Expr::Int(k));
            let cut = |me: &mut Self, t: &TensorRef| {
                let args = vec![
                    Arg::Value(t.clone()),
                    number(0),
                    Arg::Scalar(bound(i as i64)),
                    Arg::Scalar(bound(i as i64 + 1)),
                ];
                me.rec.tensor("aten.slice.Tensor", args)
            };
            let (w, b) = (cut(self, weight)?, cut(self, bias)?);
            let y = self.linear(x, w, b)?;
            let sizes = y.ty().layout.sizes.to_vec();
            let per = restride_ir::Dim::floor_div(&sizes[2], &Expr::Int(heads));
            let split = vec![sizes[0].clone(), sizes[1].clone(), Expr::Int(heads), per];
            let y = self.rec.tensor("aten.reshape.default", vec![Arg::Value(y), Arg::Scalars(split)])?;
            parts.push(self.rec.tensor("aten.transpose.int", vec![Arg::Value(y), number(1), number(2)])?);
        }
        let depth = parts[0].ty().layout.sizes[3].clone();
        let scale = Expr::call(restride_ir::ExprFn::TrueDiv, vec![Expr::Int(1), depth]);
        let scale =
            super::numbers::unary("sqrt", &scale)?.ok_or_else(|| Error::unsupported("heads of unknown size"))?;
        let q = self.rec.tensor("aten.mul.Scalar", vec![Arg::Value(parts[0].clone()), Arg::Scalar(scale)])?;
        let k = self.rec.tensor("aten.transpose.int", vec![Arg::Value(parts[1].clone()), number(2), number(3)])?;
        let mut scores = self.rec.tensor("aten.matmul.default", vec![Arg::Value(q), Arg::Value(k)])?;
        if let Some(mut mask) = mask {
            if mask_type == 1 {
                for _ in 0..2 {
                    mask = self.rec.tensor("aten.unsqueeze.default", vec![Arg::Value(mask), number(1)])?;
                }
            }
            scores = if mask.dtype() == DType::Bool {
                let args = vec![Arg::Value(scores), Arg::Value(mask), Arg::Scalar(Expr::float(f64::NEG_INFINITY))];
                self.rec.tensor("aten.masked_fill.Scalar", args)?
            } else {
                self.rec.tensor("aten.add.Tensor", vec![Arg::Value(scores), Arg::Value(mask)])?
            };
        }
        let attention = self.rec.tensor("aten.softmax.int", vec![Arg::Value(scores), number(-1)])?;
        let out = self
            .rec
            .tensor("aten.matmul.default", vec![Arg::Value(attention.clone()), Arg::Value(parts[2].clone())])?;
        let out = self.rec.tensor("aten.transpose.int", vec![Arg::Value(out), number(1), number(2)])?;
        let sizes = qkv[0].ty().layout.sizes.to_vec();
        let merged = vec![sizes[0].clone(), sizes[1].clone(), each];
        let out = self.rec.tensor("aten.reshape.default", vec![Arg::Value(out), Arg::Scalars(merged)])?;
        Ok((self.linear(&out, out_weight.clone(), out_bias.clone())?, attention))
    }
}

//! Core ATen: the set of operators, and decompositions of other operators into them.
//!
//! PyTorch tags the operators that it asks every backend to support (`torch.Tag.core`);
//! `scripts/make/dump_schemas.py` lists them in `data/core.txt`. A decomposition has the operator's meaning; its sums may
//! run in another order than those of the operator's kernel. Views have none here: their view rules become core views.

mod moving;
mod network;
mod pointwise;

use crate::support::*;
use moving::*;
use network::*;
use pointwise::*;
use restride_ir::{Arg, Args, DType, DecomposeFn, Emit, MemoryFormat, Op, OpError, Scalar, Val};
use smallvec::smallvec;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

static CORE: &str = include_str!("../../data/core.txt");

/// Whether PyTorch tags an operator as one of Core ATen.
pub fn is_core(op: Op) -> bool {
    static NAMES: OnceLock<HashSet<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| CORE.lines().collect()).contains(op.name())
}

/// The decomposition of an operator into core operators, or into others that have one: declared here or its composition.
pub fn core_form(op: Op) -> Option<DecomposeFn> {
    static NAMES: OnceLock<HashMap<&'static str, DecomposeFn>> = OnceLock::new();
    let forms = NAMES.get_or_init(|| FORMS.iter().flat_map(|(names, f)| names.iter().map(|n| (*n, *f))).collect());
    forms.get(op.name()).copied().or(op.def().copies_by).or(op.def().decompose)
}

fn one_of(v: Val) -> Vals {
    Ok(smallvec![v])
}

fn dtype(e: &dyn Emit, v: Val) -> DType {
    e.meta(v).dtype
}

/// A 0-d tensor that holds a number.
fn number(e: &mut dyn Emit, value: Scalar, dtype: DType) -> Result<Val> {
    emit!(e, "aten.full.default", Vec::<i64>::new(), value, dtype)
}

fn all_dims(e: &dyn Emit, v: Val) -> Vec<i64> {
    (0..e.meta(v).rank() as i64).collect()
}

/// The dimensions of an argument; all dimensions if the argument is empty or `None`.
fn dims(e: &dyn Emit, v: Val, given: Option<restride_ir::Ints>) -> Vec<i64> {
    given.filter(|d| !d.is_empty()).map_or_else(|| all_dims(e, v), |d| d.to_vec())
}

fn floating(e: &dyn Emit, v: Val) -> Result<()> {
    ensure!(dtype(e, v).is_float(), "a form for floating-point tensors alone");
    Ok(())
}

fn swap_last(e: &mut dyn Emit, v: Val) -> Result<Val> {
    let rank = e.meta(v).rank() as i64;
    let mut order: Vec<i64> = (0..rank).collect();
    order.swap(rank as usize - 2, rank as usize - 1);
    emit!(e, "aten.permute.default", v, order)
}

/// Decomposes a call on 16-bit floats in f32 and rounds the results once, as PyTorch's kernels and its own decompositions do.
fn in_f32(e: &mut dyn Emit, a: &ValArgs<'_>, form: DecomposeFn) -> Vals {
    let types: Vec<DType> = a.0.iter().flat_map(Arg::values).map(|v| dtype(e, *v)).filter(|d| d.is_float()).collect();
    let narrow = match types[..] {
        [d, ref rest @ ..] if is_16_bit(d) && rest.iter().all(|r| *r == d) => d,
        _ => return form(e, a),
    };
    // Masks and indices keep their types.
    let from =
        |e: &mut dyn Emit, own: DType, v: Val, new: DType| if dtype(e, v) == own { to(e, v, new) } else { Ok(v) };
    let wide = a.0.iter().map(|x| x.try_map(|v| from(e, narrow, *v, DType::F32), |s| Ok(*s)));
    let wide = wide.collect::<Result<Vec<_>>>()?;
    form(e, &Args(&wide))?.into_iter().map(|v| from(e, DType::F32, v, narrow)).collect()
}

type CoreForm = (&'static [&'static str], DecomposeFn);

/// Decomposes an operator into another one with the same arguments.
macro_rules! renamed {
    ($($from:literal => $to:literal),* $(,)?) => {
        [$((&[$from], (|e, a| e.call($to, a.0)) as DecomposeFn)),*]
    };
}

static RENAMED: [CoreForm; 35] = renamed! {
    "aten.__and__.Tensor" => "aten.bitwise_and.Tensor", "aten.__and__.Scalar" => "aten.bitwise_and.Scalar",
    "aten.__or__.Tensor" => "aten.bitwise_or.Tensor", "aten.__or__.Scalar" => "aten.bitwise_or.Scalar",
    "aten.__xor__.Tensor" => "aten.bitwise_xor.Tensor", "aten.__xor__.Scalar" => "aten.bitwise_xor.Scalar",
    "aten.greater.Tensor" => "aten.gt.Tensor", "aten.greater.Scalar" => "aten.gt.Scalar",
    "aten.greater_equal.Tensor" => "aten.ge.Tensor", "aten.greater_equal.Scalar" => "aten.ge.Scalar",
    "aten.less.Tensor" => "aten.lt.Tensor", "aten.less.Scalar" => "aten.lt.Scalar",
    "aten.less_equal.Tensor" => "aten.le.Tensor", "aten.less_equal.Scalar" => "aten.le.Scalar",
    "aten.not_equal.Tensor" => "aten.ne.Tensor", "aten.not_equal.Scalar" => "aten.ne.Scalar",
    "aten.divide.Tensor" => "aten.div.Tensor", "aten.divide.Scalar" => "aten.div.Scalar",
    "aten.divide.Tensor_mode" => "aten.div.Tensor_mode", "aten.divide.Scalar_mode" => "aten.div.Scalar_mode",
    "aten.multiply.Tensor" => "aten.mul.Tensor", "aten.multiply.Scalar" => "aten.mul.Scalar",
    "aten.subtract.Tensor" => "aten.sub.Tensor", "aten.subtract.Scalar" => "aten.sub.Scalar",
    "aten.negative.default" => "aten.neg.default", "aten.absolute.default" => "aten.abs.default",
    "aten.max.other" => "aten.maximum.default", "aten.min.other" => "aten.minimum.default",
    "aten.clip.default" => "aten.clamp.default", "aten.clip.Tensor" => "aten.clamp.Tensor",
    "aten.concat.default" => "aten.cat.default", "aten.concatenate.default" => "aten.cat.default",
    "aten.fix.default" => "aten.trunc.default", "aten.adaptive_avg_pool2d.default" => "aten._adaptive_avg_pool2d.default",
    "aten.adaptive_avg_pool3d.default" => "aten._adaptive_avg_pool3d.default",
};

static FORMS: std::sync::LazyLock<Vec<CoreForm>> =
    std::sync::LazyLock::new(|| RENAMED.iter().chain(SAID).copied().collect());

static SAID: &[CoreForm] = &[
    (&["aten.linear.default"], linear),
    (&["aten.matmul.default", "aten.mv.default", "aten.dot.default", "aten.linalg_matmul.default"], matmul),
    (&["aten.baddbmm.default"], baddbmm),
    (&["aten.addmv.default"], addmv),
    (&["aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default"], |e, a| conv(e, a, false)),
    (&["aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input"], |e, a| {
        conv(e, a, true)
    }),
    (&["aten.batch_norm.default"], batch_norm),
    (&["aten._native_batch_norm_legit_functional.default"], batch_norm_functional),
    (&["aten.layer_norm.default"], layer_norm),
    (&["aten.group_norm.default"], group_norm),
    (&["aten.softmax.int", "aten.special_softmax.default"], |e, a| softmax(e, a, "aten._softmax.default")),
    (&["aten.log_softmax.int", "aten.special_log_softmax.default"], |e, a| softmax(e, a, "aten._log_softmax.default")),
    (&["aten._safe_softmax.default"], safe_softmax),
    (&["aten.max_pool2d.default"], max_pool2d),
    (&["aten.max_pool3d.default"], max_pool3d),
    (&["aten.silu.default"], |e, a| in_f32(e, a, silu)),
    (&["aten.hardsigmoid.default"], |e, a| in_f32(e, a, hardsigmoid)),
    (&["aten.hardswish.default"], |e, a| in_f32(e, a, hardswish)),
    (&["aten.softplus.default"], |e, a| in_f32(e, a, softplus)),
    (&["aten.mish.default"], |e, a| in_f32(e, a, mish)),
    (&["aten.relu6.default"], |e, a| one_of(emit!(e, "aten.hardtanh.default", pass(a, 0), 0, 6)?)),
    (&["aten.square.default"], |e, a| one_of(emit!(e, "aten.mul.Tensor", pass(a, 0), pass(a, 0))?)),
    (&["aten.exp2.default"], |e, a| one_of(emit!(e, "aten.pow.Scalar", 2, pass(a, 0))?)),
    (&["aten.rsub.Scalar"], rsub),
    (&["aten.rsub.Tensor"], |e, a| one_of(emit!(e, "aten.sub.Tensor", pass(a, 1), pass(a, 0), pass(a, 2))?)),
    (&["aten.clamp_min.default"], |e, a| one_of(emit!(e, "aten.clamp.default", pass(a, 0), pass(a, 1), ())?)),
    (&["aten.clamp_max.default"], |e, a| one_of(emit!(e, "aten.clamp.default", pass(a, 0), (), pass(a, 1))?)),
    (&["aten.clamp_min.Tensor"], |e, a| one_of(emit!(e, "aten.clamp.Tensor", pass(a, 0), pass(a, 1), ())?)),
    (&["aten.clamp_max.Tensor"], |e, a| one_of(emit!(e, "aten.clamp.Tensor", pass(a, 0), (), pass(a, 1))?)),
    (&["aten.masked_fill.Scalar", "aten.masked_fill.Tensor"], masked_fill),
    (&["aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar"], choose),
    (&["aten.addcmul.default"], |e, a| in_f32(e, a, |e, a| addcmul(e, a, "aten.mul.Tensor"))),
    (&["aten.addcdiv.default"], |e, a| in_f32(e, a, |e, a| addcmul(e, a, "aten.div.Tensor"))),
    (&["aten.lerp.Scalar"], |e, a| in_f32(e, a, lerp)),
    (&["aten.isfinite.default"], isfinite),
    (&["aten.floor_divide.default"], |e, a| one_of(emit!(e, "aten.div.Tensor_mode", pass(a, 0), pass(a, 1), "floor")?)),
    (&["aten.floor_divide.Scalar"], |e, a| one_of(emit!(e, "aten.div.Scalar_mode", pass(a, 0), pass(a, 1), "floor")?)),
    (&["aten.tril.default"], |e, a| triangle(e, a, "aten.le.Scalar")),
    (&["aten.triu.default"], |e, a| triangle(e, a, "aten.ge.Scalar")),
    (&["aten.all.default"], |e, a| all(e, a, "aten.any.default")),
    (&["aten.all.dim"], |e, a| all(e, a, "aten.any.dim")),
    (&["aten.all.dims"], |e, a| all(e, a, "aten.any.dims")),
    (&["aten.var.default"], |e, a| one_of(variance(e, a)?.0)),
    (&["aten.std.default", "aten.std.dim", "aten.std.correction"], |e, a| in_f32(e, a, deviation)),
    (&["aten.var_mean.default", "aten.var_mean.dim", "aten.var_mean.correction"], |e, a| {
        let (var, mean) = variance(e, a)?;
        Ok(smallvec![var, mean])
    }),
    (&["aten.linalg_vector_norm.default"], |e, a| in_f32(e, a, vector_norm)),
    (&["aten.sum.default"], whole_sum),
    (&["aten.max.default"], |e, a| extreme(e, a, "aten.amax.default")),
    (&["aten.min.default"], |e, a| extreme(e, a, "aten.amin.default")),
    (&["aten.zeros.default"], |e, a| filled(e, a, Some(0), 1, Scalar::Int(0))),
    (&["aten.ones.default"], |e, a| filled(e, a, Some(0), 1, Scalar::Int(1))),
    (&["aten.zeros_like.default"], |e, a| filled(e, a, None, 1, Scalar::Int(0))),
    (&["aten.ones_like.default"], |e, a| filled(e, a, None, 1, Scalar::Int(1))),
    (&["aten.new_zeros.default"], |e, a| filled(e, a, Some(1), 2, Scalar::Int(0))),
    (&["aten.new_ones.default"], |e, a| filled(e, a, Some(1), 2, Scalar::Int(1))),
    (&["aten.new_full.default"], |e, a| filled(e, a, Some(1), 3, a.scalar(2)?)),
    (&["aten.zero.default"], |e, a| one_of(emit!(e, "aten.full_like.default", pass(a, 0), 0)?)),
    (&["aten.arange.default"], |e, a| arange(e, a, None)),
    (&["aten.arange.start"], |e, a| arange(e, a, Some(0))),
    (&["aten.stack.default"], stack),
    (&["aten.roll.default"], roll),
    (&["aten.repeat_interleave.self_int"], repeat_interleave),
    (&["aten.index_copy.default"], |e, a| put_along(e, a, *a.tensor(3)?, false)),
    (&["aten.index_add.default"], index_add),
    (&["aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor"], index_fill),
    (&["aten.lift_fresh_copy.default"], |e, a| one_of(emit!(e, "aten.clone.default", pass(a, 0))?)),
    (&["aten.contiguous.default"], |e, a| {
        one_of(emit!(e, "aten.clone.default", pass(a, 0), Arg::MemoryFormat(MemoryFormat::Contiguous))?)
    }),
    (&["aten.dropout.default"], |e, a| {
        ensure!(!a.bool(2)? || a.float(1)? == 0.0, "dropout that drops");
        one_of(emit!(e, "aten.clone.default", pass(a, 0))?)
    }),
    (&["aten.upsample_nearest2d.default"], |e, a| {
        without_scales(a, 2)?;
        one_of(emit!(e, "aten.upsample_nearest2d.vec", pass(a, 0), pass(a, 1), ())?)
    }),
    (&["aten.upsample_bilinear2d.default"], |e, a| {
        without_scales(a, 3)?;
        one_of(emit!(e, "aten.upsample_bilinear2d.vec", pass(a, 0), pass(a, 1), pass(a, 2), ())?)
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::lookup;

    #[test]
    fn every_name_is_an_operator() {
        for name in CORE.lines() {
            assert!(lookup(name).is_some(), "{name}");
        }
        for name in FORMS.iter().flat_map(|(names, _)| names.iter()) {
            let op = lookup(name).unwrap_or_else(|| panic!("{name}"));
            assert!(!is_core(op) && !op.is_mutable(), "{name}");
        }
    }
}

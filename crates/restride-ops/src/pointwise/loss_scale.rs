//! Operators of gradient scaling (`torch.amp.GradScaler`), composed.

use super::optimizer::item;
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Args, DType, Emit, OpDef, Val};
use smallvec::smallvec;

fn check_single(e: &dyn Emit, v: Val, what: &str, dtype: DType) -> Result<()> {
    let m = e.meta(v);
    ensure!(m.layout.numel() == 1, "{what} must be a 1-element tensor.");
    ensure!(m.dtype == dtype, "{what} must be a tensor of {}, not {}", name(dtype), name(m.dtype));
    Ok(())
}

/// `(self, found_inf, inv_scale)`: the product, and 1 for `found_inf` if an element is not finite.
fn unscale(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, found, inverse) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    check_single(e, inverse, "inv_scale", DType::F32)?;
    check_single(e, found, "found_inf", DType::F32)?;
    let own = e.meta(x).dtype;
    ensure!(own.is_float(), "\"_amp_foreach_non_finite_check_and_unscale_cpu\" not implemented for '{}'", name(own));
    let wide = if is_16_bit(own) { DType::F32 } else { own };
    let finite = emit!(e, "aten.isfinite.default", x)?;
    let finite = emit!(e, "aten.all.default", finite)?;
    let bad = emit!(e, "aten.logical_not.default", finite)?;
    let found = emit!(e, "aten.masked_fill.Scalar", found, bad, 1.0)?;
    let inverse = item(e, inverse, wide)?;
    let x = to(e, x, wide)?;
    let x = emit!(e, "aten.mul.Tensor", x, inverse)?;
    Ok(smallvec![to(e, x, own)?, found])
}

/// The functional form on a list; `found_inf` goes from member to member.
fn unscale_each(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let list = a.tensors(0)?;
    let mut found = *a.tensor(1)?;
    if list.is_empty() {
        return Ok(smallvec![emit!(e, "aten.clone.default", found)?]);
    }
    let mut out = smallvec![];
    for &&x in &list {
        let made = unscale(e, &Args(&[x.operand(), found.operand(), pass(a, 2)]))?;
        out.push(made[0]);
        found = made[1];
    }
    out.push(found);
    Ok(out)
}

/// `(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval)`
fn update_scale(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (scale, tracker, found) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    check_single(e, tracker, "growth_tracker", DType::I32)?;
    check_single(e, scale, "current_scale", DType::F32)?;
    check_single(e, found, "found_inf", DType::F32)?;
    let found = item(e, found, DType::F32)?;
    let found = emit!(e, "aten.ne.Scalar", found, 0)?;
    // Products are of doubles.
    let wide = to(e, scale, DType::F64)?;
    let grown = emit!(e, "aten.mul.Scalar", wide, a.float(3)?)?;
    let grown = to(e, grown, DType::F32)?;
    let fallen = emit!(e, "aten.mul.Scalar", wide, a.float(4)?)?;
    let fallen = to(e, fallen, DType::F32)?;
    let tracker = emit!(e, "aten.add.Scalar", tracker, 1)?;
    let grows = item(e, tracker, DType::I32)?;
    let grows = emit!(e, "aten.eq.Scalar", grows, a.int(5)?)?;
    let finite = emit!(e, "aten.isfinite.default", grown)?;
    let fits = emit!(e, "aten.logical_and.default", finite, grows)?;
    let scale = emit!(e, "aten.where.self", fits, grown, scale)?;
    let scale = emit!(e, "aten.where.self", found, fallen, scale)?;
    let restarts = emit!(e, "aten.logical_or.default", grows, found)?;
    Ok(smallvec![scale, emit!(e, "aten.masked_fill.Scalar", tracker, restarts, 0)?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(update_scale, samples::scales(), "_amp_update_scale"),
    composite!(unscale_each, samples::lists(), "_amp_foreach_non_finite_check_and_unscale"),
    OpDef {
        doc: "_amp_foreach_non_finite_check_and_unscale on one tensor",
        ..composite!(
            unscale,
            "restride::amp_non_finite_check_and_unscale(Tensor self, Tensor found_inf, Tensor inv_scale) -> (Tensor, Tensor)"
        )
    },
    OpDef::new(
        "restride::amp_non_finite_check_and_unscale_(Tensor(a!) self, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
    ),
];

#[cfg(feature = "samples")]
mod samples {
    use crate::support::samples::*;

    pub(crate) fn scales() -> Samples {
        let mut out = Samples::new();
        for (scale, count, found) in [(8.0f32, 1i32, 0.0f32), (8.0, 2, 0.0), (8.0, 2, 1.0), (3e38, 2, 0.0)] {
            for sizes in [&[][..], &[1]] {
                let [scale, found] = [scale, found].map(|x| RawTensor::from_slice(&[x], sizes));
                out.push(sample![scale, RawTensor::from_slice(&[count], &[1]), found, 1.5, 0.3, 3]);
            }
        }
        out
    }

    pub(crate) fn lists() -> Samples {
        let mut out = Samples::new();
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
            for bad in [1.0f32, f32::INFINITY, f32::NAN] {
                let last = RawTensor::zeros(dtype, Layout::contiguous(&[3]));
                let cells = RawTensor::from_slice(&[1.0, bad, 2.0], &[3]);
                restride_kernels::support::convert::copy_convert(cells.read().view(), &last.write().view_mut());
                let [found, inverse] = [0.0f32, 0.25].map(|x| RawTensor::from_slice(&[x], &[1]));
                out.push(sample![vec![last, tensor(dtype, &[2, 3], 1), transposed(dtype, &[3, 2], 2)], found, inverse]);
            }
        }
        out
    }
}

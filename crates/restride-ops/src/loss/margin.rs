//! Margin losses over classes.

use crate::loss::reduced;
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Val};
use smallvec::smallvec;

/// Rows and classes of an input with at most two dimensions.
fn rows(s: &[i64], what: &str) -> Result<(i64, i64)> {
    match *s {
        [] => Ok((1, 1)),
        [c] => Ok((1, c)),
        [n, c] => Ok((n, c)),
        _ => fail(format!("{what}: expected non-empty vector or matrix, got {s:?}")),
    }
}

fn floats(e: &dyn Emit, x: Val, what: &str) -> Result<DType> {
    let d = e.meta(x).dtype;
    ensure!(d.is_float(), "\"{what}\" not implemented for '{}'", name(d));
    Ok(d)
}

/// `multi_margin_loss(self, target, p, margin, weight, reduction)`: sums by how much other classes violate the margin.
fn multi(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let what = "multi_margin_loss";
    let (x, t) = (*a.tensor(0)?, *a.tensor(1)?);
    floats(e, x, what)?;
    let (n, c) = rows(&sizes(e, x), what)?;
    let target = e.meta(t);
    ensure!(c > 0, "{what}: expected non-empty vector or matrix");
    ensure!(
        target.rank() <= 1 && target.layout.numel() == n,
        "inconsistent target size, expected {n} but got {:?}",
        target.sizes()
    );
    ensure!(target.dtype == DType::I64, "expected scalar type Long but found {}", name(target.dtype));
    let (p, margin) = (a.float(2)?, a.float(3)?);
    ensure!(p == 1.0 || p == 2.0, "only p == 1 and p == 2 supported");
    let x = emit!(e, "aten.reshape.default", x, [n, c])?;
    let at = emit!(e, "aten.reshape.default", t, [n, 1])?;
    let own = emit!(e, "aten.gather.default", x, 1, at)?;
    let apart = emit!(e, "aten.sub.Tensor", x, own)?;
    let apart = emit!(e, "aten.add.Scalar", apart, margin)?;
    let mut v = emit!(e, "aten.relu.default", apart)?;
    if p == 2.0 {
        v = emit!(e, "aten.mul.Tensor", v, v)?;
    }
    if let Some(&w) = a.opt_tensor(4)? {
        ensure!(sizes(e, w) == [c], "inconsistent weight size, expected {c} but got {:?}", sizes(e, w));
        let flat = emit!(e, "aten.reshape.default", t, [n])?;
        let w = emit!(e, "aten.index_select.default", w, 0, flat)?;
        let w = emit!(e, "aten.unsqueeze.default", w, 1)?;
        v = emit!(e, "aten.mul.Tensor", v, w)?;
    }
    let v = emit!(e, "aten.scatter.value", v, 1, at, 0)?;
    let v = emit!(e, "aten.sum.dim_IntList", v, [1], false)?;
    let v = emit!(e, "aten.div.Scalar", v, c)?;
    let reduction = a.int(5)?;
    let v = if target.rank() == 0 { emit!(e, "aten.view.default", v, &[][..] as &[i64])? } else { v };
    Ok(smallvec![reduced(e, v, reduction)?])
}

/// `multilabel_margin_loss_forward(self, target, reduction)`: -1 ends a row's targets. Also returns the mask of targets.
fn multilabel_forward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let what = "multilabel_margin_loss";
    let (x, t) = (*a.tensor(0)?, *a.tensor(1)?);
    let dtype = floats(e, x, what)?;
    let own = sizes(e, x);
    let (n, c) = rows(&own, what)?;
    let (shape, index) = (sizes(e, t), e.meta(t).dtype);
    ensure!(c > 0 && rows(&shape, what)? == (n, c), "inconsistent target size: {shape:?} for input of size: {own:?}");
    ensure!(index == DType::I64, "expected scalar type Long but found {}", name(index));
    let (x, at) = (emit!(e, "aten.reshape.default", x, [n, c])?, emit!(e, "aten.reshape.default", t, [n, c])?);
    let (above, below) = (emit!(e, "aten.ge.Scalar", at, -1)?, emit!(e, "aten.lt.Scalar", at, c)?);
    let within = emit!(e, "aten.logical_and.default", above, below)?;
    require(e, within, "argument #2 'target' is out of range")?;
    let there = emit!(e, "aten.ge.Scalar", at, 0)?;
    let there = emit!(e, "aten.to.dtype", there, DType::I64)?;
    let there = emit!(e, "aten.cumprod.default", there, 1)?;
    // Targets after the end do not count, whatever their index.
    let at = emit!(e, "aten.mul.Tensor", at, there)?;
    let zeros = emit!(e, "aten.full.default", [n, c], 0, DType::I64)?;
    let named = emit!(e, "aten.scatter_add.default", zeros, 1, at, there)?;
    let named = emit!(e, "aten.ne.Scalar", named, 0)?;
    let picked = emit!(e, "aten.gather.default", x, 1, at)?;
    let (picked, all) = (emit!(e, "aten.unsqueeze.default", picked, 2)?, emit!(e, "aten.unsqueeze.default", x, 1)?);
    let apart = emit!(e, "aten.sub.Tensor", all, picked)?;
    let apart = emit!(e, "aten.add.Scalar", apart, 1)?;
    let v = emit!(e, "aten.relu.default", apart)?;
    let counted = emit!(e, "aten.ne.Scalar", there, 0)?;
    let counted = emit!(e, "aten.unsqueeze.default", counted, 2)?;
    let others = emit!(e, "aten.logical_not.default", named)?;
    let others = emit!(e, "aten.unsqueeze.default", others, 1)?;
    let mask = emit!(e, "aten.logical_and.default", counted, others)?;
    let v = emit!(e, "aten.where.ScalarOther", mask, v, 0)?;
    let v = emit!(e, "aten.sum.dim_IntList", v, [1, 2], false)?;
    let v = emit!(e, "aten.div.Scalar", v, c)?;
    let v = if shape.len() <= 1 { emit!(e, "aten.view.default", v, &[][..] as &[i64])? } else { v };
    let named = emit!(e, "aten.to.dtype", named, dtype)?;
    let named = emit!(e, "aten.view.default", named, shape)?;
    Ok(smallvec![reduced(e, v, a.int(2)?)?, named])
}
fn multilabel(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![emit!(e, "aten.multilabel_margin_loss_forward.default", pass(a, 0), pass(a, 1), pass(a, 2))?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(multi, multi_samples(), "multi_margin_loss").failing(),
    composite!(multilabel_forward, multilabel_samples(), "multilabel_margin_loss_forward").failing(),
    composite!(multilabel, multilabel_samples(), "multilabel_margin_loss").failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn multi_samples() -> Samples {
        let t = ints(&[0, 2, 1, 2], &[4]);
        let mut out = Samples::new();
        for r in 0..3 {
            for p in [1, 2] {
                out.push(sample![tensor(F, &[4, 3], 1), &t, p, 0.7, (), r]);
                out.push(sample![transposed(F, &[4, 3], 1), &t, p, 1, tensor(F, &[3], 2), r]);
            }
            out.push(sample![tensor(DType::F64, &[3], 1), ints(&[1], &[]), 1, 1, (), r]);
            out.push(sample![tensor(F, &[3], 1), ints(&[1], &[1]), 1, 1, (), r]);
        }
        out.push(sample![tensor(F, &[4, 3], 1), ints(&[0, 2, 1, 3], &[4])]);
        out.push(sample![tensor(F, &[4, 3], 1), &t, 3]);
        out
    }

    pub(crate) fn multilabel_samples() -> Samples {
        let t = ints(&[0, 2, -1, 1, -1, 0, 2, 0, 1, -1, 0, 0], &[4, 3]);
        let mut out = Samples::new();
        for r in 0..3 {
            out.push(sample![tensor(F, &[4, 3], 1), &t, r]);
            out.push(sample![transposed(DType::F64, &[4, 3], 1), &t, r]);
            out.push(sample![tensor(F, &[3], 1), ints(&[2, 1, -1], &[3]), r]);
        }
        for wrong in [[3, 1, -1], [1, -2, 0], [1, -1, 3]] {
            out.push(sample![tensor(F, &[3], 1), ints(&wrong, &[3]), 1]);
        }
        out
    }
}

//! `L D Lᵀ` factorisations of symmetric and Hermitian matrices, and solves with them.

use crate::linalg::solve::indices;
use crate::linalg::{
    Pieces, by_columns, check, element, element_bytes, fields, kernel, matrix_bytes, parts, picks, piece_bytes, rows,
    with,
};
use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Meta, OpDef};
use restride_kernels::linalg::{self as k, Field, MatrixBatch};
use restride_kernels::support::pack::pack_owned;
use restride_kernels::support::scratch::room;
use smallvec::smallvec;

picks! {
    factor => "aten.linalg_ldl_factor_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand()] [0, 1];
}
fields! {
    factor_run => factor_of;
    solve_run => solve_of;
}

/// `linalg_ldl_factor_ex(self, *, hermitian, check_errors)`
fn factor_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "torch.linalg.ldl_factor_ex", true)?;
    let (batch, n, _) = parts(x);
    Ok(smallvec![by_columns(x.dtype, x.sizes()), rows(DType::I32, batch, &[n]), rows(DType::I32, batch, &[])])
}
fn factor_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let (x, hermitian, checked) = (c.args.tensor(0)?, c.args.bool(1)?, c.args.bool(2)?);
    let ms = MatrixBatch::<T>::of(x);
    let mut ld = Pieces::of(&c.outs[0], ms.count);
    let (mut pivots, mut info) = (Pieces::of(&c.outs[1], ms.count), Pieces::of(&c.outs[2], ms.count));
    for i in 0..ms.count {
        let mut made = k::ldl(ms.get(i), hermitian && T::COMPLEX);
        ensure!(
            !checked || made.info == 0,
            "torch.linalg.ldl_factor_ex: {}The diagonal element {} is zero, the factorization could not be completed because the input matrix is singular.",
            element(i, x.sizes()),
            made.info
        );
        // The factors do not include elements above the diagonal.
        (0..ms.rows).for_each(|r| (r + 1..ms.rows).for_each(|c| made.ld[(r, c)] = T::ZERO));
        ld.put(i, &made.ld.data);
        pivots.put(i, &made.pivots);
        info.put(i, &[made.info]);
    }
    ld.finish();
    pivots.finish();
    info.finish();
    Ok(())
}
fn factor_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (all, n, _, one) = matrix_bytes(a.tensor(0)?);
    Ok(all + piece_bytes(outs) + one + room::<i64>(n))
}

/// `linalg_ldl_solve(LD, pivots, B, *, hermitian)`
fn solve_infer(a: &Args<'_, Meta>) -> Metas {
    let (ld, pivots, b) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    check(ld, "torch.linalg.ldl_solve", true)?;
    ensure!(
        b.rank() >= 2,
        "torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {} dimensions instead",
        b.rank()
    );
    ensure!(b.dtype == ld.dtype, "torch.linalg.ldl_solve: Expected LD and B to have the same dtype");
    let (batch, n, _) = parts(ld);
    let (own, m, k) = parts(b);
    ensure!(
        m == n,
        "torch.linalg.ldl_solve: Incompatible shapes of LD and B for the equation AX = B ({n}x{n} and {m}x{k})"
    );
    ensure!(
        !pivots.dtype.is_float() && !pivots.dtype.is_complex() && pivots.dtype != DType::Bool,
        "torch.linalg.ldl_solve: Expected pivots to be integers. Got {}",
        pivots.dtype.torch_name()
    );
    ensure!(
        pivots.sizes() == with(batch, &[n]),
        "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {:?} instead",
        pivots.sizes()
    );
    let batch = crate::support::strides::broadcast_sizes(&[batch, own])?;
    one(by_columns(b.dtype, &with(&batch, &[n, k])))
}
fn solve_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let (ld, pivots, b, hermitian) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.tensor(2)?, c.args.bool(3)?);
    let (sl, sb) = (&ld.sizes()[..ld.sizes().len() - 2], &b.sizes()[..b.sizes().len() - 2]);
    let batch = crate::support::strides::broadcast_sizes(&[sl, sb])?;
    let (lds, bs, pivots) = (MatrixBatch::<T>::of(ld), MatrixBatch::<T>::of(b), pack_owned::<i64>(pivots));
    let (from_l, from_b) = (indices(sl, &batch), indices(sb, &batch));
    let n = lds.rows;
    if let Some(bad) = pivots.iter().find(|p| p.unsigned_abs() < 1 || p.unsigned_abs() > n as u64) {
        return fail(format!("torch.linalg.ldl_solve: there is no row {bad} of {n}, as pivots count from 1"));
    }
    let mut out = Pieces::of(&c.outs[0], from_l.len());
    for (at, (&i, &j)) in from_l.iter().zip(&from_b).enumerate() {
        let (m, mut rhs) = (lds.get(i as usize), bs.get(j as usize));
        k::ldl_solve(&m, &pivots[i as usize * n..][..n], &mut rhs, hermitian && T::COMPLEX);
        out.put(at, &rhs.data);
    }
    out.finish();
    Ok(())
}
fn solve_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let ((l, _, _, square), (b, _, _, side)) = (matrix_bytes(a.tensor(0)?), matrix_bytes(a.tensor(2)?));
    let batch = parts(&outs[0]).0.iter().product::<i64>() as usize;
    Ok(l + b + element_bytes(a.tensor(1)?) + 2 * room::<isize>(batch) + piece_bytes(outs) + square + side)
}

pub(crate) static OPS: &[OpDef] = table![
    kernel!(factor_infer, factor_run, factor_scratch, factor_samples(), "linalg_ldl_factor_ex").failing(),
    composite!(factor, factor_samples(), "linalg_ldl_factor").failing(),
    kernel!(solve_infer, solve_run, solve_scratch, solve_samples(), "linalg_ldl_solve").failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::linalg::samples::*;

    pub(crate) fn factor_samples() -> Vec<Sample> {
        let mut out = square_samples();
        let d = DType::F64;
        // Small diagonal elements force 2 × 2 pivots.
        let mixed = [0.0, 1.0, 4.0, 2.0, 1.0, 0.0, 0.5, 3.0, 4.0, 0.5, 0.0, 1.0, 2.0, 3.0, 1.0, 0.1];
        out.push(sample![RawTensor::from_slice(&mixed, &[4, 4])]);
        out.push(sample![turned(&tensor(d, &[2, 6, 6], 3))]);
        out.push(sample![tensor(DType::C128, &[5, 5], 3)]);
        out.extend(with_args(
            vec![sample![tensor(DType::C128, &[5, 5], 4)], sample![symmetric(d, &[], 4, 1, true)]],
            vec![crate::support::samples::IntoArg::arg(true)],
        ));
        out
    }

    /// Sample factors of well-conditioned matrices.
    pub(crate) fn factored(d: DType, batch: &[i64], n: i64, hermitian: bool) -> (RawTensor, RawTensor) {
        restride_kernels::with_field!(d, T => {
            let x = regular(d, batch, n, 1);
            let all = MatrixBatch::<T>::of(&x.read().view());
            let (mut data, mut pivots) = (Vec::new(), Vec::new());
            for i in 0..all.count {
                let made = k::ldl(all.get(i), hermitian && T::COMPLEX);
                data.extend_from_slice(&made.ld.data);
                pivots.extend(made.pivots.iter().map(|&p| p as i32));
            }
            let ld = RawTensor::zeros(d, restride_ir::Layout::contiguous(&with(batch, &[n, n])));
            restride_kernels::support::convert::scatter(&data, &ld.write().view_mut());
            (ld, RawTensor::from_slice(&pivots, &with(batch, &[n])))
        })
    }

    pub(crate) fn solve_samples() -> Vec<Sample> {
        let mut out = Vec::new();
        for (d, batch, hermitian) in [
            (DType::F32, &[][..], false),
            (DType::F64, &[2], false),
            (DType::C64, &[2], true),
            (DType::C128, &[], false),
        ] {
            let (ld, pivots) = factored(d, batch, 4, hermitian);
            out.push(sample![&ld, &pivots, tensor(d, &with(batch, &[4, 3]), 2), hermitian]);
            out.push(sample![ld, pivots, tensor(d, &[2, 4, 1], 3), hermitian]);
        }
        let (ld, pivots) = factored(DType::F32, &[2], 0, false);
        out.push(sample![ld, pivots, tensor(DType::F32, &[2, 0, 3], 2)]);
        out
    }
}

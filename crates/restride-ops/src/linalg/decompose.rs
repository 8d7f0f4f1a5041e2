//! Cholesky and QR decompositions and Householder products. LU is in `lu.rs`, eigenvectors and singular vectors are in
//! `spectral.rs`.

use crate::linalg::spectral::mh;
use crate::linalg::{
    Pieces, by_columns, check, element, element_bytes, fields, kernel, matrix_bytes, parts, picks, piece_bytes, rows,
    with,
};
use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Meta, OpDef};
use restride_kernels::linalg::{self as k, Field, Matrix, MatrixBatch};
use restride_kernels::support::scratch::room;
use restride_kernels::with_field;
use smallvec::smallvec;

picks! {
    cholesky => "aten.linalg_cholesky_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand()] [0];
}

fields! {
    cholesky_run => cholesky_of;
    cholesky_inverse_run => cholesky_inverse_of;
    qr_run => qr_of;
    geqrf_run => geqrf_of;
    product_run => product_of;
    ormqr_run => ormqr_of;
}

fn cholesky_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.cholesky", true)?;
    Ok(smallvec![by_columns(x.dtype, x.sizes()), rows(DType::I32, parts(x).0, &[])])
}
fn cholesky_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let (x, upper, checked) = (c.args.tensor(0)?, c.args.bool(1)?, c.args.bool(2)?);
    let ms = MatrixBatch::<T>::of(x);
    let (mut out, mut info) = (Pieces::of(&c.outs[0], ms.count), Pieces::of(&c.outs[1], ms.count));
    for i in 0..ms.count {
        let m = ms.get(i);
        let turned = upper.then(|| m.adjoint());
        let (l, bad) = k::cholesky(turned.as_ref().unwrap_or(&m));
        ensure!(
            !checked || bad == 0,
            "linalg.cholesky: {}The factorization could not be completed because the input is not positive-definite (the leading minor of order {bad} is not positive-definite).",
            element(i, x.sizes())
        );
        info.put(i, &[bad]);
        if upper {
            out.put(i, &l.adjoint().data);
        } else {
            out.put(i, &l.data);
        }
    }
    out.finish();
    info.finish();
    Ok(())
}
fn cholesky_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (all, _, _, one) = matrix_bytes(a.tensor(0)?);
    Ok(all + piece_bytes(outs) + if a.bool(1)? { 4 } else { 2 } * one)
}

/// `cholesky_inverse(self, upper)`: the inverse of a matrix from its Cholesky factor.
fn cholesky_inverse_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "cholesky_inverse", true)?;
    one(by_columns(x.dtype, x.sizes()))
}
fn cholesky_inverse_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let upper = c.args.bool(1)?;
    let ms = MatrixBatch::<T>::of(c.args.tensor(0)?);
    let n = ms.rows;
    let mut out = Pieces::of(&c.outs[0], ms.count);
    for i in 0..ms.count {
        let m = ms.get(i);
        if let Some(at) = (0..n).find(|k| m[(*k, *k)].size() == 0.0) {
            return fail(format!(
                "cholesky_inverse: {}The diagonal element {} is zero, the inversion could not be completed because the \
                 input matrix is singular.",
                element(i, c.args.tensor(0)?.sizes()),
                at + 1
            ));
        }
        let turned = upper.then(|| m.adjoint());
        let mut w = Matrix::eye(n, n);
        k::triangular(turned.as_ref().unwrap_or(&m), &mut w, false, false);
        let mut inverse = Matrix::zeros(n, n);
        inverse.product(&w.adjoint(), &w);
        out.put(i, &inverse.data);
    }
    out.finish();
    Ok(())
}
fn cholesky_inverse_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (all, _, _, one) = matrix_bytes(a.tensor(0)?);
    Ok(all + piece_bytes(outs) + 6 * one)
}

/// `cholesky_solve(self, input2, upper)`: solves with the factor and then its adjoint.
fn cholesky_solve(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (b, l, upper) = (*a.tensor(0)?, *a.tensor(1)?, a.bool(2)?);
    let (sb, sl) = (sizes(e, b), sizes(e, l));
    ensure!(sb.len() >= 2, "b should have at least 2 dimensions, but has {} dimensions instead", sb.len());
    ensure!(sl.len() >= 2, "u should have at least 2 dimensions, but has {} dimensions instead", sl.len());
    let n = sl[sl.len() - 1];
    ensure!(
        sl[sl.len() - 2] == n,
        "A must be batches of square matrices, but they are {} by {n} matrices",
        sl[sl.len() - 2]
    );
    ensure!(
        sb[sb.len() - 2] == n,
        "Incompatible matrix sizes for cholesky_solve: each A matrix is {n} by {n} but each b matrix is {} by {}",
        sb[sb.len() - 2],
        sb[sb.len() - 1]
    );
    let other = mh(e, l)?;
    let (first, second) = if upper { (other, l) } else { (l, other) };
    let y = emit!(e, "aten.linalg_solve_triangular.default", first, b, false, true, false)?;
    Ok(smallvec![emit!(e, "aten.linalg_solve_triangular.default", second, y, true, true, false)?])
}

/// Whether the mode requests Q, and whether Q is complete (square).
fn qr_mode<V>(a: &Args<'_, V>) -> Result<(bool, bool)> {
    match a.str(1)? {
        "reduced" => Ok((true, false)),
        "complete" => Ok((true, true)),
        "r" => Ok((false, false)),
        other => fail(format!(
            "qr received unrecognized mode '{other}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )),
    }
}
fn qr_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.qr", false)?;
    let (wanted, complete) = qr_mode(a)?;
    let (batch, m, n) = parts(x);
    let wide = if complete { m } else { m.min(n) };
    let q = if wanted { by_columns(x.dtype, &with(batch, &[m, wide])) } else { fresh(x.dtype, &[0]) };
    Ok(smallvec![q, by_columns(x.dtype, &with(batch, &[wide, n]))])
}
fn qr_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let (wanted, complete) = qr_mode(&c.args)?;
    let ms = MatrixBatch::<T>::of(c.args.tensor(0)?);
    let mut qs = wanted.then(|| Pieces::of(&c.outs[0], ms.count));
    let mut rs = Pieces::of(&c.outs[1], ms.count);
    for i in 0..ms.count {
        let m = ms.get(i);
        let (q, r) = k::qr(&m, complete);
        if let Some(qs) = &mut qs {
            qs.put(i, &q.data);
        }
        rs.put(i, &r.data);
    }
    qs.into_iter().for_each(Pieces::finish);
    rs.finish();
    Ok(())
}
fn qr_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let x = a.tensor(0)?;
    let (all, m, n, one) = matrix_bytes(x);
    let complete = qr_mode(a)?.1;
    Ok(all + piece_bytes(outs) + one + with_field!(x.dtype, T => k::qr_room::<T>(m, n, complete)))
}

/// `geqrf(self)`: Householder vectors in LAPACK's storage, and their factors.
fn geqrf_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "torch.geqrf", false)?;
    let (batch, m, n) = parts(x);
    Ok(smallvec![by_columns(x.dtype, x.sizes()), rows(x.dtype, batch, &[m.min(n)])])
}
fn geqrf_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let ms = MatrixBatch::<T>::of(c.args.tensor(0)?);
    let (mut all, mut factors) = (Pieces::of(&c.outs[0], ms.count), Pieces::of(&c.outs[1], ms.count));
    for i in 0..ms.count {
        let made = k::reflections(ms.get(i));
        all.put(i, &made.vectors.data);
        factors.put(i, &made.factors);
    }
    all.finish();
    factors.finish();
    Ok(())
}
fn geqrf_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let x = a.tensor(0)?;
    let (all, m, n, one) = matrix_bytes(x);
    Ok(all + piece_bytes(outs) + one + with_field!(x.dtype, T => room::<T>(m.min(n))))
}

/// Checks Householder vectors and factors as `householder_product` and `ormqr` do.
fn check_reflections(x: &Meta, tau: &Meta, what: &str) -> Result<()> {
    check(x, what, false)?;
    ensure!(
        tau.dtype == x.dtype,
        "{what}: tau dtype {} does not match input dtype {}",
        tau.dtype.torch_name(),
        x.dtype.torch_name()
    );
    ensure!(
        tau.rank() + 1 == x.rank() && tau.sizes()[..tau.rank() - 1] == x.sizes()[..x.rank() - 2],
        "{what}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {:?} and {:?}",
        tau.sizes(),
        x.sizes()
    );
    Ok(())
}

/// `linalg_householder_product(input, tau)`
fn product_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, tau) = (a.tensor(0)?, a.tensor(1)?);
    const WHAT: &str = "torch.linalg.householder_product";
    check(x, WHAT, false)?;
    let (_, m, n) = parts(x);
    ensure!(m >= n, "{WHAT}: input.shape[-2] must be greater than or equal to input.shape[-1]");
    check_reflections(x, tau, WHAT)?;
    ensure!(tau.sizes()[tau.rank() - 1] <= n, "{WHAT}: input.shape[-1] must be greater than or equal to tau.shape[-1]");
    one(by_columns(x.dtype, x.sizes()))
}
fn product_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let (ms, taus) = (MatrixBatch::<T>::of(c.args.tensor(0)?), MatrixBatch::<T>::columns(c.args.tensor(1)?));
    let mut out = Pieces::of(&c.outs[0], ms.count);
    for i in 0..ms.count {
        out.put(i, &k::q_of(&ms.get(i), &taus.get(i).data, ms.cols).data);
    }
    out.finish();
    Ok(())
}
fn product_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (x, tau) = (a.tensor(0)?, a.tensor(1)?);
    let (all, _, n, one) = matrix_bytes(x);
    let each = with_field!(x.dtype, T => room::<T>(n));
    Ok(all + element_bytes(tau) + piece_bytes(outs) + 2 * one + each)
}

fn orgqr(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![emit!(e, "aten.linalg_householder_product.default", pass(a, 0), pass(a, 1))?])
}

/// `ormqr(self, input2, input3, left, transpose)`: multiplies a matrix by the Householder product.
fn ormqr_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, tau, c, left) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.bool(3)?);
    check(x, "torch.ormqr", false)?;
    check(c, "torch.ormqr", false)?;
    let (side, which) = if left { (c.sizes()[c.rank() - 2], -2) } else { (c.sizes()[c.rank() - 1], -1) };
    let (batch, m, n) = parts(x);
    ensure!(tau.rank() >= 1, "torch.ormqr: tau must have at least 1 dimension");
    let factors = tau.sizes()[tau.rank() - 1];
    ensure!(side >= factors, "torch.ormqr: other.shape[{which}] must be greater than or equal to tau.shape[-1]");
    ensure!(side == m, "torch.ormqr: other.shape[{which}] must be equal to input.shape[-2]");
    ensure!(factors <= n, "torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]");
    check_reflections(x, tau, "torch.ormqr")?;
    ensure!(c.dtype == x.dtype, "torch.ormqr: Expected input and other to have the same dtype");
    ensure!(
        parts(c).0 == batch,
        "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got {:?}",
        parts(c).0
    );
    one(by_columns(c.dtype, c.sizes()))
}
fn ormqr_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let (left, adjoint) = (c.args.bool(3)?, c.args.bool(4)?);
    let (ms, taus) = (MatrixBatch::<T>::of(c.args.tensor(0)?), MatrixBatch::<T>::columns(c.args.tensor(1)?));
    let others = MatrixBatch::<T>::of(c.args.tensor(2)?);
    let mut out = Pieces::of(&c.outs[0], ms.count);
    for i in 0..ms.count {
        let mut own = others.get(i);
        k::apply_q(&ms.get(i), &taus.get(i).data, &mut own, left, adjoint);
        out.put(i, &own.data);
    }
    out.finish();
    Ok(())
}
fn ormqr_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (x, tau, c) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let ((all, _, n, one), (others, _, _, other)) = (matrix_bytes(x), matrix_bytes(c));
    let each = with_field!(x.dtype, T => room::<T>(n));
    Ok(all + others + element_bytes(tau) + piece_bytes(outs) + one + other + each)
}

pub(crate) static OPS: &[OpDef] = table![
    kernel!(cholesky_infer, cholesky_run, cholesky_scratch, definite_samples(), "linalg_cholesky_ex").failing(),
    composite!(cholesky, definite_samples(), "linalg_cholesky").failing(),
    kernel!(cholesky_inverse_infer, cholesky_inverse_run, cholesky_inverse_scratch, factor_forms(), "cholesky_inverse")
        .failing(),
    composite!(cholesky_solve, cholesky_solve_samples(), "cholesky_solve"),
    kernel!(qr_infer, qr_run, qr_scratch, qr_samples(), "linalg_qr"),
    kernel!(geqrf_infer, geqrf_run, geqrf_scratch, factor_samples(), "geqrf"),
    kernel!(product_infer, product_run, product_scratch, product_samples(), "linalg_householder_product"),
    composite!(orgqr, product_samples(), "orgqr"),
    kernel!(ormqr_infer, ormqr_run, ormqr_scratch, ormqr_samples(), "ormqr"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::linalg::samples::*;

    /// Sample Cholesky factors in either triangle.
    pub(crate) fn factor_forms() -> Vec<Sample> {
        let d = DType::F32;
        vec![
            sample![symmetric(d, &[2], 4, 1, true)],
            sample![turned(&regular(DType::F64, &[], 3, 2)), true],
            sample![symmetric(DType::C64, &[2], 3, 2, true), true],
            sample![symmetric(DType::C128, &[], 4, 2, true)],
            sample![regular(d, &[2], 0, 2)],
            sample![tensor(d, &[3, 4], 2)],
        ]
    }

    pub(crate) fn cholesky_solve_samples() -> Vec<Sample> {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[4, 2], 1), regular(d, &[], 4, 1)],
            sample![tensor(d, &[2, 4, 3], 1), regular(d, &[], 4, 1), true],
            sample![tensor(DType::F64, &[4, 3], 1), turned(&regular(DType::F64, &[2], 4, 1))],
            sample![tensor(DType::C64, &[3, 2], 1), regular(DType::C64, &[], 3, 1), true],
            sample![tensor(DType::C128, &[2, 3, 2], 1), regular(DType::C128, &[2], 3, 1)],
            sample![tensor(d, &[2, 0, 3], 1), regular(d, &[2], 0, 1)],
            sample![tensor(d, &[3, 2], 1), regular(d, &[], 4, 1)],
        ]
    }

    pub(crate) fn product_samples() -> Vec<Sample> {
        let d = DType::F32;
        let mut out = Vec::new();
        for (dtype, sizes) in [
            (d, &[4, 3][..]),
            (DType::F64, &[2, 4, 4]),
            (DType::C64, &[2, 5, 3]),
            (DType::C128, &[3, 3]),
            (d, &[3, 0]),
            (d, &[0, 4, 3]),
        ] {
            let (x, tau) = reflected(dtype, sizes, 1);
            out.push(sample![x, tau]);
        }
        let (x, tau) = reflected(d, &[5, 3], 2);
        let shorter =
            tau.alias(d, tau.layout().slice(0, Some(&0), Some(&2), &1).expect("two of three")).expect("the same cells");
        out.push(sample![x, shorter]);
        out.push(sample![tensor(d, &[3, 4], 1), tensor(d, &[3], 1)]);
        out
    }

    pub(crate) fn ormqr_samples() -> Vec<Sample> {
        let mut out = Vec::new();
        for (i, (dtype, sizes)) in
            [(DType::F32, &[4, 3][..]), (DType::F64, &[2, 4, 4]), (DType::C64, &[2, 5, 3]), (DType::C128, &[3, 3])]
                .into_iter()
                .enumerate()
        {
            let (batch, last) = sizes.split_at(sizes.len() - 2);
            for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
                let (x, tau) = reflected(dtype, sizes, 1 + i as u64);
                let other = if left { [last[0], 2] } else { [2, last[0]] };
                out.push(sample![x, tau, tensor(dtype, &with(batch, &other), 3), left, adjoint]);
            }
        }
        let (x, tau) = reflected(DType::F32, &[4, 3], 1);
        out.push(sample![x, tau, tensor(DType::F32, &[3, 2], 3)]);
        out
    }
}

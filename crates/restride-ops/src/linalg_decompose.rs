//! Matrices as products of simpler ones: Cholesky, QR, eigenvectors, singular vectors. LU is in `linalg_lu.rs`.

use crate::composite::composite;
use crate::linalg::{Pieces, by_columns, check, element, kernel, matrices_room, parts, picks, pieces_room, rows, with};
use crate::linalg_samples::{definite_samples, eigh_samples, qr_samples, svd_shapes};
use crate::nn::*;
use restride_ir::{Args, Call, DType, Emit, Exactness, Kernel, Meta, OpDef};
use restride_kernels::linalg::{self as k, Matrices};
use smallvec::smallvec;

picks! {
    cholesky => "aten.linalg_cholesky_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand()] [0];
    eigh => "aten._linalg_eigh.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand()] [0, 1];
    eigvalsh => "aten._linalg_eigh.default" [|a| pass(a, 0), |a| pass(a, 1), |_| false.operand()] [0];
    svd => "aten._linalg_svd.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand(), |a| pass(a, 2)] [0, 1, 2];
    svdvals => "aten._linalg_svd.default" [|a| pass(a, 0), |_| false.operand(), |_| false.operand(), |a| pass(a, 1)] [1];
}

fn cholesky_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.cholesky", true)?;
    Ok(smallvec![by_columns(x.dtype, x.sizes()), rows(DType::I32, parts(x).0, &[])])
}
fn cholesky_run(c: &Call<'_>) -> Result<()> {
    let (x, upper, checked) = (c.args.tensor(0)?, c.args.bool(1)?, c.args.bool(2)?);
    let ms = Matrices::of(x);
    let (mut out, mut info) = (Pieces::of(&c.outs[0], ms.count), Pieces::of(&c.outs[1], ms.count));
    for i in 0..ms.count {
        let m = ms.get(i);
        let turned = upper.then(|| m.transposed());
        let (l, bad) = k::cholesky(turned.as_ref().unwrap_or(&m));
        if checked && bad != 0 {
            return fail(format!(
                "linalg.cholesky: {}The factorization could not be completed because the input is not positive-definite (the leading minor of order {bad} is not positive-definite).",
                element(i, x.sizes())
            ));
        }
        info.put(i, &[bad]);
        if upper {
            out.put(i, &l.transposed().data);
        } else {
            out.put(i, &l.data);
        }
    }
    out.finish();
    info.finish();
    Ok(())
}
fn cholesky_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (all, n, _) = matrices_room(a.tensor(0)?);
    Ok(all + pieces_room(outs) + if a.bool(1)? { 4 } else { 2 } * k::matrix_room(n, n))
}

/// Whether Q is wanted, and whether it is square.
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
fn qr_run(c: &Call<'_>) -> Result<()> {
    let (wanted, complete) = qr_mode(&c.args)?;
    let ms = Matrices::of(c.args.tensor(0)?);
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
    let (all, m, n) = matrices_room(a.tensor(0)?);
    Ok(all + pieces_room(outs) + k::matrix_room(m, n) + k::qr_room(m, n, qr_mode(a)?.1))
}

fn upper<V>(a: &Args<'_, V>) -> Result<bool> {
    match a.str(1)? {
        "L" | "l" => Ok(false),
        "U" | "u" => Ok(true),
        other => fail(format!("Expected UPLO argument to be 'L' or 'U', but got {other}")),
    }
}
fn eigh_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.eigh", true)?;
    upper(a)?;
    let (batch, n, _) = parts(x);
    let vectors = if a.bool(2)? { by_columns(x.dtype, x.sizes()) } else { fresh(x.dtype, &[0]) };
    Ok(smallvec![rows(x.dtype, batch, &[n]), vectors])
}
fn eigh_run(c: &Call<'_>) -> Result<()> {
    let upper = upper(&c.args)?;
    let ms = Matrices::of(c.args.tensor(0)?);
    let mut all = Pieces::of(&c.outs[0], ms.count);
    let mut vectors = if c.args.bool(2)? { Some(Pieces::of(&c.outs[1], ms.count)) } else { None };
    for i in 0..ms.count {
        let m = ms.get(i);
        let (values, own) = k::eigh(&m, upper);
        all.put(i, &values);
        if let Some(vectors) = &mut vectors {
            vectors.put(i, &own.data);
        }
    }
    all.finish();
    vectors.into_iter().for_each(Pieces::finish);
    Ok(())
}
fn eigh_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (all, n, _) = matrices_room(a.tensor(0)?);
    Ok(all + pieces_room(outs) + k::matrix_room(n, n) + k::eigh_room(n))
}

/// `(A, full_matrices, compute_uv, *, driver)`.
fn svd_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.svd", false)?;
    ensure!(
        a.is_none(3),
        "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
    );
    let (full, vectors) = (a.bool(1)?, a.bool(2)?);
    let (batch, m, n) = parts(x);
    let short = m.min(n);
    let none = || fresh(x.dtype, &[0]);
    let (u, v) = if full { (m, n) } else { (short, short) };
    Ok(smallvec![
        if vectors { by_columns(x.dtype, &with(batch, &[m, u])) } else { none() },
        rows(x.dtype, batch, &[short]),
        if vectors { by_columns(x.dtype, &with(batch, &[v, n])) } else { none() },
    ])
}
fn svd_run(c: &Call<'_>) -> Result<()> {
    let (full, vectors) = (c.args.bool(1)?, c.args.bool(2)?);
    let ms = Matrices::of(c.args.tensor(0)?);
    let pieces = |out: usize| Pieces::of(&c.outs[out], ms.count);
    let mut values = pieces(1);
    let mut sides = vectors.then(|| (pieces(0), pieces(2)));
    for i in 0..ms.count {
        let m = ms.get(i);
        let svd = k::svd(&m, full && vectors);
        values.put(i, &svd.values);
        if let Some((us, vs)) = &mut sides {
            us.put(i, &svd.u().data);
            vs.put(i, &svd.v().transposed().data);
        }
    }
    values.finish();
    if let Some((us, vs)) = sides {
        us.finish();
        vs.finish();
    }
    Ok(())
}
fn svd_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (all, m, n) = matrices_room(a.tensor(0)?);
    let full = a.bool(1)? && a.bool(2)?;
    let turned = if full { n } else { m.min(n) };
    Ok(all + pieces_room(outs) + k::matrix_room(m, n) + k::svd_room(m, n, full) + k::matrix_room(turned, n))
}

/// Vectors are determined but for their signs: only sizes compare, the values are a matter of the kernels' tests.
const UP_TO_SIGN: Exactness = Exactness::Random;

pub(crate) static OPS: &[OpDef] = &[
    kernel!(
        cholesky_infer,
        cholesky_run,
        cholesky_scratch,
        definite_samples(),
        "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)"
    ),
    composite!(cholesky, definite_samples(), "aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor"),
    kernel!(
        qr_infer,
        qr_run,
        qr_scratch,
        qr_samples(),
        "aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)"
    ),
    OpDef {
        exactness: UP_TO_SIGN,
        ..kernel!(
            eigh_infer,
            eigh_run,
            eigh_scratch,
            eigh_samples(),
            "aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)"
        )
    },
    OpDef {
        exactness: UP_TO_SIGN,
        ..composite!(
            eigh,
            eigh_samples(),
            "aten::linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)"
        )
    },
    composite!(eigvalsh, eigh_samples(), "aten::linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor"),
    OpDef {
        exactness: UP_TO_SIGN,
        ..kernel!(
            svd_infer,
            svd_run,
            svd_scratch,
            svd_shapes(),
            "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)"
        )
    },
    OpDef {
        exactness: UP_TO_SIGN,
        ..composite!(
            svd,
            svd_shapes(),
            "aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)"
        )
    },
    composite!(svdvals, svd_shapes(), "aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor"),
];

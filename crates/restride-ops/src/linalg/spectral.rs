//! Eigenvalue and singular value decompositions, and operators composed of them: pseudo-inverses, ranks, condition numbers,
//! polar factors and matrix roots.

use crate::linalg::{
    Pieces, by_columns, check, element, fields, kernel, matrix_bytes, parts, picks, piece_bytes, real_of, rows, with,
};
use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Arg, Args, Call, DType, Emit, Exactness, Meta, OpDef, OpError, Val};
use restride_kernels::linalg::{self as k, Field, Matrix, MatrixBatch};
use restride_kernels::support::scratch::room;
use restride_kernels::with_field;
use restride_tensor::C64;
use smallvec::smallvec;

/// The complex conjugate; a real tensor stays as it is.
pub(crate) fn conj(e: &mut dyn Emit, x: Val) -> Result<Val> {
    if e.meta(x).dtype.is_complex() { emit!(e, "aten.conj_physical.default", x) } else { Ok(x) }
}

/// Conjugate transpose of matrices.
pub(crate) fn mh(e: &mut dyn Emit, x: Val) -> Result<Val> {
    let t = emit!(e, "aten.transpose.int", x, -2, -1)?;
    conj(e, t)
}

picks! {
    eigh => "aten._linalg_eigh.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand()] [0, 1];
    eigvalsh => "aten._linalg_eigh.default" [|a| pass(a, 0), |a| pass(a, 1), |_| false.operand()] [0];
    eigvals => "aten.linalg_eig.default" [|a| pass(a, 0)] [0];
    svd => "aten._linalg_svd.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand(), |a| pass(a, 2)] [0, 1, 2];
    svdvals => "aten._linalg_svd.default" [|a| pass(a, 0), |_| false.operand(), |_| false.operand(), |a| pass(a, 1)] [1];
}

fields! {
    eigh_run => eigh_of;
    svd_run => svd_of;
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
    Ok(smallvec![rows(real_of(x.dtype), batch, &[n]), vectors])
}
/// Whether LAPACK gives a matrix up because the steps between tridiagonal matrices meet a NaN: one of the matrix, or one that its
/// reduction makes of an infinity away from the two diagonals.
///
/// The direct formula for two rows and the division into halves, which finds the vectors of more than 25 rows, pass NaNs on.
fn stops<T: Field>(m: &Matrix<T>, upper: bool, vectors: bool) -> bool {
    let n = m.rows;
    let spoilt = |r: usize, c: usize| {
        let size = if upper { m[(c, r)] } else { m[(r, c)] }.size();
        size.is_nan() || size.is_infinite() && r > c + 1
    };
    n > 2 && !(vectors && n > 25) && (0..n).any(|r| (0..=r).any(|c| spoilt(r, c)))
}
fn eigh_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let upper = upper(&c.args)?;
    let ms = MatrixBatch::<T>::of(c.args.tensor(0)?);
    let mut all = Pieces::of(&c.outs[0], ms.count);
    let mut vectors = if c.args.bool(2)? { Some(Pieces::of(&c.outs[1], ms.count)) } else { None };
    for i in 0..ms.count {
        let m = ms.get(i);
        let of = c.args.tensor(0)?.sizes();
        ensure!(
            !stops(&m, upper, vectors.is_some()),
            "linalg.eigh: {}The algorithm failed to converge because the input matrix is ill-conditioned or has too many \
             repeated eigenvalues.",
            element(i, of)
        );
        let (values, own) = k::eigh(&m, upper, vectors.is_some());
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
    let x = a.tensor(0)?;
    let (all, n, _, one) = matrix_bytes(x);
    Ok(all + piece_bytes(outs) + one + with_field!(x.dtype, T => k::eigh_room::<T>(n, a.bool(2)?)))
}

/// `_linalg_svd(A, full_matrices, compute_uv, *, driver)`
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
        rows(real_of(x.dtype), batch, &[short]),
        if vectors { by_columns(x.dtype, &with(batch, &[v, n])) } else { none() },
    ])
}
fn singular_vectors<V>(a: &Args<'_, V>) -> Result<k::SingularVectors> {
    Ok(match (a.bool(1)?, a.bool(2)?) {
        (_, false) => k::SingularVectors::None,
        (false, true) => k::SingularVectors::Some,
        (true, true) => k::SingularVectors::All,
    })
}
fn svd_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let ms = MatrixBatch::<T>::of(c.args.tensor(0)?);
    let mut values = Pieces::of(&c.outs[1], ms.count);
    let mut sides = c.args.bool(2)?.then(|| (Pieces::of(&c.outs[0], ms.count), Pieces::of(&c.outs[2], ms.count)));
    for i in 0..ms.count {
        let m = ms.get(i);
        // LAPACK refuses a matrix with a NaN, and no other.
        ensure!(
            !m.data.iter().any(|x| x.size().is_nan()),
            "linalg.svd: {}The algorithm failed to converge because the input matrix contained non-finite values.",
            element(i, c.args.tensor(0)?.sizes())
        );
        let svd = k::svd(&m, singular_vectors(&c.args)?);
        values.put(i, &svd.values);
        if let Some((us, vs)) = &mut sides {
            us.put(i, &svd.u().data);
            vs.put(i, &svd.v().adjoint().data);
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
    let x = a.tensor(0)?;
    let (all, m, n, one) = matrix_bytes(x);
    let vectors = singular_vectors(a)?;
    let turned = match vectors {
        k::SingularVectors::None => 0,
        k::SingularVectors::Some => m.min(n),
        k::SingularVectors::All => n,
    };
    let own = with_field!(x.dtype, T => k::svd_room::<T>(m, n, vectors) + 2 * k::matrix_room::<T>(turned, n));
    Ok(all + piece_bytes(outs) + one + own)
}

/// `svd(self, some, compute_uv)`: returns V instead of its conjugate transpose, and zeros for vectors not requested.
fn old_svd(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, some, wanted) = (*a.tensor(0)?, a.bool(1)?, a.bool(2)?);
    ensure!(sizes(e, x).len() >= 2, "linalg.svd: input should have at least 2 dimensions");
    let made = emit_all!(e, "aten._linalg_svd.default", x, wanted && !some, wanted, ())?;
    let [u, s, vh] = made[..] else { return fail("_linalg_svd has three results") };
    let (u, vh) = if wanted {
        (u, vh)
    } else {
        let meta = e.meta(x);
        let (batch, m, n) = parts(&meta);
        (
            emit!(e, "aten.full.default", with(batch, &[m, m]), 0.0, meta.dtype)?,
            emit!(e, "aten.full.default", with(batch, &[n, n]), 0.0, meta.dtype)?,
        )
    };
    Ok(smallvec![u, s, emit!(e, "aten.mH.default", vh)?])
}

fn complex_of(dtype: DType) -> DType {
    if matches!(dtype, DType::F32 | DType::C64) { DType::C64 } else { DType::C128 }
}
fn eig_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.eig", true)?;
    let d = complex_of(x.dtype);
    let (batch, n, _) = parts(x);
    Ok(smallvec![rows(d, batch, &[n]), by_columns(d, x.sizes())])
}
fn eigvals_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.eigvals", true)?;
    let (batch, n, _) = parts(x);
    one(rows(complex_of(x.dtype), batch, &[n]))
}
fn eig_run(c: &Call<'_>) -> Result<()> {
    let x = c.args.tensor(0)?;
    let ms = MatrixBatch::<C64>::of(x);
    let mut values = Pieces::of(&c.outs[0], ms.count);
    let mut vectors = c.outs.get(1).map(|out| Pieces::of(out, ms.count));
    let name = if vectors.is_some() { "eig" } else { "eigvals" };
    for i in 0..ms.count {
        let m = ms.get(i);
        let made = k::eig(&m, !x.dtype().is_complex(), vectors.is_some())
            .map_err(|e| OpError::new(format!("torch.linalg.{name}: {e}")))?;
        values.put(i, &made.values);
        if let Some(vectors) = &mut vectors {
            vectors.put(i, &made.vectors.data);
        }
    }
    values.finish();
    vectors.into_iter().for_each(Pieces::finish);
    Ok(())
}
fn eig_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let x = a.tensor(0)?;
    let (_, n, _) = parts(x);
    let (n, all) = (n as usize, room::<C64>(x.layout.numel() as usize));
    Ok(all + piece_bytes(outs) + k::matrix_room::<C64>(n, n) + k::eig_room(n))
}

/// A number as a 0-d tensor.
fn number(e: &mut dyn Emit, x: f64) -> Result<Val> {
    emit!(e, "aten.full.default", [0i64; 0], x, DType::F64)
}

/// An optional tolerance, given as a number or a tensor.
fn tolerance(e: &mut dyn Emit, a: &ValArgs<'_>, i: usize) -> Result<Option<Val>> {
    match a.0.get(i) {
        None | Some(Arg::None) => Ok(None),
        Some(Arg::Value(v)) => Ok(Some(*v)),
        Some(_) => number(e, a.float(i)?).map(Some),
    }
}

/// Threshold for zero singular values: `max(atol, rtol * largest)`, by default relative to the largest alone.
fn bound(e: &mut dyn Emit, x: Val, atol: Option<Val>, rtol: Option<Val>, largest: Val) -> Result<Val> {
    let meta = e.meta(x);
    let (_, m, n) = parts(&meta);
    let eps = if real_of(meta.dtype) == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let default = eps * m.max(n) as f64;
    let rtol = match (rtol, atol) {
        (Some(rtol), _) => rtol,
        (None, None) => number(e, default)?,
        (None, Some(atol)) => {
            // An absolute tolerance above zero replaces the default relative one.
            let set = emit!(e, "aten.gt.Scalar", atol, 0.0)?;
            let zero = emit!(e, "aten.mul.Scalar", atol, 0.0)?;
            let default = emit!(e, "aten.add.Scalar", zero, default)?;
            emit!(e, "aten.masked_fill.Scalar", default, set, 0.0)?
        }
    };
    let rtol = emit!(e, "aten.unsqueeze.default", rtol, -1)?;
    let relative = emit!(e, "aten.mul.Tensor", rtol, largest)?;
    let Some(atol) = atol else { return Ok(relative) };
    let atol = emit!(e, "aten.unsqueeze.default", atol, -1)?;
    emit!(e, "aten.maximum.default", atol, relative)
}

/// Singular values; for a Hermitian matrix, from its eigenvalues.
fn values(e: &mut dyn Emit, x: Val, hermitian: bool) -> Result<Val> {
    if hermitian {
        let l = emit!(e, "aten.linalg_eigvalsh.default", x, "L")?;
        emit!(e, "aten.abs.default", l)
    } else {
        emit!(e, "aten.linalg_svdvals.default", x, ())
    }
}

fn pseudo_inverse(e: &mut dyn Emit, x: Val, atol: Option<Val>, rtol: Option<Val>, hermitian: bool) -> Result<Val> {
    let meta = e.meta(x);
    check(&meta, "linalg.pinv", hermitian)?;
    let (batch, m, n) = parts(&meta);
    if meta.layout.numel() == 0 {
        return emit!(e, "aten.full.default", with(batch, &[n, m]), 0.0, meta.dtype);
    }
    let (left, s, right) = if hermitian {
        let made = emit_all!(e, "aten.linalg_eigh.default", x, "L")?;
        let [l, v] = made[..] else { return fail("linalg_eigh has two results") };
        (v, l, mh(e, v)?)
    } else {
        let made = emit_all!(e, "aten.linalg_svd.default", x, false, ())?;
        let [u, s, vh] = made[..] else { return fail("linalg_svd has three results") };
        (mh(e, vh)?, s, mh(e, u)?)
    };
    let size = if hermitian { emit!(e, "aten.abs.default", s)? } else { s };
    let largest = emit!(e, "aten.amax.default", size, [-1i64], true)?;
    let bound = bound(e, x, atol, rtol, largest)?;
    let small = emit!(e, "aten.le.Tensor", size, bound)?;
    let inverse = emit!(e, "aten.reciprocal.default", s)?;
    let inverse = emit!(e, "aten.masked_fill.Scalar", inverse, small, 0.0)?;
    let inverse = emit!(e, "aten.unsqueeze.default", inverse, -2)?;
    let scaled = emit!(e, "aten.mul.Tensor", left, inverse)?;
    emit!(e, "aten.matmul.default", scaled, right)
}
/// `linalg_pinv.atol_rtol_tensor(self, *, atol, rtol, hermitian)`
fn pinv(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, atol, rtol) = (*a.tensor(0)?, tolerance(e, a, 1)?, tolerance(e, a, 2)?);
    Ok(smallvec![pseudo_inverse(e, x, atol, rtol, a.bool(3)?)?])
}
fn pinv_float(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (atol, rtol) = (tolerance(e, a, 1)?, tolerance(e, a, 2)?);
    Ok(smallvec![emit!(e, "aten.linalg_pinv.atol_rtol_tensor", pass(a, 0), atol, rtol, pass(a, 3))?])
}
/// `linalg_pinv(self, rcond, hermitian)`
fn pinv_rcond(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let rcond = tolerance(e, a, 1)?;
    let hermitian = !a.is_none(2) && a.bool(2)?;
    let zero = number(e, 0.0)?;
    Ok(smallvec![emit!(e, "aten.linalg_pinv.atol_rtol_tensor", pass(a, 0), zero, rcond, hermitian)?])
}

fn rank(e: &mut dyn Emit, x: Val, atol: Option<Val>, rtol: Option<Val>, hermitian: bool) -> Vals {
    let meta = e.meta(x);
    check(&meta, "torch.linalg.matrix_rank", hermitian)?;
    let batch = parts(&meta).0;
    if meta.layout.numel() == 0 {
        return Ok(smallvec![emit!(e, "aten.full.default", batch, 0, DType::I64)?]);
    }
    let s = values(e, x, hermitian)?;
    let largest = emit!(e, "aten.amax.default", s, [-1i64], true)?;
    let bound = bound(e, x, atol, rtol, largest)?;
    let above = emit!(e, "aten.gt.Tensor", s, bound)?;
    Ok(smallvec![emit!(e, "aten.sum.dim_IntList", above, [-1i64], false, ())?])
}
/// `linalg_matrix_rank(…, *, atol, rtol, hermitian)`
fn matrix_rank(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (atol, rtol) = (tolerance(e, a, 1)?, tolerance(e, a, 2)?);
    rank(e, *a.tensor(0)?, atol, rtol, a.bool(3)?)
}
/// `linalg_matrix_rank(…, tol, hermitian)`
fn matrix_rank_tol(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let tol = tolerance(e, a, 1)?;
    let zero = number(e, 0.0)?;
    rank(e, *a.tensor(0)?, tol, Some(zero), a.bool(2)?)
}

/// `linalg_cond(self, p)`
fn cond(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let meta = e.meta(x);
    ensure!(meta.rank() >= 2, "linalg.cond: The input tensor A must have at least 2 dimensions.");
    let spectral = match a.0.get(1) {
        None | Some(Arg::None) => Some(1.0),
        Some(Arg::Scalar(p)) if p.as_f64().abs() == 2.0 => Some(p.as_f64() / 2.0),
        _ => None,
    };
    let (batch, _, _) = parts(&meta);
    if meta.layout.numel() == 0 {
        check(&meta, "linalg.cond", spectral.is_none())?;
        return Ok(smallvec![emit!(e, "aten.full.default", batch, 0.0, real_of(meta.dtype))?]);
    }
    if let Some(sign) = spectral {
        let s = emit!(e, "aten.linalg_svdvals.default", x, ())?;
        let (first, last) = (emit!(e, "aten.select.int", s, -1, 0)?, emit!(e, "aten.select.int", s, -1, -1)?);
        let (over, under) = if sign > 0.0 { (first, last) } else { (last, first) };
        return Ok(smallvec![emit!(e, "aten.div.Tensor", over, under)?]);
    }
    check(&meta, "linalg.cond", true)?;
    let made = emit_all!(e, "aten.linalg_inv_ex.default", x, false)?;
    let [inverse, info] = made[..] else { return fail("linalg_inv_ex has two results") };
    let info = emit!(e, "aten.unsqueeze.default", info, -1)?;
    let info = emit!(e, "aten.unsqueeze.default", info, -1)?;
    let singular = emit!(e, "aten.gt.Scalar", info, 0)?;
    let inverse = emit!(e, "aten.masked_fill.Scalar", inverse, singular, f64::INFINITY)?;
    let norm = |e: &mut dyn Emit, t: Val| match a.0.get(1) {
        Some(Arg::Str(p)) => emit!(e, "aten.linalg_matrix_norm.str_ord", t, &**p, [-2i64, -1], false, ()),
        _ => emit!(e, "aten.linalg_matrix_norm.default", t, pass(a, 1), [-2i64, -1], false, ()),
    };
    let (own, other) = (norm(e, x)?, norm(e, inverse)?);
    Ok(smallvec![emit!(e, "aten.mul.Tensor", own, other)?])
}

/// `(x + xᴴ) / 2`: exactly Hermitian.
fn mirrored(e: &mut dyn Emit, x: Val) -> Result<Val> {
    let other = mh(e, x)?;
    let sum = emit!(e, "aten.add.Tensor", x, other)?;
    emit!(e, "aten.mul.Scalar", sum, 0.5)
}

/// `linalg_polar(A)`: a unitary and a positive semidefinite factor, from singular vectors.
fn polar(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let meta = e.meta(x);
    check(&meta, "linalg.polar", false)?;
    let (_, m, n) = parts(&meta);
    ensure!(m >= n, "linalg.polar: input must have at least as many rows as columns, but got {m} by {n} matrices");
    let made = emit_all!(e, "aten._linalg_svd.default", x, false, true, ())?;
    let [u, s, vh] = made[..] else { return fail("_linalg_svd has three results") };
    let unitary = emit!(e, "aten.matmul.default", u, vh)?;
    let (s, v) = (emit!(e, "aten.unsqueeze.default", s, -1)?, mh(e, vh)?);
    let scaled = emit!(e, "aten.mul.Tensor", vh, s)?;
    let positive = emit!(e, "aten.matmul.default", v, scaled)?;
    Ok(smallvec![unitary, mirrored(e, positive)?])
}

/// `linalg_matrix_sqrth(self)`: the root of a Hermitian matrix; negative eigenvalues count as zero.
fn sqrth(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    check(&e.meta(x), "linalg.matrix_sqrth", true)?;
    let made = emit_all!(e, "aten._linalg_eigh.default", x, "L", true)?;
    let [l, v] = made[..] else { return fail("_linalg_eigh has two results") };
    let l = emit!(e, "aten.clamp_min.default", l, 0.0)?;
    let root = emit!(e, "aten.sqrt.default", l)?;
    let root = emit!(e, "aten.unsqueeze.default", root, -2)?;
    let (scaled, vh) = (emit!(e, "aten.mul.Tensor", v, root)?, mh(e, v)?);
    let out = emit!(e, "aten.matmul.default", scaled, vh)?;
    Ok(smallvec![mirrored(e, out)?])
}

/// Vectors are unique up to signs or phases, general eigenvalues up to order: only sizes compare here.
/// The kernels' tests check the values.
const UP_TO_SIGN: Exactness = Exactness::Random;

pub(crate) static OPS: &[OpDef] = table![
    kernel!(eigh_infer, eigh_run, eigh_scratch, eigh_samples(), "_linalg_eigh").failing().held_to(UP_TO_SIGN),
    composite!(eigh, eigh_samples(), "linalg_eigh").failing().held_to(UP_TO_SIGN),
    composite!(eigvalsh, eigh_samples(), "linalg_eigvalsh").failing(),
    kernel!(svd_infer, svd_run, svd_scratch, svd_shapes(), "_linalg_svd").failing().held_to(UP_TO_SIGN),
    composite!(svd, svd_shapes(), "linalg_svd").failing().held_to(UP_TO_SIGN),
    composite!(svdvals, svd_shapes(), "linalg_svdvals").failing(),
    composite!(
        old_svd,
        [options(&[flag(true)]), options(&[flag(false)]), options(&[flag(true), flag(false)])].concat(),
        "svd"
    )
    .failing()
    .held_to(UP_TO_SIGN),
    kernel!(eig_infer, eig_run, eig_scratch, regular_samples(), "linalg_eig").failing().held_to(UP_TO_SIGN),
    kernel!(eigvals_infer, eig_run, eig_scratch, regular_samples(), "_linalg_eigvals").failing().held_to(UP_TO_SIGN),
    composite!(eigvals, regular_samples(), "linalg_eigvals").failing().held_to(UP_TO_SIGN),
    composite!(pinv, tolerances(true), "linalg_pinv.atol_rtol_tensor").failing(),
    composite!(pinv_float, tolerances(false), "linalg_pinv.atol_rtol_float").failing(),
    composite!(pinv_rcond, options(&[of(0.01)]), "linalg_pinv").failing(),
    composite!(
        pinv_rcond,
        options(&[Arg::Value(restride_tensor::RawTensor::from_slice(&[0.01], &[]))]),
        "linalg_pinv.rcond_tensor"
    )
    .failing(),
    composite!(pinv_rcond, [any_samples(), options(&[of(0.3)])].concat(), "pinverse").failing(),
    composite!(matrix_rank, tolerances(true), "linalg_matrix_rank.atol_rtol_tensor").failing(),
    composite!(matrix_rank, tolerances(false), "linalg_matrix_rank.atol_rtol_float").failing(),
    composite!(matrix_rank_tol, options(&[of(0.3)]), "linalg_matrix_rank").failing(),
    composite!(
        matrix_rank_tol,
        options(&[Arg::Value(restride_tensor::RawTensor::from_slice(&[0.3], &[]))]),
        "linalg_matrix_rank.tol_tensor"
    )
    .failing(),
    composite!(cond, conditions(), "linalg_cond").failing(),
    composite!(cond, named_conditions(), "linalg_cond.p_str").failing(),
    composite!(polar, any_samples(), "linalg_polar").failing(),
    composite!(sqrth, hermitian_samples(&[]), "linalg_matrix_sqrth").failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::linalg::samples::*;

    pub(crate) fn any_samples() -> Vec<Sample> {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[4, 3], 1)],
            sample![transposed(DType::F64, &[2, 3, 5], 2)],
            sample![tensor(DType::C64, &[2, 3, 3], 3)],
            sample![tensor(DType::C128, &[5, 2], 4)],
            sample![tensor(d, &[2, 0, 3], 5)],
            sample![tensor(d, &[3, 0], 5)],
            sample![tensor(d, &[3], 6)],
            sample![tensor(DType::I64, &[3, 3], 6)],
        ]
    }

    /// Hermitian and other sample matrices, with further options.
    pub(crate) fn hermitian_samples(more: &[restride_ir::SampleArg]) -> Vec<Sample> {
        let args = |x: restride_tensor::RawTensor| {
            let mut s = sample![x];
            s.args.extend(more.iter().cloned());
            s
        };
        vec![
            args(symmetric(DType::F32, &[2], 4, 1, true)),
            args(symmetric(DType::C128, &[], 3, 1, true)),
            args(symmetric(DType::F64, &[2], 0, 1, true)),
            args(tensor(DType::F32, &[3, 4], 1)),
        ]
    }

    pub(crate) fn options(list: &[restride_ir::SampleArg]) -> Vec<Sample> {
        with_args(any_samples(), list.to_vec())
    }

    pub(crate) fn of(x: f64) -> restride_ir::SampleArg {
        Arg::Scalar(Scalar::Float(x))
    }

    pub(crate) fn flag(x: bool) -> restride_ir::SampleArg {
        Arg::Scalar(Scalar::Bool(x))
    }

    pub(crate) fn tolerances(tensors: bool) -> Vec<Sample> {
        let t = |x: f64| if tensors { Arg::Value(restride_tensor::RawTensor::from_slice(&[x], &[])) } else { of(x) };
        let mut out = options(&[]);
        out.extend(options(&[t(0.3), Arg::None]).into_iter().take(4));
        out.extend(options(&[t(0.2), t(0.4)]).into_iter().take(4));
        out.extend(options(&[Arg::None, t(0.5)]).into_iter().take(4));
        out.extend(hermitian_samples(&[Arg::None, Arg::None, flag(true)]));
        out
    }

    pub(crate) fn conditions() -> Vec<Sample> {
        let mut out = any_samples();
        for p in [2.0, -2.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY] {
            out.extend(with_args(regular_samples(), vec![of(p)]).into_iter().skip(2).step_by(3));
        }
        out
    }

    pub(crate) fn named_conditions() -> Vec<Sample> {
        ["fro", "nuc"]
            .into_iter()
            .flat_map(|p| {
                with_args(regular_samples(), vec![crate::support::samples::IntoArg::arg(p)])
                    .into_iter()
                    .skip(2)
                    .step_by(3)
            })
            .collect()
    }
}

//! Matrix exponentials and powers, tensor equations and inverses, and products of vectors.

use crate::linalg::spectral::conj;
use crate::linalg::{Pieces, check, fields, kernel, matrix_bytes, parts, piece_bytes};
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Arg, Args, Call, DType, Emit, Ints, MemoryFormat, Meta, OpDef, Val};
use restride_kernels::linalg::{self as k, Field, MatrixBatch};
use restride_kernels::with_field;
use smallvec::smallvec;

fields! {
    exp_run => exp_of;
}

/// `linalg_matrix_exp(self)`
fn exp_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    ensure!(x.rank() >= 2, "linalg.matrix_exp: The input tensor A must have at least 2 dimensions.");
    ensure!(
        x.dtype.is_float() || x.dtype.is_complex(),
        "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got {}",
        name(x.dtype)
    );
    let (_, m, n) = parts(x);
    ensure!(m == n, "linalg.matrix_exp: A must be batches of square matrices, but they are {m} by {n} matrices");
    one(fresh(x.dtype, x.sizes()))
}
fn exp_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let ms = MatrixBatch::<T>::of(c.args.tensor(0)?);
    let mut out = Pieces::of(&c.outs[0], ms.count);
    for i in 0..ms.count {
        let m = ms.get(i);
        out.put(i, &k::matrix_exp(&m).data);
    }
    out.finish();
    Ok(())
}
fn exp_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let x = a.tensor(0)?;
    let (all, n, _, one) = matrix_bytes(x);
    Ok(all + piece_bytes(outs) + one + with_field!(x.dtype, T => k::matrix_exp_room::<T>(n)))
}
fn exp(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![emit!(e, "aten.linalg_matrix_exp.default", pass(a, 0))?])
}

/// `linalg_matrix_power(self, n)` by repeated squaring.
fn power(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, n) = (*a.tensor(0)?, a.int(1)?);
    let meta = e.meta(x);
    ensure!(meta.rank() >= 2, "linalg.matrix_power: The input tensor A must have at least 2 dimensions.");
    let (_, rows, cols) = parts(&meta);
    ensure!(
        rows == cols,
        "linalg.matrix_power: A must be batches of square matrices, but they are {rows} by {cols} matrices"
    );
    if n == 0 {
        let eye = emit!(e, "aten.eye.m", rows, cols, meta.dtype)?;
        let all = emit!(e, "aten.expand.default", eye, meta.sizes())?;
        return Ok(smallvec![emit!(e, "aten.clone.default", all, ())?]);
    }
    let mut square = if n < 0 { emit!(e, "aten.linalg_inv.default", x)? } else { x };
    if n == -1 {
        return Ok(smallvec![square]);
    }
    if n == 1 {
        return Ok(smallvec![emit!(e, "aten.clone.default", x, Arg::MemoryFormat(MemoryFormat::Contiguous))?]);
    }
    if n.abs() == 3 {
        let two = emit!(e, "aten.matmul.default", square, square)?;
        return Ok(smallvec![emit!(e, "aten.matmul.default", two, square)?]);
    }
    let (mut left, mut result): (u64, Option<Val>) = (n.unsigned_abs(), None);
    loop {
        if left & 1 == 1 {
            result = Some(match result {
                Some(r) => emit!(e, "aten.matmul.default", r, square)?,
                None => square,
            });
        }
        left >>= 1;
        match result {
            Some(r) if left == 0 => return Ok(smallvec![r]),
            _ => square = emit!(e, "aten.matmul.default", square, square)?,
        }
    }
}

fn product(sizes: &[i64]) -> i64 {
    sizes.iter().fold(1, |p, &n| p.saturating_mul(n))
}

/// `linalg_tensorinv(self, ind)`
fn tensorinv(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, ind) = (*a.tensor(0)?, a.int(1)?);
    let own = sizes(e, x);
    ensure!(ind > 0, "Expected a strictly positive integer for 'ind'");
    let (first, last) = own.split_at(own.len().min(ind as usize));
    let (m, n) = (product(first), product(last));
    ensure!(
        m == n,
        "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {n} != {m}"
    );
    let flat = emit!(e, "aten.reshape.default", x, [n, m])?;
    let inverse = emit!(e, "aten.linalg_inv.default", flat)?;
    Ok(smallvec![emit!(e, "aten.reshape.default", inverse, [last, first].concat())?])
}

/// `linalg_tensorsolve(self, other, dims)`
fn tensorsolve(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (mut x, b) = (*a.tensor(0)?, *a.tensor(1)?);
    let rank = sizes(e, x).len() as i64;
    if !a.is_none(2) {
        let dims = a.ints(2)?;
        let to: Ints = (rank - dims.len() as i64..rank).collect();
        x = emit!(e, "aten.movedim.intlist", x, dims, to)?;
    }
    let (own, right) = (sizes(e, x), sizes(e, b));
    let shape = own.get(right.len()..).unwrap_or(&[]).to_vec();
    let n = product(&shape);
    ensure!(
        n == product(&right) && n * n == product(&own),
        "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got {n} != {}",
        product(&right)
    );
    let flat = emit!(e, "aten.reshape.default", x, [n, n])?;
    let b = emit!(e, "aten.reshape.default", b, [n])?;
    let solved = emit!(e, "aten.linalg_solve.default", flat, b, true)?;
    Ok(smallvec![emit!(e, "aten.reshape.default", solved, shape)?])
}

/// `linalg_vander(x, *, N)`: powers along a new last dimension.
fn vander(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    // A number becomes a row of length one.
    let x = if e.meta(x).rank() == 0 { emit!(e, "aten.unsqueeze.default", x, -1)? } else { x };
    let own = sizes(e, x);
    let n = if a.is_none(1) { own[own.len() - 1] } else { a.int(1)? };
    ensure!(n > 1, "N must be greater than 1.");
    let mut dtype = e.meta(x).dtype;
    ensure!(
        dtype != DType::Bool,
        "linalg.vander supports floating point, complex, and integer tensors, but got {}",
        name(dtype)
    );
    if !dtype.is_float() && !dtype.is_complex() {
        dtype = DType::I64;
    }
    Ok(smallvec![powers(e, x, n, dtype)?])
}

/// The first `n` powers of numbers, from the zeroth on, along a new last dimension and in an element type.
fn powers(e: &mut dyn Emit, x: Val, n: i64, dtype: DType) -> Result<Val> {
    let own = sizes(e, x);
    let ones = emit!(e, "aten.full.default", [&own[..], &[n.min(1)]].concat(), 1, dtype)?;
    if n <= 1 {
        return Ok(ones);
    }
    let x = if e.meta(x).dtype == dtype { x } else { emit!(e, "aten._to_copy.default", x, dtype)? };
    let column = emit!(e, "aten.unsqueeze.default", x, -1)?;
    let all = emit!(e, "aten.expand.default", column, [&own[..], &[n - 1]].concat())?;
    let rest = emit!(e, "aten.cumprod.default", all, -1, ())?;
    emit!(e, "aten.cat.default", vec![ones, rest], -1)
}

/// `vander(x, N, increasing)`: powers of a vector's numbers as columns, the highest first unless `increasing`.
fn old_vander(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let m = e.meta(x);
    ensure!(m.rank() == 1, "x must be a one-dimensional tensor.");
    let n = if a.is_none(1) { m.sizes()[0] } else { a.int(1)? };
    ensure!(n >= 0, "N must be non-negative.");
    let dtype = if m.dtype.is_float() || m.dtype.is_complex() { m.dtype } else { DType::I64 };
    let out = powers(e, x, n, dtype)?;
    Ok(smallvec![if a.bool(2)? { out } else { emit!(e, "aten.flip.default", out, [1])? }])
}

/// `linalg_vecdot(x, y, *, dim)`
fn vecdot(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y, dim) = (*a.tensor(0)?, *a.tensor(1)?, a.int(2)?);
    let (dx, dy) = (e.meta(x).dtype, e.meta(y).dtype);
    ensure!(
        dx.is_float() || dx.is_complex(),
        "linalg.vecdot: Expected a floating point or complex tensor as input. Got {}",
        name(dx)
    );
    ensure!(
        dx == dy,
        "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} instead",
        name(dx),
        name(dy)
    );
    let x = conj(e, x)?;
    let each = emit!(e, "aten.mul.Tensor", x, y)?;
    Ok(smallvec![emit!(e, "aten.sum.dim_IntList", each, [dim], false, ())?])
}

/// `triangular_solve(self, A, upper, transpose, unitriangular)`: the solution and a copy of the matrices.
fn triangular_solve(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (b, m) = (*a.tensor(0)?, *a.tensor(1)?);
    let (upper, turned, unit) = (a.bool(2)?, a.bool(3)?, a.bool(4)?);
    let (meta, other) = (e.meta(m), e.meta(b));
    check(&other, "triangular_solve", false)?;
    check(&meta, "triangular_solve", true)?;
    let own = if turned { emit!(e, "aten.transpose.int", m, -2, -1)? } else { m };
    let solved = emit!(e, "aten.linalg_solve_triangular.default", own, b, upper != turned, true, unit)?;
    let batch = crate::support::strides::broadcast_sizes(&[parts(&meta).0, parts(&other).0])?;
    let (_, n, _) = parts(&meta);
    // The matrices are stored by columns, as the solution is.
    let rows = emit!(e, "aten.transpose.int", m, -2, -1)?;
    let all = emit!(e, "aten.expand.default", rows, crate::linalg::with(&batch, &[n, n]))?;
    let copy = emit!(e, "aten.clone.default", all, Arg::MemoryFormat(MemoryFormat::Contiguous))?;
    Ok(smallvec![solved, emit!(e, "aten.transpose.int", copy, -2, -1)?])
}

pub(crate) static OPS: &[OpDef] = table![
    kernel!(exp_infer, exp_run, exp_scratch, exponentials(), "linalg_matrix_exp"),
    composite!(exp, exponentials(), "matrix_exp"),
    composite!(power, powers(), "linalg_matrix_power").failing(),
    composite!(tensorinv, tensor_inverses(), "linalg_tensorinv").failing(),
    composite!(tensorsolve, tensor_equations(), "linalg_tensorsolve").failing(),
    composite!(vander, vanders(), "linalg_vander"),
    composite!(old_vander, old_vanders(), "vander"),
    composite!(vecdot, dots(), "linalg_vecdot"),
    composite!(triangular_solve, triangles(), "triangular_solve"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::linalg::samples::*;

    pub(crate) fn powers() -> Vec<Sample> {
        let mut out = Vec::new();
        for n in [-3, -2, -1, 0, 1, 2, 3, 4, 7] {
            out.push(sample![regular(DType::F32, &[2], 3, 1), n]);
            out.push(sample![turned(&regular(DType::C128, &[], 3, 1)), n]);
        }
        out.push(sample![regular(DType::F64, &[2], 0, 1), 3]);
        out.push(sample![tensor(DType::F32, &[3, 4], 1), 2]);
        out
    }

    pub(crate) fn exponentials() -> Vec<Sample> {
        let mut out: Vec<Sample> = regular_samples();
        // PyTorch's intermediate values overflow in half types.
        out.retain(|s| !matches!(&s.args[0], Arg::Value(t) if t.dtype() == DType::F16));
        out.push(sample![tensor(DType::C64, &[2, 1, 1], 4)]);
        out
    }

    /// A well-conditioned 6 × 6 matrix under other sizes.
    pub(crate) fn shaped(d: DType, sizes: &[i64]) -> RawTensor {
        let t = regular(d, &[], 6, 1);
        t.alias(d, Layout::contiguous(sizes)).expect("as many elements")
    }

    pub(crate) fn tensor_inverses() -> Vec<Sample> {
        vec![
            sample![shaped(DType::F64, &[2, 3, 6]), 2],
            sample![shaped(DType::C64, &[6, 3, 2]), 1],
            sample![tensor(DType::F32, &[2, 3, 4], 1), 2],
            sample![tensor(DType::F32, &[2, 2], 1), 0],
        ]
    }

    pub(crate) fn tensor_equations() -> Vec<Sample> {
        vec![
            sample![shaped(DType::F64, &[2, 3, 6]), tensor(DType::F64, &[2, 3], 2)],
            sample![shaped(DType::C64, &[6, 3, 2]), tensor(DType::C64, &[6], 2)],
            sample![shaped(DType::F32, &[2, 6, 3]), tensor(DType::F32, &[3, 2], 2), [0i64]],
            sample![tensor(DType::F32, &[2, 3, 4], 1), tensor(DType::F32, &[2, 3], 2)],
        ]
    }

    pub(crate) fn old_vanders() -> Vec<Sample> {
        let mut out = Vec::new();
        for dtype in [DType::F32, DType::F64, DType::I32, DType::Bool, DType::C64] {
            let x = tensor(dtype, &[4], 1);
            out.push(sample![&x]);
            out.push(sample![&x, 3, true]);
            out.push(sample![&x, 1]);
            out.push(sample![x, 0]);
        }
        out.push(sample![tensor(DType::F32, &[0], 1), 2]);
        out
    }
    pub(crate) fn vanders() -> Vec<Sample> {
        let mut out = Vec::new();
        for x in [
            tensor(DType::F32, &[4], 1),
            transposed(DType::F64, &[3, 2], 1),
            tensor(DType::I32, &[3], 1),
            tensor(DType::Bool, &[3], 1),
            tensor(DType::C64, &[2, 3], 1),
        ] {
            out.push(sample![&x]);
            out.push(sample![x, 5]);
        }
        out.push(sample![tensor(DType::F32, &[3], 1), 1]);
        out.push(sample![tensor(DType::F64, &[], 1), 3]);
        out
    }

    pub(crate) fn dots() -> Vec<Sample> {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[2, 4], 1), tensor(d, &[2, 4], 2)],
            sample![strided(DType::F64, &[3, 4], 1), tensor(DType::F64, &[4], 2), 1],
            sample![tensor(DType::C64, &[2, 3, 4], 1), tensor(DType::C64, &[2, 1, 4], 2), 0],
            sample![tensor(DType::C128, &[3], 1), tensor(DType::C128, &[3], 2)],
            sample![tensor(d, &[2, 0], 1), tensor(d, &[2, 0], 2)],
            sample![tensor(d, &[3], 1), tensor(DType::F64, &[3], 2)],
            sample![tensor(DType::I64, &[3], 1), tensor(DType::I64, &[3], 2)],
        ]
    }

    pub(crate) fn triangles() -> Vec<Sample> {
        let mut out = Vec::new();
        for (upper, turned, unit) in
            [(true, false, false), (false, true, false), (true, true, true), (false, false, true)]
        {
            for (d, batch) in [(DType::F32, &[][..]), (DType::C128, &[2])] {
                let b = tensor(d, &[2, 4, 3], 2);
                out.push(sample![b, regular(d, batch, 4, 1), upper, turned, unit]);
            }
        }
        out.push(sample![tensor(DType::F32, &[4, 2], 1), regular(DType::F32, &[], 4, 1)]);
        out.push(sample![tensor(DType::F32, &[2, 0, 2], 1), regular(DType::F32, &[2], 0, 1)]);
        out.push(sample![tensor(DType::F32, &[3, 2], 1), regular(DType::F32, &[], 4, 1)]);
        out
    }
}

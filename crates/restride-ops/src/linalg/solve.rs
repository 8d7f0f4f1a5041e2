//! Linear systems with square or triangular matrices.

#[cfg(feature = "samples")]
use crate::linalg::samples;
use crate::linalg::{
    Pieces, by_columns, check, element, element_bytes, factor_bytes, factors, fields, finish_both, kernel,
    matrix_bytes, parts, picks, piece_bytes, pivots, rows, with,
};
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Layout, Meta, OpDef};
use restride_kernels::linalg::{self as k, Field, Matrix, MatrixBatch};
use restride_kernels::support::rows::cells;
use restride_kernels::support::scratch::{Temp, room};
use restride_tensor::Dims;
use smallvec::smallvec;

picks! {
    solve => "aten._linalg_solve_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |a| pass(a, 2), |_| true.operand()] [0];
    solve_ex => "aten._linalg_solve_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |a| pass(a, 2), |a| pass(a, 3)] [0, 3];
}

/// Geometry of an equation's right side.
struct Sides {
    /// Whether the right side is one vector per matrix.
    vector: bool,
    /// Batch dimensions of the result.
    batch: Dims<i64>,
}

fn sides(a: &[i64], b: &[i64]) -> Result<Sides> {
    let vector = b.len() == 1 || (b.len() + 1 == a.len() && b == &a[..a.len() - 1]);
    if vector {
        return Ok(Sides { vector, batch: Dims::<i64>::from_slice(&a[..a.len() - 2]) });
    }
    ensure!(b.len() >= 2, "linalg.solve: The input tensor B must have at least 2 dimensions.");
    let batch =
        Dims::<i64>::from_slice(&crate::support::strides::broadcast_sizes(&[&a[..a.len() - 2], &b[..b.len() - 2]])?);
    Ok(Sides { vector, batch })
}

/// For each element of a batch, the index in a smaller batch that broadcasts to it.
pub(crate) fn indices(own: &[i64], batch: &[i64]) -> Temp<isize> {
    cells(&crate::support::strides::broadcast(&Layout::contiguous(own), batch))
}

/// `_linalg_solve_ex(A, B, *, left, check_errors)`
fn solve_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, b, left) = (a.tensor(0)?, a.tensor(1)?, a.bool(2)?);
    check(x, "linalg.solve", true)?;
    ensure!(
        x.dtype == b.dtype,
        "linalg.solve: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
        name(x.dtype),
        name(b.dtype)
    );
    let n = parts(x).1;
    let s = sides(x.sizes(), b.sizes())?;
    ensure!(
        left || !s.vector,
        "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
    );
    let result = if s.vector {
        let len = b.sizes()[b.rank() - 1];
        ensure!(len == n, "linalg.solve: Incompatible shapes of A and B for the equation AX = B ({n} and {len})");
        // PyTorch stores the vectors as if they were rows of a column-major matrix.
        let sizes = with(&s.batch, &[n]);
        if sizes.len() > 1 { by_columns(x.dtype, &sizes) } else { fresh(x.dtype, &sizes) }
    } else {
        let (p, q) = (b.sizes()[b.rank() - 2], b.sizes()[b.rank() - 1]);
        ensure!(
            (if left { p } else { q }) == n,
            "linalg.solve: Incompatible shapes of A and B for the equation {} ({n}x{n} and {p}x{q})",
            if left { "AX = B" } else { "XA = B" }
        );
        let sizes = with(&s.batch, &[p, q]);
        if left { by_columns(x.dtype, &sizes) } else { fresh(x.dtype, &sizes) }
    };
    Ok(smallvec![result, by_columns(x.dtype, x.sizes()), pivots(x), rows(DType::I32, parts(x).0, &[])])
}
fields! {
    solve_run => solve_of;
    triangular_run => triangular_of;
}

fn solve_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let (x, b, left, checked) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.bool(2)?, c.args.bool(3)?);
    let s = sides(x.sizes(), b.sizes())?;
    let n = x.sizes()[x.sizes().len() - 1] as usize;
    let (from_a, from_b) = (indices(&x.sizes()[..x.sizes().len() - 2], &s.batch), {
        let own = if s.vector { &b.sizes()[..b.sizes().len() - 1] } else { &b.sizes()[..b.sizes().len() - 2] };
        indices(own, &s.batch)
    });
    let rhs = if s.vector { MatrixBatch::<T>::columns(b) } else { MatrixBatch::of(b) };
    let mut info = Pieces::of(&c.outs[3], c.outs[3].numel());
    let mut out = Pieces::of(&c.outs[0], from_a.len());
    let (lus, pivots) = factors::<T>(c, 1, |i, f| {
        ensure!(
            !checked || f.info == 0,
            "torch.linalg.solve: {}The solver failed because the input matrix is singular.",
            element(i, x.sizes())
        );
        info.put(i, &[f.info]);
        Ok(())
    })?;
    for (at, (&i, &j)) in from_a.iter().zip(&from_b).enumerate().filter(|_| n > 0) {
        let lu = Matrix { rows: n, cols: n, data: Temp::copied(lus.get(i as usize)) };
        let f = k::Lu { pivots: Temp::copied(pivots.get(i as usize)), lu, info: 0 };
        let own = rhs.get(j as usize);
        if left {
            out.put(at, &f.solve(own).data);
        } else {
            let turned = f.solve_transposed(own.transposed());
            out.put(at, &turned.transposed().data);
        }
    }
    finish_both((lus, pivots));
    info.finish();
    out.finish();
    Ok(())
}
fn solve_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (x, b) = (a.tensor(0)?, a.tensor(1)?);
    let s = sides(x.sizes(), b.sizes())?;
    let (n, batch) = (parts(x).1, s.batch.iter().product::<i64>() as usize);
    let side = if s.vector { n } else { parts(b).1 * parts(b).2 };
    // Scratch: the right side of one system and its two transposes, and the transposed factors.
    let (_, _, _, own) = matrix_bytes(x);
    let one = restride_kernels::with_field!(x.dtype, T => 3 * room::<T>(side as usize)) + own + room::<i64>(n as usize);
    let rhs = element_bytes(b);
    Ok(factor_bytes(x, outs) + 2 * room::<isize>(batch) + rhs + one)
}

/// `linalg_solve_triangular(self, B, *, upper, left, unitriangular)`
fn triangular_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, b, left) = (a.tensor(0)?, a.tensor(1)?, a.bool(3)?);
    check(x, "linalg.solve_triangular", true)?;
    check(b, "linalg.solve_triangular", false)?;
    ensure!(x.dtype == b.dtype, "linalg.solve_triangular: Expected A and B to have the same dtype");
    let (p, q) = (b.sizes()[b.rank() - 2], b.sizes()[b.rank() - 1]);
    ensure!((if left { p } else { q }) == parts(x).1, "linalg.solve_triangular: Incompatible shapes of A and B");
    let batch = crate::support::strides::broadcast_sizes(&[parts(x).0, parts(b).0])?;
    let sizes = with(&batch, &[p, q]);
    one(by_columns(x.dtype, &sizes))
}
fn triangular_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let (x, b) = (c.args.tensor(0)?, c.args.tensor(1)?);
    let (upper, left, unit) = (c.args.bool(2)?, c.args.bool(3)?, c.args.bool(4)?);
    let (sx, sb) = (&x.sizes()[..x.sizes().len() - 2], &b.sizes()[..b.sizes().len() - 2]);
    let batch = crate::support::strides::broadcast_sizes(&[sx, sb])?;
    let (xs, bs) = (MatrixBatch::<T>::of(x), MatrixBatch::of(b));
    let (from_x, from_b) = (indices(sx, &batch), indices(sb, &batch));
    let mut out = Pieces::of(&c.outs[0], from_x.len());
    for (at, (&i, &j)) in from_x.iter().zip(&from_b).enumerate() {
        let (m, mut rhs) = (xs.get(i as usize), bs.get(j as usize));
        if left {
            k::triangular(&m, &mut rhs, upper, unit);
            out.put(at, &rhs.data);
        } else {
            let mut turned = rhs.transposed();
            k::triangular(&m.transposed(), &mut turned, !upper, unit);
            out.put(at, &turned.transposed().data);
        }
    }
    out.finish();
    Ok(())
}
fn triangular_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let ((x, _, _, square), (b, _, _, side)) = (matrix_bytes(a.tensor(0)?), matrix_bytes(a.tensor(1)?));
    let batch = parts(&outs[0]).0.iter().product::<i64>() as usize;
    let one = 2 * square + 3 * side;
    Ok(x + b + 2 * room::<isize>(batch) + piece_bytes(outs) + one)
}

pub(crate) static OPS: &[OpDef] = table![
    kernel!(solve_infer, solve_run, solve_scratch, solve_samples(), "_linalg_solve_ex").failing(),
    composite!(solve, solve_samples(), "linalg_solve").failing(),
    composite!(solve_ex, solve_samples(), "linalg_solve_ex").failing(),
    kernel!(triangular_infer, triangular_run, triangular_scratch, triangular_samples(), "linalg_solve_triangular"),
];

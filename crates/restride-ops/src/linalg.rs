//! Dense linear algebra over the last two dimensions.

use crate::composite::composed;
use crate::linalg_samples::*;
use crate::nn::*;
use crate::promote::name;
use restride_ir::{Args, Call, DType, Emit, Exactness, Kernel, Layout, Meta, OpDef, OpError, Val};
use restride_kernels::linalg::{self as k, Matrices, Matrix};
use restride_kernels::pack::unpack;
use restride_kernels::rows::cells;
use restride_kernels::scratch::{Temp, room};
use restride_tensor::{Dims, ViewMut};
use smallvec::smallvec;

/// What an operator takes: matrices of `f32` or `f64`, square if they are to be.
pub(crate) fn check(x: &Meta, what: &str, square: bool) -> Result<()> {
    ensure!(x.rank() >= 2, "{what}: The input tensor A must have at least 2 dimensions.");
    ensure!(
        x.dtype.is_float() || x.dtype.is_complex(),
        "{what}: Expected a floating point or complex tensor as input. Got {}",
        name(x.dtype)
    );
    ensure!(
        !matches!(x.dtype, DType::F16 | DType::BF16),
        "{what}: Low precision dtypes not supported. Got {}",
        name(x.dtype)
    );
    ensure!(!x.dtype.is_complex(), "{what} is not supported for complex matrices");
    let (m, n) = (x.sizes()[x.rank() - 2], x.sizes()[x.rank() - 1]);
    ensure!(!square || m == n, "{what}: A must be batches of square matrices, but they are {m} by {n} matrices");
    Ok(())
}

/// Batch dimensions, rows and columns.
pub(crate) fn parts(x: &Meta) -> (&[i64], i64, i64) {
    let (batch, last) = x.sizes().split_at(x.rank() - 2);
    (batch, last[0], last[1])
}

pub(crate) fn with(batch: &[i64], rest: &[i64]) -> Vec<i64> {
    [batch, rest].concat()
}

/// Matrices that lie column by column.
fn by_columns(dtype: DType, sizes: &[i64]) -> Meta {
    let mut l = Layout::contiguous(sizes);
    let rank = sizes.len();
    l.strides[rank - 2] = 1;
    l.strides[rank - 1] = sizes[rank - 2].max(1);
    Meta::new(dtype, l)
}

fn rows(dtype: DType, batch: &[i64], rest: &[i64]) -> Meta {
    fresh(dtype, &with(batch, rest))
}

/// Numbers for a result that come in equal pieces, one for each matrix of a batch.
struct Pieces<'a, T: Copy> {
    all: Temp<T>,
    each: usize,
    out: &'a ViewMut<'a>,
}

impl<'a, T: restride_kernels::pack::Compute> Pieces<'a, T> {
    fn of(out: &'a ViewMut<'a>, count: usize) -> Self {
        Pieces { all: Temp::filled(out.numel(), T::default()), each: out.numel() / count.max(1), out }
    }
    fn put(&mut self, i: usize, piece: &[T]) {
        self.all[i * self.each..][..self.each].copy_from_slice(piece);
    }
    fn get(&self, i: usize) -> &[T] {
        &self.all[i * self.each..][..self.each]
    }
    fn finish(self) {
        unpack(&self.all, self.out);
    }
}

/// The room of the [`Pieces`] of results of numbers, which are as wide as indices.
fn pieces_room(outs: &[Meta]) -> usize {
    outs.iter().map(|m| room::<f64>(m.layout.numel() as usize)).sum()
}

/// Of the elements of an operand, rows and columns of its matrices.
fn matrices_room(x: &Meta) -> (usize, usize, usize) {
    let (_, m, n) = parts(x);
    (room::<f64>(x.layout.numel() as usize), m as usize, n as usize)
}

/// PyTorch names the batch element only where there is a batch.
fn element(i: usize, sizes: &[i64]) -> String {
    if sizes.len() > 2 { format!("(Batch element {i}): ") } else { String::new() }
}

fn inv_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.inv", true)?;
    Ok(smallvec![by_columns(x.dtype, x.sizes()), rows(DType::I32, parts(x).0, &[])])
}
fn inv_run(c: &Call<'_>) -> Result<()> {
    let x = c.args.tensor(0)?;
    let ms = Matrices::of(x);
    let (mut out, mut info) = (Pieces::of(&c.outs[0], ms.count), Pieces::of(&c.outs[1], ms.count));
    for i in 0..ms.count {
        let f = k::lu(ms.get(i));
        if c.args.bool(1)? && f.info != 0 {
            return fail(format!(
                "linalg.inv: {}The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
                element(i, x.sizes()),
                f.info
            ));
        }
        info.put(i, &[f.info]);
        out.put(i, &f.solve(Matrix::eye(ms.rows, ms.rows)).data);
    }
    out.finish();
    info.finish();
    Ok(())
}
fn inv_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (all, n, _) = matrices_room(a.tensor(0)?);
    Ok(all + pieces_room(outs) + k::lu_room(n, n) + k::matrix_room(n, n))
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

fn pivots(x: &Meta) -> Meta {
    let (batch, m, n) = parts(x);
    rows(DType::I32, batch, &[m.min(n)])
}

fn det_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.det", true)?;
    Ok(smallvec![rows(x.dtype, parts(x).0, &[]), by_columns(x.dtype, x.sizes()), pivots(x)])
}
fn slogdet_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.slogdet", true)?;
    let number = rows(x.dtype, parts(x).0, &[]);
    Ok(smallvec![number.clone(), number, by_columns(x.dtype, x.sizes()), pivots(x)])
}
/// The factors of all matrices, which are the results from `at`; each matrix's are shown to `f`.
fn factors<'a>(
    c: &Call<'a>,
    at: usize,
    turned: bool,
    mut f: impl FnMut(usize, &k::Lu) -> Result<()>,
) -> Result<(Pieces<'a, f64>, Pieces<'a, i64>)> {
    let ms = Matrices::of(c.args.tensor(0)?);
    let (mut lus, mut pivots) = (Pieces::of(&c.outs[at], ms.count), Pieces::of(&c.outs[at + 1], ms.count));
    for i in 0..ms.count {
        let m = ms.get(i);
        let one = if turned { k::lu(m.transposed()) } else { k::lu(m.clone()) };
        lus.put(i, &one.lu.data);
        pivots.put(i, &one.pivots);
        f(i, &one)?;
    }
    Ok((lus, pivots))
}
fn finish_both((lus, pivots): (Pieces<'_, f64>, Pieces<'_, i64>)) {
    lus.finish();
    pivots.finish();
}
/// The room of [`factors`] for its results.
fn factors_room(x: &Meta, outs: &[Meta]) -> usize {
    let (all, m, n) = matrices_room(x);
    all + pieces_room(outs) + k::matrix_room(m, n) + k::lu_room(m, n)
}
/// A determinant is that of the transpose: PyTorch factors that of row-major matrices, to spare a copy.
fn det_run(c: &Call<'_>) -> Result<()> {
    let mut dets = Pieces::of(&c.outs[0], c.outs[0].numel());
    let all = factors(c, 1, true, |i, f| {
        dets.put(i, &[f.det()]);
        Ok(())
    })?;
    finish_both(all);
    dets.finish();
    Ok(())
}
fn slogdet_run(c: &Call<'_>) -> Result<()> {
    let count = c.outs[0].numel();
    let (mut signs, mut logs) = (Pieces::of(&c.outs[0], count), Pieces::of(&c.outs[1], count));
    let all = factors(c, 2, true, |i, f| {
        let (sign, log) = f.log_det();
        signs.put(i, &[sign]);
        logs.put(i, &[log]);
        Ok(())
    })?;
    finish_both(all);
    signs.finish();
    logs.finish();
    Ok(())
}
fn factors_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(factors_room(a.tensor(0)?, outs))
}

/// `(A, *, pivot, check_errors)`.
fn lu_factor_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "torch.lu_factor", false)?;
    ensure!(a.bool(1)?, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
    Ok(smallvec![by_columns(x.dtype, x.sizes()), pivots(x), rows(DType::I32, parts(x).0, &[])])
}
fn lu_factor_run(c: &Call<'_>) -> Result<()> {
    let mut info = Pieces::of(&c.outs[2], c.outs[2].numel());
    let all = factors(c, 0, false, |i, f| {
        info.put(i, &[f.info]);
        Ok(())
    })?;
    finish_both(all);
    if let Some(bad) = info.all.iter().find(|&&i| i != 0).filter(|_| c.args.bool(2).unwrap_or(false)) {
        return fail(format!(
            "torch.linalg.lu_factor: U[{bad},{bad}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        ));
    }
    info.finish();
    Ok(())
}

/// How the right side of an equation stands to the matrices.
struct Sides {
    /// The right side is a vector for each matrix.
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
    let batch = Dims::<i64>::from_slice(&crate::iter::broadcast_sizes(&[&a[..a.len() - 2], &b[..b.len() - 2]])?);
    Ok(Sides { vector, batch })
}

/// For every element of a batch, the element of a smaller one that broadcasts to it.
fn indices(own: &[i64], batch: &[i64]) -> Temp<isize> {
    cells(&crate::iter::broadcast(&Layout::contiguous(own), batch))
}

/// `(A, B, *, left, check_errors)`.
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
        // PyTorch lays the vectors out as if they were the rows of a matrix by columns.
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
fn solve_run(c: &Call<'_>) -> Result<()> {
    let (x, b, left, checked) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.bool(2)?, c.args.bool(3)?);
    let s = sides(x.sizes(), b.sizes())?;
    let n = x.sizes()[x.sizes().len() - 1] as usize;
    let (from_a, from_b) = (indices(&x.sizes()[..x.sizes().len() - 2], &s.batch), {
        let own = if s.vector { &b.sizes()[..b.sizes().len() - 1] } else { &b.sizes()[..b.sizes().len() - 2] };
        indices(own, &s.batch)
    });
    let rhs = if s.vector { Matrices::columns(b) } else { Matrices::of(b) };
    let mut info = Pieces::of(&c.outs[3], c.outs[3].numel());
    let mut out = Pieces::of(&c.outs[0], from_a.len());
    let (lus, pivots) = factors(c, 1, false, |i, f| {
        if checked && f.info != 0 {
            return fail(format!(
                "torch.linalg.solve: {}The solver failed because the input matrix is singular.",
                element(i, x.sizes())
            ));
        }
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
    // The right side of one system, turned and turned again; and the factors, turned.
    let one = 3 * room::<f64>(side as usize) + k::matrix_room(n as usize, n as usize);
    let rhs = room::<f64>(b.layout.numel() as usize);
    Ok(factors_room(x, outs) + 2 * room::<isize>(batch) + rhs + one)
}

/// `(self, B, *, upper, left, unitriangular)`.
fn triangular_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, b, left) = (a.tensor(0)?, a.tensor(1)?, a.bool(3)?);
    check(x, "linalg.solve_triangular", true)?;
    check(b, "linalg.solve_triangular", false)?;
    ensure!(x.dtype == b.dtype, "linalg.solve_triangular: Expected A and B to have the same dtype");
    let (p, q) = (b.sizes()[b.rank() - 2], b.sizes()[b.rank() - 1]);
    ensure!((if left { p } else { q }) == parts(x).1, "linalg.solve_triangular: Incompatible shapes of A and B");
    let batch = crate::iter::broadcast_sizes(&[parts(x).0, parts(b).0])?;
    let sizes = with(&batch, &[p, q]);
    one(by_columns(x.dtype, &sizes))
}
fn triangular_run(c: &Call<'_>) -> Result<()> {
    let (x, b) = (c.args.tensor(0)?, c.args.tensor(1)?);
    let (upper, left, unit) = (c.args.bool(2)?, c.args.bool(3)?, c.args.bool(4)?);
    let (sx, sb) = (&x.sizes()[..x.sizes().len() - 2], &b.sizes()[..b.sizes().len() - 2]);
    let batch = crate::iter::broadcast_sizes(&[sx, sb])?;
    let (xs, bs) = (Matrices::of(x), Matrices::of(b));
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
    let ((x, n, _), (b, p, q)) = (matrices_room(a.tensor(0)?), matrices_room(a.tensor(1)?));
    let batch = parts(&outs[0]).0.iter().product::<i64>() as usize;
    let one = 2 * k::matrix_room(n, n) + 3 * k::matrix_room(p, q);
    Ok(x + b + 2 * room::<isize>(batch) + pieces_room(outs) + one)
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

// Operators that are others with something left out.

fn pick(e: &mut dyn Emit, op: &str, args: Vec<restride_ir::Arg<Val, restride_ir::Scalar>>, which: &[usize]) -> Vals {
    let all = e.call(op, &args)?;
    which.iter().map(|&i| all.get(i).copied().ok_or_else(|| OpError::new(format!("{op} has no result {i}")))).collect()
}

macro_rules! picks {
    ($($f:ident => $op:literal [$($arg:expr),*] $which:expr;)*) => {$(
        fn $f(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
            let args = [$($arg as fn(&ValArgs<'_>) -> restride_ir::Arg<Val, restride_ir::Scalar>),*];
            let args = args.iter().map(|f| f(a)).collect();
            pick(e, $op, args, &$which)
        }
    )*};
}
picks! {
    inv => "aten.linalg_inv_ex.default" [|a| pass(a, 0), |_| true.operand()] [0];
    cholesky => "aten.linalg_cholesky_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand()] [0];
    det => "aten._linalg_det.default" [|a| pass(a, 0)] [0];
    slogdet => "aten._linalg_slogdet.default" [|a| pass(a, 0)] [0, 1];
    lu_factor => "aten.linalg_lu_factor_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand()] [0, 1];
    solve => "aten._linalg_solve_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |a| pass(a, 2), |_| true.operand()] [0];
    solve_ex => "aten._linalg_solve_ex.default" [|a| pass(a, 0), |a| pass(a, 1), |a| pass(a, 2), |a| pass(a, 3)] [0, 3];
    eigh => "aten._linalg_eigh.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand()] [0, 1];
    eigvalsh => "aten._linalg_eigh.default" [|a| pass(a, 0), |a| pass(a, 1), |_| false.operand()] [0];
    svd => "aten._linalg_svd.default" [|a| pass(a, 0), |a| pass(a, 1), |_| true.operand(), |a| pass(a, 2)] [0, 1, 2];
    svdvals => "aten._linalg_svd.default" [|a| pass(a, 0), |_| false.operand(), |_| false.operand(), |a| pass(a, 1)] [1];
}

fn logdet(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let det = emit!(e, "aten.linalg_det.default", pass(a, 0))?;
    Ok(smallvec![emit!(e, "aten.log.default", det)?])
}

macro_rules! kernel {
    ($infer:ident, $run:ident, $room:ident, $samples:expr, $schema:expr) => {
        OpDef {
            infer: Some($infer),
            kernel: Kernel::Fixed($run),
            scratch: Some($room),
            samples: Some(|| $samples),
            ..OpDef::new($schema)
        }
    };
}
macro_rules! composite {
    ($f:ident, $samples:expr, $schema:expr) => {
        OpDef { infer: composed!($f), decompose: Some($f), samples: Some(|| $samples), ..OpDef::new($schema) }
    };
}
/// Vectors are determined but for their signs: only sizes compare, the values are a matter of the kernels' tests.
const UP_TO_SIGN: Exactness = Exactness::Random;

pub(crate) static OPS: &[OpDef] = &[
    kernel!(
        inv_infer,
        inv_run,
        inv_scratch,
        regular_samples().split_off(2),
        "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)"
    ),
    composite!(inv, regular_samples(), "aten::linalg_inv(Tensor A) -> Tensor"),
    composite!(inv, regular_samples(), "aten::inverse(Tensor self) -> Tensor"),
    kernel!(
        cholesky_infer,
        cholesky_run,
        cholesky_scratch,
        definite_samples(),
        "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)"
    ),
    composite!(cholesky, definite_samples(), "aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor"),
    OpDef {
        strided: true,
        ..kernel!(
            det_infer,
            det_run,
            factors_scratch,
            regular_samples(),
            "aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)"
        )
    },
    composite!(det, regular_samples(), "aten::linalg_det(Tensor A) -> Tensor"),
    composite!(det, regular_samples(), "aten::det(Tensor self) -> Tensor"),
    OpDef {
        strided: true,
        ..kernel!(
            slogdet_infer,
            slogdet_run,
            factors_scratch,
            regular_samples(),
            "aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)"
        )
    },
    composite!(slogdet, regular_samples(), "aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)"),
    composite!(slogdet, regular_samples(), "aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)"),
    composite!(logdet, regular_samples(), "aten::logdet(Tensor self) -> Tensor"),
    kernel!(
        lu_factor_infer,
        lu_factor_run,
        factors_scratch,
        factor_samples(),
        "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)"
    ),
    composite!(
        lu_factor,
        factor_samples(),
        "aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)"
    ),
    kernel!(
        solve_infer,
        solve_run,
        solve_scratch,
        solve_samples(),
        "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)"
    ),
    composite!(solve, solve_samples(), "aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor"),
    composite!(
        solve_ex,
        solve_samples(),
        "aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)"
    ),
    kernel!(
        triangular_infer,
        triangular_run,
        triangular_scratch,
        triangular_samples(),
        "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor"
    ),
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

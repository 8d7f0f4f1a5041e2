//! Dense linear algebra over the last two dimensions.

use crate::composite::composed;
use crate::nn::*;
use crate::promote::name;
use crate::sample::{expanded, laid, sample, strided, tensor, transposed};
use restride_ir::{Args, Call, DType, Emit, Exactness, Kernel, Layout, Meta, OpDef, OpError, Sample, Val};
use restride_kernels::linalg::{self as k, Matrix};
use restride_tensor::{Tensor, ViewMut};
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

/// All numbers of matrices, one after the other.
fn flat(ms: &[Matrix]) -> Vec<f64> {
    ms.iter().flat_map(|m| m.data.iter().copied()).collect()
}

fn put(ms: &[Matrix], out: &ViewMut<'_>) {
    k::write(&flat(ms), out);
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
    let (mut out, mut info) = (Vec::new(), Vec::new());
    for (i, m) in k::matrices(x).into_iter().enumerate() {
        let n = m.rows;
        let f = k::lu(m);
        if c.args.bool(1)? && f.info != 0 {
            return fail(format!(
                "linalg.inv: {}The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
                element(i, x.sizes()),
                f.info
            ));
        }
        info.push(f.info);
        out.push(f.solve(Matrix::eye(n, n)));
    }
    put(&out, &c.outs[0]);
    k::write_ints(&info, &c.outs[1]);
    Ok(())
}

fn cholesky_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.cholesky", true)?;
    Ok(smallvec![by_columns(x.dtype, x.sizes()), rows(DType::I32, parts(x).0, &[])])
}
fn cholesky_run(c: &Call<'_>) -> Result<()> {
    let (x, upper, checked) = (c.args.tensor(0)?, c.args.bool(1)?, c.args.bool(2)?);
    let (mut out, mut info) = (Vec::new(), Vec::new());
    for (i, m) in k::matrices(x).into_iter().enumerate() {
        let (l, bad) = k::cholesky(&if upper { m.transposed() } else { m });
        if checked && bad != 0 {
            return fail(format!(
                "linalg.cholesky: {}The factorization could not be completed because the input is not positive-definite (the leading minor of order {bad} is not positive-definite).",
                element(i, x.sizes())
            ));
        }
        info.push(bad);
        out.push(if upper { l.transposed() } else { l });
    }
    put(&out, &c.outs[0]);
    k::write_ints(&info, &c.outs[1]);
    Ok(())
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
/// Factors of all matrices into two results.
fn factors(c: &Call<'_>, at: usize, turned: bool) -> Result<Vec<k::Lu>> {
    let turn = |m: Matrix| if turned { m.transposed() } else { m };
    let all: Vec<k::Lu> = k::matrices(c.args.tensor(0)?).into_iter().map(|m| k::lu(turn(m))).collect();
    let lus: Vec<f64> = all.iter().flat_map(|f| f.lu.data.iter().copied()).collect();
    k::write(&lus, &c.outs[at]);
    k::write_ints(&all.iter().flat_map(|f| f.pivots.iter().copied()).collect::<Vec<_>>(), &c.outs[at + 1]);
    Ok(all)
}
/// A determinant is that of the transpose: PyTorch factors that of row-major matrices, to spare a copy.
fn det_factors(c: &Call<'_>, at: usize) -> Result<Vec<k::Lu>> {
    factors(c, at, true)
}
fn det_run(c: &Call<'_>) -> Result<()> {
    let all = det_factors(c, 1)?;
    k::write(&all.iter().map(k::Lu::det).collect::<Vec<_>>(), &c.outs[0]);
    Ok(())
}
fn slogdet_run(c: &Call<'_>) -> Result<()> {
    let (signs, logs): (Vec<f64>, Vec<f64>) = det_factors(c, 2)?.iter().map(k::Lu::log_det).unzip();
    k::write(&signs, &c.outs[0]);
    k::write(&logs, &c.outs[1]);
    Ok(())
}

/// `(A, *, pivot, check_errors)`.
fn lu_factor_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "torch.lu_factor", false)?;
    ensure!(a.bool(1)?, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
    Ok(smallvec![by_columns(x.dtype, x.sizes()), pivots(x), rows(DType::I32, parts(x).0, &[])])
}
fn lu_factor_run(c: &Call<'_>) -> Result<()> {
    let all = factors(c, 0, false)?;
    let info: Vec<i64> = all.iter().map(|f| f.info).collect();
    if let Some(bad) = info.iter().find(|&&i| i != 0).filter(|_| c.args.bool(2).unwrap_or(false)) {
        return fail(format!(
            "torch.linalg.lu_factor: U[{bad},{bad}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        ));
    }
    k::write_ints(&info, &c.outs[2]);
    Ok(())
}

/// How the right side of an equation stands to the matrices.
struct Sides {
    /// The right side is a vector for each matrix.
    vector: bool,
    /// Batch dimensions of the result.
    batch: Vec<i64>,
}

fn sides(a: &[i64], b: &[i64]) -> Result<Sides> {
    let vector = b.len() == 1 || (b.len() + 1 == a.len() && b == &a[..a.len() - 1]);
    if vector {
        let batch = a[..a.len() - 2].to_vec();
        return Ok(Sides { vector, batch });
    }
    ensure!(b.len() >= 2, "linalg.solve: The input tensor B must have at least 2 dimensions.");
    let batch = crate::iter::broadcast_sizes(&[&a[..a.len() - 2], &b[..b.len() - 2]])?.to_vec();
    Ok(Sides { vector, batch })
}

/// For every element of a batch, the element of a smaller one that broadcasts to it.
fn indices(own: &[i64], batch: &[i64]) -> Vec<usize> {
    let wide = crate::iter::broadcast(&Layout::contiguous(own), batch);
    wide.cells().into_iter().map(|c| c as usize).collect()
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
    let all = factors(c, 1, false)?;
    if let Some(i) = all.iter().position(|f| f.info != 0).filter(|_| checked) {
        return fail(format!(
            "torch.linalg.solve: {}The solver failed because the input matrix is singular.",
            element(i, x.sizes())
        ));
    }
    k::write_ints(&all.iter().map(|f| f.info).collect::<Vec<_>>(), &c.outs[3]);
    let s = sides(x.sizes(), b.sizes())?;
    let n = x.sizes()[x.sizes().len() - 1] as usize;
    let (from_a, from_b) = (indices(&x.sizes()[..x.sizes().len() - 2], &s.batch), {
        let own = if s.vector { &b.sizes()[..b.sizes().len() - 1] } else { &b.sizes()[..b.sizes().len() - 2] };
        indices(own, &s.batch)
    });
    let rhs: Vec<Matrix> = if s.vector {
        let data = restride_kernels::convert::gather::<f64>(*b);
        data.chunks(n.max(1)).map(|v| Matrix { rows: n, cols: 1, data: v.to_vec() }).collect()
    } else {
        k::matrices(b)
    };
    let mut out = Vec::new();
    if n > 0 {
        for (&i, &j) in from_a.iter().zip(&from_b) {
            out.push(if left {
                all[i].solve(rhs[j].clone())
            } else {
                all[i].solve_transposed(rhs[j].transposed()).transposed()
            });
        }
    }
    put(&out, &c.outs[0]);
    Ok(())
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
    let (xs, bs) = (k::matrices(x), k::matrices(b));
    let mut out = Vec::new();
    for (i, j) in indices(sx, &batch).into_iter().zip(indices(sb, &batch)) {
        let mut rhs = bs[j].clone();
        if left {
            k::triangular(&xs[i], &mut rhs, upper, unit);
        } else {
            rhs = rhs.transposed();
            k::triangular(&xs[i].transposed(), &mut rhs, !upper, unit);
            rhs = rhs.transposed();
        }
        out.push(rhs);
    }
    put(&out, &c.outs[0]);
    Ok(())
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
    let (q, r): (Vec<_>, Vec<_>) = k::matrices(c.args.tensor(0)?).into_iter().map(|m| k::qr(m, complete)).unzip();
    if wanted {
        put(&q, &c.outs[0]);
    }
    put(&r, &c.outs[1]);
    Ok(())
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
    let (values, vectors): (Vec<_>, Vec<_>) = k::matrices(c.args.tensor(0)?).iter().map(|m| k::eigh(m, upper)).unzip();
    k::write(&values.concat(), &c.outs[0]);
    if c.args.bool(2)? {
        put(&vectors, &c.outs[1]);
    }
    Ok(())
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
    let (mut us, mut ss, mut vs) = (Vec::new(), Vec::new(), Vec::new());
    for m in k::matrices(c.args.tensor(0)?) {
        let (u, s, v) = k::svd(&m, full && vectors);
        us.push(u);
        ss.extend(s);
        vs.push(v.transposed());
    }
    k::write(&ss, &c.outs[1]);
    if vectors {
        put(&us, &c.outs[0]);
        put(&vs, &c.outs[2]);
    }
    Ok(())
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

/// Square matrices far from singular.
pub(crate) fn regular(d: DType, batch: &[i64], n: i64, seed: u64) -> Tensor {
    symmetric(d, batch, n, seed, false)
}

/// Matrices with large numbers on the diagonal; positive definite if `mirrored`.
fn symmetric(d: DType, batch: &[i64], n: i64, seed: u64, mirrored: bool) -> Tensor {
    let sizes = with(batch, &[n, n]);
    let noise = laid(DType::F64, Layout::contiguous(&sizes), seed).to_elements::<f64>();
    let n = n as usize;
    let mut data = noise.clone();
    for (i, x) in data.iter_mut().enumerate() {
        let (m, r, c) = (i / (n * n), i / n % n, i % n);
        if mirrored {
            *x = (noise[i] + noise[m * n * n + c * n + r]) / 2.0;
        }
        if r == c {
            *x += 2.0 * n as f64 + r as f64;
        }
    }
    let t = Tensor::zeros(d, Layout::contiguous(&sizes));
    restride_kernels::convert::scatter(&data, t.view_mut());
    t
}

fn turned(t: &Tensor) -> Tensor {
    let rank = t.layout().rank();
    let l = t.layout().transpose(rank as i64 - 2, rank as i64 - 1).expect("two dimensions");
    t.alias(t.dtype(), l).expect("the same cells")
}

fn square_samples() -> Vec<Sample> {
    let d = DType::F32;
    vec![
        sample![symmetric(d, &[], 4, 1, true)],
        sample![turned(&symmetric(d, &[2, 3], 3, 2, true))],
        sample![symmetric(DType::F64, &[2], 5, 3, true)],
        sample![symmetric(d, &[], 1, 3, true)],
        sample![symmetric(d, &[2], 0, 3, true)],
        sample![symmetric(d, &[0], 3, 3, true)],
        sample![tensor(d, &[3, 4], 1)],
        sample![tensor(d, &[3], 1)],
        sample![tensor(DType::I64, &[3, 3], 1)],
        sample![tensor(DType::F16, &[3, 3], 1)],
    ]
}

fn regular_samples() -> Vec<Sample> {
    let mut out = square_samples();
    let d = DType::F32;
    out.extend([
        sample![regular(d, &[], 4, 1)],
        sample![turned(&regular(d, &[2], 4, 1))],
        sample![tensor(DType::F64, &[6, 6], 3)],
        sample![expanded(DType::F64, &[2, 3, 3], 4)],
        sample![Tensor::zeros(d, Layout::contiguous(&[3, 3]))],
    ]);
    out
}

fn factor_samples() -> Vec<Sample> {
    [regular_samples(), crate::linalg_lu::matrix_samples()].concat()
}

fn with_args(samples: Vec<Sample>, args: Vec<restride_ir::SampleArg>) -> Vec<Sample> {
    samples
        .into_iter()
        .map(|mut s| {
            s.args.extend(args.iter().cloned());
            s
        })
        .collect()
}

fn definite_samples() -> Vec<Sample> {
    let mut out = square_samples();
    let upper = with_args(square_samples(), vec![crate::sample::IntoArg::arg(true)]);
    out.extend(upper.into_iter().take(2));
    out
}

fn solve_samples() -> Vec<Sample> {
    let d = DType::F32;
    let mut out = Vec::new();
    for left in [true, false] {
        out.push(sample![
            regular(d, &[], 4, 1),
            if left { tensor(d, &[4, 2], 2) } else { tensor(d, &[2, 4], 2) },
            left
        ]);
        out.push(sample![
            regular(d, &[3], 4, 1),
            if left { tensor(d, &[4, 2], 2) } else { tensor(d, &[2, 4], 2) },
            left
        ]);
        out.push(sample![regular(d, &[], 3, 1), tensor(d, &[2, 3, 3], 2), left]);
        out.push(sample![turned(&regular(DType::F64, &[2], 3, 1)), transposed(DType::F64, &[2, 3, 3], 2), left]);
        out.push(sample![regular(d, &[], 3, 1), strided(d, &[3], 2), left]);
    }
    out.extend([
        sample![regular(d, &[2], 3, 1), tensor(d, &[2, 3], 2)],
        sample![regular(d, &[2], 3, 1), tensor(d, &[3], 2)],
        sample![regular(d, &[2], 3, 1), tensor(d, &[4, 2], 2)],
        sample![regular(d, &[2], 3, 1), tensor(DType::F64, &[3, 2], 2)],
        sample![regular(d, &[2], 3, 1), tensor(d, &[3, 0], 2)],
    ]);
    out
}

fn triangular_samples() -> Vec<Sample> {
    let d = DType::F32;
    let mut out = Vec::new();
    for (upper, left, unit) in [(true, true, false), (false, true, true), (true, false, false), (false, false, false)] {
        let b = if left { tensor(d, &[4, 2], 2) } else { tensor(d, &[2, 4], 2) };
        out.push(sample![regular(d, &[], 4, 1), &b, upper, left, unit]);
        out.push(sample![turned(&regular(d, &[3], 4, 1)), &b, upper, left, unit]);
    }
    out.push(sample![regular(d, &[], 4, 1), tensor(d, &[3, 2], 2), true]);
    out
}

fn qr_samples() -> Vec<Sample> {
    let d = DType::F32;
    let mut out: Vec<Sample> = forms(d, &[2, 4, 3], 1).into_iter().map(|x| sample![x]).collect();
    for mode in ["reduced", "complete", "r", "full"] {
        out.push(sample![tensor(d, &[4, 3], 1), mode]);
        out.push(sample![tensor(DType::F64, &[2, 3, 5], 1), mode]);
    }
    out.push(sample![tensor(d, &[0, 3], 1)]);
    out.push(sample![tensor(d, &[3], 1)]);
    out
}

fn svd_shapes() -> Vec<Sample> {
    let d = DType::F32;
    vec![
        sample![tensor(d, &[4, 3], 1)],
        sample![transposed(d, &[2, 3, 5], 1)],
        sample![strided(DType::F64, &[4, 4], 1)],
        sample![tensor(d, &[0, 3], 1)],
        sample![tensor(d, &[3], 1)],
    ]
}

fn eigh_samples() -> Vec<Sample> {
    let mut out = square_samples();
    out.extend(with_args(regular_samples().split_off(10), vec![crate::sample::IntoArg::arg("U")]));
    out
}

macro_rules! kernel {
    ($infer:ident, $run:ident, $samples:expr, $schema:expr) => {
        OpDef { infer: Some($infer), kernel: Kernel::Fixed($run), samples: Some(|| $samples), ..OpDef::new($schema) }
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
        regular_samples().split_off(2),
        "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)"
    ),
    composite!(inv, regular_samples(), "aten::linalg_inv(Tensor A) -> Tensor"),
    composite!(inv, regular_samples(), "aten::inverse(Tensor self) -> Tensor"),
    kernel!(
        cholesky_infer,
        cholesky_run,
        definite_samples(),
        "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)"
    ),
    composite!(cholesky, definite_samples(), "aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor"),
    OpDef {
        strided: true,
        ..kernel!(
            det_infer,
            det_run,
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
        triangular_samples(),
        "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor"
    ),
    kernel!(qr_infer, qr_run, qr_samples(), "aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)"),
    OpDef {
        exactness: UP_TO_SIGN,
        ..kernel!(
            eigh_infer,
            eigh_run,
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

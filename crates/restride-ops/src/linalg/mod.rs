//! Dense linear algebra over the last two dimensions: decompositions, solves, inverses, determinants and matrix functions.

mod check;
mod decompose;
mod function;
mod grad;
mod ldl;
mod lu;
#[cfg(feature = "samples")]
mod samples;
mod solve;
mod spectral;
mod spectral_grad;

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Layout, Meta, OpDef, OpError, Val};
use restride_kernels::linalg::{self as k, Field, MatrixBatch};
use restride_kernels::support::pack::unpack;
use restride_kernels::support::scratch::{Temp, room};
use restride_kernels::with_field;
use restride_tensor::ViewMut;
use smallvec::smallvec;

/// Refuses anything but matrices of `f32`, `f64` or complex numbers, and non-square ones if `square`.
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
    let (m, n) = (x.sizes()[x.rank() - 2], x.sizes()[x.rank() - 1]);
    ensure!(!square || m == n, "{what}: A must be batches of square matrices, but they are {m} by {n} matrices");
    Ok(())
}

/// Batch dimensions, rows and columns of matrices.
pub(crate) fn parts(x: &Meta) -> (&[i64], i64, i64) {
    let (batch, last) = x.sizes().split_at(x.rank() - 2);
    (batch, last[0], last[1])
}

pub(crate) fn with(batch: &[i64], rest: &[i64]) -> Vec<i64> {
    [batch, rest].concat()
}

/// Type of column-major matrices.
pub(crate) fn by_columns(dtype: DType, sizes: &[i64]) -> Meta {
    let mut l = Layout::contiguous(sizes);
    let rank = sizes.len();
    l.strides[rank - 2] = 1;
    l.strides[rank - 1] = sizes[rank - 2].max(1);
    Meta::new(dtype, l)
}

pub(crate) fn rows(dtype: DType, batch: &[i64], rest: &[i64]) -> Meta {
    fresh(dtype, &with(batch, rest))
}

/// A buffer of equal pieces of a result, one piece per matrix of a batch.
pub(crate) struct Pieces<'a, T: Copy> {
    pub all: Temp<T>,
    each: usize,
    out: &'a ViewMut<'a>,
}

impl<'a, T: restride_kernels::support::pack::Compute> Pieces<'a, T> {
    pub fn of(out: &'a ViewMut<'a>, count: usize) -> Self {
        Pieces { all: Temp::filled(out.numel(), T::default()), each: out.numel() / count.max(1), out }
    }
    pub fn put(&mut self, i: usize, piece: &[T]) {
        self.all[i * self.each..][..self.each].copy_from_slice(piece);
    }
    pub fn get(&self, i: usize) -> &[T] {
        &self.all[i * self.each..][..self.each]
    }
    pub fn finish(self) {
        unpack(&self.all, self.out);
    }
}

/// Scratch bytes for all elements of a tensor in the compute type; indices are as wide as real numbers.
pub(crate) fn element_bytes(x: &Meta) -> usize {
    let n = x.layout.numel() as usize;
    with_field!(x.dtype, T => room::<T>(n))
}

/// Scratch bytes of the [`Pieces`] of results.
pub(crate) fn piece_bytes(outs: &[Meta]) -> usize {
    outs.iter().map(element_bytes).sum()
}

/// Scratch bytes of an operand's elements, rows and columns of its matrices, and scratch bytes of one matrix.
pub(crate) fn matrix_bytes(x: &Meta) -> (usize, usize, usize, usize) {
    let (_, m, n) = parts(x);
    let one = with_field!(x.dtype, T => k::matrix_room::<T>(m as usize, n as usize));
    (element_bytes(x), m as usize, n as usize, one)
}

/// The element type of an absolute value.
pub(crate) fn real_of(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    }
}

/// Declares a kernel for real or complex matrices, chosen by the type of the first operand.
macro_rules! fields {
    ($($run:ident => $of:ident;)*) => {$(
        fn $run(c: &restride_ir::Call<'_>) -> $crate::support::Result<()> {
            restride_kernels::with_field!(c.args.tensor(0)?.dtype(), T => $of::<T>(c))
        }
    )*};
}
pub(crate) use fields;
fields! {
    inv_run => inv_of;
    det_run => det_of;
    slogdet_run => slogdet_of;
}

/// The batch element in an error message; PyTorch names it only if a batch exists.
pub(crate) fn element(i: usize, sizes: &[i64]) -> String {
    if sizes.len() > 2 { format!("(Batch element {i}): ") } else { String::new() }
}

fn inv_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    check(x, "linalg.inv", true)?;
    Ok(smallvec![by_columns(x.dtype, x.sizes()), rows(DType::I32, parts(x).0, &[])])
}
fn inv_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let x = c.args.tensor(0)?;
    let ms = MatrixBatch::<T>::of(x);
    let (mut out, mut info) = (Pieces::of(&c.outs[0], ms.count), Pieces::of(&c.outs[1], ms.count));
    for i in 0..ms.count {
        let f = k::lu(ms.get(i));
        ensure!(
            !c.args.bool(1)? || f.info == 0,
            "linalg.inv: {}The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
            element(i, x.sizes()),
            f.info
        );
        info.put(i, &[f.info]);
        out.put(i, &f.inverse().data);
    }
    out.finish();
    info.finish();
    Ok(())
}
fn inv_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (all, n, _, one) = matrix_bytes(a.tensor(0)?);
    Ok(all + piece_bytes(outs) + 2 * one + room::<i64>(n))
}

pub(crate) fn pivots(x: &Meta) -> Meta {
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
    let batch = parts(x).0;
    Ok(smallvec![
        rows(x.dtype, batch, &[]),
        rows(real_of(x.dtype), batch, &[]),
        by_columns(x.dtype, x.sizes()),
        pivots(x)
    ])
}
/// Factors all matrices into the results from `at` on, and passes each matrix's factors to `f`.
pub(crate) fn factors<'a, T: Field>(
    c: &Call<'a>,
    at: usize,
    mut f: impl FnMut(usize, &k::Lu<T>) -> Result<()>,
) -> Result<(Pieces<'a, T>, Pieces<'a, i64>)> {
    let ms = MatrixBatch::<T>::of(c.args.tensor(0)?);
    let (mut lus, mut pivots) = (Pieces::of(&c.outs[at], ms.count), Pieces::of(&c.outs[at + 1], ms.count));
    for i in 0..ms.count {
        let one = k::lu(ms.get(i));
        lus.put(i, &one.lu.data);
        pivots.put(i, &one.pivots);
        f(i, &one)?;
    }
    Ok((lus, pivots))
}
pub(crate) fn finish_both<T: Field>((lus, pivots): (Pieces<'_, T>, Pieces<'_, i64>)) {
    lus.finish();
    pivots.finish();
}
/// Scratch bytes of [`factors`] for its results.
pub(crate) fn factor_bytes(x: &Meta, outs: &[Meta]) -> usize {
    let (all, m, n, one) = matrix_bytes(x);
    all + piece_bytes(outs) + 2 * one + room::<i64>(m.min(n))
}
/// Determinants of all matrices, from factors that are the results from `at` on.
///
/// PyTorch factors the transpose of a row-major real matrix, to avoid a copy. The determinant is the same; only the factors
/// depend on the strides.
fn determinants<T: Field>(c: &Call<'_>, at: usize, mut f: impl FnMut(usize, &k::Lu<T>)) -> Result<()> {
    let x = c.args.tensor(0)?;
    let row_major = x.layout().is_contiguous();
    let ms = MatrixBatch::<T>::of(x);
    let (mut lus, mut pivots) = (Pieces::of(&c.outs[at], ms.count), Pieces::of(&c.outs[at + 1], ms.count));
    for i in 0..ms.count {
        let m = ms.get(i);
        let one = k::lu(if T::COMPLEX { m.clone() } else { m.transposed() });
        f(i, &one);
        let other = (!T::COMPLEX && !row_major).then(|| k::lu(m.clone()));
        let kept = other.as_ref().unwrap_or(&one);
        lus.put(i, &kept.lu.data);
        pivots.put(i, &kept.pivots);
    }
    finish_both((lus, pivots));
    Ok(())
}
fn det_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let mut dets = Pieces::of(&c.outs[0], c.outs[0].numel());
    determinants::<T>(c, 1, |i, f| dets.put(i, &[f.det()]))?;
    dets.finish();
    Ok(())
}
fn slogdet_of<T: Field>(c: &Call<'_>) -> Result<()> {
    let count = c.outs[0].numel();
    let (mut signs, mut logs) = (Pieces::of(&c.outs[0], count), Pieces::of(&c.outs[1], count));
    determinants::<T>(c, 2, |i, f| {
        let (sign, log) = f.log_det();
        signs.put(i, &[sign]);
        logs.put(i, &[log]);
    })?;
    signs.finish();
    logs.finish();
    Ok(())
}
fn det_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let x = a.tensor(0)?;
    let (_, n, _, one) = matrix_bytes(x);
    let other = if x.layout.is_contiguous() { 0 } else { one + room::<i64>(n) };
    Ok(factor_bytes(x, outs) + other)
}
pub(crate) fn factors_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(factor_bytes(a.tensor(0)?, outs))
}

// Operators that return some results of another one.

pub(crate) fn pick(
    e: &mut dyn Emit,
    op: &str,
    args: Vec<restride_ir::Arg<Val, restride_ir::Scalar>>,
    which: &[usize],
) -> Vals {
    let all = e.call(op, &args)?;
    which.iter().map(|&i| all.get(i).copied().ok_or_else(|| OpError::new(format!("{op} has no result {i}")))).collect()
}

macro_rules! picks {
    ($($f:ident => $op:literal [$($arg:expr),*] $which:expr;)*) => {$(
        fn $f(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
            let args = [$($arg as fn(&ValArgs<'_>) -> restride_ir::Arg<restride_ir::Val, restride_ir::Scalar>),*];
            let args = args.iter().map(|f| f(a)).collect();
            $crate::linalg::pick(e, $op, args, &$which)
        }
    )*};
}
pub(crate) use picks;
picks! {
    inv => "aten.linalg_inv_ex.default" [|a| pass(a, 0), |_| true.operand()] [0];
    det => "aten._linalg_det.default" [|a| pass(a, 0)] [0];
    slogdet => "aten._linalg_slogdet.default" [|a| pass(a, 0)] [0, 1];
}

/// `logdet`: the logarithm of a real, negative determinant is NaN.
fn logdet(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let made = emit_all!(e, "aten.linalg_slogdet.default", pass(a, 0))?;
    let [sign, log] = made[..] else { return fail("linalg_slogdet has two results") };
    Ok(smallvec![if e.meta(sign).dtype.is_complex() {
        let sign = emit!(e, "aten.log.default", sign)?;
        emit!(e, "aten.add.Tensor", sign, log)?
    } else {
        let negative = emit!(e, "aten.eq.Scalar", sign, -1.0)?;
        emit!(e, "aten.masked_fill.Scalar", log, negative, f64::NAN)?
    }])
}

macro_rules! kernel {
    ($infer:ident, $run:ident, $scratch:ident, $samples:expr, $schema:expr) => {
        close($schema, $infer, $run, $scratch, samples!(|| $samples))
    };
}
pub(crate) use kernel;
pub(crate) static OPS: &[OpDef] = table![
    kernel!(inv_infer, inv_run, inv_scratch, regular_samples().split_off(2), "linalg_inv_ex").failing(),
    composite!(inv, regular_samples(), "linalg_inv").failing(),
    OpDef { strided: true, ..kernel!(det_infer, det_run, det_scratch, regular_samples(), "_linalg_det") },
    composite!(det, regular_samples(), "linalg_det"),
    OpDef { strided: true, ..kernel!(slogdet_infer, slogdet_run, det_scratch, regular_samples(), "_linalg_slogdet") },
    composite!(slogdet, regular_samples(), "linalg_slogdet"),
    composite!(logdet, regular_samples(), "logdet"),
];

/// Other names of PyTorch for operators of this family.
static ALIASES: &[(&str, &str)] = &[
    ("det", "linalg_det"),
    ("inverse", "linalg_inv"),
    ("slogdet", "linalg_slogdet"),
    ("matrix_power", "linalg_matrix_power"),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[OPS, check::OPS, decompose::OPS, solve::OPS, lu::OPS, ldl::OPS, spectral::OPS, function::OPS],
    gradients: &[grad::GRADS, spectral_grad::GRADS],
    aliases: ALIASES,
};

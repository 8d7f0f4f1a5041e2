//! Products with a constant matrix that was packed once: what `linear`, `mm`, `matmul` and `addmm` become where a weight is constant.
//!
//! The packed operators have the arguments of the plain ones, and last the columns of the matrix.

use super::into;
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, Meta, OpDef, Prepacked};
use restride_kernels::matmul::packed::{compute, pack, packed_len, product_packed};
use restride_kernels::matmul::{self, Added};

/// Rows from which on a product reads a packed operand faster than the operand in its own strides.
const FEW: i64 = 2;
/// Rows up to which packing the operand in each run would be felt beside the product.
const MANY: i64 = 512;
/// Columns and rows of the operand below which it is not worth memory of its own.
const SMALL: i64 = 16;

/// The sizes of a `k` × `n` operand of a product whose left operand is `x`, if packing it pays.
fn pays(x: &Meta, w: &Meta, transposed: bool) -> Option<i64> {
    let &[rows, cols] = w.sizes() else { return None };
    let (k, n) = if transposed { (cols, rows) } else { (rows, cols) };
    let of = x.rank().checked_sub(1)?;
    let many = x.sizes()[..of].iter().product::<i64>();
    // Half types are read where they are: packed they would take twice the memory.
    let kept = compute(w.dtype) == Some(w.dtype) && x.dtype == w.dtype;
    (kept && (FEW..=MANY).contains(&many) && k.min(n) >= SMALL).then_some(n)
}

/// A form with a packed right operand.
const fn form(operand: u8, call: &'static str, numbers: restride_ir::PrepackFn) -> Prepacked {
    Prepacked { operand, pack: "restride.pack_matrix.default", call, numbers }
}

pub(super) static LINEAR: Prepacked = form(1, "restride.linear_packed.default", |a| {
    Some((vec![1], vec![pays(a.tensor(0).ok()?, a.tensor(1).ok()?, true)?]))
});
pub(super) static MM: Prepacked = form(1, "restride.mm_packed.default", |a| {
    Some((vec![0], vec![pays(a.tensor(0).ok()?, a.tensor(1).ok()?, false)?]))
});
pub(super) static ADDMM: Prepacked = form(2, "restride.addmm_packed.default", |a| {
    Some((vec![0], vec![pays(a.tensor(1).ok()?, a.tensor(2).ok()?, false)?]))
});

/// The matrix of argument 0, or where argument 1 says so its transpose.
fn packing(a: &Args<'_, Meta>) -> Metas {
    let w = a.tensor(0)?;
    let &[rows, cols] = w.sizes() else { return fail(format!("a {}-D tensor is no matrix to pack", w.rank())) };
    let (k, n) = if a.bool(1)? { (cols, rows) } else { (rows, cols) };
    match (compute(w.dtype), packed_len(w.dtype, k as usize, n as usize)) {
        (Some(dtype), Some(len)) => one(fresh(dtype, &[len as i64])),
        _ => fail(format!("matrices of {} are not packed", w.dtype.torch_name())),
    }
}

fn packing_kernel(c: &Call<'_>) -> Result<()> {
    ran(pack(c.args.tensor(0)?, c.args.bool(1)?, &c.outs[0]))
}

/// The result of `x` times the packed matrix `w` of `n` columns.
fn product_meta(x: &Meta, w: &Meta, n: i64) -> Result<Meta> {
    let Some((&k, rows)) = x.sizes().split_last() else { return fail("a number has no product with a packed matrix") };
    let fits = usize::try_from(n).ok().and_then(|n| packed_len(x.dtype, k as usize, n));
    ensure!(
        fits.map(|len| len as i64) == Some(w.layout.numel()) && w.rank() == 1 && compute(x.dtype) == Some(w.dtype),
        "{} packed elements of {} are no {k} x {n} matrix of {}",
        w.layout.numel(),
        w.dtype.torch_name(),
        x.dtype.torch_name()
    );
    Ok(fresh(x.dtype, &[rows, &[n]].concat()))
}

fn product(a: &Args<'_, Meta>) -> Metas {
    one(product_meta(a.tensor(0)?, a.tensor(1)?, a.int(2)?)?)
}

fn linear(a: &Args<'_, Meta>) -> Metas {
    let out = product_meta(a.tensor(0)?, a.tensor(1)?, a.int(3)?)?;
    match a.opt_tensor(2)? {
        Some(b) => into(b, out),
        None => one(out),
    }
}

fn addmm(a: &Args<'_, Meta>) -> Metas {
    into(a.tensor(0)?, product_meta(a.tensor(1)?, a.tensor(2)?, a.int(5)?)?)
}

fn product_kernel(c: &Call<'_>) -> Result<()> {
    run(c, (0, 1), c.args.int(2)?, &Added::NONE)
}

fn linear_kernel(c: &Call<'_>) -> Result<()> {
    run(c, (0, 1), c.args.int(3)?, &Added::bias(c.args.opt_tensor(2)?.copied()))
}

fn addmm_kernel(c: &Call<'_>) -> Result<()> {
    let added = Added { c: Some(*c.args.tensor(0)?), beta: c.args.scalar(3)?, alpha: c.args.scalar(4)? };
    run(c, (1, 2), c.args.int(5)?, &added)
}

fn run(c: &Call<'_>, (x, w): (usize, usize), n: i64, added: &Added<'_>) -> Result<()> {
    ran(product_packed(c.args.tensor(x)?, c.args.tensor(w)?, n as usize, added, &c.outs[0], c.ctx.threads))
}

/// Scratch bytes of a product.
fn of_product(_: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(matmul::product_room(stored(&outs[0])))
}

pub(super) static OPS: &[OpDef] = table![
    without_scratch("restride::pack_matrix(Tensor self, bool transposed) -> Tensor", packing, packing_kernel, None)
        .noted("a matrix, or its transpose, in the order in which products read it; the processor decides on that"),
    close("restride::mm_packed(Tensor self, Tensor mat2, SymInt columns) -> Tensor", product, product_kernel, of_product, None)
        .counted(super::macs::<0>)
        .finishing(super::finished)
        .noted("the last dimension of x times a packed matrix"),
    OpDef {
        by_row: true,
        ..close(
            "restride::linear_packed(Tensor input, Tensor weight, Tensor? bias, SymInt columns) -> Tensor",
            linear,
            linear_kernel,
            of_product,
            None,
        )
    }
    .counted(super::macs::<0>)
    .finishing(super::finished)
    .noted("linear with a packed weight"),
    close(
        "restride::addmm_packed(Tensor self, Tensor mat1, Tensor mat2, Scalar beta, Scalar alpha, SymInt columns) -> Tensor",
        addmm,
        addmm_kernel,
        of_product,
        None,
    )
    .counted(super::macs::<1>)
    .finishing(super::finished)
    .noted("addmm with a packed matrix"),
];

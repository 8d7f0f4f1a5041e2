//! Assertions: operators without results that fail if a condition does not hold.

use restride_ir::{Arg, Args, Call, Exactness, Expr, Kernel, Meta, OpDef, OpError, Scalar, within};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

fn nothing(_: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    Ok(SmallVec::new())
}

fn assert_scalar(c: &Call<'_>) -> Result<()> {
    if c.args.scalar(0)?.as_bool() { Ok(()) } else { Err(OpError::new(c.args.str(1)?)) }
}

fn truth(c: &Call<'_>) -> Result<bool> {
    let t = c.args.tensor(0)?;
    match t.numel() {
        1 => Ok(t.get(&vec![0; t.sizes().len()]).as_bool()),
        n => Err(OpError::new(format!("an assertion needs one element, got a tensor with {n}"))),
    }
}

fn assert_async(c: &Call<'_>) -> Result<()> {
    let why = || OpError::new("Expected Tensor with single nonzero value, but got zero");
    if truth(c)? { Ok(()) } else { Err(why()) }
}

fn assert_async_msg(c: &Call<'_>) -> Result<()> {
    if truth(c)? { Ok(()) } else { Err(OpError::new(c.args.str(1)?)) }
}

/// The shape rule checks everything, strides included: a placed tensor may have strides other than eager's.
fn metadata_infer(a: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    let t = a.tensor(0)?;
    let check = |what: &str, want: Option<restride_ir::Ints>, have: &[i64]| match want {
        Some(want) if want[..] != *have => {
            Err(OpError::new(format!("Tensor {what} mismatch! Expected: {want:?}, got {have:?}")))
        }
        _ => Ok(()),
    };
    check("sizes", a.opt_ints(1)?, &t.layout.sizes)?;
    check("strides", a.opt_ints(2)?, &t.layout.strides)?;
    check_dtype(a.opt_dtype(3)?, t.dtype)?;
    nothing(a)
}

fn check_dtype(want: Option<restride_tensor::DType>, have: restride_tensor::DType) -> Result<()> {
    match want {
        Some(want) if want != have => Err(OpError::new(format!("Tensor dtype mismatch! Expected: {want}, got {have}"))),
        _ => Ok(()),
    }
}

fn metadata(c: &Call<'_>) -> Result<()> {
    let t = c.args.tensor(0)?;
    match c.args.opt_ints(1)? {
        Some(want) if want[..] != *t.sizes() => {
            Err(OpError::new(format!("Tensor sizes mismatch! Expected: {want:?}, got {:?}", t.sizes())))
        }
        _ => check_dtype(c.args.opt_dtype(3)?, t.dtype()),
    }
}

fn in_range(c: &Call<'_>, least: Option<i64>) -> Result<()> {
    let x = match c.args.scalar(0)? {
        x @ (Scalar::Int(_) | Scalar::Bool(_)) => x.as_i64(),
        x => return Err(OpError::new(format!("a range is asked of {x}, which is no integer"))),
    };
    let (min, max) = (c.args.opt_int(1)?.or(least), c.args.opt_int(2)?);
    if min.is_some_and(|m| x < m) || max.is_some_and(|m| x > m) {
        let show = |b: Option<i64>, unbounded: &str| b.map_or(unbounded.to_string(), |b| b.to_string());
        return Err(OpError::new(format!(
            "Invalid value range for {x} between [{}, {}]",
            show(min, "-inf"),
            show(max, "inf")
        )));
    }
    Ok(())
}

fn constrain(c: &Call<'_>) -> Result<()> {
    in_range(c, None)
}
fn constrain_size(c: &Call<'_>) -> Result<()> {
    in_range(c, Some(0))
}

fn asserts_scalar(args: &[Arg]) -> Vec<Expr> {
    match args.first() {
        Some(Arg::Scalar(e)) if e.is_bool() => vec![e.clone()],
        _ => Vec::new(),
    }
}

fn asserts_range(args: &[Arg]) -> Vec<Expr> {
    let bound = |i: usize| match args.get(i) {
        Some(Arg::Scalar(Expr::Int(n))) => Some(*n),
        _ => None,
    };
    match args.first() {
        Some(Arg::Scalar(e)) => within(e, bound(1), bound(2)),
        _ => Vec::new(),
    }
}

const fn assertion(schema: &'static str, kernel: fn(&Call<'_>) -> Result<()>) -> OpDef {
    OpDef {
        infer: Some(nothing),
        kernel: Kernel::Fixed(kernel),
        effectful: true,
        exactness: Exactness::Exact,
        ..OpDef::new(schema)
    }
}

pub(crate) static OPS: &[OpDef] = table![
    OpDef { asserts: Some(asserts_scalar), ..assertion("_assert_scalar", assert_scalar) },
    assertion("_assert_async", assert_async),
    assertion("_assert_async.msg", assert_async_msg),
    OpDef { infer: Some(metadata_infer), ..assertion("_assert_tensor_metadata", metadata) },
    OpDef { asserts: Some(asserts_range), ..assertion("sym_constrain_range", constrain) },
    OpDef { asserts: Some(asserts_range), ..assertion("sym_constrain_range_for_size", constrain_size) },
];

//! The language of gradient rules: tensors as terms with arithmetic.
//!
//! The context records the first failing call and skips the rest; [`run`] reports the failure. So rules read like formulas.

mod call;
mod tensor;

pub(crate) use call::Cx;
pub(crate) use tensor::T;

use restride_ir::{Arg, DType, Dim, Expr, ExprFn, GradCall, GradEmit, OpError, TensorType, Val};
use smallvec::SmallVec;
use std::cell::RefCell;

type Result<T> = std::result::Result<T, OpError>;

/// Placeholder for a value that failed to compute.
const FAILED: Val = Val(u32::MAX);

/// The graph operations that a rule performs.
trait Core {
    fn call(&self, op: &str, args: &[Arg<Val, Expr>]) -> SmallVec<[Val; 1]>;
    fn ty(&self, v: Val) -> TensorType;
    fn fail(&self, e: OpError);
    fn set(&self, operand: usize, v: Option<Val>);
}

struct Sink<'e> {
    emit: RefCell<&'e mut dyn GradEmit>,
    failed: RefCell<Option<OpError>>,
    /// The gradient declared for each operand: none yet, zero, or a value.
    out: RefCell<Vec<Option<Option<Val>>>>,
}

impl Core for Sink<'_> {
    fn call(&self, op: &str, args: &[Arg<Val, Expr>]) -> SmallVec<[Val; 1]> {
        if self.failed.borrow().is_some() {
            return SmallVec::new();
        }
        self.emit.borrow_mut().call(op, args).unwrap_or_else(|e| {
            self.fail(OpError::new(format!("{op}: {e}")));
            SmallVec::new()
        })
    }
    fn ty(&self, v: Val) -> TensorType {
        if v == FAILED { TensorType::contiguous(DType::F32, &[]) } else { self.emit.borrow().ty(v) }
    }
    fn fail(&self, e: OpError) {
        self.failed.borrow_mut().get_or_insert(e);
    }
    fn set(&self, operand: usize, v: Option<Val>) {
        match self.out.borrow_mut().get_mut(operand) {
            Some(slot) => *slot = Some(v),
            None => self.fail(OpError::new(format!("there is no operand {operand}"))),
        }
    }
}

/// Runs a rule.
pub(crate) fn run(
    emit: &mut dyn GradEmit,
    call: &GradCall<'_>,
    rule: &dyn for<'c> Fn(&'c Cx<'c>),
) -> Result<Vec<Option<Val>>> {
    let sink =
        Sink { emit: RefCell::new(emit), failed: RefCell::new(None), out: RefCell::new(vec![None; call.needs.len()]) };
    rule(&Cx { core: &sink, call: *call });
    if let Some(e) = sink.failed.into_inner() {
        return Err(e);
    }
    let said = sink.out.into_inner();
    // An undeclared gradient would silently count as zero.
    if let Some(i) = said.iter().zip(call.needs).position(|(g, needs)| *needs && g.is_none()) {
        return Err(OpError::unsupported(format!("{} has no gradient for its operand {i}", call.op)));
    }
    Ok(said.into_iter().map(Option::flatten).collect())
}

/// Runs a decomposition written as a form.
pub(crate) fn run_form(
    emit: &mut dyn GradEmit,
    call: &GradCall<'_>,
    form: &dyn for<'c> Fn(&'c Cx<'c>) -> Vec<T<'c>>,
) -> Result<Vec<Val>> {
    let sink = Sink { emit: RefCell::new(emit), failed: RefCell::new(None), out: RefCell::new(Vec::new()) };
    let made = form(&Cx { core: &sink, call: *call }).into_iter().map(|t| t.v).collect();
    match sink.failed.into_inner() {
        Some(e) => Err(e),
        None => Ok(made),
    }
}

/// Declares a form: a function from the call to its results.
macro_rules! form {
    (|$c:ident| $body:expr) => {
        restride_ir::Grad::Form(|emit, call| $crate::gradient::terms::run_form(emit, call, &|$c| $body))
    };
    ($f:path) => {
        restride_ir::Grad::Form(|emit, call| $crate::gradient::terms::run_form(emit, call, &|c| $f(c)))
    };
}
pub(crate) use form;

/// Declares a rule: `rule!(|c| c.set(0, c.grad() * c.arg(0).cos()))`.
macro_rules! rule {
    (|$c:ident| $body:expr) => {
        restride_ir::Grad::Rule(|emit, call| {
            $crate::gradient::terms::run(emit, call, &|$c: &$crate::gradient::terms::Cx<'_>| $body)
        })
    };
    ($f:path) => {
        restride_ir::Grad::Rule(|emit, call| $crate::gradient::terms::run(emit, call, &|c| $f(c)))
    };
}
pub(crate) use rule;

/// A Rust value that converts to an argument of a call.
pub(crate) trait TermOperand {
    fn operand(self) -> Arg<Val, Expr>;
}
macro_rules! operands {
    ($($t:ty: |$x:ident| $e:expr;)*) => {$(
        impl TermOperand for $t {
            fn operand(self) -> Arg<Val, Expr> { let $x = self; $e }
        }
    )*};
}
operands! {
    T<'_>: |t| Arg::Value(t.v);
    Option<T<'_>>: |t| t.map_or(Arg::None, |t| Arg::Value(t.v));
    Vec<T<'_>>: |l| Arg::Values(l.into_iter().map(|t| Some(t.v)).collect());
    Expr: |e| Arg::Scalar(e);
    &Expr: |e| Arg::Scalar(e.clone());
    i64: |i| Arg::Scalar(Expr::Int(i));
    i32: |i| Arg::Scalar(Expr::Int(i.into()));
    f64: |x| Arg::Scalar(Expr::float(x));
    bool: |b| Arg::Scalar(Expr::Bool(b));
    &[Expr]: |l| Arg::Scalars(l.to_vec());
    Vec<Expr>: |l| Arg::Scalars(l);
    &[i64]: |l| Arg::Scalars(l.iter().map(|&i| Expr::Int(i)).collect());
    Vec<i64>: |l| Arg::Scalars(l.into_iter().map(Expr::Int).collect());
    &[bool]: |l| Arg::Scalars(l.iter().map(|&b| Expr::Bool(b)).collect());
    &str: |s| Arg::Str(s.into());
    DType: |d| Arg::DType(d);
    (): |_u| Arg::None;
    Arg<Val, Expr>: |a| a;
}
impl<const N: usize> TermOperand for [i64; N] {
    fn operand(self) -> Arg<Val, Expr> {
        self[..].operand()
    }
}
impl<const N: usize> TermOperand for [Expr; N] {
    fn operand(self) -> Arg<Val, Expr> {
        self[..].operand()
    }
}
impl<const N: usize> TermOperand for [bool; N] {
    fn operand(self) -> Arg<Val, Expr> {
        self[..].operand()
    }
}

/// Adds a call: `op!(c, "aten.add.Tensor", a, b)`.
macro_rules! op {
    ($c:expr, $op:expr $(, $arg:expr)* $(,)?) => {
        $c.op($op, [$($crate::gradient::terms::TermOperand::operand($arg)),*])
    };
}
pub(crate) use op;

/// The dimension counted from the front; 0 for a 0-d tensor.
pub(crate) fn wrap(dim: i64, rank: usize) -> usize {
    let rank = rank.max(1) as i64;
    (if dim < 0 { dim + rank } else { dim }).clamp(0, rank - 1) as usize
}

/// The product of numbers, which may be symbolic.
pub(crate) fn product<'a>(sizes: impl IntoIterator<Item = &'a Expr>) -> Expr {
    sizes.into_iter().fold(Expr::Int(1), |p, s| p.times(s))
}

/// Converts a number to a float.
pub(crate) fn as_float(n: &Expr) -> Expr {
    match n.constant() {
        Some(s) => Expr::float(s.as_f64()),
        None => Expr::call(ExprFn::ToFloat, vec![n.clone()]),
    }
}

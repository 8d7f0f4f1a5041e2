//! The language that gradient rules are written in: tensors as terms with arithmetic.
//!
//! A call that fails is remembered, and what follows from it is not computed; [`run`] reports the first one. So rules read
//! like formulas.

use restride_ir::{Arg, DType, Dim, Expr, ExprFn, GradCall, GradEmit, OpError, TensorType, Val};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

type Result<T> = std::result::Result<T, OpError>;

/// Stands for what could not be computed.
const FAILED: Val = Val(u32::MAX);

/// What a rule does to the world.
trait Core {
    fn call(&self, op: &str, args: &[Arg<Val, Expr>]) -> SmallVec<[Val; 1]>;
    fn ty(&self, v: Val) -> TensorType;
    fn fail(&self, e: OpError);
    fn set(&self, operand: usize, v: Option<Val>);
}

struct Sink<'e> {
    emit: RefCell<&'e mut dyn GradEmit>,
    failed: RefCell<Option<OpError>>,
    /// What the rule said of each operand: nothing, that the gradient is zero, or the gradient.
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
    rule: impl for<'c> Fn(&'c Cx<'c>),
) -> Result<Vec<Option<Val>>> {
    let sink =
        Sink { emit: RefCell::new(emit), failed: RefCell::new(None), out: RefCell::new(vec![None; call.needs.len()]) };
    rule(&Cx { core: &sink, call: *call });
    if let Some(e) = sink.failed.into_inner() {
        return Err(e);
    }
    let said = sink.out.into_inner();
    // A gradient that a rule forgets would be silently zero.
    if let Some(i) = said.iter().zip(call.needs).position(|(g, needs)| *needs && g.is_none()) {
        return Err(OpError::unsupported(format!("{} has no gradient for its operand {i}", call.op)));
    }
    Ok(said.into_iter().map(Option::flatten).collect())
}

/// Runs a form.
pub(crate) fn run_form(
    emit: &mut dyn GradEmit,
    call: &GradCall<'_>,
    form: impl for<'c> Fn(&'c Cx<'c>) -> Vec<T<'c>>,
) -> Result<Vec<Val>> {
    let sink = Sink { emit: RefCell::new(emit), failed: RefCell::new(None), out: RefCell::new(Vec::new()) };
    let made = form(&Cx { core: &sink, call: *call }).into_iter().map(|t| t.v).collect();
    match sink.failed.into_inner() {
        Some(e) => Err(e),
        None => Ok(made),
    }
}

/// A form as an operator declares it: a function from the call to its results.
macro_rules! form {
    (|$c:ident| $body:expr) => {
        restride_ir::Grad::Form(|emit, call| $crate::gradient::terms::run_form(emit, call, |$c| $body))
    };
    ($f:path) => {
        restride_ir::Grad::Form(|emit, call| $crate::gradient::terms::run_form(emit, call, |c| $f(c)))
    };
}
pub(crate) use form;

/// A rule as an operator declares it: `rule!(|c| c.set(0, c.grad() * c.arg(0).cos()))`.
macro_rules! rule {
    (|$c:ident| $body:expr) => {
        restride_ir::Grad::Rule(|emit, call| {
            $crate::gradient::terms::run(emit, call, |$c: &$crate::gradient::terms::Cx<'_>| $body)
        })
    };
    ($f:path) => {
        restride_ir::Grad::Rule(|emit, call| $crate::gradient::terms::run(emit, call, |c| $f(c)))
    };
}
pub(crate) use rule;

/// The call that a rule differentiates.
pub(crate) struct Cx<'a> {
    core: &'a dyn Core,
    call: GradCall<'a>,
}

/// A tensor in a rule.
#[derive(Clone, Copy)]
pub(crate) struct T<'c> {
    cx: &'c Cx<'c>,
    v: Val,
}

impl<'c> Cx<'c> {
    fn term(&'c self, v: Val) -> T<'c> {
        T { cx: self, v }
    }

    fn wrong(&'c self, e: OpError) -> T<'c> {
        self.core.fail(e);
        self.term(FAILED)
    }

    /// Stops the rule: what it cannot do.
    pub fn fail(&self, what: impl Into<String>) {
        self.core.fail(OpError::new(what.into()));
    }

    /// Gradient of the first result.
    pub fn grad(&'c self) -> T<'c> {
        self.grad_at(0)
    }

    /// Gradient of result `k`: zeros where there is none.
    pub fn grad_at(&'c self, k: usize) -> T<'c> {
        match self.call.grads.get(k).copied().flatten() {
            Some(v) => self.term(v),
            None => self.result_at(k).zeros_like(),
        }
    }

    /// Gradient of result `k`, if there is one.
    pub fn opt_grad(&'c self, k: usize) -> Option<T<'c>> {
        self.call.grads.get(k).copied().flatten().map(|v| self.term(v))
    }

    /// Whether result `k` has a gradient.
    pub fn has_grad(&self, k: usize) -> bool {
        self.call.grads.get(k).copied().flatten().is_some()
    }

    /// Whether the first result alone has a gradient; the rule is stopped where others have one.
    pub fn only_first(&self) -> bool {
        let others = (1..self.results()).any(|k| self.has_grad(k));
        if others {
            self.fail("a loss that depends on what only the gradient reads (saved statistics)");
        }
        !others
    }

    /// Number of results.
    pub fn results(&self) -> usize {
        self.call.results.len()
    }

    /// The first result.
    pub fn result(&'c self) -> T<'c> {
        self.result_at(0)
    }

    /// Result `k`.
    pub fn result_at(&'c self, k: usize) -> T<'c> {
        match self.call.results.get(k) {
            Some(v) => self.term(*v),
            None => self.wrong(OpError::new(format!("there is no result {k}"))),
        }
    }

    /// The tensor at argument `i`. A number in a tensor's place is one without dimensions.
    pub fn arg(&'c self, i: usize) -> T<'c> {
        match self.call.args.get(i) {
            Some(Arg::Value(v)) => self.term(*v),
            Some(n @ (Arg::Scalar(_) | Arg::Complex(..))) => {
                let none: Vec<Expr> = Vec::new();
                op!(self, "aten.full.default", none, n.clone(), self.result().dtype())
            }
            _ => self.wrong(OpError::new(format!("argument {i} is not a tensor"))),
        }
    }

    /// The tensor at argument `i`, if it is one.
    pub fn opt(&'c self, i: usize) -> Option<T<'c>> {
        match self.call.args.get(i) {
            Some(Arg::Value(v)) => Some(self.term(*v)),
            _ => None,
        }
    }

    /// The tensors at argument `i`; holes are left out.
    pub fn list(&'c self, i: usize) -> Vec<T<'c>> {
        self.call.args.get(i).map_or_else(Vec::new, |a| a.values().map(|v| self.term(*v)).collect())
    }

    /// Argument `i` as it is.
    pub fn raw(&self, i: usize) -> Arg<Val, Expr> {
        self.call.args.get(i).cloned().unwrap_or(Arg::None)
    }

    /// Whether argument `i` is `None`.
    pub fn is_none(&self, i: usize) -> bool {
        self.call.args().is_none(i)
    }

    /// The number at argument `i`.
    pub fn num(&self, i: usize) -> Expr {
        self.call.args().number(i).cloned().unwrap_or_else(|e| {
            self.core.fail(e);
            Expr::Int(0)
        })
    }

    /// The known integer at argument `i`, or this where it is `None`.
    pub fn int_or(&self, i: usize, default: i64) -> i64 {
        if self.is_none(i) { default } else { self.int(i) }
    }

    /// The known integer (or bool) at argument `i`.
    pub fn int(&self, i: usize) -> i64 {
        match self.num(i).constant() {
            Some(s) => s.as_i64(),
            None => {
                self.core.fail(OpError::new(format!("argument {i} must be a known number")));
                0
            }
        }
    }

    /// The known float at argument `i`.
    pub fn float(&self, i: usize) -> f64 {
        match self.num(i).constant() {
            Some(s) => s.as_f64(),
            None => {
                self.core.fail(OpError::new(format!("argument {i} must be a known number")));
                0.0
            }
        }
    }

    /// The known float at argument `i`, unless it is `None`.
    pub fn opt_float(&self, i: usize) -> Option<f64> {
        (!self.is_none(i)).then(|| self.float(i))
    }

    /// The known bool at argument `i`; `None` is false.
    pub fn flag(&self, i: usize) -> bool {
        self.int_or(i, 0) != 0
    }

    /// The string at argument `i`.
    pub fn str(&self, i: usize) -> Option<&'c str> {
        match self.call.args.get(i) {
            Some(Arg::Str(s)) => Some(s),
            _ => None,
        }
    }

    /// The numbers at argument `i`; none where it is `None`.
    pub fn nums(&self, i: usize) -> Vec<Expr> {
        self.call.args.get(i).map_or_else(Vec::new, |a| a.scalars().to_vec())
    }

    /// The known integers at argument `i`; none where it is `None`.
    pub fn ints(&self, i: usize) -> Vec<i64> {
        let known: Option<Vec<i64>> = self.nums(i).iter().map(|e| e.constant().map(|s| s.as_i64())).collect();
        known.unwrap_or_else(|| {
            self.core.fail(OpError::new(format!("argument {i} must hold known numbers")));
            Vec::new()
        })
    }

    /// Whether the operand at argument `i` is differentiated.
    pub fn needs(&self, i: usize) -> bool {
        self.needs_item(i, 0)
    }

    /// Whether the `k`-th tensor of the list at argument `i` is differentiated.
    pub fn needs_item(&self, i: usize, k: usize) -> bool {
        let at = self.call.first_operand(i) + k;
        let own = self.call.args.get(i).map_or(0, |a| a.values().count());
        k < own && self.call.needs.get(at).copied().unwrap_or(false)
    }

    /// Declares the gradient of argument `i`.
    pub fn set(&self, i: usize, gradient: T<'_>) {
        self.set_item(i, 0, gradient);
    }

    /// Declares the gradient of argument `i` where it is needed.
    pub fn give(&'c self, i: usize, gradient: impl FnOnce() -> T<'c>) {
        if self.needs(i) {
            self.set(i, gradient());
        }
    }

    /// Declares the gradient of the `k`-th tensor of the list at argument `i`.
    pub fn set_item(&self, i: usize, k: usize, gradient: T<'_>) {
        if gradient.v != FAILED {
            self.core.set(self.call.first_operand(i) + k, Some(gradient.v));
        }
    }

    /// Declares that the gradient of argument `i` is zero.
    pub fn zero(&self, i: usize) {
        self.zero_item(i, 0);
    }

    /// Declares that the gradient of the `k`-th tensor of the list at argument `i` is zero.
    pub fn zero_item(&self, i: usize, k: usize) {
        if self.needs_item(i, k) {
            self.core.set(self.call.first_operand(i) + k, None);
        }
    }

    /// A call with all its results.
    pub fn calls(&'c self, op: &str, args: &[Arg<Val, Expr>]) -> Vec<T<'c>> {
        self.core.call(op, args).into_iter().map(|v| self.term(v)).collect()
    }

    /// Result `k` of a call.
    pub fn call_at(&'c self, op: &str, args: &[Arg<Val, Expr>], k: usize) -> T<'c> {
        self.core.call(op, args).get(k).map_or(self.term(FAILED), |v| self.term(*v))
    }

    /// The first result of a call.
    pub fn call(&'c self, op: &str, args: &[Arg<Val, Expr>]) -> T<'c> {
        self.call_at(op, args, 0)
    }

    /// Concatenated tensors.
    pub fn cat(&'c self, parts: &[T<'c>], dim: i64) -> T<'c> {
        let list = Arg::Values(parts.iter().map(|t| Some(t.v)).collect());
        self.call("aten.cat.default", &[list, dim.operand()])
    }
}

/// What becomes an argument of a call in a rule.
pub(crate) trait Operand {
    fn operand(self) -> Arg<Val, Expr>;
}
macro_rules! operands {
    ($($t:ty: |$x:ident| $e:expr;)*) => {$(
        impl Operand for $t {
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
impl<const N: usize> Operand for [i64; N] {
    fn operand(self) -> Arg<Val, Expr> {
        self[..].operand()
    }
}
impl<const N: usize> Operand for [bool; N] {
    fn operand(self) -> Arg<Val, Expr> {
        self[..].operand()
    }
}

/// A call in a rule: `op!(c, "aten.add.Tensor", a, b)`.
macro_rules! op {
    ($c:expr, $op:expr $(, $arg:expr)* $(,)?) => {
        $c.call($op, &[$($crate::gradient::terms::Operand::operand($arg)),*])
    };
}
pub(crate) use op;

impl<'c> T<'c> {
    /// The rule's context.
    pub fn cx(self) -> &'c Cx<'c> {
        self.cx
    }
    /// Type.
    pub fn ty(self) -> TensorType {
        self.cx.core.ty(self.v)
    }
    /// Element type.
    pub fn dtype(self) -> DType {
        self.ty().dtype
    }
    /// Sizes.
    pub fn sizes(self) -> Vec<Expr> {
        self.ty().layout.sizes.to_vec()
    }
    /// Number of dimensions.
    pub fn rank(self) -> usize {
        self.ty().rank()
    }
    /// Size of a dimension; negative ones count from the end. A tensor without dimensions has one of size 1.
    pub fn size(self, dim: i64) -> Expr {
        let sizes = self.sizes();
        sizes.get(wrap(dim, sizes.len())).cloned().unwrap_or(Expr::Int(1))
    }
    /// Number of elements.
    pub fn numel(self) -> Expr {
        self.ty().layout.numel()
    }
    /// An operator of this tensor alone.
    pub fn unary(self, op: &str) -> T<'c> {
        op!(self.cx, op, self)
    }
    /// Zeros of this tensor's type.
    pub fn zeros_like(self) -> T<'c> {
        let ty = self.ty();
        op!(self.cx, "aten.full.default", ty.layout.sizes.to_vec(), 0, ty.dtype)
    }
    /// Complex conjugate; real tensors are their own.
    pub fn conj(self) -> T<'c> {
        if self.dtype().is_complex() { self.unary("aten.conj_physical.default") } else { self }
    }
    /// Real part of what may be complex.
    pub fn real(self) -> T<'c> {
        if !self.dtype().is_complex() {
            return self;
        }
        let pairs = self.unary("aten.view_as_real.default");
        op!(self.cx, "aten.select.int", pairs, -1, 0)
    }
    pub fn exp(self) -> T<'c> {
        self.unary("aten.exp.default")
    }
    pub fn log(self) -> T<'c> {
        self.unary("aten.log.default")
    }
    pub fn sin(self) -> T<'c> {
        self.unary("aten.sin.default")
    }
    pub fn cos(self) -> T<'c> {
        self.unary("aten.cos.default")
    }
    pub fn sqrt(self) -> T<'c> {
        self.unary("aten.sqrt.default")
    }
    pub fn rsqrt(self) -> T<'c> {
        self.unary("aten.rsqrt.default")
    }
    pub fn reciprocal(self) -> T<'c> {
        self.unary("aten.reciprocal.default")
    }
    pub fn sign(self) -> T<'c> {
        self.unary("aten.sgn.default")
    }
    pub fn sigmoid(self) -> T<'c> {
        self.unary("aten.sigmoid.default")
    }
    /// The square.
    pub fn square(self) -> T<'c> {
        self * self
    }
    /// To the power of a number.
    pub fn pow(self, e: impl Operand) -> T<'c> {
        op!(self.cx, "aten.pow.Tensor_Scalar", self, e)
    }
    /// This where the mask is true, zero elsewhere.
    pub fn only(self, mask: T<'c>) -> T<'c> {
        op!(self.cx, "aten.where.ScalarOther", mask, self, 0)
    }
    /// Zero where the mask is true, this elsewhere.
    pub fn except(self, mask: T<'c>) -> T<'c> {
        op!(self.cx, "aten.masked_fill.Scalar", self, mask, 0)
    }
    /// A comparison (`gt`, `eq`, …) with a number.
    pub fn is(self, how: &str, n: impl Operand) -> T<'c> {
        op!(self.cx, &format!("aten.{how}.Scalar"), self, n)
    }
    /// A comparison with a tensor.
    pub fn than(self, how: &str, other: T<'c>) -> T<'c> {
        op!(self.cx, &format!("aten.{how}.Tensor"), self, other)
    }
    /// As this element type.
    pub fn to(self, dtype: DType) -> T<'c> {
        if self.dtype() == dtype { self } else { op!(self.cx, "aten._to_copy.default", self, dtype) }
    }
    /// Under other sizes.
    pub fn reshape(self, sizes: Vec<Expr>) -> T<'c> {
        let own = self.sizes();
        let same = own.len() == sizes.len() && own.iter().zip(&sizes).all(|(a, b)| a.equals(b) == Some(true));
        if same { self } else { op!(self.cx, "aten.reshape.default", self, sizes) }
    }
    /// Broadcast to these sizes.
    pub fn expand(self, sizes: Vec<Expr>) -> T<'c> {
        let own = self.sizes();
        let same = own.len() == sizes.len() && own.iter().zip(&sizes).all(|(a, b)| a.equals(b) == Some(true));
        if same { self } else { op!(self.cx, "aten.expand.default", self, sizes) }
    }
    /// With a dimension of size 1 at `dim`.
    pub fn unsqueeze(self, dim: i64) -> T<'c> {
        op!(self.cx, "aten.unsqueeze.default", self, dim)
    }
    /// Without the dimension of size 1 at `dim`.
    pub fn squeeze(self, dim: i64) -> T<'c> {
        op!(self.cx, "aten.squeeze.dim", self, dim)
    }
    /// With two dimensions exchanged.
    pub fn transpose(self, a: i64, b: i64) -> T<'c> {
        op!(self.cx, "aten.transpose.int", self, a, b)
    }
    /// With the last two dimensions exchanged.
    pub fn mt(self) -> T<'c> {
        self.transpose(-2, -1)
    }
    /// The conjugate transpose of matrices.
    pub fn mh(self) -> T<'c> {
        self.mt().conj()
    }
    /// With dimensions in another order.
    pub fn permute(self, dims: Vec<i64>) -> T<'c> {
        op!(self.cx, "aten.permute.default", self, dims)
    }
    /// Summed over dimensions; over none it is itself.
    pub fn sum(self, dims: Vec<i64>, keep: bool) -> T<'c> {
        if dims.is_empty() { self } else { op!(self.cx, "aten.sum.dim_IntList", self, dims, keep) }
    }
    /// Summed over all dimensions.
    pub fn sum_all(self) -> T<'c> {
        self.unary("aten.sum.default")
    }
    /// Matrix product.
    pub fn matmul(self, other: T<'c>) -> T<'c> {
        op!(self.cx, "aten.matmul.default", self, other)
    }
    /// Elements `from..to` of a dimension.
    pub fn slice(self, dim: i64, from: Expr, to: Expr) -> T<'c> {
        op!(self.cx, "aten.slice.Tensor", self, dim, from, to)
    }
    /// Element `at` of a dimension.
    pub fn select(self, dim: i64, at: impl Operand) -> T<'c> {
        op!(self.cx, "aten.select.int", self, dim, at)
    }
    /// Times a number, which may be symbolic.
    pub fn times(self, n: &Expr) -> T<'c> {
        if matches!(n.constant().map(|s| s.as_f64()), Some(1.0)) {
            return self;
        }
        op!(self.cx, "aten.mul.Scalar", self, n)
    }
    /// Divided by a number, which may be symbolic.
    pub fn over(self, n: &Expr) -> T<'c> {
        op!(self.cx, "aten.div.Scalar", self, n)
    }
}

/// A dimension counted from the front; that of a tensor without dimensions is 0.
pub(crate) fn wrap(dim: i64, rank: usize) -> usize {
    let rank = rank.max(1) as i64;
    (if dim < 0 { dim + rank } else { dim }).clamp(0, rank - 1) as usize
}

/// A product of numbers that may be symbolic.
pub(crate) fn product<'a>(sizes: impl IntoIterator<Item = &'a Expr>) -> Expr {
    sizes.into_iter().fold(Expr::Int(1), |p, s| p.times(s))
}

/// A number as a float.
pub(crate) fn as_float(n: &Expr) -> Expr {
    match n.constant() {
        Some(s) => Expr::float(s.as_f64()),
        None => Expr::call(ExprFn::ToFloat, vec![n.clone()]),
    }
}

macro_rules! arithmetic {
    ($($trait:ident $f:ident $tensor:literal $scalar:literal;)*) => {$(
        impl<'c> $trait<T<'c>> for T<'c> {
            type Output = T<'c>;
            fn $f(self, other: T<'c>) -> T<'c> {
                op!(self.cx, $tensor, self, other)
            }
        }
        impl<'c> $trait<f64> for T<'c> {
            type Output = T<'c>;
            fn $f(self, other: f64) -> T<'c> {
                op!(self.cx, $scalar, self, other)
            }
        }
    )*};
}
arithmetic! {
    Add add "aten.add.Tensor" "aten.add.Scalar";
    Sub sub "aten.sub.Tensor" "aten.sub.Scalar";
    Mul mul "aten.mul.Tensor" "aten.mul.Scalar";
    Div div "aten.div.Tensor" "aten.div.Scalar";
}
impl<'c> Add<T<'c>> for f64 {
    type Output = T<'c>;
    fn add(self, other: T<'c>) -> T<'c> {
        other + self
    }
}
impl<'c> Mul<T<'c>> for f64 {
    type Output = T<'c>;
    fn mul(self, other: T<'c>) -> T<'c> {
        other * self
    }
}
impl<'c> Sub<T<'c>> for f64 {
    type Output = T<'c>;
    fn sub(self, other: T<'c>) -> T<'c> {
        op!(other.cx, "aten.rsub.Scalar", other, self)
    }
}
impl<'c> Neg for T<'c> {
    type Output = T<'c>;
    fn neg(self) -> T<'c> {
        self.unary("aten.neg.default")
    }
}

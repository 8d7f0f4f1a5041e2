//! `Cx`, the call that a rule differentiates: its operands, results, arguments, and declared gradients.

use super::{Core, FAILED, T, TermOperand, op};
use restride_ir::{Arg, Expr, GradCall, OpError, Val};

/// The call that a rule differentiates.
pub(crate) struct Cx<'a> {
    pub(super) core: &'a dyn Core,
    pub(super) call: GradCall<'a>,
}

impl<'c> Cx<'c> {
    fn term(&'c self, v: Val) -> T<'c> {
        T { cx: self, v }
    }

    fn wrong(&'c self, e: OpError) -> T<'c> {
        self.core.fail(e);
        self.term(FAILED)
    }

    /// Stops the rule with an error.
    pub fn fail(&self, what: impl Into<String>) {
        self.core.fail(OpError::new(what.into()));
    }

    /// Gradient of the first result.
    pub fn grad(&'c self) -> T<'c> {
        self.grad_at(0)
    }

    /// Gradient of result `k`; zeros if it has none.
    pub fn grad_at(&'c self, k: usize) -> T<'c> {
        match self.call.grads.get(k).copied().flatten() {
            Some(v) => self.term(v),
            None => self.result_at(k).zeros_like(),
        }
    }

    /// Gradient of result `k`, if it has one.
    pub fn opt_grad(&'c self, k: usize) -> Option<T<'c>> {
        self.call.grads.get(k).copied().flatten().map(|v| self.term(v))
    }

    /// Whether result `k` has a gradient.
    pub fn has_grad(&self, k: usize) -> bool {
        self.call.grads.get(k).copied().flatten().is_some()
    }

    /// Whether the first result has a gradient; stops the rule if another result has one.
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

    /// The tensor at argument `i`; a number becomes a 0-d tensor.
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

    /// The tensor at argument `i`, unless it is `None`.
    pub fn opt(&'c self, i: usize) -> Option<T<'c>> {
        match self.call.args.get(i) {
            Some(Arg::Value(v)) => Some(self.term(*v)),
            _ => None,
        }
    }

    /// The tensors at argument `i`, without `None` elements.
    pub fn list(&'c self, i: usize) -> Vec<T<'c>> {
        self.call.args.get(i).map_or_else(Vec::new, |a| a.values().map(|v| self.term(*v)).collect())
    }

    /// Argument `i` unchanged.
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

    /// The conjugate of the number at argument `i`: the factor of a gradient where the call multiplies by that number.
    pub fn conj_num(&self, i: usize) -> Arg<Val, Expr> {
        match self.raw(i) {
            Arg::Complex(re, im) => Arg::Complex(re, -im),
            other => other,
        }
    }

    /// The known number at argument `i`, real and imaginary part.
    pub fn complex(&self, i: usize) -> (f64, f64) {
        match self.call.args.get(i) {
            Some(Arg::Complex(re, im)) => (*re, *im),
            _ => (self.float(i), 0.0),
        }
    }

    /// The known integer at argument `i`, or `default` if it is `None`.
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

    /// The known float at argument `i`; `None` if the argument is.
    pub fn opt_float(&self, i: usize) -> Option<f64> {
        (!self.is_none(i)).then(|| self.float(i))
    }

    /// The known bool at argument `i`; false if it is `None`.
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

    /// The numbers at argument `i`; empty if it is `None`.
    pub fn nums(&self, i: usize) -> Vec<Expr> {
        self.call.args.get(i).map_or_else(Vec::new, |a| a.scalars().to_vec())
    }

    /// The known integers at argument `i`; empty if it is `None`.
    pub fn ints(&self, i: usize) -> Vec<i64> {
        let known: Option<Vec<i64>> = self.nums(i).iter().map(|e| e.constant().map(|s| s.as_i64())).collect();
        known.unwrap_or_else(|| {
            self.core.fail(OpError::new(format!("argument {i} must hold known numbers")));
            Vec::new()
        })
    }

    /// Whether the operand at argument `i` needs a gradient.
    pub fn needs(&self, i: usize) -> bool {
        self.needs_item(i, 0)
    }

    /// Whether the `k`-th tensor of the list at argument `i` needs a gradient.
    pub fn needs_item(&self, i: usize, k: usize) -> bool {
        let at = self.call.first_operand(i) + k;
        let own = self.call.args.get(i).map_or(0, |a| a.values().count());
        k < own && self.call.needs.get(at).copied().unwrap_or(false)
    }

    /// Declares the gradient of argument `i`.
    pub fn set(&self, i: usize, gradient: T<'_>) {
        self.set_item(i, 0, gradient);
    }

    /// Declares the gradients of these arguments where they are needed.
    pub fn set_needed(&self, arguments: &[usize], gradients: Vec<T<'_>>) {
        for (&i, g) in arguments.iter().zip(gradients).filter(|(i, _)| self.needs(**i)) {
            self.set(i, g);
        }
    }

    /// Declares the gradient of argument `i` if it is needed.
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

    /// All results of a new call.
    pub fn calls(&'c self, op: &str, args: &[Arg<Val, Expr>]) -> Vec<T<'c>> {
        self.core.call(op, args).into_iter().map(|v| self.term(v)).collect()
    }

    /// Result `k` of a new call.
    pub fn call_at(&'c self, op: &str, args: &[Arg<Val, Expr>], k: usize) -> T<'c> {
        self.core.call(op, args).get(k).map_or(self.term(FAILED), |v| self.term(*v))
    }

    /// The first result of a new call.
    pub fn call(&'c self, op: &str, args: &[Arg<Val, Expr>]) -> T<'c> {
        self.call_at(op, args, 0)
    }

    /// What `op!` does, once for each number of arguments: callers would each drop theirs.
    #[inline(never)]
    pub fn op<const N: usize>(&'c self, op: &str, args: [Arg<Val, Expr>; N]) -> T<'c> {
        self.call(op, &args)
    }

    /// Concatenates tensors.
    pub fn cat(&'c self, parts: &[T<'c>], dim: i64) -> T<'c> {
        let list = Arg::Values(parts.iter().map(|t| Some(t.v)).collect());
        self.call("aten.cat.default", &[list, dim.operand()])
    }
}

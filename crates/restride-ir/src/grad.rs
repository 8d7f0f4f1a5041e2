//! Gradient rules: their declarations, and the trait through which they emit calls.
//!
//! One rule serves the graph and the eager tape. It sees values as handles with types (sizes may be symbolic) and calls
//! operators by name.

use crate::{Arg, Args, Expr, Op, OpError, TensorType, Val, operands_of};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

/// Receives the calls of a gradient rule: a graph under construction, or the eager tape.
pub trait GradEmit {
    /// Calls a functional operator by name (`aten.mul.Tensor`) and returns its results, lists spread. Missing trailing
    /// arguments take their defaults.
    fn call(&mut self, op: &str, args: &[Arg<Val, Expr>]) -> Result<SmallVec<[Val; 1]>>;
    /// Type of a value.
    fn ty(&self, v: Val) -> TensorType;
}

/// The call that is differentiated.
#[derive(Clone, Copy)]
pub struct GradCall<'a> {
    /// Operator.
    pub op: Op,
    /// Arguments in schema order, with defaults.
    pub args: &'a [Arg<Val, Expr>],
    /// Results.
    pub results: &'a [Val],
    /// Gradients of the results, of the results' types; `None` is zero. At least one is `Some`.
    pub grads: &'a [Option<Val>],
    /// Whether each operand (values among the arguments, in order, repeats included) needs a gradient.
    pub needs: &'a [bool],
}

impl<'a> GradCall<'a> {
    /// Arguments by position.
    pub fn args(&self) -> Args<'a, Val, Expr> {
        Args(self.args)
    }
    /// Position of the first operand in argument `arg`.
    pub fn first_operand(&self, arg: usize) -> usize {
        operands_of(self.args, arg).start
    }
}

/// One gradient an operand; `None` is zero. The caller sums a gradient over broadcast dimensions and casts it to the
/// operand's type.
pub type GradFn = fn(&mut dyn GradEmit, &GradCall<'_>) -> Result<Vec<Option<Val>>>;

/// Recomputes a call by other operators, from the call's arguments; results and gradients are still empty.
pub type FormFn = fn(&mut dyn GradEmit, &GradCall<'_>) -> Result<Vec<Val>>;

/// Gradient of an operator.
#[derive(Clone, Copy, Debug)]
pub enum Grad {
    /// Zero: the results do not depend on the operands (`zeros_like`, `detach`), are piecewise constant (`floor`), or are
    /// not floating (`eq`).
    Zero,
    /// By a rule.
    Rule(GradFn),
    /// The view rule: the gradient flows to the viewed cells.
    View,
    /// The gradients of the operators in its `decompose`.
    Composed,
    /// Another form, which computes what the gradient needs (`native_layer_norm` for `layer_norm`, with mean and
    /// deviation).
    Form(FormFn),
}

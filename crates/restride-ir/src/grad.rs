//! Gradient rules: how they are declared, and the trait through which they emit their calls.
//!
//! One rule serves the graph and the eager tape: it sees values as handles, their types with sizes that may be symbolic,
//! and calls operators by name.

use crate::{Arg, Args, Expr, Op, OpError, TensorType, Val, operands_of};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

/// Where a gradient rule sends its calls: a graph that is being built, or the eager tape.
pub trait GradEmit {
    /// Calls a functional operator by name (`aten.mul.Tensor`); trailing arguments left out take their defaults. Gives
    /// the results, lists spread.
    fn call(&mut self, op: &str, args: &[Arg<Val, Expr>]) -> Result<SmallVec<[Val; 1]>>;
    /// Type of a value.
    fn ty(&self, v: Val) -> TensorType;
}

/// The call that is differentiated.
#[derive(Clone, Copy)]
pub struct GradCall<'a> {
    /// What was called.
    pub op: Op,
    /// Its arguments in schema order, defaults filled in.
    pub args: &'a [Arg<Val, Expr>],
    /// Its results.
    pub results: &'a [Val],
    /// The gradient of each result, of the result's type; `None` is zero. At least one is there.
    pub grads: &'a [Option<Val>],
    /// Which operands (the values among the arguments, in order, repeats included) are differentiated.
    pub needs: &'a [bool],
}

impl<'a> GradCall<'a> {
    /// The arguments, to be read by position.
    pub fn args(&self) -> Args<'a, Val, Expr> {
        Args(self.args)
    }
    /// Number of the first operand in argument `arg`.
    pub fn first_operand(&self, arg: usize) -> usize {
        operands_of(self.args, arg).start
    }
}

/// Gradients of the operands, one each: `None` is zero. They may be larger than the operand where it was broadcast, of
/// another floating or complex type, and are summed and cast to the operand's type by who runs the rule.
pub type GradFn = fn(&mut dyn GradEmit, &GradCall<'_>) -> Result<Vec<Option<Val>>>;

/// The results of a call by way of other operators: of the call's arguments, with no results and gradients yet.
pub type FormFn = fn(&mut dyn GradEmit, &GradCall<'_>) -> Result<Vec<Val>>;

/// How an operator is differentiated.
#[derive(Clone, Copy, Debug)]
pub enum Grad {
    /// Not at all: the results do not depend on the operands (`zeros_like`, `detach`), only on their signs and whole parts
    /// (`floor`), or are no floating numbers (`eq`).
    Zero,
    /// By a rule.
    Rule(GradFn),
    /// By its view rule: the gradient goes where the elements came from.
    View,
    /// Through the operators that it is composed of, by its `decompose`.
    Composed,
    /// In another form, which keeps what the gradient needs (`layer_norm` as `native_layer_norm`, with mean and deviation).
    Form(FormFn),
}

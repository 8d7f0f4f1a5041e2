//! Decompositions: functions that emit calls of operators.

use crate::{Arg, Args, Meta, OpError, Scalar};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

/// A value of a decomposition (see [`Emit`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Val(pub u32);

/// Receives the calls of a decomposition: a graph under construction, or the interpreter.
pub trait Emit {
    /// Calls an operator by name (`aten.mul.Tensor`) and returns its results, lists spread. Missing trailing arguments take
    /// their defaults.
    fn call(&mut self, op: &str, args: &[Arg<Val, Scalar>]) -> Result<SmallVec<[Val; 1]>>;
    /// Type of a value.
    fn meta(&self, v: Val) -> Meta;
    /// Whether sizes are examples of symbolic ones, for which the calls should be the same.
    fn any_sizes(&self) -> bool {
        false
    }
}

/// Decomposition of an operator. Returns the results in the schema's order, lists spread.
pub type DecomposeFn = fn(&mut dyn Emit, &Args<'_, Val>) -> Result<SmallVec<[Val; 1]>>;

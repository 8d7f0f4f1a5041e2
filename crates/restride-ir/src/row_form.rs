//! Row forms: calls as functions of rows of `f32`, which a fused node runs one after the other on a part of a row that stays in the
//! first cache.

use crate::{Arg, Args, Graph, Meta, Node, OpError, Scalar, known_meta};
use restride_tensor::{DType, View};
use smallvec::SmallVec;

/// How a call computes rows of its only result: with the bits of its kernel, whatever the length of a row.
#[derive(Clone, Debug)]
pub enum RowForm {
    /// Element by element with broadcasting.
    Map {
        /// Takes rows of the operands and writes a row of the result, all of one length.
        row: fn(&[&[f32]], &mut [f32]),
        /// What the rows are of.
        operands: SmallVec<[RowOperand; 4]>,
    },
    /// `x * scale + shift` with two numbers for each index of one dimension; `x` is argument 0.
    Scale {
        /// The dimension.
        dim: usize,
        /// Its size.
        count: usize,
        /// Computes scales and shifts from the other arguments.
        numbers: fn(&Args<'_, View<'_>>, &mut [f32], &mut [f32]) -> Result<(), OpError>,
        /// Takes a row, its scales and shifts (one, or as many as elements) and writes a row of the result.
        row: fn(&[f32], &[f32], &[f32], &mut [f32]),
    },
}

/// An operand of [`RowForm::Map`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RowOperand {
    /// The tensor at this argument position: of singles, or a 0-d one of any real type, converted to a single.
    Tensor(u8),
    /// A number.
    Number(f32),
}

/// The row form of a call from the types of arguments and results; `None` for a call that has none.
pub type RowFormFn = fn(&Args<'_, Meta>, &[Meta]) -> Option<RowForm>;

impl RowForm {
    /// The row form of a node, if it has one.
    pub fn of(graph: &Graph, node: &Node) -> Option<RowForm> {
        let form = node.op.def().rows?;
        let number = |e: &crate::Expr| e.constant().ok_or(());
        let known = |v: &crate::ValueId| known_meta(graph, *v).map_err(drop);
        let args: SmallVec<[Arg<Meta, Scalar>; 6]> =
            node.args.iter().map(|a| a.try_map(known, number)).collect::<Result<_, ()>>().ok()?;
        let results: SmallVec<[Meta; 1]> = node.results.iter().map(known).collect::<Result<_, ()>>().ok()?;
        let one = matches!(&results[..], [r] if r.dtype == DType::F32);
        form(&Args(&args), &results).filter(|_| one)
    }
}

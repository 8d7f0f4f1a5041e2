//! Row forms: calls as functions of rows of `f32`, which a fused node runs one after the other on a part of a row that stays in the
//! first cache. In rows, a `bool` is 1 or 0.

use crate::{Arg, Args, Graph, Meta, Node, OpError, Scalar, known_meta};
use restride_tensor::{DType, FormulaFn, View};
use smallvec::SmallVec;

/// How a call computes rows of its only result: with the bits of its kernel, whatever the length of a row.
#[derive(Clone, Debug)]
pub enum RowForm {
    /// Element by element with broadcasting.
    Map {
        /// The function.
        map: RowMap,
        /// What its rows are of.
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
    /// As `Map`, with a result of `bool`.
    Ask {
        /// As that of a [`RowMap`].
        row: fn(&[&[f32]], &mut [bool]),
        /// What it asks of an element, as data.
        formula: Option<FormulaFn>,
        /// As those of `Map`.
        operands: SmallVec<[RowOperand; 4]>,
    },
    /// The elements of rows joined, in an order that depends on their number alone; they are those of argument 0.
    Fold {
        /// What becomes of each element first.
        terms: Option<RowMap>,
        /// How they are joined.
        join: RowJoin,
        /// What becomes of what is joined, which is of this many elements.
        finish: fn(f32, usize) -> f32,
    },
}

/// A function of rows, element by element.
#[derive(Clone, Copy, Debug)]
pub struct RowMap {
    /// Takes rows of the operands and writes a row of the result, all of one length.
    pub row: fn(&[&[f32]], &mut [f32]),
    /// What it computes of an element, as data, if that is basic arithmetic.
    pub formula: Option<FormulaFn>,
}

/// How elements of a row are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowJoin {
    /// Their sum.
    Sum,
    /// The largest, or NaN.
    Largest,
    /// The smallest, or NaN.
    Smallest,
}

/// An operand of [`RowForm::Map`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RowOperand {
    /// The tensor at this argument position: of singles, or of another real type, each element converted to a single.
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
        let one = matches!(&results[..], [r] if matches!(r.dtype, DType::F32 | DType::Bool));
        form(&Args(&args), &results).filter(|_| one)
    }
}

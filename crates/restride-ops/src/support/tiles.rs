//! Tile rules of operators that are computed row by row.

use restride_ir::{Follows, TileRule};
use smallvec::{SmallVec, smallvec};

/// All dimensions in order.
pub(crate) fn all(rank: usize) -> Follows {
    (0..rank).map(|d| Some(d as u8)).collect()
}

/// The first dimensions in order, and `whole` ones behind them that are used as a whole.
pub(crate) fn leading(rank: usize, whole: usize) -> Follows {
    (0..rank).map(|d| (d + whole < rank).then_some(d as u8)).collect()
}

/// `n` dimensions that are used as a whole.
pub(crate) fn whole(n: usize) -> Follows {
    smallvec![None; n]
}

/// The rule of a call whose loops are the dimensions of operands and results of one rank; `uncut` says which must stay whole.
pub(crate) fn by_rows(
    rank: usize,
    uncut: impl Fn(usize) -> bool,
    results: SmallVec<[Follows; 1]>,
    operands: SmallVec<[Follows; 3]>,
) -> Option<TileRule> {
    (rank > 0).then(|| TileRule { cut: (0..rank).map(|d| !uncut(d)).collect(), results, operands })
}

//! Writes that visit a cell more than once, or read cells that they wrote. Eager PyTorch accepts them where the overlap is
//! hard to see; their meaning is its loop over the elements.

use restride_ir::{Error, Meta, Result, Visited, visits};

/// Past this many rounds a write is refused.
const MAX_ROUNDS: i64 = 4096;

/// A write in rounds.
pub struct Rounds {
    /// The target's dimensions in the order of the loop, slowest first.
    pub order: Vec<i64>,
    /// For each round the indices of the outer dimensions, in that order.
    pub prefixes: Vec<Vec<i64>>,
}

/// The rounds of a pointwise write; `None` if it is one step.
pub fn rounds(target: &Meta, operands: &[Visited]) -> Result<Option<Rounds>> {
    let Some(visits) = visits(target, operands)? else { return Ok(None) };
    let sizes = &target.layout.sizes;
    let rounds = visits.order[..visits.depth].iter().fold(1i64, |n, &d| n.saturating_mul(sizes[d]));
    if rounds > MAX_ROUNDS {
        return Err(Error::unsupported("a write into overlapping memory that visits too many elements one by one")
            .help("clone the tensor before writing it"));
    }
    let prefixes = visits.indices(sizes).map(|index| index.into_vec()).collect();
    Ok(Some(Rounds { order: visits.order.iter().map(|d| *d as i64).collect(), prefixes }))
}

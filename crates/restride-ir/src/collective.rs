//! Collectives: exchanges of elements between the ranks of a group, as plain data.
//!
//! An operator of kind [`Kernel::Collective`](crate::Kernel::Collective) describes an exchange; the executor's engine carries
//! it out. A program names groups by strings, which an engine binds to ranks.

use crate::OpError;
use std::fmt;
use std::sync::Arc;

/// The operation by which an exchange reduces the ranks' elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOp {
    /// Sum.
    Sum,
    /// Mean: the sum, divided by the number of ranks.
    Avg,
    /// Product.
    Product,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Bitwise and.
    BitAnd,
    /// Bitwise or.
    BitOr,
    /// Bitwise exclusive or.
    BitXor,
}

impl ReduceOp {
    /// Every operation, with PyTorch's name.
    pub const ALL: [(&'static str, ReduceOp); 8] = [
        ("sum", ReduceOp::Sum),
        ("avg", ReduceOp::Avg),
        ("product", ReduceOp::Product),
        ("min", ReduceOp::Min),
        ("max", ReduceOp::Max),
        ("band", ReduceOp::BitAnd),
        ("bor", ReduceOp::BitOr),
        ("bxor", ReduceOp::BitXor),
    ];

    /// The operation of one of PyTorch's names, in upper or lower case.
    ///
    /// # Errors
    /// Another name, such as a sum with a factor (`premul_sum`).
    pub fn of(name: &str) -> Result<ReduceOp, OpError> {
        let found = ReduceOp::ALL.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, op)| *op);
        found.ok_or_else(|| {
            OpError::unsupported(format!("a collective reduces by `{name}`, which restride does not know"))
        })
    }

    /// PyTorch's name.
    pub fn name(self) -> &'static str {
        ReduceOp::ALL.iter().find(|(_, op)| *op == self).map_or("", |(name, _)| name)
    }
}

/// The ranks' parts in an exchange. Elements count in row-major order; parts of ranks follow each other along dimension 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Pattern {
    /// Every rank gets the reduction of all ranks' operands.
    AllReduce(ReduceOp),
    /// Every rank gets all ranks' operands, in the order of ranks.
    AllGather,
    /// Rank `r` gets part `r` of the reduction of all ranks' operands.
    ReduceScatter(ReduceOp),
    /// Rank `r` gets part `r` of every rank's operand, in the order of ranks.
    AllToAll {
        /// Elements sent to each rank.
        sent: Vec<usize>,
        /// Elements received from each rank.
        received: Vec<usize>,
    },
    /// Every rank gets the operand of rank `root`.
    Broadcast {
        /// Rank in the group.
        root: i64,
    },
}

/// One exchange of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Exchange {
    /// The ranks' parts.
    pub pattern: Pattern,
    /// Name of the group.
    pub group: Arc<str>,
    /// Number of ranks that the call states; `None` where it fits any.
    pub ranks: Option<i64>,
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Pattern::AllReduce(op) => write!(f, "all_reduce({})", op.name())?,
            Pattern::AllGather => f.write_str("all_gather")?,
            Pattern::ReduceScatter(op) => write!(f, "reduce_scatter({})", op.name())?,
            Pattern::AllToAll { .. } => f.write_str("all_to_all")?,
            Pattern::Broadcast { root } => write!(f, "broadcast(from {root})")?,
        }
        write!(f, " in group `{}`", self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_have_pytorchs_names() {
        for (name, op) in ReduceOp::ALL {
            assert_eq!(ReduceOp::of(&name.to_uppercase()), Ok(op));
            assert_eq!(op.name(), name);
        }
        assert!(ReduceOp::of("premul_sum").is_err());
    }
}

//! Remarks: decisions that an optimizing pass took or declined, each with its reason.

use crate::{GraphId, NodeId, ValueId};
use std::fmt;

/// The kind of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum RemarkKind {
    /// A view, or a copy that changes nothing, shares its base's memory.
    ViewOnBase,
    /// A scatter writes into its base's memory.
    ScatterInBase,
    /// A source is computed in the region of its scatter.
    SourceInRegion,
    /// A result takes over the memory of an operand that dies.
    ReuseOperand,
    /// An operand of `cat` and its like is computed in its part of the result.
    AssembleInPlace,
    /// The new content of an input is computed in that input's memory.
    WriteBack,
    /// An output is computed in the caller's memory.
    OutputInCaller,
    /// A value is copied into the layout that a kernel or a view needs.
    LayoutCopy,
    /// The layout of a result is chosen for its readers.
    LaidOut,
    /// The layout of a result is the one in which kernels take the least time.
    LaidOutByTime,
    /// Operators are computed tile by tile as one node, and what they hand on is not written.
    Fuse,
    /// A value is recomputed for a late reader, so that its memory is free in between.
    ComputeAgain,
}

/// The reason of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// The candidate was taken.
    Taken,
    /// The candidate was taken, because kernels take less time.
    Faster {
        /// By how much: an estimate.
        nanoseconds: i64,
    },
    /// The memory is still read: by a node, or by the caller.
    StillRead {
        /// The next reader; `None` is the caller.
        by: Option<NodeId>,
    },
    /// Operand and result share some cells without being the same.
    PartialOverlap,
    /// Element sizes differ.
    DTypeDiffers,
    /// Sizes differ.
    SizesDiffer,
    /// The memory is the caller's and must not change.
    CallerVisible,
    /// The value is an input.
    IsInput,
    /// The value is stored elsewhere already: it is a view, or has several hinted places.
    MadeElsewhere,
    /// At that place the value would prevent a larger saving.
    InTheWay,
    /// No strides on that buffer express the shape.
    NoStrides,
    /// Several elements share a cell.
    NotDense,
    /// Whether cells are shared could not be decided within the budget.
    UnknownOverlap,
    /// The operator needs another layout.
    KernelNeedsLayout,
    /// An option switches this off.
    SwitchedOff,
}

/// One decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// The graph that the node is in.
    pub graph: GraphId,
    /// The node that the decision is about.
    pub node: NodeId,
    /// The kind of the decision.
    pub kind: RemarkKind,
    /// The reason of the decision.
    pub reason: Reason,
    /// Bytes that the decision saves or costs.
    pub bytes: i64,
    /// The value whose memory it is about, where that is another one: a view's base, the operand that is taken over, a
    /// scatter's base, the whole that a part is wanted in or the part that is put in it, the input that is written.
    pub over: Option<ValueId>,
}

impl Remark {
    /// Whether it was declined.
    pub fn missed(&self) -> bool {
        !self.reason.taken()
    }
}

impl Reason {
    /// Whether the candidate was taken.
    pub fn taken(self) -> bool {
        matches!(self, Reason::Taken | Reason::Faster { .. })
    }
}

impl RemarkKind {
    /// Name of the decision in JSON files.
    pub fn key(self) -> &'static str {
        match self {
            RemarkKind::ViewOnBase => "view on its base",
            RemarkKind::ScatterInBase => "scatter in its base",
            RemarkKind::SourceInRegion => "source straight in its region",
            RemarkKind::ReuseOperand => "result on a dying operand",
            RemarkKind::AssembleInPlace => "part built in place",
            RemarkKind::WriteBack => "written straight into the input",
            RemarkKind::OutputInCaller => "computed in the output's memory",
            RemarkKind::LayoutCopy => "copy into another layout",
            RemarkKind::LaidOut => "laid out as it is read",
            RemarkKind::LaidOutByTime => "laid out for time",
            RemarkKind::Fuse => "fused",
            RemarkKind::ComputeAgain => "recomputed",
        }
    }

    /// The decision in words, as taken or as declined.
    pub fn words(self, taken: bool) -> &'static str {
        let [yes, no] = match self {
            RemarkKind::ViewOnBase => ["kept as a view of its base", "not kept as a view of its base"],
            RemarkKind::ScatterInBase => ["scatter written into its base", "scatter not written into its base"],
            RemarkKind::SourceInRegion => ["source computed in its region", "source not computed in its region"],
            RemarkKind::ReuseOperand => ["computed in a dying operand", "not computed in its operand"],
            RemarkKind::AssembleInPlace => ["`cat` operand computed in place", "`cat` operand not computed in place"],
            RemarkKind::WriteBack => ["computed in the input's memory", "not computed in the input's memory"],
            RemarkKind::OutputInCaller => ["computed in the output's memory", "not computed in the output's memory"],
            RemarkKind::LayoutCopy => ["copied into another layout", "not kept in its layout"],
            RemarkKind::LaidOut => ["layout chosen for its readers", "layout not chosen for its readers"],
            RemarkKind::LaidOutByTime => ["layout chosen for time", "layout not chosen for time"],
            RemarkKind::Fuse => ["fused", "not fused with its reader"],
            RemarkKind::ComputeAgain => ["recomputed", "not recomputed"],
        };
        if taken { yes } else { no }
    }
}

impl fmt::Display for RemarkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words(true))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Taken => f.write_str("taken"),
            Reason::Faster { nanoseconds } => {
                write!(f, "kernels take an estimated {:.1} µs less", *nanoseconds as f64 / 1000.0)
            }
            Reason::StillRead { by: Some(node) } => write!(f, "still read by {node}"),
            Reason::StillRead { by: None } => f.write_str("still read by the caller"),
            Reason::PartialOverlap => f.write_str("it shares only some cells with an operand"),
            Reason::DTypeDiffers => f.write_str("element sizes differ"),
            Reason::SizesDiffer => f.write_str("sizes differ"),
            Reason::CallerVisible => f.write_str("the caller can see that memory"),
            Reason::IsInput => f.write_str("it is an input"),
            Reason::MadeElsewhere => f.write_str("it is stored elsewhere already"),
            Reason::InTheWay => f.write_str("it would prevent a larger saving"),
            Reason::NoStrides => f.write_str("no strides on this buffer express the new shape"),
            Reason::NotDense => f.write_str("several elements share a cell"),
            Reason::UnknownOverlap => f.write_str("the overlap could not be decided"),
            Reason::KernelNeedsLayout => f.write_str("the operator needs another layout"),
            Reason::SwitchedOff => f.write_str("switched off"),
        }
    }
}

//! Remarks: decisions that an optimizing pass took or declined, each with its reason.

use crate::{GraphId, NodeId, ValueId};
use std::fmt;

/// What was decided about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum RemarkKind {
    /// A view, or a copy that changes nothing, on its base.
    ViewOnBase,
    /// A scatter in its base's memory.
    ScatterInBase,
    /// A source computed straight into the region of a scatter.
    SourceInRegion,
    /// A result on an operand that dies.
    ReuseOperand,
    /// An operand of `cat` and its like where its part of the result is.
    AssembleInPlace,
    /// The new content of an input in that input's memory.
    WriteBack,
    /// An output in the memory that the caller keeps.
    OutputInCaller,
    /// A copy into the layout that a kernel or a view asks for.
    LayoutCopy,
    /// A result laid out so that kernels need not put it in order.
    LaidOut,
    /// A value computed again where it is needed late, so that its memory is free in between.
    ComputeAgain,
}

/// Why it was decided so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// It was taken.
    Taken,
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
    /// The elements are somewhere else already: an input's, a view's, a value that is wanted in several places.
    MadeElsewhere,
    /// There it would keep more from being done in place than it saves.
    InTheWay,
    /// No strides on that memory say the shape.
    NoStrides,
    /// Several elements lie in one cell.
    NotDense,
    /// Whether cells are shared was not decided within the budget.
    UnknownOverlap,
    /// The layout is not the one that the operator asks for.
    KernelNeedsLayout,
    /// The option is switched off.
    SwitchedOff,
}

/// One decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// The graph that the node is in.
    pub graph: GraphId,
    /// The node that it is about.
    pub node: NodeId,
    /// What was decided about.
    pub kind: RemarkKind,
    /// Why it was decided so.
    pub reason: Reason,
    /// Bytes saved, or bytes that it costs.
    pub bytes: i64,
    /// The value whose memory it is about, where that is another one: a view's base, the operand that is taken over, a
    /// scatter's base, the whole that a part is wanted in or the part that is put in it, the input that is written.
    pub over: Option<ValueId>,
}

impl Remark {
    /// Whether it was declined.
    pub fn missed(&self) -> bool {
        self.reason != Reason::Taken
    }
}

impl fmt::Display for RemarkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RemarkKind::ViewOnBase => "view on its base",
            RemarkKind::ScatterInBase => "scatter in its base",
            RemarkKind::SourceInRegion => "source straight in its region",
            RemarkKind::ReuseOperand => "result on a dying operand",
            RemarkKind::AssembleInPlace => "part computed in place",
            RemarkKind::WriteBack => "written straight into the input",
            RemarkKind::OutputInCaller => "computed in the output's memory",
            RemarkKind::LayoutCopy => "copy into another layout",
            RemarkKind::LaidOut => "layout chosen for its readers",
            RemarkKind::ComputeAgain => "recomputed",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Taken => f.write_str("taken"),
            Reason::StillRead { by: Some(node) } => write!(f, "still read by {node}"),
            Reason::StillRead { by: None } => f.write_str("still read by the caller"),
            Reason::PartialOverlap => f.write_str("operand and result overlap partially"),
            Reason::DTypeDiffers => f.write_str("element sizes differ"),
            Reason::SizesDiffer => f.write_str("sizes differ"),
            Reason::CallerVisible => f.write_str("the caller sees that memory"),
            Reason::MadeElsewhere => f.write_str("its elements are already stored elsewhere"),
            Reason::InTheWay => f.write_str("it would prevent larger savings"),
            Reason::NoStrides => f.write_str("no strides on this buffer express the new shape"),
            Reason::NotDense => f.write_str("several elements in one cell"),
            Reason::UnknownOverlap => f.write_str("overlap undecided within the budget"),
            Reason::KernelNeedsLayout => f.write_str("the kernel needs another layout"),
            Reason::SwitchedOff => f.write_str("switched off"),
        }
    }
}

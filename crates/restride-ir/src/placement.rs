//! Where values live and what runs, as plain data: the answer of `place` and `plan`, judged by `restride-check`,
//! carried out by the executor.

use crate::arena::id_type;
use crate::{Arg, GraphId, IdArena, Nested, Node, NodeId, Reuse, ReuseKind, Table, ValueId, operands_of};
use restride_tensor::Layout;
use std::collections::BTreeMap;

id_type!(
    /// A piece of memory.
    BufferId,
    "buf"
);

/// Whose memory a buffer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferKind {
    /// A part of the arena, for the plan to give an offset.
    Arena,
    /// The storage of the graph input at this position: the caller's, the instance's, or a weight. Holds the
    /// input's value from the start; written only if the input is one that the program mutates.
    Input(usize),
    /// Fresh memory of the graph output at this position, which the caller keeps.
    Output(usize),
}

/// A piece of memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    /// Whose it is.
    pub kind: BufferKind,
    /// Size in bytes; for an input, how far the program reaches.
    pub bytes: i64,
}

/// Where a value's elements are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// In which buffer.
    pub buffer: BufferId,
    /// Layout in it, in elements of the value's type, counted from the buffer's start.
    pub layout: Layout,
}

/// One step of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// A node's kernel.
    Run {
        /// The node.
        node: NodeId,
        /// Where it reads its tensor operands, in the order of `Node::operands`; `None` for operands that are numbers.
        reads: Vec<Option<Place>>,
        /// Where it writes its results; `None` for results that are numbers.
        writes: Vec<Option<Place>>,
    },
    /// Moves a value's elements from one place to another.
    Move {
        /// The value that is moved.
        value: ValueId,
        /// Where it is.
        from: Box<Place>,
        /// Where it goes.
        to: Box<Place>,
    },
    /// A node that costs nothing: its results already lie where `places` says, once the moves before it are done (a view,
    /// a scatter whose source was written into its region, a `cat` of parts written in place).
    Free {
        /// The node.
        node: NodeId,
    },
}

/// Where every value lives, and the steps that run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Placement {
    /// All buffers.
    pub buffers: IdArena<BufferId, Buffer>,
    /// Where each value is after the step that makes it. Values of no use and numbers have none.
    pub places: Table<ValueId, Option<Place>>,
    /// What runs, in order.
    pub steps: Vec<Step>,
    /// Working memory of a step: a buffer of kind `Arena`, of that step alone. A higher-order node needs
    /// `LoopFrame::of(..).bytes` where that is not 0.
    pub scratch: BTreeMap<NodeId, BufferId>,
    /// The bodies that higher-order nodes among the steps call.
    pub nested: BTreeMap<GraphId, Nested>,
}

impl Placement {
    /// The buffers that a step reads or writes, its working memory among them; repeats included.
    pub fn touched(&self, step: &Step) -> impl Iterator<Item = BufferId> {
        let mut out = Vec::new();
        match step {
            Step::Run { node, reads, writes } => {
                out.extend(reads.iter().chain(writes).flatten().map(|p| p.buffer));
                out.extend(self.scratch.get(node).copied());
            }
            Step::Move { from, to, .. } => out.extend([from.buffer, to.buffer]),
            Step::Free { .. } => {}
        }
        out.into_iter()
    }
}

/// The values that a kernel copies to where its results are because it only computes what changes (`index_put`), and the
/// results do not lie on them. Scatters that only move elements are not among them.
pub fn carried_over(node: &Node, reads: &[Option<Place>], writes: &[Option<Place>]) -> Vec<ValueId> {
    let def = node.op.def();
    let carried = def.reuse.iter().filter(|l| l.kind == ReuseKind::Carried && def.movement.is_none());
    let copied = |l: &Reuse| {
        let Some(Arg::Value(v)) = node.args.get(l.arg as usize) else { return None };
        let operand = operands_of(&node.args, l.arg as usize).start;
        let write = writes.get(l.result as usize)?.as_ref()?;
        (reads.get(operand)?.as_ref()? != write).then_some(*v)
    };
    carried.filter_map(copied).collect()
}

/// A memory of the target, such as on-chip SRAM: a range of the arena. Every buffer is stored in one memory as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemorySpace {
    /// Its name.
    pub name: String,
    /// Byte offset of its first byte in the arena.
    pub start: i64,
    /// Bytes that the plan uses of it.
    pub bytes: i64,
    /// Bytes that it has; `None` for no limit.
    pub capacity: Option<i64>,
    /// Bytes that the steps of one run read and write in it.
    pub traffic: i64,
    /// Values whose buffers are required to be in it.
    pub pinned: Vec<ValueId>,
}

/// Byte offset of each buffer in the arena.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// Byte offset in the arena, for buffers of kind `Arena`: a multiple of `ARENA_ALIGN` and of `align`.
    pub offsets: Table<BufferId, Option<i64>>,
    /// Alignment of the offsets in bytes, where it is more than `ARENA_ALIGN`.
    pub align: i64,
    /// The memories that the arena consists of, fastest first, one behind the other; none for a single one without a name.
    pub memories: Vec<MemorySpace>,
    /// No assignment of buffers to these memories has less traffic outside of the first one. 0 without memories.
    pub spilled_at_least: i64,
    /// Bytes of the arena: a multiple of `ARENA_ALIGN`.
    pub arena_bytes: i64,
    /// Largest sum of bytes live at one step, in blocks of `ARENA_ALIGN`.
    pub lower_bound_bytes: i64,
    /// No plan is smaller than this: the lower bound, the largest buffer, or more where a search has been through all that is
    /// smaller.
    pub at_least_bytes: i64,
    /// Whether the arena is proved as small as it can be: no larger than that.
    pub optimal: bool,
}

impl Plan {
    /// Bytes that the steps of one run read and write outside of the first memory.
    pub fn spilled(&self) -> i64 {
        self.memories.iter().skip(1).fold(0, |sum, m| sum.saturating_add(m.traffic))
    }

    /// The memory in which a buffer at this offset of the arena is stored.
    pub fn memory_at(&self, offset: i64) -> Option<&MemorySpace> {
        self.memories.iter().rfind(|m| m.start <= offset && m.bytes > 0)
    }
}

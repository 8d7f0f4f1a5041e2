//! Placement and plan as plain data: `place` and `plan` decide them, `restride-check` checks them, the executor runs them.

use crate::arena::id_type;
use crate::{Arg, GraphId, IdArena, Nested, Node, NodeId, Reuse, ReuseKind, Table, ValueId, operands_of};
use restride_tensor::Layout;
use std::collections::BTreeMap;

id_type!(
    /// A piece of memory.
    BufferId,
    "buf"
);

/// Owner of a buffer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferKind {
    /// The arena; the plan gives an offset.
    Arena,
    /// The storage of the graph input at this position, owned by the caller, the instance or a weight. It holds the input's
    /// value from the start. Only inputs that the program mutates are written.
    Input(usize),
    /// Fresh memory of the graph output at this position, which the caller keeps.
    Output(usize),
}

/// A piece of memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    /// Owner.
    pub kind: BufferKind,
    /// Size in bytes; for an input, the bytes that the program reaches.
    pub bytes: i64,
}

/// Place of a value's elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Buffer.
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
        /// Places of the tensor operands, in the order of `Node::operands`; `None` for numbers.
        reads: Vec<Option<Place>>,
        /// Places of the results; `None` for numbers.
        writes: Vec<Option<Place>>,
    },
    /// Copies a value's elements from one place to another.
    Move {
        /// The value that is moved.
        value: ValueId,
        /// Source.
        from: Box<Place>,
        /// Destination.
        to: Box<Place>,
    },
    /// A node without work: after the moves before it, its results are stored at their `places` (a view, a scatter whose
    /// source was computed in its region, a `cat` of parts computed in place).
    Free {
        /// The node.
        node: NodeId,
    },
}

/// Place of every value, and the steps of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Placement {
    /// All buffers.
    pub buffers: IdArena<BufferId, Buffer>,
    /// Place of each value after the step that computes it. Unused values and numbers have none.
    pub places: Table<ValueId, Option<Place>>,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Scratch of a step: a buffer of kind `Arena`, live for that step alone. A higher-order node needs
    /// `LoopFrame::of(..).bytes`, if not 0.
    pub scratch: BTreeMap<NodeId, BufferId>,
    /// Placed bodies of the higher-order nodes.
    pub nested: BTreeMap<GraphId, Nested>,
}

impl Placement {
    /// Buffers that a step reads or writes, scratch included; repeats included.
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

/// Operands that a kernel copies to its results because it computes only the changes (`index_put`), and that do not share
/// the results' memory. Scatters that only move elements are excluded.
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

/// A memory of the target, such as on-chip SRAM: a range of the arena. A buffer is stored in one memory as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemorySpace {
    /// Name.
    pub name: String,
    /// Offset in the arena, in bytes.
    pub start: i64,
    /// Bytes that the plan uses.
    pub bytes: i64,
    /// Capacity in bytes; `None` is unlimited.
    pub capacity: Option<i64>,
    /// Bytes that one run reads and writes in it.
    pub traffic: i64,
    /// Values whose buffers must be stored in it.
    pub pinned: Vec<ValueId>,
}

/// Byte offset of each buffer in the arena.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// Offsets of buffers of kind `Arena`: multiples of `ARENA_ALIGN` and of `align`.
    pub offsets: Table<BufferId, Option<i64>>,
    /// Alignment of the offsets in bytes, if more than `ARENA_ALIGN`.
    pub align: i64,
    /// Memories that the arena consists of, fastest first, one behind the other; empty for a single nameless memory.
    pub memories: Vec<MemorySpace>,
    /// Lower bound of the traffic outside of the first memory; 0 without memories.
    pub spilled_at_least: i64,
    /// Bytes of the arena: a multiple of `ARENA_ALIGN`.
    pub arena_bytes: i64,
    /// Largest sum of bytes live at one step, in blocks of `ARENA_ALIGN`.
    pub lower_bound_bytes: i64,
    /// Lower bound of any plan: the largest sum of live bytes, the largest buffer, or more if an exhaustive search proved
    /// it.
    pub at_least_bytes: i64,
    /// Whether the arena is proved minimal.
    pub optimal: bool,
}

impl Plan {
    /// Bytes that one run reads and writes outside of the first memory.
    pub fn spilled(&self) -> i64 {
        self.memories.iter().skip(1).fold(0, |sum, m| sum.saturating_add(m.traffic))
    }

    /// The memory that holds the buffer at this offset.
    pub fn memory_at(&self, offset: i64) -> Option<&MemorySpace> {
        self.memories.iter().rfind(|m| m.start <= offset && m.bytes > 0)
    }
}

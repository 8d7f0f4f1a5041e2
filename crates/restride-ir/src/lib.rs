//! Programs as plain data: graphs of operator calls with types and regions, operator declarations, and the
//! placements and plans that passes decide. No pass, no kernel and no operator table lives here.
#![forbid(unsafe_code)]

mod arena;
mod arg;
mod bits;
mod compact;
mod conditions;
mod defaults;
mod eager;
mod effects;
mod error;
mod expr;
mod grad;
mod graph;
mod limits;
mod lives;
mod nested;
mod op;
mod placement;
mod program;
mod refusal;
mod remark;
mod schema;
mod scratch;
#[cfg(test)]
mod test_ops;
pub mod text;
mod types;
mod verify;
mod visits;

pub use arena::{Arena, Id, Table};
pub use arg::{Arg, Args, Ints, MemoryFormat, Operands};
pub use bits::LazyBits;
pub use compact::compact;
pub use conditions::{Conditions, within};
pub use eager::dense_like;
pub use effects::{Effect, Effects, Summary, callees_first, operands_of, schema_effect};
pub use error::{Error, ErrorKind, OpError, Result};
pub use expr::{Binding, Expr, ExprFn, Symbol};
pub use grad::{FormFn, Grad, GradCall, GradEmit, GradFn};
pub use graph::{Graph, GraphId, Node, NodeId, Origin, Value, ValueId};
pub use limits::{Limits, beyond};
pub use lives::{Live, lives};
pub use nested::{
    ARENA_ALIGN, BodyFrame, Frame, HopCall, HopItem, Kept, Nested, aligned, border_layout, input_meta, known_meta,
    layout_bytes, output_meta,
};
pub use op::{
    AssertsFn, ByBatch, Call, Ctx, DecomposeFn, Emit, Exactness, Hop, InferFn, Kernel, MathView, Member, MemberArg,
    Movement, Op, OpDef, OverlapCheck, Piece, Reuse, ReuseKind, RngKey, Sample, SampleArg, ScratchFn, TrailingFn, Twin,
    TwinDecl, TwinReturn, Val, ViewArgs, ViewOutcome, ViewRule, view_args,
};
pub use placement::{Buffer, BufferId, BufferKind, MemorySpace, Place, Placement, Plan, Step, carried_over};
pub use program::{
    AliasRoot, Guard, InputKind, InputSpec, OutputAlias, OutputKind, OutputSpec, Program, SampleInput, SampleInputs,
    Signature, Stage, Weight, Weights,
};
pub use refusal::{Memory, refuse_cast, refuse_overlap};
pub use remark::{Reason, Remark, RemarkKind};
pub use restride_tensor::{DType, Dim, Dims, Layout, Scalar};
pub use schema::{AliasInfo, ArgType, Default as SchemaDefault, Schema, SchemaArg, SchemaReturn};
pub use scratch::{call_trailing_room, placed_args, scratch_bytes, trailing_room};
pub use types::{Meta, TensorType, Type};
pub use verify::{relay, verify, verify_form};
pub use visits::{Visited, Visits, computed_aside, fastest_first, fits, visits};

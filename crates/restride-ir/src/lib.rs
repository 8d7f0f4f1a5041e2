//! Programs as plain data: graphs of operator calls, types and regions, operator declarations, placements and plans.
//! Passes, kernels and the operator table are in other crates.
#![forbid(unsafe_code)]

mod arena;
mod arg;
mod collective;
mod conditions;
mod declare;
mod default_args;
mod eager_results;
mod effects;
mod emit;
mod error;
mod expr;
mod fails;
mod grad;
mod graph;
mod higher_order;
mod indices;
mod lazy_bits;
mod licence;
mod limits;
mod liveness;
mod names;
mod op;
mod placement;
mod program;
mod refusal;
mod registered_op;
mod remark;
mod row_form;
mod row_space;
mod schema;
mod scratch;
mod substitute;
#[cfg(test)]
mod test_ops;
pub mod text;
mod tiles;
mod trees;
mod types;
mod verify;
mod write_order;

pub use arena::{Id, IdArena, Table};
pub use arg::{Arg, ArgValues, Args, ArgsValues, Ints, MemoryFormat, Operands};
pub use collective::{Exchange, Pattern, ReduceOp};
pub use conditions::{Conditions, size_apart, within};
pub use eager_results::dense_like;
pub use effects::{Effect, Effects, Summary, callees_first, operands_of, schema_effect};
pub use emit::{DecomposeFn, Emit, Val};
pub use error::{Error, ErrorKind, OpError, Result};
pub use expr::{Binding, Expr, ExprFn, Symbol, gcd};
pub use fails::Fails;
pub use grad::{FormFn, Grad, GradCall, GradEmit, GradFn};
pub use graph::{Graph, GraphId, Node, NodeId, Origin, Value, ValueId};
pub use higher_order::{
    ARENA_ALIGN, BodyFrame, CarryPlace, HopCall, HopItem, LoopFrame, Nested, aligned, border_layout, input_meta,
    known_meta, layout_bytes, output_meta,
};
pub use indices::sort_indices;
pub use lazy_bits::LazyBits;
pub use licence::{Licence, licences};
pub use limits::{Limits, beyond};
pub use liveness::{Live, lives};
pub use names::Names;
pub use op::{
    AssemblyPart, AssertsFn, ByBatch, Call, Ctx, EpilogueFn, Exactness, Hop, InPlaceCalls, InferFn, Kernel, MacsFn,
    MathView, Member, MemberArg, Movement, OpDef, OutOverlaps, OutVerdict, OverlapCheck, PrepackFn, Prepacked,
    RequiresFn, Reuse, ReuseKind, RngKey, Sample, SampleArg, SampleFn, ScratchFn, TimeFn, TrailingFn, Twin, TwinDecl,
    TwinReturn, ViewArgs, ViewOutcome, ViewRule, view_args,
};
pub use placement::{Buffer, BufferId, BufferKind, MemorySpace, Place, Placement, Plan, Step, carried_over};
pub use program::{
    AliasRoot, Guard, InputKind, InputSpec, OutputAlias, OutputKind, OutputSpec, Program, SampleInput, SampleInputs,
    Signature, Stage, Weight, Weights,
};
pub use refusal::{OperandMemory, OutSize, refuse_cast, refuse_overlap};
pub use registered_op::{Op, RegisteredOp};
pub use remark::{Reason, Remark, RemarkKind};
pub use restride_tensor::{DType, Dim, Dims, Layout, Scalar};
pub use row_form::{RowForm, RowFormFn, RowJoin, RowMap, RowOperand};
pub use row_space::{RowExtent, RowSpace};
pub use schema::{AliasInfo, ArgType, Default as SchemaDefault, Schema, SchemaArg, SchemaReturn};
pub use scratch::{call_layout_time, call_may_trail, call_scratch, macs, may_trail, placed_args, scratch_bytes};
pub use tiles::{
    Follows, FusedHead, TileFn, TileRule, Tiling, check_fused, epilogue_rows, fused_body, fused_head, view_dims,
};
pub use trees::CollectTree;
pub use types::{Meta, TensorType, Type};
pub use verify::{relay, relay_units, squeezed_help, verify, verify_form, verify_types};
pub use write_order::{Visited, Visits, computed_aside, fastest_first, fits, visits};

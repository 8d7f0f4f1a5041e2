//! Operator declarations, as plain data.
//!
//! `restride-ops` declares each operator once, as a static [`OpDef`]; a `None` shows what the operator lacks. An [`Op`] is the
//! handle of a registered declaration, which nodes hold.

use crate::{Arg, Args, DecomposeFn, Exchange, Expr, Fails, Grad, Meta, Op, OpError, RowFormFn, TensorType, TileFn};
use restride_tensor::{DType, Fitted, Layout, RawTensor, Scalar, View, ViewMut};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

/// Shape function: types of the results from types and numbers of the arguments, with PyTorch's element types, sizes and
/// strides, and offset 0. A list result counts as several results. Errors are PyTorch's.
pub type InferFn = fn(&Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>>;

/// Scratch bytes of a kernel for arguments and results of these types and layouts.
pub type ScratchFn = fn(&Args<'_, Meta>, &[Meta]) -> Result<usize>;

/// Multiply-adds of a kernel that sums products, for arguments and results of these types.
pub type MacsFn = fn(&Args<'_, Meta>, &[Meta]) -> Result<i64>;

/// Whether the result of a call may take over an operand's last cells ([`ReuseKind::Trailing`]).
pub type TrailingFn = fn(&Args<'_, Meta>) -> bool;

/// Arguments of a kernel.
pub struct Call<'a> {
    /// Arguments.
    pub args: Args<'a, View<'a>>,
    /// Memory for the results: sizes and element types of the shape function, any strides. It overlaps an argument only as
    /// the operator's `reuse` allows.
    pub outs: &'a [ViewMut<'a>],
    /// Threads and randomness.
    pub ctx: &'a Ctx,
    /// The caller's promise that arguments and results fit; kernels rely on it unchecked.
    pub fitted: Fitted,
}

/// Run-wide settings that kernels see.
#[derive(Clone, Debug, Default)]
pub struct Ctx {
    /// Key of the call's random draws.
    pub rng: RngKey,
    /// Number of threads a kernel may use; results do not depend on it.
    pub threads: usize,
}

/// Key of a random draw. A counter-based generator maps key and element index to bits, so moving or repeating a call keeps its
/// draws.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RngKey {
    /// The user's seed.
    pub seed: u64,
    /// Number of the run of the instance.
    pub call: u64,
    /// Original node.
    pub node: u32,
    /// Loop iteration (mixed over nested loops).
    pub iteration: u64,
}

/// Kernel of an operator.
#[derive(Clone, Copy)]
pub enum Kernel {
    /// No kernel: the operator is a view, is decomposed, or cannot be run.
    None,
    /// Writes results of known sizes.
    Fixed(fn(&Call<'_>) -> Result<()>),
    /// Makes results whose sizes depend on the data (`nonzero`); `outs` is empty.
    Dynamic(fn(&Call<'_>) -> Result<Vec<RawTensor>>),
    /// Gives a number (`item`); `outs` is empty.
    Scalar(fn(&Call<'_>) -> Result<Scalar>),
    /// Describes an exchange between ranks, from argument 0 to the only result, which the run's engine carries out.
    Collective(fn(&Args<'_, Meta>) -> Result<Exchange>),
}

/// Arguments of a view rule: types and numbers, known (`i64`) or symbolic.
pub type ViewArgs<'a, D> = Args<'a, TensorType<D>, D>;

/// Result of a view rule.
#[derive(Clone, PartialEq, Debug)]
pub enum ViewOutcome<D: restride_tensor::Dim> {
    /// The results are these views of argument 0.
    Views(SmallVec<[TensorType<D>; 1]>),
    /// The results are fresh memory (no strides express the `reshape`): the kernel runs.
    Copy,
    /// Symbolic sizes do not tell view from copy.
    Unknown,
}

/// Maps the layout of a base to the layouts of its views. Layouts count cells of the storage, so rules compose.
#[derive(Clone, Copy)]
pub struct ViewRule {
    /// With known sizes. Numbers among the arguments are as `Scalar::as_view_number` gives them.
    pub known: fn(&ViewArgs<'_, i64>) -> Result<ViewOutcome<i64>>,
    /// With symbolic sizes.
    pub symbolic: fn(&ViewArgs<'_, Expr>) -> Result<ViewOutcome<Expr>>,
}

impl ViewRule {
    /// Applies the rule to a call with known types and numbers.
    pub fn of(&self, args: &[Arg<Meta, Scalar>]) -> Result<ViewOutcome<i64>> {
        (self.known)(&Args(&view_args(args)))
    }
}

/// A call's arguments as view rules read them.
pub fn view_args(args: &[Arg<Meta, Scalar>]) -> Vec<Arg<Meta, i64>> {
    let one = |a: &Arg<Meta, Scalar>| {
        let mapped: std::result::Result<_, std::convert::Infallible> =
            a.try_map(|m| Ok(m.clone()), |s| Ok(s.as_view_number()));
        match mapped {
            Ok(arg) => arg,
        }
    };
    args.iter().map(one).collect()
}

/// A view that also maps elements as they are read and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MathView {
    /// Complex conjugate (`_conj`).
    Conj,
    /// Negation (`_neg_view`).
    Neg,
    /// The identity, and a copy where the conjugate bit is set (`resolve_conj`).
    ResolveConj,
    /// The identity, and a copy where the negative bit is set (`resolve_neg`).
    ResolveNeg,
}

/// Condition under which a result may take over an argument's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReuseKind {
    /// Operand and result store each index in the same cell; every other operand is disjoint from the result or does so too.
    SameIndex,
    /// As `SameIndex`, and the kernel reads a whole row before it writes the row.
    RowWise {
        /// Position of the dimension argument.
        dim: u8,
    },
    /// Operand and result have the same place, and the kernel writes only the cells that change (`index_put`). Every other
    /// operand is disjoint from the result.
    Carried,
    /// The kernel reads all of the operand before it writes anything.
    ReadsFirst,
    /// The result takes over the operand's last cells: both are row-major and end at the same cell, with one element type, and
    /// every other operand is disjoint from the result. `OpDef::trailing` restricts the calls. The first cells stay free for a
    /// `cat` that is built part by part.
    Trailing,
}

/// A licence for a result to take over an argument's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reuse {
    /// Argument position.
    pub arg: u8,
    /// Result position.
    pub result: u8,
    /// Condition.
    pub kind: ReuseKind,
}

/// One operand's region of an assembled result.
#[derive(Clone, PartialEq, Debug)]
pub struct AssemblyPart {
    /// Position among the node's tensor operands (`Node::operands`).
    pub operand: usize,
    /// Cells of the result, in the order of the operand's indices.
    pub region: Layout,
}

/// The declared element map of an operator that only moves data.
#[derive(Clone, Copy)]
pub enum Movement {
    /// The result is argument `base` with a region replaced by argument `src` (`slice_scatter`).
    Scatter {
        /// Position of the base.
        base: u8,
        /// Position of the source.
        src: u8,
        /// Layout of the region, as a view rule over all arguments with the base first.
        region: ViewRule,
    },
    /// Every cell of the result is a cell of one operand (`cat`). The function gives the parts for a result's layout.
    Assemble(fn(&Args<'_, Meta>, &Layout) -> Result<Vec<AssemblyPart>>),
    /// The results are copies of these views of argument 0 (`permute_copy`).
    View(ViewRule),
    /// The result has argument 0's elements in the same logical (row-major) order and of the same type: `clone`, `reshape`.
    Same,
}

/// A return of a mutating operator, by its functional twin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TwinReturn {
    /// The argument itself.
    Arg(u8),
    /// A result of the twin.
    Result(u8),
}

/// The functional form of a mutating operator, for declarations.
#[derive(Clone, Copy)]
pub struct TwinDecl {
    /// Name (`aten._native_batch_norm_legit_functional.default`).
    pub op: &'static str,
    /// Arguments, as positions among the mutating operator's.
    pub args: &'static [u8],
    /// Pairs of a written argument and the twin's result that is its new content.
    pub writes: &'static [(u8, u8)],
    /// Returns of the mutating operator.
    pub returns: &'static [TwinReturn],
    /// Whether a call mutates, by its numbers and `None`s; without a function, every call does.
    pub when: Option<fn(&Args<'_, (), Expr>) -> bool>,
}

/// The functional form of a mutating operator, resolved.
#[derive(Clone, Debug)]
pub struct Twin {
    /// The functional operator.
    pub op: Op,
    /// Arguments, as positions among the mutating operator's.
    pub args: SmallVec<[u8; 8]>,
    /// Pairs of a written argument and the twin's result that is its new content.
    pub writes: SmallVec<[(u8, u8); 2]>,
    /// Returns of the mutating operator.
    pub returns: SmallVec<[TwinReturn; 2]>,
    /// The call first resizes the written argument to the result (`out=`).
    pub resizes: bool,
    /// What an `out=` form does where a written argument overlaps itself or an operand, in the order of `writes`; empty where that
    /// is not known.
    pub outs: SmallVec<[OutOverlaps; 1]>,
    /// As in [`TwinDecl`].
    pub when: Option<fn(&Args<'_, (), Expr>) -> bool>,
}

impl Twin {
    /// Whether an `out=` form computes its result apart and copies it, so no order of a loop shows.
    pub fn copies_out(&self) -> bool {
        self.resizes && !self.outs.is_empty() && self.outs.iter().all(|o| o.copies)
    }
}

/// An in-place form that PyTorch composes of calls on views of its target. They write the views' cells alone, also of a target
/// with lazy bits or with several elements in one cell.
#[derive(Clone, Copy)]
pub struct InPlaceCalls {
    /// The calls, whose result is argument 0.
    pub calls: DecomposeFn,
    /// Whether the functional form writes the same elements, for a target whose elements are in cells of their own.
    pub as_twin: fn(&ViewArgs<'_, Expr>) -> Result<bool>,
}

/// How close results are to PyTorch's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Exactness {
    /// Every bit.
    Exact,
    /// Within a relative and an absolute tolerance (for `f32`; half types use theirs).
    Within {
        /// Relative.
        rtol: f64,
        /// Absolute.
        atol: f64,
    },
    /// Sizes and types only: the random generator is restride's.
    Random,
}

/// Overlapping memory that eager PyTorch refuses in the in-place form of a functional operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverlapCheck {
    /// As `TensorIterator`: a target with several elements in one cell (where a stride of 0 shows it), and operands that overlap
    /// it partially.
    Partial,
    /// A target with several elements in one cell, and any operand that shares a cell with the target (`scatter_`).
    Any,
    /// As `Any`, unless all operands are empty vectors (`cat.out`).
    Pieces,
    /// PyTorch checks nothing and reads operands while it writes (`baddbmm_`, running statistics), so overlaps have no meaning.
    Unseen,
    /// Any operand that shares a cell with the target (`index_put_`).
    Operands,
    /// An index (argument 2) that shares a cell with the target; the value is read first (`index_fill_`).
    Index,
    /// A target with several elements in one cell (`masked_scatter_`, `flip.out`).
    Target,
    /// A mask (argument 1) that overlaps the target partially (`masked_fill_`).
    PartialMask,
    /// None (`fill_`, `zero_`).
    None,
}

/// What eager PyTorch does with an `out=` that overlaps itself or an operand.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OutVerdict {
    /// Refuses the call.
    Refused,
    /// Gives the result of memory apart.
    Apart,
    /// Writes a cell more than once.
    Loop,
    /// Depends on more, or is not known.
    #[default]
    Open,
}

/// Verdicts on a tensor that an `out=` form writes.
#[derive(Clone, Default, Debug)]
pub struct OutOverlaps {
    /// `out` has several elements in one cell (where a stride of 0 shows it), and the result's sizes; or others, so the call
    /// resizes it.
    pub stretched: [OutVerdict; 2],
    /// The form computes its result apart and copies it.
    pub copies: bool,
    /// For each argument of the functional form: `out` shows all its elements in their order; some of its cells; some only after
    /// the resize; some only before it.
    pub shared: SmallVec<[[OutVerdict; 4]; 4]>,
}

/// Higher-order operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// `cond(pred, true_graph, false_graph, operands)`.
    Cond,
    /// `while_loop(cond_graph, body_graph, carried, additional)`.
    WhileLoop,
    /// `scan(combine_graph, init, xs, additional)`.
    Scan,
    /// `map_impl(body_graph, xs, additional)`.
    Map,
}

/// An argument of a sample call.
pub type SampleArg = Arg<RawTensor, Scalar>;

/// One sample call of an operator, for the generic tests.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Arguments; trailing ones may be missing.
    pub args: Vec<SampleArg>,
}

/// Makes the sample calls of an operator.
pub type SampleFn = fn() -> Vec<Sample>;

/// Source of an argument in the member calls of a `_foreach_*` operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberArg {
    /// The list's element for this member.
    Spread(u8),
    /// The whole argument, for every member.
    Whole(u8),
    /// This member's element of a 1-d tensor, as a 0-d tensor (`select(values, 0, i)`).
    Item(u8),
}

/// Member call of a `_foreach_*` operator.
#[derive(Clone, Debug)]
pub struct Member {
    /// The operator applied to each member of the lists.
    pub op: Op,
    /// Arguments, from those of the `_foreach_*` operator; missing trailing ones take their defaults.
    pub args: SmallVec<[MemberArg; 4]>,
}

/// An operator that computes matrix by matrix: reshaping the batch dimensions of its arguments reshapes the result's, bit for
/// bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByBatch {
    /// Arguments with one matrix a batch entry.
    pub each: &'static [u8],
    /// Arguments that broadcast over the batch.
    pub broadcast: &'static [u8],
}

/// The declaration of an operator.
#[derive(Clone, Copy)]
pub struct OpDef {
    // -- Identity
    /// PyTorch's schema, corrected where it is silent about aliasing. A declaration may give the name alone (`mul.Tensor`):
    /// the registry puts the schema in its place.
    pub schema: &'static str,
    /// What the operator computes, in one line, where its name does not say it.
    pub doc: &'static str,

    // -- Types
    /// Shape function: sizes, strides and element types of the results.
    pub infer: Option<InferFn>,
    /// The kernel reads or sets strides as PyTorch shows them, so its operand needs the eager layout (`as_strided`).
    pub strided: bool,

    // -- Aliasing
    /// View rule: the results alias argument `base`.
    pub view: Option<ViewRule>,
    /// The argument that the results alias: 0, but for `set_`, which makes argument 0 a view of another argument.
    pub base: u8,
    /// The lazy map that a view applies to its elements (`_conj`).
    pub math: Option<MathView>,
    /// A view rule that changes nothing returns the operand itself, the same tensor object (`contiguous`).
    pub itself: bool,
    /// A composite view that PyTorch resolves first: of a lazily mapped tensor, it views a copy (`unsafe_split`).
    pub resolves: bool,
    /// A list of views that PyTorch makes one by one, so autograd lets each be written in place (`tensor_split`, not `split`).
    pub one_by_one: bool,
    /// PyTorch refuses this view for some strides of its operand (`view`, `view_as_complex`).
    pub asks_for_strides: bool,
    /// PyTorch may return the operand itself, which no schema declares (`conj_physical` of real elements).
    pub may_return_operand: bool,

    // -- Mutation
    /// Functional form, where the name does not give it.
    pub twin: Option<TwinDecl>,
    /// The calls on views of argument 0 that PyTorch composes the in-place form of (`fill_diagonal_`).
    pub in_place_calls: Option<&'static InPlaceCalls>,
    /// The operator changes the sizes and strides of argument 0 (`t_`, `squeeze_`, `as_strided_`).
    pub metadata: bool,
    /// The operator may enlarge the storage of argument 0 (`resize_`).
    pub grows: bool,
    /// Overlaps of memory that the in-place form refuses.
    pub overlap: OverlapCheck,
    /// The in-place form applies lazy bits as it reads and writes (`copy`). Other operators get resolved copies of lazily mapped
    /// operands, and their results are copied back.
    pub maps_bits: bool,
    /// The in-place form on 16-bit floats computes in an `f32` copy of its target and copies all of it back (`scatter_`).
    pub halves_aside: bool,

    // -- Placement
    /// Licences for results to take over the memory of arguments.
    pub reuse: &'static [Reuse],
    /// Element map of an operator that only moves data.
    pub movement: Option<Movement>,
    /// Scratch bytes that a placement reserves for the kernel. A kernel that gets none, or too few, allocates its own.
    pub scratch: Option<ScratchFn>,
    /// Condition of [`ReuseKind::Trailing`], by the layouts of the operands.
    pub trailing: Option<TrailingFn>,
    /// Time of a call by the layouts of operands and results, for an operator that is faster in one than in another.
    pub layout_time: Option<TimeFn>,

    // -- Computation
    /// Kernel.
    pub kernel: Kernel,
    /// Multiply-adds, as PyTorch's `FlopCounterMode` counts them; `None` for an operator that goes through its operands once.
    pub macs: Option<MacsFn>,
    /// Decomposition into other operators, for an operator without a kernel.
    pub decompose: Option<DecomposeFn>,
    /// What a view operator computes where it copies: an operator that fusion and placement know more about (`to` of another type).
    pub copies_by: Option<DecomposeFn>,
    /// Calls that are decomposed although the operator has a kernel (`index` with a mask: sizes depend on data).
    pub composed: Option<fn(&Args<'_, Meta>) -> bool>,
    /// Element by element with broadcasting; the in-place form visits cells in logical index order.
    pub pointwise: bool,
    /// The kernel computes each row of argument 0 (its last dimension) by itself, so reshaping the leading dimensions of an
    /// operand of rank 2 or more reshapes the result, bit for bit.
    pub by_row: bool,
    /// The kernel computes each matrix (the last two dimensions) of some arguments by itself.
    pub by_batch: Option<&'static ByBatch>,
    /// How parts of results follow from parts of operands, for an operator that is not `pointwise`.
    pub tiles: Option<TileFn>,
    /// The function of rows that calls on singles are.
    pub rows: Option<RowFormFn>,
    /// For an operator whose kernel may call an epilogue for finished parts of its result (`restride-kernels`, `support/epilogue.rs`): how
    /// many of the result's dimensions are the rows of these parts, by the call; `None` for a call without epilogue.
    pub epilogue: Option<EpilogueFn>,
    /// The form of a call whose operand was packed once.
    pub prepacked: Option<&'static Prepacked>,
    /// Computes the body that is argument 0, tile by tile.
    pub fused: bool,
    /// Higher-order operator.
    pub hop: Option<Hop>,

    // -- Effects
    /// Draws random numbers.
    pub random: bool,
    /// Has an effect beside its results (an assertion): no pass removes it.
    pub effectful: bool,
    /// Waits for the exchange whose result is argument 0. Argument 1 lists the operands of the exchange, whose memory stays as it
    /// is until then; the call reads none of it.
    pub awaits: bool,
    /// Elements on which a call fails.
    pub fails: Fails,
    /// Conditions on the arguments' numbers that hold after the operator succeeded.
    pub asserts: Option<AssertsFn>,
    /// Conditions on the sizes of operands without which a call fails, where PyTorch's shape functions do not record them.
    pub requires: Option<RequiresFn>,

    // -- Gradients
    /// Gradient, from the tables beside the families; `None` where no table has one.
    pub grad: Option<Grad>,
    /// A view without gradient: autograd follows neither reads nor writes through it (`detach`, `view.dtype`).
    pub detaches: bool,
    /// Elements of argument 0 with the autograd history of argument 1. Lowering replaces the call by argument 0.
    pub history: bool,
    /// The first of the results that autograd records no history of (new running statistics).
    pub unrecorded: Option<u8>,

    // -- Tests
    /// How close results are to PyTorch's.
    pub exactness: Exactness,
    /// Sample calls; `None` where they are not compiled in (feature `samples` of `restride-ops`).
    pub samples: Option<SampleFn>,
}

/// How a call takes an operand that was brought into another form once, where that operand is constant: a packed weight.
#[derive(Clone, Copy)]
pub struct Prepacked {
    /// The argument.
    pub operand: u8,
    /// The operator that packs it: it takes the operand and further numbers.
    pub pack: &'static str,
    /// The operator that takes the packed operand, with the arguments of the plain one and further numbers. Results are the same
    /// bits.
    pub call: &'static str,
    /// The further numbers of both; `None` where the call does not gain by it.
    pub numbers: PrepackFn,
}

/// Picoseconds of a call on one core with vectors of eight singles, from the types of arguments and results. Placement compares the
/// layouts of one call by it.
pub type TimeFn = fn(&Args<'_, Meta>, &[Meta]) -> Result<i64>;

/// Rows of [`OpDef::epilogue`], from the types of arguments and results.
pub type EpilogueFn = fn(&Args<'_, Meta>, &[Meta]) -> Option<usize>;

/// Numbers of [`Prepacked`], from the types of a call.
pub type PrepackFn = fn(&Args<'_, Meta>) -> Option<(Vec<i64>, Vec<i64>)>;

/// Conditions that an assertion checks, from its arguments.
pub type AssertsFn = fn(&[Arg]) -> Vec<Expr>;

/// Conditions that a call requires of its operands' sizes, from its arguments with types for tensors.
pub type RequiresFn = fn(&Args<'_, TensorType, Expr>) -> Vec<Expr>;

impl OpDef {
    // -- Identity
    /// A declaration with nothing but a schema (or a name, see [`OpDef::schema`]): the operator can be shown and
    /// functionalized, not run.
    pub const fn new(schema: &'static str) -> OpDef {
        OpDef {
            schema,
            doc: "",
            infer: None,
            view: None,
            base: 0,
            math: None,
            itself: false,
            resolves: false,
            one_by_one: false,
            detaches: false,
            history: false,
            unrecorded: None,
            metadata: false,
            grows: false,
            strided: false,
            asks_for_strides: false,
            may_return_operand: false,
            maps_bits: false,
            twin: None,
            in_place_calls: None,
            reuse: &[],
            movement: None,
            kernel: Kernel::None,
            scratch: None,
            trailing: None,
            layout_time: None,
            macs: None,
            decompose: None,
            copies_by: None,
            composed: None,
            pointwise: false,
            halves_aside: false,
            by_row: false,
            by_batch: None,
            tiles: None,
            rows: None,
            epilogue: None,
            prepacked: None,
            fused: false,
            overlap: OverlapCheck::Partial,
            random: false,
            effectful: false,
            fails: Fails::Never,
            awaits: false,
            asserts: None,
            requires: None,
            hop: None,
            grad: None,
            exactness: Exactness::Within { rtol: 1e-4, atol: 1e-5 },
            samples: None,
        }
    }
}

/// Accessors for view rules.
impl<'a, D: restride_tensor::Dim> Args<'a, TensorType<D>, D> {
    /// A number that must be known even if sizes are symbolic (a dimension, a flag).
    pub fn known(&self, i: usize) -> Result<i64> {
        self.number(i)?.known().ok_or_else(|| OpError::new(format!("argument {i} must be a known number")))
    }
    /// Known numbers.
    pub fn knowns(&self, i: usize) -> Result<Vec<i64>> {
        let known = self.numbers(i)?.iter().map(|d| d.known()).collect::<Option<Vec<_>>>();
        known.ok_or_else(|| OpError::new(format!("argument {i} must hold known numbers")))
    }
    /// Element type of argument 0.
    pub fn dtype(&self) -> Result<DType> {
        Ok(self.tensor(0)?.dtype)
    }
}

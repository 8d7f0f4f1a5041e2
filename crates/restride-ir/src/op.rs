//! Operator declarations: everything that the toolchain knows of an operator, as plain data.
//!
//! An [`OpDef`] is written once, as a `static`, in `restride-ops`; what an operator lacks is a visible `None`. An
//! [`Op`] is a registered declaration: the handle that nodes hold.

use crate::{Arg, Args, Expr, Grad, Meta, OpError, Schema, TensorType};
use restride_tensor::{DType, Fitted, Layout, RawTensor, Scalar, View, ViewMut};
use smallvec::SmallVec;
use std::fmt;

type Result<T> = std::result::Result<T, OpError>;

/// Types of the results (a list result spread over several) from types and numbers of the arguments:
/// PyTorch's element type, sizes and strides, offset 0. Fails with PyTorch's complaint where PyTorch has one.
pub type InferFn = fn(&Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>>;

/// Bytes of working memory that a kernel takes for arguments and results of these types, which lie as the layouts say.
pub type ScratchFn = fn(&Args<'_, Meta>, &[Meta]) -> Result<usize>;

/// For which calls a result may lie on an operand's last cells (see [`ReuseKind::Trailing`]), and with how many bytes of working
/// memory.
pub type TrailingFn = fn(&Args<'_, Meta>) -> Option<usize>;

/// What a kernel is called with.
pub struct Call<'a> {
    /// Arguments.
    pub args: Args<'a, View<'a>>,
    /// Memory for the results, of the sizes and element types that the shape rule gave, of any strides. It
    /// overlaps no argument except as the operator's `reuse` allows.
    pub outs: &'a [ViewMut<'a>],
    /// Threads and randomness.
    pub ctx: &'a Ctx,
    /// The caller's word that all this is so: kernels of operators do not look again.
    pub fitted: Fitted,
}

/// What a run gives its kernels besides arguments.
#[derive(Clone, Debug, Default)]
pub struct Ctx {
    /// Key of the call's random draws.
    pub rng: RngKey,
    /// Number of threads a kernel may use; results do not depend on it.
    pub threads: usize,
}

/// Key of a random draw: a counter-based generator maps it and the element's index to bits, so that moving or
/// repeating a call does not change its draws.
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

/// How results are computed.
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
}

/// Arguments of a view rule: types and numbers, known (`i64`) or symbolic.
pub type ViewArgs<'a, D> = Args<'a, TensorType<D>, D>;

/// What a view rule finds.
#[derive(Clone, PartialEq, Debug)]
pub enum ViewOutcome<D: restride_tensor::Dim> {
    /// The results are these views of argument 0.
    Views(SmallVec<[TensorType<D>; 1]>),
    /// The result is fresh memory (`reshape` of what strides cannot express): the kernel runs.
    Copy,
    /// With symbolic sizes: one or the other, not provable.
    Unknown,
}

/// Where a view's elements are, from where its base's are. Layouts are in the storage's cells, so a rule
/// composes with whatever the base is a view of.
#[derive(Clone, Copy)]
pub struct ViewRule {
    /// With known sizes. Numbers among the arguments are as `Scalar::as_view_number` gives them.
    pub known: fn(&ViewArgs<'_, i64>) -> Result<ViewOutcome<i64>>,
    /// With symbolic sizes.
    pub symbolic: fn(&ViewArgs<'_, Expr>) -> Result<ViewOutcome<Expr>>,
}

impl ViewRule {
    /// What the rule finds for a call with known types and numbers.
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

/// In which way a result may take over an argument's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReuseKind {
    /// Operand and result put each index in the same cell, and every other operand is disjoint from the result
    /// or lies cell for cell like it too.
    SameIndex,
    /// Like `SameIndex`, and the kernel reads a whole row over `dim` (argument position of it) before it writes it.
    RowWise {
        /// Position of the dimension argument.
        dim: u8,
    },
    /// The operand is carried over: in its memory the kernel only writes what changes (`index_put`). Every other
    /// operand is disjoint from the result. The kernel sees that base address and layout of both are equal.
    Carried,
    /// The kernel reads all of the operand before it writes anything.
    ReadsFirst,
    /// The result lies on the operand's last cells: both are row-major in memory up to the same cell, of one element type, the
    /// result of no more elements, and every other operand is disjoint from it. For which calls, `OpDef::trailing` says. The
    /// last cells and not the first, so that the first are free for what is put together part by part before them.
    Trailing,
}

/// A licence for a result to lie on an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reuse {
    /// Argument position.
    pub arg: u8,
    /// Result position.
    pub result: u8,
    /// On which condition.
    pub kind: ReuseKind,
}

/// A part of an assembled result: which operand's elements lie in which cells of it.
#[derive(Clone, PartialEq, Debug)]
pub struct AssemblyPart {
    /// Position among the node's tensor operands (`Node::operands`).
    pub operand: usize,
    /// Cells of the result, index by index the operand's.
    pub region: Layout,
}

/// The declared element map of an operator that only moves data.
#[derive(Clone, Copy)]
pub enum Movement {
    /// The result is argument `base` with the region replaced by argument `src` (`slice_scatter`). `region` gives
    /// the region's layout from the call's arguments, the base's type being that of argument `base`.
    Scatter {
        /// Position of the base.
        base: u8,
        /// Position of the source.
        src: u8,
        /// Layout of the region, as a view rule over all arguments with the base first.
        region: ViewRule,
    },
    /// The result is put together of operands (`cat`); the function gives the pieces for a result type.
    Assemble(fn(&Args<'_, Meta>, &Layout) -> Result<Vec<AssemblyPart>>),
    /// The results have the elements of these views of argument 0 (`permute_copy`).
    View(ViewRule),
    /// The result has the elements of argument 0 in the same logical (row-major) order, same element type: `clone`,
    /// `contiguous`, `reshape`.
    Same,
}

/// How a return of a mutating operator relates to its functional twin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TwinReturn {
    /// It is the argument itself.
    Arg(u8),
    /// It is this result of the twin.
    Result(u8),
}

/// The functional form of a mutating operator, for declarations.
#[derive(Clone, Copy)]
pub struct TwinDecl {
    /// Its name (`aten._native_batch_norm_legit_functional.default`).
    pub op: &'static str,
    /// Its arguments, as positions among this operator's.
    pub args: &'static [u8],
    /// Which argument of this operator gets which result of the twin as its new content.
    pub writes: &'static [(u8, u8)],
    /// What this operator returns.
    pub returns: &'static [TwinReturn],
    /// Whether this call mutates at all, by its numbers and `None`s; always if there is no function.
    pub when: Option<fn(&Args<'_, (), Expr>) -> bool>,
}

/// The functional form of a mutating operator, resolved.
#[derive(Clone, Debug)]
pub struct Twin {
    /// The functional operator.
    pub op: Op,
    /// Its arguments, as positions among the mutating operator's.
    pub args: SmallVec<[u8; 8]>,
    /// Which argument gets which result of the twin as its new content.
    pub writes: SmallVec<[(u8, u8); 2]>,
    /// What the mutating operator returns.
    pub returns: SmallVec<[TwinReturn; 2]>,
    /// The written argument is resized to the result first (`out=`).
    pub resizes: bool,
    /// As in the declaration.
    pub when: Option<fn(&Args<'_, (), Expr>) -> bool>,
}

/// How results compare with PyTorch's.
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
    /// Draws are our own: only sizes and types compare.
    Random,
}

/// What eager PyTorch refuses when a functional operator's in-place form is given memory that overlaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverlapCheck {
    /// As `TensorIterator`: a target with several elements in one cell (as far as strides of 0 show it) and operands that
    /// share some of its cells without being the same cells.
    Partial,
    /// A target with several elements in one cell, and any operand that shares a cell with the target (`scatter_`).
    Any,
    /// As `Any`, but nothing is checked where all operands are empty vectors (`cat.out`).
    Pieces,
    /// PyTorch checks nothing, and reads operands while it writes (`min.dim_min`, running statistics): what shares a cell
    /// with the target has no meaning.
    Unseen,
    /// Any operand that shares a cell with the target. A target with several elements in one cell passes
    /// (`index_put_`, `index_fill_`).
    Operands,
    /// A target with several elements in one cell only (`masked_scatter_`, `flip.out`).
    Target,
    /// A mask (the second argument) that shares some of the target's cells without being the same cells. A target with
    /// several elements in one cell passes (`masked_fill_`).
    PartialMask,
    /// Nothing is checked (`fill_`, `zero_`).
    None,
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

/// A handle to a value while operators are composed (see [`Emit`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Val(pub u32);

/// Where a decomposition sends its calls: a graph that is being built, or the interpreter.
pub trait Emit {
    /// Calls an operator by name (`aten.mul.Tensor`); trailing arguments left out take their defaults. Gives
    /// the results, lists spread.
    fn call(&mut self, op: &str, args: &[Arg<Val, Scalar>]) -> Result<SmallVec<[Val; 1]>>;
    /// Type of a value.
    fn meta(&self, v: Val) -> Meta;
}

/// Composes an operator of others. Results in the schema's order, lists spread.
pub type DecomposeFn = fn(&mut dyn Emit, &Args<'_, Val>) -> Result<SmallVec<[Val; 1]>>;

/// An argument of a sample call.
pub type SampleArg = Arg<RawTensor, Scalar>;

/// One sample call of an operator, for the generic tests.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Arguments; trailing ones may be left out.
    pub args: Vec<SampleArg>,
}

/// Where an argument of a `_foreach_*` operator's member call comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberArg {
    /// The list's element for this member.
    Spread(u8),
    /// The argument as it is, for every member.
    Whole(u8),
    /// The element of a 1-d tensor for this member, as a 0-d tensor (`select(values, 0, i)`).
    Item(u8),
}

/// The operator that a `_foreach_*` one applies to each member of its lists.
#[derive(Clone, Debug)]
pub struct Member {
    /// It.
    pub op: Op,
    /// Its arguments, from those of the `_foreach_*` operator; trailing ones left out take their defaults.
    pub args: SmallVec<[MemberArg; 4]>,
}

/// An operator on batches of matrices: where arguments and result have the same dimensions before the last two, and the
/// arguments are given others of the same number of entries in the same order, the result has those, bit for bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByBatch {
    /// Arguments that have a matrix for each entry.
    pub each: &'static [u8],
    /// Arguments that broadcast to the entries.
    pub broadcast: &'static [u8],
}

/// What the toolchain knows of an operator.
#[derive(Clone, Copy)]
pub struct OpDef {
    /// PyTorch's schema, corrected where it is silent about aliasing.
    pub schema: &'static str,
    /// One line on what it does where the name does not say it.
    pub doc: &'static str,
    /// Shape, stride and type rule.
    pub infer: Option<InferFn>,
    /// View rule: the results alias argument `base`.
    pub view: Option<ViewRule>,
    /// The argument that the results of a view are views of: 0 but for `set_`, which makes argument 0 a view of another.
    pub base: u8,
    /// The element map of a view that has one.
    pub math: Option<MathView>,
    /// Where the view rule changes nothing, the result is the operand itself, the same tensor object (`contiguous`).
    pub itself: bool,
    /// A view that PyTorch does not know to be one: of a lazily mapped tensor, of a copy that has the bits applied
    /// (`unsafe_split`).
    pub resolves: bool,
    /// A list of views that PyTorch makes one by one, so that they may be written where something is differentiated
    /// (`tensor_split`, not `split`).
    pub one_by_one: bool,
    /// A view with an autograd history of its own: PyTorch differentiates neither what is read through it nor what is written
    /// through it (`detach`, `view.dtype`).
    pub detaches: bool,
    /// The elements of argument 0 with the autograd history of argument 1. It says something to gradients alone: a program that
    /// runs has argument 0 in its place.
    pub history: bool,
    /// The view changes argument 0 itself, in place (`t_`, `squeeze_`, `as_strided_`).
    pub metadata: bool,
    /// A change of argument 0 that makes room for itself where the memory is too small (`resize_`).
    pub grows: bool,
    /// Reads or sets strides as PyTorch shows them: needs its operand in the eager layout (`as_strided`).
    pub strided: bool,
    /// A view that PyTorch refuses for some strides of its operand (`view`, `view_as_complex`).
    pub asks_for_strides: bool,
    /// PyTorch may return the operand itself, which no schema declares (`conj_physical` of real elements).
    pub may_return_operand: bool,
    /// The in-place form reads and writes through lazy bits (`copy`). Other operators are given copies of lazily mapped
    /// operands, with the bits applied, and results are copied back.
    pub maps_bits: bool,
    /// Functional form, where it does not follow from the name.
    pub twin: Option<TwinDecl>,
    /// Licences for results to lie on arguments.
    pub reuse: &'static [Reuse],
    /// Element map of an operator that only moves data.
    pub movement: Option<Movement>,
    /// Kernel.
    pub kernel: Kernel,
    /// Working memory of the kernel, which a placement gives it. Without, or where it is not enough, a kernel takes its own.
    pub scratch: Option<ScratchFn>,
    /// For which calls a result may lie on an operand's last cells, and with how many bytes of working memory beside `scratch`;
    /// operands lie as the layouts say.
    pub trailing: Option<TrailingFn>,
    /// Composition of other operators, for one without a kernel.
    pub decompose: Option<DecomposeFn>,
    /// Which calls are composed although there is a kernel for the others (`index` with a mask: sizes depend on data).
    pub composed: Option<fn(&Args<'_, Meta>) -> bool>,
    /// Element by element with broadcasting: an in-place form visits cells in logical index order.
    pub pointwise: bool,
    /// The in-place form on 16-bit floats works on a copy of its target in `f32`, all of which is copied back (`scatter_`).
    pub halves_aside: bool,
    /// Takes the rows of argument 0, its last dimension, one by one, whatever the other dimensions are: for an operand with
    /// others (of the same number of rows, at least two dimensions each) the result has those others, bit for bit.
    pub by_row: bool,
    /// Takes the last two dimensions of some arguments as matrices, one by one, whatever the dimensions before are.
    pub by_batch: Option<ByBatch>,
    /// What the in-place form refuses.
    pub overlap: OverlapCheck,
    /// Draws random numbers.
    pub random: bool,
    /// Has an effect besides its results (an assertion): never removed.
    pub effectful: bool,
    /// The conditions over numbers among the arguments that hold where the operator does not fail.
    pub asserts: Option<AssertsFn>,
    /// Higher-order operator.
    pub hop: Option<Hop>,
    /// How it is differentiated. Declared in the tables of gradients beside the families; `None` where nobody said it.
    pub grad: Option<Grad>,
    /// How results compare with PyTorch's.
    pub exactness: Exactness,
    /// Sample calls.
    pub samples: Option<fn() -> Vec<Sample>>,
}

/// What an assertion says of its arguments.
pub type AssertsFn = fn(&[Arg]) -> Vec<Expr>;

impl OpDef {
    /// A declaration with nothing but a schema: such an operator can be shown and functionalized, not run.
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
            metadata: false,
            grows: false,
            strided: false,
            asks_for_strides: false,
            may_return_operand: false,
            maps_bits: false,
            twin: None,
            reuse: &[],
            movement: None,
            kernel: Kernel::None,
            scratch: None,
            trailing: None,
            decompose: None,
            composed: None,
            pointwise: false,
            halves_aside: false,
            by_row: false,
            by_batch: None,
            overlap: OverlapCheck::Partial,
            random: false,
            effectful: false,
            asserts: None,
            hop: None,
            grad: None,
            exactness: Exactness::Within { rtol: 1e-4, atol: 1e-5 },
            samples: None,
        }
    }
}

/// A registered operator.
pub struct RegisteredOp {
    name: String,
    schema: Schema,
    def: OpDef,
    twin: Option<Twin>,
    member: Option<Member>,
}

/// Handle of a registered operator. Equal if it is the same registration.
#[derive(Clone, Copy)]
pub struct Op(&'static RegisteredOp);

impl Op {
    /// Registers a declaration; its memory is kept for the life of the process. `twin` is the resolved functional
    /// form of a mutating operator, `member` the operator that a `_foreach_*` one applies to each list member.
    pub fn register(def: OpDef, twin: Option<Twin>, member: Option<Member>) -> Result<Op> {
        let schema = Schema::parse(def.schema)?;
        Ok(Op(Box::leak(Box::new(RegisteredOp { name: schema.full_name(), schema, def, twin, member }))))
    }
    /// Full name: `aten.add.Tensor`.
    pub fn name(self) -> &'static str {
        &self.0.name
    }
    /// Whether PyTorch has the operator. Those of the namespace `restride` are functional forms that it lacks.
    pub fn in_torch(self) -> bool {
        self.schema().namespace != "restride"
    }
    /// Parsed schema.
    pub fn schema(self) -> &'static Schema {
        &self.0.schema
    }
    /// Declaration.
    pub fn def(self) -> &'static OpDef {
        &self.0.def
    }
    /// Functional form of a mutating operator.
    pub fn twin(self) -> Option<&'static Twin> {
        self.0.twin.as_ref()
    }
    /// The operator that this `_foreach_*` one applies to each member.
    pub fn member(self) -> Option<Op> {
        self.0.member.as_ref().map(|m| m.op)
    }
    /// Arguments of the call of [`Op::member`] for member `i` of the lists; `item` gives the i-th element of a 1-d
    /// tensor as a 0-d tensor. Trailing arguments left out take their defaults.
    pub fn member_args<V: Clone, S: Clone>(
        self,
        args: &[Arg<V, S>],
        i: usize,
        mut item: impl FnMut(&V, usize) -> Result<V>,
    ) -> Result<Vec<Arg<V, S>>> {
        let member = self.0.member.as_ref().ok_or_else(|| OpError::new(format!("{self} takes no lists apart")))?;
        let short = || OpError::new(format!("the lists of {self} are of different lengths"));
        let args = Args(args);
        let at = |k: u8| args.0.get(k as usize).cloned().unwrap_or(Arg::None);
        let mut out = Vec::with_capacity(member.args.len());
        for from in &member.args {
            out.push(match *from {
                MemberArg::Whole(k) => at(k),
                MemberArg::Item(k) => Arg::Value(item(args.tensor(k as usize)?, i)?),
                MemberArg::Spread(k) => match at(k) {
                    Arg::Values(vs) => match vs.get(i).ok_or_else(short)? {
                        Some(v) => Arg::Value(v.clone()),
                        None => Arg::None,
                    },
                    Arg::Scalars(ss) => Arg::Scalar(ss.get(i).ok_or_else(short)?.clone()),
                    _ => return Err(OpError::new(format!("argument {k} of {self} is not a list"))),
                },
            });
        }
        Ok(out)
    }
    /// Whether the schema says that it writes an argument (see [`Twin::when`] for those that write silently).
    pub fn is_mutable(self) -> bool {
        self.0.schema.is_mutable()
    }
    /// Whether the results are views of argument 0, or may be.
    pub fn is_view(self) -> bool {
        self.0.def.view.is_some()
    }
    /// Whether it can be run: it has a kernel, a view rule, a composition, or a twin that has.
    pub fn can_run(self) -> bool {
        let d = self.def();
        !matches!(d.kernel, Kernel::None)
            || d.view.is_some()
            || d.decompose.is_some()
            || d.hop.is_some()
            || self.member().is_some_and(Op::can_run)
            || self.twin().is_some_and(|t| t.op.can_run())
    }
    /// Whether a call with these arguments writes memory.
    pub fn mutates<V>(self, args: &[Arg<V, Expr>]) -> bool {
        match self.twin() {
            Some(Twin { when: Some(when), .. }) => {
                let plain: Vec<Arg<(), Expr>> = args.iter().map(|a| a.map_values(|_| ())).collect();
                when(&Args(&plain))
            }
            Some(_) => true,
            None => self.is_mutable() || self.def().metadata,
        }
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Op) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Op {}
impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reading types and numbers as a view rule wants them.
impl<'a, D: restride_tensor::Dim> Args<'a, TensorType<D>, D> {
    /// A number that must be known although sizes are symbolic (a dimension, a flag).
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

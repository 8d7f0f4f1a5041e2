//! A few operators for tests of this crate.

use crate::{
    Args, DType, Hop, Meta, Op, OpDef, OpError, RegisteredOp, TensorType, Twin, TwinReturn, ViewArgs, ViewOutcome,
    ViewRule,
};
use restride_tensor::Dim;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::sync::OnceLock;

type Result<T> = std::result::Result<T, OpError>;

fn transpose<D: Dim>(args: &ViewArgs<'_, D>) -> Result<ViewOutcome<D>> {
    let t = args.tensor(0)?;
    let layout = if t.rank() < 2 { t.layout.clone() } else { t.layout.transpose(0, 1)? };
    Ok(ViewOutcome::Views(smallvec![TensorType::new(t.dtype, layout)]))
}

fn slice<D: Dim>(args: &ViewArgs<'_, D>) -> Result<ViewOutcome<D>> {
    let t = args.tensor(0)?;
    let layout = t.layout.slice(args.known(1)?, args.opt_number(2)?, args.opt_number(3)?, args.number(4)?)?;
    Ok(ViewOutcome::Views(smallvec![TensorType::new(t.dtype, layout)]))
}

fn infer_same(args: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    let t = args.tensor(0)?;
    Ok(smallvec![TensorType::contiguous(t.dtype, t.sizes())])
}

fn infer_any(args: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    args.tensor(0)?;
    Ok(smallvec![TensorType::contiguous(DType::Bool, &[])])
}

fn when_training(args: &Args<'_, (), crate::Expr>) -> bool {
    args.number(3).is_ok_and(|t| *t == crate::Expr::Bool(true))
}

/// Finds one of the operators.
pub fn lookup(name: &str) -> Option<Op> {
    static OPS: OnceLock<BTreeMap<&'static str, Op>> = OnceLock::new();
    OPS.get_or_init(build).get(name).copied()
}

fn build() -> BTreeMap<&'static str, Op> {
    let view = |known, symbolic| Some(ViewRule { known, symbolic });
    let mut ops: Vec<OpDef> = [
        "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
        "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0) -> Tensor",
        "aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
        "aten::split(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
        "aten::_foreach_neg_(Tensor(a!)[] self) -> ()",
        "aten::_assert_scalar(Scalar self, str assert_msg) -> ()",
        "aten::item(Tensor self) -> Scalar",
        "test::names(str[] names, Any x) -> ()",
        "test::two(Tensor(a!) x, Tensor(b) y) -> (Tensor(a!), Tensor(b))",
    ]
    .map(OpDef::new)
    .to_vec();
    ops.extend([
        OpDef {
            infer: Some(infer_same),
            pointwise: true,
            ..OpDef::new("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
        },
        OpDef { infer: Some(infer_same), ..OpDef::new("aten::relu(Tensor self) -> Tensor") },
        OpDef { infer: Some(infer_any), ..OpDef::new("aten::any(Tensor self) -> Tensor") },
        OpDef {
            infer: Some(infer_same),
            ..OpDef::new("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
        },
        OpDef {
            random: true,
            ..OpDef::new("aten::rand(SymInt[] size, *, ScalarType? dtype=None, Device? device=None) -> Tensor")
        },
        OpDef { view: view(transpose, transpose), ..OpDef::new("aten::t(Tensor(a) self) -> Tensor(a)") },
        OpDef {
            view: view(slice, slice),
            ..OpDef::new(
                "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
            )
        },
        OpDef {
            metadata: true,
            view: view(transpose, transpose),
            ..OpDef::new("aten::t_(Tensor(a!) self) -> Tensor(a!)")
        },
        OpDef {
            hop: Some(Hop::Cond),
            ..OpDef::new("higher_order::cond(Tensor pred, Any true_graph, Any false_graph, Any operands) -> Tensor[]")
        },
        OpDef {
            hop: Some(Hop::WhileLoop),
            ..OpDef::new("higher_order::while_loop(Any cond, Any body, Any carried, Any additional) -> Tensor[]")
        },
        OpDef {
            hop: Some(Hop::Map),
            ..OpDef::new("higher_order::map_impl(Any body, Any xs, Any additional) -> Tensor[]")
        },
    ]);
    let mut table: BTreeMap<&'static str, Op> = BTreeMap::new();
    for def in ops {
        let op = Op::register(RegisteredOp::new(def, None, None).unwrap());
        table.insert(op.name(), op);
    }
    let twin = |op: &str, args: &[u8], writes: &[(u8, u8)], returns: &[TwinReturn]| Twin {
        op: table[op],
        args: args.into(),
        writes: writes.into(),
        returns: returns.into(),
        resizes: false,
        outs: Default::default(),
        when: None,
    };
    let one = [TwinReturn::Arg(0)];
    let mutable = [
        ("aten::relu_(Tensor(a!) self) -> Tensor(a!)", twin("aten.relu.default", &[0], &[(0, 0)], &one)),
        (
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
            twin("aten.add.Tensor", &[0, 1, 2], &[(0, 0)], &one),
        ),
        (
            "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
            Twin { resizes: true, ..twin("aten.add.Tensor", &[0, 1, 2], &[(3, 0)], &[TwinReturn::Arg(3)]) },
        ),
        // Writes `mean` where it trains, which its schema does not say.
        (
            "aten::norm(Tensor x, Tensor? mean, Tensor? weight, bool training) -> Tensor",
            Twin { when: Some(when_training), ..twin("aten.max.dim", &[0, 1], &[(1, 1)], &[TwinReturn::Result(0)]) },
        ),
    ]
    .map(|(schema, twin)| Op::register(RegisteredOp::new(OpDef::new(schema), Some(twin), None).unwrap()));
    table.extend(mutable.map(|op| (op.name(), op)));
    table
}

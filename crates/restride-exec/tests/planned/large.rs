//! Large programs are placed, planned and checked in time that grows with their nodes.

use super::*;
use restride_ir::{
    Arg, Expr, Graph, InputKind, InputSpec, Op, OutputKind, OutputSpec, Stage, TensorType, Type, ValueId,
};
use std::time::Instant;

/// Builds a functional program by calls.
struct Builder {
    program: Program,
}

impl Builder {
    fn new() -> Builder {
        Builder { program: Program::new("large", Stage::Functional) }
    }
    fn ty(sizes: &[i64]) -> Type {
        Type::Tensor(TensorType::contiguous(DType::F32, &sizes.iter().map(|n| Expr::Int(*n)).collect::<Vec<_>>()))
    }
    fn graph(&mut self) -> &mut Graph {
        self.program.graph_mut()
    }
    fn input(&mut self, sizes: &[i64]) -> ValueId {
        let name: std::sync::Arc<str> = format!("i{}", self.graph().inputs.len()).into();
        let value = self.graph().add_input(name.clone(), Self::ty(sizes));
        self.program.signature.inputs.push(InputSpec { value, kind: InputKind::User(name) });
        value
    }
    fn call(&mut self, op: &str, args: Vec<Arg>, ty: Type) -> ValueId {
        let op: Op = restride_ops::lookup(op).unwrap_or_else(|| panic!("{op}"));
        let mut args = args;
        op.fill_defaults_or_none(&mut args);
        let name: std::sync::Arc<str> = format!("v{}", self.graph().values.len()).into();
        let id = self.graph().add_node(op, args, [(name, ty)], Default::default());
        self.graph().nodes[id].results[0]
    }
    fn output(&mut self, v: ValueId, kind: OutputKind) {
        self.graph().outputs.push(Arg::Value(v));
        self.program.signature.outputs.push(OutputSpec { kind, alias: None });
    }
}

fn n(i: i64) -> Arg {
    Arg::Scalar(Expr::Int(i))
}

/// Places, plans, checks; every part in some ten microseconds a node.
fn measure(what: &str, program: &Program) {
    let nodes = program.graph().order.len();
    let start = Instant::now();
    let placed = place(program, &PlaceOptions::default()).unwrap();
    let at_place = start.elapsed();
    let start = Instant::now();
    let offsets = plan(program.graph(), &placed.placement, &PlanOptions::default());
    let at_plan = start.elapsed();
    let start = Instant::now();
    restride_check::placement(program, &placed.placement).unwrap_or_else(|f| panic!("{what}: {}", f[0]));
    let at_check = start.elapsed();
    let start = Instant::now();
    restride_check::plan(program, &placed.placement, &offsets).unwrap();
    let at_check_plan = start.elapsed();
    let start = Instant::now();
    Runnable::checked(program, placed.placement.clone(), offsets).unwrap();
    let at_code = start.elapsed();
    eprintln!(
        "{what}: {nodes} nodes: place {at_place:?}, plan {at_plan:?}, check {at_check:?} + {at_check_plan:?}, code {at_code:?}"
    );
    // Making the steps is one look at each node: the measure for the others, whatever the machine does besides.
    let most = at_code * 10 + std::time::Duration::from_secs(2);
    for (part, time) in
        [("place", at_place), ("plan", at_plan), ("check", at_check), ("check of the plan", at_check_plan)]
    {
        assert!(time < most, "{what}: {part} took {time:?} for {nodes} nodes, and their steps {at_code:?}");
    }
}

/// Enough for quadratic time to show.
const NODES: usize = 20_000;

#[test]
fn a_long_chain_with_views_and_residuals() {
    let mut b = Builder::new();
    let (x, w) = (b.input(&[8, 8]), b.input(&[8, 8]));
    let mut v = x;
    let mut residual = x;
    for k in 0..NODES / 5 {
        let t = b.call("aten.transpose.int", vec![Arg::Value(v), n(0), n(1)], {
            let ty = TensorType::contiguous(DType::F32, &[Expr::Int(8), Expr::Int(8)]);
            let mut ty = ty;
            ty.layout.strides = [Expr::Int(1), Expr::Int(8)].into_iter().collect();
            Type::Tensor(ty)
        });
        let m = b.call("aten.mul.Tensor", vec![Arg::Value(t), Arg::Value(w)], Builder::ty(&[8, 8]));
        let r = b.call("aten.relu.default", vec![Arg::Value(m)], Builder::ty(&[8, 8]));
        let s = b.call("aten.add.Tensor", vec![Arg::Value(r), Arg::Value(residual)], Builder::ty(&[8, 8]));
        v = b.call("aten.relu.default", vec![Arg::Value(s)], Builder::ty(&[8, 8]));
        if k % 3 == 0 {
            residual = v;
        }
    }
    b.output(v, OutputKind::User);
    measure("chain", &b.program);
}

#[test]
fn activations_kept_for_a_backward_pass() {
    let mut b = Builder::new();
    let x = b.input(&[4, 4]);
    let mut kept = vec![x];
    for _ in 0..NODES / 2 {
        let last = *kept.last().unwrap();
        kept.push(b.call("aten.relu.default", vec![Arg::Value(last)], Builder::ty(&[4, 4])));
    }
    let mut g = *kept.last().unwrap();
    for a in kept.iter().rev() {
        g = b.call("aten.mul.Tensor", vec![Arg::Value(g), Arg::Value(*a)], Builder::ty(&[4, 4]));
    }
    b.output(g, OutputKind::User);
    measure("kept activations", &b.program);
}

#[test]
fn one_buffer_filled_by_scatters() {
    let mut b = Builder::new();
    let x = b.input(&[4]);
    let rows = (NODES / 2) as i64;
    let mut all =
        b.call("aten.zeros.default", vec![Arg::Scalars(vec![Expr::Int(rows), Expr::Int(4)])], Builder::ty(&[rows, 4]));
    for k in 0..rows {
        let s = b.call("aten.relu.default", vec![Arg::Value(x)], Builder::ty(&[4]));
        let args = vec![Arg::Value(all), Arg::Value(s), n(0), n(k)];
        all = b.call("aten.select_scatter.default", args, Builder::ty(&[rows, 4]));
    }
    b.output(all, OutputKind::User);
    measure("scatters", &b.program);
}

#[test]
fn one_value_cut_into_many_and_put_together() {
    let mut b = Builder::new();
    let rows = 5000;
    let x = b.input(&[rows, 4]);
    let y = b.call("aten.relu.default", vec![Arg::Value(x)], Builder::ty(&[rows, 4]));
    let mut parts = Vec::new();
    for k in 0..rows {
        let mut ty = TensorType::contiguous(DType::F32, &[Expr::Int(4)]);
        ty.layout.offset = Expr::Int(4 * k);
        let s = b.call("aten.select.int", vec![Arg::Value(y), n(0), n(k)], Type::Tensor(ty));
        parts.push(s);
    }
    let parts: Vec<_> = parts
        .into_iter()
        .map(|s| {
            let r = b.call("aten.relu.default", vec![Arg::Value(s)], Builder::ty(&[4]));
            Some(b.call("aten.neg.default", vec![Arg::Value(r)], Builder::ty(&[4])))
        })
        .collect();
    let whole = b.call("aten.stack.default", vec![Arg::Values(parts), n(0)], Builder::ty(&[rows, 4]));
    b.output(whole, OutputKind::User);
    measure("cut and stacked", &b.program);
}

#[test]
fn many_inputs_that_change() {
    let mut b = Builder::new();
    let rate = b.input(&[]);
    let params: Vec<ValueId> = (0..2000).map(|_| b.input(&[4])).collect();
    let mut new = Vec::new();
    for (i, &p) in params.iter().enumerate() {
        let g = b.call("aten.mul.Tensor", vec![Arg::Value(p), Arg::Value(rate)], Builder::ty(&[4]));
        new.push((i + 1, b.call("aten.sub.Tensor", vec![Arg::Value(p), Arg::Value(g)], Builder::ty(&[4]))));
    }
    // Each is still read at the end.
    let mut sum = params[0];
    for &p in &params {
        sum = b.call("aten.add.Tensor", vec![Arg::Value(sum), Arg::Value(p)], Builder::ty(&[4]));
    }
    b.output(sum, OutputKind::User);
    for (i, v) in new {
        b.output(v, OutputKind::Mutation(i));
    }
    measure("parameters", &b.program);
}

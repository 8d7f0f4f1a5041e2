//! Random functional programs of views, scatters, concatenations, pointwise operators and exchanges on small matrices.

use restride_ir::{
    Arg, Args, DType, Expr, InputKind, InputSpec, Meta, Op, OutputKind, OutputSpec, Program, Scalar, Stage, TensorType,
    Type, ValueId, ViewOutcome,
};
use restride_testing::rng::Rng;
use std::sync::Arc;

struct Builder {
    program: Program,
}

impl Builder {
    fn input(&mut self, sizes: &[i64]) -> ValueId {
        let name: Arc<str> = format!("i{}", self.program.graph().inputs.len()).into();
        let ty = TensorType::contiguous(DType::F32, &sizes.iter().map(|n| Expr::Int(*n)).collect::<Vec<_>>());
        let value = self.program.graph_mut().add_input(name.clone(), Type::Tensor(ty));
        self.program.signature.inputs.push(InputSpec { value, kind: InputKind::User(name) });
        value
    }
    fn meta(&self, v: ValueId) -> Meta {
        self.program.graph().tensor(v).known().unwrap()
    }
    fn sizes(&self, v: ValueId) -> Vec<i64> {
        self.meta(v).layout.sizes.to_vec()
    }
    /// A call with PyTorch's types for its results; the first of them.
    fn call(&mut self, op: &str, mut args: Vec<Arg>) -> ValueId {
        let op: Op = restride_ops::lookup(op).unwrap_or_else(|| panic!("{op}"));
        op.fill_defaults_or_none(&mut args);
        let numbers: Vec<Arg<Meta, Scalar>> = args
            .iter()
            .map(|a| a.try_map(|v| Ok::<_, ()>(self.meta(*v)), |e| Ok(e.constant().unwrap())).unwrap())
            .collect();
        let integers: Vec<Arg<Meta, i64>> =
            numbers.iter().map(|a| a.try_map(|m| Ok::<_, ()>(m.clone()), |s| Ok(s.as_i64())).unwrap()).collect();
        let views = op.def().view.map(|rule| (rule.known)(&Args(&integers)).unwrap());
        let metas = match views {
            Some(ViewOutcome::Views(views)) => views.to_vec(),
            _ => (op.def().infer.unwrap())(&Args(&numbers)).unwrap().to_vec(),
        };
        let name: Arc<str> = format!("v{}", self.program.graph().values.len()).into();
        let ty = TensorType { dtype: metas[0].dtype, layout: metas[0].layout.map(|n| Expr::from(*n)) };
        let graph = self.program.graph_mut();
        let id = graph.add_node(op, args, [(name, Type::Tensor(ty))], Default::default());
        graph.nodes[id].results[0]
    }
}

fn int(i: i64) -> Arg {
    Arg::Scalar(Expr::Int(i))
}

/// A random program; inputs may get new contents.
pub fn random(rng: &mut Rng) -> Program {
    let mut b = Builder { program: Program::new("random", Stage::Functional) };
    let sizes = [vec![2, 3], vec![3, 2], vec![3], vec![2, 3]];
    let mut values: Vec<ValueId> = (0..2 + rng.below(3)).map(|k| b.input(&sizes[k % 4])).collect();
    let inputs = values.clone();
    for _ in 0..3 + rng.below(14) {
        // Mostly of what is new, so that values die.
        let recent = values.len().saturating_sub(5);
        let at = if rng.below(4) > 0 { recent + rng.below(values.len() - recent) } else { rng.below(values.len()) };
        let v = values[at];
        let shape = b.sizes(v);
        let rank = shape.len();
        let alike: Vec<ValueId> = values.iter().copied().filter(|o| b.sizes(*o) == shape).collect();
        let dim = rng.below(rank.max(1)) as i64;
        let new = match rng.below(14) {
            0 => b.call("aten.relu.default", vec![Arg::Value(v)]),
            1 | 2 => {
                let other = *rng.choose(&alike);
                b.call("aten.add.Tensor", vec![Arg::Value(v), Arg::Value(other)])
            }
            3 => b.call("aten.mul.Tensor", vec![Arg::Value(v), Arg::Value(v)]),
            4 if rank == 2 => b.call("aten.t.default", vec![Arg::Value(v)]),
            5 if rank > 0 => {
                let index = rng.below(shape[dim as usize].max(1) as usize) as i64;
                b.call("aten.select.int", vec![Arg::Value(v), int(dim), int(index)])
            }
            6 if rank > 0 => {
                let n = shape[dim as usize];
                let start = rng.below(n as usize) as i64;
                let step = 1 + rng.below(2) as i64;
                b.call("aten.slice.Tensor", vec![Arg::Value(v), int(dim), int(start), int(n), int(step)])
            }
            7 | 8 if rank > 0 => {
                // A scatter of some value that has the region's sizes; a fresh one if there is none.
                let n = shape[dim as usize];
                let index = rng.below(n as usize) as i64;
                let mut part = shape.clone();
                part.remove(dim as usize);
                let sources: Vec<ValueId> = values.iter().copied().filter(|o| b.sizes(*o) == part).collect();
                let src = if sources.is_empty() || rng.chance(50) {
                    let s = b.call("aten.select.int", vec![Arg::Value(v), int(dim), int(0)]);
                    if rng.chance(50) { b.call("aten.relu.default", vec![Arg::Value(s)]) } else { s }
                } else {
                    *rng.choose(&sources)
                };
                b.call("aten.select_scatter.default", vec![Arg::Value(v), Arg::Value(src), int(dim), int(index)])
            }
            9 if rank > 0 && shape[dim as usize] > 1 => {
                let n = shape[dim as usize];
                let s = b.call("aten.slice.Tensor", vec![Arg::Value(v), int(dim), int(0), int(n - 1)]);
                let s = if rng.chance(50) { b.call("aten.relu.default", vec![Arg::Value(s)]) } else { s };
                let args = vec![Arg::Value(v), Arg::Value(s), int(dim), int(1), int(n)];
                b.call("aten.slice_scatter.default", args)
            }
            10 if rank > 0 && shape.iter().product::<i64>() < 20 => {
                let parts = (0..2 + rng.below(2)).map(|_| Some(*rng.choose(&alike))).collect();
                b.call("aten.cat.default", vec![Arg::Values(parts), int(dim)])
            }
            11 => b.call("aten.clone.default", vec![Arg::Value(v)]),
            12 => {
                let (sum, world) = (Arg::Str("sum".into()), Arg::Str("0".into()));
                b.call("_c10d_functional.all_reduce.default", vec![Arg::Value(v), sum, world])
            }
            13 if rank > 0 => {
                let (group, world) = (int(2), Arg::Str("0".into()));
                match shape.iter().product::<i64>() < 12 {
                    true => {
                        let args = vec![Arg::Value(v), group, world];
                        b.call("_c10d_functional.all_gather_into_tensor.default", args)
                    }
                    false if shape[0] % 2 == 0 => {
                        let args = vec![Arg::Value(v), Arg::Str("sum".into()), group, world];
                        b.call("_c10d_functional.reduce_scatter_tensor.default", args)
                    }
                    false => b.call("_c10d_functional.broadcast.default", vec![Arg::Value(v), int(1), world]),
                }
            }
            _ => b.call("aten.neg.default", vec![Arg::Value(v)]),
        };
        values.push(new);
    }
    for _ in 0..1 + rng.below(2) {
        let at = values.len() - 1 - rng.below(values.len().min(4));
        b.program.graph_mut().outputs.push(Arg::Value(values[at]));
        b.program.signature.outputs.push(OutputSpec { kind: OutputKind::User, alias: None });
    }
    for (i, &input) in inputs.iter().enumerate() {
        let fits: Vec<ValueId> = values.iter().copied().filter(|v| b.sizes(*v) == b.sizes(input)).collect();
        if rng.chance(50) {
            let new = fits[fits.len() - 1 - rng.below(fits.len().min(3))];
            b.program.graph_mut().outputs.push(Arg::Value(new));
            b.program.signature.outputs.push(OutputSpec { kind: OutputKind::Mutation(i), alias: None });
        }
    }
    restride_passes::dce(&mut b.program);
    restride_passes::waits::started(b.program)
}

//! Random imported programs: views of views, in-place operators, mutated inputs and buffers, inputs that share storage,
//! outputs that alias, several element types, bodies of `cond`.

use crate::rng::Rng;
use crate::tracer::{Tracer, symbolic};
use restride_exec::copy::copy_into;
use restride_exec::{Inputs, RunValue};
use restride_ir::{
    Arg, DType, Expr, InputKind, InputSpec, Layout, Meta, OutputKind, OutputSpec, Program, Stage, TensorType, Type,
    ValueId, Weight, Weights,
};
use restride_tensor::{Bytes, C64, Tensor};
use std::sync::Arc;

/// A program with inputs to run it on.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Imported.
    pub program: Program,
    /// One per user input.
    pub inputs: Inputs,
}

/// The program of a seed.
pub fn generate(seed: u64) -> Sample {
    generate_from(Rng::new(seed), &format!("random {seed}"))
}

/// The program of some choices.
pub fn generate_from(rng: Rng, name: &str) -> Sample {
    let mut g = Generator { rng, t: Tracer::default(), depth: 0, bodies: Vec::new() };
    let given = g.inputs();
    let calls = 2 + g.rng.below(14);
    g.calls(calls);
    g.finish(name, given)
}

/// An input of the program with what it is run on.
struct Given {
    value: ValueId,
    kind: InputKind,
    tensor: Tensor,
}

struct Generator {
    rng: Rng,
    t: Tracer,
    depth: usize,
    bodies: Vec<restride_ir::Graph>,
}

const DTYPES: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F64,
    DType::I64,
    DType::I32,
    DType::U8,
    DType::Bool,
    DType::C64,
    DType::BF16,
    DType::F16,
];

fn value(v: ValueId) -> Arg {
    Arg::Value(v)
}
fn int(i: i64) -> Arg {
    Arg::Scalar(Expr::Int(i))
}
fn ints(list: &[i64]) -> Arg {
    Arg::Scalars(list.iter().map(|i| Expr::Int(*i)).collect())
}

impl Generator {
    fn inputs(&mut self) -> Vec<Given> {
        let mut out: Vec<Given> = Vec::new();
        for i in 0..1 + self.rng.below(4) {
            let previous =
                out.iter().filter(|g| matches!(g.kind, InputKind::User(_))).map(|g| g.tensor.clone()).next_back();
            let tensor = match previous {
                Some(t) if self.rng.chance(25) => self.beside(&t),
                _ => {
                    let dtype = *self.rng.choose(DTYPES);
                    self.tensor(dtype)
                }
            };
            let name: Arc<str> = format!("x{i}").into();
            let kind = if self.rng.chance(15) {
                InputKind::Buffer { name: format!("b{i}").into(), persistent: true }
            } else {
                InputKind::User(name.clone())
            };
            let meta = TensorType::new(tensor.dtype(), tensor.layout().clone());
            let value = self.t.input(&name, meta);
            out.push(Given { value, kind, tensor });
        }
        // Indices and a condition.
        let flag = Tensor::zeros(DType::Bool, Layout::contiguous(&[]));
        flag.storage().write(&[self.rng.below(2) as u8]);
        for (name, t) in [("index", Tensor::from_slice(&[2i64, 0, 5], &[3])), ("flag", flag)] {
            let value = self.t.input(name, Meta::new(t.dtype(), t.layout().clone()));
            out.push(Given { value, kind: InputKind::User(name.into()), tensor: t });
        }
        out
    }

    /// A tensor on memory of its own: dense, transposed, or with gaps.
    fn tensor(&mut self, dtype: DType) -> Tensor {
        let sizes = self.sizes();
        let layout = match self.rng.below(8) {
            0 | 1 if sizes.len() > 1 => {
                let mut perm: Vec<usize> = (0..sizes.len()).collect();
                perm.reverse();
                Layout::permuted(&sizes, &perm)
            }
            2 if !sizes.is_empty() => {
                let wide: Vec<i64> = sizes.iter().map(|n| n * 2).collect();
                let l = Layout::contiguous(&wide);
                Layout::strided(&sizes, &l.strides, self.rng.between(0, 1))
            }
            _ => Layout::contiguous(&sizes),
        };
        let t = Tensor::zeros(dtype, layout);
        // The cells that the tensor does not show have contents, too.
        let cells = t.storage().len() / dtype.size();
        let all = t.alias(dtype, Layout::contiguous(&[cells as i64])).expect("the whole storage");
        let numbers: Vec<C64> =
            (0..cells).map(|_| C64::new(self.rng.between(-9, 9) as f64, self.rng.between(-4, 4) as f64)).collect();
        let src = Tensor::from_slice(&numbers, &[cells as i64]);
        if dtype.is_complex() {
            copy_into(&all, &src).expect("complex numbers convert");
        } else {
            let real: Vec<f64> = numbers.iter().map(|z| if dtype == DType::U8 { z.re.abs() } else { z.re }).collect();
            copy_into(&all, &Tensor::from_slice(&real, &[cells as i64])).expect("numbers convert");
        }
        t
    }

    /// Another tensor on the storage of this one.
    fn beside(&mut self, t: &Tensor) -> Tensor {
        let cells = (t.storage().len() / t.dtype().size()) as i64;
        if self.rng.chance(30) || cells < 2 {
            return t.clone();
        }
        let n = self.rng.between(1, cells);
        let offset = self.rng.between(0, cells - n);
        let layout = match n {
            n if n % 2 == 0 && self.rng.chance(50) => {
                let l = Layout::contiguous(&[n / 2, 2]);
                if self.rng.chance(50) { l.transpose(0, 1).expect("two dimensions") } else { l }
            }
            _ => Layout::contiguous(&[n]),
        };
        t.alias(t.dtype(), Layout { offset, ..layout }).unwrap_or_else(|| t.clone())
    }

    fn sizes(&mut self) -> Vec<i64> {
        (0..self.rng.below(4)).map(|_| if self.rng.chance(4) { 0 } else { self.rng.between(1, 4) }).collect()
    }

    /// A tensor, more likely a late one.
    fn pick(&mut self) -> ValueId {
        let all = self.t.values();
        let n = all.len();
        let i = self.rng.below(n).max(self.rng.below(n));
        all[i]
    }

    fn pick_where(&mut self, fits: impl Fn(&Meta) -> bool) -> Option<ValueId> {
        let all: Vec<ValueId> = self.t.values().into_iter().filter(|v| fits(self.t.meta(*v))).collect();
        if all.is_empty() { None } else { Some(*self.rng.choose(&all)) }
    }

    /// A tensor that can be broadcast into these sizes, or a number.
    fn operand(&mut self, sizes: &[i64]) -> Arg {
        let fits = |m: &Meta| {
            let s = &m.layout.sizes;
            s.len() <= sizes.len() && s.iter().rev().zip(sizes.iter().rev()).all(|(a, b)| a == b || *a == 1)
        };
        match self.pick_where(fits) {
            Some(v) if self.rng.chance(85) => value(v),
            _ => int(self.rng.between(-3, 3)),
        }
    }

    fn dim(&mut self, rank: usize) -> i64 {
        let d = self.rng.below(rank.max(1)) as i64;
        if self.rng.chance(20) { d - rank.max(1) as i64 } else { d }
    }

    /// Adds calls: about as many.
    fn calls(&mut self, n: usize) {
        for _ in 0..n {
            // What the rules refuse is tried again, as something else.
            for _ in 0..8 {
                let made = match self.rng.below(100) {
                    0..40 => self.view(),
                    40..75 => self.write(),
                    75..96 => self.pure(),
                    _ => self.cond(),
                };
                if made.is_some() {
                    break;
                }
            }
        }
    }

    fn view(&mut self) -> Option<Vec<ValueId>> {
        let v = self.pick();
        let meta = self.t.meta(v).clone();
        let sizes = meta.layout.sizes.to_vec();
        let rank = sizes.len();
        let x = value(v);
        match self.rng.below(24) {
            0 | 1 => {
                let sizes = self.factors(meta.layout.numel());
                let op = *self.rng.choose(&["aten.view.default", "aten.reshape.default"]);
                self.t.call(op, vec![x, ints(&sizes)])
            }
            2..=4 if rank > 0 => {
                let d = self.dim(rank);
                let n = sizes[d.rem_euclid(rank as i64) as usize];
                let i = if n > 0 { self.rng.between(-n, n - 1) } else { 0 };
                self.t.call("aten.select.int", vec![x, int(d), int(i)])
            }
            5..=7 if rank > 0 => {
                let d = self.dim(rank);
                let n = sizes[d.rem_euclid(rank as i64) as usize];
                let (a, b) = (self.rng.between(-1, n), self.rng.between(0, n + 1));
                let step = self.rng.between(1, 2);
                self.t.call("aten.slice.Tensor", vec![x, int(d), int(a), int(b), int(step)])
            }
            8 => {
                let (a, b) = (self.dim(rank), self.dim(rank));
                self.t.call("aten.transpose.int", vec![x, int(a), int(b)])
            }
            9 => {
                let mut order: Vec<i64> = (0..rank as i64).collect();
                for i in (1..rank).rev() {
                    order.swap(i, self.rng.below(i + 1));
                }
                self.t.call("aten.permute.default", vec![x, ints(&order)])
            }
            10 => {
                let d = self.dim(rank + 1);
                self.t.call("aten.unsqueeze.default", vec![x, int(d)])
            }
            11 => {
                let d = self.dim(rank);
                self.t.call("aten.squeeze.dim", vec![x, int(d)])
            }
            12 => {
                let mut wide: Vec<i64> =
                    sizes.iter().map(|n| if *n == 1 { self.rng.between(1, 3) } else { -1 }).collect();
                if self.rng.chance(30) {
                    wide.insert(0, 2);
                }
                self.t.call("aten.expand.default", vec![x, ints(&wide)])
            }
            13 | 14 => {
                // Inside of what the tensor itself spans, now and then with cells that are seen twice.
                let cells = meta.layout.cell_range();
                if cells.is_empty() {
                    return None;
                }
                let offset = self.rng.between(cells.start, cells.end - 1);
                let room = cells.end - offset;
                let strides = (self.rng.between(1, 3), self.rng.between(0, 2));
                let n = self.rng.between(1, (1 + (room - 1) / strides.1.max(1)).min(4));
                let rows = 1 + (room - 1 - (n - 1) * strides.1).max(0) / strides.0;
                let rows = self.rng.between(1, rows.min(3));
                let (size, stride) = ([rows, n], [strides.0, strides.1]);
                self.t.call("aten.as_strided.default", vec![x, ints(&size), ints(&stride), int(offset)])
            }
            15 if rank > 1 => {
                let (a, b) = (self.dim(rank), self.dim(rank));
                let offset = self.rng.between(-1, 1);
                self.t.call("aten.diagonal.default", vec![x, int(offset), int(a), int(b)])
            }
            16 if rank > 0 => {
                let d = self.dim(rank);
                let n = sizes[d.rem_euclid(rank as i64) as usize].max(1);
                let (size, step) = (self.rng.between(1, n), self.rng.between(1, 2));
                self.t.call("aten.unfold.default", vec![x, int(d), int(size), int(step)])
            }
            17 if rank > 0 => {
                let d = self.dim(rank);
                let n = self.rng.between(1, 2);
                let op = *self.rng.choose(&["aten.split.Tensor", "aten.chunk.default"]);
                self.t.call(op, vec![x, int(n), int(d)])
            }
            18 if rank > 0 => {
                let d = self.dim(rank);
                self.t.call("aten.unbind.int", vec![x, int(d)])
            }
            19 => {
                let to = *self.rng.choose(&[DType::I32, DType::F32, DType::U8, DType::I64, DType::F16]);
                self.t.call("aten.view.dtype", vec![x, Arg::DType(to)])
            }
            20 | 21 => {
                let complex = [
                    "aten.view_as_real.default",
                    "aten.real.default",
                    "aten.imag.default",
                    "aten._conj.default",
                    "aten.resolve_conj.default",
                    "aten._neg_view.default",
                    "aten.view_as_complex.default",
                ];
                let v = self.pick_where(|m| m.dtype.is_complex()).filter(|_| self.rng.chance(80)).unwrap_or(v);
                let op = *self.rng.choose(&complex);
                self.t.call(op, vec![value(v)])
            }
            22 => {
                let op = *self.rng.choose(&["aten.detach.default", "aten.alias.default", "aten.contiguous.default"]);
                self.t.call(op, vec![x])
            }
            // Changes of the tensor object itself.
            23 if self.depth == 0 => match self.rng.below(3) {
                0 if rank <= 2 => self.t.call("aten.t_.default", vec![x]),
                1 => {
                    let d = self.dim(rank + 1);
                    self.t.call("aten.unsqueeze_.default", vec![x, int(d)])
                }
                _ => {
                    let (a, b) = (self.dim(rank), self.dim(rank));
                    self.t.call("aten.transpose_.default", vec![x, int(a), int(b)])
                }
            },
            _ => None,
        }
    }

    /// Sizes of the same number of elements.
    fn factors(&mut self, numel: i64) -> Vec<i64> {
        let mut left = numel;
        let mut out = Vec::new();
        while left > 1 && out.len() < 3 {
            let divisors: Vec<i64> = (2..=left).filter(|d| left % d == 0).collect();
            let d = *self.rng.choose(&divisors);
            out.push(d);
            left /= d;
        }
        if left != 1 || numel == 0 {
            out.push(left);
        }
        if self.rng.chance(15) {
            let at = self.rng.below(out.len() + 1);
            out.insert(at, 1);
        }
        out
    }

    fn write(&mut self) -> Option<Vec<ValueId>> {
        let v = self.pick();
        let meta = self.t.meta(v).clone();
        let sizes = meta.layout.sizes.to_vec();
        let x = value(v);
        match self.rng.below(16) {
            0..=3 => {
                let y = self.operand(&sizes);
                let op = *self.rng.choose(&["aten.add_.Tensor", "aten.mul_.Tensor", "aten.sub_.Tensor"]);
                self.t.call(op, vec![x, y])
            }
            4..=7 => {
                let Arg::Value(y) = self.operand(&sizes) else { return None };
                self.t.call("aten.copy_.default", vec![x, value(y)])
            }
            8 => {
                let n = self.rng.between(-3, 3);
                self.t.call("aten.fill_.Scalar", vec![x, int(n)])
            }
            9 => {
                let op = *self.rng.choose(&[
                    "aten.zero_.default",
                    "aten.neg_.default",
                    "aten.relu_.default",
                    "aten.abs_.default",
                ]);
                self.t.call(op, vec![x])
            }
            10 if !sizes.is_empty() && sizes[0] > 0 => {
                let index = self.index(sizes[0])?;
                let one: Vec<i64> = sizes[1..].to_vec();
                let full: Vec<i64> = std::iter::once(3).chain(one.iter().copied()).collect();
                let fits = |m: &Meta| {
                    m.dtype == meta.dtype && (m.layout.sizes[..] == one[..] || m.layout.sizes[..] == full[..])
                };
                let src = self.pick_where(fits)?;
                let accumulate = Arg::Scalar(Expr::Bool(self.rng.chance(30)));
                self.t.call("aten.index_put_.default", vec![x, Arg::Values(vec![Some(index)]), value(src), accumulate])
            }
            11 => {
                let mask = self.pick_where(|m| m.dtype == DType::Bool && m.layout.sizes[..] == sizes[..])?;
                self.t.call("aten.masked_fill_.Scalar", vec![x, value(mask), int(7)])
            }
            12 => {
                let (a, b) = (self.operand(&sizes), self.operand(&sizes));
                let (Arg::Value(_), Arg::Value(_)) = (&a, &b) else { return None };
                self.t.call("aten.add.out", vec![a, b, int(1), x])
            }
            13 => {
                let dtype = meta.dtype;
                if dtype == DType::Bool {
                    return None;
                }
                let other = self.pick_where(|m| m.dtype == dtype)?;
                let list = Arg::Values(vec![Some(v), Some(other)]);
                let op = *self.rng.choose(&["aten._foreach_add_.Scalar", "aten._foreach_mul_.Scalar"]);
                self.t.call(op, vec![list, int(2)])
            }
            14 if !sizes.is_empty() && sizes[0] > 0 => {
                let index = self.index(sizes[0])?;
                self.t.call("aten.index_fill_.int_Scalar", vec![x, int(0), value(index), int(5)])
            }
            15 if !sizes.is_empty() && sizes[0] > 0 => {
                let index = self.index(sizes[0])?;
                let full: Vec<i64> = std::iter::once(3).chain(sizes[1..].iter().copied()).collect();
                let src = self.pick_where(|m| m.dtype == meta.dtype && m.layout.sizes[..] == full[..])?;
                let op = *self.rng.choose(&["aten.index_add_.default", "aten.index_copy_.default"]);
                self.t.call(op, vec![x, int(0), value(index), value(src)])
            }
            _ => None,
        }
    }

    /// Indices below `n`, repeats among them.
    fn index(&mut self, n: i64) -> Option<ValueId> {
        let index = self.t.values().into_iter().find(|v| {
            let m = self.t.meta(*v);
            self.t.graph.inputs.contains(v) && m.dtype == DType::I64 && m.layout.sizes[..] == [3]
        })?;
        Some(self.t.call("aten.remainder.Scalar", vec![value(index), int(n)])?[0])
    }

    fn pure(&mut self) -> Option<Vec<ValueId>> {
        let v = self.pick();
        let meta = self.t.meta(v).clone();
        let sizes = meta.layout.sizes.to_vec();
        let x = value(v);
        match self.rng.below(12) {
            0..=2 => {
                let y = self.operand(&sizes);
                let op = *self.rng.choose(&["aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor"]);
                self.t.call(op, vec![x, y])
            }
            3 => {
                let op = *self.rng.choose(&["aten.neg.default", "aten.relu.default", "aten.abs.default"]);
                self.t.call(op, vec![x])
            }
            4 => self.t.call("aten.clone.default", vec![x]),
            5 => {
                let to = *self.rng.choose(DTYPES);
                self.t.call("aten.to.dtype", vec![x, Arg::DType(to)])
            }
            6 | 7 if !sizes.is_empty() => {
                let y = self.pick_where(|m| m.dtype == meta.dtype && m.layout.sizes.get(1..) == sizes.get(1..))?;
                let list = Arg::Values(vec![Some(v), Some(y)]);
                self.t.call("aten.cat.default", vec![list, int(0)])
            }
            8 => {
                let y = self.pick_where(|m| m.dtype == meta.dtype && m.layout.sizes[..] == sizes[..])?;
                let d = self.dim(sizes.len() + 1);
                self.t.call("aten.stack.default", vec![Arg::Values(vec![Some(v), Some(y)]), int(d)])
            }
            9 => {
                let y = self.operand(&sizes);
                let op = *self.rng.choose(&["aten.lt.Tensor", "aten.eq.Tensor"]);
                self.t.call(op, vec![x, y])
            }
            10 => {
                let mask = self.pick_where(|m| m.dtype == DType::Bool)?;
                let Arg::Value(y) = self.operand(&sizes) else { return None };
                self.t.call("aten.where.self", vec![value(mask), x, value(y)])
            }
            11 if !sizes.is_empty() && sizes[0] > 0 => {
                let index = self.index(sizes[0])?;
                self.t.call("aten.index_select.default", vec![x, int(0), value(index)])
            }
            _ => None,
        }
    }

    /// A `cond` whose branches see some tensors, write them, and return fresh ones.
    fn cond(&mut self) -> Option<Vec<ValueId>> {
        let flag = self.pick_where(|m| m.dtype == DType::Bool && m.layout.rank() == 0)?;
        if self.depth >= 1 {
            return None;
        }
        let mut operands: Vec<ValueId> = Vec::new();
        for _ in 0..1 + self.rng.below(3) {
            let v = self.pick();
            if !operands.contains(&v) {
                operands.push(v);
            }
        }
        let metas: Vec<Meta> = operands.iter().map(|v| self.t.meta(*v).clone()).collect();
        // One result, of the type that a clone of the first operand has.
        let mut types = Vec::new();
        let mut graphs = Vec::new();
        for name in ["yes", "no"] {
            let inner = Tracer::default();
            let outer = std::mem::replace(&mut self.t, inner);
            self.depth += 1;
            let inputs: Vec<ValueId> =
                metas.iter().enumerate().map(|(i, m)| self.t.input(&format!("a{i}"), m.clone())).collect();
            let n = 1 + self.rng.below(4);
            self.calls(n);
            let last = self.t.call("aten.clone.default", vec![value(inputs[0])]);
            let inner = std::mem::replace(&mut self.t, outer);
            self.depth -= 1;
            let last = last?[0];
            types.push(inner.meta(last).clone());
            let mut graph = inner.graph;
            graph.outputs = vec![value(last)];
            graph.name = format!("{name}{}", self.bodies.len() + graphs.len()).into();
            graphs.push(graph);
        }
        if types[0] != types[1] {
            return None;
        }
        let op = restride_ops::lookup("higher_order.cond")?;
        // The main graph is graph 0; bodies follow in order.
        let first = self.bodies.len() + 1;
        self.bodies.append(&mut graphs);
        use restride_ir::{GraphId, Id};
        let args = vec![
            value(flag),
            Arg::Graph(GraphId::new(first)),
            Arg::Graph(GraphId::new(first + 1)),
            Arg::Values(operands.into_iter().map(Some).collect()),
        ];
        types.truncate(1);
        Some(self.t.call_as(op, args, &types))
    }

    fn finish(mut self, name: &str, given: Vec<Given>) -> Sample {
        let mut outputs = Vec::new();
        for _ in 0..1 + self.rng.below(4) {
            outputs.push(self.pick());
        }
        let mut program = Program::new(name, Stage::Imported);
        self.t.graph.outputs = outputs.iter().map(|v| value(*v)).collect();
        *program.graph_mut() = self.t.graph;
        for body in self.bodies {
            program.graphs.push(body);
        }
        let specs = outputs.iter().map(|_| OutputSpec { kind: OutputKind::User, alias: None });
        program.signature.outputs = specs.collect();
        let mut weights = Weights::default();
        let mut inputs = Vec::new();
        for g in given {
            if let InputKind::Buffer { name, .. } = &g.kind {
                weights.storages.push(Bytes::copy_of(&g.tensor.storage().to_vec()));
                let weight = Weight {
                    storage: weights.storages.len() - 1,
                    dtype: g.tensor.dtype(),
                    layout: g.tensor.layout().clone(),
                    is_param: false,
                    requires_grad: false,
                };
                weights.tensors.insert(name.clone(), weight);
            } else {
                inputs.push(RunValue::Tensor(g.tensor.clone()));
            }
            let ty = Type::Tensor(symbolic(&Meta::new(g.tensor.dtype(), g.tensor.layout().clone())));
            program.graph_mut().values[g.value].ty = ty;
            program.signature.inputs.push(InputSpec { value: g.value, kind: g.kind });
        }
        program.weights = Arc::new(weights);
        Sample { program, inputs: Inputs::new(inputs) }
    }
}

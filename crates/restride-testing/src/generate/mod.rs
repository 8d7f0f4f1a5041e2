//! Random imported programs: views of views, in-place operators, lists, control flow, mutated inputs, weights and buffers,
//! inputs that share storage, outputs that alias. All numbers are small integers, so nothing rounds.
//!
//! - `inputs`: inputs and their layouts.
//! - `views`: views, and changes of the tensor object itself.
//! - `writes`, `indexed`, `lists`: in-place operators, with indices and masks, on lists and with `out=`.
//! - `pure`: operators that only read.
//! - `checks`: recorded checks of numbers, tensors and types; about half fail ([`generate_checked`]).
//! - `exchanges`: collectives between the calls, for tests with several ranks.
//! - `control`: `cond`, `while_loop`, `scan` and `map` with bodies of the same calls.

mod checks;
mod control;
mod exchanges;
mod indexed;
mod inputs;
mod lists;
mod pure;
mod views;
mod writes;

use crate::rng::Rng;
use crate::tracer::{Tracer, symbolic};
use inputs::GeneratedInput;
use restride_exec::{Inputs, RunValue};
use restride_ir::{
    Arg, DType, Expr, Graph, InputKind, InputSpec, Meta, OutputKind, OutputSpec, Program, Stage, Symbol, Type, ValueId,
    Weight, Weights,
};
use restride_tensor::{Bytes, Storage};
use std::sync::Arc;

/// A program with inputs to run it on.
#[derive(Clone, Debug)]
pub struct RandomProgram {
    /// Imported.
    pub program: Program,
    /// One per user input.
    pub inputs: Inputs,
}

/// The program of a seed.
pub fn generate(seed: u64) -> RandomProgram {
    generate_from(Rng::new(seed), &format!("random {seed}"))
}

/// The program of a seed for differentiation: mostly floating numbers, no shared inputs, control flow or `out=`.
pub fn generate_floating(seed: u64) -> RandomProgram {
    generate_of(Rng::new(seed), &format!("floating {seed}"), true)
}

/// The program of these choices.
pub fn generate_from(rng: Rng, name: &str) -> RandomProgram {
    generate_of(rng, name, false)
}

/// The program of a seed with recorded checks between its calls. Its inputs pass them, or fail one.
pub fn generate_checked(seed: u64) -> RandomProgram {
    let mut g = Generator::new(Rng::new(seed), false);
    let given = g.inputs();
    for _ in 0..1 + g.rng.below(4) {
        let calls = g.rng.below(4);
        g.calls(calls);
        g.check();
    }
    let calls = 1 + g.rng.below(3);
    g.calls(calls);
    g.finish(&format!("checked {seed}"), given)
}

fn generate_of(rng: Rng, name: &str, floating: bool) -> RandomProgram {
    let mut g = Generator::new(rng, floating);
    let given = g.inputs();
    let calls = 2 + g.rng.below(14);
    g.calls(calls);
    g.finish(name, given)
}

struct Generator {
    rng: Rng,
    t: Tracer,
    /// Whether to add calls that eager refuses because their arguments overlap.
    wild: bool,
    /// Whether to use mostly floating numbers and only differentiable operators.
    floating: bool,
    /// Nesting depth of bodies.
    depth: usize,
    /// Graphs of control flow so far: graph 1 and on.
    bodies: Vec<Graph>,
    /// Numbers read from tensors.
    symbols: Vec<Symbol>,
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

const FLOATING: &[DType] = &[DType::F64, DType::F64, DType::F64, DType::F32, DType::C128, DType::I64];

fn value(v: ValueId) -> Arg {
    Arg::Value(v)
}
fn values(list: &[ValueId]) -> Arg {
    Arg::Values(list.iter().map(|v| Some(*v)).collect())
}
fn int(i: i64) -> Arg {
    Arg::Scalar(Expr::Int(i))
}
fn ints(list: &[i64]) -> Arg {
    Arg::Scalars(list.iter().map(|i| Expr::Int(*i)).collect())
}
fn truth(b: bool) -> Arg {
    Arg::Scalar(Expr::Bool(b))
}

/// Results of a call; `None` if its operator's rules refuse it.
type GeneratedCall = Option<Vec<ValueId>>;

impl Generator {
    fn new(mut rng: Rng, floating: bool) -> Generator {
        let wild = rng.chance(8);
        let (t, bodies, symbols) = (Tracer::new(wild, false), Vec::new(), Vec::new());
        Generator { rng, t, wild, floating, depth: 0, bodies, symbols }
    }

    fn dtype(&mut self) -> DType {
        *self.rng.choose(if self.floating { FLOATING } else { DTYPES })
    }

    /// A random tensor, preferably a recent one.
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

    fn sizes_of(&self, v: ValueId) -> Vec<i64> {
        self.t.meta(v).layout.sizes.to_vec()
    }

    /// A tensor that broadcasts to these sizes, or a number.
    fn operand(&mut self, sizes: &[i64]) -> Arg {
        match self.broadcast(sizes) {
            Some(v) if self.rng.chance(85) => value(v),
            _ => int(self.rng.between(-3, 3)),
        }
    }

    /// A tensor that broadcasts to these sizes.
    fn broadcast(&mut self, sizes: &[i64]) -> Option<ValueId> {
        self.pick_where(|m| {
            let s = &m.layout.sizes;
            s.len() <= sizes.len() && s.iter().rev().zip(sizes.iter().rev()).all(|(a, b)| a == b || *a == 1)
        })
    }

    fn dim(&mut self, rank: usize) -> i64 {
        let d = self.rng.below(rank.max(1)) as i64;
        if self.rng.chance(20) { d - rank.max(1) as i64 } else { d }
    }

    /// Adds about this many calls.
    fn calls(&mut self, n: usize) {
        for _ in 0..n {
            // A refused call is replaced by another one.
            for _ in 0..8 {
                let made = match self.rng.below(100) {
                    0..38 => self.view(),
                    38..58 => self.write(),
                    58..70 => self.indexed(),
                    70..79 => self.list(),
                    79..94 => self.pure(),
                    _ if self.floating => self.write(),
                    _ => self.control(),
                };
                if made.is_some() {
                    break;
                }
            }
        }
    }

    fn finish(mut self, name: &str, given: Vec<GeneratedInput>) -> RandomProgram {
        let mut outputs = Vec::new();
        // Unused values are not differentiated.
        let least = if self.floating { 4 } else { 1 };
        for _ in 0..least + self.rng.below(4) {
            outputs.push(self.pick());
        }
        let mut program = Program::new(name, Stage::Imported);
        program.symbols = self.symbols.iter().map(|s| (s.name().into(), s.clone())).collect();
        self.t.graph.outputs = outputs.iter().map(|v| value(*v)).collect();
        *program.graph_mut() = self.t.graph;
        for body in self.bodies {
            program.graphs.push(body);
        }
        let specs = outputs.iter().map(|_| OutputSpec { kind: OutputKind::User, alias: None });
        program.signature.outputs = specs.collect();
        let mut weights = Weights::default();
        let mut held: Vec<Storage> = Vec::new();
        let mut inputs = Vec::new();
        for g in given {
            let (weight, is_param) = match &g.kind {
                InputKind::Buffer { name, .. } | InputKind::Constant(name) => (Some(name.clone()), false),
                InputKind::Parameter(name) => (Some(name.clone()), true),
                _ => (None, false),
            };
            if let Some(name) = weight {
                let storage = held.iter().position(|s| s.same(g.tensor.storage())).unwrap_or_else(|| {
                    held.push(g.tensor.storage().clone());
                    weights.storages.push(Bytes::copy_of(&g.tensor.storage().to_vec()));
                    held.len() - 1
                });
                let (dtype, layout) = (g.tensor.dtype(), g.tensor.layout().clone());
                weights.tensors.insert(name, Weight { storage, dtype, layout, is_param, requires_grad: false });
            } else {
                inputs.push(RunValue::Tensor(g.tensor.clone()));
            }
            let ty = Type::Tensor(symbolic(&Meta::new(g.tensor.dtype(), g.tensor.layout().clone())));
            program.graph_mut().values[g.value].ty = ty;
            program.signature.inputs.push(InputSpec { value: g.value, kind: g.kind });
        }
        program.weights = Arc::new(weights);
        RandomProgram { program, inputs: Inputs::new(inputs) }
    }
}

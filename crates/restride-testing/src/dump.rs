//! A random program as a line of JSON with the results of each way of running. `scripts/check/random_check.py` runs it in
//! eager PyTorch and compares.

use crate::generate::RandomProgram;
use crate::outcome::{Leftovers, by_chance};
use restride::{CompileOptions, Compiled};
use restride_exec::RunValue;
use restride_exec::interp::RunOptions;
use restride_ir::{Arg, Error, ErrorKind, Graph, Id, InputKind, MemoryFormat, Program, Result, Scalar};
use restride_tensor::RawTensor;
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Tensors with their storages, each storage once.
#[derive(Default)]
struct Tensors {
    ids: Vec<usize>,
    storages: Vec<Value>,
    tensors: Vec<Value>,
    /// Keeps the storages alive, so no address is reused.
    held: Vec<RawTensor>,
}

impl Tensors {
    fn add(&mut self, value: &RunValue) {
        let entry = match value {
            RunValue::Tensor(t) => self.tensor(t),
            RunValue::Scalar(s) => json!({ "scalar": number(*s) }),
            RunValue::Str(s) => json!({ "scalar": s.as_ref() }),
            RunValue::None => json!({ "scalar": null }),
        };
        self.tensors.push(entry);
    }

    fn tensor(&mut self, t: &RawTensor) -> Value {
        let id = t.storage().id();
        let storage = self.ids.iter().position(|i| *i == id).unwrap_or_else(|| {
            self.ids.push(id);
            self.storages.push(hex(&t.storage().to_vec()).into());
            self.held.push(t.clone());
            self.ids.len() - 1
        });
        let l = t.layout();
        let mut entry = json!({
            "dtype": t.dtype().torch_name(), "size": l.sizes.to_vec(), "stride": l.strides.to_vec(), "offset": l.offset,
            "storage": storage,
        });
        for (name, bit) in [("conj", t.conj), ("neg", t.neg)] {
            if bit {
                entry[name] = true.into();
            }
        }
        entry
    }

    fn json(self) -> Value {
        json!({ "tensors": self.tensors, "storages": self.storages })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn number(s: Scalar) -> Value {
    match s {
        Scalar::Bool(b) => b.into(),
        Scalar::Int(i) => i.into(),
        Scalar::Float(x) if x.is_finite() => x.into(),
        Scalar::Float(x) => json!({ "float": x.to_string() }),
        Scalar::Complex(z) => json!({ "complex": [z.re, z.im] }),
    }
}

/// The program of a seed as a line: inputs, graphs, and the results of each way.
pub fn line(seed: u64, sample: &RandomProgram) -> Value {
    let program = &sample.program;
    let mut inputs = Tensors::default();
    let left = Leftovers::initial(program, &sample.inputs).expect("a generated program has its inputs");
    left.iter().for_each(|(_, v)| inputs.add(v));
    let names: Vec<&str> = left.iter().map(|(n, _)| n.as_str()).collect();
    // Graph inputs in the order of the values above: the user's, then the state.
    let order: Vec<usize> = program
        .signature
        .inputs
        .iter()
        .map(|i| {
            let name = match &i.kind {
                InputKind::User(_) => None,
                InputKind::Buffer { name, .. } | InputKind::Parameter(name) | InputKind::Constant(name) => Some(name),
                other => panic!("a generated program has an input of another kind: {other:?}"),
            };
            let users = |k: &InputKind| matches!(k, InputKind::User(_));
            match name {
                Some(n) => names.iter().position(|m| *m == &**n).expect("the state has all weights"),
                None => program
                    .signature
                    .inputs
                    .iter()
                    .take_while(|j| j.value != i.value)
                    .filter(|j| users(&j.kind))
                    .count(),
            }
        })
        .collect();
    let graphs: Vec<Value> = program.graphs.iter().map(|(_, g)| graph(g)).collect();
    json!({
        "seed": seed, "inputs": inputs.json(), "names": names, "order": order, "graphs": graphs, "ways": ways(sample, seed),
    })
}

fn graph(g: &Graph) -> Value {
    let nodes: Vec<Value> = g
        .ordered()
        .map(|(_, n)| {
            let results: Vec<usize> = n.results.iter().map(|r| r.index()).collect();
            json!([n.op.to_string(), n.args.iter().map(arg).collect::<Vec<_>>(), results])
        })
        .collect();
    json!({
        "inputs": g.inputs.iter().map(|v| v.index()).collect::<Vec<_>>(),
        "nodes": nodes,
        "outputs": g.outputs.iter().map(arg).collect::<Vec<_>>(),
    })
}

fn arg(a: &Arg) -> Value {
    let known = |e: &restride_ir::Expr| number(e.constant().expect("a generated program has numbers for sizes"));
    match a {
        Arg::None => Value::Null,
        Arg::Value(v) => json!({ "v": v.index() }),
        Arg::Values(vs) => json!({ "vs": vs.iter().map(|v| v.map(|v| v.index())).collect::<Vec<_>>() }),
        Arg::Scalar(s) => known(s),
        Arg::Scalars(s) => s.iter().map(known).collect(),
        Arg::Complex(re, im) => json!({ "complex": [re, im] }),
        Arg::Str(s) => json!(s.as_ref()),
        Arg::Strs(s) => s.iter().map(|s| s.to_string()).collect(),
        Arg::DType(d) => json!({ "dtype": d.torch_name() }),
        Arg::Device(d) => json!({ "device": d.as_ref() }),
        Arg::Strided => json!({ "layout": "strided" }),
        Arg::MemoryFormat(m) => json!({ "format": match m {
            MemoryFormat::Contiguous => "contiguous_format",
            MemoryFormat::Preserve => "preserve_format",
            MemoryFormat::ChannelsLast => "channels_last",
            MemoryFormat::ChannelsLast3d => "channels_last_3d",
        } }),
        Arg::Graph(g) => json!({ "graph": g.index() }),
        Arg::Op(op) => json!({ "op": op.to_string() }),
    }
}

/// Results of each way, or its refusal; `chance` is a plan with random choices. A way with the same results as an earlier
/// one is the name of that way.
fn ways(sample: &RandomProgram, seed: u64) -> Value {
    let options = RunOptions { strict: true, ..RunOptions::default() };
    let (program, inputs) = (&sample.program, &sample.inputs);
    let interp = held(|| Leftovers::interp(program, inputs, &options));
    let compiled =
        catch_unwind(AssertUnwindSafe(|| Compiled::new(program.clone(), Some(inputs), &CompileOptions::default())));
    let compiled = match compiled {
        Ok(Ok(c)) => c,
        Ok(Err(e)) => {
            let e = error(&e);
            return json!({ "interp": interp, "functional": e, "plan": "functional", "chance": "plan" });
        }
        Err(_) => {
            return json!({ "interp": interp, "functional": panicked(), "plan": "functional", "chance": "plan" });
        }
    };
    let functional = held(|| Leftovers::interp(compiled.at(inputs)?.functional(), inputs, &options));
    let plan = held(|| Leftovers::planned(&compiled, inputs, &options));
    let chance = held(|| {
        let compiled = Compiled::new(program.clone(), Some(inputs), &by_chance(seed))?;
        Leftovers::planned(&compiled, inputs, &options)
    });
    let chance = if chance == plan { "plan".into() } else { chance };
    let plan = if plan == functional { "functional".into() } else { plan };
    let functional = if functional == interp { "interp".into() } else { functional };
    json!({ "interp": interp, "functional": functional, "plan": plan, "chance": chance })
}

fn held(run: impl FnOnce() -> Result<Leftovers>) -> Value {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(left)) => {
            let mut tensors = Tensors::default();
            left.named().iter().for_each(|(_, v)| tensors.add(v));
            tensors.json()
        }
        Ok(Err(e)) => error(&e),
        Err(_) => panicked(),
    }
}

fn error(e: &Error) -> Value {
    let kind = match e.kind {
        ErrorKind::Program => "program",
        // A run refuses inputs that the program was not compiled for.
        ErrorKind::Unsupported | ErrorKind::Limit | ErrorKind::Inputs => "unsupported",
        ErrorKind::File | ErrorKind::Invalid | ErrorKind::Check => "wrong",
    };
    json!({ "error": kind, "what": e.what, "node": e.node })
}

fn panicked() -> Value {
    json!({ "error": "wrong", "what": "panicked", "node": null })
}

/// The program as text, for a failing seed.
pub fn text(program: &Program) -> String {
    restride_ir::text::print(program)
}

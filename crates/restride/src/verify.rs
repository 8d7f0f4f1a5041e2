//! Every stage on the same inputs, compared bit for bit.

use crate::compile::{CompileOptions, Compiled};
use crate::files::element_bytes;
use crate::meaning::meaning;
use crate::progress::Doing;
use restride_check::Equivalence;
use restride_exec::inputs::{same_strides, user_inputs};
use restride_exec::interp::{Outputs, RunOptions, interpret};
use restride_exec::{Inputs, RunValue, State};
use restride_ir::{Program, Result};
use restride_tensor::{RawTensor, Scalar};
use std::collections::BTreeMap;

/// One stage held against the imported program.
#[derive(Clone, Debug)]
pub struct StageVerdict {
    /// `functional` or `plan`.
    pub stage: &'static str,
    /// The differences; none if the stages agree.
    pub differences: Vec<String>,
}

/// The result of [`verify`].
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Name of the program.
    pub program: String,
    /// Values compared: outputs, inputs after the run, state.
    pub compared: usize,
    /// The stages.
    pub stages: Vec<StageVerdict>,
    /// Whether the checkers ran; a fault of theirs is an error of [`verify`].
    pub checked: bool,
    /// Whether the functional program was proved to mean what the imported one means; a difference is an error of
    /// [`verify`].
    pub meaning: Equivalence,
}

impl Verdict {
    /// The first difference, in one line.
    pub fn fault(&self) -> Option<String> {
        let stage = self.stages.iter().find(|s| !s.differences.is_empty())?;
        let more = match stage.differences.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        Some(format!("{} differs from interp: {}{more}", stage.stage, stage.differences[0]))
    }
}

/// Runs a program as imported, as functional and as planned, on copies of the same inputs and state, and compares outputs, inputs
/// and state: bits (all NaNs equal), sizes, strides, shared storages.
///
/// ```
/// # use restride::{CompileOptions, Inputs, OpenOptions, RunOptions};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/box_decode.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
/// let verdict = restride::verify(&program, &inputs, &RunOptions::default(), &CompileOptions::default())?;
/// assert_eq!(verdict.fault(), None);
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// A stage's refusal of the program, and a checker's fault.
pub fn verify(program: &Program, inputs: &Inputs, run: &RunOptions, options: &CompileOptions) -> Result<Verdict> {
    options.progress.tell(Doing::Interpreting);
    let interp = StageResult::interp(program, inputs, run)?;
    let compiled = Compiled::new(program.clone(), Some(inputs), options)?.at(inputs)?;
    options.progress.tell(Doing::InterpretingFunctional);
    let functional = StageResult::interp(compiled.functional(), inputs, run)?;
    let planned = {
        let inputs = inputs.deep_clone();
        let mut instance = compiled.instance()?;
        let outputs = instance.run(&inputs, run)?;
        StageResult { outputs, state: instance.into_state() }
    };
    let sizes = crate::binding::sizes(program, inputs)?;
    let program = &*crate::binding::with_strides_of(program, inputs, &sizes)?;
    let names = names(program, &interp);
    let expected = interp.described();
    let stage = |stage: &'static str, left: &StageResult| StageVerdict {
        stage,
        differences: differences(&names, &expected, &left.described()),
    };
    Ok(Verdict {
        program: program.name.to_string(),
        compared: expected.len(),
        stages: vec![stage("functional", &functional), stage("plan", &planned)],
        checked: options.check,
        meaning: if options.check {
            options.progress.tell(Doing::Proving);
            meaning(program, compiled.functional(), inputs)?
        } else {
            Equivalence::Undecided("not asked".into())
        },
    })
}

/// Outputs and state after a run.
struct StageResult {
    outputs: Outputs,
    state: State,
}

impl StageResult {
    fn interp(program: &Program, inputs: &Inputs, run: &RunOptions) -> Result<StageResult> {
        let inputs = inputs.deep_clone();
        let mut state = State::new(program)?;
        let outputs = interpret(program, &inputs, &mut state, run)?;
        Ok(StageResult { outputs, state })
    }

    fn described(&self) -> Vec<Described> {
        let mut storages = BTreeMap::new();
        let state = self.state.iter().map(|(_, t)| RunValue::Tensor(t.clone()));
        let values: Vec<RunValue> =
            self.outputs.inputs.iter().cloned().chain(state).chain(self.outputs.values.iter().cloned()).collect();
        values.iter().map(|v| Described::of(v, &mut storages)).collect()
    }
}

/// A value without its memory, by which two runs are compared.
enum Described {
    Tensor { tensor: RawTensor, bytes: Vec<u8>, storage: usize },
    Scalar(Scalar),
    Other(String),
}

impl Described {
    fn of(value: &RunValue, storages: &mut BTreeMap<usize, usize>) -> Described {
        match value {
            RunValue::Tensor(t) => {
                let next = storages.len();
                let storage = *storages.entry(t.storage().id()).or_insert(next);
                Described::Tensor { tensor: t.clone(), bytes: element_bytes(t), storage }
            }
            RunValue::Scalar(s) => Described::Scalar(*s),
            RunValue::Str(s) => Described::Other(format!("{s:?}")),
            RunValue::None => Described::Other("None".into()),
        }
    }
}

fn names(program: &Program, left: &StageResult) -> Vec<String> {
    let inputs = user_inputs(program).map(|(_, n)| format!("input.{n}"));
    let state = left.state.iter().map(|(n, _)| format!("state.{n}"));
    let outputs = (0..left.outputs.values.len()).map(|i| format!("output.{i}"));
    inputs.chain(state).chain(outputs).collect()
}

fn differences(names: &[String], a: &[Described], b: &[Described]) -> Vec<String> {
    let mut out = Vec::new();
    if a.len() != b.len() {
        out.push(format!("{} values instead of {}", b.len(), a.len()));
        return out;
    }
    for (name, (a, b)) in names.iter().zip(a.iter().zip(b)) {
        if let Some(what) = difference(a, b) {
            out.push(format!("{name} {what}"));
        }
    }
    out
}

fn difference(a: &Described, b: &Described) -> Option<String> {
    match (a, b) {
        (
            Described::Tensor { tensor: a, bytes, storage },
            Described::Tensor { tensor: b, bytes: other, storage: on },
        ) => {
            let (la, lb) = (a.layout(), b.layout());
            if a.dtype() != b.dtype() || la.sizes != lb.sizes {
                return Some(format!("is {}{:?} instead of {}{:?}", b.dtype(), lb.sizes, a.dtype(), la.sizes));
            }
            if !same_strides(la, lb) {
                return Some(format!("has strides {:?} instead of {:?}", lb.strides, la.strides));
            }
            if bytes != other {
                let size = a.dtype().size().max(1);
                let differ = bytes.chunks(size).zip(other.chunks(size)).filter(|(x, y)| x != y).count();
                return Some(format!("differs in {differ} of {} elements", a.numel()));
            }
            (storage != on).then(|| "shares memory with other values".to_string())
        }
        (Described::Scalar(a), Described::Scalar(b)) => {
            (!restride_exec::symbols::same_number(*a, *b)).then(|| format!("is {b} instead of {a}"))
        }
        (Described::Other(a), Described::Other(b)) => (a != b).then(|| format!("is {b} instead of {a}")),
        _ => Some("is another kind of value".into()),
    }
}

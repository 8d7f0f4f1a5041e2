//! What a program takes, gives and keeps: names, element types, sizes with their ranges, and what a run changes.

use crate::files::fixed;
use restride_exec::inputs::user_inputs;
use restride_exec::{Inputs, RunValue};
use restride_ir::{Arg, DType, Error, ErrorKind, Expr, InputKind, OutputKind, Program, Result, Stage, Type};
use restride_passes::functionalize::{FunctionalizeOptions, functionalize};
use restride_tensor::RawTensor;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A size or stride, as the file declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredSize {
    /// The number, or the expression over symbols.
    pub text: String,
    /// The least that it may be; `None` is unbounded.
    pub min: Option<i64>,
    /// The most that it may be; `None` is unbounded.
    pub max: Option<i64>,
}

/// Kind of a described value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// A tensor.
    Tensor,
    /// A number.
    Number,
    /// An input that was fixed at export; it may be left out.
    Fixed,
    /// `None`, a string, a token or a custom object.
    Other,
    /// A parameter.
    Parameter,
    /// A buffer.
    Buffer,
    /// A tensor constant.
    Constant,
}

/// An input, an output or a tensor of the state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedValue {
    /// Its name: an input's own, `output.I`, `grad.NAME`, or that of the state dict.
    pub name: String,
    /// Kind.
    pub kind: ValueKind,
    /// Element type of a tensor.
    pub dtype: Option<DType>,
    /// Sizes of a tensor.
    pub sizes: Vec<DeclaredSize>,
    /// Strides of a tensor, in elements.
    pub strides: Vec<DeclaredSize>,
    /// Whether a run writes it. `None` where the program has no functional form without inputs.
    pub mutated: Option<bool>,
    /// Bytes of the storage that a tensor of the state is stored in; 0 for others.
    pub bytes: usize,
}

/// What a program takes, gives and keeps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Description {
    /// The user inputs, in order.
    pub inputs: Vec<DescribedValue>,
    /// The user outputs, in order, then gradients.
    pub outputs: Vec<DescribedValue>,
    /// Parameters, buffers and constants, by name.
    pub state: Vec<DescribedValue>,
}

fn declared(e: &Expr) -> DeclaredSize {
    let (min, max) = e.bounds();
    DeclaredSize { text: e.to_string(), min, max }
}

fn described(name: String, kind: ValueKind, ty: Option<&Type>, mutated: Option<bool>) -> DescribedValue {
    let tensor = ty.and_then(Type::tensor);
    DescribedValue {
        name,
        kind,
        dtype: tensor.map(|t| t.dtype),
        sizes: tensor.map_or_else(Vec::new, |t| t.layout.sizes.iter().map(declared).collect()),
        strides: tensor.map_or_else(Vec::new, |t| t.layout.strides.iter().map(declared).collect()),
        mutated,
        bytes: 0,
    }
}

fn kind_of(ty: &Type) -> ValueKind {
    match ty {
        Type::Tensor(_) => ValueKind::Tensor,
        Type::Scalar(_) => ValueKind::Number,
        Type::None | Type::Str | Type::Opaque => ValueKind::Other,
    }
}

/// The names of the inputs and of the state that a run of a functional program writes.
fn written_names(program: &Program) -> BTreeSet<Arc<str>> {
    let mut names = BTreeSet::new();
    let mut add = |i: usize| match &program.signature.inputs[i].kind {
        InputKind::User(n) | InputKind::Parameter(n) | InputKind::Constant(n) | InputKind::Buffer { name: n, .. } => {
            names.insert(n.clone());
        }
        _ => {}
    };
    for output in &program.signature.outputs {
        let (OutputKind::Mutation(i) | OutputKind::Metadata(i)) = output.kind else { continue };
        match &program.signature.inputs[i].kind {
            InputKind::Storage(members) => members.iter().for_each(|m| add(*m)),
            _ => add(i),
        }
    }
    names
}

/// Describes a program, as imported or functional.
///
/// ```
/// # use restride::OpenOptions;
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/kv_cache.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let description = restride::describe(&program);
/// let written = description.state.iter().filter(|s| s.mutated == Some(true)).map(|s| s.name.as_str());
/// assert_eq!(written.collect::<Vec<_>>(), ["k", "steps", "v", "w"]);
/// # Ok::<(), restride::Error>(())
/// ```
pub fn describe(program: &Program) -> Description {
    let functional = match program.stage {
        Stage::Functional => Some(written_names(program)),
        Stage::Imported => functionalize(program, &FunctionalizeOptions::default()).ok().map(|p| written_names(&p)),
    };
    let mutated = |name: &str| functional.as_ref().map(|names| names.contains(name));
    let graph = program.graph();
    let mut out = Description::default();
    for (i, name) in user_inputs(program) {
        let spec = &program.signature.inputs[i];
        let ty = &graph.values[spec.value].ty;
        let kind = match &spec.kind {
            InputKind::Fixed { .. } => ValueKind::Fixed,
            _ => kind_of(ty),
        };
        out.inputs.push(described(name.to_string(), kind, Some(ty), mutated(name)));
    }
    let mut users = 0;
    for (spec, arg) in program.signature.outputs.iter().zip(&graph.outputs) {
        let name = match spec.kind {
            OutputKind::User | OutputKind::Loss => {
                users += 1;
                format!("output.{}", users - 1)
            }
            OutputKind::Gradient(i) => crate::files::gradient_name(program, i),
            _ => continue,
        };
        let ty = match arg {
            Arg::Value(v) => Some(&graph.values[*v].ty),
            _ => None,
        };
        let kind = match arg {
            Arg::Scalar(_) => ValueKind::Number,
            _ => ty.map_or(ValueKind::Other, kind_of),
        };
        out.outputs.push(described(name, kind, ty, Some(false)));
    }
    out.outputs.sort_by_key(|o| !o.name.starts_with("output."));
    let bytes = program.weights.storage_bytes();
    for (i, spec) in program.signature.inputs.iter().enumerate() {
        let kind = match spec.kind {
            InputKind::Parameter(_) => ValueKind::Parameter,
            InputKind::Buffer { .. } => ValueKind::Buffer,
            InputKind::Constant(_) => ValueKind::Constant,
            _ => continue,
        };
        let Some(name) = program.weight_name(i) else { continue };
        let mut one = described(name.to_string(), kind, Some(&graph.values[spec.value].ty), mutated(name));
        let storage = program.weights.tensors.get(name).and_then(|w| bytes.get(&w.storage));
        one.bytes = storage.map_or(0, |n| usize::try_from(*n).unwrap_or(0));
        out.state.push(one);
    }
    out.state.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

/// A program's inputs from tensors with names; a tensor without one stands for the input at its position. An input that was
/// fixed at export may be left out, and a number is given as a tensor without dimensions.
///
/// ```
/// # use restride::{OpenOptions, RawTensor};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/llama_decode.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let names: Vec<&str> = restride::user_inputs(&program).map(|(_, n)| &**n).collect();
/// let token = RawTensor::from_slice(&[1i64], &[1, 1]);
/// let position = RawTensor::from_slice(&[0i64], &[1]);
/// let inputs = restride::named_inputs(&program, &[(Some(names[1]), position), (Some(names[0]), token)])?;
/// assert_eq!(inputs.values.len(), 2);
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// A name that no input has, two tensors for one input, an input without a tensor.
pub fn named_inputs(program: &Program, tensors: &[(Option<&str>, RawTensor)]) -> Result<Inputs> {
    let names: Vec<(usize, &Arc<str>)> = user_inputs(program).collect();
    let wrong = |what: String| {
        let list: Vec<&str> = names.iter().map(|n| &**n.1).collect();
        let takes = if list.is_empty() { "no inputs".to_string() } else { list.join(", ") };
        Err(Error::new(ErrorKind::Inputs, what).help(format!("the program takes {takes}")))
    };
    let mut given: Vec<Option<&RawTensor>> = vec![None; names.len()];
    for (position, (name, tensor)) in tensors.iter().enumerate() {
        let at = match name {
            Some(name) => names.iter().position(|(_, n)| &***n == *name),
            None => (position < names.len()).then_some(position),
        };
        let Some(at) = at else {
            return wrong(match name {
                Some(name) => format!("the program has no input {name:?}"),
                None => format!("the program has no input at position {position}"),
            });
        };
        if given[at].replace(tensor).is_some() {
            return wrong(format!("the input {:?} is given twice", names[at].1));
        }
    }
    let mut values = Vec::with_capacity(names.len());
    for (&(i, name), tensor) in names.iter().zip(given) {
        let spec = &program.signature.inputs[i];
        let number = match &spec.kind {
            InputKind::Fixed { value, .. } => !matches!(value, Arg::Value(_)),
            _ => matches!(program.graph().values[spec.value].ty, Type::Scalar(_)),
        };
        values.push(match (tensor, &spec.kind) {
            (Some(t), _) if number && t.layout().rank() == 0 => RunValue::Scalar(t.get(&[])),
            (Some(t), _) => RunValue::Tensor(t.clone()),
            (None, InputKind::Fixed { value, .. }) => fixed(value),
            (None, _) => return wrong(format!("the input {name:?} is not given")),
        });
    }
    Ok(Inputs::new(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Program {
        restride_ir::text::parse(text, &restride_ops::lookup).expect("a program")
    }

    #[test]
    fn names_must_fit() {
        let program =
            program("graph(%x: f32[2], %y: f32[2]) {\n  %z: f32[2] = aten.add.Tensor(%x, %y)\n  return %z\n}\n");
        let t = || RawTensor::from_slice(&[1f32, 2.0], &[2]);
        let error =
            |tensors: &[(Option<&str>, RawTensor)]| named_inputs(&program, tensors).expect_err("refused").to_string();
        assert_eq!(error(&[(Some("w"), t())]), "the program has no input \"w\"; the program takes x, y");
        assert_eq!(error(&[(None, t()), (Some("x"), t())]), "the input \"x\" is given twice; the program takes x, y");
        assert_eq!(error(&[(Some("y"), t())]), "the input \"x\" is not given; the program takes x, y");
        assert_eq!(
            error(&[(None, t()), (None, t()), (None, t())]),
            "the program has no input at position 2; the program takes x, y"
        );
        assert!(named_inputs(&program, &[(Some("y"), t()), (Some("x"), t())]).is_ok());
    }

    #[test]
    fn a_written_input_is_mutated() {
        let program =
            program("graph(%x: f32[2], %y: f32[2]) {\n  %z: f32[2] = aten.add_.Tensor(%x, %y)\n  return %z\n}\n");
        let description = describe(&program);
        assert_eq!(description.inputs.iter().map(|i| i.mutated).collect::<Vec<_>>(), [Some(true), Some(false)]);
        assert_eq!(description.outputs[0].name, "output.0");
        assert_eq!(description.outputs[0].sizes[0], DeclaredSize { text: "2".into(), min: Some(2), max: Some(2) });
    }
}

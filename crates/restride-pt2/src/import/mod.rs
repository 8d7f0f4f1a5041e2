//! From an archive to a [`Program`]: the graph as exported, with every name and source line kept.
//!
//! Symbolic numbers become expressions where they are used. Regions of `wrap_with_set_grad_enabled` and `wrap_with_autocast`
//! are inlined, as PyTorch runs them. A run compares declared sizes with those that operators return.

mod args;
mod auto_functionalized;
mod autocast;
mod data_sizes;
mod default_dtype;
mod guards;
mod nodes;
mod origins;
mod pinned_numbers;
mod predispatch;
mod returned_mutations;
mod samples;
mod subclasses;
mod subgraphs;
mod symbols;
mod tensor_split;
pub(crate) mod triton;
mod weights;

pub(crate) use origins::{HISTORY, MARKS, OVERWRITTEN};
pub use weights::normal_bools;

use crate::archive::Archive;
use crate::error::{FileErrorKind, Pt2Error};
use crate::model;
use nodes::GraphImporter;
use restride_ir::{
    Arg, Error, ErrorKind, Graph, InputKind, InputSpec, Limits, Op, OutputKind, OutputSpec, Program, Result, Stage,
    Type,
};
use restride_tensor::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

impl From<Pt2Error> for Error {
    fn from(e: Pt2Error) -> Self {
        let kind = match e.kind() {
            FileErrorKind::Unsupported => ErrorKind::Unsupported,
            FileErrorKind::TooLarge => ErrorKind::Limit,
            _ => ErrorKind::File,
        };
        Error::new(kind, e.to_string())
    }
}

/// The file is damaged or contradicts itself.
fn damaged(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::File, what)
}

fn same_count(what: &str, signature: usize, graph: usize) -> Result<()> {
    if signature == graph {
        return Ok(());
    }
    Err(damaged(format!("the signature has {signature} {what}, the graph {graph}")))
}

/// How to read an archive.
#[derive(Clone, Copy)]
pub struct ImportOptions<'a> {
    /// Which of its models; the only one, or the one called `model`, if none is named.
    pub model: Option<&'a str>,
    /// Finds an operator by its full name (`aten.add.Tensor`).
    pub lookup: &'a dyn Fn(&str) -> Option<Op>,
    /// Limits on resources of the archive and its program.
    pub limits: Limits,
}

/// Reads a program out of a `.pt2`.
///
/// # Errors
/// A file that is damaged or of another format; an operator that is not known; a program that contradicts itself.
pub fn import(bytes: &Bytes, name: &str, options: &ImportOptions<'_>) -> Result<Program> {
    let archive = Archive::with_limits(bytes, &options.limits)?;
    let model = archive.pick_model(options.model)?.to_string();
    let mut exported = archive.program(&model)?;
    subclasses::unwrap(&mut exported.graph_module)?;
    let module = &exported.graph_module;
    let mut program = Program::new(name, Stage::Imported);
    program.limits = options.limits;
    let (declared, spare) = symbols::declare(&exported)?;
    program.symbols = declared;
    program.ranges = symbols::ranges(&exported, &program.symbols)?;
    let mut main = Graph::new();
    let mut importer = GraphImporter::new(&mut program, &mut main, options.lookup);
    importer.set_spare(spare);
    importer.read(&module.graph)?;
    let values = importer.names();
    let outputs = importer.outputs(&module.graph.outputs)?;
    main.outputs = outputs;
    let signature = without_tokens(&mut main, &module.signature)?;
    let id = program.main;
    program.graphs[id] = main;
    inputs(&mut program, &signature, &values)?;
    output_specs(&mut program, &signature)?;
    if let Some(signature) = module.module_call_graph.first().and_then(|m| m.signature.as_ref()) {
        program.pytree = Some((signature.in_spec.as_str().into(), signature.out_spec.as_str().into()));
        let names = signature.forward_arg_names.as_deref().unwrap_or_default();
        program.forward_args = names.iter().map(|n| n.as_str().into()).collect();
    }
    program.weights = Arc::new(weights::read(bytes, &archive, &model, &program)?);
    program.sample_inputs = samples::read(&archive, &model, &mut program)?.map(Arc::new);
    guards::read(&mut program, &exported);
    restride_ir::relay(&mut program);
    returned_mutations::write(&mut program, options.lookup)?;
    drop_unused_notes(&mut program);
    Ok(program)
}

/// Removes effect tokens from a graph and its signature: the order of nodes orders their effects.
fn without_tokens(main: &mut Graph, signature: &model::GraphSignature) -> Result<model::GraphSignature> {
    let mut out = signature.clone();
    let fits = signature.input_specs.len() == main.inputs.len() && signature.output_specs.len() == main.outputs.len();
    if !fits {
        // `inputs` and `output_specs` refuse this.
        return Ok(out);
    }
    let token = |s: &model::FileInput| matches!(s, model::FileInput::Token { .. });
    let tokens: Vec<_> =
        main.inputs.iter().zip(&signature.input_specs).filter(|(_, s)| token(s)).map(|t| *t.0).collect();
    if let Some((id, _)) = main.ordered().find(|(_, n)| n.operands().any(|v| tokens.contains(&v))) {
        return Err(Error::unsupported("a token as an operand").at(main, id));
    }
    main.inputs.retain(|v| !tokens.contains(v));
    out.input_specs.retain(|s| !token(s));
    let mut specs = signature.output_specs.iter();
    main.outputs.retain(|_| !matches!(specs.next(), Some(model::FileOutput::Token { .. })));
    out.output_specs.retain(|s| !matches!(s, model::FileOutput::Token { .. }));
    Ok(out)
}

fn drop_unused_notes(program: &mut Program) {
    program.notes.sort();
    program.notes.dedup();
}

fn inputs(
    program: &mut Program,
    signature: &model::GraphSignature,
    values: &BTreeMap<String, restride_ir::ValueId>,
) -> Result<()> {
    let given = program.graph().inputs.clone();
    same_count("inputs", signature.input_specs.len(), given.len())?;
    let named = |name: &str| {
        values
            .get(name)
            .copied()
            .ok_or_else(|| damaged(format!("the signature names {name}, which the graph does not have")))
    };
    for (spec, &value) in signature.input_specs.iter().zip(&given) {
        use model::FileInput as S;
        let own: Arc<str> = program.graph().values[value].name.clone();
        let (name, kind) = match spec {
            S::UserInput { arg } => {
                let name = arg.value_name();
                let kind = match name {
                    Some(n) => InputKind::User(n.into()),
                    None => InputKind::Fixed { name: own.clone(), value: args::constant(arg)? },
                };
                (name, kind)
            }
            S::Parameter { arg, parameter_name } => {
                (Some(arg.name.as_str()), InputKind::Parameter(parameter_name.as_str().into()))
            }
            S::Buffer { arg, buffer_name, persistent } => (
                Some(arg.name.as_str()),
                InputKind::Buffer { name: buffer_name.as_str().into(), persistent: *persistent },
            ),
            S::TensorConstant { arg, tensor_constant_name } => {
                (Some(arg.name.as_str()), InputKind::Constant(tensor_constant_name.as_str().into()))
            }
            S::CustomObj { arg, custom_obj_name } => {
                (Some(arg.name.as_str()), InputKind::Opaque(custom_obj_name.as_str().into()))
            }
            S::Token { arg } => (Some(arg.name.as_str()), InputKind::Opaque(arg.name.as_str().into())),
            S::ConstantInput { name, value } => {
                use model::ConstantValue as C;
                let value = match value {
                    C::AsNone(_) => Arg::None,
                    C::AsInt(i) => Arg::Scalar((*i).into()),
                    C::AsFloat(x) => Arg::Scalar(restride_ir::Expr::float(x.0)),
                    C::AsBool(b) => Arg::Scalar(restride_ir::Expr::Bool(*b)),
                    C::AsString(s) => Arg::Str(s.as_str().into()),
                };
                (None, InputKind::Fixed { name: name.as_str().into(), value })
            }
        };
        if let Some(name) = name
            && named(name)? != value
        {
            return Err(damaged(format!("the signature names {name} where the graph has {own}")));
        }
        program.signature.inputs.push(InputSpec { value, kind });
    }
    Ok(())
}

fn output_specs(program: &mut Program, signature: &model::GraphSignature) -> Result<()> {
    same_count("outputs", signature.output_specs.len(), program.graph().outputs.len())?;
    let find = |what: &str, test: &dyn Fn(&InputKind) -> bool| {
        let at = program.signature.inputs.iter().position(|i| test(&i.kind));
        at.ok_or_else(|| damaged(format!("the signature has an output for {what}, which is not an input")))
    };
    let parameter = |name: &str| find(name, &|k| matches!(k, InputKind::Parameter(n) if **n == *name));
    let buffer = |name: &str| find(name, &|k| matches!(k, InputKind::Buffer { name: n, .. } if **n == *name));
    let user = |name: &str| find(name, &|k| matches!(k, InputKind::User(n) if **n == *name));
    let mut specs = Vec::new();
    for spec in &signature.output_specs {
        use model::FileOutput as S;
        let kind = match spec {
            S::UserOutput { .. } => OutputKind::User,
            S::LossOutput { .. } => OutputKind::Loss,
            S::BufferMutation { buffer_name, .. } => OutputKind::Mutation(buffer(buffer_name)?),
            S::ParameterMutation { parameter_name, .. } => OutputKind::Mutation(parameter(parameter_name)?),
            S::UserInputMutation { user_input_name, .. } => OutputKind::Mutation(user(user_input_name)?),
            S::GradientToParameter { parameter_name, .. } => OutputKind::Gradient(parameter(parameter_name)?),
            S::GradientToUserInput { user_input_name, .. } => OutputKind::Gradient(user(user_input_name)?),
            S::Token { .. } => OutputKind::Token,
        };
        specs.push(OutputSpec { kind, alias: None });
    }
    program.signature.outputs = specs;
    // Strings and None are user inputs that the graph does not use.
    for spec in &program.signature.inputs {
        let ty = &program.graphs[program.main].values[spec.value].ty;
        if matches!(spec.kind, InputKind::User(_)) && matches!(ty, Type::Opaque) {
            return Err(Error::unsupported("a user input that is neither tensor nor number"));
        }
    }
    Ok(())
}

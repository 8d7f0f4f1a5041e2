//! From a [`Program`] to an archive that `torch.export.load` takes, in today's layout.
//!
//! Imported programs are written as they are. Functional programs declare their mutations as outputs. A flat storage that
//! they take is rebuilt from the inputs stored in it, and its new contents are written back to those inputs.

mod auto_functionalized;
mod bodies;
mod computed_numbers;
mod graph;
mod python_names;
mod range_asserts;
mod samples;
mod signature;
mod symbolic;
mod torch_layouts;
mod triton;
mod weights;

use crate::archive::{ArchiveContents, ModelFiles, write_archive};
use crate::model::{self, ExportedProgram, GraphModule, ModuleCallEntry, ModuleCallSignature, SchemaVersion};
use graph::{ExportContext, GraphWriter};

use restride_ir::{Arg, Effects, Error, ErrorKind, Program, Result, Stage};
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

/// The version of PyTorch's schema that is written.
const SCHEMA: SchemaVersion = SchemaVersion { major: 8, minor: 20 };

/// Writes a program to a `.pt2` file.
///
/// # Errors
/// A construct that an archive cannot express, with its node; a file that cannot be written.
pub fn export_file(program: &Program, path: &Path) -> Result<()> {
    export_file_with(program, path, &[])
}

/// Writes a program with extra files, by name below `extra/`.
///
/// # Errors
/// As [`export_file`].
pub fn export_file_with(program: &Program, path: &Path, extra: &[(String, Vec<u8>)]) -> Result<()> {
    let root = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let root = if root.is_empty() { "archive".to_string() } else { root };
    let contents = contents(program, root, extra)?;
    let failed = |e: std::io::Error| Error::new(ErrorKind::File, format!("{}: {e}", path.display()));
    let write = |to: &Path| {
        let file = std::fs::File::create(to).map_err(failed)?;
        let mut out = write_archive(std::io::BufWriter::new(file), &contents)?;
        out.flush().map_err(failed)
    };
    // A link is followed; a device or a pipe is written to, not replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if path.metadata().is_ok_and(|m| !m.is_file()) {
        return write(&path);
    }
    // The file is renamed into place: the program's own weights may be mapped from a file of this name.
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let done = write(&beside).and_then(|()| std::fs::rename(&beside, &path).map_err(failed));
    if done.is_err() {
        // Best effort: the error of the write matters, not that of the removal.
        let _ = std::fs::remove_file(&beside);
    }
    done
}

/// The archive's bytes.
///
/// # Errors
/// A construct that an archive cannot express, with its node.
pub fn export_bytes(program: &Program) -> Result<Vec<u8>> {
    Ok(write_archive(Vec::new(), &contents(program, "archive".into(), &[])?)?)
}

/// The contents of the archive.
fn contents<'a>(program: &'a Program, root: String, extra: &'a [(String, Vec<u8>)]) -> Result<ArchiveContents<'a>> {
    let exported = program_model(program)?;
    let weights = weights::files(program)?;
    Ok(ArchiveContents {
        root,
        models: vec![ModelFiles {
            name: "model".into(),
            program: exported,
            weights_config: weights.config,
            weights: weights.files,
            constants_config: weights.constants_config,
            constants: weights.constants,
            sample_inputs: Cow::Owned(samples::file(program)?),
        }],
        extra: extra
            .iter()
            .map(|(name, bytes)| crate::archive::ArchiveFile {
                name: name.clone(),
                bytes: Cow::Borrowed(bytes.as_slice()),
            })
            .collect(),
    })
}

/// The program's JSON.
pub fn program_model(program: &Program) -> Result<ExportedProgram> {
    let ctx = ExportContext { program, hints: symbolic::hints(program), effects: Effects::new(program)? };
    let source = program.graph();
    let mut w = GraphWriter::new(&ctx, source);
    let input_specs = signature::inputs(&mut w)?;
    for (id, node) in source.ordered() {
        w.node(node).map_err(|e| e.at(source, id))?;
    }
    w.origin = Default::default();
    let output_specs = signature::outputs(&mut w)?;
    let graph = w.out;
    let mut range_constraints = model::Map::new();
    for (name, s) in &program.symbols {
        let range = model::RangeConstraint { min_val: s.min(), max_val: s.max() };
        range_constraints.insert(name.to_string(), range);
    }
    for (e, min, max) in &program.ranges {
        if e.constant().is_none() {
            let range = model::RangeConstraint { min_val: *min, max_val: *max };
            range_constraints.insert(crate::expressions::python_text(e), range);
        }
    }
    let mutates = program.graphs.iter().any(|(_, g)| g.ordered().any(|(_, n)| n.op.mutates(&n.args)));
    let verifier = if program.stage == Stage::Functional && !mutates { "ATEN" } else { "TRAINING" };
    Ok(ExportedProgram {
        graph_module: GraphModule {
            graph,
            signature: model::GraphSignature { input_specs, output_specs },
            module_call_graph: vec![ModuleCallEntry { fqn: String::new(), signature: Some(call_signature(program)?) }],
            metadata: model::Map::new(),
            treespec_namedtuple_fields: model::Map::new(),
        },
        opset_version: [("aten".to_string(), 10)].into_iter().collect(),
        range_constraints,
        schema_version: SCHEMA,
        verifiers: vec![verifier.into()],
        torch_version: concat!("restride ", env!("CARGO_PKG_VERSION")).into(),
        guards_code: program.guards.iter().map(|g| g.text.to_string()).collect(),
    })
}

fn call_signature(program: &Program) -> Result<ModuleCallSignature> {
    let (in_spec, out_spec) = match &program.pytree {
        Some((i, o)) => (i.to_string(), o.to_string()),
        None => flat_specs(program),
    };
    let names: Vec<String> = program.forward_args.iter().map(|n| n.to_string()).collect();
    Ok(ModuleCallSignature {
        inputs: Vec::new(),
        outputs: Vec::new(),
        in_spec,
        out_spec,
        forward_arg_names: (!names.is_empty()).then_some(names),
    })
}

/// Specs of flat arguments and a tuple of results, for programs without a nesting of their own.
fn flat_specs(program: &Program) -> (String, String) {
    use crate::pytree::{Container, TreeSpec};
    let tuple = |n: usize| TreeSpec::Node(Container::Tuple, vec![TreeSpec::Leaf; n]);
    let results = program.signature.outputs.iter().filter(|o| crate::is_result(o));
    let kwargs = TreeSpec::Node(Container::Dict(Vec::new()), Vec::new());
    let inputs = TreeSpec::Node(Container::Tuple, vec![tuple(crate::user_inputs(program).count()), kwargs]);
    (inputs.print(), tuple(results.count()).print())
}

/// A constant as an argument and as the value of an input.
fn constant(value: &Arg) -> Result<(model::Argument, model::ConstantValue)> {
    use model::{Argument as A, ConstantValue as C, Float};
    use restride_ir::Expr;
    Ok(match value {
        Arg::None => (A::AsNone(true), C::AsNone(true)),
        Arg::Scalar(Expr::Int(i)) => (A::AsInt(*i), C::AsInt(*i)),
        Arg::Scalar(Expr::Bool(b)) => (A::AsBool(*b), C::AsBool(*b)),
        Arg::Scalar(Expr::Float(x)) => (A::AsFloat(Float(x.0)), C::AsFloat(Float(x.0))),
        Arg::Str(s) => (A::AsString(s.to_string()), C::AsString(s.to_string())),
        other => return Err(Error::unsupported(format!("an input that is fixed to {other:?} cannot be written"))),
    })
}

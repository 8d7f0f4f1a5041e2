//! Graphs as people paste them: FX nodes, generated code, `print_readable()`, `str(ExportedProgram)`, TorchScript IR.
//!
//! Each form becomes the same syntax tree, which the evaluator runs. Prompts, comments, source notes and fences around the text are left out.

mod jit_ir;
mod nodes;
mod plain;
pub mod print;
mod printed_numbers;
mod python;
mod several;
mod signature;

use crate::archive::RecordOptions;
use crate::eval::{ClassInfo, Definition, Dialect, Evaluator, Library};
use crate::inputs::{bind, output_arg, outputs, untyped};
use crate::record::Recorder;
use crate::source::SourceText;
use crate::syntax::ast::{FunctionDef, Param, Stmt};
use crate::value::{CodeFunction, PyObject, PyValue};
use restride_ir::{Arg, Error, ErrorKind, InputKind, Program, Result, Weights};
use restride_pt2::pytree::{Container, TreeSpec};
use signature::Declared;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A printed form of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphForm {
    /// `graph(): %x : [num_users=1] = placeholder[target=x]`
    Nodes,
    /// `def forward(self, x): …`: generated code, with or without types.
    Code,
    /// `ExportedProgram: class GraphModule …` with its signature.
    Exported,
    /// `graph(%x : Float(3, 4)): %3 : int = prim::Constant[value=1]() …`
    JitIr,
}

/// A pasted graph without its surroundings.
pub struct PastedGraph {
    /// How it was printed.
    pub form: GraphForm,
    text: String,
}

impl PastedGraph {
    /// The graph in a text; `None` for a text that is none, such as a `.fx`.
    ///
    /// # Errors
    /// A graph in a form that is not read.
    pub fn find(text: &str) -> Result<Option<PastedGraph>> {
        let text = plain::plain(text);
        if let Some(form) = form_of(&text) {
            return Ok(Some(PastedGraph { form, text }));
        }
        let columns = ["opcode", "name", "target", "args", "kwargs"];
        match text.lines().any(|line| line.split_whitespace().eq(columns)) {
            true => Err(Error::unsupported("a graph as the table of `print_tabular()` or `TORCH_LOGS=graph`")
                .help("print it by print(gm), print(gm.graph), gm.print_readable() or TORCH_LOGS=graph_code")),
            false => Ok(None),
        }
    }
}

/// The form of a text without its surroundings.
fn form_of(text: &str) -> Option<GraphForm> {
    let has = |part: &str| text.contains(part);
    let forward = text.lines().any(|l| l.trim_start().starts_with("def forward("));
    if forward {
        return Some(if has("ExportedProgram:") || has("Graph signature:") {
            GraphForm::Exported
        } else {
            GraphForm::Code
        });
    }
    if has("= placeholder[target=") || has("[num_users=") || has("[#users=") {
        return Some(GraphForm::Nodes);
    }
    if has("graph(") && (has(" = aten::") || has(" = prim::")) {
        return Some(GraphForm::JitIr);
    }
    None
}

/// What a form's parser gives.
#[derive(Default)]
pub(crate) struct Parsed {
    /// Parameters of the graph, without `self`.
    params: Vec<Param>,
    body: Vec<Stmt>,
    /// Declared inputs and outputs of an ExportedProgram.
    declared: Option<Declared>,
    /// Classes of nested graph modules, and modules by their printed forms.
    classes: Vec<(Arc<str>, ClassInfo)>,
    /// The parameter that stands for the module, in TorchScript IR.
    module: Option<Arc<str>>,
    /// What was assumed.
    notes: Vec<String>,
}

/// The definitions of a text.
struct TextLibrary {
    classes: HashMap<Arc<str>, Rc<ClassInfo>>,
    weights: RefCell<HashMap<String, PyValue>>,
}

impl Library for TextLibrary {
    fn find(&self, name: &str) -> Result<Option<Definition>> {
        Ok(self.classes.get(name).map(|c| Definition::Class(c.clone())))
    }

    fn constant(&self, _: usize) -> Option<PyValue> {
        None
    }

    fn weight(&self, path: &str) -> Option<PyValue> {
        self.weights.borrow().get(path).cloned()
    }

    fn has_below(&self, path: &str) -> bool {
        let prefix = format!("{path}.");
        self.weights.borrow().keys().any(|k| k.starts_with(&prefix))
    }
}

/// Reads a graph from a text, as [`import_graph`].
///
/// # Errors
/// As [`PastedGraph::find`] and [`import_graph`]; a text of no known form.
pub fn import(text: &str, name: &str, weights: Option<&Weights>, options: &RecordOptions<'_>) -> Result<Program> {
    let graph = PastedGraph::find(text)?.ok_or_else(|| Error::new(ErrorKind::File, "the text is no printed graph"))?;
    import_graph(graph, name, weights, options)
}

/// Reads a pasted graph. Attributes of the module are `weights` by name.
///
/// # Errors
/// Operators that are not known; inputs without types.
pub fn import_graph(
    graph: PastedGraph,
    name: &str,
    weights: Option<&Weights>,
    options: &RecordOptions<'_>,
) -> Result<Program> {
    let form = graph.form;
    let source = SourceText::new("text", several::one(graph.text, form, options.method)?);
    let parsed = match form {
        GraphForm::Nodes => nodes::parse(&source)?,
        GraphForm::Code | GraphForm::Exported => python::parse(&source)?,
        GraphForm::JitIr => jit_ir::parse(&source)?,
    };
    let dialect = if form == GraphForm::JitIr { Dialect::JitIr } else { Dialect::Python };
    let library = TextLibrary {
        classes: parsed.classes.iter().map(|(n, _)| n.clone()).zip(parsed.classes_rc()).collect(),
        weights: RefCell::default(),
    };
    let mut rec = Recorder::new(name, options.limits, options.lookup);
    if let Some(weights) = weights {
        for storage in &weights.storages {
            let at = rec.weight_count();
            rec.add_storage(format!("given {at}"), storage.clone());
        }
        for (path, weight) in &weights.tensors {
            let kind = if weight.is_param || weight.requires_grad {
                InputKind::Parameter(path.clone())
            } else {
                InputKind::Buffer { name: path.clone(), persistent: true }
            };
            let made = rec.weight(path, kind, weight.clone())?;
            library.weights.borrow_mut().insert(path.to_string(), PyValue::Tensor(made));
        }
    }
    let mut eval = Evaluator::new(rec, &library, dialect);
    run(&mut eval, &parsed, &source, options).and_then(|(args, spec, bound)| {
        let mut program = eval.rec.finish(args);
        program.pytree = Some((bound.0.into(), spec.into()));
        program.forward_args = bound.1;
        if let Some(declared) = &parsed.declared {
            declared.outputs(&mut program)?;
        }
        program.notes.extend(parsed.notes.iter().cloned());
        program.notes.sort();
        program.notes.dedup();
        Ok(program)
    })
}

impl Parsed {
    fn classes_rc(&self) -> Vec<Rc<ClassInfo>> {
        let copy = |c: &ClassInfo| ClassInfo {
            name: c.name.clone(),
            base: c.base.clone(),
            methods: c.methods.clone(),
            fields: c.fields.clone(),
            parameters: c.parameters.clone(),
            buffers: c.buffers.clone(),
            source: c.source.clone(),
        };
        self.classes.iter().map(|(_, c)| Rc::new(copy(c))).collect()
    }
}

type Ran = (Vec<Arg>, String, (String, Vec<Arc<str>>));

fn run(
    eval: &mut Evaluator<'_, '_>,
    parsed: &Parsed,
    source: &Arc<SourceText>,
    options: &RecordOptions<'_>,
) -> Result<Ran> {
    let module = Rc::new(PyObject {
        class: "GraphModule".into(),
        path: RefCell::new(Some("".into())),
        attributes: Default::default(),
    });
    for (name, _) in &parsed.classes {
        let object = eval.new_object(name);
        if !name.contains('.') {
            module.attributes.borrow_mut().insert(name.clone(), PyValue::Object(object));
        }
    }
    python::modules(eval, &module, source)?;
    let empty = Declared::default();
    let declared = parsed.declared.as_ref().unwrap_or(&empty);
    // Weights that the signature declares are inputs of the graph by position.
    let mut values: Vec<Option<PyValue>> = Vec::new();
    let mut users: Vec<Param> = Vec::new();
    for param in &parsed.params {
        let value = match declared.input(&param.name) {
            Some(kind) => Some(declared.weight(eval, param, kind)?),
            None => None,
        };
        if value.is_none() {
            users.push(param.clone());
        }
        values.push(value);
    }
    let types = signature::types(eval, &users, declared, options.inputs)?;
    let bound = match bind(eval, &users, &types, None) {
        Err(e) if e.kind == ErrorKind::Inputs && e.what.starts_with("the file does not hold") => {
            let names: Vec<&str> = users
                .iter()
                .filter(|u| u.default.is_none() && types.items.iter().all(|i| i.0.as_ref() != Some(&u.name)))
                .map(|p| &*p.name)
                .collect();
            return Err(untyped(&names));
        }
        other => other?,
    };
    let mut given = bound.args.into_iter();
    let mut args = vec![PyValue::Object(module)];
    for value in values {
        match value.or_else(|| given.next()) {
            Some(value) => args.push(value),
            None => break,
        }
    }
    let this =
        Param { name: parsed.module.clone().unwrap_or("self".into()), annotation: None, default: None, stars: 0 };
    let params: Vec<Param> = std::iter::once(this).chain(parsed.params.iter().cloned()).collect();
    let keyword_only = params.len();
    let def =
        FunctionDef { name: "forward".into(), params, keyword_only, returns: None, body: parsed.body.clone(), line: 1 };
    let function = Rc::new(CodeFunction::new(Rc::new(def), source.clone()));
    let result = eval.call_function(&function, args, Vec::new())?;
    let (leaves, spec) = outputs(eval, &result)?;
    let args = leaves.iter().map(|l| output_arg(eval, l)).collect::<Result<Vec<_>>>()?;
    let spec = match declared.user_outputs() {
        // The declared results, without mutations.
        Some(n) if n != leaves.len() => TreeSpec::Node(Container::Tuple, vec![TreeSpec::Leaf; n]),
        _ => spec,
    };
    Ok((args, spec.print(), (bound.spec, bound.names)))
}

//! Guards: conditions over the inputs become conditions over symbols.

use crate::expressions::{self, ExprNames, InputProperty};
use crate::model::ExportedProgram;
use crate::pytree::{PathStep, TreeSpec};
use restride_ir::{Expr, Guard, Program, Type, ValueId};

/// Adds the program's guards; the notes name those that are not understood.
pub fn read(program: &mut Program, exported: &ExportedProgram) {
    let signature = exported.graph_module.module_call_graph.first().and_then(|m| m.signature.as_ref());
    let inputs = GuardInputs {
        names: signature.and_then(|s| s.forward_arg_names.as_deref()).unwrap_or_default(),
        paths: match signature.map(|s| TreeSpec::parse(&s.in_spec)) {
            Some(Ok(spec)) => spec.leaf_paths(),
            _ => Vec::new(),
        },
        users: crate::user_inputs(program).map(|i| i.value).collect(),
        program,
    };
    let read: Vec<_> = exported.guards_code.iter().map(|text| (text, expressions::parse(text, &inputs))).collect();
    for (text, condition) in read {
        match condition {
            Ok(Expr::Bool(true)) => {}
            Ok(condition) => program.guards.push(Guard { condition, text: text.as_str().into() }),
            Err(_) => program.notes.push(format!("a condition on the inputs is not checked: {text}")),
        }
    }
}

/// The user inputs of a program, by the ways to them in Python.
struct GuardInputs<'a> {
    program: &'a Program,
    /// Parameters of `forward`.
    names: &'a [String],
    paths: Vec<Vec<PathStep>>,
    users: Vec<ValueId>,
}

impl ExprNames for GuardInputs<'_> {
    fn symbol(&self, _name: &str, _positive: bool) -> Option<Expr> {
        None
    }

    fn input(&self, path: &[PathStep], property: InputProperty) -> Option<Expr> {
        // in_spec is ((args…), {kwargs…}); a guard's first step is a parameter's name.
        let PathStep::Key(first) = path.first()? else { return None };
        let positional = |name: &str| {
            let i = self.names.iter().position(|n| n == name)?;
            Some(vec![PathStep::Index(0), PathStep::Index(i as i64)])
        };
        let mut starts: Vec<(Vec<PathStep>, usize)> = Vec::new();
        starts.extend(positional(first).map(|way| (way, 1)));
        starts.push((vec![PathStep::Index(1), PathStep::Key(first.clone())], 1));
        // The arguments of `*xs` are called `xs_0`, `xs_1`, …
        if let Some(PathStep::Index(k)) = path.get(1) {
            starts.extend(positional(&format!("{first}_{k}")).map(|way| (way, 2)));
        }
        let position = starts.into_iter().find_map(|(mut way, used)| {
            way.extend(path[used..].iter().cloned());
            self.paths.iter().position(|p| *p == way)
        })?;
        match (&self.program.graph().values[*self.users.get(position)?].ty, property) {
            (Type::Scalar(e), InputProperty::Value) => Some(e.clone()),
            (Type::Tensor(t), InputProperty::Size(d)) => Some(t.layout.sizes[t.layout.dim(d).ok()?].clone()),
            (Type::Tensor(t), InputProperty::Rank) => Some(Expr::Int(t.rank() as i64)),
            (Type::Tensor(t), InputProperty::Numel) => Some(t.layout.numel()),
            _ => None,
        }
    }
}

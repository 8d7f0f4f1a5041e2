//! Generated code: `gm.code`, `print_readable()`, `print(gm)`, `str(ExportedProgram)`.

use super::{Parsed, signature};
use crate::archive::code::class_info;
use crate::eval::{ClassInfo, Evaluator};
use crate::source::SourceText;
use crate::syntax::ast::{Stmt, StmtKind};
use crate::syntax::parse as parse_source;
use crate::value::{PyObject, PyValue};
use restride_ir::Result;
use std::rc::Rc;
use std::sync::Arc;

/// Reads the first graph module, or function `forward`, of a text.
pub(super) fn parse(source: &Arc<SourceText>) -> Result<Parsed> {
    let code = code_of(source.text());
    let own = SourceText::new(source.name().clone(), code);
    let stmts = parse_source(&own)?;
    let missing = || source.error(1, "the text has no function `forward`");
    let mut classes = Vec::new();
    let forward = match find(&stmts) {
        Some(FoundForward::Class(body)) => {
            nested(body, "", &own, &mut classes);
            body.iter().find_map(|s| match &s.kind {
                StmtKind::Def(def) if &*def.name == "forward" => Some(def.clone()),
                _ => None,
            })
        }
        Some(FoundForward::Function(def)) => Some(def),
        None => None,
    };
    let def = forward.ok_or_else(missing)?;
    let mut params = def.params.clone();
    if params.first().is_some_and(|p| &*p.name == "self") {
        params.remove(0);
    }
    // `x: "f32[2, 3]"; y: "f32[3]";` before the code: types of parameters, where `torch.export` prints a module.
    for stmt in &def.body {
        let StmtKind::Annotated(target, ty, None) = &stmt.kind else { break };
        for param in params.iter_mut().filter(|p| target.dotted().as_deref() == Some(&p.name)) {
            param.annotation = Some(ty.clone());
        }
    }
    // Destructured inputs (`arg0, arg1, = fx_pytree.tree_flatten_spec(...)`) are the flat ones.
    let body: Vec<Stmt> = def.body.clone();
    Ok(Parsed { params, body, declared: signature::read(source.text()), classes, module: None, notes: Vec::new() })
}

enum FoundForward<'s> {
    Class(&'s [Stmt]),
    Function(Rc<crate::syntax::ast::FunctionDef>),
}

fn find(stmts: &[Stmt]) -> Option<FoundForward<'_>> {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Class(class) => {
                let forward = |s: &Stmt| matches!(&s.kind, StmtKind::Def(d) if &*d.name == "forward");
                if class.body.iter().any(forward) {
                    return Some(FoundForward::Class(&class.body));
                }
            }
            StmtKind::Def(def) if &*def.name == "forward" => return Some(FoundForward::Function(def.clone())),
            _ => {}
        }
    }
    None
}

/// Classes of nested graph modules, by the names of the attributes that hold them.
fn nested(body: &[Stmt], prefix: &str, source: &Arc<SourceText>, out: &mut Vec<(Arc<str>, ClassInfo)>) {
    for stmt in body {
        let StmtKind::Class(class) = &stmt.kind else { continue };
        let full: Arc<str> =
            if prefix.is_empty() { class.name.clone() } else { format!("{prefix}.{}", class.name).into() };
        out.push((full.clone(), class_info(full.clone(), class.base.clone(), &class.body, source)));
        nested(&class.body, &full, source, out);
    }
}

/// The first class or function `forward` from a line on: its first line and the one after its last.
pub(super) fn code_lines(lines: &[&str], from: usize) -> Option<(usize, usize)> {
    let starts = |l: &str| {
        let t = l.trim_start();
        t.starts_with("class ") && t.contains("Module") || t.starts_with("def forward(")
    };
    let first = from + lines.get(from..)?.iter().position(|l| starts(l))?;
    let depth = indent(lines[first]);
    let ends =
        |line: &&str| !line.trim().is_empty() && indent(line) <= depth && !line.trim_start().starts_with(['#', ')']);
    let end = lines[first + 1..].iter().position(ends).map_or(lines.len(), |at| first + 1 + at);
    Some((first, end))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The lines of the class or function, without what is around it; other lines are empty, so that numbers stay.
fn code_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some((first, end)) = code_lines(&lines, 0) else { return String::new() };
    let depth = indent(lines[first]);
    let mut out = "\n".repeat(first);
    for line in &lines[first..end] {
        // `class <lambda>(torch.nn.Module):` has a name that is none.
        let line = line.get(depth.min(indent(line))..).unwrap_or("").replace("class <lambda>", "class GraphModule");
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Modules that `print(gm)` lists before the code, as attributes of the module.
pub(super) fn modules(_eval: &mut Evaluator<'_, '_>, module: &Rc<PyObject>, source: &Arc<SourceText>) -> Result<()> {
    // `(conv): Conv1d(1, 2, kernel_size=(3,))`, nested by indentation.
    let mut open: Vec<(usize, Rc<PyObject>, String)> = vec![(0, module.clone(), String::new())];
    for line in source.text().lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        let Some((name, rest)) = text.strip_prefix('(').and_then(|t| t.split_once("): ")) else { continue };
        if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        while open.len() > 1 && open.last().is_some_and(|o| o.0 >= depth) {
            open.pop();
        }
        let (_, parent, path) = open.last().cloned().unwrap_or((0, module.clone(), String::new()));
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        let object = Rc::new(PyObject {
            class: format!("repr {rest}").into(),
            path: std::cell::RefCell::new(Some(path.as_str().into())),
            attributes: Default::default(),
        });
        parent.attributes.borrow_mut().insert(name.into(), PyValue::Object(object.clone()));
        open.push((depth, object, path));
    }
    Ok(())
}

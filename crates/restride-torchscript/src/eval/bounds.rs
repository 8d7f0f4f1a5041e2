//! How often a `while` runs at most, from the count that its condition asks for beside what data decides.

use super::Env;
use super::liveness::assigned;
use crate::syntax::ast::{Ast, AstKind, Stmt, StmtKind};
use std::collections::HashMap;
use std::sync::Arc;

/// A count that each iteration raises, and that ends a loop at a limit.
pub(super) struct LoopLimit<'a> {
    /// The variable.
    pub counter: Arc<str>,
    /// What the next count must be below.
    pub limit: &'a Ast,
    /// Whether the count may be the limit itself.
    pub inclusive: bool,
}

/// What a body sets a variable to.
enum SetVariable<'a> {
    Value(&'a Ast),
    Choice { condition: &'a Ast, then: &'a Ast, other: &'a Ast },
}

type SetVariables<'a> = HashMap<Arc<str>, SetVariable<'a>>;

/// The limit of a loop with a condition variable, if the body's code tells it.
pub(super) fn limit_of<'a>(env: &Env, condition: &Ast, body: &'a [Stmt]) -> Option<LoopLimit<'a>> {
    let AstKind::Name(condition) = &condition.kind else { return None };
    let variables = set_variables(body);
    let (count, limit, inclusive) = needed_name(condition, &variables, 0)?;
    let count = last_name(count, &variables);
    let Some(SetVariable::Value(next)) = variables.get(&count) else { return None };
    let (old, step) = call_of(next, "torch.add")?;
    let (AstKind::Name(counter), AstKind::Int(1..)) = (&old.kind, &step.kind) else { return None };
    let Some(SetVariable::Value(left)) = variables.get(counter) else { return None };
    let AstKind::Name(left) = &left.kind else { return None };
    let mut set = Vec::new();
    assigned(body, &mut set);
    let fixed = match &limit.kind {
        AstKind::Int(_) => true,
        AstKind::Name(name) => env.vars.contains_key(name) && !set.contains(name),
        _ => false,
    };
    let same = last_name(left, &variables) == count;
    (fixed && same).then(|| LoopLimit { counter: counter.clone(), limit, inclusive })
}

/// Whether a body appends to lists or joins tensors.
pub(super) fn appends(body: &[Stmt]) -> bool {
    let call = |ast: &Ast| match &ast.kind {
        AstKind::Call { callee, .. } => matches!(callee.dotted().as_deref(), Some("torch.append" | "torch.cat")),
        _ => false,
    };
    body.iter().any(|s| match &s.kind {
        StmtKind::Assign(_, value) | StmtKind::Expr(value) => call(value),
        StmtKind::If(_, a, b) => appends(a) || appends(b),
        _ => false,
    })
}

fn set_variables(body: &[Stmt]) -> SetVariables<'_> {
    let mut out = SetVariables::new();
    for stmt in body {
        match &stmt.kind {
            StmtKind::Assign(targets, value) => {
                if let [target] = &targets[..] {
                    pairs(target, value, &mut |name, value| {
                        out.insert(name.clone(), SetVariable::Value(value));
                    });
                }
            }
            StmtKind::If(condition, then, other) => {
                let mut set: HashMap<Arc<str>, &Ast> = HashMap::new();
                each_pair(then, &mut |name, value| {
                    set.insert(name.clone(), value);
                });
                each_pair(other, &mut |name, other| {
                    if let Some(then) = set.get(name) {
                        out.insert(name.clone(), SetVariable::Choice { condition, then, other });
                    }
                });
                // What a side computes on its way.
                for side in [then, other] {
                    each_pair(side, &mut |name, value| {
                        out.entry(name.clone()).or_insert(SetVariable::Value(value));
                    });
                }
            }
            _ => {}
        }
    }
    out
}

fn each_pair<'a>(stmts: &'a [Stmt], f: &mut impl FnMut(&'a Arc<str>, &'a Ast)) {
    for stmt in stmts {
        if let StmtKind::Assign(targets, value) = &stmt.kind
            && let [target] = &targets[..]
        {
            pairs(target, value, f);
        }
    }
}

/// Each name of an assignment with its value, where the code pairs them.
fn pairs<'a>(target: &'a Ast, value: &'a Ast, f: &mut impl FnMut(&'a Arc<str>, &'a Ast)) {
    match (&target.kind, &value.kind) {
        (AstKind::Name(name), _) => f(name, value),
        (AstKind::Tuple(targets), AstKind::Tuple(values)) if targets.len() == values.len() => {
            targets.iter().zip(values).for_each(|(t, v)| pairs(t, v, f));
        }
        _ => {}
    }
}

/// The two arguments of a call of a function.
fn call_of<'a>(ast: &'a Ast, function: &str) -> Option<(&'a Ast, &'a Ast)> {
    let AstKind::Call { callee, args, .. } = &ast.kind else { return None };
    match (callee.dotted()?, &args[..]) {
        (name, [(a, false), (b, false)]) if name == function => Some((a, b)),
        _ => None,
    }
}

/// The name behind names that are set to one another.
fn last_name(name: &Arc<str>, variables: &SetVariables<'_>) -> Arc<str> {
    let mut name = name;
    for _ in 0..16 {
        match variables.get(name) {
            Some(SetVariable::Value(Ast { kind: AstKind::Name(next), .. })) if next != name => name = next,
            _ => break,
        }
    }
    name.clone()
}

/// A comparison that must hold: of a count, below a limit, which may be the limit.
type Needed<'a> = (&'a Arc<str>, &'a Ast, bool);

fn needed_name<'a>(name: &Arc<str>, variables: &SetVariables<'a>, depth: u32) -> Option<Needed<'a>> {
    if depth > 16 {
        return None;
    }
    match variables.get(name)? {
        SetVariable::Value(value) => needed(value, variables, depth),
        SetVariable::Choice { condition, then, other } => {
            let no = |ast: &Ast| matches!(ast.kind, AstKind::Bool(false));
            if no(other) {
                needed(condition, variables, depth).or_else(|| needed(then, variables, depth))
            } else if no(then) {
                refused(condition).or_else(|| needed(other, variables, depth))
            } else {
                None
            }
        }
    }
}

/// What must hold where an expression is true.
fn needed<'a>(ast: &'a Ast, variables: &SetVariables<'a>, depth: u32) -> Option<Needed<'a>> {
    if let AstKind::Name(name) = &ast.kind {
        return needed_name(name, variables, depth + 1);
    }
    if let Some((a, b)) = call_of(ast, "torch.__and__") {
        return needed(a, variables, depth + 1).or_else(|| needed(b, variables, depth + 1));
    }
    compared(ast, ["torch.lt", "torch.le"])
}

/// What must hold where a comparison is false.
fn refused(ast: &Ast) -> Option<Needed<'_>> {
    compared(ast, ["torch.ge", "torch.gt"])
}

fn compared<'a>(ast: &'a Ast, [below, reaching]: [&str; 2]) -> Option<Needed<'a>> {
    let (found, inclusive) = match call_of(ast, below) {
        Some(found) => (found, false),
        None => (call_of(ast, reaching)?, true),
    };
    match &found.0.kind {
        AstKind::Name(name) => Some((name, found.1, inclusive)),
        _ => None,
    }
}

//! Variables that a function reads no more: they are forgotten, so that tensors which nothing else holds are known to be unseen.

use crate::syntax::ast::{Ast, AstKind, FunctionDef, Stmt, StmtKind};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

type NameSet = BTreeSet<Arc<str>>;

/// For each statement of a function, by its address, the variables that end with it.
#[derive(Default)]
pub(crate) struct VariableEnds(HashMap<*const Stmt, Vec<Arc<str>>>);

impl VariableEnds {
    /// The ends of a function's variables; none where jumps or inner functions leave the order of the statements.
    pub(super) fn of(def: &FunctionDef) -> VariableEnds {
        let mut out = VariableEnds::default();
        if ordered(&def.body) {
            out.block(&def.body, &NameSet::new());
        }
        out
    }

    /// The variables that end with a statement.
    pub(super) fn after(&self, stmt: &Stmt) -> &[Arc<str>] {
        self.0.get(&std::ptr::from_ref(stmt)).map_or(&[], Vec::as_slice)
    }

    /// Goes through a block backwards, from the variables that are read after it to those that are read from its start on.
    fn block(&mut self, stmts: &[Stmt], after: &NameSet) -> NameSet {
        let mut live = after.clone();
        for stmt in stmts.iter().rev() {
            let mut names = NameSet::new();
            mentioned(stmt, &mut names);
            let ends = names.into_iter().filter(|n| !live.contains(n)).collect();
            live = self.statement(stmt, &live);
            self.0.insert(std::ptr::from_ref(stmt), ends);
        }
        live
    }

    fn statement(&mut self, stmt: &Stmt, after: &NameSet) -> NameSet {
        let mut live = after.clone();
        match &stmt.kind {
            StmtKind::Assign(targets, value) => {
                targets.iter().for_each(|t| forget(t, &mut live));
                targets.iter().for_each(|t| place(t, &mut live));
                reads(value, &mut live);
            }
            StmtKind::Annotated(target, _, value) => {
                if value.is_some() {
                    forget(target, &mut live);
                }
                place(target, &mut live);
                value.iter().for_each(|v| reads(v, &mut live));
            }
            StmtKind::Return(value) | StmtKind::Raise(value) => {
                live.clear();
                value.iter().for_each(|v| reads(v, &mut live));
            }
            StmtKind::If(condition, then, other) => {
                live = self.block(then, after);
                live.extend(self.block(other, after));
                reads(condition, &mut live);
            }
            StmtKind::While(condition, body) => {
                reads(condition, &mut live);
                live = self.repeated(body, live);
            }
            StmtKind::For(target, iter, body) => {
                live = self.repeated(body, live);
                forget(target, &mut live);
                live.extend(after.iter().cloned());
                reads(iter, &mut live);
            }
            StmtKind::With(items, body) => {
                live = self.block(body, after);
                items.iter().for_each(|(value, _)| reads(value, &mut live));
            }
            _ => mentioned(stmt, &mut live),
        }
        live
    }

    /// The variables that are read from the start of a loop's body on, if it is repeated until no more are found.
    fn repeated(&mut self, body: &[Stmt], mut live: NameSet) -> NameSet {
        loop {
            let mut again = self.block(body, &live);
            again.extend(live.iter().cloned());
            if again.len() == live.len() {
                return live;
            }
            live = again;
        }
    }
}

/// Whether all statements come one after another.
fn ordered(stmts: &[Stmt]) -> bool {
    stmts.iter().all(|s| match &s.kind {
        StmtKind::Break | StmtKind::Continue | StmtKind::Def(_) | StmtKind::Class(_) => false,
        StmtKind::If(_, a, b) => ordered(a) && ordered(b),
        StmtKind::While(_, body) | StmtKind::With(_, body) | StmtKind::For(_, _, body) => ordered(body),
        _ => true,
    })
}

/// Takes out the variables that an assignment sets.
fn forget(target: &Ast, live: &mut NameSet) {
    match &target.kind {
        AstKind::Name(name) => {
            live.remove(name);
        }
        AstKind::Tuple(items) | AstKind::List(items) => items.iter().for_each(|i| forget(i, live)),
        _ => {}
    }
}

/// Adds the variables that an assignment reads to find its place.
fn place(target: &Ast, live: &mut NameSet) {
    match &target.kind {
        AstKind::Name(_) => {}
        AstKind::Tuple(items) | AstKind::List(items) => items.iter().for_each(|i| place(i, live)),
        _ => reads(target, live),
    }
}

/// All names of a statement and of those inside.
fn mentioned(stmt: &Stmt, out: &mut NameSet) {
    match &stmt.kind {
        StmtKind::Assign(targets, value) => {
            targets.iter().for_each(|t| reads(t, out));
            reads(value, out);
        }
        StmtKind::Annotated(target, _, value) => {
            reads(target, out);
            value.iter().for_each(|v| reads(v, out));
        }
        StmtKind::Augmented(_, target, value) => {
            reads(target, out);
            reads(value, out);
        }
        StmtKind::Expr(value) => reads(value, out),
        StmtKind::Return(value) | StmtKind::Raise(value) => value.iter().for_each(|v| reads(v, out)),
        StmtKind::Assert(condition, message) => {
            reads(condition, out);
            message.iter().for_each(|v| reads(v, out));
        }
        StmtKind::If(condition, a, b) => {
            reads(condition, out);
            a.iter().chain(b).for_each(|s| mentioned(s, out));
        }
        StmtKind::While(condition, body) => {
            reads(condition, out);
            body.iter().for_each(|s| mentioned(s, out));
        }
        StmtKind::For(target, iter, body) => {
            reads(target, out);
            reads(iter, out);
            body.iter().for_each(|s| mentioned(s, out));
        }
        StmtKind::With(items, body) => {
            for (value, target) in items {
                reads(value, out);
                target.iter().for_each(|t| reads(t, out));
            }
            body.iter().for_each(|s| mentioned(s, out));
        }
        StmtKind::Break | StmtKind::Continue | StmtKind::Pass | StmtKind::Def(_) | StmtKind::Class(_) => {}
    }
}

/// Names that statements assign.
pub(super) fn assigned(stmts: &[Stmt], out: &mut Vec<Arc<str>>) {
    use StmtKind as S;
    fn target(t: &Ast, out: &mut Vec<Arc<str>>) {
        match &t.kind {
            AstKind::Name(n) if !out.contains(n) => out.push(n.clone()),
            AstKind::Tuple(items) => items.iter().for_each(|i| target(i, out)),
            _ => {}
        }
    }
    for stmt in stmts {
        match &stmt.kind {
            S::Assign(targets, _) => targets.iter().for_each(|t| target(t, out)),
            S::Annotated(t, _, Some(_)) | S::Augmented(_, t, _) => target(t, out),
            S::If(_, a, b) => {
                assigned(a, out);
                assigned(b, out);
            }
            S::While(_, body) | S::With(_, body) => assigned(body, out),
            S::For(t, _, body) => {
                target(t, out);
                assigned(body, out);
            }
            _ => {}
        }
    }
}

/// Adds the names of an expression.
fn reads(ast: &Ast, out: &mut NameSet) {
    match &ast.kind {
        AstKind::Name(name) => {
            out.insert(name.clone());
        }
        AstKind::Attr(base, _) | AstKind::Unary(_, base) => reads(base, out),
        AstKind::Call { callee, args, kwargs } => {
            reads(callee, out);
            args.iter().for_each(|(a, _)| reads(a, out));
            kwargs.iter().for_each(|(_, a)| reads(a, out));
        }
        AstKind::Index(a, b) | AstKind::Binary(_, a, b) | AstKind::Logic { left: a, right: b, .. } => {
            reads(a, out);
            reads(b, out);
        }
        AstKind::Slice(a, b, c) => [a, b, c].into_iter().flatten().for_each(|x| reads(x, out)),
        AstKind::Tuple(items) | AstKind::List(items) => items.iter().for_each(|i| reads(i, out)),
        AstKind::Dict(items) => items.iter().for_each(|(k, v)| {
            reads(k, out);
            reads(v, out);
        }),
        AstKind::Choice(a, b, c) => [a, b, c].into_iter().for_each(|x| reads(x, out)),
        AstKind::Comprehension(body, target, iter, condition) => {
            [body, target, iter].into_iter().for_each(|x| reads(x, out));
            condition.iter().for_each(|x| reads(x, out));
        }
        AstKind::None
        | AstKind::Bool(_)
        | AstKind::Int(_)
        | AstKind::Float(_)
        | AstKind::Imaginary(_)
        | AstKind::Str(_)
        | AstKind::Ellipsis => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceText;

    /// The variables that end with each statement, in order of the lines.
    fn ends(text: &str) -> Vec<(u32, String)> {
        fn lines(stmts: &[Stmt], ends: &VariableEnds, out: &mut Vec<(u32, String)>) {
            for stmt in stmts {
                let names: Vec<&str> = ends.after(stmt).iter().map(|n| &**n).collect();
                out.push((stmt.line, names.join(" ")));
                if let StmtKind::While(_, body) | StmtKind::If(_, body, _) = &stmt.kind {
                    lines(body, ends, out);
                }
            }
        }
        let stmts = crate::syntax::parse(&SourceText::new("text", text)).unwrap();
        let StmtKind::Def(def) = &stmts[0].kind else { panic!("no function") };
        let mut out = Vec::new();
        lines(&def.body, &VariableEnds::of(def), &mut out);
        out.retain(|(_, names)| !names.is_empty());
        out
    }

    #[test]
    fn variables_end_where_nothing_reads_them_again() {
        let text = "def f(x):\n  y = x\n  while y:\n    t = y + 1\n    y, u = t, y\n  z = y\n  z.a = 1\n  return z\n";
        let found = ends(text);
        let found: Vec<(u32, &str)> = found.iter().map(|(line, names)| (*line, names.as_str())).collect();
        assert_eq!(found, [(2, "x"), (3, "t u"), (5, "t u"), (6, "y"), (8, "z")]);
        assert!(ends("def f(x):\n  for i in x:\n    break\n  return x\n").is_empty());
    }
}

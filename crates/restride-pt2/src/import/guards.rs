//! Guards: conditions over the inputs' sizes become conditions over symbols.

use crate::guard::{self, Binary, Compare, Guard, GuardExpr, GuardFn, InputRef, PathStep, Quantity};
use crate::model::ExportedProgram;
use crate::pytree::TreeSpec;
use restride_ir::{Expr, ExprFn, InputKind, Program, Result, Type, ValueId};

/// Adds the program's guards; what is not understood is noted.
pub fn read(program: &mut Program, exported: &ExportedProgram) -> Result<()> {
    let signature = exported.graph_module.module_call_graph.first().and_then(|m| m.signature.as_ref());
    let names: Vec<String> = signature.and_then(|s| s.forward_arg_names.clone()).unwrap_or_default();
    let paths = match signature.map(|s| TreeSpec::parse(&s.in_spec)) {
        Some(Ok(spec)) => spec.leaf_paths(),
        _ => Vec::new(),
    };
    let users: Vec<ValueId> = program
        .signature
        .inputs
        .iter()
        .filter(|i| matches!(i.kind, InputKind::User(_) | InputKind::Fixed { .. }))
        .map(|i| i.value)
        .collect();
    for text in &exported.guards_code {
        let found = match guard::parse(text) {
            Guard::Check(e) => convert(&e, &|r| resolve(program, r, &names, &paths, &users)),
            Guard::Unsupported(_) => None,
        };
        match found {
            Some(Expr::Bool(true)) => {}
            Some(condition) => program.guards.push(restride_ir::Guard { condition, text: text.as_str().into() }),
            None => program.notes.push(format!("a condition on the inputs is not checked: {text}")),
        }
    }
    Ok(())
}

/// What an input's size or value is, as an expression.
fn resolve(
    program: &Program,
    r: &InputRef,
    names: &[String],
    paths: &[Vec<PathStep>],
    users: &[ValueId],
) -> Option<Expr> {
    // in_spec is ((args…), {kwargs…}); a guard's first step is a parameter's name.
    let PathStep::Key(first) = r.path.first()? else { return None };
    let positional = |name: &str| {
        let i = names.iter().position(|n| n == name)?;
        Some(vec![PathStep::Index(0), PathStep::Index(i as i64)])
    };
    let mut starts: Vec<(Vec<PathStep>, usize)> = Vec::new();
    starts.extend(positional(first).map(|way| (way, 1)));
    starts.push((vec![PathStep::Index(1), PathStep::Key(first.clone())], 1));
    // The arguments of `*xs` are called `xs_0`, `xs_1`, …
    if let Some(PathStep::Index(k)) = r.path.get(1) {
        starts.extend(positional(&format!("{first}_{k}")).map(|way| (way, 2)));
    }
    let position = starts.into_iter().find_map(|(mut way, used)| {
        way.extend(r.path[used..].iter().cloned());
        paths.iter().position(|p| *p == way)
    })?;
    let ty = &program.graph().values[*users.get(position)?].ty;
    match (ty, r.what) {
        (Type::Scalar(e), Quantity::Value) => Some(e.clone()),
        (Type::Tensor(t), Quantity::Size(d)) => Some(t.layout.sizes[t.layout.dim(d).ok()?].clone()),
        (Type::Tensor(t), Quantity::Rank) => Some(Expr::Int(t.rank() as i64)),
        (Type::Tensor(t), Quantity::Numel) => Some(t.layout.numel()),
        _ => None,
    }
}

fn convert(e: &GuardExpr, input: &dyn Fn(&InputRef) -> Option<Expr>) -> Option<Expr> {
    let go = |e: &GuardExpr| convert(e, input);
    let call = |f: ExprFn, args: Vec<Expr>| Some(Expr::call(f, args));
    match e {
        GuardExpr::Bool(b) => Some(Expr::Bool(*b)),
        GuardExpr::Int(i) => Some(Expr::Int(*i)),
        GuardExpr::Float(x) => Some(Expr::float(*x)),
        GuardExpr::Input(r) => input(r),
        GuardExpr::Neg(a) => call(ExprFn::Mul, vec![Expr::Int(-1), go(a)?]),
        GuardExpr::Not(a) => call(ExprFn::Not, vec![go(a)?]),
        GuardExpr::And(items) => call(ExprFn::And, items.iter().map(go).collect::<Option<_>>()?),
        GuardExpr::Or(items) => call(ExprFn::Or, items.iter().map(go).collect::<Option<_>>()?),
        GuardExpr::Binary(op, a, b) => {
            let (a, b) = (go(a)?, go(b)?);
            let f = match op {
                Binary::Add => ExprFn::Add,
                Binary::Sub => return call(ExprFn::Add, vec![a, Expr::call(ExprFn::Mul, vec![Expr::Int(-1), b])]),
                Binary::Mul => ExprFn::Mul,
                Binary::TrueDiv => ExprFn::TrueDiv,
                Binary::FloorDiv => ExprFn::FloorDiv,
                Binary::Mod => ExprFn::Mod,
                Binary::Pow => ExprFn::Pow,
                Binary::LShift => ExprFn::LShift,
                Binary::RShift => ExprFn::RShift,
                Binary::BitAnd => ExprFn::BitAnd,
                Binary::BitOr => ExprFn::BitOr,
                Binary::BitXor => return None,
            };
            call(f, vec![a, b])
        }
        GuardExpr::Compare(first, rest) => {
            let mut left = go(first)?;
            let mut all = Vec::new();
            for (how, right) in rest {
                let right = go(right)?;
                let f = match how {
                    Compare::Eq => ExprFn::Eq,
                    Compare::Ne => ExprFn::Ne,
                    Compare::Lt => ExprFn::Lt,
                    Compare::Le => ExprFn::Le,
                    Compare::Gt => ExprFn::Gt,
                    Compare::Ge => ExprFn::Ge,
                    #[allow(unreachable_patterns)]
                    _ => return None,
                };
                all.push(Expr::call(f, vec![left, right.clone()]));
                left = right;
            }
            if all.len() == 1 { all.pop() } else { call(ExprFn::And, all) }
        }
        GuardExpr::Call(f, args) => {
            let args = args.iter().map(go).collect::<Option<Vec<_>>>()?;
            let f = match f {
                GuardFn::Min => ExprFn::Min,
                GuardFn::Max => ExprFn::Max,
                GuardFn::Abs => ExprFn::Abs,
                GuardFn::Floor => ExprFn::Floor,
                GuardFn::Ceil => ExprFn::Ceil,
                GuardFn::Trunc | GuardFn::Int => ExprFn::Trunc,
                GuardFn::Round => ExprFn::Round,
                GuardFn::Float => ExprFn::ToFloat,
                GuardFn::Sqrt => ExprFn::Sqrt,
                GuardFn::IsNan => return None,
            };
            call(f, args)
        }
        GuardExpr::IfElse { then, condition, otherwise } => {
            call(ExprFn::Where, vec![go(condition)?, go(then)?, go(otherwise)?])
        }
        GuardExpr::None | GuardExpr::Str(_) => None,
    }
}

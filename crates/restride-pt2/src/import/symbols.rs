//! Symbols and expressions.

use crate::model::{self, ExportedProgram};
use crate::sympy::{SymAst, SymFn, parse_srepr, parse_str};
use restride_ir::{Dim, Error, Expr, ExprFn, Result, Symbol};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Symbols by name.
pub type Symbols = BTreeMap<Arc<str>, Symbol>;

/// Every symbol of the program with its range, and those that have a range and are not mentioned.
pub fn declare(exported: &ExportedProgram) -> Result<(Symbols, Vec<Symbol>)> {
    let mut ranges: BTreeMap<String, (Option<i64>, Option<i64>)> = BTreeMap::new();
    for (key, range) in &exported.range_constraints {
        if let SymAst::Symbol(s) = parse_str(key)? {
            ranges.insert(s.name, (range.min_val, range.max_val));
        }
    }
    let mut found: BTreeMap<String, bool> = BTreeMap::new();
    graph_symbols(&exported.graph_module.graph, &mut found)?;
    let unmentioned: Vec<String> = ranges.keys().filter(|n| !found.contains_key(*n)).cloned().collect();
    for name in ranges.keys() {
        found.entry(name.clone()).or_insert(false);
    }
    let symbols: Symbols = found
        .into_iter()
        .map(|(name, positive)| {
            let (mut min, max) = ranges.get(&name).copied().unwrap_or_default();
            if positive {
                min = Some(min.unwrap_or(1).max(1));
            }
            // A size that is learnt from data is written as at least 2, which the exporter assumes to choose a path through
            // the program; nothing asserts it, and real ones are 0 and 1, too.
            if name.starts_with('u') && !positive && min == Some(2) && max != min {
                min = Some(0);
            }
            let key: Arc<str> = name.as_str().into();
            (key, Symbol::new(name, min, max))
        })
        .collect();
    let spare = unmentioned.iter().map(|n| symbols[n.as_str()].clone()).filter(Symbol::is_unbacked).collect();
    Ok((symbols, spare))
}

fn graph_symbols(graph: &model::Graph, found: &mut BTreeMap<String, bool>) -> Result<()> {
    let mut expr = |text: &str| -> Result<()> {
        collect(&parse_srepr(text)?, found);
        Ok(())
    };
    for meta in graph.tensor_values.values() {
        for s in meta.sizes.iter().chain(&meta.strides).chain([&meta.storage_offset]) {
            if let model::SymInt::AsExpr(e) = s {
                expr(&e.expr_str)?;
            }
        }
    }
    for s in graph.sym_int_values.values() {
        if let model::SymInt::AsExpr(e) = s {
            expr(&e.expr_str)?;
        }
    }
    for s in graph.sym_bool_values.values() {
        if let model::SymBool::AsExpr(e) = s {
            expr(&e.expr_str)?;
        }
    }
    for s in graph.sym_float_values.values() {
        if let model::SymFloat::AsExpr(e) = s {
            expr(&e.expr_str)?;
        }
    }
    for node in &graph.nodes {
        for input in &node.inputs {
            if let model::Argument::AsGraph(g) = &input.arg {
                graph_symbols(&g.graph, found)?;
            }
        }
    }
    Ok(())
}

fn collect(ast: &SymAst, found: &mut BTreeMap<String, bool>) {
    match ast {
        SymAst::Symbol(s) => {
            let positive = s.assumptions.iter().any(|(a, yes)| a == "positive" && *yes);
            *found.entry(s.name.clone()).or_insert(false) |= positive;
        }
        SymAst::Call(_, args) => args.iter().for_each(|a| collect(a, found)),
        _ => {}
    }
}

/// Ranges of expressions that are no lone symbols.
pub fn ranges(exported: &ExportedProgram, symbols: &Symbols) -> Result<Vec<(Expr, Option<i64>, Option<i64>)>> {
    let mut out = Vec::new();
    for (key, range) in &exported.range_constraints {
        let ast = parse_str(key)?;
        if !matches!(ast, SymAst::Symbol(_)) {
            out.push((convert(&ast, symbols)?, range.min_val, range.max_val));
        }
    }
    Ok(out)
}

/// A size, stride or offset.
pub fn int(s: &model::SymInt, symbols: &Symbols) -> Result<Expr> {
    match s {
        model::SymInt::AsInt(i) => Ok(Expr::Int(*i)),
        model::SymInt::AsExpr(e) => text(&e.expr_str, symbols),
    }
}

/// An expression in sympy's `srepr`.
pub fn text(srepr: &str, symbols: &Symbols) -> Result<Expr> {
    convert(&parse_srepr(srepr)?, symbols)
}

fn convert(ast: &SymAst, symbols: &Symbols) -> Result<Expr> {
    let (f, args) = match ast {
        SymAst::Symbol(s) => {
            let known = symbols.get(s.name.as_str()).cloned();
            return Ok(Expr::Sym(known.unwrap_or_else(|| Symbol::new(s.name.clone(), None, None))));
        }
        SymAst::Int(i) => return Ok(Expr::Int(*i)),
        SymAst::Float(x) => return Ok(Expr::float(*x)),
        SymAst::Bool(b) => return Ok(Expr::Bool(*b)),
        SymAst::Call(f, args) => (*f, args),
    };
    if f == SymFn::Piecewise {
        return piecewise(args, symbols);
    }
    let args = args.iter().map(|a| convert(a, symbols)).collect::<Result<Vec<_>>>()?;
    let simple = match f {
        SymFn::Add => ExprFn::Add,
        SymFn::Mul => ExprFn::Mul,
        SymFn::Pow | SymFn::PowByNatural | SymFn::FloatPow => ExprFn::Pow,
        SymFn::Rational | SymFn::IntTrueDiv | SymFn::FloatTrueDiv => ExprFn::TrueDiv,
        SymFn::Min => ExprFn::Min,
        SymFn::Max => ExprFn::Max,
        SymFn::Abs => ExprFn::Abs,
        SymFn::Floor | SymFn::FloorToInt => ExprFn::Floor,
        SymFn::Ceiling | SymFn::CeilToInt => ExprFn::Ceil,
        SymFn::TruncToInt => ExprFn::Trunc,
        SymFn::RoundToInt => ExprFn::Round,
        SymFn::FloorDiv | SymFn::CleanDiv => ExprFn::FloorDiv,
        SymFn::Mod | SymFn::PythonMod => ExprFn::Mod,
        SymFn::ModularIndexing => ExprFn::ModularIndexing,
        SymFn::ToFloat => ExprFn::ToFloat,
        SymFn::Sqrt => ExprFn::Sqrt,
        SymFn::LShift => ExprFn::LShift,
        SymFn::RShift => ExprFn::RShift,
        SymFn::BitwiseAnd => ExprFn::BitAnd,
        SymFn::BitwiseOr => ExprFn::BitOr,
        SymFn::Where => ExprFn::Where,
        SymFn::Ge => ExprFn::Ge,
        SymFn::Le => ExprFn::Le,
        SymFn::Gt => ExprFn::Gt,
        SymFn::Lt => ExprFn::Lt,
        SymFn::Eq => ExprFn::Eq,
        SymFn::Ne => ExprFn::Ne,
        SymFn::And => ExprFn::And,
        SymFn::Or => ExprFn::Or,
        SymFn::Not => ExprFn::Not,
        SymFn::Identity => return Ok(args.into_iter().next().unwrap_or(Expr::Int(0))),
        // ceil(a / b) = -(-a // b)
        SymFn::CeilDiv => {
            let negative = args[0].times(&Expr::Int(-1)).floor_div(&args[1]);
            return Ok(negative.times(&Expr::Int(-1)));
        }
        other => return Err(Error::unsupported(format!("{} in a symbolic expression", other.name()))),
    };
    Ok(Expr::call(simple, args))
}

fn piecewise(pairs: &[SymAst], symbols: &Symbols) -> Result<Expr> {
    let mut out: Option<Expr> = None;
    for pair in pairs.iter().rev() {
        let SymAst::Call(SymFn::ExprCondPair, parts) = pair else {
            return Err(Error::unsupported("a Piecewise that is not made of pairs"));
        };
        let (value, condition) = (convert(&parts[0], symbols)?, convert(&parts[1], symbols)?);
        out = Some(match out {
            None => value,
            Some(otherwise) => Expr::call(ExprFn::Where, vec![condition, value, otherwise]),
        });
    }
    out.ok_or_else(|| Error::unsupported("an empty Piecewise"))
}

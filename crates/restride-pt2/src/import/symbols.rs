//! The symbols of a file, and the expressions over them.

use crate::expressions::{self, ExprNames};
use crate::model::{self, Argument, ExportedProgram, SymNumber};
use restride_ir::{CollectTree, Dim, Expr, Result, Symbol};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Symbols by name.
pub type Symbols = BTreeMap<Arc<str>, Symbol>;

/// ExprNames of the symbols that were parsed, and whether one mention declares them positive.
#[derive(Default)]
struct Mentioned(RefCell<BTreeMap<String, bool>>);

impl ExprNames for Mentioned {
    fn symbol(&self, name: &str, positive: bool) -> Option<Expr> {
        *self.0.borrow_mut().entry(name.to_string()).or_insert(false) |= positive;
        Some(Expr::Sym(Symbol::new(name, None, None)))
    }
}

/// All symbols of the program with their ranges, and the unbacked ones that occur in no type.
pub fn declare(exported: &ExportedProgram) -> Result<(Symbols, Vec<Symbol>)> {
    let mut ranges: BTreeMap<String, (Option<i64>, Option<i64>)> = BTreeMap::new();
    for (key, range) in &exported.range_constraints {
        if let Expr::Sym(s) = expressions::parse(key, &Symbols::new())? {
            ranges.insert(s.name().to_string(), (range.min_val, range.max_val));
        }
    }
    let mentioned = Mentioned::default();
    collect(&exported.graph_module.graph, &mentioned);
    let mut found = mentioned.0.into_inner();
    let unmentioned: Vec<String> = ranges.keys().filter(|n| !found.contains_key(*n)).cloned().collect();
    for name in ranges.keys() {
        found.entry(name.clone()).or_insert(false);
    }
    let offsets = offsets_of_inputs(&exported.graph_module.graph);
    let of = |(name, positive): (&String, &bool), assumed: bool| {
        let (given, max) = ranges.get(name).copied().unwrap_or_default();
        let min = match (given, *positive) {
            // The exporter assumes that such an input lies neither at the beginning of its storage nor one element behind it.
            _ if offsets.contains(name) => Some(0),
            // torch.export writes a size that data decides, or that it is not told more about (`Dim.AUTO`), as at least 2, because it
            // assumes so when it chooses a path through the program. Nothing asserts that: PyTorch runs it with a batch of one.
            (Some(2), _) if max != given && !assumed => Some(i64::from(*positive)),
            // A mention is no promise where the range has 0.
            (Some(0), _) | (_, false) => given,
            (_, true) => Some(given.unwrap_or(1).max(1)),
        };
        let key: Arc<str> = name.as_str().into();
        (key, Symbol::new(name.clone(), min, max))
    };
    let assumed: Symbols = found.iter().map(|s| of(s, true)).collect_map();
    let mut symbols: Symbols = found.iter().map(|s| of(s, false)).collect_map();
    let mut kept = BTreeSet::new();
    keep_signs(&exported.graph_module.graph, &symbols, &assumed, &mut kept);
    kept.iter().for_each(|s| drop(symbols.insert(s.name().into(), s.clone())));
    let spare = unmentioned.iter().map(|n| symbols[n.as_str()].clone()).filter(Symbol::is_unbacked).collect();
    Ok((symbols, spare))
}

/// Names of the symbols that stand for where an input begins in its storage.
fn offsets_of_inputs(graph: &model::FileGraph) -> BTreeSet<String> {
    let names = graph.inputs.iter().flat_map(Argument::tensor_names);
    let types: Vec<_> = names.filter_map(|name| graph.tensor_values.get(name)).collect();
    let (offsets, others) = (Mentioned::default(), Mentioned::default());
    mention(types.iter().map(|t| &t.storage_offset), &offsets);
    mention(types.iter().flat_map(|t| t.sizes.iter().chain(&t.strides)), &others);
    let others = others.0.into_inner();
    offsets.0.into_inner().into_keys().filter(|name| !others.contains_key(name)).collect()
}

/// Parses numbers for their symbols. An expression that cannot be read is refused later, at its node.
fn mention<'a>(numbers: impl Iterator<Item = &'a SymNumber>, mentioned: &Mentioned) {
    for number in numbers {
        if let SymNumber::AsExpr(e) = number {
            let _ = expressions::parse(&e.expr_str, mentioned);
        }
    }
}

/// Parses every expression of a graph for its symbols.
fn collect(graph: &model::FileGraph, mentioned: &Mentioned) {
    let tensors = graph.tensor_values.values();
    let types = tensors.flat_map(|t| t.sizes.iter().chain(&t.strides).chain([&t.storage_offset]));
    let numbers = [&graph.sym_int_values, &graph.sym_bool_values, &graph.sym_float_values];
    mention(types.chain(numbers.into_iter().flat_map(|n| n.values())), mentioned);
    bodies(graph).for_each(|body| collect(body, mentioned));
}

/// The graphs that calls of a graph take.
fn bodies(graph: &model::FileGraph) -> impl Iterator<Item = &model::FileGraph> {
    graph.nodes.iter().flat_map(|n| &n.inputs).filter_map(|input| match &input.arg {
        model::Argument::AsGraph(g) => Some(&*g.graph),
        _ => None,
    })
}

/// Adds symbols to `kept`: those that decide the sign of a number that a call takes, such as a bound of a slice. With the least sizes
/// that the exporter assumes, the sign is known; over their whole ranges it is not. A slice from `1 - n` begins at row 1, but at row 0
/// for `n = 1`.
fn keep_signs(graph: &model::FileGraph, symbols: &Symbols, assumed: &Symbols, kept: &mut BTreeSet<Symbol>) {
    let mut seen = BTreeSet::new();
    // Python's own operators hand their numbers on to calls.
    let calls = graph.nodes.iter().filter(|n| n.target.starts_with("torch.ops."));
    for input in calls.flat_map(|n| &n.inputs) {
        let model::Argument::AsSymInt(model::NumberArgument::AsName(name)) = &input.arg else { continue };
        let Some(SymNumber::AsExpr(e)) = graph.sym_int_values.get(name) else { continue };
        if !e.expr_str.contains('-') || !seen.insert(&e.expr_str) {
            continue;
        }
        let parsed = |symbols| expressions::parse(&e.expr_str, symbols).ok();
        let (Some(ranged), Some(assumed)) = (parsed(symbols), parsed(assumed)) else { continue };
        if ranged.less(&Expr::Int(0)) != assumed.less(&Expr::Int(0)) {
            assumed.symbols(kept);
        }
    }
    bodies(graph).for_each(|body| keep_signs(body, symbols, assumed, kept));
}

/// Ranges of expressions other than lone symbols. What torch.export fixed to one size may leave a range of symbols that nothing reads.
pub fn ranges(exported: &ExportedProgram, symbols: &Symbols) -> Result<Vec<(Expr, Option<i64>, Option<i64>)>> {
    let mut ranges = Vec::new();
    for (key, range) in &exported.range_constraints {
        let e = expressions::parse(key, symbols)?;
        let mut read = BTreeSet::new();
        e.symbols(&mut read);
        if !matches!(e, Expr::Sym(_)) && read.iter().all(|s| symbols.contains_key(s.name())) {
            ranges.push((e, range.min_val, range.max_val));
        }
    }
    Ok(ranges)
}

/// A number of a type.
pub fn number(s: &SymNumber, symbols: &Symbols) -> Result<Expr> {
    Ok(match s {
        SymNumber::AsExpr(e) => expressions::parse(&e.expr_str, symbols)?,
        SymNumber::AsInt(i) => Expr::Int(*i),
        SymNumber::AsFloat(x) => Expr::float(x.0),
        SymNumber::AsBool(b) => Expr::Bool(*b),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_decide_the_sign_of_a_bound_stay_as_assumed() {
        let text = r#"{"graph_module": {"graph": {"inputs": [], "outputs": [], "nodes": [{"target": "torch.ops.aten.slice.Tensor",
             "inputs": [{"name": "start", "arg": {"as_sym_int": {"as_name": "n"}}, "kind": 1}], "outputs": [], "metadata": {}}],
             "tensor_values": {}, "sym_int_values": {"n": {"as_expr": {"expr_str":
             "Add(Integer(1), Mul(Integer(-1), Symbol('s0')))"}}, "m": {"as_expr": {"expr_str": "Symbol('s1')"}}}, "sym_bool_values": {}},
             "signature": {"input_specs": [], "output_specs": []}, "module_call_graph": []},
            "opset_version": {}, "schema_version": {"major": 8, "minor": 2}, "range_constraints": {
             "s0": {"min_val": 2, "max_val": 8}, "s1": {"min_val": 2, "max_val": 8}}}"#;
        let exported: ExportedProgram = model::parse(text.as_bytes()).unwrap();
        let (symbols, _) = declare(&exported).unwrap();
        assert_eq!((Symbol::min(&symbols["s0"]), Symbol::min(&symbols["s1"])), (Some(2), Some(0)));
    }

    #[test]
    fn an_input_may_begin_anywhere_in_its_storage() {
        let sym = |s: &str| format!(r#"{{"as_expr": {{"expr_str": "Symbol('{s}', positive=True, integer=True)"}}}}"#);
        let text = format!(
            r#"{{"graph_module": {{"graph": {{"inputs": [{{"as_tensor": {{"name": "x"}}}}], "outputs": [], "nodes": [],
             "tensor_values": {{"x": {{"dtype": 7, "sizes": [{n}], "requires_grad": false, "device": {{"type": "cpu", "index": null}},
             "strides": [{{"as_int": 1}}], "storage_offset": {at}, "layout": 7}}}}, "sym_int_values": {{}}, "sym_bool_values": {{}}}},
             "signature": {{"input_specs": [], "output_specs": []}}, "module_call_graph": []}},
            "opset_version": {{}}, "schema_version": {{"major": 8, "minor": 2}}, "range_constraints": {{
             "s0": {{"min_val": 2, "max_val": 8}}, "s1": {{"min_val": 2, "max_val": null}}}}}}"#,
            n = sym("s0"),
            at = sym("s1")
        );
        let exported: ExportedProgram = model::parse(text.as_bytes()).unwrap();
        let (symbols, _) = declare(&exported).unwrap();
        assert_eq!((Symbol::min(&symbols["s0"]), Symbol::min(&symbols["s1"])), (Some(1), Some(0)));
    }

    #[test]
    fn ranges_of_symbols_that_nothing_reads_are_left_out() {
        let text = r#"{"graph_module": {"graph": {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {},
             "sym_int_values": {"n": {"as_expr": {"expr_str": "Symbol('s0')"}}}, "sym_bool_values": {}},
             "signature": {"input_specs": [], "output_specs": []}, "module_call_graph": []},
            "opset_version": {}, "schema_version": {"major": 8, "minor": 2}, "range_constraints": {
             "s0": {"min_val": 2, "max_val": 8}, "2*s0": {"min_val": 4, "max_val": 16}, "4*s29": {"min_val": 4, "max_val": 32}}}"#;
        let exported: ExportedProgram = model::parse(text.as_bytes()).unwrap();
        let (symbols, _) = declare(&exported).unwrap();
        // PyTorch runs a size of 1 where the exporter only assumed 2.
        assert_eq!((Symbol::min(&symbols["s0"]), Symbol::max(&symbols["s0"])), (Some(0), Some(8)));
        let read: Vec<_> = ranges(&exported, &symbols).unwrap().into_iter().map(|(e, ..)| e.to_string()).collect();
        assert_eq!(read, ["2*s0"]);
    }
}

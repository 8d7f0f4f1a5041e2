//! Checker of the form of functional programs.

use crate::{Fault, FaultKind};
use restride_ir::{AliasRoot, Arg, Graph, GraphId, InputKind, NodeId, OutputKind, Program, Stage, ValueId};
use std::collections::BTreeSet;

/// Checks the form of a functional program. In every graph, no operator writes an argument or changes a tensor's metadata,
/// and values are defined once and before their uses. The signature lists all inputs and outputs, with at most one new
/// content an input. Outputs that are views are views of inputs or of outputs of kind `Base`.
///
/// [`equivalence`](crate::equivalence()) compares the program's meaning with the imported one's.
///
/// # Errors
/// The faults.
pub fn functional(program: &Program) -> Result<(), Vec<Fault>> {
    let mut checker = FormChecker { program, faults: Vec::new() };
    if program.stage != Stage::Functional {
        checker.fault(None, None, FaultKind::Impure, "the program does not call itself functional");
    }
    for (id, graph) in program.graphs.iter() {
        checker.graph(id, graph);
    }
    checker.signature();
    if checker.faults.is_empty() { Ok(()) } else { Err(checker.faults) }
}

struct FormChecker<'a> {
    program: &'a Program,
    faults: Vec<Fault>,
}

impl FormChecker<'_> {
    fn fault(&mut self, graph: Option<GraphId>, node: Option<NodeId>, kind: FaultKind, what: impl Into<String>) {
        self.faults.push(Fault { node, ..Fault::new(kind, graph, what) });
    }

    fn graph(&mut self, id: GraphId, graph: &Graph) {
        let mut defined: BTreeSet<ValueId> = BTreeSet::new();
        let name = |v: ValueId| graph.values.get(v).map_or_else(|| v.to_string(), |v| format!("%{}", v.name));
        for &v in &graph.inputs {
            if !defined.insert(v) {
                self.fault(Some(id), None, FaultKind::Malformed, format!("{} is an input twice", name(v)));
            }
        }
        for (n, node) in graph.ordered() {
            if node.op.mutates(&node.args) {
                self.fault(Some(id), Some(n), FaultKind::Impure, format!("{} writes memory", node.op));
            } else if node.op.def().metadata {
                self.fault(Some(id), Some(n), FaultKind::Impure, format!("{} changes a tensor's sizes", node.op));
            }
            for v in node.operands() {
                if !defined.contains(&v) {
                    self.fault(
                        Some(id),
                        Some(n),
                        FaultKind::Malformed,
                        format!("{} is used before it is defined", name(v)),
                    );
                }
            }
            for &r in &node.results {
                if !defined.insert(r) {
                    self.fault(Some(id), Some(n), FaultKind::Malformed, format!("{} is defined twice", name(r)));
                }
            }
        }
        for v in graph.output_values() {
            if !defined.contains(&v) {
                self.fault(Some(id), None, FaultKind::Malformed, format!("the output {} is not defined", name(v)));
            }
        }
    }

    fn signature(&mut self) {
        let (program, main) = (self.program, Some(self.program.main));
        let (graph, signature) = (program.graph(), &program.signature);
        if signature.inputs.len() != graph.inputs.len() || signature.outputs.len() != graph.outputs.len() {
            return self.fault(
                main,
                None,
                FaultKind::Malformed,
                "the signature has other inputs or outputs than the graph",
            );
        }
        for (i, (spec, &v)) in signature.inputs.iter().zip(&graph.inputs).enumerate() {
            if spec.value != v {
                self.fault(main, None, FaultKind::Malformed, format!("input {i} is another value in the signature"));
            }
        }
        let mut changed = BTreeSet::new();
        for (i, (spec, arg)) in signature.outputs.iter().zip(&graph.outputs).enumerate() {
            let tensor = |arg: &Arg| matches!(arg, Arg::Value(v) if graph.values[*v].ty.tensor().is_some());
            match spec.kind {
                OutputKind::Mutation(k) => {
                    let of = signature.inputs.get(k);
                    let fixed = |k: &InputKind| matches!(k, InputKind::Fixed { .. } | InputKind::Opaque(_));
                    if of.is_none_or(|s| fixed(&s.kind)) || !tensor(arg) {
                        let what = format!("output {i} is the new content of something that cannot have one");
                        self.fault(main, None, FaultKind::Malformed, what);
                    } else if !changed.insert(k) {
                        self.fault(main, None, FaultKind::Malformed, format!("input {k} has two new contents"));
                    }
                    if let (Some(of), Arg::Value(v)) = (of, arg)
                        && let (Some(a), Some(b)) = (graph.values[of.value].ty.tensor(), graph.values[*v].ty.tensor())
                        && (a.dtype != b.dtype || a.layout.sizes != b.layout.sizes)
                    {
                        let what = format!("the new content of input {k} is {b}, the input is {a}");
                        self.fault(main, None, FaultKind::Malformed, what);
                    }
                }
                OutputKind::Gradient(k) if k >= signature.inputs.len() => {
                    self.fault(main, None, FaultKind::Malformed, format!("output {i} is the gradient of no input"));
                }
                _ => {}
            }
            let root = match spec.alias.as_ref().map(|a| a.root) {
                None => true,
                Some(AliasRoot::Input(k)) => k < signature.inputs.len(),
                Some(AliasRoot::Base(k)) => {
                    signature.outputs.get(k).is_some_and(|s| s.kind == OutputKind::Base) && tensor(&graph.outputs[k])
                }
            };
            if !root {
                self.fault(main, None, FaultKind::Malformed, format!("output {i} is a view of nothing"));
            }
        }
    }
}

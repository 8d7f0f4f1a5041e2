//! Counts of a program's operators.

use restride_ir::Program;

/// Operators of a program, bodies of higher-order operators included.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Nodes.
    pub nodes: usize,
    /// Nodes that write an argument.
    pub mutations: usize,
    /// Nodes whose results are views of an argument.
    pub views: usize,
}

impl Counts {
    pub(crate) fn of(program: &Program) -> Counts {
        let mut out = Counts::default();
        for (_, graph) in program.graphs.iter() {
            for (_, node) in graph.ordered() {
                out.nodes += 1;
                out.mutations += usize::from(node.op.mutates(&node.args) || node.op.def().metadata);
                out.views += usize::from(node.op.is_view() && !node.op.def().metadata);
            }
        }
        out
    }
}

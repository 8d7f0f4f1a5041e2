//! Gradient rules' calls as nodes of a graph.

use crate::symbolic_shapes::result_types_near;
use restride_ir::{
    Arg, Conditions, DType, Expr, GradEmit, Graph, Id, Names, Node, OpError, Origin, TensorType, Type, Val, ValueId,
};
use restride_ops::lookup;
use smallvec::SmallVec;
use std::sync::Arc;

type Result<T> = std::result::Result<T, OpError>;

/// Adds the calls of gradient rules to a graph. Handles are the graph's own values.
pub(super) struct GraphEmit<'a> {
    /// The graph.
    pub graph: &'a mut Graph,
    /// Its names.
    pub names: &'a mut Names,
    /// Where new nodes come from.
    pub origin: Arc<Origin>,
    /// The name that new values derive theirs from.
    pub hint: Arc<str>,
    /// The program's checks of its numbers.
    pub conditions: Option<&'a Conditions>,
    /// Types of the call that is differentiated: symbolic sizes that its gradient may have.
    pub near: Vec<TensorType>,
}

impl<'a> GraphEmit<'a> {
    /// Calls that differentiate no node.
    pub fn plain(graph: &'a mut Graph, names: &'a mut Names, origin: Arc<Origin>, hint: &str) -> GraphEmit<'a> {
        GraphEmit { graph, names, origin, hint: hint.into(), conditions: None, near: Vec::new() }
    }
}

/// Types of a node's operands and results.
pub(super) fn types_of_node(graph: &Graph, node: &Node) -> Vec<TensorType> {
    let values = node.args.iter().flat_map(Arg::values).chain(&node.results);
    values.filter_map(|v| graph.values[*v].ty.tensor().cloned()).filter(|ty| ty.known().is_none()).collect()
}

/// A value as gradient rules hold it.
pub(super) fn val(v: ValueId) -> Val {
    Val(v.index() as u32)
}

/// The value that a handle stands for.
pub(super) fn value(v: Val) -> ValueId {
    ValueId::new(v.0 as usize)
}

impl GradEmit for GraphEmit<'_> {
    fn call(&mut self, name: &str, args: &[Arg<Val, Expr>]) -> Result<SmallVec<[Val; 1]>> {
        let op = lookup(name).ok_or_else(|| OpError::new(format!("there is no operator {name}")))?;
        let mut args: Vec<Arg> = args.iter().map(|a| a.map_values(|v| value(*v))).collect();
        op.fill_defaults_or_none(&mut args);
        let none = Conditions::default();
        let conditions = self.conditions.unwrap_or(&none);
        let types = result_types_near(op, &args, conditions, &self.near, |v| self.graph.tensor(v).clone())?;
        let results: Vec<(Arc<str>, Type)> =
            types.into_iter().map(|ty| (self.names.fresh(&self.hint), Type::Tensor(ty))).collect();
        let id = self.graph.add_node(op, args, results, self.origin.clone());
        Ok(self.graph.nodes[id].results.iter().map(|r| val(*r)).collect())
    }

    fn ty(&self, v: Val) -> TensorType {
        let known = self.graph.values.get(value(v)).and_then(|x| x.ty.tensor());
        known.cloned().unwrap_or_else(|| TensorType::contiguous(DType::F32, &[]))
    }
}

//! Building a new graph beside an old one: unique names, calls by operator name, small conveniences.

use restride_ir::{
    Arg, Conditions, Dim, Graph, GraphId, Names, Node, Op, Origin, Program, Result, Table, TensorType, Type, ValueId,
};
use restride_ops::lookup;
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::sync::Arc;

/// A graph under construction.
pub struct Builder<'a> {
    /// The graph.
    pub graph: &'a mut Graph,
    names: &'a mut Names,
    /// Origin of the nodes that are added.
    pub origin: Arc<Origin>,
    /// Stem of new values' names.
    pub hint: Arc<str>,
}

impl<'a> Builder<'a> {
    /// A builder that adds nodes of this origin to `graph`, named after `hint`.
    pub fn new(graph: &'a mut Graph, names: &'a mut Names, origin: Arc<Origin>, hint: Arc<str>) -> Self {
        Builder { graph, names, origin, hint }
    }

    /// Adds a call with tensor results.
    pub fn node(
        &mut self,
        op: Op,
        args: Vec<Arg>,
        results: impl IntoIterator<Item = (Arc<str>, TensorType)>,
        origin: &Arc<Origin>,
    ) -> SmallVec<[ValueId; 1]> {
        let names = &mut *self.names;
        let results = results.into_iter().map(|(n, ty)| (names.fresh_shared(&n), Type::Tensor(ty)));
        let id = self.graph.add_node(op, args, results, origin.clone());
        self.graph.nodes[id].results.clone()
    }

    /// Adds a call by name, with defaults for the arguments left out and one tensor result.
    ///
    /// # Panics
    /// The operator table lacks the operator: passes only call operators that it must have.
    pub fn call(&mut self, op: &str, mut args: Vec<Arg>, ty: TensorType) -> ValueId {
        let op = lookup(op).unwrap_or_else(|| panic!("the operator table has {op}"));
        op.fill_defaults_or_none(&mut args);
        let (origin, hint) = (self.origin.clone(), self.hint.clone());
        self.node(op, args, [(hint, ty)], &origin)[0]
    }

    /// The value under other sizes, in the same logical order.
    pub fn reshape(&mut self, value: ValueId, ty: TensorType) -> ValueId {
        if self.graph.tensor(value).layout.sizes == ty.layout.sizes {
            return self.declare(value, &ty);
        }
        let sizes = Arg::Scalars(ty.layout.sizes.to_vec());
        self.call("aten.reshape.default", vec![Arg::Value(value), sizes], ty)
    }

    /// `as_strided` to a layout on the value's storage.
    pub fn as_strided(&mut self, value: ValueId, ty: TensorType) -> ValueId {
        let args = vec![
            Arg::Value(value),
            Arg::Scalars(ty.layout.sizes.to_vec()),
            Arg::Scalars(ty.layout.strides.to_vec()),
            Arg::Scalar(ty.layout.offset.clone()),
        ];
        self.call("aten.as_strided.default", args, ty)
    }

    /// The value with the eager layout `ty`: itself if its type has that layout, otherwise a clone that declares it. Its
    /// elements may be stored anywhere; only operators that read strides see the difference.
    pub fn declare(&mut self, value: ValueId, ty: &TensorType) -> ValueId {
        let have = self.graph.tensor(value);
        let same = have.layout.sizes == ty.layout.sizes
            && (have.layout.strides == ty.layout.strides && have.layout.offset.equals(&ty.layout.offset) == Some(true));
        if same {
            return value;
        }
        self.call("aten.clone.default", vec![Arg::Value(value)], ty.clone())
    }
}

/// A graph that is written anew from an old one, node by node.
pub struct Rebuilt<'a> {
    /// Which graph.
    pub id: GraphId,
    /// The old graph.
    pub old: &'a Graph,
    /// The new one.
    pub graph: Graph,
    /// Names of the new graph.
    pub names: Names,
    /// The new value of each old one.
    pub map: Table<ValueId, Option<ValueId>>,
    /// The program and its conditions, where these are needed.
    checked: Option<(&'a Program, &'a OnceCell<Conditions>)>,
}

static NO_CONDITIONS: Conditions = Conditions::none();

impl<'a> Rebuilt<'a> {
    /// A graph with the inputs of the old one.
    pub fn new(id: GraphId, old: &'a Graph) -> Self {
        let graph = Graph { name: old.name.clone(), ..Graph::new() };
        let map = Table::with_capacity(old.values.len());
        let mut new = Rebuilt { id, old, graph, names: Names::default(), map, checked: None };
        new.graph.reserve(old.order.len(), old.values.len());
        new.names.reserve(old.values.len());
        for &v in &old.inputs {
            let value = &old.values[v];
            let given = new.graph.add_input(new.names.fresh_shared(&value.name), value.ty.clone());
            new.map.set(v, Some(given));
        }
        new
    }

    /// Puts the graph in the place of the old one; every output has been mapped.
    pub fn finish(mut self, program: &mut Program) {
        let output = |a: &Arg| a.map_values(|v| self.map[*v].expect("outputs are made by nodes or given"));
        self.graph.outputs = self.old.outputs.iter().map(output).collect();
        if self.id == program.main {
            for spec in &mut program.signature.inputs {
                spec.value = self.map[spec.value].expect("every input was mapped");
            }
        }
        program.graphs[self.id] = self.graph;
    }

    /// The conditions that the old program checks.
    pub fn conditions(&self) -> &'a Conditions {
        self.checked.map_or(&NO_CONDITIONS, |(program, found)| found.get_or_init(|| Conditions::of(program)))
    }

    /// A node's arguments over new values.
    pub fn args(&self, node: &Node) -> Vec<Arg> {
        node.args.iter().map(|a| a.map_values(|v| self.map[*v].expect("operands come first"))).collect()
    }

    /// A builder for the replacement of a node: it has the node's origin, and the name of a value of the old graph.
    pub fn builder(&mut self, node: &Node, named: ValueId) -> Builder<'_> {
        self.builder_of(node.origin.clone(), self.old.values[named].name.clone())
    }

    /// A builder for nodes of this origin.
    pub fn builder_of(&mut self, origin: Arc<Origin>, hint: Arc<str>) -> Builder<'_> {
        Builder { graph: &mut self.graph, names: &mut self.names, origin, hint }
    }

    /// Takes a node over as it is.
    pub fn keep(&mut self, node: &Node, args: Vec<Arg>) {
        let result = |&r: &ValueId| (self.names.fresh_shared(&self.old.values[r].name), self.old.values[r].ty.clone());
        let id = self.graph.add_node(node.op, args, node.results.iter().map(result), node.origin.clone());
        for (&o, &n) in node.results.iter().zip(&self.graph.nodes[id].results) {
            self.map.set(o, Some(n));
        }
    }
}

/// The program with every graph written anew; `step` writes each node's replacement.
///
/// # Errors
/// Those of `step`, with the node.
pub fn rebuild(program: &Program, step: impl Fn(&mut Rebuilt<'_>, &Node) -> Result<()>) -> Result<Program> {
    let mut out = program.copy_without(|_| true);
    let conditions = &OnceCell::new();
    for (id, old) in program.graphs.iter() {
        let mut new = Rebuilt { checked: Some((program, conditions)), ..Rebuilt::new(id, old) };
        for (n, node) in old.ordered() {
            step(&mut new, node).map_err(|e| e.at(old, n))?;
        }
        new.finish(&mut out);
    }
    Ok(out)
}

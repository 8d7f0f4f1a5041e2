//! Whether results have the types that the operators' own rules give.

use crate::{
    Arena, Arg, Args, Error, ErrorKind, Expr, Graph, Id, Meta, Node, Program, Result, Stage, TensorType, TwinReturn,
    Type, ValueId, ViewOutcome,
};
use restride_tensor::{Layout, Scalar};
use smallvec::SmallVec;

/// Checks every node whose operands have known types.
pub(super) fn check(program: &Program, graph: &Graph) -> Result<()> {
    let mut objects = Objects::new(&graph.values);
    for (id, node) in graph.ordered() {
        let current = node.operands().all(|v| !objects.changed(v));
        if current {
            node_types(program, graph, node).map_err(|e| e.at(graph, id))?;
        }
        objects.follow(node);
    }
    Ok(())
}

/// Which values are one tensor object, and which objects changed their sizes or strides after they were made: a value's
/// type is what the object was then.
struct Objects {
    object: Vec<ValueId>,
    changed: Vec<bool>,
}

impl Objects {
    fn new<T>(values: &Arena<ValueId, T>) -> Self {
        Objects { object: values.ids().collect(), changed: vec![false; values.len()] }
    }

    fn changed(&self, v: ValueId) -> bool {
        self.changed[self.object[v.index()].index()]
    }

    fn follow(&mut self, node: &Node) {
        let arg = |i: usize| match node.args.get(i) {
            Some(Arg::Value(v)) => Some(*v),
            _ => None,
        };
        let twin = node.op.twin();
        for (r, &result) in node.results.iter().enumerate() {
            let same = match twin.and_then(|t| t.returns.get(r)) {
                Some(TwinReturn::Arg(i)) => arg(*i as usize),
                _ if node.op.def().metadata => arg(0),
                _ => None,
            };
            if let Some(v) = same {
                self.object[result.index()] = self.object[v.index()];
            }
        }
        let resized = twin.filter(|t| t.resizes).into_iter().flat_map(|t| t.writes.iter().map(|w| w.0 as usize));
        let metadata = node.op.def().metadata.then_some(0);
        for v in resized.chain(metadata).filter_map(arg) {
            self.changed[self.object[v.index()].index()] = true;
        }
    }
}

/// What the operator's rule gives for a call, where its operands' types are known.
fn rule(graph: &Graph, node: &Node) -> Result<Option<SmallVec<[Meta; 1]>>> {
    let def = node.op.def();
    if def.metadata || (def.infer.is_none() && def.view.is_none()) {
        return Ok(None);
    }
    let Some(args) = known_args(graph, node) else { return Ok(None) };
    // What is composed has sizes that its rule cannot tell (an index with a mask).
    if def.composed.is_some_and(|which| which(&Args(&args))) {
        return Ok(None);
    }
    if let Some(rule) = &def.view {
        match rule.of(&args)? {
            ViewOutcome::Views(views) => return Ok(Some(views.into_iter().collect())),
            ViewOutcome::Copy => {}
            ViewOutcome::Unknown => return Ok(None),
        }
    }
    Ok(def.infer.map(|infer| infer(&Args(&args))).transpose()?)
}

/// Gives values the strides that their operators' rules give. An exporter computes types without memory, and its strides
/// are sometimes not those of eager PyTorch, which the rules are held to. Other element types and sizes are left for
/// the verifier to complain of.
pub fn relay(program: &mut Program) {
    for id in program.graphs.ids().collect::<Vec<_>>() {
        let graph = &mut program.graphs[id];
        let mut objects = Objects::new(&graph.values);
        for at in graph.order.clone() {
            let node = &graph.nodes[at];
            let mut laid: Vec<(ValueId, TensorType)> = Vec::new();
            for (r, &result) in node.results.iter().enumerate() {
                let returned = node.op.twin().and_then(|t| t.returns.get(r));
                if let (Some(TwinReturn::Arg(i)), Some(old)) = (returned, graph.values[result].ty.tensor())
                    && let Some(Arg::Value(v)) = node.args.get(*i as usize)
                    && let Some(ty) = graph.values[*v].ty.tensor()
                    && ty.layout.sizes == old.layout.sizes
                {
                    laid.push((result, ty.clone()));
                }
            }
            if node.operands().all(|v| !objects.changed(v))
                && let Ok(Some(wanted)) = rule(graph, node)
            {
                for (&result, want) in node.results.iter().zip(wanted) {
                    let have = graph.values[result].ty.tensor().and_then(TensorType::known);
                    if have
                        .is_some_and(|h| same(&h, &want, Stage::Functional) && h.layout.strides != want.layout.strides)
                    {
                        laid.push((result, TensorType::new(want.dtype, want.layout.map(|n| Expr::Int(*n)))));
                    }
                }
            }
            objects.follow(node);
            for (v, ty) in laid {
                graph.values[v].ty = Type::Tensor(ty);
            }
        }
    }
}

fn node_types(program: &Program, graph: &Graph, node: &Node) -> Result<()> {
    let Some(wanted) = rule(graph, node)? else { return Ok(()) };
    if wanted.len() != node.results.len() {
        return differs(format!("it has {} results, its rule gives {}", node.results.len(), wanted.len()));
    }
    for (&r, want) in node.results.iter().zip(&wanted) {
        let value = &graph.values[r];
        let Type::Tensor(ty) = &value.ty else {
            // An unused result may be marked as nothing.
            if value.ty == Type::None {
                continue;
            }
            return differs(format!("%{} is {}, its rule gives {want}", value.name, value.ty));
        };
        let Some(have) = ty.known() else { continue };
        if !same(&have, want, program.stage) {
            return differs(format!("%{} is {have}, its rule gives {want}", value.name));
        }
    }
    Ok(())
}

fn differs<T>(what: String) -> Result<T> {
    Err(Error::new(ErrorKind::Invalid, what))
}

fn same(have: &Meta, want: &Meta, stage: Stage) -> bool {
    let same = have.dtype == want.dtype && have.layout.sizes == want.layout.sizes;
    let at_0 = |t: &Meta| Layout { offset: 0, ..t.layout.clone() };
    same && (stage == Stage::Functional || at_0(have).same_cells(&at_0(want)))
}

/// The arguments with known types and numbers, if all are.
fn known_args(graph: &Graph, node: &Node) -> Option<Vec<Arg<Meta, Scalar>>> {
    let value = |v: &ValueId| graph.values[*v].ty.tensor().and_then(TensorType::known).ok_or(());
    node.args.iter().map(|arg| arg.try_map(value, |e| e.constant().ok_or(())).ok()).collect()
}

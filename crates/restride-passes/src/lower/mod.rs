//! Lowering: operators without a kernel become their compositions.
//!
//! It works on functional programs with known sizes, as compositions read sizes. Every operator that is left has a kernel,
//! is a view, or only moves data. Single operators are also decomposed on symbolic sizes (`symbolic.rs`).

mod symbolic;

use crate::args::{known, known_or_refused};
use crate::build::{Rebuilt, rebuild};
use restride_ir::{
    Arg, Args, DecomposeFn, Dim, Emit, Error, Expr, Graph, GraphId, Kernel, MathView, Meta, Names, Node, NodeId, Op,
    OpError, Origin, Program, Result, Scalar, Stage, TensorType, Type, Val, ValueId, ViewOutcome,
};
use restride_ops::lookup;
use smallvec::SmallVec;
use std::sync::Arc;

/// Compositions of compositions deeper than this are taken for a mistake in the table.
const MAX_DEPTH: u32 = 32;

/// The program with composed operators taken apart, in every graph.
///
/// # Errors
/// An operator that has neither a kernel nor a composition, or a composition that fails, with the node.
pub fn lower(program: &Program) -> Result<Program> {
    if program.stage != Stage::Functional {
        return Err(Error::invalid("only functional programs are lowered"));
    }
    rebuild(program, |new, node| {
        if needs_lowering(new.old, node)? {
            return lower_node(new, node, &has_kernel);
        }
        let mut args = new.args(node);
        let Some((op, sizes)) = with_own_sizes(new.old, node) else {
            new.keep(node, args);
            return Ok(());
        };
        args.truncate(1);
        args.push(Arg::Scalars(sizes.into_iter().map(Expr::Int).collect()));
        new.keep(&Node { op, results: node.results.clone(), args: Vec::new(), origin: node.origin.clone() }, args);
        Ok(())
    })
}

/// A view that reads other tensors for their sizes alone, as a view by these numbers: it neither waits for those tensors nor keeps them.
fn with_own_sizes(graph: &Graph, node: &Node) -> Option<(Op, Vec<i64>)> {
    let rule = node.op.def().view.filter(|_| node.operands().count() > 1)?;
    let args = known(&node.args, |v| graph.tensor(v).known())?;
    let one = |outcome: ViewOutcome<i64>| match outcome {
        ViewOutcome::Views(views) if views.len() == 1 => views.into_iter().next(),
        _ => None,
    };
    let want = one(rule.of(&args).ok()?)?;
    let sizes = want.sizes().to_vec();
    let by_numbers = [args.first()?.clone(), Arg::Scalars(sizes.iter().map(|n| Scalar::Int(*n)).collect())];
    let same = |op: &Op| {
        let made = op.def().view.and_then(|rule| one(rule.of(&by_numbers).ok()?));
        made.is_some_and(|m| m.dtype == want.dtype && m.layout == want.layout)
    };
    let op = ["aten.expand.default", "aten.view.default"].into_iter().filter_map(lookup).find(same)?;
    Some((op, sizes))
}

/// The program with restride's own operators, which PyTorch does not have, taken apart into PyTorch's. Compositions that return
/// several lists are taken apart as well, as a node does not say where one ends. Histories, which are written as copies with a
/// mark, stay.
///
/// # Errors
/// Such an operator that is composed otherwise for other sizes, where these are not known, with the node.
pub fn expand_own(program: &Program) -> Result<Program> {
    let composed = |op: Op| op.schema().returned_lists() > 1 && op.def().decompose.is_some();
    take_apart(program, |_, _, node| Ok((!node.op.in_torch() || composed(node.op)) && !node.op.def().history))
}

/// Takes the nodes apart that `which` says.
pub(crate) fn take_apart(program: &Program, which: impl Fn(GraphId, &Graph, &Node) -> Result<bool>) -> Result<Program> {
    rebuild(program, |new, node| {
        if which(new.id, new.old, node)? {
            return lower_node(new, node, &has_kernel);
        }
        let args = new.args(node);
        new.keep(node, args);
        Ok(())
    })
}

/// Which operators are decomposed, and how.
pub(crate) struct LowerOptions<'a> {
    /// Operators that stay (those that only move data always do).
    pub whole: &'a dyn Fn(Op) -> bool,
    /// The composition of an operator.
    pub form: fn(Op) -> Option<DecomposeFn>,
    /// Whether calls that are compositions for their sizes are taken apart although their operator stays.
    pub by_size: bool,
    /// Whether sizes are examples of symbolic ones.
    pub any_sizes: bool,
}

impl<'a> LowerOptions<'a> {
    /// The operators' own compositions.
    fn compositions(whole: &'a dyn Fn(Op) -> bool) -> LowerOptions<'a> {
        LowerOptions { whole, form: |op| op.def().decompose.or(op.def().copies_by), by_size: true, any_sizes: false }
    }
}

/// An operator with a kernel.
fn has_kernel(op: Op) -> bool {
    !matches!(op.def().kernel, Kernel::None)
}

/// Takes a node apart, down to operators that stay `whole` (those that only move data always do).
pub(crate) fn lower_node(new: &mut Rebuilt<'_>, node: &Node, whole: &dyn Fn(Op) -> bool) -> Result<()> {
    lower_by(new, node, &LowerOptions::compositions(whole))
}

/// Takes a node apart by rules.
pub(crate) fn lower_by(new: &mut Rebuilt<'_>, node: &Node, rules: &LowerOptions<'_>) -> Result<()> {
    let new_args = new.args(node);
    if let (true, Some(Arg::Value(value))) = (node.op.def().history, new_args.first()) {
        new.map.set(node.results[0], Some(*value));
        return Ok(());
    }
    let sized = new_args.iter().flat_map(Arg::values).all(|v| new.graph.tensor(*v).known().is_some());
    if !sized || new_args.iter().flat_map(Arg::scalars).any(|e| e.constant().is_none()) {
        return symbolic::lower_node(new, node, new_args, rules);
    }
    let old = new.old;
    let Rebuilt { graph, names, .. } = new;
    let (before, ordered) = (graph.values.len(), graph.order.len());
    let hint = node.results.first().map_or("v".into(), |r| old.values[*r].name.clone());
    let made = match compose(graph, names, &node.origin, hint, node.op, &new_args, rules) {
        Ok(made) => made,
        // A mask's sizes are only known at the run: the executor composes such a call then.
        Err(_) if node.op.def().composed.is_some() => {
            new.graph.order.truncate(ordered);
            new.keep(node, new_args);
            return Ok(());
        }
        Err(e) => return Err(e.into()),
    };
    replace(new, node, &made, before)
}

/// Adds the composition of a call of known sizes to a graph; returns its results.
fn compose(
    graph: &mut Graph,
    names: &mut Names,
    origin: &Arc<Origin>,
    hint: Arc<str>,
    op: Op,
    args: &[Arg],
    rules: &LowerOptions<'_>,
) -> Result<Vec<ValueId>, OpError> {
    let mut emit = LoweringEmit { graph, names, origin, hint, values: Vec::new(), depth: 0, rules };
    let args = emit.import(args)?;
    let made = emit.expand(op, &args)?;
    Ok(made.iter().map(|v| emit.values[v.0 as usize]).collect())
}

/// Maps a node's results to these values; those from `before` on were made for it.
fn replace(new: &mut Rebuilt<'_>, node: &Node, made: &[ValueId], before: usize) -> Result<()> {
    let Rebuilt { old, graph, names, map, .. } = new;
    if made.len() != node.results.len() {
        return Err(Error::invalid(format!(
            "{} is composed of {} results, not {}",
            node.op,
            made.len(),
            node.results.len()
        )));
    }
    for (&o, &n) in node.results.iter().zip(made) {
        let (want, have) = (old.tensor(o), graph.tensor(n));
        let differ = |(a, b): (&Expr, &Expr)| a.equals(b) == Some(false);
        let mut sizes = want.layout.sizes.iter().zip(&have.layout.sizes);
        if want.dtype != have.dtype || want.layout.rank() != have.layout.rank() || sizes.any(differ) {
            return Err(Error::invalid(format!("{} gives {have}, but the program declares {want}", node.op)));
        }
        // The declared eager layout is the one that counts, for values that this composition made.
        if restride_ir::Id::index(n) >= before {
            graph.values[n].ty = Type::Tensor(want.clone());
            graph.values[n].name = names.fresh(&old.values[o].name);
        }
        map.set(o, Some(n));
    }
    Ok(())
}

/// Whether the node must be taken apart.
fn needs_lowering(graph: &Graph, node: &Node) -> Result<bool> {
    let def = node.op.def();
    if def.history {
        return Ok(true);
    }
    let meta = |v| graph.tensor(v).known().ok_or_else(|| Error::unsupported("a size that is not known before the run"));
    if let (Some(which), Some(_)) = (def.composed, def.decompose)
        && which(&Args(&known_or_refused(node, meta)?))
    {
        return Ok(true);
    }
    if let (Some(rule), Some(_)) = (def.view, def.copies_by) {
        return Ok(matches!(rule.of(&known_or_refused(node, meta)?)?, ViewOutcome::Copy));
    }
    if def.hop.is_some() || !matches!(def.kernel, Kernel::None) || def.movement.is_some() {
        return Ok(false);
    }
    if node.op.member().is_some() {
        return Ok(true);
    }
    if let Some(rule) = def.view.filter(|_| def.math.is_none())
        && matches!(rule.of(&known_or_refused(node, meta)?)?, ViewOutcome::Views(_))
    {
        return Ok(false);
    }
    if def.decompose.is_some() {
        return Ok(true);
    }
    Err(Error::unsupported(format!("{} has no kernel", node.op))
        .help("`restride ops` lists the operators that can be run"))
}

/// Composes into a graph.
struct LoweringEmit<'a> {
    graph: &'a mut Graph,
    names: &'a mut Names,
    origin: &'a Arc<Origin>,
    hint: Arc<str>,
    /// The value of each handle.
    values: Vec<ValueId>,
    depth: u32,
    rules: &'a LowerOptions<'a>,
}

impl LoweringEmit<'_> {
    fn handle(&mut self, v: ValueId) -> Val {
        self.values.push(v);
        Val(self.values.len() as u32 - 1)
    }

    fn import(&mut self, args: &[Arg]) -> Result<Vec<Arg<Val, Scalar>>, OpError> {
        let known = |e: &Expr| e.constant().ok_or_else(|| OpError::unsupported(format!("the number {e} is not known")));
        args.iter().map(|a| a.try_map(|v| Ok(self.handle(*v)), known)).collect()
    }

    fn expand(&mut self, op: Op, args: &[Arg<Val, Scalar>]) -> Result<SmallVec<[Val; 1]>, OpError> {
        if op.member().is_some() {
            return self.members(op, args);
        }
        let rule = (self.rules.form)(op).ok_or_else(|| OpError::new(format!("{op} has no kernel")))?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(OpError::new(format!("{op} is composed of itself")));
        }
        let made = rule(self, &Args(args));
        self.depth -= 1;
        made
    }

    /// `_foreach_*`: the member operator on each member.
    fn members(&mut self, op: Op, args: &[Arg<Val, Scalar>]) -> Result<SmallVec<[Val; 1]>, OpError> {
        let member = op.member().expect("a foreach operator has a member");
        let count =
            args.iter().filter_map(|a| if let Arg::Values(v) = a { Some(v.len()) } else { None }).max().unwrap_or(0);
        let mut out = SmallVec::new();
        for i in 0..count {
            // Elements of a tensor of numbers are selected first; then the member call takes them.
            let mut picked: Vec<(Val, Val)> = Vec::new();
            let mut wanted: Vec<Val> = Vec::new();
            op.member_args(args, i, |v, _| {
                wanted.push(*v);
                Ok(*v)
            })?;
            for v in wanted {
                let index = [Arg::Value(v), Arg::Scalar(0.into()), Arg::Scalar((i as i64).into())];
                picked.push((v, self.call("aten.select.int", &index)?[0]));
            }
            let item = |v: &Val, _: usize| Ok(picked.iter().find(|p| p.0 == *v).map_or(*v, |p| p.1));
            let one = op.member_args(args, i, item)?;
            out.extend(self.call(member.name(), &one)?);
        }
        Ok(out)
    }

    fn over_values(&self, args: &[Arg<Val, Scalar>]) -> Vec<Arg> {
        let one = |a: &Arg<Val, Scalar>| {
            let mapped: std::result::Result<_, std::convert::Infallible> =
                a.try_map(|v| Ok(self.values[v.0 as usize]), |s| Ok(Expr::from(*s)));
            match mapped {
                Ok(a) => a,
            }
        };
        args.iter().map(one).collect()
    }

    /// Adds a node.
    fn add(&mut self, op: Op, args: Vec<Arg>, types: Vec<TensorType>) -> SmallVec<[Val; 1]> {
        let results: Vec<(Arc<str>, Type)> =
            types.into_iter().map(|ty| (self.names.fresh(&self.hint), Type::Tensor(ty))).collect();
        let id: NodeId = self.graph.add_node(op, args, results, self.origin.clone());
        let made = self.graph.nodes[id].results.clone();
        made.into_iter().map(|v| self.handle(v)).collect()
    }

    fn metas(&self, args: &[Arg<Val, Scalar>]) -> Vec<Arg<Meta, Scalar>> {
        args.iter().map(|a| a.map_values(|v| self.meta(*v))).collect()
    }
}

impl Emit for LoweringEmit<'_> {
    fn any_sizes(&self) -> bool {
        self.rules.any_sizes
    }

    fn call(&mut self, name: &str, args: &[Arg<Val, Scalar>]) -> Result<SmallVec<[Val; 1]>, OpError> {
        let op = lookup(name).ok_or_else(|| OpError::new(format!("there is no operator {name}")))?;
        let mut args = args.to_vec();
        op.fill_defaults_or_none(&mut args);
        let def = op.def();
        // Nothing is lazy in a functional program. A conjugate may be transposed as well (`mH`).
        if let (Some(map), Some(Arg::Value(v))) = (def.math, args.first()) {
            return match map {
                MathView::Conj => {
                    let own = self.meta(*v);
                    let shown = match def.view.map(|rule| rule.of(&self.metas(&args))).transpose()? {
                        Some(ViewOutcome::Views(views)) => views[0].layout.clone(),
                        _ => own.layout.clone(),
                    };
                    let mut turned = Arg::Value(*v);
                    if shown.sizes != own.layout.sizes || shown.strides != own.layout.strides {
                        let dims = [-2, -1].map(|d| Arg::Scalar(Scalar::Int(d)));
                        let [first, second] = dims;
                        turned = Arg::Value(self.call("aten.transpose.int", &[turned, first, second])?[0]);
                    }
                    self.call("aten.conj_physical.default", &[turned])
                }
                MathView::Neg => self.call("aten.neg.default", &args[..1]),
                MathView::ResolveConj | MathView::ResolveNeg => Ok(SmallVec::from_elem(*v, 1)),
            };
        }
        let metas = self.metas(&args);
        let mut types: Option<Vec<Meta>> = None;
        if let Some(rule) = def.view
            && let ViewOutcome::Views(v) = rule.of(&metas)?
        {
            types = Some(v.to_vec());
        }
        let composed = self.rules.by_size && def.composed.is_some_and(|which| which(&Args(&metas)));
        if types.is_none() && (composed || def.copies_by.is_some() || !(self.rules.whole)(op) && def.movement.is_none())
        {
            return self.expand(op, &args);
        }
        let types = match types {
            Some(types) => types,
            None => {
                let infer = def.infer.ok_or_else(|| OpError::new(format!("{op} has no shape rule")))?;
                infer(&Args(&metas))?.to_vec()
            }
        };
        let args = self.over_values(&args);
        Ok(self.add(op, args, types.into_iter().map(TensorType::from).collect()))
    }

    fn meta(&self, v: Val) -> Meta {
        self.graph.tensor(self.values[v.0 as usize]).known().expect("sizes are known where operators are composed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(source: &str) -> Result<String> {
        let program = restride_ir::text::parse(source, &lookup).expect("a program");
        expand_own(&program).map(|p| restride_ir::text::print(&p))
    }

    #[test]
    fn own_operators_are_composed_on_symbolic_sizes() {
        let text = expanded(
            "stage: functional
            symbol s0 in [2, inf]
            graph(%x: f32[s0, 5], %t: f32[]) {
              %d: f32[s0, 5] = restride.fill_diagonal.default(%x, 2)
              %e: f32[s0, 5] = restride.addcmul.Tensor_value(%d, %x, %x, %t)
              return %e
            }",
        )
        .unwrap();
        assert!(!text.contains("restride."), "{text}");
        assert!(text.contains("aten.full.default([Min(5, s0)], 2, dtype=f32)"), "{text}");
    }

    #[test]
    fn what_is_composed_otherwise_for_other_sizes_is_refused() {
        let error = expanded(
            "stage: functional
            symbol s0 in [2, inf]
            graph(%x: f32[s0, 5]) {
              %d: f32[s0, 5] = restride.fill_diagonal.default(%x, 2, True)
              return %d
            }",
        )
        .unwrap_err();
        assert!(error.to_string().contains("its composition depends on sizes that are not known"), "{error}");
    }
}

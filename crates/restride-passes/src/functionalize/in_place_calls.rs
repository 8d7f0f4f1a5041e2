//! In-place operators that PyTorch composes of calls on views of their target, where the functional form writes other cells.

use super::rewrite::{Halt, Rewrite, Rewriter, needs_sizes};
use super::shared_region::SharedRegion;
use restride_ir::{
    Arg, Args, Emit, Error, Expr, InPlaceCalls, Meta, Node, OpError, Scalar, TensorType, Val, ValueId, ViewOutcome,
};
use restride_ops::lookup;
use restride_tensor::{DType, self_overlaps};
use smallvec::SmallVec;

impl Rewriter<'_> {
    /// Whether the functional form writes the same elements as PyTorch's calls.
    pub(super) fn as_twin(&self, node: &Node, composed: &InPlaceCalls) -> Rewrite<bool> {
        let Some(Arg::Value(target)) = node.args.first() else { return Ok(true) };
        let same = (composed.as_twin)(&Args(&self.view_args(node)?))?;
        let own = &self.storages[self.alias(*target)?];
        let main = self.program.graphs.get(self.program.main).is_some_and(|main| std::ptr::eq(main, self.old));
        if !main && !own.eager_bits().is_clear() {
            // In a body PyTorch's calls find a lazily mapped target already copied: all of the copy is written back.
            return Ok(true);
        }
        match own.ty.known() {
            Some(known) => Ok(same && own.eager_bits().is_clear() && self_overlaps(&known.layout) == Some(false)),
            None if same && own.eager_bits().is_clear() => Ok(true),
            None => Err(needs_sizes(&format!("which cells {} writes", node.op))),
        }
    }

    /// A call as PyTorch's calls on views of its target.
    pub(super) fn in_place_calls(&mut self, node: &Node, composed: &InPlaceCalls) -> Rewrite<()> {
        let mut calls = CallsOnViews { scope: self, node, values: Vec::new(), halt: None };
        let args = node.args.iter().map(|a| {
            let number = |e: &Expr| e.constant().ok_or_else(|| needs_sizes(&format!("what {} writes", node.op)));
            a.try_map(|v| Ok(calls.keep(*v)), number)
        });
        let args = args.collect::<Rewrite<Vec<Arg<Val, Scalar>>>>()?;
        if let Err(e) = (composed.calls)(&mut calls, &Args(&args)) {
            return Err(calls.halt.unwrap_or_else(|| e.into()));
        }
        if let (Some(&result), Some(Arg::Value(target))) = (node.results.first(), node.args.first()) {
            let bound = self.map[*target];
            self.map.set(result, bound);
        }
        Ok(())
    }
}

/// The calls of a composition, rewritten one by one. A call that writes gives nothing back.
struct CallsOnViews<'r, 'a> {
    scope: &'r mut Rewriter<'a>,
    node: &'r Node,
    values: Vec<ValueId>,
    /// Why a call was not rewritten; the composition passes on only its text.
    halt: Option<Halt>,
}

impl CallsOnViews<'_, '_> {
    fn keep(&mut self, v: ValueId) -> Val {
        self.values.push(v);
        Val(self.values.len() as u32 - 1)
    }

    fn rewrite(&mut self, name: &str, args: &[Arg<Val, Scalar>]) -> Rewrite<SmallVec<[Val; 1]>> {
        let op = lookup(name).ok_or_else(|| Error::invalid(format!("unknown operator {name}")))?;
        let value = |v: &Val| Ok::<_, Halt>(self.values[v.0 as usize]);
        let args = args.iter().map(|a| a.try_map(value, |s| Ok(Expr::from(*s))));
        let mut args = args.collect::<Rewrite<Vec<Arg>>>()?;
        op.fill_defaults_or_none(&mut args);
        let call = Node { op, args, results: Default::default(), origin: self.node.origin.clone() };
        if !op.is_view() {
            self.scope.node(&call)?;
            return Ok(SmallVec::new());
        }
        let (Some(Arg::Value(base)), ViewOutcome::Views(types)) = (call.args.first(), self.scope.outcome(&call)?)
        else {
            return Err(Error::invalid(format!("{op} does not view its argument")).into());
        };
        let parent = self.scope.alias(*base)?;
        let types: Vec<SharedRegion> = types.into_iter().map(SharedRegion::from).collect();
        self.scope.check_reach(op, parent, &types)?;
        let storage = self.scope.storages[parent].storage;
        let made = types.into_iter().map(|ty| {
            let alias = self.scope.storages.region_like(parent, storage, ty);
            let object = self.scope.object(alias);
            let v = self.scope.bind_unnamed(object);
            self.keep(v)
        });
        Ok(made.collect())
    }
}

impl Emit for CallsOnViews<'_, '_> {
    fn call(&mut self, op: &str, args: &[Arg<Val, Scalar>]) -> Result<SmallVec<[Val; 1]>, OpError> {
        self.rewrite(op, args).map_err(|halt| {
            let words = match &halt {
                Halt::Error(e) => e.what.clone(),
                Halt::NeedsSizes(e) => e.what.clone(),
                Halt::NeedsStorage(_) | Halt::NeedsRoom(..) => format!("{op} needs more of its storage"),
            };
            self.halt.get_or_insert(halt);
            OpError::new(words)
        })
    }

    fn meta(&self, v: Val) -> Meta {
        let alias = self.values.get(v.0 as usize).and_then(|v| self.scope.alias(*v).ok());
        let known = alias.and_then(|a| self.scope.storages[a].ty.known());
        known.cloned().unwrap_or_else(|| TensorType::contiguous(DType::Bool, &[]))
    }
}

//! Loops whose bodies write the tensor that they iterate over. The slices of a scan or a map are views of the scanned
//! tensor: a body that writes one, or returns one as a carried value, changes memory that the next iteration reads. With a
//! known number of iterations the loop becomes its iterations in sequence, over the storages outside.

use super::rewrite::{NewValue, Rewrite, Rewriter};
use crate::input_effects::{placed_inputs, returned_inputs};
use restride_ir::{
    Arg, Dim, Error, Exactness, Expr, Graph, GraphId, Hop, HopCall, Layout, Node, Program, TensorType, Type, ValueId,
};

/// More nodes than this are not written out.
const MAX_NODES: usize = 20_000;

impl Rewriter<'_> {
    /// Rewrites a scan with `carries` carried values, or a map with none, by its iterations where a loop would not do;
    /// false, and nothing is done, where it does or the iterations cannot be written out.
    pub(super) fn unrolled(
        &mut self,
        node: &Node,
        body: GraphId,
        carries: usize,
        xs: &Arg,
        additional: &Arg,
        written: &[bool],
    ) -> Rewrite<bool> {
        let init: Vec<ValueId> = match (carries, node.args.get(1)) {
            (0, _) => Vec::new(),
            (_, Some(init)) => init.values().copied().collect(),
            _ => return Ok(false),
        };
        let xs: Vec<ValueId> = xs.values().copied().collect();
        let rest: Vec<ValueId> = additional.values().copied().collect();
        let own = carries + xs.len();
        let all: Vec<ValueId> = init.iter().chain(&xs).chain(&rest).copied().collect();
        if all.len() != written.len() || init.len() != carries {
            return Ok(false);
        }
        let tensor = |v: &&ValueId| matches!(self.map[**v], Some(NewValue::Object(_)));
        if !all.iter().all(|v| tensor(&v)) {
            return Ok(false);
        }
        let on = all.iter().map(|v| Ok(self.storages[self.alias(*v)?].storage)).collect::<Rewrite<Vec<_>>>()?;
        let direct = written[..own].contains(&true);
        let through = (own..all.len()).any(|i| written[i] && on[..own].contains(&on[i]));
        let returned = returned_inputs(self.program, body);
        let kept = returned.iter().take(carries).any(|roots| !roots.is_empty());
        // A map stacks its results at the end, when later iterations have written the memory that they are views of.
        let late = node.op.def().hop == Some(Hop::Map)
            && written.contains(&true)
            && returned.iter().any(|roots| !roots.is_empty());
        let placed = placed_inputs(self.program, body).iter().take(own).any(|p| *p);
        let typed = self.typed_elsewhere(node, body, (carries, xs.len()), &all, &[])?.is_some();
        if !direct && !through && !kept && !late && !placed && !typed {
            return Ok(false);
        }
        let Some(trips) = self.trips(&xs)? else { return Ok(false) };
        match plain_nodes(self.program, body, 0) {
            Some(nodes) if nodes.saturating_mul(trips as usize) <= MAX_NODES => {}
            _ => return Ok(false),
        }
        self.unroll(node, body, &init, &xs, &rest, trips)?;
        Ok(true)
    }

    /// How often the body runs, if it does and that is known.
    pub(super) fn trips(&self, xs: &[ValueId]) -> Rewrite<Option<i64>> {
        let mut trips = None;
        for v in xs {
            let alias = self.alias(*v)?;
            let first = self.storages[alias].ty.layout.sizes.first().and_then(Dim::known);
            match (first, trips) {
                (Some(n), None) if n > 0 => trips = Some(n),
                (Some(n), Some(m)) if n == m => {}
                _ => return Ok(None),
            }
        }
        Ok(trips)
    }

    fn unroll(
        &mut self,
        node: &Node,
        body: GraphId,
        init: &[ValueId],
        xs: &[ValueId],
        rest: &[ValueId],
        trips: i64,
    ) -> Rewrite<()> {
        let bound = |scope: &Self, v: &ValueId| scope.map[*v].expect("the caller saw that it is bound");
        let mut carry: Vec<NewValue> = init.iter().map(|v| bound(self, v)).collect();
        let rest: Vec<NewValue> = rest.iter().map(|v| bound(self, v)).collect();
        // The results of each iteration of a scan are stacked at once, as later iterations may write their memory. A map
        // reads all results at the end.
        let late = node.op.def().hop == Some(Hop::Map);
        let mut given: Vec<Vec<NewValue>> = vec![Vec::new(); node.results.len().saturating_sub(init.len())];
        for i in 0..trips {
            let mut operands = carry.clone();
            for x in xs {
                // A scan's first slice is a copy; a map has views only.
                let copied = i == 0 && node.op.def().hop == Some(Hop::Scan);
                operands.push(self.slice(node, *x, i, copied)?);
            }
            operands.extend(rest.iter().copied());
            let mut out = self.inline(body, operands)?;
            if out.len() != init.len() + given.len() {
                return Err(Error::invalid(format!("a body of {} gives {} values", node.op, out.len())).into());
            }
            let ys = out.split_off(init.len());
            carry = out;
            for (all, y) in given.iter_mut().zip(ys) {
                all.push(if late { y } else { NewValue::Plain(self.read_bound(node, y)?) });
            }
        }
        for (&result, bound) in node.results.iter().zip(&carry) {
            self.bind(result, *bound);
        }
        for (&result, all) in node.results[init.len()..].iter().zip(given) {
            let Type::Tensor(ty) = self.old.values[result].ty.clone() else {
                return Err(Error::unsupported(format!("{} that returns a value that is no tensor", node.op)).into());
            };
            let list = all.into_iter().map(|y| Ok(Some(self.read_bound(node, y)?))).collect::<Rewrite<_>>()?;
            let list = Arg::Values(list);
            let args = vec![list, Arg::Scalar(Expr::Int(0))];
            let stacked = self.build(node, |b, _| {
                let dense = TensorType::new(ty.dtype, Layout::contiguous(&ty.layout.sizes));
                let value = b.call("aten.stack.default", args, dense);
                b.declare(value, &ty)
            });
            self.bind_fresh(result, stacked);
        }
        Ok(())
    }

    fn read_bound(&mut self, node: &Node, bound: NewValue) -> Rewrite<ValueId> {
        match bound {
            NewValue::Object(o) => self.read_object(node, o),
            NewValue::Plain(v) => Ok(v),
        }
    }

    /// `x[i]`: a view, or a copy of its current elements.
    fn slice(&mut self, node: &Node, x: ValueId, i: i64, copied: bool) -> Rewrite<NewValue> {
        let whole = self.alias(x)?;
        let of = &self.storages[whole];
        let layout = of.ty.layout.select(0, &Expr::Int(i)).map_err(restride_ir::OpError::from)?;
        let ty = TensorType::new(of.ty.dtype, layout);
        let alias = self.storages.region_like(whole, of.storage, ty.clone());
        if !copied {
            return Ok(self.object(alias));
        }
        let dense = TensorType::new(ty.dtype, Layout::contiguous(&ty.layout.sizes));
        let value = self.build(node, |b, s| s.read(b, alias).map(|v| b.declare(v, &dense)))?;
        let copy = self.storages.add(value, dense, None);
        Ok(self.object(copy))
    }

    /// Rewrites a graph in place, on these operands; returns the counterparts of its outputs.
    fn inline(&mut self, graph: GraphId, operands: Vec<NewValue>) -> Rewrite<Vec<NewValue>> {
        let program = self.program;
        let inner = &program.graphs[graph];
        if inner.inputs.len() != operands.len() {
            return Err(Error::invalid("a body has another number of inputs than its call has operands").into());
        }
        let outer = std::mem::replace(&mut self.old, inner);
        let map = std::mem::take(&mut self.map);
        for (&v, bound) in inner.inputs.iter().zip(operands) {
            self.bind(v, bound);
        }
        let done = self.nodes().and_then(|()| {
            let of = |a: &Arg| match a {
                Arg::Value(v) => self.map[*v].ok_or_else(|| Error::invalid("a body returns a value before it is made")),
                _ => Err(Error::unsupported("a loop whose body returns a value that is no tensor")),
            };
            Ok(inner.outputs.iter().map(of).collect::<Result<Vec<_>, Error>>()?)
        });
        self.old = outer;
        self.map = map;
        done
    }
}

/// The number of nodes in a body and the bodies below it. `None` if it draws random numbers, whose keys tell iterations
/// apart, or learns numbers from data, which are symbols of the body.
fn plain_nodes(program: &Program, graph: GraphId, depth: usize) -> Option<usize> {
    let g: &Graph = &program.graphs[graph];
    let mut count = 0usize;
    for (_, n) in g.ordered() {
        let random = n.op.def().exactness == Exactness::Random
            || n.op.twin().is_some_and(|t| t.op.def().exactness == Exactness::Random);
        if random || depth > 32 || n.results.iter().any(|r| !matches!(g.values[*r].ty, Type::Tensor(_))) {
            return None;
        }
        count += 1;
        if let Ok(Some(call)) = HopCall::of(g, n) {
            for &body in &call.bodies {
                count += plain_nodes(program, body, depth + 1)?;
            }
        }
    }
    Some(count)
}

//! Tiles: which part of a call's results follows from which parts of its operands, and what that means for a graph of calls over
//! one iteration space (the body of a fused node).
//!
//! A call has *loops*, and each dimension of an operand or a result goes along one of them or is used as a whole. A loop may be
//! *cut* where a range of its indices is computed by itself, from the same range of the operands, with the same bits.

use crate::{
    Arg, Args, Graph, GraphId, Kernel, Layout, Meta, Node, Op, OpError, Program, Scalar, ValueId, ViewOutcome,
    known_meta,
};
use smallvec::{SmallVec, smallvec};

/// For each dimension of a tensor, the loop (or the dimension of the iteration space) that it goes along; `None` for a dimension
/// that is used as a whole.
pub type Follows = SmallVec<[Option<u8>; 8]>;

/// How a call may be cut into tiles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TileRule {
    /// For each loop, whether it may be cut.
    pub cut: SmallVec<[bool; 8]>,
    /// For each result, the loops of its dimensions.
    pub results: SmallVec<[Follows; 1]>,
    /// For each tensor operand, in the order of [`Node::operands`].
    pub operands: SmallVec<[Follows; 3]>,
}

/// The tile rule of a call of an operator, from the types of arguments and results; `None` for a call that has none.
pub type TileFn = fn(&Args<'_, Meta>, &[Meta]) -> Option<TileRule>;

impl TileRule {
    /// The rule of a call that computes element by element with broadcasting.
    pub fn pointwise<'a>(operands: impl Iterator<Item = &'a Meta>, result: &Meta) -> TileRule {
        let sizes = &result.layout.sizes;
        let follows = |o: &Meta| -> Follows {
            let own = &o.layout.sizes;
            let before = sizes.len() - own.len().min(sizes.len());
            let aligned = own.iter().zip(&sizes[before..]).enumerate();
            aligned.map(|(d, (own, all))| (own == all).then_some((before + d) as u8)).collect()
        };
        TileRule {
            cut: sizes.iter().map(|_| true).collect(),
            results: smallvec![(0..sizes.len()).map(|d| Some(d as u8)).collect()],
            operands: operands.map(follows).collect(),
        }
    }

    /// The rule of a node; `None` if its results cannot be computed in tiles.
    pub fn of(graph: &Graph, node: &Node) -> Option<TileRule> {
        let def = node.op.def();
        if !(def.pointwise || def.tiles.is_some() || def.view.is_some()) {
            return None;
        }
        let number = |e: &crate::Expr| e.constant().ok_or(());
        let known = |v: &ValueId| known_meta(graph, *v).map_err(drop);
        let results: SmallVec<[Meta; 1]> = node.results.iter().map(known).collect::<Result<_, ()>>().ok()?;
        if def.tiles.is_none() && def.view.is_none() && def.composed.is_none() {
            // Types of operands decide, not numbers.
            let numbers = node.args.iter().flat_map(Arg::scalars).all(|e| e.constant().is_some());
            let operands: SmallVec<[Meta; 3]> =
                node.operands().map(|v| known(&v)).collect::<Result<_, ()>>().ok().filter(|_| numbers)?;
            if !is_tiled(node.op, operands.iter().chain(&results)) || !has_plain_kernel(node.op) {
                return None;
            }
            return TileRule::elementwise(node.op, operands.iter(), &results);
        }
        let args: Vec<Arg<Meta, Scalar>> = Arg::try_map_all(&node.args, known, number).ok()?;
        TileRule::of_call(node.op, &args, &results)
    }

    /// The rule of a call that may compute element by element.
    fn elementwise<'a>(op: Op, operands: impl Iterator<Item = &'a Meta> + Clone, results: &[Meta]) -> Option<TileRule> {
        let [result] = results else { return None };
        let fits = op.def().pointwise && operands.clone().all(|o| o.rank() <= result.rank());
        fits.then(|| TileRule::pointwise(operands, result))
    }

    /// The rule of a call of an operator with arguments and results of these types.
    pub fn of_call(op: Op, args: &[Arg<Meta, Scalar>], results: &[Meta]) -> Option<TileRule> {
        let def = op.def();
        let operands = || args.iter().flat_map(Arg::values);
        if !is_tiled(op, operands().chain(results)) {
            return None;
        }
        if def.view.is_some() {
            return TileRule::view(op, args, results);
        }
        if !has_plain_kernel(op) {
            return None;
        }
        if def.composed.is_some_and(|which| which(&Args(args))) {
            return None;
        }
        if let Some(rule) = def.tiles {
            let rule = rule(&Args(args), results)?;
            let whole = rule.results.len() == results.len() && rule.operands.len() == operands().count();
            return whole.then_some(rule);
        }
        TileRule::elementwise(op, args.iter().flat_map(Arg::values), results)
    }

    /// The rule of a view that shows every element of its base along the base's own dimensions, and again along new ones.
    fn view(op: Op, args: &[Arg<Meta, Scalar>], results: &[Meta]) -> Option<TileRule> {
        let (dims, rank) = base_dims(op, args, results)?;
        let loops: Follows = (0..dims.len()).map(|d| Some(d as u8)).collect();
        let along = |d: usize| dims.iter().position(|b| *b == Some(d)).map(|j| j as u8);
        let mut operands: SmallVec<[Follows; 3]> = smallvec![(0..rank).map(along).collect()];
        // Others give sizes alone.
        for other in args.iter().flat_map(Arg::values).skip(1) {
            let same = other.layout.sizes == results[0].layout.sizes;
            operands.push(if same { loops.clone() } else { smallvec![None; other.rank()] });
        }
        Some(TileRule { cut: smallvec![true; dims.len()], results: smallvec![loops], operands })
    }
}

/// Whether a call of an operator may be one of a body, with operands and results of these types.
fn is_tiled<'a>(op: Op, mut types: impl Iterator<Item = &'a Meta>) -> bool {
    let def = op.def();
    !(def.fused || def.random || def.effectful) && types.all(|m| m.rank() <= usize::from(u8::MAX))
}

/// Whether an operator has a kernel that computes and reads elements alone.
fn has_plain_kernel(op: Op) -> bool {
    let def = op.def();
    matches!(def.kernel, Kernel::Fixed(_)) && !def.strided && def.movement.is_none() && def.hop.is_none()
}

/// For each dimension of a view's result, the dimension of the base that it is, `None` for one of size 1 or along which elements
/// repeat; and the base's rank. `None` if the view shows other elements than all of its base, or splits or joins dimensions.
fn base_dims(op: Op, args: &[Arg<Meta, Scalar>], results: &[Meta]) -> Option<(SmallVec<[Option<usize>; 6]>, usize)> {
    let def = op.def();
    let rule = def.view.filter(|_| def.math.is_none() && def.base == 0 && !def.strided && !def.metadata)?;
    let (Some(Arg::Value(base)), [result]) = (args.first(), results) else { return None };
    if base.dtype != result.dtype {
        return None;
    }
    let sizes = &base.layout.sizes;
    let rows = Meta { dtype: base.dtype, layout: Layout::contiguous(sizes) };
    let mut own: SmallVec<[Arg<Meta, Scalar>; 6]> = args.into();
    own[0] = Arg::Value(rows.clone());
    let Ok(ViewOutcome::Views(views)) = rule.of(&own) else { return None };
    let [seen] = &views[..] else { return None };
    let once = seen.layout.sizes.iter().zip(&seen.layout.strides).filter(|(_, stride)| **stride != 0);
    let once = once.map(|(n, _)| *n).product::<i64>();
    if seen.layout.sizes != result.layout.sizes || seen.layout.offset != 0 || once != rows.layout.numel() {
        return None;
    }
    let mut used: SmallVec<[bool; 6]> = smallvec![false; sizes.len()];
    let mut dims = SmallVec::new();
    for (n, stride) in seen.layout.sizes.iter().zip(&seen.layout.strides) {
        if *n == 1 || *stride == 0 {
            dims.push(None);
            continue;
        }
        let same = |d: &usize| !used[*d] && sizes[*d] == *n && rows.layout.strides[*d] == *stride;
        let d = (0..sizes.len()).find(same)?;
        used[d] = true;
        dims.push(Some(d));
    }
    Some((dims, sizes.len()))
}

/// For each dimension of the result of a view in a fused body, the dimension of its base; `None` if the node is no such view.
pub fn view_dims(graph: &Graph, node: &Node) -> Option<SmallVec<[Option<usize>; 6]>> {
    node.op.def().view?;
    let number = |e: &crate::Expr| e.constant().ok_or(());
    let known = |v: &ValueId| known_meta(graph, *v).map_err(drop);
    let args: Vec<Arg<Meta, Scalar>> =
        node.args.iter().map(|a| a.try_map(known, number)).collect::<Result<_, ()>>().ok()?;
    let results: Vec<Meta> = node.results.iter().map(known).collect::<Result<_, ()>>().ok()?;
    base_dims(node.op, &args, &results).map(|(dims, _)| dims)
}

/// How the values of a graph follow the dimensions of its last output. Nodes are added from the last to the first.
#[derive(Clone, PartialEq, Debug)]
pub struct Tiling {
    /// Sizes of the iteration space: of the last output, then of dimensions that calls join and no output has (1 for one that turned
    /// out to be another dimension).
    pub sizes: SmallVec<[i64; 6]>,
    /// For each of its dimensions, whether it may be cut: every node computes a range of it from the same range, and no element is
    /// computed twice.
    pub cut: SmallVec<[bool; 8]>,
    /// Dimensions of the last output.
    rank: usize,
    /// The dimensions of the space that each value goes along.
    values: SmallVec<[(ValueId, Follows); 8]>,
}

impl Tiling {
    /// The tiling of no node yet, for an output of these sizes.
    pub fn new(output: ValueId, sizes: &[i64]) -> Tiling {
        let values = smallvec![(output, (0..sizes.len()).map(|d| Some(d as u8)).collect())];
        Tiling { sizes: sizes.into(), cut: sizes.iter().map(|_| true).collect(), rank: sizes.len(), values }
    }

    /// The tiling of a body.
    ///
    /// # Errors
    /// The graph is no body of a fused node: a node has no tile rule, a value no reader, an output is none of its results.
    pub fn of(graph: &Graph) -> Result<Tiling, OpError> {
        let Some(Arg::Value(last)) = graph.outputs.last() else {
            return Err(OpError::new("a fused body returns tensors"));
        };
        let mut tiling = Tiling::new(*last, &known_meta(graph, *last)?.layout.sizes);
        for (at, id) in graph.order.iter().enumerate().rev() {
            let node = &graph.nodes[*id];
            if at == 0 && epilogue_rows(graph, node).is_some() {
                head(graph, node, &tiling)?;
                break;
            }
            let rule = TileRule::of(graph, node)
                .ok_or_else(|| OpError::new(format!("{} cannot be computed in tiles", node.op)))?;
            for v in node.results.iter().filter(|v| graph.output_values().any(|out| out == **v)) {
                tiling.beside(graph, *v);
            }
            tiling.add(graph, node, &rule)?;
        }
        let made = graph.ordered().filter(|(_, n)| n.op.def().view.is_none());
        let made: Vec<ValueId> = made.flat_map(|(_, n)| n.results.iter().copied()).collect();
        let views = graph.ordered().filter(|(_, n)| n.op.def().view.is_some());
        if views.filter_map(|(_, n)| n.operands().next()).any(|v| graph.inputs.contains(&v)) {
            return Err(OpError::new("a fused body views one of its operands"));
        }
        let mut returned: Vec<ValueId> = Vec::new();
        for out in &graph.outputs {
            match out {
                Arg::Value(v) if made.contains(v) && !returned.contains(v) => returned.push(*v),
                _ => return Err(OpError::new("a fused body returns results that its nodes compute, each once")),
            }
        }
        for v in &returned {
            tiling.write(*v);
        }
        Ok(tiling)
    }

    /// A result that only the caller reads goes along the dimensions of the last output, where their sizes are the same. Its maker's
    /// operands tell, by their other readers, whether it does.
    pub fn beside(&mut self, graph: &Graph, v: ValueId) {
        let same = |m: Meta| m.layout.sizes[..] == self.sizes[..self.rank];
        if self.follows(v).is_empty() && known_meta(graph, v).is_ok_and(same) {
            self.values.push((v, (0..self.rank).map(|d| Some(d as u8)).collect()));
        }
    }

    /// Adds a node; its readers were added before.
    ///
    /// # Errors
    /// None of the node's results has a reader, or the sizes of an operand are not known.
    pub fn add(&mut self, graph: &Graph, node: &Node, rule: &TileRule) -> Result<(), OpError> {
        // For each loop, the dimension of the space that it is, once a result tells.
        let mut space: SmallVec<[Option<Option<u8>>; 8]> = smallvec![None; rule.cut.len()];
        let mut read = false;
        for (r, loops) in node.results.iter().zip(&rule.results) {
            let Some(own) = self.values.iter().find(|(v, _)| v == r).map(|(_, f)| f.clone()) else { continue };
            read = true;
            for (own, at) in own.iter().zip(loops) {
                match at.map(|l| &mut space[l as usize]) {
                    Some(known @ None) => *known = Some(*own),
                    Some(Some(known)) if known != own => {
                        [*known, *own].into_iter().flatten().for_each(|d| self.cut[d as usize] = false);
                        *known = None;
                    }
                    Some(_) => {}
                    // A range of what the call makes as a whole.
                    None => own.iter().for_each(|d| self.cut[*d as usize] = false),
                }
            }
        }
        if !read {
            return Err(OpError::new(format!("no result of {} has a reader in its fused body", node.op)));
        }
        let mut space: SmallVec<[Option<u8>; 8]> = space.into_iter().map(Option::flatten).collect();
        self.join(graph, node, rule, &mut space)?;
        for d in 0..self.sizes.len() {
            // Without such a loop, every tile would compute the whole result.
            let along = |l: usize| space[l] == Some(d as u8) && rule.cut[l];
            self.cut[d] &= (0..space.len()).any(along);
        }
        let through = |space: &[Option<u8>], loops: &Follows| -> Follows {
            loops.iter().map(|l| l.and_then(|l| space[l as usize])).collect()
        };
        for (r, loops) in node.results.iter().zip(&rule.results) {
            if !self.values.iter().any(|(v, _)| v == r) {
                self.values.push((*r, through(&space, loops)));
            }
        }
        for (v, loops) in node.operands().zip(&rule.operands) {
            let along = through(&space, loops);
            self.read(v, along, &mut space);
        }
        Ok(())
    }

    /// The dimension of the space of each loop that no result goes along: the one that other readers of the operand go along, or a
    /// new one.
    fn join(&mut self, graph: &Graph, node: &Node, rule: &TileRule, space: &mut [Option<u8>]) -> Result<(), OpError> {
        let kept = |l: u8| rule.results.iter().any(|loops| loops.contains(&Some(l)));
        for (v, loops) in node.operands().zip(&rule.operands) {
            let joined = |l: &Option<u8>| l.is_some_and(|l| !kept(l) && space[usize::from(l)].is_none());
            if !loops.iter().any(joined) {
                continue;
            }
            let sizes = known_meta(graph, v)?.layout.sizes;
            let known: Follows = self.follows(v).into();
            for (i, (l, n)) in loops.iter().zip(&sizes).enumerate() {
                let Some(l) = l.filter(|l| !kept(*l) && *n != 1 && space[usize::from(*l)].is_none()) else { continue };
                let other = known.get(i).copied().flatten().or_else(|| self.alike(*n, space));
                space[usize::from(l)] = other.or_else(|| {
                    let new = u8::try_from(self.sizes.len()).ok()?;
                    self.sizes.push(*n);
                    self.cut.push(false);
                    Some(new)
                });
            }
        }
        Ok(())
    }

    /// A dimension that no tile cuts, of this size, and along which a call does not go yet: loops of one size may run together, and what
    /// reads its elements otherwise says so.
    fn alike(&self, n: i64, space: &[Option<u8>]) -> Option<u8> {
        let free = |d: &usize| !self.cut[*d] && self.sizes[*d] == n && !space.contains(&Some(*d as u8));
        (0..self.sizes.len()).find(free).map(|d| d as u8)
    }

    /// A reader goes along dimensions of a value in this way, by loops that are these dimensions: where another one does so in another,
    /// they stay whole.
    fn read(&mut self, v: ValueId, mut new: Follows, space: &mut [Option<u8>]) {
        let Some(at) = self.values.iter().position(|(own, _)| *own == v) else {
            return self.values.push((v, new));
        };
        for i in 0..new.len() {
            let (have, other) = (self.values[at].1[i], new[i]);
            if have == other {
                continue;
            }
            [have, other].into_iter().flatten().for_each(|d| self.cut[d as usize] = false);
            self.values[at].1[i] = match (have, other) {
                (Some(a), Some(b)) if self.unite(a, b, &mut new, space) => Some(a.min(b)),
                (Some(_), Some(_)) => None,
                (one, other) => one.or(other),
            };
        }
    }

    /// Makes two dimensions one in the values, a reader's dimensions and its loops, if calls join one of the two and no tensor goes
    /// along both.
    fn unite(&mut self, a: u8, b: u8, reader: &mut Follows, space: &mut [Option<u8>]) -> bool {
        let (kept, gone) = (a.min(b), a.max(b));
        let both = |f: &[Option<u8>]| f.contains(&Some(a)) && f.contains(&Some(b));
        let apart = both(reader) || both(space) || self.values.iter().any(|(_, f)| both(f));
        if usize::from(gone) < self.rank || apart {
            return false;
        }
        let own = self.values.iter_mut().flat_map(|(_, f)| f.iter_mut());
        own.chain(reader).chain(space).filter(|f| **f == Some(gone)).for_each(|f| *f = Some(kept));
        self.sizes[usize::from(gone)] = 1;
        true
    }

    /// A value is written outside of tiles: where it does not go along a dimension, each tile would write all of it.
    pub fn write(&mut self, v: ValueId) {
        let along: SmallVec<[Option<u8>; 8]> = self.follows(v).into();
        (0..self.sizes.len()).for_each(|d| self.cut[d] &= along.contains(&Some(d as u8)));
    }

    /// For each dimension of a value, the dimension of the space that it goes along, cut or not; `None` where readers differ.
    pub fn follows(&self, v: ValueId) -> &[Option<u8>] {
        self.values.iter().find(|(own, _)| *own == v).map_or(&[], |(_, f)| f)
    }

    /// For each dimension of a value, the dimension of the space whose range it is cut to; `None` for one that tiles use as a whole.
    pub fn cut_of(&self, v: ValueId) -> SmallVec<[Option<usize>; 6]> {
        let cut = |d: u8| self.cut[usize::from(d)].then_some(usize::from(d));
        self.follows(v).iter().map(|f| f.and_then(cut)).collect()
    }
}

/// A head of a body: a call that is computed as a whole, in the place of the last output, and whose finished parts the other calls work
/// on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FusedHead {
    /// Its result.
    pub result: ValueId,
    /// For each dimension of the result, the dimension of the iteration space; `None` for one of size 1.
    pub dims: SmallVec<[Option<usize>; 6]>,
    /// Number of the dimensions that are rows of finished parts.
    pub rows: usize,
}

impl FusedHead {
    /// The layout of the head's result, of these sizes, where the last output has the layout `last`.
    pub fn place(&self, last: &Layout, sizes: &[i64]) -> Layout {
        let strides: SmallVec<[i64; 6]> = self.dims.iter().map(|d| d.map_or(1, |d| last.strides[d])).collect();
        Layout::strided(sizes, &strides, last.offset)
    }
}

/// How many dimensions of a node's result are rows, if its kernel calls epilogues.
pub fn epilogue_rows(graph: &Graph, node: &Node) -> Option<usize> {
    let rows = node.op.def().epilogue?;
    let number = |e: &crate::Expr| e.constant().ok_or(());
    let known = |v: &ValueId| known_meta(graph, *v).map_err(drop);
    let args: Vec<Arg<Meta, Scalar>> =
        node.args.iter().map(|a| a.try_map(known, number)).collect::<Result<_, ()>>().ok()?;
    let results: Vec<Meta> = node.results.iter().map(known).collect::<Result<_, ()>>().ok()?;
    rows(&Args(&args), &results)
}

/// The head of a body with this tiling, if it has one.
///
/// # Errors
/// The body cannot work in the head's result.
pub fn fused_head(body: &Graph, tiling: &Tiling) -> Result<Option<FusedHead>, OpError> {
    match body.order.first().map(|id| &body.nodes[*id]) {
        Some(node) if epilogue_rows(body, node).is_some() => head(body, node, tiling).map(Some),
        _ => Ok(None),
    }
}

/// Holds a head against the calls behind it: parts of its result become parts of the last output, index by index.
fn head(body: &Graph, node: &Node, tiling: &Tiling) -> Result<FusedHead, OpError> {
    let wrong = |what: &str| Err(OpError::new(format!("{} {what}", node.op)));
    let (Some(rows), &[result]) = (epilogue_rows(body, node), &node.results[..]) else {
        return wrong("heads a fused body and calls no epilogue");
    };
    let Some(Arg::Value(last)) = body.outputs.last() else { return wrong("heads a fused body without a result") };
    let (own, out) = (known_meta(body, result)?, known_meta(body, *last)?);
    if body.output_values().any(|v| v == result) || own.dtype != out.dtype || rows > own.rank() {
        return wrong("heads a fused body whose last result is of another type");
    }
    let along = tiling.follows(result);
    let mut dims: SmallVec<[Option<usize>; 6]> = SmallVec::new();
    for (n, d) in own.layout.sizes.iter().zip(along) {
        let d = d.map(usize::from).filter(|_| *n != 1);
        match d {
            None if *n != 1 => return wrong("heads a fused body that uses its result in parts of another form"),
            Some(d) if dims.contains(&Some(d)) || tiling.sizes[d] != *n => {
                return wrong("heads a fused body that uses its result in parts of another form");
            }
            d => dims.push(d),
        }
    }
    let covered = |d: usize| tiling.sizes[d] == 1 || dims.contains(&Some(d)) && tiling.cut[d];
    if along.len() != own.rank() || !(0..tiling.sizes.len()).all(covered) {
        return wrong("heads a fused body over other dimensions");
    }
    // Its result, and views of that.
    let mut shown: SmallVec<[ValueId; 4]> = smallvec![result];
    let mut written = false;
    for (_, call) in body.ordered().skip(1) {
        let reads = call.operands().any(|v| shown.contains(&v));
        if written && reads {
            return wrong("heads a fused body that reads its result after it wrote over it");
        }
        if reads && call.op.def().view.is_some() {
            shown.extend(call.results.iter().copied());
        }
        if let Some(k) = call.results.iter().position(|r| r == last) {
            written = true;
            let copes = |(arg, a): (usize, &Arg)| {
                let by_index = |l: &crate::Reuse| {
                    l.kind == crate::ReuseKind::SameIndex && usize::from(l.arg) == arg && usize::from(l.result) == k
                };
                !a.values().any(|v| shown.contains(v))
                    || matches!(a, Arg::Value(_)) && call.op.def().reuse.iter().any(by_index)
            };
            if !call.args.iter().enumerate().all(copes) {
                return wrong("heads a fused body that cannot write over its result");
            }
        }
    }
    Ok(FusedHead { result, dims, rows })
}

/// The body of a fused node.
pub fn fused_body(node: &Node) -> Option<GraphId> {
    node.args.first()?.graph().filter(|_| node.op.def().fused)
}

/// Holds a fused node against its body: as many inputs as operands, as many outputs as results, of their types, and a tiling. The
/// tiling of the body; `None` for other nodes.
///
/// # Errors
/// What differs.
pub fn check_fused(program: &Program, graph: &Graph, node: &Node) -> Result<Option<Tiling>, OpError> {
    let wrong = |what: String| Err(OpError::new(what));
    if !node.op.def().fused {
        return Ok(None);
    }
    let Some(body) = fused_body(node).and_then(|b| program.graphs.get(b)) else {
        return wrong("a fused node has no body".into());
    };
    let operands: Vec<ValueId> = node.operands().collect();
    let returned: Vec<ValueId> = body.output_values().collect();
    if operands.len() != body.inputs.len() || node.results.len() != returned.len() {
        let (takes, gives) = (body.inputs.len(), returned.len());
        return wrong(format!("the fused body takes {takes} tensors and returns {gives}"));
    }
    let inside = body.inputs.iter().chain(&returned);
    for (v, inside) in operands.iter().chain(&node.results).zip(inside) {
        let (outer, inner) = (known_meta(graph, *v)?, known_meta(body, *inside)?);
        if outer.dtype != inner.dtype || outer.layout.sizes != inner.layout.sizes {
            return wrong(format!("%{} is {outer}, in the fused body {inner}", graph.values[*v].name));
        }
    }
    Tiling::of(body).map(Some)
}

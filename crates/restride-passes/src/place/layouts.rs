//! The layout of a result in memory of its own, chosen for the kernels that make and read it.
//!
//! A kernel that copies an operand or a result into another order says so by its scratch for the strides
//! ([`OpDef::scratch`](restride_ir::OpDef::scratch)). The layout with the least scratch is taken. Kernels that read a
//! view of the result count as readers.

use super::Placer;
use super::hints::base_layout;
use super::places::default_layout;
use super::views::view_rule;
use restride_ir::{
    Arg, Graph, GraphId, IdArena, Layout, Licence, Meta, Movement, Node, NodeId, Reason, RemarkKind, Result, ReuseKind,
    ValueId, call_scratch, fused_body,
};

/// How far views are followed.
const DEPTH: usize = 6;

/// A value with more readers, through views or not, keeps its default layout.
const FEW: usize = 16;

/// A kernel that reads a value, or a view of it.
struct KernelReader {
    id: NodeId,
    /// The value or view that it reads.
    value: ValueId,
    /// The views that lead from the value to the reader's operand: node, base, position of the result.
    through: Vec<(NodeId, ValueId, usize)>,
}

impl Placer<'_> {
    /// The layout of a result in memory of its own; `usual` if no kernel prefers another one.
    pub(super) fn layout_for_readers(&mut self, at: usize, id: NodeId, r: ValueId, usual: Layout) -> Result<Layout> {
        if !self.options.layouts || self.skips(at) || usual.numel() == 0 {
            return Ok(usual);
        }
        let mut readers = Vec::new();
        if !self.readers(r, &mut Vec::new(), &mut readers) || readers.is_empty() {
            return Ok(usual);
        }
        let mut candidates: Vec<Layout> = Vec::new();
        for reader in &readers {
            let rows = Layout::contiguous(&self.facts.ty(reader.value)?.layout.sizes);
            if let Some(layout) = self.layout_behind(r, reader, rows)?
                && layout != usual
                && layout.is_dense()
                && !candidates.contains(&layout)
            {
                candidates.push(layout);
            }
        }
        if candidates.is_empty() {
            return Ok(usual);
        }
        let Some(least) = self.working_memory(id, r, &readers, &usual)? else { return Ok(usual) };
        let mut best = (least, usual);
        for layout in candidates {
            match self.working_memory(id, r, &readers, &layout)? {
                Some(bytes) if bytes < best.0 => best = (bytes, layout),
                _ => {}
            }
        }
        if best.0 < least {
            self.remark(id, RemarkKind::LaidOut, Reason::Taken, (least - best.0) as i64, None);
        }
        Ok(best.1)
    }

    /// Collects the kernels with scratch that read a value or views of it. False if another reader might depend on the
    /// strides or pass them on.
    fn readers(&self, v: ValueId, through: &mut Vec<(NodeId, ValueId, usize)>, out: &mut Vec<KernelReader>) -> bool {
        if self.facts.handed(v).is_some() || through.len() > DEPTH || self.places.uses[v].len() + out.len() > FEW {
            return false;
        }
        self.places.uses[v].iter().all(|&at| {
            let id = self.facts.graph.order[at];
            let node = &self.facts.graph.nodes[id];
            let def = node.op.def();
            let is_arg = |arg: u8| matches!(node.args.get(arg as usize), Some(Arg::Value(a)) if *a == v);
            if def.strided || def.hop.is_some() {
                return false;
            }
            if let Some((_, base, _)) = view_rule(node) {
                return is_arg(base as u8)
                    && node.results.iter().enumerate().all(|(k, w)| {
                        through.push((id, v, k));
                        let fine = self.readers(*w, through, out);
                        through.pop();
                        fine
                    });
            }
            let passes_on = |l: &Licence| l.kind != ReuseKind::Trailing && node.operands().nth(l.operand) == Some(v);
            let works = def.scratch.is_some() || headed(&self.facts.program.graphs, node);
            match (def.movement, works) {
                _ if self.facts.licences(id).iter().any(passes_on) => false,
                // Elements that are moved one by one may have any strides.
                (Some(Movement::Scatter { base, .. }), _) => !is_arg(base),
                (Some(Movement::Assemble(_)), _) => true,
                (Some(_), _) => false,
                (None, true) => {
                    out.push(KernelReader { id, value: v, through: through.clone() });
                    true
                }
                (None, false) => def.pointwise,
            }
        })
    }

    /// The layout of a value whose reader sees `target`; `None` if no strides express it.
    fn layout_behind(&self, v: ValueId, reader: &KernelReader, target: Layout) -> Result<Option<Layout>> {
        let mut layout = target;
        for step in reader.through.iter().rev() {
            let sizes = &self.facts.ty(step.1)?.layout.sizes;
            let Some(seen) = self.view_layout(step.0, step.1, step.2, &Layout::contiguous(sizes))? else {
                return Ok(None);
            };
            let Some(base) = base_layout(&layout, &seen, sizes) else { return Ok(None) };
            layout = base;
        }
        debug_assert_eq!(layout.sizes, self.facts.ty(v)?.layout.sizes);
        Ok(Some(layout))
    }

    /// Bytes of scratch of the kernels that make and read a value with this layout; `None` where a view would be a
    /// copy, or a kernel does not say.
    fn working_memory(
        &self,
        id: NodeId,
        v: ValueId,
        readers: &[KernelReader],
        layout: &Layout,
    ) -> Result<Option<usize>> {
        let mut sum = 0usize;
        let node = &self.facts.graph.nodes[id];
        let graphs = &self.facts.program.graphs;
        if node.op.def().scratch.is_some() || headed(graphs, node) {
            let args = self.args(id, |u| self.placed_meta(u))?;
            let mut outs = Vec::with_capacity(node.results.len());
            for &r in &node.results {
                let ty = self.facts.ty(r)?;
                outs.push(Meta { dtype: ty.dtype, layout: if r == v { layout.clone() } else { default_layout(ty) } });
            }
            let Some(Ok(bytes)) = call_scratch(graphs, node, &args, &outs) else { return Ok(None) };
            sum = bytes;
        }
        for reader in readers {
            let mut seen = layout.clone();
            for &(view, base, k) in &reader.through {
                let Some(next) = self.view_layout(view, base, k, &seen)? else { return Ok(None) };
                seen = next;
            }
            let own = Meta { dtype: self.facts.ty(reader.value)?.dtype, layout: seen };
            let Ok(args) =
                self.args(reader.id, |u| if u == reader.value { Ok(own.clone()) } else { self.placed_meta(u) })
            else {
                return Ok(None);
            };
            let results = &self.facts.graph.nodes[reader.id].results;
            let Ok(outs) = results.iter().map(|r| self.facts.ty(*r).cloned()).collect::<Result<Vec<Meta>>>() else {
                return Ok(None);
            };
            let reading = &self.facts.graph.nodes[reader.id];
            let Some(Ok(bytes)) = call_scratch(graphs, reading, &args, &outs) else { return Ok(None) };
            sum = sum.saturating_add(bytes);
        }
        Ok(Some(sum))
    }
}

/// Whether a fused node has a head, which may have scratch.
fn headed(graphs: &IdArena<GraphId, Graph>, node: &Node) -> bool {
    let body = fused_body(node).and_then(|b| graphs.get(b));
    body.and_then(|b| b.order.first().map(|id| &b.nodes[*id]))
        .is_some_and(|n| n.op.def().epilogue.is_some() && n.op.def().scratch.is_some())
}

//! How a result lies in memory of its own: so that the kernels that make it and read it put the fewest bytes in order.
//!
//! What a kernel puts in order, before it computes or after, is in its operator's declaration of working memory
//! ([`OpDef::scratch`](restride_ir::OpDef::scratch)), which goes by strides. Readers are looked for through views.

use super::Placer;
use super::homes::before;
use super::memory::dense;
use super::views::view_rule;
use restride_ir::{
    Arg, Args, Layout, Meta, Movement, NodeId, Reason, RemarkKind, Result, Reuse, ReuseKind, ScratchFn, ValueId,
};

/// How far views are followed.
const DEPTH: usize = 6;

/// What has more readers, with those of its views, lies as it would anyway.
const FEW: usize = 16;

/// A kernel that reads a value, or a view of it.
struct Reader {
    id: NodeId,
    scratch: ScratchFn,
    /// What it reads.
    value: ValueId,
    /// The views that lead there: the node, its base, and which of its results.
    through: Vec<(NodeId, ValueId, usize)>,
}

impl Placer<'_> {
    /// The layout of a result that is made in memory of its own, where `usual` is what it has if no kernel cares.
    pub(super) fn liked(&mut self, at: usize, id: NodeId, r: ValueId, usual: Layout) -> Result<Layout> {
        if !self.options.layouts || self.skips(at) || usual.numel() == 0 {
            return Ok(usual);
        }
        let mut readers = Vec::new();
        if !self.readers(r, &mut Vec::new(), &mut readers) || readers.is_empty() {
            return Ok(usual);
        }
        let mut candidates: Vec<Layout> = Vec::new();
        for reader in &readers {
            let rows = Layout::contiguous(&self.ty(reader.value)?.layout.sizes);
            if let Some(layout) = self.back(r, reader, rows)?
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
        let Some(least) = self.put_in_order(id, r, &readers, &usual)? else { return Ok(usual) };
        let mut best = (least, usual);
        for layout in candidates {
            match self.put_in_order(id, r, &readers, &layout)? {
                Some(bytes) if bytes < best.0 => best = (bytes, layout),
                _ => {}
            }
        }
        if best.0 < least {
            self.remark(id, RemarkKind::LaidOut, Reason::Taken, (least - best.0) as i64, None);
        }
        Ok(best.1)
    }

    /// The kernels with working memory that read a value, or views of it. False if something else reads it, of which it is
    /// not known here what it makes of other strides, or that may give them on to its result.
    fn readers(&self, v: ValueId, through: &mut Vec<(NodeId, ValueId, usize)>, out: &mut Vec<Reader>) -> bool {
        if self.wanted.contains_key(&v) || through.len() > DEPTH || self.uses[v].len() + out.len() > FEW {
            return false;
        }
        self.uses[v].iter().all(|&at| {
            let id = self.graph.order[at];
            let node = &self.graph.nodes[id];
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
            let gives_on = |l: &Reuse| l.kind != ReuseKind::Trailing && is_arg(l.arg);
            match (def.movement, def.scratch) {
                _ if def.reuse.iter().any(gives_on) => false,
                // What is put somewhere else, element by element, has any strides.
                (Some(Movement::Scatter { base, .. }), _) => !is_arg(base),
                (Some(Movement::Assemble(_)), _) => true,
                (Some(_), _) => false,
                (None, Some(scratch)) => {
                    out.push(Reader { id, scratch, value: v, through: through.clone() });
                    true
                }
                (None, None) => def.pointwise,
            }
        })
    }

    /// How a value lies of which a reader sees `target`; `None` where no strides say it.
    fn back(&self, v: ValueId, reader: &Reader, target: Layout) -> Result<Option<Layout>> {
        let mut layout = target;
        for step in reader.through.iter().rev() {
            let sizes = &self.ty(step.1)?.layout.sizes;
            let Some(seen) = self.shown(step.0, step.1, step.2, &Layout::contiguous(sizes))? else { return Ok(None) };
            let Some(base) = before(&layout, &seen, sizes) else { return Ok(None) };
            layout = base;
        }
        debug_assert_eq!(layout.sizes, self.ty(v)?.layout.sizes);
        Ok(Some(layout))
    }

    /// Bytes of working memory that the kernels that make and read a value take, if it lies so; `None` where a view of it would be
    /// a copy, or a kernel does not say.
    fn put_in_order(&self, id: NodeId, v: ValueId, readers: &[Reader], lies: &Layout) -> Result<Option<usize>> {
        let mut sum = 0usize;
        let node = &self.graph.nodes[id];
        if let Some(scratch) = node.op.def().scratch {
            let args = self.metas(id, |u| self.placed_meta(u))?;
            let mut outs = Vec::with_capacity(node.results.len());
            for &r in &node.results {
                let ty = self.ty(r)?;
                outs.push(Meta { dtype: ty.dtype, layout: if r == v { lies.clone() } else { dense(ty) } });
            }
            let Ok(bytes) = scratch(&Args(&args), &outs) else { return Ok(None) };
            sum = bytes;
        }
        for reader in readers {
            let mut layout = lies.clone();
            for &(view, base, k) in &reader.through {
                let Some(next) = self.shown(view, base, k, &layout)? else { return Ok(None) };
                layout = next;
            }
            let own = Meta { dtype: self.ty(reader.value)?.dtype, layout };
            let Ok(args) =
                self.metas(reader.id, |u| if u == reader.value { Ok(own.clone()) } else { self.placed_meta(u) })
            else {
                return Ok(None);
            };
            let results = &self.graph.nodes[reader.id].results;
            let Ok(outs) = results.iter().map(|r| self.ty(*r).cloned()).collect::<Result<Vec<Meta>>>() else {
                return Ok(None);
            };
            let Ok(bytes) = (reader.scratch)(&Args(&args), &outs) else { return Ok(None) };
            sum = sum.saturating_add(bytes);
        }
        Ok(Some(sum))
    }
}

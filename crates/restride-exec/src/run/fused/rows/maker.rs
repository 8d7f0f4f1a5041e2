//! Programs of functions of rows, made from bodies.

use super::{ChannelFactors, OPERANDS, RowCall, RowProgram, RowSource, RowTarget, RowTensor, RowWork, SlotUse, TIMES};
use crate::run::fused::{BodyTypes, TileSource};
use crate::run::memory::TypedPlace;
use restride_ir::{Arg, Graph, Node, RowExtent, RowForm, RowOperand, RowSpace, Tiling, ValueId};
use restride_tensor::{DType, Layout};
use smallvec::SmallVec;
use std::ops::Range;

/// A program under construction.
pub(super) struct RowMaker<'a> {
    pub body: &'a Graph,
    pub tiling: &'a Tiling,
    pub metas: &'a BodyTypes,
    pub far: &'a [bool],
    pub space: Option<RowSpace>,
    pub program: RowProgram,
    /// Of each tensor.
    pub places: Vec<TypedPlace>,
    /// Where calls find values.
    pub values: Vec<(ValueId, RowSource)>,
}

impl RowMaker<'_> {
    /// Adds a tensor of these cells; `None` if it is used as a whole, or not of a type that rows read and write.
    pub fn tensor(
        &mut self,
        v: ValueId,
        source: TileSource,
        layout: &Layout,
        place: TypedPlace,
        read: bool,
    ) -> Option<usize> {
        let meta = self.metas.get(v).ok()?;
        let sizes = &meta.layout.sizes;
        if meta.dtype.is_complex() || !read && !matches!(meta.dtype, DType::F32 | DType::Bool) {
            return None;
        }
        let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, self.tiling.sizes.len());
        let follows = self.tiling.follows(v);
        for (i, (n, stride)) in sizes.iter().zip(&layout.strides).enumerate() {
            match follows.get(i).copied().flatten() {
                _ if *n == 1 => {}
                Some(d) => strides[usize::from(d)] += *stride as isize,
                None => return None,
            }
        }
        let far = self.far.get(place.buffer).is_some_and(|far| *far);
        let (dtype, offset) = (meta.dtype, layout.offset as isize);
        self.program.tensors.push(RowTensor { source, read, far, dtype, offset, strides });
        self.places.push(place);
        Some(self.program.tensors.len() - 1)
    }

    pub fn source(&self, v: ValueId) -> Option<RowSource> {
        self.values.iter().find(|(own, _)| *own == v).map(|(_, s)| *s)
    }

    /// Adds the call at a position of the body.
    pub fn call(&mut self, at: usize, returned: &[ValueId], reads: &[TypedPlace]) -> Option<()> {
        let body = self.body;
        let node = &body.nodes[body.order[at]];
        let &[result] = &node.results[..] else { return None };
        let position = |v: &ValueId| body.inputs.iter().position(|i| i == v);
        let operand = |maker: &mut Self, v: ValueId| -> Option<RowSource> {
            if let Some(known) = maker.source(v) {
                return Some(known);
            }
            let k = position(&v)?;
            let source =
                RowSource::Tensor(maker.tensor(v, TileSource::Read(k), &reads[k].layout, reads[k].clone(), true)?);
            maker.values.push((v, source));
            Some(source)
        };
        let extent = match &self.space {
            Some(space) => (*space.calls.get(at)?)?,
            None => RowExtent::Elements(0),
        };
        let work = match RowForm::of(body, node)? {
            RowForm::Map { row, operands } => RowWork::Map(row, self.operands(node, &operands, operand)?),
            RowForm::Ask { row, operands } => RowWork::Ask(row, self.operands(node, &operands, operand)?),
            RowForm::Fold { terms, join, finish } => {
                self.space.as_ref()?;
                let mut from = operand(self, node.operands().next()?)?;
                if let Some(terms) = terms {
                    let slot = self.free_slot(at, SlotUse::Part);
                    let work = RowWork::Map(terms, SmallVec::from_slice(&[from]));
                    let to = RowTarget { slot: Some(slot), tensor: None };
                    self.program.calls.push(RowCall { work, to, extent: RowExtent::Elements(extent.pass()) });
                    from = RowSource::Slot(slot);
                }
                RowWork::Fold(join, finish, from)
            }
            RowForm::Scale { dim, count, numbers, row } => {
                let Some(Arg::Value(x)) = node.args.first() else { return None };
                let from = operand(self, *x)?;
                let along = self.tiling.cut_of(*x).get(dim).copied()?;
                let dim = match along {
                    Some(d) => d,
                    // One channel: any dimension of one index.
                    None if count == 1 => (0..self.tiling.sizes.len()).find(|d| self.tiling.sizes[*d] == 1)?,
                    None => return None,
                };
                let number = |e: &restride_ir::Expr| e.constant().ok_or(());
                let given = |v: &ValueId| position(v).ok_or(());
                let others = node.args.iter().skip(1).map(|a| a.try_map(given, number));
                let args = std::iter::once(Ok(Arg::None)).chain(others).collect::<Result<_, ()>>().ok()?;
                let first = self.program.factor_count();
                let times = (TIMES / count.max(1)).max(1);
                self.program.scales.push(ChannelFactors { dim, count, times, first, numbers, args });
                RowWork::Scale(row, from, self.program.scales.len() - 1)
            }
        };
        let tensor = returned.iter().position(|v| *v == result);
        let read_later = self.last_reader(result).is_some();
        // What a call reads in memory that it writes is read before.
        let from = work.sources();
        let meets = |s: &RowSource| match (s, tensor) {
            (RowSource::Tensor(k), Some(t)) => may_meet(&self.places[*k], &self.places[t]),
            _ => false,
        };
        let needed = read_later || tensor.is_none() || from.iter().any(meets);
        let slot = needed.then(|| self.free_slot(at, self.slot_use(result, extent)));
        self.values.extend(slot.map(|slot| (result, RowSource::Slot(slot))));
        self.program.calls.push(RowCall { work, to: RowTarget { slot, tensor }, extent });
        Some(())
    }

    fn operands(
        &mut self,
        node: &Node,
        operands: &[RowOperand],
        operand: impl Fn(&mut Self, ValueId) -> Option<RowSource>,
    ) -> Option<SmallVec<[RowSource; 4]>> {
        if operands.len() > OPERANDS {
            return None;
        }
        let mut from = SmallVec::new();
        for o in operands {
            from.push(match o {
                RowOperand::Number(x) => {
                    self.program.constants.push(*x);
                    RowSource::Constant(self.program.constants.len() - 1)
                }
                RowOperand::Tensor(k) => match node.args.get(usize::from(*k))? {
                    Arg::Value(v) => operand(self, *v)?,
                    _ => return None,
                },
            });
        }
        Some(from)
    }

    /// What a buffer for a result holds.
    fn slot_use(&self, result: ValueId, extent: RowExtent) -> SlotUse {
        let Some(space) = &self.space else { return SlotUse::Part };
        let readers = self.readers(result);
        let mut reads = readers.iter().filter_map(|at| space.calls.get(*at).copied().flatten());
        match extent {
            RowExtent::Elements(pass) if reads.any(|e| e.pass() != pass) => SlotUse::Kept,
            RowExtent::Elements(_) => SlotUse::Part,
            _ if reads.any(|e| !matches!(e, RowExtent::Once(_))) => SlotUse::Spread,
            _ => SlotUse::Once,
        }
    }

    /// The positions of the nodes that read a value, or a view of it.
    fn readers(&self, v: ValueId) -> SmallVec<[usize; 8]> {
        let mut shown: SmallVec<[ValueId; 4]> = SmallVec::from_slice(&[v]);
        let mut readers = SmallVec::new();
        for (at, id) in self.body.order.iter().enumerate() {
            let node = &self.body.nodes[*id];
            if node.operands().any(|o| shown.contains(&o)) {
                readers.push(at);
                if node.op.def().view.is_some() {
                    shown.extend(node.results.iter().copied());
                }
            }
        }
        readers
    }

    fn last_reader(&self, v: ValueId) -> Option<usize> {
        self.readers(v).last().copied()
    }

    /// A slot that no call from this one on reads.
    fn free_slot(&mut self, at: usize, use_: SlotUse) -> usize {
        let busy = |slot: usize| {
            let held = |(v, s): &(ValueId, RowSource)| {
                *s == RowSource::Slot(slot) && self.last_reader(*v).is_some_and(|last| last >= at)
            };
            self.values.iter().any(held)
        };
        let fits = |slot: &usize| use_ == SlotUse::Part && self.program.slots[*slot] == use_ && !busy(*slot);
        (0..self.program.slots.len()).find(fits).unwrap_or_else(|| {
            self.program.slots.push(use_);
            self.program.slots.len() - 1
        })
    }
}

/// Whether places may have cells in common.
fn may_meet(a: &TypedPlace, b: &TypedPlace) -> bool {
    let span = |p: &TypedPlace| -> Range<i64> {
        let (cells, size) = (p.layout.cell_range(), p.dtype.size() as i64);
        cells.start * size..cells.end * size
    };
    let (x, y) = (span(a), span(b));
    a.buffer == b.buffer && x.start < y.end && y.start < x.end
}

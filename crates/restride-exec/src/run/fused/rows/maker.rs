//! Programs of functions of rows, made from bodies.

use super::chain::{RowChain, SUMS};
use super::{
    ChannelFactors, OPERANDS, RowCall, RowProgram, RowSource, RowTarget, RowTensor, RowWalk, RowWork, SlotUse, TIMES,
};
use crate::run::fused::{BodyTypes, TileSource};
use crate::run::memory::TypedPlace;
use restride_ir::{Arg, Graph, Node, RowExtent, RowForm, RowJoin, RowOperand, RowSpace, Table, Tiling, ValueId};
use restride_tensor::{DType, FormulaFn, Layout};
use smallvec::SmallVec;
use std::ops::Range;

/// Elements from which on code is made of chains: for fewer it takes longer to make than it ever saves. Tests, whose programs are small,
/// make it of all.
const CODE_FROM: i64 = if cfg!(debug_assertions) { 1 } else { 64 };

/// Most calls of a chain.
const MOST_CALLS: usize = 64;

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
    /// Of each call.
    pub made: Vec<MadeCall>,
    /// The positions of the nodes that read a value, or a view of it.
    pub readers: Table<ValueId, SmallVec<[usize; 4]>>,
    /// Of each slot the last position that reads what it holds.
    pub held: Vec<Option<usize>>,
}

/// What a call of a program is of.
pub(super) struct MadeCall {
    /// The position of its node.
    at: usize,
    /// What it computes, as data.
    formula: Option<FormulaFn>,
    /// Its result, if that is its node's.
    result: Option<ValueId>,
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
        let mut formula = None;
        let work = match RowForm::of(body, node)? {
            RowForm::Map { map, operands } => {
                formula = map.formula;
                RowWork::Map(map.row, self.operands(node, &operands, operand)?)
            }
            RowForm::Ask { row, formula: asked, operands } => {
                formula = asked;
                RowWork::Ask(row, self.operands(node, &operands, operand)?)
            }
            RowForm::Fold { terms, join, finish } => {
                self.space.as_ref()?;
                let mut from = operand(self, node.operands().next()?)?;
                if let Some(terms) = terms {
                    let slot = self.free_slot(at, SlotUse::Part);
                    let work = RowWork::Map(terms.row, SmallVec::from_slice(&[from]));
                    let to = RowTarget { slot: Some(slot), tensor: None };
                    let extent = RowExtent::Elements(extent.pass());
                    self.program.calls.push(RowCall { work, to, extent, chain: None });
                    self.made.push(MadeCall { at, formula: terms.formula, result: None });
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
                formula = Some(|terms| terms[0] * terms[1] + terms[2]);
                RowWork::Scale(row, from, self.program.scales.len() - 1)
            }
        };
        let tensor = returned.iter().position(|v| *v == result);
        let last_reader = self.readers[result].last().copied();
        // What a call reads in memory that it writes is read before.
        let from = work.sources();
        let meets = |s: &RowSource| match (s, tensor) {
            (RowSource::Tensor(k), Some(t)) => may_meet(&self.places[*k], &self.places[t]),
            _ => false,
        };
        let needed = last_reader.is_some() || tensor.is_none() || from.iter().any(meets);
        let slot = needed.then(|| self.free_slot(at, self.slot_use(result, extent)));
        if let Some(slot) = slot {
            self.held[slot] = self.held[slot].max(last_reader);
            self.values.push((result, RowSource::Slot(slot)));
        }
        self.program.calls.push(RowCall { work, to: RowTarget { slot, tensor }, extent, chain: None });
        self.made.push(MadeCall { at, formula, result: Some(result) });
        Some(())
    }

    /// Makes chains of calls behind each other that have formulas.
    pub fn chains(&mut self) {
        if self.program.sizes.iter().product::<i64>() < CODE_FROM {
            return;
        }
        // Sums are added up in the code of the calls before them where a row's parts begin with whole lanes.
        let inner = RowWalk::along(&self.program, &self.program.row, &self.program.sizes);
        let (one, joined) = (inner.is_one(), !self.program.row.is_empty());
        let fastest = self.program.order.iter().rev().find(|d| self.program.sizes[**d] != 1).copied();
        let repeats: SmallVec<[bool; 8]> = (self.program.tensors.iter().enumerate())
            .map(|(k, t)| {
                let step = if joined { Some(inner.strides[k]) } else { fastest.map(|d| t.strides[d]) };
                t.dtype == DType::F32 && step == Some(0)
            })
            .collect();
        let spread: SmallVec<[bool; 16]> = self.program.slots.iter().map(|s| *s == SlotUse::Spread).collect();
        let repeats = |source: RowSource| match source {
            RowSource::Tensor(k) => repeats[k],
            RowSource::Slot(k) => spread[k],
            RowSource::Constant(_) => false,
        };
        let is_sum = |call: &RowCall| one && matches!(call.work, RowWork::Fold(RowJoin::Sum, ..));
        let sum: SmallVec<[bool; 16]> = self.program.calls.iter().map(is_sum).collect();
        let mut first = 0;
        while first < self.program.calls.len() {
            let formula = |k: usize| match sum[k] {
                true => Some::<FormulaFn>(|terms| terms[0]),
                false => self.made[k].formula,
            };
            let pass = self.program.calls[first].extent.pass();
            let mut sums = 0;
            let mut goes_on = |k: &usize| {
                let extent = self.program.calls[*k].extent;
                sums += usize::from(sum[*k]);
                formula(*k).is_some() && extent.pass() == pass && !matches!(extent, RowExtent::Once(_)) && sums <= SUMS
            };
            let most = self.program.calls.len().min(first + MOST_CALLS);
            let calls = first..(first..most).find(|k| !goes_on(k)).unwrap_or(most);
            let elements = calls.clone().any(|k| matches!(self.program.calls[k].extent, RowExtent::Elements(_)));
            // A single call is one where an operand has one element for all of a row.
            let single = |k: usize| joined && self.program.calls[k].work.sources().iter().any(|s| repeats(*s));
            if elements && (calls.len() > 1 || single(first)) {
                let formulas: SmallVec<[FormulaFn; 16]> = calls.clone().filter_map(formula).collect();
                let own: SmallVec<[usize; 16]> = calls.clone().map(|k| self.made[k].at).collect();
                let read_later = |k: usize| match self.made[calls.start + k].result {
                    Some(v) => self.readers[v].iter().any(|at| !self.is_view(*at) && !own.contains(at)),
                    // The terms of a sum, which is the next call.
                    None => calls.start + k + 1 == calls.end,
                };
                let of = &self.program.calls[calls.clone()];
                self.program.calls[calls.start].chain =
                    RowChain::of(of, &formulas, &self.program.constants, read_later, repeats, joined);
            }
            first = calls.end.max(first + 1);
        }
    }

    fn is_view(&self, at: usize) -> bool {
        self.body.nodes[self.body.order[at]].op.def().view.is_some()
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
        let mut reads = self.readers[result].iter().filter_map(|at| space.calls.get(*at).copied().flatten());
        match extent {
            RowExtent::Elements(pass) if reads.any(|e| e.pass() != pass) => SlotUse::Kept,
            RowExtent::Elements(_) => SlotUse::Part,
            _ if reads.any(|e| !matches!(e, RowExtent::Once(_))) => SlotUse::Spread,
            _ => SlotUse::Once,
        }
    }

    /// A slot that no call from this one on reads.
    fn free_slot(&mut self, at: usize, use_: SlotUse) -> usize {
        let fits = |slot: &usize| {
            let free = self.held[*slot].is_none_or(|last| last < at);
            use_ == SlotUse::Part && self.program.slots[*slot] == use_ && free
        };
        (0..self.program.slots.len()).find(fits).unwrap_or_else(|| {
            self.program.slots.push(use_);
            self.held.push(None);
            self.program.slots.len() - 1
        })
    }
}

/// The positions of the nodes that read each value, or a view of it.
pub(super) fn readers(body: &Graph) -> Table<ValueId, SmallVec<[usize; 4]>> {
    let mut readers: Table<ValueId, SmallVec<[usize; 4]>> = Table::new();
    // What each view shows.
    let mut shown: Table<ValueId, SmallVec<[ValueId; 2]>> = Table::new();
    for (at, id) in body.order.iter().enumerate() {
        let node = &body.nodes[*id];
        let mut read: SmallVec<[ValueId; 8]> = SmallVec::new();
        for v in node.operands() {
            read.push(v);
            read.extend_from_slice(&shown[v]);
        }
        for v in &read {
            let of = readers.entry(*v);
            if of.last() != Some(&at) {
                of.push(at);
            }
        }
        if node.op.def().view.is_some() {
            node.results.iter().for_each(|r| shown.set(*r, read.iter().copied().collect()));
        }
    }
    readers
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

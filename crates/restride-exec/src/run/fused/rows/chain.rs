//! Chains: calls behind each other whose formulas are one piece of machine code ([`MachineCode`]). What only the chain itself reads is
//! in no buffer.

use super::{RowCall, RowPlaces, RowSource, RowTensor, RowWalk, RowWork};
use crate::machine_code::{CodeBody, CodeItem, LANES, MachineCode};
use restride_tensor::{DType, Formula, FormulaFn, FormulaTerm};
use smallvec::SmallVec;
use std::sync::Arc;

/// Most addresses of a chain.
const ADDRESSES: usize = 24;
/// Most steps of a chain.
const STEPS: usize = 512;
/// Most sums of a chain.
pub(super) const SUMS: usize = 4;

/// Calls that run as one.
pub(super) struct RowChain {
    code: Arc<MachineCode>,
    /// The same where all elements of a part have one scale and one shift, if a call has such.
    shared: Option<Arc<MachineCode>>,
    /// The chain for rows that it reads and writes where they lie, if it reads tensors that have one element for all of a row.
    rows: Option<Box<RowChain>>,
    /// Number of calls.
    pub len: usize,
    /// How many of its calls are sums, whose addresses come first.
    pub sums: usize,
    /// What it reads, and what it writes behind that.
    sources: SmallVec<[ChainSource; 8]>,
    results: SmallVec<[ChainResult; 2]>,
}

/// What a chain reads.
#[derive(Clone, Copy, PartialEq)]
enum ChainSource {
    Row(RowSource),
    /// A source that has one element for all of a row.
    Shared(RowSource),
    /// The scales of this number.
    Scales(usize),
    Shifts(usize),
}

/// Where a result of a chain goes.
#[derive(Clone, Copy)]
enum ChainResult {
    Slot(usize),
    Tensor(usize),
}

impl RowChain {
    /// The chain of some calls with their formulas. `read_later` says whether a call behind the chain reads the buffer of one of them, and
    /// `repeats` whether a source has one element for all of a row. In a program that joins rows all calls run on whole rows, or parts of one.
    pub fn of(
        calls: &[RowCall],
        formulas: &[FormulaFn],
        constants: &[f32],
        read_later: impl Fn(usize) -> bool,
        repeats: impl Fn(RowSource) -> bool,
        joined: bool,
    ) -> Option<RowChain> {
        let scaled = calls.iter().any(|call| matches!(call.work, RowWork::Scale(..)));
        let with = |one_scale: bool, repeats: &dyn Fn(RowSource) -> bool| {
            RowChain::with(calls, formulas, constants, &read_later, one_scale, repeats)
        };
        let shared = if scaled { Some(with(true, &|_| false)?.code) } else { None };
        let chain = if joined { with(false, &repeats)? } else { with(false, &|_| false)? };
        let some = |s: &ChainSource| matches!(s, ChainSource::Row(source) if repeats(*source));
        let rows = chain.sources.iter().any(some).then(|| with(false, &repeats).map(Box::new)).flatten();
        Some(RowChain { shared, rows, ..chain })
    }

    /// As [`RowChain::of`], with one scale and one shift for all elements, or one for each.
    fn with(
        calls: &[RowCall],
        formulas: &[FormulaFn],
        constants: &[f32],
        read_later: &dyn Fn(usize) -> bool,
        shared: bool,
        repeats: &dyn Fn(RowSource) -> bool,
    ) -> Option<RowChain> {
        let formula = Formula::default();
        let sums = calls.iter().filter(|call| matches!(call.work, RowWork::Fold(..))).count();
        let mut sources: SmallVec<[ChainSource; 8]> = SmallVec::new();
        let mut results: SmallVec<[ChainResult; 2]> = SmallVec::new();
        let mut added = 0;
        let mut ends: SmallVec<[CodeItem; 8]> = SmallVec::new();
        let mut slots: SmallVec<[(usize, FormulaTerm<'_>); 8]> = SmallVec::new();
        for (at, (call, f)) in calls.iter().zip(formulas).enumerate() {
            let mut number = |source: ChainSource| {
                let known = sources.iter().position(|s| *s == source);
                known.unwrap_or_else(|| {
                    sources.push(source);
                    sources.len() - 1
                }) as u16
                    + sums as u16
            };
            let mut operand = |source: &RowSource| match *source {
                RowSource::Constant(k) => formula.number(constants[k]),
                RowSource::Slot(k) if let Some((_, term)) = slots.iter().rev().find(|(own, _)| *own == k) => *term,
                _ if repeats(*source) => formula.shared(number(ChainSource::Shared(*source))),
                _ => formula.operand(number(ChainSource::Row(*source))),
            };
            let mut operands: SmallVec<[FormulaTerm<'_>; 8]> = call.work.sources().iter().map(&mut operand).collect();
            if let RowWork::Scale(_, _, k) = call.work {
                for factor in [ChainSource::Scales(k), ChainSource::Shifts(k)] {
                    let k = number(factor);
                    operands.push(if shared { formula.shared(k) } else { formula.operand(k) });
                }
            }
            if let RowWork::Fold(..) = call.work {
                ends.push(CodeItem::Sum(operands[0].at(), added));
                added += 1;
                continue;
            }
            let result = f(&operands);
            let result = if call.work.asks() { result.as_number() } else { result };
            slots.extend(call.to.slot.map(|slot| (slot, result)));
            let slot = call.to.slot.filter(|_| read_later(at)).map(ChainResult::Slot);
            for to in slot.into_iter().chain(call.to.tensor.map(ChainResult::Tensor)) {
                results.push(to);
                // The number of its address is known when all sources are.
                ends.push(CodeItem::Store(result.at(), 0));
            }
        }
        let (steps, addresses) = (formula.steps(), sums + sources.len() + results.len());
        if addresses > ADDRESSES || steps.len() > STEPS {
            return None;
        }
        let mut next = (sums + sources.len()) as u16;
        for end in &mut ends {
            if let CodeItem::Store(_, to) = end {
                *to = next;
                next += 1;
            }
        }
        let body = CodeBody::new(steps, &ends, addresses);
        let code = MachineCode::of(body)?;
        Some(RowChain { code, shared: None, rows: None, len: calls.len(), sums, sources, results })
    }

    /// Whether it always computes its calls as one: they have no scales of channels.
    pub fn is_one(&self) -> bool {
        self.shared.is_none()
    }

    /// The slots that it reads or writes in memory, element by element.
    pub fn slots(&self) -> impl Iterator<Item = usize> {
        let read = self.rows_of().filter_map(|s| match s {
            RowSource::Slot(k) => Some(k),
            _ => None,
        });
        read.chain(self.results.iter().filter_map(|r| match r {
            ChainResult::Slot(k) => Some(*k),
            ChainResult::Tensor(_) => None,
        }))
    }

    /// The sources that it reads element by element.
    pub fn rows_of(&self) -> impl Iterator<Item = RowSource> {
        self.sources.iter().filter_map(|s| match s {
            ChainSource::Row(source) => Some(*source),
            _ => None,
        })
    }

    /// Computes the elements of some rows behind each other, `n` a row, if calls have one scale for all elements or one for each: whether
    /// it did. Sums of a row are added up in `lanes`, for each sum [`LANES`] a row.
    ///
    /// # Safety
    /// The places are valid for all elements; no one else uses the results' elements, which share cells only with operands of the same
    /// index.
    pub unsafe fn run<'a>(
        &self,
        places: &RowPlaces<
            impl Fn(RowSource) -> &'a [f32],
            impl Fn(RowSource) -> (*mut f32, isize),
            impl Fn(usize) -> Option<(&'a [f32], &'a [f32])>,
            impl Fn(usize) -> *mut f32,
            impl Fn(usize) -> Option<*mut f32>,
            impl Fn(usize) -> *mut f32,
            impl Fn(usize, &[f32]),
        >,
        (n, rows): (usize, usize),
        lanes: &[*mut f32],
    ) -> bool {
        // Without sums and what a row has one of, all rows are one.
        let by_row = self.sums > 0 || self.sources.iter().any(|s| matches!(s, ChainSource::Shared(_)));
        let (n, rows) = if by_row { (n, rows) } else { (n * rows, 1) };
        let mut addresses = [std::ptr::null_mut(); ADDRESSES];
        addresses[..self.sums].copy_from_slice(&lanes[..self.sums]);
        let mut spares: SmallVec<[(usize, *mut f32); 2]> = SmallVec::new();
        // Whether all elements have one scale and one shift, or each has its own.
        let mut one = None;
        let mut distances = [(n * size_of::<f32>()) as isize; ADDRESSES];
        distances[..self.sums].fill((LANES * size_of::<f32>()) as isize);
        for ((to, apart), source) in
            addresses[self.sums..].iter_mut().zip(&mut distances[self.sums..]).zip(&self.sources)
        {
            let row = match *source {
                ChainSource::Shared(source) => {
                    (*to, *apart) = (places.repeated)(source);
                    continue;
                }
                ChainSource::Row(source) => (places.source)(source),
                ChainSource::Scales(k) | ChainSource::Shifts(k) => {
                    let Some((scales, shifts)) = (places.factors)(k) else { return false };
                    let shared = scales.len() == 1;
                    if *one.get_or_insert(shared) != shared || !shared && scales.len() < n * rows {
                        return false;
                    }
                    if matches!(source, ChainSource::Scales(_)) { scales } else { shifts }
                }
            };
            *to = row.as_ptr().cast_mut();
        }
        let code = self.shared.as_ref().filter(|_| one == Some(true)).unwrap_or(&self.code);
        for (to, result) in addresses[self.sums + self.sources.len()..].iter_mut().zip(&self.results) {
            *to = match *result {
                ChainResult::Slot(k) => (places.slot)(k),
                ChainResult::Tensor(k) => (places.tensor)(k).unwrap_or_else(|| {
                    let spare = (places.spare)(k);
                    spares.push((k, spare));
                    spare
                }),
            };
        }
        let count = self.sums + self.sources.len() + self.results.len();
        // SAFETY: as promised by the caller.
        unsafe { code.run(&mut addresses[..count], &distances[..count], n, rows) };
        for (k, from) in spares {
            // SAFETY: what was just written.
            (places.store)(k, unsafe { std::slice::from_raw_parts(from, n * rows) });
        }
        true
    }

    /// Computes all rows of a walk where they lie, if the elements of all that it reads and writes are neighbours in memory or one for all
    /// of a row, of `f32`: whether it did.
    ///
    /// # Safety
    /// The addresses are valid as far as the walk reaches. No one else uses the results' elements, which share cells only with operands
    /// of the same index.
    pub unsafe fn run_rows(&self, walk: &RowWalk, tensors: &[RowTensor], bases: &[*mut u8]) -> bool {
        let chain = self.rows.as_deref().unwrap_or(self);
        let read = chain.sources.iter().map(|source| match source {
            ChainSource::Row(RowSource::Tensor(k)) => Some((*k, 1)),
            ChainSource::Shared(RowSource::Tensor(k)) => Some((*k, 0)),
            _ => None,
        });
        let written = chain.results.iter().map(|result| match result {
            ChainResult::Tensor(k) => Some((*k, 1)),
            ChainResult::Slot(_) => None,
        });
        let lies = |(k, stride): &(usize, isize)| walk.strides[*k] == *stride && tensors[*k].dtype == DType::F32;
        let all: Option<SmallVec<[usize; 8]>> = read.chain(written).map(|k| Some(k.filter(lies)?.0)).collect();
        let Some(all) = all else { return false };
        let mut addresses = [std::ptr::null_mut(); ADDRESSES];
        walk.for_each_run(|at, steps, rows| {
            let mut distances = [0; ADDRESSES];
            for ((to, apart), &k) in addresses.iter_mut().zip(&mut distances).zip(&all) {
                *to = tensors[k].cell(bases[k], at[k]).cast();
                *apart = steps.map_or(0, |steps| steps[k] * size_of::<f32>() as isize);
            }
            // SAFETY: as promised by the caller.
            unsafe { chain.code.run(&mut addresses[..all.len()], &distances[..all.len()], walk.len, rows) };
        });
        true
    }
}

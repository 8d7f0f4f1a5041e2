//! Versions of memory, and the values saved in it.

use super::mode::{self, Saved};
use super::tensor::Tensor;
use crate::copy::copy_as;
use restride_ir::{Error, ErrorKind, Result};
use restride_tensor::{DType, Layout, Overlap, RawTensor, overlap_bytes};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// A tensor's cells in its memory, and how they are read.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Region {
    pub dtype: DType,
    pub layout: Layout,
    pub conj: bool,
    pub neg: bool,
}

impl Region {
    pub fn of(t: &RawTensor) -> Region {
        Region { dtype: t.dtype(), layout: t.layout().clone(), conj: t.conj, neg: t.neg }
    }

    /// Whether the regions share a byte; also true where that is too hard to decide.
    pub fn meets(&self, other: &Region) -> bool {
        if self.layout.sizes.contains(&0) || other.layout.sizes.contains(&0) {
            return false;
        }
        overlap_bytes(&self.layout, self.dtype.size(), &other.layout, other.dtype.size()) != Overlap::Disjoint
    }
}

/// The version and the saved values of one storage, shared by its tensors.
#[derive(Default)]
pub(super) struct TapeStorage {
    version: Cell<u64>,
    /// Values saved here that a backward pass may still read.
    records: RefCell<Vec<Weak<Record>>>,
}

/// A value saved in memory that others may write.
pub(super) struct Record {
    region: Region,
    version: u64,
    how: Saved,
    state: RefCell<RecordState>,
}

enum RecordState {
    Fresh,
    /// Some cell was written.
    Overwritten,
    /// Copied before a cell was written.
    Kept(RawTensor),
}

thread_local! {
    /// Targets of calls that run now.
    static WRITING: RefCell<Vec<Pending>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone)]
struct Pending {
    memory: Rc<TapeStorage>,
    region: Region,
    /// The object that is written; `None` for one that is written part by part, whose parts are saved.
    object: Option<usize>,
}

/// A guard of the targets in [`WRITING`]: while it lives, a value saved in cells that will be written is copied.
pub(super) struct Writing(usize);

impl Drop for Writing {
    fn drop(&mut self) {
        WRITING.with_borrow_mut(|w| w.truncate(self.0));
    }
}

/// Announces the targets of a write.
pub(super) fn writing<'a>(targets: impl Iterator<Item = &'a Tensor>) -> Writing {
    pending(targets.map(|t| Pending { memory: t.memory(), region: t.region(), object: Some(t.object_id()) }))
}

/// Announces a write part by part.
pub(super) fn writing_parts(target: &Tensor) -> Writing {
    pending(std::iter::once(Pending { memory: target.memory(), region: target.region(), object: None }))
}

fn pending(targets: impl Iterator<Item = Pending>) -> Writing {
    WRITING.with_borrow_mut(|w| {
        let before = w.len();
        w.extend(targets);
        Writing(before)
    })
}

/// Whether the call that saves a value now is about to overwrite it. PyTorch then copies the target itself, and no other operand.
pub(super) fn about_to_be_written(t: &Tensor) -> bool {
    WRITING.with_borrow(|w| {
        w.iter().any(|p| {
            Rc::ptr_eq(&p.memory, &t.memory())
                && match p.object {
                    Some(object) if mode::strict() => object == t.object_id(),
                    _ => p.region.meets(&t.region()),
                }
        })
    })
}

impl TapeStorage {
    /// Number of writes so far.
    pub fn version(&self) -> u64 {
        self.version.get()
    }

    /// Counts a write that changes no cell.
    pub fn touch(&self) {
        self.version.set(self.version.get() + 1);
    }

    fn live(&self) -> Vec<Rc<Record>> {
        let mut records = self.records.borrow_mut();
        records.retain(|r| r.strong_count() > 0);
        records.iter().filter_map(Weak::upgrade).collect()
    }
}

/// A write about to happen: finds the values saved in its cells before, and marks them after it.
pub(super) struct GuardedWrite {
    memory: Rc<TapeStorage>,
    hit: Vec<Rc<Record>>,
}

/// Prepares a write: values that are kept are copied.
pub(super) fn before_write(target: &Tensor) -> Result<GuardedWrite> {
    let (memory, region) = (target.memory(), target.region());
    let mut hit = Vec::new();
    for r in memory.live() {
        if !matches!(*r.state.borrow(), RecordState::Fresh) || !r.region.meets(&region) {
            continue;
        }
        if r.how == Saved::CloneOnWrite {
            let at = &r.region;
            let raw = target.raw().alias(at.dtype, at.layout.clone());
            let mut raw = raw.ok_or_else(|| Error::invalid("a saved value outside of its memory"))?;
            (raw.conj, raw.neg) = (at.conj, at.neg);
            *r.state.borrow_mut() = RecordState::Kept(copied(&raw)?);
        } else {
            hit.push(r);
        }
    }
    Ok(GuardedWrite { memory, hit })
}

impl GuardedWrite {
    /// The write has happened.
    pub fn done(self) {
        self.memory.touch();
        for r in self.hit {
            *r.state.borrow_mut() = RecordState::Overwritten;
        }
    }
}

/// A copy of the elements on memory of its own, with the same lazy bits.
pub(super) fn copied(raw: &RawTensor) -> Result<RawTensor> {
    let mut plain = raw.clone();
    (plain.conj, plain.neg) = (false, false);
    let mut own = copy_as(&plain, restride_ir::dense_like(raw.layout()))?;
    (own.conj, own.neg) = (raw.conj, raw.neg);
    Ok(own)
}

/// PyTorch's error about a value that was written over after it was saved. `whose` says whose result it is.
pub(super) fn overwritten(dtype: DType, sizes: &[i64], whose: &str, version: u64, expected: u64) -> Error {
    let what = format!(
        "one of the variables needed for gradient computation has been modified by an inplace operation: [{dtype}{sizes:?}]{whose}, \
         is at version {version}; expected version {expected} instead"
    );
    Error::new(ErrorKind::Program, what)
        .help("write a clone of it, or keep copies of overwritten values (Saved::CloneOnWrite)")
}

/// A value that a gradient reads.
pub(super) struct SavedValue {
    raw: RawTensor,
    memory: Rc<TapeStorage>,
    /// `None` for a private copy.
    record: Option<Rc<Record>>,
}

impl SavedValue {
    /// Saves a tensor's present value.
    pub fn new(t: &Tensor) -> Result<SavedValue> {
        SavedValue::guarded(t, mode::saved())
    }

    /// Saves a tensor's present value with this guard.
    pub fn guarded(t: &Tensor, how: Saved) -> Result<SavedValue> {
        let raw = t.raw();
        if about_to_be_written(t) {
            return Ok(SavedValue { raw: copied(&raw)?, memory: Rc::default(), record: None });
        }
        let memory = t.memory();
        let (region, version) = (Region::of(&raw), memory.version());
        // One record, and one copy, for a value that is saved many times.
        let same = |r: &Rc<Record>| {
            r.how == how
                && r.version == version
                && r.region == region
                && matches!(*r.state.borrow(), RecordState::Fresh)
        };
        let found = memory.live().into_iter().rev().find(same);
        let record = found.unwrap_or_else(|| {
            let record = Rc::new(Record { region, version, how, state: RefCell::new(RecordState::Fresh) });
            memory.records.borrow_mut().push(Rc::downgrade(&record));
            record
        });
        Ok(SavedValue { raw, memory, record: Some(record) })
    }

    /// The value as it was saved. `whose` names, for the error, the call whose result it is.
    pub fn get(&self, whose: impl FnOnce() -> String) -> Result<(RawTensor, Rc<TapeStorage>)> {
        let Some(record) = &self.record else { return Ok((self.raw.clone(), self.memory.clone())) };
        let written = match (&*record.state.borrow(), record.how) {
            (RecordState::Kept(own), _) => return Ok((own.clone(), Rc::default())),
            (RecordState::Overwritten, _) => true,
            (RecordState::Fresh, Saved::Strict) => self.memory.version() != record.version,
            (RecordState::Fresh, _) => false,
        };
        if !written {
            return Ok((self.raw.clone(), self.memory.clone()));
        }
        let sizes = &self.raw.layout().sizes;
        Err(overwritten(self.raw.dtype(), sizes, &whose(), self.memory.version(), record.version))
    }

    /// How it is guarded; `None` for a copy.
    pub fn how(&self) -> Option<Saved> {
        self.record.as_ref().map(|r| r.how)
    }

    /// Whether it has a tensor's memory and layout.
    pub fn is_of(&self, t: &Tensor) -> bool {
        let raw = t.raw();
        self.raw.storage().same(raw.storage()) && self.raw.layout() == raw.layout()
    }
}

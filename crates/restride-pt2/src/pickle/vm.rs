//! The stack machine. Objects live in one arena and refer to each other by index, as lists and dictionaries are
//! filled after others may already refer to them.

use super::build;
use super::value::{PickleTensor, PickleValue};
use crate::dtype::FileDType;
use crate::error::{Pt2Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Deepest nesting of the result.
const MAX_DEPTH: usize = 200;
/// Most values of the result for each byte of pickle, beyond a fixed allowance: a hostile pickle shares objects to make its
/// result exponentially larger than its bytes.
const VALUES_PER_BYTE: usize = 16;
const VALUES_ALLOWED: usize = 1 << 16;

/// Position of an object in [`PickleObjects`].
pub type ObjectId = usize;

/// An object of a pickle, with its parts by position: objects that the pickle shares stay shared.
#[derive(Debug, Clone)]
pub enum PickleObject {
    /// `None`
    None,
    /// a `bool`
    Bool(bool),
    /// an `int`
    Int(i64),
    /// a `float`
    Float(f64),
    /// a `complex`
    Complex(f64, f64),
    /// a `str`
    Str(Arc<str>),
    /// `bytes`
    Bytes(Arc<[u8]>),
    /// a `tuple`
    Tuple(Vec<ObjectId>),
    /// a `list`
    List(Vec<ObjectId>),
    /// a `set`
    Set(Vec<ObjectId>),
    /// a `dict`, in the order of its items; later items of a key replace earlier ones
    Dict(Vec<(ObjectId, ObjectId)>),
    /// a `torch.Size`
    Size(Vec<i64>),
    /// a `torch.dtype`
    DType(FileDType),
    /// a `torch.device`
    Device(String, Option<i64>),
    /// a tensor
    Tensor(Arc<PickleTensor>),
    /// The storage of a persistent id.
    Storage(PickleStorage),
    /// A class or function.
    Global(Arc<str>),
    /// An object made by calling a class or function that is not known, and what it was called with.
    Opaque(Arc<str>, Vec<ObjectId>),
}

/// A storage that a pickle names.
#[derive(Debug, Clone)]
pub struct PickleStorage {
    /// None for a storage of bytes, whose tensors bring their own type.
    pub(super) dtype: Option<FileDType>,
    pub(super) key: Arc<str>,
    pub(super) bytes: u64,
}

/// All objects of a pickle.
#[derive(Debug, Clone)]
pub struct PickleObjects {
    /// The objects; parts are named by position.
    pub objects: Vec<PickleObject>,
    /// The state that objects of unknown classes were given.
    pub states: BTreeMap<ObjectId, ObjectId>,
    /// The object that was saved.
    pub root: ObjectId,
}

/// Called for every storage that the pickle names, with its size in bytes; refuses storages that the file lacks.
pub(super) type Require<'r> = dyn FnMut(&str, u64) -> Result<()> + 'r;

pub(super) fn run(program: &[u8], require: &mut Require<'_>) -> Result<PickleValue> {
    let (vm, result) = executed(program, require)?;
    let mut budget = budget_of(program);
    vm.value(result, MAX_DEPTH, &mut budget)
}

/// The objects that the pickle makes, as the graph that they are.
pub(super) fn objects(program: &[u8], require: &mut Require<'_>) -> Result<PickleObjects> {
    let (vm, root) = executed(program, require)?;
    Ok(PickleObjects { objects: vm.objects, states: vm.states, root })
}

fn executed<'p, 'r>(program: &'p [u8], require: &'r mut Require<'r>) -> Result<(Vm<'p, 'r>, ObjectId)> {
    let mut vm = Vm {
        code: program,
        at: 0,
        objects: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
        states: BTreeMap::new(),
        work: budget_of(program),
        require,
    };
    let result = vm.execute().map_err(|e| e.at(format!("pickle byte {}", vm.at)))?;
    Ok((vm, result))
}

fn budget_of(program: &[u8]) -> usize {
    VALUES_ALLOWED.saturating_add(program.len().saturating_mul(VALUES_PER_BYTE))
}

pub(super) struct Vm<'p, 'r> {
    code: &'p [u8],
    at: usize,
    objects: Vec<PickleObject>,
    stack: Vec<ObjectId>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: Vec<Option<ObjectId>>,
    /// States of objects of unknown classes.
    states: BTreeMap<ObjectId, ObjectId>,
    /// Parts of objects that may still be copied.
    work: usize,
    pub(super) require: &'r mut Require<'r>,
}

fn empty() -> Pt2Error {
    Pt2Error::malformed("the pickle takes more from its stack than there is")
}

impl<'p> Vm<'p, '_> {
    fn take(&mut self, n: usize) -> Result<&'p [u8]> {
        let end = self.at.checked_add(n).filter(|&e| e <= self.code.len());
        let end = end.ok_or_else(|| Pt2Error::malformed("the pickle is cut short"))?;
        let bytes = &self.code[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    /// An unsigned number of `n` bytes, at most eight.
    fn number(&mut self, n: usize) -> Result<u64> {
        let bytes = self.take(n)?;
        Ok(bytes.iter().rev().fold(0, |v, &b| (v << 8) | u64::from(b)))
    }

    fn sized(&mut self, n: usize) -> Result<&'p [u8]> {
        let len = self.number(n)?;
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    fn line(&mut self) -> Result<&'p str> {
        let rest = &self.code[self.at..];
        let len =
            rest.iter().position(|&b| b == b'\n').ok_or_else(|| Pt2Error::malformed("the pickle is cut short"))?;
        self.at += len + 1;
        text(&rest[..len])
    }

    pub(super) fn object(&self, id: ObjectId) -> &PickleObject {
        &self.objects[id]
    }

    /// Pays for copying `n` parts of an object.
    pub(super) fn charge(&mut self, n: usize) -> Result<()> {
        self.work = self
            .work
            .checked_sub(n)
            .ok_or_else(|| Pt2Error::too_large("the pickle asks for far more work than it has bytes"))?;
        Ok(())
    }

    pub(super) fn add(&mut self, object: PickleObject) -> ObjectId {
        self.objects.push(object);
        self.objects.len() - 1
    }

    fn push(&mut self, object: PickleObject) {
        let id = self.add(object);
        self.stack.push(id);
    }

    /// The lowest height that a pop may reach: the last mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<ObjectId> {
        if self.stack.len() <= self.floor() {
            return Err(empty());
        }
        self.stack.pop().ok_or_else(empty)
    }

    fn top(&self) -> Result<ObjectId> {
        if self.stack.len() <= self.floor() {
            return Err(empty());
        }
        self.stack.last().copied().ok_or_else(empty)
    }

    fn pop_many(&mut self, n: usize) -> Result<Vec<ObjectId>> {
        let start = self.stack.len().checked_sub(n).filter(|&s| s >= self.floor()).ok_or_else(empty)?;
        Ok(self.stack.split_off(start))
    }

    fn pop_mark(&mut self) -> Result<Vec<ObjectId>> {
        let height = self.marks.pop().ok_or_else(empty)?;
        Ok(self.stack.split_off(height))
    }

    fn string(&self, id: ObjectId) -> Result<Arc<str>> {
        match &self.objects[id] {
            PickleObject::Str(s) => Ok(s.clone()),
            _ => Err(Pt2Error::malformed("the pickle has no string where it needs one")),
        }
    }

    fn remember(&mut self, slot: u64) -> Result<()> {
        let id = self.top()?;
        // Slots are numbered as they are made, so there are fewer than bytes.
        let slot = usize::try_from(slot)
            .ok()
            .filter(|&s| s <= self.code.len())
            .ok_or_else(|| Pt2Error::too_large(format!("pickle memo slot {slot}")))?;
        if self.memo.len() <= slot {
            self.memo.resize(slot + 1, None);
        }
        self.memo[slot] = Some(id);
        Ok(())
    }

    fn recall(&mut self, slot: u64) -> Result<()> {
        let id = usize::try_from(slot)
            .ok()
            .and_then(|s| self.memo.get(s).copied().flatten())
            .ok_or_else(|| Pt2Error::malformed(format!("pickle memo slot {slot} is empty")))?;
        self.stack.push(id);
        Ok(())
    }

    fn execute(&mut self) -> Result<ObjectId> {
        loop {
            let op = self.take(1)?[0];
            match op {
                b'.' => return self.pop(),
                0x80 => {
                    let version = self.number(1)?;
                    if version > 5 {
                        return Err(Pt2Error::unsupported(format!("pickle protocol {version}")));
                    }
                }
                0x95 => {
                    self.take(8)?; // a frame's length says nothing new
                }
                b'(' => self.marks.push(self.stack.len()),
                b'0' => {
                    // As Python does: right after a mark, it is the mark that goes.
                    if self.marks.last() == Some(&self.stack.len()) {
                        self.marks.pop();
                    } else {
                        self.pop()?;
                    }
                }
                b'1' => {
                    self.pop_mark()?;
                }
                b'2' => {
                    let id = self.top()?;
                    self.stack.push(id);
                }
                b'q' => {
                    let slot = self.number(1)?;
                    self.remember(slot)?;
                }
                b'r' => {
                    let slot = self.number(4)?;
                    self.remember(slot)?;
                }
                0x94 => self.remember(self.memo.len() as u64)?,
                b'h' => {
                    let slot = self.number(1)?;
                    self.recall(slot)?;
                }
                b'j' => {
                    let slot = self.number(4)?;
                    self.recall(slot)?;
                }
                _ => {
                    if !self.literal(op)? && !self.container(op)? {
                        self.class(op)?;
                    }
                }
            }
        }
    }

    /// Operations that push a constant.
    fn literal(&mut self, op: u8) -> Result<bool> {
        let object = match op {
            b'N' => PickleObject::None,
            0x88 => PickleObject::Bool(true),
            0x89 => PickleObject::Bool(false),
            b'K' => PickleObject::Int(self.number(1)? as i64),
            b'M' => PickleObject::Int(self.number(2)? as i64),
            b'J' => PickleObject::Int(i64::from(self.number(4)? as u32 as i32)),
            0x8a => PickleObject::Int(long(self.sized(1)?)?),
            0x8b => PickleObject::Int(long(self.sized(4)?)?),
            b'G' => PickleObject::Float(f64::from_bits(self.number(8)?.swap_bytes())),
            b'X' => PickleObject::Str(text(self.sized(4)?)?.into()),
            0x8c => PickleObject::Str(text(self.sized(1)?)?.into()),
            0x8d => PickleObject::Str(text(self.sized(8)?)?.into()),
            b'C' | b'U' => PickleObject::Bytes(self.sized(1)?.into()),
            b'B' | b'T' => PickleObject::Bytes(self.sized(4)?.into()),
            0x8e | 0x96 => PickleObject::Bytes(self.sized(8)?.into()),
            _ => return Ok(false),
        };
        self.push(object);
        Ok(true)
    }

    /// Operations that make or fill containers.
    fn container(&mut self, op: u8) -> Result<bool> {
        match op {
            b')' => self.push(PickleObject::Tuple(Vec::new())),
            b'}' => self.push(PickleObject::Dict(Vec::new())),
            b']' => self.push(PickleObject::List(Vec::new())),
            0x8f => self.push(PickleObject::Set(Vec::new())),
            0x85..=0x87 => {
                let items = self.pop_many(usize::from(op - 0x84))?;
                self.push(PickleObject::Tuple(items));
            }
            b't' => {
                let items = self.pop_mark()?;
                self.push(PickleObject::Tuple(items));
            }
            b'l' => {
                let items = self.pop_mark()?;
                self.push(PickleObject::List(items));
            }
            0x91 => {
                let items = self.pop_mark()?;
                self.push(PickleObject::Set(items));
            }
            b'd' => {
                let items = self.pop_mark()?;
                self.push(PickleObject::Dict(Vec::new()));
                self.fill(&items, true)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.fill(&[item], false)?;
            }
            b'e' | 0x90 => {
                let items = self.pop_mark()?;
                self.fill(&items, false)?;
            }
            b's' => {
                let items = self.pop_many(2)?;
                self.fill(&items, true)?;
            }
            b'u' => {
                let items = self.pop_mark()?;
                self.fill(&items, true)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Puts items, or keys and values in turn, into the container on top.
    fn fill(&mut self, items: &[ObjectId], pairs: bool) -> Result<()> {
        let target = self.top()?;
        match (&mut self.objects[target], pairs) {
            (PickleObject::List(list) | PickleObject::Set(list), false) => list.extend(items),
            (PickleObject::Dict(dict), true) if items.len().is_multiple_of(2) => {
                dict.extend(items.chunks_exact(2).map(|kv| (kv[0], kv[1])));
            }
            // An unknown class may do anything with items.
            (PickleObject::Opaque(..), _) => {}
            _ => return Err(Pt2Error::malformed("the pickle adds items to something other than a container")),
        }
        Ok(())
    }

    /// Operations that name or call classes and functions.
    fn class(&mut self, op: u8) -> Result<()> {
        match op {
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                let global = build::global(module, name);
                self.push(global);
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let global = build::global(&self.string(module)?, &self.string(name)?);
                self.push(global);
            }
            b'R' | 0x81 => {
                let (args, callee) = (self.pop()?, self.pop()?);
                let args = match self.object(args).clone() {
                    PickleObject::Tuple(args) => args,
                    // TorchScript calls the class of an enumeration with its value alone.
                    _ if matches!(self.object(callee), PickleObject::Global(c) if c.starts_with("__torch__")) => {
                        vec![args]
                    }
                    _ => return Err(Pt2Error::malformed("the pickle calls with no tuple of arguments")),
                };
                self.charge(args.len())?;
                let result = build::call(self, callee, &args)?;
                self.push(result);
            }
            0x92 => {
                let (_keywords, args, class) = (self.pop()?, self.pop()?, self.pop()?);
                let (PickleObject::Tuple(args), PickleObject::Global(name)) =
                    (self.object(args).clone(), self.object(class).clone())
                else {
                    return Err(Pt2Error::malformed("the pickle makes an object of no class"));
                };
                self.charge(args.len())?;
                self.push(PickleObject::Opaque(name, args));
            }
            b'b' => {
                // State of an object. A tensor's or dictionary's is attributes beside its content.
                let state = self.pop()?;
                let object = self.top()?;
                if let PickleObject::Opaque(..) = self.objects[object] {
                    self.states.insert(object, state);
                }
            }
            b'Q' => {
                let id = self.pop()?;
                let storage = build::persistent(self, id)?;
                self.push(storage);
            }
            op => {
                return Err(Pt2Error::unsupported(format!("pickle operation 0x{op:02x}")));
            }
        }
        Ok(())
    }

    /// Makes a tree of the object. Objects that contain themselves end at the depth limit, those that are shared
    /// without end at the budget.
    fn value(&self, id: ObjectId, depth: usize, budget: &mut usize) -> Result<PickleValue> {
        let below = depth
            .checked_sub(1)
            .ok_or_else(|| Pt2Error::too_large(format!("the pickle nests more than {MAX_DEPTH} deep")))?;
        let mut spend = |n: usize| -> Result<()> {
            *budget = budget
                .checked_sub(n)
                .ok_or_else(|| Pt2Error::too_large("the pickle makes far more objects than it has bytes"))?;
            Ok(())
        };
        spend(1)?;
        Ok(match self.object(id) {
            PickleObject::None => PickleValue::None,
            PickleObject::Bool(b) => PickleValue::Bool(*b),
            PickleObject::Int(n) => PickleValue::Int(*n),
            PickleObject::Float(x) => PickleValue::Float(*x),
            PickleObject::Complex(re, im) => PickleValue::Complex(*re, *im),
            PickleObject::Str(s) => PickleValue::Str(s.clone()),
            PickleObject::Bytes(b) => PickleValue::Bytes(b.clone()),
            PickleObject::Tuple(ids) => PickleValue::Tuple(self.values(ids, below, budget)?),
            PickleObject::List(ids) => PickleValue::List(self.values(ids, below, budget)?),
            PickleObject::Set(ids) => PickleValue::Set(self.values(ids, below, budget)?),
            PickleObject::Dict(pairs) => {
                let mut items = indexmap::IndexMap::<DictKey, (PickleValue, PickleValue)>::new();
                for &(k, v) in pairs {
                    let key = self.value(k, below, budget)?;
                    let value = self.value(v, below, budget)?;
                    items.insert(DictKey::of(&key, items.len())?, (key, value));
                }
                PickleValue::Dict(items.into_values().collect())
            }
            PickleObject::Size(sizes) => {
                spend(sizes.len())?;
                PickleValue::Size(sizes.clone())
            }
            PickleObject::DType(d) => PickleValue::DType(*d),
            PickleObject::Device(kind, index) => {
                spend(kind.len())?;
                PickleValue::Device { kind: kind.clone(), index: *index }
            }
            PickleObject::Tensor(t) => PickleValue::Tensor(t.clone()),
            PickleObject::Storage(s) => {
                PickleValue::Opaque { class: "torch.storage".into(), args: vec![PickleValue::Str(s.key.clone())] }
            }
            PickleObject::Global(name) => PickleValue::Opaque { class: name.clone(), args: Vec::new() },
            PickleObject::Opaque(class, ids) => {
                PickleValue::Opaque { class: class.clone(), args: self.values(ids, below, budget)? }
            }
        })
    }

    fn values(&self, ids: &[ObjectId], depth: usize, budget: &mut usize) -> Result<Vec<PickleValue>> {
        ids.iter().map(|&i| self.value(i, depth, budget)).collect()
    }
}

/// A dictionary key by Python's equality. A later item replaces an earlier one of the same key.
#[derive(PartialEq, Eq, Hash)]
enum DictKey {
    None,
    Int(i64),
    Float(u64),
    Str(Arc<str>),
    Bytes(Arc<[u8]>),
    /// A key of another type, taken to differ from all others.
    Other(usize),
}

impl DictKey {
    fn of(value: &PickleValue, position: usize) -> Result<Self> {
        Ok(match value {
            PickleValue::None => Self::None,
            PickleValue::Bool(b) => Self::Int(i64::from(*b)),
            PickleValue::Int(n) => Self::Int(*n),
            PickleValue::Float(x) => Self::Float(x.to_bits()),
            PickleValue::Str(s) => Self::Str(s.clone()),
            PickleValue::Bytes(b) => Self::Bytes(b.clone()),
            PickleValue::List(_) | PickleValue::Dict(_) | PickleValue::Set(_) => {
                return Err(Pt2Error::malformed(format!("the pickle has {} as a dictionary's key", value.kind())));
            }
            _ => Self::Other(position),
        })
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Pt2Error::malformed("the pickle has a string that is not UTF-8"))
}

/// A little-endian two's complement number of any length.
fn long(bytes: &[u8]) -> Result<i64> {
    let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let mut word = [fill; 8];
    for (i, &b) in bytes.iter().enumerate() {
        match word.get_mut(i) {
            Some(w) => *w = b,
            None if b == fill => {}
            None => return Err(Pt2Error::too_large("an integer of more than 64 bits")),
        }
    }
    let value = i64::from_le_bytes(word);
    if bytes.len() > 8 && (value < 0) != negative {
        return Err(Pt2Error::too_large("an integer of more than 64 bits"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::long;

    #[test]
    fn longs() {
        assert_eq!(long(&[]), Ok(0));
        assert_eq!(long(&[0xff]), Ok(-1));
        assert_eq!(long(&[0xff, 0]), Ok(255));
        assert_eq!(long(&i64::MIN.to_le_bytes()), Ok(i64::MIN));
        let mut nine = u64::MAX.to_le_bytes().to_vec();
        nine.push(0);
        assert!(long(&nine).is_err());
        nine[8] = 0xff;
        assert_eq!(long(&nine), Ok(-1));
        nine[8] = 1;
        assert!(long(&nine).is_err());
    }
}

//! Machine code of formulas: what a chain of calls computes of an element, without a row in memory between two of them.
//!
//! *What it computes.* Each step has the bits of its operation on `f32` ([`restride_tensor::evaluate`]), whatever the other steps are:
//! nothing is contracted or put in another order. Tests hold random bodies to that.
//! *What it trusts.* Whoever runs it says which addresses are valid and that no element is written before it is read.
//! *Where there is none.* On processors without AVX2 or of another kind than x86-64, under Miri, and where the system lets no memory be
//! executed or the process has thousands of pieces: there a body has no code, and its calls run one by one.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod assembler;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod emit;

use foldhash::HashMap;
use restride_tensor::FormulaStep;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// An item of a body, in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CodeItem {
    /// Computes a step, of steps computed before.
    Compute(u16),
    /// Stores a step to the elements at the address of this number.
    Store(u16, u16),
    /// Adds a step to lanes at the address of this number: that of element `i` to lane `i % LANES`.
    Sum(u16, u16),
}

/// Numbers that sums of a row's elements are added up in.
pub const LANES: usize = restride_kernels::reduce::parts::SIDE;

impl CodeItem {
    fn step(self) -> u16 {
        match self {
            CodeItem::Compute(step) | CodeItem::Store(step, _) | CodeItem::Sum(step, _) => step,
        }
    }
}

/// What code computes of each element; operands are the elements at the address of their number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CodeBody {
    pub steps: Vec<FormulaStep>,
    pub items: Vec<CodeItem>,
    /// Number of addresses.
    pub pointers: usize,
}

impl CodeBody {
    /// The body of stores and sums, with the steps that they need in front of them.
    pub fn new(steps: Vec<FormulaStep>, ends: &[CodeItem], pointers: usize) -> CodeBody {
        let mut needed = vec![false; steps.len()];
        ends.iter().for_each(|end| needed[usize::from(end.step())] = true);
        // A step names earlier ones alone.
        for at in (0..steps.len()).rev() {
            if needed[at] {
                steps[at].sources().for_each(|source| needed[usize::from(source)] = true);
            }
        }
        let mut items = Vec::new();
        let mut next = 0;
        for end in ends {
            let step = end.step();
            let computed = (next..=usize::from(step)).filter(|at| needed[*at]);
            items.extend(computed.map(|at| CodeItem::Compute(at as u16)));
            next = next.max(usize::from(step) + 1);
            items.push(*end);
        }
        CodeBody { steps, items, pointers }
    }
}

/// Code that can be called.
pub struct MachineCode {
    #[cfg_attr(any(not(target_arch = "x86_64"), miri), allow(dead_code))]
    map: memmap2::Mmap,
    /// Where the numbers stand behind the code.
    #[cfg_attr(any(not(target_arch = "x86_64"), miri), allow(dead_code))]
    numbers: usize,
    pointers: usize,
}

/// Most pieces of code at a time. Each piece is a memory mapping, and Linux allows a process 65,530 mappings.
const MOST: usize = 8192;

/// Code by what it computes, as long as someone keeps it.
static MADE: Mutex<Option<HashMap<CodeBody, Weak<MachineCode>>>> = Mutex::new(None);

impl MachineCode {
    /// The code of a body; `None` where there is none.
    pub fn of(body: CodeBody) -> Option<Arc<MachineCode>> {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let made = made.get_or_insert_default();
        if let Some(code) = made.get(&body).and_then(Weak::upgrade) {
            return Some(code);
        }
        // The table has as many entries as there is code, or twice that.
        if made.len() >= 64 && made.len().is_power_of_two() {
            made.retain(|_, code| code.strong_count() > 0);
        }
        if made.len() >= MOST {
            return None;
        }
        let code = Arc::new(assemble(&body)?);
        made.insert(body, Arc::downgrade(&code));
        Some(code)
    }

    /// Computes `rows` rows of `n` elements, whose first ones are `apart` in bytes at each address. The addresses are those of the last
    /// row, or as they were.
    ///
    /// # Safety
    /// The addresses, as many as the body has, are valid for the elements of all rows, or for the lanes of their sums; an element that is
    /// stored shares memory only with elements of the same index and row, which no item behind the store reads, and nothing else uses it.
    pub unsafe fn run(&self, addresses: &mut [*mut f32], apart: &[isize], n: usize, rows: usize) {
        assert_eq!((addresses.len(), apart.len()), (self.pointers, self.pointers), "one of each for each number");
        if rows == 0 {
            return;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: the bytes are a function of this type, made by `emit` for this processor; as promised by the caller.
        unsafe {
            type Function = unsafe extern "sysv64" fn(*mut *mut f32, usize, *const u8, usize, *const isize);
            let function: Function = std::mem::transmute(self.map.as_ptr());
            let numbers = self.map.as_ptr().add(self.numbers);
            function(addresses.as_mut_ptr(), n, numbers, rows, apart.as_ptr());
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        unreachable!("there is no code for {n} elements");
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn assemble(body: &CodeBody) -> Option<MachineCode> {
    if !std::arch::is_x86_feature_detected!("avx2") {
        return None;
    }
    let (mut bytes, table) = emit::emit(body);
    let numbers = bytes.len().next_multiple_of(64);
    bytes.resize(numbers, 0xcc);
    table.iter().for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()));
    let mut map = memmap2::MmapMut::map_anon(bytes.len()).ok()?;
    map.copy_from_slice(&bytes);
    let map = map.make_exec().ok()?;
    Some(MachineCode { map, numbers, pointers: body.pointers })
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn assemble(_: &CodeBody) -> Option<MachineCode> {
    None
}

#[cfg(test)]
mod tests;

//! Code of a [`CodeBody`] for x86-64 with AVX2: a loop over rows, in it one over vectors of eight elements, and the same once more with a
//! mask for the rest.
//!
//! The function takes a table of addresses in `rdi`, the number of a row's elements in `rsi`, a table of numbers in `rdx`, the number of
//! rows in `rcx`, and in `r8` a table of how far apart, in bytes, the rows at each address are. It counts rows on the stack and elements
//! in `rcx`, and moves the addresses of a row on, in registers or in their table. Values are in `ymm0` to `ymm14`; one that no register
//! is left for waits on the stack. `ymm15` is the mask.

use super::assembler::{
    ADD, AND, Assembler, BLEND, COMPARE, DIVIDE, General, LARGER, LOAD, LastOperand, MASKED_LOAD, MASKED_STORE,
    MULTIPLY, OR, R8, RAX, RCX, RDI, RDX, REPEAT, ROOT, ROUND, RSP, SIGNS, SMALLER, STORE, SUBTRACT, Vector, VectorOp,
    XOR,
};
use super::{CodeBody, CodeItem};
use restride_tensor::{BinaryStep, FormulaStep, UnaryStep};

/// Elements of a vector.
const LANES: usize = 8;
/// Registers for values.
const REGISTERS: usize = 15;
const MASK: Vector = Vector(15);
/// Registers for addresses; further ones are loaded at each use.
const POINTERS: [General; 10] = [
    General(8),
    General(9),
    General(10),
    General(11),
    General(3),
    General(5),
    General(12),
    General(13),
    General(14),
    General(15),
];
/// Those of them that belong to the caller.
const SAVED: &[General] = POINTERS.split_at(4).1;
/// Numbers of the table in front of those of the body: masks, from which eight are read.
const MASKS: [u32; 2 * LANES] = [!0, !0, !0, !0, !0, !0, !0, !0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Bytes of the stack below the values that wait there: the number of rows that are left, and the table of their distances.
const COUNTS: i32 = 32;
/// Bytes of a vector.
const VECTOR: i32 = 4 * LANES as i32;

/// The function's bytes and its table of numbers.
pub fn emit(body: &CodeBody) -> (Vec<u8>, Vec<u32>) {
    let mut uses = vec![Vec::new(); body.steps.len()];
    for (at, item) in body.items.iter().enumerate() {
        match *item {
            CodeItem::Compute(s) => body.steps[usize::from(s)].sources().for_each(|x| uses[usize::from(x)].push(at)),
            CodeItem::Store(s, _) | CodeItem::Sum(s, _) => uses[usize::from(s)].push(at),
        }
    }
    let mut e = Emitter {
        a: Assembler::default(),
        body,
        uses,
        numbers: MASKS.to_vec(),
        masked: false,
        has_lane: false,
        registers: vec![None; body.steps.len()],
        held: [None; REGISTERS],
        slots: vec![None; body.steps.len()],
        waiting: vec![false; body.steps.len()],
        used_slots: 0,
    };
    e.function();
    (e.a.bytes, e.numbers)
}

struct Emitter<'a> {
    a: Assembler,
    body: &'a CodeBody,
    /// Positions of the items that use a step.
    uses: Vec<Vec<usize>>,
    numbers: Vec<u32>,
    masked: bool,
    /// Whether `rax` has the lane of the vector's first element.
    has_lane: bool,
    /// Where a step's value is now, and what a register holds.
    registers: Vec<Option<Vector>>,
    held: [Option<u16>; REGISTERS],
    /// Places on the stack, and whether the value waits there.
    slots: Vec<Option<i32>>,
    waiting: Vec<bool>,
    used_slots: i32,
}

impl Emitter<'_> {
    fn function(&mut self) {
        // endbr64: where indirect calls have to land.
        self.a.raw(&[0xf3, 0x0f, 0x1e, 0xfa]);
        SAVED.iter().for_each(|r| self.a.push(*r));
        // sub rsp, …
        self.a.raw(&[0x48, 0x81, 0xec, 0, 0, 0, 0]);
        let frame = self.a.bytes.len() - 4;
        self.a.store_general(RCX, RSP, 0);
        self.a.store_general(R8, RSP, 8);
        for (k, r) in POINTERS.iter().enumerate().take(self.body.pointers) {
            self.a.load_general(*r, RDI, 8 * k as i32);
        }
        // The mask of the last n % 8 elements: mov eax, esi; and eax, 7; neg rax.
        self.a.raw(&[0x89, 0xf0, 0x83, 0xe0, 0x07, 0x48, 0xf7, 0xd8]);
        let masks = LastOperand::Memory { base: RDX, index: Some(RAX), offset: VECTOR };
        self.a.vector(LOAD, MASK, Vector(0), masks, None);
        // and rsi, -8
        self.a.raw(&[0x48, 0x83, 0xe6, 0xf8]);
        let row = self.a.bytes.len();
        // xor ecx, ecx; cmp rcx, rsi; jae rest
        self.a.raw(&[0x31, 0xc9, 0x48, 0x39, 0xf1]);
        let none = self.a.jump(0x83);
        let start = self.a.bytes.len();
        self.body(false);
        // add rcx, 8; cmp rcx, rsi; jb start
        self.a.raw(&[0x48, 0x83, 0xc1, LANES as u8, 0x48, 0x39, 0xf1]);
        let again = self.a.jump(0x82);
        self.a.land(again, start);
        let rest = self.a.bytes.len();
        self.a.land(none, rest);
        // test eax, eax; je end
        self.a.vector(SIGNS, Vector(RAX.0), Vector(0), LastOperand::Register(MASK), None);
        self.a.raw(&[0x85, 0xc0]);
        let no_rest = self.a.jump(0x84);
        self.body(true);
        let end = self.a.bytes.len();
        self.a.land(no_rest, end);
        // dec qword [rsp]; je last
        self.a.raw(&[0x48, 0xff, 0x0c, 0x24]);
        let no_row = self.a.jump(0x84);
        self.a.load_general(RAX, RSP, 8);
        for k in 0..self.body.pointers {
            let at = 8 * k as i32;
            match POINTERS.get(k) {
                Some(r) => self.a.add_general(*r, RAX, at),
                None => {
                    self.a.load_general(RCX, RAX, at);
                    self.a.add_general(RCX, RDI, at);
                    self.a.store_general(RCX, RDI, at);
                }
            }
        }
        // jmp row
        self.a.raw(&[0xe9, 0, 0, 0, 0]);
        let again = self.a.bytes.len() - 4;
        self.a.land(again, row);
        let last = self.a.bytes.len();
        self.a.land(no_row, last);
        let bytes = COUNTS + VECTOR * self.used_slots;
        self.a.set(frame, bytes);
        // vzeroupper; add rsp, …
        self.a.raw(&[0xc5, 0xf8, 0x77, 0x48, 0x81, 0xc4]);
        self.a.raw(&bytes.to_le_bytes());
        SAVED.iter().rev().for_each(|r| self.a.pop(*r));
        // ret
        self.a.raw(&[0xc3]);
    }

    fn body(&mut self, masked: bool) {
        self.masked = masked;
        self.has_lane = false;
        self.registers.fill(None);
        self.waiting.fill(false);
        self.held = [None; REGISTERS];
        for at in 0..self.body.items.len() {
            match self.body.items[at] {
                CodeItem::Compute(step) => self.compute(at, step),
                CodeItem::Store(step, pointer) => {
                    let from = self.value(at, step, &[]);
                    let to = self.cell(pointer);
                    match self.masked {
                        false => self.a.vector(STORE, from, Vector(0), to, None),
                        true => self.a.vector(MASKED_STORE, from, MASK, to, None),
                    }
                    self.release(at, step);
                }
                CodeItem::Sum(step, pointer) => {
                    let x = self.value(at, step, &[]);
                    let to = Vector(self.room(at, &[step]) as u8);
                    let base = self.pointer(pointer);
                    // The address of one of the first numbers is in a register.
                    debug_assert!(base != RAX, "sums have the first numbers");
                    if !self.has_lane {
                        // mov eax, ecx; and eax, 56
                        self.a.raw(&[0x89, 0xc8, 0x83, 0xe0, (super::LANES - LANES) as u8]);
                        self.has_lane = true;
                    }
                    let lanes = LastOperand::Memory { base, index: Some(RAX), offset: 0 };
                    self.a.vector(LOAD, to, Vector(0), lanes, None);
                    self.a.vector(ADD, to, to, LastOperand::Register(x), None);
                    match self.masked {
                        false => self.a.vector(STORE, to, Vector(0), lanes, None),
                        true => self.a.vector(MASKED_STORE, to, MASK, lanes, None),
                    }
                    self.release(at, step);
                }
            }
        }
    }

    fn compute(&mut self, at: usize, step: u16) {
        let (op, sources, more) = match self.body.steps[usize::from(step)] {
            // Read where they are used.
            FormulaStep::Operand(_) | FormulaStep::Shared(_) | FormulaStep::Number(_) => return,
            FormulaStep::Unary(op, x) => return self.unary(at, step, op, x),
            FormulaStep::Binary(op, x, y) => {
                let (op, more) = match op {
                    BinaryStep::Add => (ADD, None),
                    BinaryStep::Subtract => (SUBTRACT, None),
                    BinaryStep::Multiply => (MULTIPLY, None),
                    BinaryStep::Divide => (DIVIDE, None),
                    // The last one where either is NaN or they are equal.
                    BinaryStep::Larger => (LARGER, None),
                    BinaryStep::Smaller => (SMALLER, None),
                    BinaryStep::Both => (AND, None),
                    BinaryStep::Either => (OR, None),
                    // Without signals; only the second is true of NaN.
                    BinaryStep::Equal => (COMPARE, Some(0)),
                    BinaryStep::Differ => (COMPARE, Some(4)),
                    BinaryStep::Less => (COMPARE, Some(0x11)),
                    BinaryStep::AtMost => (COMPARE, Some(0x12)),
                };
                (op, [x, y, y], more)
            }
            FormulaStep::Choose([c, a, b]) => {
                let chosen = self.value(at, c, &[a, b]);
                (BLEND, [b, a, c], Some(chosen.0 << 4))
            }
        };
        let [second, last, other] = sources;
        let second_in = self.value(at, second, &sources);
        let last_in = self.operand(at, last, &sources);
        // The registers of all sources are free for the result, which is written at the end.
        [second, last, other].iter().for_each(|s| self.release(at, *s));
        let to = self.take(at, step, &[]);
        self.a.vector(op, to, second_in, last_in, more);
    }

    fn unary(&mut self, at: usize, step: u16, op: UnaryStep, x: u16) {
        let none = Vector(0);
        let round = |direction: u8| Some(8 | direction);
        let (op, bits, more): (VectorOp, Option<u32>, Option<u8>) = match op {
            UnaryStep::Negate => (XOR, Some(1 << 31), None),
            UnaryStep::Magnitude => (AND, Some(!(1 << 31)), None),
            UnaryStep::Not => (XOR, Some(!0), None),
            UnaryStep::Root => (ROOT, None, None),
            UnaryStep::Round => (ROUND, None, round(0)),
            UnaryStep::Floor => (ROUND, None, round(1)),
            UnaryStep::Ceil => (ROUND, None, round(2)),
            UnaryStep::Truncate => (ROUND, None, round(3)),
        };
        let (second, last) = match bits {
            Some(bits) => (self.value(at, x, &[]), self.number(bits)),
            None => (none, self.operand(at, x, &[])),
        };
        self.release(at, x);
        let to = self.take(at, step, &[]);
        self.a.vector(op, to, second, last, more);
    }

    /// The register that holds a value, which is loaded if none does; those of `kept` stay where they are.
    fn value(&mut self, at: usize, step: u16, kept: &[u16]) -> Vector {
        if let Some(r) = self.registers[usize::from(step)] {
            return r;
        }
        let to = self.take(at, step, kept);
        match self.body.steps[usize::from(step)] {
            _ if self.waiting[usize::from(step)] => {
                let slot = self.slots[usize::from(step)].unwrap_or_default();
                self.a.vector(LOAD, to, Vector(0), stack(slot), None);
            }
            FormulaStep::Operand(k) => {
                let from = self.cell(k);
                match self.masked {
                    false => self.a.vector(LOAD, to, Vector(0), from, None),
                    true => self.a.vector(MASKED_LOAD, to, MASK, from, None),
                }
            }
            FormulaStep::Shared(k) => {
                let from = LastOperand::Memory { base: self.pointer(k), index: None, offset: 0 };
                self.a.vector(REPEAT, to, Vector(0), from, None);
            }
            FormulaStep::Number(bits) => {
                let from = self.number(bits);
                self.a.vector(LOAD, to, Vector(0), from, None);
            }
            _ => unreachable!("a step is computed before it is used"),
        }
        to
    }

    /// A value as a last operand: numbers stay in memory.
    fn operand(&mut self, at: usize, step: u16, kept: &[u16]) -> LastOperand {
        match self.body.steps[usize::from(step)] {
            FormulaStep::Number(bits) if self.registers[usize::from(step)].is_none() => self.number(bits),
            _ => LastOperand::Register(self.value(at, step, kept)),
        }
    }

    /// A register for a step's value.
    fn take(&mut self, at: usize, step: u16, kept: &[u16]) -> Vector {
        let k = self.room(at, kept);
        self.held[k] = Some(step);
        let to = Vector(k as u8);
        self.registers[usize::from(step)] = Some(to);
        to
    }

    /// A register that nothing is in. If all are in use, the value whose next use is the farthest makes room.
    fn room(&mut self, at: usize, kept: &[u16]) -> usize {
        let free = self.held.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            let next = |s: u16| self.uses[usize::from(s)].iter().copied().find(|u| *u >= at).unwrap_or(usize::MAX);
            let held = |k: &usize| self.held[*k].filter(|s| !kept.contains(s)).map(next);
            let farthest = (0..REGISTERS).max_by_key(held).expect("some register is not kept");
            if let Some(out) = self.held[farthest] {
                self.put_aside(out, Vector(farthest as u8));
            }
            self.held[farthest] = None;
            farthest
        })
    }

    /// Takes a value out of its register; what is not a number waits on the stack.
    fn put_aside(&mut self, step: u16, from: Vector) {
        let at = usize::from(step);
        self.registers[at] = None;
        if matches!(self.body.steps[at], FormulaStep::Number(_)) || self.waiting[at] {
            return;
        }
        let slot = *self.slots[at].get_or_insert_with(|| {
            self.used_slots += 1;
            self.used_slots - 1
        });
        self.waiting[at] = true;
        self.a.vector(STORE, from, Vector(0), stack(slot), None);
    }

    /// Frees the register of a value that is not used behind an item.
    fn release(&mut self, at: usize, step: u16) {
        let last = self.uses[usize::from(step)].last();
        if last.is_none_or(|last| *last <= at)
            && let Some(r) = self.registers[usize::from(step)].take()
        {
            self.held[usize::from(r.0)] = None;
        }
    }

    /// The register of an address.
    fn pointer(&mut self, pointer: u16) -> General {
        POINTERS.get(usize::from(pointer)).copied().unwrap_or_else(|| {
            self.a.load_general(RAX, RDI, 8 * i32::from(pointer));
            self.has_lane = false;
            RAX
        })
    }

    /// The elements of a tensor from `rcx` on.
    fn cell(&mut self, pointer: u16) -> LastOperand {
        LastOperand::Memory { base: self.pointer(pointer), index: Some(RCX), offset: 0 }
    }

    /// A number in the table.
    fn number(&mut self, bits: u32) -> LastOperand {
        let own = self.numbers[MASKS.len()..].chunks_exact(LANES).position(|x| x[0] == bits);
        let k = own.unwrap_or_else(|| {
            self.numbers.extend([bits; LANES]);
            (self.numbers.len() - MASKS.len()) / LANES - 1
        });
        LastOperand::Memory { base: RDX, index: None, offset: 2 * VECTOR + VECTOR * k as i32 }
    }
}

/// A place on the stack.
fn stack(slot: i32) -> LastOperand {
    LastOperand::Memory { base: RSP, index: None, offset: COUNTS + VECTOR * slot }
}

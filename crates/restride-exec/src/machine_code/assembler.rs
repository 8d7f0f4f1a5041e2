//! Instructions of x86-64 with AVX as bytes: those that [`super::emit`] uses, and no others.
//!
//! All vector instructions here have one form: a destination, a second operand in a register, and a last one in a register or in memory
//! (Intel's manual, volume 2, 2.3, "VEX"). An assembler as a library would be more code than the rest of the command may grow by.

/// A general register by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct General(pub u8);

pub const RAX: General = General(0);
pub const RCX: General = General(1);
pub const RDX: General = General(2);
pub const RSP: General = General(4);
pub const RDI: General = General(7);
pub const R8: General = General(8);

/// A vector register of 256 bits by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vector(pub u8);

/// The last operand of an instruction.
#[derive(Clone, Copy)]
pub enum LastOperand {
    Register(Vector),
    /// `base + index * 4 + offset`
    Memory {
        base: General,
        index: Option<General>,
        offset: i32,
    },
}

/// A vector instruction: its prefix, its map of operation codes, and its code in this map.
#[derive(Clone, Copy)]
pub struct VectorOp {
    prefix: u8,
    map: u8,
    code: u8,
}

impl VectorOp {
    const fn new(prefix: u8, map: u8, code: u8) -> VectorOp {
        VectorOp { prefix, map, code }
    }
}

pub const LOAD: VectorOp = VectorOp::new(0, 1, 0x10);
pub const STORE: VectorOp = VectorOp::new(0, 1, 0x11);
pub const REPEAT: VectorOp = VectorOp::new(1, 2, 0x18);
pub const MASKED_LOAD: VectorOp = VectorOp::new(1, 2, 0x2c);
pub const MASKED_STORE: VectorOp = VectorOp::new(1, 2, 0x2e);
pub const SIGNS: VectorOp = VectorOp::new(0, 1, 0x50);
pub const ROOT: VectorOp = VectorOp::new(0, 1, 0x51);
pub const AND: VectorOp = VectorOp::new(0, 1, 0x54);
pub const OR: VectorOp = VectorOp::new(0, 1, 0x56);
pub const XOR: VectorOp = VectorOp::new(0, 1, 0x57);
pub const ADD: VectorOp = VectorOp::new(0, 1, 0x58);
pub const MULTIPLY: VectorOp = VectorOp::new(0, 1, 0x59);
pub const SUBTRACT: VectorOp = VectorOp::new(0, 1, 0x5c);
pub const SMALLER: VectorOp = VectorOp::new(0, 1, 0x5d);
pub const DIVIDE: VectorOp = VectorOp::new(0, 1, 0x5e);
pub const LARGER: VectorOp = VectorOp::new(0, 1, 0x5f);
pub const COMPARE: VectorOp = VectorOp::new(0, 1, 0xc2);
pub const ROUND: VectorOp = VectorOp::new(1, 3, 0x08);
pub const BLEND: VectorOp = VectorOp::new(1, 3, 0x4a);

/// Instructions so far.
#[derive(Default)]
pub struct Assembler {
    pub bytes: Vec<u8>,
}

impl Assembler {
    /// Instructions by their bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A vector instruction. What has no second operand gives register 0; `more` is the byte behind the operands.
    pub fn vector(&mut self, op: VectorOp, to: Vector, second: Vector, last: LastOperand, more: Option<u8>) {
        let (base, index) = match last {
            LastOperand::Register(v) => (v.0, 0),
            LastOperand::Memory { base, index, .. } => (base.0, index.map_or(0, |i| i.0)),
        };
        let high = |r: u8, bit: u8| u8::from(r < 8) << bit;
        self.raw(&[
            0xc4,
            high(to.0, 7) | high(index, 6) | high(base, 5) | op.map,
            (!second.0 & 15) << 3 | 1 << 2 | op.prefix,
            op.code,
        ]);
        match last {
            LastOperand::Register(v) => self.raw(&[0xc0 | (to.0 & 7) << 3 | v.0 & 7]),
            LastOperand::Memory { base, index, offset } => self.memory(to.0, base, index, offset),
        }
        self.bytes.extend(more);
    }

    /// The bytes of an operand in memory, with a distance of 32 bits.
    fn memory(&mut self, register: u8, base: General, index: Option<General>, offset: i32) {
        // Scale 4; without an index the number of the stack pointer.
        let (scaled, index) = index.map_or((0, 4), |i| (0x80, i.0 & 7));
        self.raw(&[0x84 | (register & 7) << 3, scaled | index << 3 | base.0 & 7]);
        self.raw(&offset.to_le_bytes());
    }

    /// Loads a general register from `base + offset`.
    pub fn load_general(&mut self, to: General, base: General, offset: i32) {
        self.raw(&[0x48 | (to.0 >> 3) << 2 | base.0 >> 3, 0x8b]);
        self.memory(to.0, base, None, offset);
    }

    /// Stores a general register to `base + offset`.
    pub fn store_general(&mut self, from: General, base: General, offset: i32) {
        self.raw(&[0x48 | (from.0 >> 3) << 2 | base.0 >> 3, 0x89]);
        self.memory(from.0, base, None, offset);
    }

    /// Adds `base + offset` to a general register.
    pub fn add_general(&mut self, to: General, base: General, offset: i32) {
        self.raw(&[0x48 | (to.0 >> 3) << 2 | base.0 >> 3, 0x03]);
        self.memory(to.0, base, None, offset);
    }

    /// Saves a general register on the stack.
    pub fn push(&mut self, r: General) {
        self.one_byte(0x50, r);
    }

    /// Takes a general register back from the stack.
    pub fn pop(&mut self, r: General) {
        self.one_byte(0x58, r);
    }

    fn one_byte(&mut self, code: u8, r: General) {
        if r.0 >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[code | r.0 & 7]);
    }

    /// A jump on a condition to a place that is not known yet: where its distance stands.
    pub fn jump(&mut self, condition: u8) -> usize {
        self.raw(&[0x0f, condition, 0, 0, 0, 0]);
        self.bytes.len() - 4
    }

    /// Sets the distance of a jump to `target`.
    pub fn land(&mut self, jump: usize, target: usize) {
        let distance = target as i32 - (jump as i32 + 4);
        self.set(jump, distance);
    }

    /// Sets four bytes.
    pub fn set(&mut self, at: usize, value: i32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}

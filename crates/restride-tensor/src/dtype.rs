//! Element types.

use crate::{C32, C64, bf16, f16};
use std::fmt;

/// The element type of a tensor. Names print as in the text format (`f32`, `i64`, `bool`, `c64`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum DType {
    /// `torch.bool`, one byte, 0 or 1.
    Bool,
    /// `torch.uint8`.
    U8,
    /// `torch.int8`.
    I8,
    /// `torch.int16`.
    I16,
    /// `torch.int32`.
    I32,
    /// `torch.int64`.
    I64,
    /// `torch.float16`.
    F16,
    /// `torch.bfloat16`.
    BF16,
    /// `torch.float32`.
    F32,
    /// `torch.float64`.
    F64,
    /// `torch.complex64`: two `f32`.
    C64,
    /// `torch.complex128`: two `f64`.
    C128,
}

impl DType {
    /// Every element type, in the order of declaration.
    pub const ALL: [DType; 12] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// Alignment of one element in bytes: a complex number's is that of its parts.
    pub const fn align(self) -> usize {
        match self {
            DType::C64 => 4,
            DType::C128 => 8,
            other => other.size(),
        }
    }

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// Name in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
        }
    }

    /// PyTorch's name, without `torch.`.
    pub const fn torch_name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
        }
    }

    /// PyTorch's name of the type as a scalar type, which its error messages say (`c10::toString`).
    pub const fn scalar_type(self) -> &'static str {
        match self {
            DType::Bool => "Bool",
            DType::U8 => "Byte",
            DType::I8 => "Char",
            DType::I16 => "Short",
            DType::I32 => "Int",
            DType::I64 => "Long",
            DType::F16 => "Half",
            DType::BF16 => "BFloat16",
            DType::F32 => "Float",
            DType::F64 => "Double",
            DType::C64 => "ComplexFloat",
            DType::C128 => "ComplexDouble",
        }
    }

    /// The type with the given text or PyTorch name (`f32`, `float32`, `torch.float32`).
    pub fn from_name(name: &str) -> Option<DType> {
        let name = name.strip_prefix("torch.").unwrap_or(name);
        DType::ALL.into_iter().find(|d| d.name() == name || d.torch_name() == name)
    }

    /// True for `f16`, `bf16`, `f32`, `f64`.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// True for the complex types.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// True for the integer types, `bool` not among them.
    pub const fn is_int(self) -> bool {
        matches!(self, DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// The type of a complex type's real and imaginary parts; a real type is its own.
    pub const fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The complex type with parts of this type, where there is one (`f16` computes as `c64`).
    pub const fn complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// `torch.promote_types`.
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        if self == other {
            return self;
        }
        let (a, b) = if rank(self) <= rank(other) { (self, other) } else { (other, self) };
        match (a, b) {
            (Bool, x) => x,
            // Unsigned with a signed type: the next signed type that holds both.
            (U8, I8) => I16,
            (x, y) if x.is_int() && y.is_int() => y,
            (x, y) if x.is_int() => y,
            (F16, BF16) => F32,
            // A complex type holds the larger of the parts' precisions.
            (F64, C64) => C128,
            (_, y) => y,
        }
    }

    /// `torch.can_cast(self, to)`: whether an in-place result of this type may be stored as `to`.
    pub fn can_cast(self, to: DType) -> bool {
        if self.is_complex() && !to.is_complex() {
            return false;
        }
        if self.is_float() && !(to.is_float() || to.is_complex()) {
            return false;
        }
        !(self != DType::Bool && to == DType::Bool)
    }
}

fn rank(d: DType) -> u8 {
    d as u8
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that is the memory form of a [`DType`].
///
/// # Safety
/// Implementors are plain data with the size of their `DTYPE`, and every bit pattern that a kernel writes
/// is valid for them; `bool` is therefore represented by [`u8`] cells and has no implementation of its own.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The element type this is the memory form of.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => {$(
        // SAFETY: plain data of the same size, any bit pattern valid.
        unsafe impl Element for $t { const DTYPE: DType = DType::$d; }
    )*};
}
elements!(u8 => U8, i8 => I8, i16 => I16, i32 => I32, i64 => I64, f16 => F16, bf16 => BF16, f32 => F32, f64 => F64, C32 => C64, C64 => C128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_commutative_and_idempotent() {
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a), "{a} {b}");
            }
        }
        assert_eq!(DType::U8.promote(DType::I8), DType::I16);
        assert_eq!(DType::I64.promote(DType::F16), DType::F16);
        assert_eq!(DType::BF16.promote(DType::F16), DType::F32);
        assert_eq!(DType::F64.promote(DType::C64), DType::C128);
    }

    #[test]
    fn names_round_trip() {
        for d in DType::ALL {
            assert_eq!(DType::from_name(d.name()), Some(d));
            assert_eq!(DType::from_name(&format!("torch.{}", d.torch_name())), Some(d));
        }
    }
}

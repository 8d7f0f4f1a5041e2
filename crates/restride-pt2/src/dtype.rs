//! Element types as the files name them: PyTorch's names, the archive's numbers, `torch.save`'s storage classes.

use crate::error::{Pt2Error, Result};
use restride_ir::{DType, Error};
use std::fmt;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $size:literal $code:literal $(| $storage:literal)?;)*) => {
        /// An element type that PyTorch has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FileDType { $($(#[$doc])* $variant,)* }

        impl FileDType {
            /// All of them.
            pub const ALL: &'static [FileDType] = &[$(FileDType::$variant,)*];

            /// PyTorch's name, without `torch.`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Bytes per element.
            pub fn size(self) -> usize {
                match self { $(Self::$variant => $size,)* }
            }

            /// The number that stands for it in a program's JSON (not c10's number).
            pub fn scalar_type(self) -> u8 {
                match self { $(Self::$variant => $code,)* }
            }

            /// The `torch.XStorage` class, where PyTorch has one.
            pub fn storage_class(self) -> Option<&'static str> {
                match self {
                    $($(Self::$variant => Some($storage),)?)*
                    _ => None,
                }
            }
        }
    };
}

dtypes! {
    /// unsigned 8 bits
    U8 "uint8" 1 1 | "ByteStorage";
    /// signed 8 bits
    I8 "int8" 1 2 | "CharStorage";
    /// signed 16 bits
    I16 "int16" 2 3 | "ShortStorage";
    /// signed 32 bits
    I32 "int32" 4 4 | "IntStorage";
    /// signed 64 bits
    I64 "int64" 8 5 | "LongStorage";
    /// IEEE half precision
    F16 "float16" 2 6 | "HalfStorage";
    /// IEEE single precision
    F32 "float32" 4 7 | "FloatStorage";
    /// IEEE double precision
    F64 "float64" 8 8 | "DoubleStorage";
    /// two halves
    C32 "complex32" 4 9 | "ComplexHalfStorage";
    /// two singles
    C64 "complex64" 8 10 | "ComplexFloatStorage";
    /// two doubles
    C128 "complex128" 16 11 | "ComplexDoubleStorage";
    /// one byte, 0 or 1
    Bool "bool" 1 12 | "BoolStorage";
    /// the upper half of a single
    BF16 "bfloat16" 2 13 | "BFloat16Storage";
    /// unsigned 16 bits
    U16 "uint16" 2 28;
    /// 8-bit float
    F8E4M3FN "float8_e4m3fn" 1 29;
    /// 8-bit float
    F8E5M2 "float8_e5m2" 1 30;
    /// 8-bit float
    F8E4M3FNUZ "float8_e4m3fnuz" 1 31;
    /// 8-bit float
    F8E5M2FNUZ "float8_e5m2fnuz" 1 32;
    /// 8-bit power of two
    F8E8M0FNU "float8_e8m0fnu" 1 33;
    /// unsigned 32 bits
    U32 "uint32" 4 34;
    /// unsigned 64 bits
    U64 "uint64" 8 35;
}

impl FileDType {
    /// The element type of a `torch.XStorage` class.
    pub fn from_storage_class(class: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|d| d.storage_class() == Some(class))
    }

    /// From PyTorch's name, with or without `torch.`; other names that PyTorch has for the same type are known.
    pub fn from_name(name: &str) -> Result<Self> {
        let short = name.strip_prefix("torch.").unwrap_or(name);
        let canonical = match short {
            "float" => "float32",
            "double" => "float64",
            "half" => "float16",
            "cfloat" => "complex64",
            "cdouble" => "complex128",
            "chalf" => "complex32",
            "short" => "int16",
            "int" => "int32",
            "long" => "int64",
            s => s,
        };
        Self::ALL
            .iter()
            .copied()
            .find(|d| d.name() == canonical)
            .ok_or_else(|| Pt2Error::unsupported(format!("element type {name}")))
    }
}

/// The element type of a tensor, if restride has it.
///
/// # Errors
/// An element type that restride has no tensors of, with one to compute in.
pub fn computed(d: FileDType) -> restride_ir::Result<DType> {
    DType::from_name(d.name()).ok_or_else(|| {
        let instead = match d {
            FileDType::U16 => "int32, which has all its values (`.to(torch.int32)`",
            FileDType::U32 | FileDType::U64 => "int64 (`.to(torch.int64)`",
            FileDType::C32 => "complex64 (`.to(torch.complex64)`",
            _ => "float16, bfloat16 or float32 (`.to(torch.bfloat16)`",
        };
        let e = Error::unsupported(format!("restride has no tensors of element type {d}"));
        e.help(format!("let the model keep and compute them as {instead} before the export)"))
    })
}

impl fmt::Display for FileDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of elements of a tensor of these sizes.
pub fn element_count(sizes: &[i64]) -> Result<u64> {
    if let Some(bad) = sizes.iter().find(|&&s| s < 0) {
        return Err(Pt2Error::malformed(format!("a tensor has size {bad}")));
    }
    if sizes.contains(&0) {
        return Ok(0);
    }
    sizes
        .iter()
        .try_fold(1u64, |n, &s| n.checked_mul(s as u64))
        .ok_or_else(|| Pt2Error::too_large(format!("a tensor of sizes {sizes:?}")))
}

/// The least number of elements of a storage that holds a tensor of these sizes, strides and offset.
pub fn storage_reach(sizes: &[i64], strides: &[i64], offset: i64) -> Result<u64> {
    if sizes.len() != strides.len() {
        return Err(Pt2Error::malformed(format!("a tensor has {} sizes but {} strides", sizes.len(), strides.len())));
    }
    if let Some(bad) = strides.iter().find(|&&s| s < 0) {
        return Err(Pt2Error::malformed(format!("a tensor has stride {bad}")));
    }
    let offset =
        u64::try_from(offset).map_err(|_| Pt2Error::malformed(format!("a tensor has storage offset {offset}")))?;
    if element_count(sizes)? == 0 {
        return Ok(0);
    }
    let last = sizes
        .iter()
        .zip(strides)
        .try_fold(offset, |at, (&n, &s)| at.checked_add((n as u64 - 1).checked_mul(s as u64)?));
    last.and_then(|l| l.checked_add(1))
        .ok_or_else(|| Pt2Error::too_large(format!("a tensor of sizes {sizes:?} and strides {strides:?}")))
}

/// Strides of a contiguous tensor.
pub fn contiguous_strides(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; sizes.len()];
    for i in (0..sizes.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1].saturating_mul(sizes[i + 1].max(1));
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_unique() {
        for (i, a) in FileDType::ALL.iter().enumerate() {
            for b in &FileDType::ALL[i + 1..] {
                assert_ne!(a.name(), b.name());
                assert_ne!(a.scalar_type(), b.scalar_type());
            }
            assert_eq!(FileDType::from_name(&format!("torch.{}", a.name())), Ok(*a));
        }
        assert!(FileDType::from_name("torch.qint8").is_err());
        assert_eq!(FileDType::from_storage_class("BFloat16Storage"), Some(FileDType::BF16));
    }

    #[test]
    fn reach_is_checked() {
        assert_eq!(storage_reach(&[2, 3], &[3, 1], 0), Ok(6));
        assert_eq!(storage_reach(&[2, 3], &[0, 1], 2), Ok(5));
        assert_eq!(storage_reach(&[], &[], 4), Ok(5));
        assert_eq!(storage_reach(&[0, i64::MAX], &[i64::MAX, 1], 4), Ok(0));
        assert!(storage_reach(&[i64::MAX, 3], &[1, 1], 0).is_err());
        assert!(storage_reach(&[4], &[i64::MAX], 0).is_err());
        assert!(storage_reach(&[3], &[1], -1).is_err());
        assert!(storage_reach(&[3], &[-1], 5).is_err());
        assert!(storage_reach(&[-3], &[1], 0).is_err());
        assert!(storage_reach(&[3], &[], 0).is_err());
        assert_eq!(contiguous_strides(&[2, 3, 4]), [12, 4, 1]);
        assert_eq!(contiguous_strides(&[2, 0, 4]), [4, 4, 1]);
    }
}

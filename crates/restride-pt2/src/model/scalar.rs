use crate::dtype::FileDType;
use crate::error::{Pt2Error, Result};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A float as the JSON has it: a number, or the string `"Infinity"`, `"-Infinity"` or `"NaN"`.
#[derive(Debug, Clone, Copy)]
pub struct Float(pub f64);

impl PartialEq for Float {
    /// Equal bits, or both NaN: two programs that say `NaN` say the same.
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits() || (self.0.is_nan() && other.0.is_nan())
    }
}

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        if self.0.is_nan() {
            s.serialize_str("NaN")
        } else if self.0.is_infinite() {
            s.serialize_str(if self.0 > 0.0 { "Infinity" } else { "-Infinity" })
        } else {
            s.serialize_f64(self.0)
        }
    }
}

struct FloatVisitor;

impl Visitor<'_> for FloatVisitor {
    type Value = Float;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"Infinity\", \"-Infinity\" or \"NaN\"")
    }

    fn visit_f64<E>(self, v: f64) -> std::result::Result<Float, E> {
        Ok(Float(v))
    }

    fn visit_i64<E>(self, v: i64) -> std::result::Result<Float, E> {
        Ok(Float(v as f64))
    }

    fn visit_u64<E>(self, v: u64) -> std::result::Result<Float, E> {
        Ok(Float(v as f64))
    }

    fn visit_str<E: de::Error>(self, v: &str) -> std::result::Result<Float, E> {
        match v {
            "Infinity" => Ok(Float(f64::INFINITY)),
            "-Infinity" => Ok(Float(f64::NEG_INFINITY)),
            "NaN" => Ok(Float(f64::NAN)),
            _ => Err(E::invalid_value(de::Unexpected::Str(v), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        d.deserialize_any(FloatVisitor)
    }
}

macro_rules! int_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant = $code,)* }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
                s.serialize_u8(*self as u8)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
                match i64::deserialize(d)? {
                    $($code => Ok(Self::$variant),)*
                    n => Err(de::Error::custom(format!(
                        concat!("{} is not a known ", stringify!($name)), n
                    ))),
                }
            }
        }
    };
}

int_enum! {
    /// A tensor's memory layout.
    Layout {
        /// not said
        Unknown = 0,
        /// sparse, coordinates
        SparseCoo = 1,
        /// sparse, compressed rows
        SparseCsr = 2,
        /// sparse, compressed columns
        SparseCsc = 3,
        /// sparse, compressed rows of blocks
        SparseBsr = 4,
        /// sparse, compressed columns of blocks
        SparseBsc = 5,
        /// oneDNN's own
        Mkldnn = 6,
        /// sizes, strides and offset
        Strided = 7,
    }
}

int_enum! {
    /// A memory format, as operators take it.
    MemoryFormat {
        /// not said
        Unknown = 0,
        /// `torch.contiguous_format`
        ContiguousFormat = 1,
        /// `torch.channels_last`
        ChannelsLast = 2,
        /// `torch.channels_last_3d`
        ChannelsLast3d = 3,
        /// `torch.preserve_format`
        PreserveFormat = 4,
    }
}

int_enum! {
    /// How an argument was passed.
    ArgumentKind {
        /// not said
        Unknown = 0,
        /// by position
        Positional = 1,
        /// by keyword
        Keyword = 2,
    }
}

/// An element type, by the number that the JSON has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// 0: not said.
    Unknown,
    /// One that PyTorch has.
    Known(FileDType),
}

impl ScalarType {
    /// The element type, if the file says one.
    pub fn dtype(self) -> Result<FileDType> {
        match self {
            Self::Known(d) => Ok(d),
            Self::Unknown => Err(Pt2Error::unsupported("a tensor of unknown element type")),
        }
    }
}

impl From<FileDType> for ScalarType {
    fn from(d: FileDType) -> Self {
        Self::Known(d)
    }
}

impl Serialize for ScalarType {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_u8(match self {
            Self::Unknown => 0,
            Self::Known(d) => d.scalar_type(),
        })
    }
}

impl<'de> Deserialize<'de> for ScalarType {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let code = i64::deserialize(d)?;
        if code == 0 {
            return Ok(Self::Unknown);
        }
        FileDType::ALL
            .iter()
            .find(|t| i64::from(t.scalar_type()) == code)
            .map(|&t| Self::Known(t))
            .ok_or_else(|| de::Error::custom(format!("{code} is not a known ScalarType")))
    }
}

/// One end of a range: a number, or none. Schemas before 8.9 write a missing end as an infinity.
pub(super) mod bound {
    use super::*;

    fn read<'de, D: Deserializer<'de>>(d: D, open: &str) -> std::result::Result<Option<i64>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum RangeEnd {
            Int(i64),
            Word(String),
        }
        match Option::<RangeEnd>::deserialize(d)? {
            None => Ok(None),
            Some(RangeEnd::Int(n)) => Ok(Some(n)),
            Some(RangeEnd::Word(w)) if w == open => Ok(None),
            Some(RangeEnd::Word(w)) => Err(de::Error::custom(format!("{w:?} is not an integer"))),
        }
    }

    pub(in super::super) fn min<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Option<i64>, D::Error> {
        read(d, "-Infinity")
    }

    pub(in super::super) fn max<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Option<i64>, D::Error> {
        read(d, "Infinity")
    }
}

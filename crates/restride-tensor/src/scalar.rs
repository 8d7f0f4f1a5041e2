//! Numbers that are not tensors.

use crate::{C64, DType};
use std::fmt;

/// A number outside a tensor: PyTorch's `Scalar`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    /// A Python `bool`.
    Bool(bool),
    /// A Python `int`.
    Int(i64),
    /// A Python `float`.
    Float(f64),
    /// A Python `complex`.
    Complex(C64),
}

impl Scalar {
    /// The type that PyTorch gives a tensor made of this number (`f32` stands for the default float type).
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F32,
            Scalar::Complex(_) => DType::C64,
        }
    }

    /// The value as a float; the real part of a complex number.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(x) => x,
            Scalar::Complex(z) => z.re,
        }
    }

    /// The value as an integer; floats are cut towards zero.
    pub fn as_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(x) => x as i64,
            Scalar::Complex(z) => z.re as i64,
        }
    }

    /// The value as view rules read it: an integer, fractions rounded away from zero, so that only 0 is 0 (`dropout`
    /// asks that of its probability).
    pub fn as_view_number(self) -> i64 {
        match self {
            Scalar::Float(x) if x.fract() != 0.0 => x.signum() as i64 * (x.abs().ceil() as i64),
            other => other.as_i64(),
        }
    }

    /// The value as a complex number.
    pub fn as_c64(self) -> C64 {
        match self {
            Scalar::Complex(z) => z,
            other => C64::new(other.as_f64(), 0.0),
        }
    }

    /// Whether the value is not zero.
    pub fn as_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(x) => x != 0.0,
            Scalar::Complex(z) => z.re != 0.0 || z.im != 0.0,
        }
    }
}

impl From<i64> for Scalar {
    fn from(i: i64) -> Self {
        Scalar::Int(i)
    }
}
impl From<f64> for Scalar {
    fn from(x: f64) -> Self {
        Scalar::Float(x)
    }
}
impl From<bool> for Scalar {
    fn from(b: bool) -> Self {
        Scalar::Bool(b)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
            Scalar::Complex(z) => write!(f, "({:?}{:+?}j)", z.re, z.im),
        }
    }
}

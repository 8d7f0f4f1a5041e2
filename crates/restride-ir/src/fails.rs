//! Elements on which operators fail.

use restride_tensor::DType;

/// Elements on which a call fails, where types and sizes fit. Such a call stays in a program that does not read its result, and a
/// call on fewer elements could miss the error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fails {
    /// None.
    Never,
    /// Some elements of a call whose results are integers (a divisor of zero).
    Integers,
    /// Some elements (an index out of range, a singular matrix).
    Elements,
}

impl Fails {
    /// Whether a call with results of this type may fail.
    pub fn at(self, result: DType) -> bool {
        match self {
            Fails::Never => false,
            Fails::Integers => !result.is_float() && !result.is_complex(),
            Fails::Elements => true,
        }
    }
}

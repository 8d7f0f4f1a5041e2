//! Magnitudes of the numbers in generated programs. Programs compute on small integers with known bounds, so no element
//! type rounds, and results compare bit for bit with PyTorch's.

use restride_ir::{Arg, DType, Meta, Op, Scalar};

/// Bound of the numbers in a storage. Infinite after a bit cast: such numbers are moved and computed with as integers,
/// never as floats.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Magnitude(pub f64);

impl Magnitude {
    /// Bits of another type.
    pub const BITS: Magnitude = Magnitude(f64::INFINITY);

    /// The larger one.
    pub fn or(self, other: Magnitude) -> Magnitude {
        Magnitude(self.0.max(other.0))
    }

    /// Whether these numbers are at most as large.
    pub fn within(self, other: Magnitude) -> bool {
        self.0 <= other.0
    }

    /// Bound after a conversion to a type that holds the numbers exactly. Small integers wrap.
    pub fn exact_in(self, dtype: DType) -> Option<Magnitude> {
        let most = match dtype {
            DType::Bool | DType::U8 | DType::I8 => return Some(self.of(dtype)),
            DType::BF16 => 128.0,
            DType::F16 => 1024.0,
            DType::I16 | DType::I32 | DType::I64 if self == Magnitude::BITS => return Some(self),
            DType::I16 => 16_384.0,
            _ => 1_048_576.0,
        };
        (self.0 <= most).then_some(self)
    }

    /// Bound of numbers in this type.
    pub fn of(self, dtype: DType) -> Magnitude {
        match dtype {
            DType::Bool => Magnitude(1.0),
            DType::U8 => Magnitude(255.0),
            DType::I8 => Magnitude(128.0),
            _ => self,
        }
    }

    /// Bound after the memory is viewed as another type. `None` for booleans, whose memory holds only 0 and 1.
    pub fn seen_as(self, from: DType, to: DType) -> Option<Magnitude> {
        let parts = matches!((from, to), (DType::C64, DType::F32) | (DType::F32, DType::C64))
            || matches!((from, to), (DType::C128, DType::F64) | (DType::F64, DType::C128));
        match (from, to) {
            _ if from == to || parts => Some(self),
            (DType::Bool, _) | (_, DType::Bool) => None,
            _ => Some(Magnitude::BITS),
        }
    }
}

/// Effect of an operator on magnitudes.
enum Growth {
    /// The largest operand.
    Moves,
    /// A sum of two operands, the second perhaps scaled and repeated.
    Adds,
    Multiplies,
    /// Operand 0 plus a product of the others.
    AddsProduct,
    /// Less than operand 1.
    Remainder,
    /// Booleans and positions.
    Small,
    /// Sums over an operand.
    Sums,
}

/// The family name: without namespace, overload, `_foreach_` and the trailing underscore.
fn family(op: Op) -> &'static str {
    let name = op.schema().name.rsplit("::").next().unwrap_or("");
    let name = name.rsplit('.').next().unwrap_or("");
    name.strip_prefix("_foreach_").unwrap_or(name).trim_end_matches('_')
}

fn growth(op: Op) -> Growth {
    match family(op) {
        "add" | "sub" | "rsub" | "index_add" | "scatter_add" | "index_put" | "_index_put_impl" | "put" | "lerp"
        | "_unsafe_index_put" | "scatter_reduce" => Growth::Adds,
        "mul" => Growth::Multiplies,
        "addcmul" => Growth::AddsProduct,
        "remainder" | "fmod" => Growth::Remainder,
        "lt" | "gt" | "eq" | "ne" | "le" | "ge" | "logical_not" | "logical_and" | "any" | "all" | "zeros_like"
        | "ones_like" | "isnan" => Growth::Small,
        "sum" | "cumsum" => Growth::Sums,
        _ => Growth::Moves,
    }
}

/// Whether an operator only moves elements, whatever they are.
pub fn only_moves(op: Op) -> bool {
    matches!(growth(op), Growth::Moves)
        && !matches!(family(op), "relu" | "abs" | "maximum" | "minimum" | "clamp" | "amax" | "amin" | "sign" | "square")
}

/// Bound of a call's results, if the call runs `times` in a row on its own results. `None` if the operator computes with
/// bits of another type.
pub fn bound(op: Op, args: &[Arg<(Magnitude, Meta), Scalar>], times: f64) -> Option<Magnitude> {
    // Operands whose magnitude counts; indices and masks do not.
    let mut sizes = Vec::new();
    let mut numel = 1.0f64;
    let mut complex = 1.0;
    for (i, a) in args.iter().enumerate() {
        for (b, m) in a.values() {
            numel = numel.max(m.layout.numel() as f64);
            complex = if m.dtype.is_complex() { 2.0 } else { complex };
            sizes.push((i, b.of(m.dtype).0));
        }
    }
    let scalar = |i: usize| args.get(i).and_then(|a| a.scalars().first()).map(|s| s.as_f64().abs());
    let most = sizes.iter().map(|s| s.1).fold(0.0, f64::max);
    let numbers = || (1..args.len()).filter_map(scalar).fold(0.0, f64::max);
    let at = |i: usize| sizes.iter().filter(|s| s.0 == i).map(|s| s.1).reduce(f64::max).or(scalar(i));
    let bound = match growth(op) {
        Growth::Moves => most.max(numbers()),
        Growth::Adds => {
            let (first, rest) = (at(0).unwrap_or(0.0), (1..args.len()).filter_map(at).fold(0.0, f64::max));
            let scale =
                if family(op) == "add" || family(op) == "sub" { scalar(2).unwrap_or(1.0).max(1.0) } else { 4.0 };
            first + rest * scale * times
        }
        Growth::Multiplies => {
            let (a, b) = (at(0).unwrap_or(0.0), at(1).unwrap_or(1.0));
            a * if times > 1.0 { b.powf(times) } else { b } * complex
        }
        Growth::AddsProduct => {
            at(0).unwrap_or(0.0) + at(1).unwrap_or(1.0) * at(2).unwrap_or(1.0) * complex * times * 2.0
        }
        Growth::Remainder if most.is_finite() => at(1).unwrap_or(most),
        Growth::Remainder => most,
        Growth::Small => 1.0,
        Growth::Sums => most * numel,
    };
    (!bound.is_nan()).then_some(Magnitude(bound))
}

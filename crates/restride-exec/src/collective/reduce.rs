//! Reductions of ranks' elements, for engines that have none of their own.

use restride_ir::ReduceOp;
use restride_tensor::{C32, C64, DType, Element, bf16, f16};

/// Reduces the ranks' operands, in the order of ranks, to one result. Halves are summed in single precision and rounded once.
///
/// # Errors
/// Element type and operation do not go together, as in PyTorch: a mean of integers, an order of complex numbers.
///
/// # Panics
/// If an operand or the result has not the bytes of the first operand.
pub fn reduce(op: ReduceOp, dtype: DType, parts: &[&[u8]], out: &mut [u8]) -> Result<(), String> {
    assert!(parts.iter().all(|p| p.len() == out.len()), "operands of one size");
    let none = || Err(format!("a collective cannot reduce {} elements by `{}`", dtype.torch_name(), op.name()));
    macro_rules! whole {
        ($t:ty) => {
            match op {
                ReduceOp::Sum => fold::<$t, $t>(parts, out, |x| x, |a, b| a.wrapping_add(b), |a| a),
                ReduceOp::Product => fold::<$t, $t>(parts, out, |x| x, |a, b| a.wrapping_mul(b), |a| a),
                ReduceOp::Min => fold::<$t, $t>(parts, out, |x| x, |a, b| a.min(b), |a| a),
                ReduceOp::Max => fold::<$t, $t>(parts, out, |x| x, |a, b| a.max(b), |a| a),
                ReduceOp::BitAnd => fold::<$t, $t>(parts, out, |x| x, |a, b| a & b, |a| a),
                ReduceOp::BitOr => fold::<$t, $t>(parts, out, |x| x, |a, b| a | b, |a| a),
                ReduceOp::BitXor => fold::<$t, $t>(parts, out, |x| x, |a, b| a ^ b, |a| a),
                ReduceOp::Avg => return none(),
            }
        };
    }
    macro_rules! float {
        ($t:ty, $wide:ty, $widen:expr, $narrow:expr) => {
            match op {
                ReduceOp::Sum => fold::<$t, $wide>(parts, out, $widen, |a, b| a + b, $narrow),
                ReduceOp::Avg => {
                    let n = parts.len() as $wide;
                    fold::<$t, $wide>(parts, out, $widen, |a, b| a + b, |a| $narrow(a / n))
                }
                ReduceOp::Product => fold::<$t, $wide>(parts, out, $widen, |a, b| a * b, $narrow),
                ReduceOp::Min => {
                    fold::<$t, $wide>(parts, out, $widen, |a, b| if a.is_nan() || a < b { a } else { b }, $narrow)
                }
                ReduceOp::Max => {
                    fold::<$t, $wide>(parts, out, $widen, |a, b| if a.is_nan() || a > b { a } else { b }, $narrow)
                }
                _ => return none(),
            }
        };
    }
    macro_rules! complex {
        ($t:ty, $real:ty) => {
            match op {
                ReduceOp::Sum => fold::<$t, $t>(parts, out, |x| x, |a, b| a + b, |a| a),
                ReduceOp::Avg => {
                    let n = parts.len() as $real;
                    fold::<$t, $t>(parts, out, |x| x, |a, b| a + b, |a| a / n)
                }
                _ => return none(),
            }
        };
    }
    match dtype {
        DType::Bool => {
            // A truth value is one byte, 0 or 1: a sum is an or, a product an and.
            let by: fn(u8, u8) -> u8 = match op {
                ReduceOp::Sum | ReduceOp::Max | ReduceOp::BitOr => |a, b| a | b,
                ReduceOp::Product | ReduceOp::Min | ReduceOp::BitAnd => |a, b| a & b,
                ReduceOp::BitXor => |a, b| a ^ b,
                ReduceOp::Avg => return none(),
            };
            fold::<u8, u8>(parts, out, |x| x, by, |a| a);
        }
        DType::U8 => whole!(u8),
        DType::I8 => whole!(i8),
        DType::I16 => whole!(i16),
        DType::I32 => whole!(i32),
        DType::I64 => whole!(i64),
        DType::F16 => float!(f16, f32, f16::to_f32, f16::from_f32),
        DType::BF16 => float!(bf16, f32, bf16::to_f32, bf16::from_f32),
        DType::F32 => float!(f32, f32, |x| x, |a| a),
        DType::F64 => float!(f64, f64, |x| x, |a| a),
        DType::C64 => complex!(C32, f32),
        DType::C128 => complex!(C64, f64),
    }
    Ok(())
}

fn fold<T: Element, W: Copy>(
    parts: &[&[u8]],
    out: &mut [u8],
    widen: impl Fn(T) -> W,
    by: impl Fn(W, W) -> W,
    narrow: impl Fn(W) -> T,
) {
    let size = std::mem::size_of::<T>();
    for (i, cell) in out.chunks_exact_mut(size).enumerate() {
        // SAFETY: the chunk has the bytes of an element, and every bit pattern of a number is one. Addresses of bytes need
        // not be aligned.
        let read = |part: &&[u8]| unsafe { part[i * size..][..size].as_ptr().cast::<T>().read_unaligned() };
        let mut elements = parts.iter().map(read).map(&widen);
        let Some(first) = elements.next() else { return };
        let total = narrow(elements.fold(first, &by));
        // SAFETY: as above.
        unsafe { cell.as_mut_ptr().cast::<T>().write_unaligned(total) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Copy>(x: &[T]) -> Vec<u8> {
        let bytes = std::mem::size_of_val(x);
        // SAFETY: numbers have no padding.
        unsafe { std::slice::from_raw_parts(x.as_ptr().cast::<u8>(), bytes) }.to_vec()
    }

    fn reduced<T: Copy>(op: ReduceOp, dtype: DType, parts: &[&[T]]) -> Result<Vec<u8>, String> {
        let parts: Vec<Vec<u8>> = parts.iter().map(|p| of(p)).collect();
        let views: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let mut out = vec![0; parts[0].len()];
        reduce(op, dtype, &views, &mut out).map(|()| out)
    }

    #[test]
    fn elements_are_reduced_in_the_order_of_ranks() {
        let parts: [&[f32]; 3] = [&[1.0, f32::NAN], &[2.0, 5.0], &[6.0, 1.0]];
        assert_eq!(reduced(ReduceOp::Avg, DType::F32, &parts).unwrap()[..4], of(&[3.0f32]));
        assert_eq!(reduced(ReduceOp::Max, DType::F32, &parts).unwrap()[..4], of(&[6.0f32]));
        let nan = reduced(ReduceOp::Min, DType::F32, &parts).unwrap();
        assert!(f32::from_le_bytes(nan[4..].try_into().unwrap()).is_nan());
        let halves = [f16::from_f32(2048.0), f16::from_f32(1.0), f16::from_f32(1.0)];
        let halves: Vec<&[f16]> = halves.iter().map(std::slice::from_ref).collect();
        assert_eq!(reduced(ReduceOp::Sum, DType::F16, &halves).unwrap(), of(&[f16::from_f32(2050.0)]));
        assert_eq!(reduced::<i8>(ReduceOp::Sum, DType::I8, &[&[100], &[100]]).unwrap(), of(&[-56i8]));
        assert_eq!(reduced::<u8>(ReduceOp::Sum, DType::Bool, &[&[1], &[1]]).unwrap(), [1]);
        assert!(reduced::<i64>(ReduceOp::Avg, DType::I64, &[&[1], &[1]]).is_err());
        assert!(reduced::<f32>(ReduceOp::BitOr, DType::F32, &[&[1.0], &[1.0]]).is_err());
    }
}

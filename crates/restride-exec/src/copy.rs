//! Moving elements between tensors, and the lazy conjugate and negative bits.

use restride_ir::{OpError, dense_like};
use restride_kernels::support::convert::copy_convert;
use restride_tensor::{C32, C64, DType, Element, Layout, RawTensor, bf16, f16};

/// Most bytes that are taken without asking the system first.
const SURE: u128 = 1 << 28;

/// A zeroed tensor on memory of its own, or an error instead of an abort where the system lacks the memory.
pub fn allocate(dtype: DType, layout: Layout) -> Result<RawTensor, OpError> {
    let refuse = |why: &str| Err(OpError::new(format!("a tensor of {dtype} and layout {layout} {why}")));
    if layout.sizes.iter().any(|n| *n < 0) || layout.offset < 0 || layout.strides.iter().any(|s| *s < 0) {
        return refuse("cannot be made");
    }
    let Some(bytes) = layout.byte_range(dtype.size()) else {
        return refuse("has more elements than memory can have");
    };
    if !room_for(bytes.end as u128) {
        return refuse("needs more memory than the system has");
    }
    match RawTensor::try_zeros(dtype, layout.clone()) {
        Some(t) => Ok(t),
        None => refuse("needs more memory than the system has"),
    }
}

/// Most bytes that are asked for: a system that overcommits promises more, and kills the process that writes them.
const MOST: u128 = 1 << 38;

/// Whether the system gives this many bytes.
pub(crate) fn room_for(bytes: u128) -> bool {
    let given = || usize::try_from(bytes).is_ok_and(|n| Vec::<u8>::new().try_reserve_exact(n).is_ok());
    bytes <= SURE || bytes <= MOST && given()
}

/// The elements on memory of their own, in a layout of the same sizes.
pub fn copy_as(t: &RawTensor, layout: Layout) -> Result<RawTensor, OpError> {
    let own = allocate(t.dtype(), layout)?;
    copy_into(&own, t)?;
    Ok(own)
}

/// The elements on memory of their own, row-major.
pub fn contiguous_copy(t: &RawTensor) -> Result<RawTensor, OpError> {
    copy_as(t, Layout::contiguous(&t.layout().sizes))
}

/// Writes the elements of `src` into `dst`, converting, broadcasting and applying the lazy bits of both. Where
/// the two overlap, all of `src` is read first; where `dst` visits a cell more than once, the last index stays.
pub fn copy_into(dst: &RawTensor, src: &RawTensor) -> Result<(), OpError> {
    if src.storage().meets(dst.storage()) {
        let same =
            src.storage().same(dst.storage()) && src.dtype() == dst.dtype() && src.layout().same_cells(dst.layout());
        if same && (src.conj, src.neg) == (dst.conj, dst.neg) {
            return Ok(());
        }
        let own = allocate(src.dtype(), Layout::contiguous(&src.layout().sizes))?;
        copy_cells(&own, src)?;
        return copy_into(dst, &with_bits(own, src.conj, src.neg));
    }
    let src = if (src.conj, src.neg) == (false, false) { src.clone() } else { resolve(src)? };
    // Stored so that it reads as the value under the target's bits: both maps are their own inverse.
    let src = match (dst.conj, dst.neg) {
        (false, false) => src,
        (conj, neg) => {
            let same_type = allocate(dst.dtype(), Layout::contiguous(&src.layout().sizes))?;
            copy_cells(&same_type, &src)?;
            resolve(&with_bits(same_type, conj, neg))?
        }
    };
    let layout = src.layout().expand(&dst.layout().sizes)?;
    let wide = src.alias(src.dtype(), layout).ok_or_else(|| OpError::new("a broadcast reaches outside its storage"))?;
    copy_cells(dst, &wide)
}

/// Elements from one tensor to another of the same sizes on another storage, lazy bits aside.
fn copy_cells(dst: &RawTensor, src: &RawTensor) -> Result<(), OpError> {
    let used = |e: restride_tensor::AccessError| OpError::new(e.to_string());
    copy_convert(src.try_read().map_err(used)?.view(), &dst.try_write().map_err(used)?.view_mut());
    Ok(())
}

fn with_bits(mut t: RawTensor, conj: bool, neg: bool) -> RawTensor {
    (t.conj, t.neg) = (conj, neg);
    t
}

/// The tensor with its lazy bits applied: itself if it has none, otherwise as `clone` makes it.
pub fn resolve(t: &RawTensor) -> Result<RawTensor, OpError> {
    if !t.conj && !t.neg {
        return Ok(t.clone());
    }
    let own = allocate(t.dtype(), dense_like(t.layout()))?;
    let flip = t.conj && t.dtype().is_complex();
    fn store<T: Element>(own: &RawTensor, t: &RawTensor, f: impl Fn(T) -> T) -> Result<(), OpError> {
        let data: Vec<T> = t.to_elements::<T>().into_iter().map(f).collect();
        copy_cells(own, &RawTensor::from_slice(&data, &t.layout().sizes))
    }
    macro_rules! real {
        ($t:ty, $neg:expr) => {
            store::<$t>(&own, t, |x| if t.neg { $neg(x) } else { x })?
        };
    }
    macro_rules! complex {
        ($t:ty) => {
            store::<$t>(&own, t, |z| {
                let z = if flip { z.conj() } else { z };
                if t.neg { -z } else { z }
            })?
        };
    }
    match t.dtype() {
        DType::Bool => return Err(OpError::new("a bool tensor cannot be negated")),
        DType::U8 => real!(u8, u8::wrapping_neg),
        DType::I8 => real!(i8, i8::wrapping_neg),
        DType::I16 => real!(i16, i16::wrapping_neg),
        DType::I32 => real!(i32, i32::wrapping_neg),
        DType::I64 => real!(i64, i64::wrapping_neg),
        DType::F16 => real!(f16, |x: f16| -x),
        DType::BF16 => real!(bf16, |x: bf16| -x),
        DType::F32 => real!(f32, |x: f32| -x),
        DType::F64 => real!(f64, |x: f64| -x),
        DType::C64 => complex!(C32),
        DType::C128 => complex!(C64),
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lazy_bits_are_applied_on_both_sides() {
        let src = with_bits(RawTensor::from_slice(&[C32::new(1.0, 2.0), C32::new(-3.0, 0.5)], &[2]), true, false);
        let dst = with_bits(RawTensor::zeros(DType::C64, Layout::contiguous(&[2])), false, true);
        copy_into(&dst, &src).unwrap();
        assert_eq!(dst.to_elements::<C32>(), [C32::new(-1.0, 2.0), C32::new(3.0, 0.5)]);
        assert_eq!(resolve(&dst).unwrap().to_elements::<C32>(), [C32::new(1.0, -2.0), C32::new(-3.0, -0.5)]);
    }

    #[test]
    fn overlapping_copies_read_first() {
        let base = RawTensor::from_slice(&[1i64, 2, 3, 4], &[4]);
        let at = |offset| base.alias(DType::I64, Layout::strided(&[3], &[1], offset)).unwrap();
        copy_into(&at(1), &at(0)).unwrap();
        assert_eq!(base.to_elements::<i64>(), [1, 1, 2, 3]);
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(allocate(DType::F32, Layout::contiguous(&[1 << 40, 1 << 20])).is_err());
        assert!(allocate(DType::F32, Layout::contiguous(&[-1])).is_err());
    }
}

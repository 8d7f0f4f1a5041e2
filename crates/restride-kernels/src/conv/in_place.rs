//! Convolutions with windows of one element whose result takes the place of their input's end: each position of the result needs the
//! same position of the input alone. A stretch of positions of all channels is put aside, then overwritten.

use crate::conv::Number;
use crate::conv::implicit::start;
use crate::conv::window::Window;
use crate::matmul::panels::Strided;
use crate::support::scratch::{self, Temp};
use restride_tensor::{DType, Layout, View, ViewMut};

/// Limit of elements put aside at a time, unless that is fewer than 16 positions.
const ASIDE: usize = 1 << 13;

/// Positions put aside at a time, for `k` input and `out` output channels of `n` positions: few beside the result. Sums do
/// not depend on it.
fn stretch(k: usize, out: usize, n: usize) -> usize {
    (ASIDE.min(out * n / 4) / k.max(1) / 16 * 16).max(16).min(n)
}

/// Bytes of scratch with which a convolution of one sample in `x`, row-major, with as many channels as `channels` has (in,
/// out), may put its result over its input. `None` where it does not, or where that saves little.
pub fn room(dtype: DType, channels: (usize, usize), w: &Window, groups: usize) -> Option<usize> {
    let (k, out) = channels;
    let n = w.windows();
    if !w.is_identity() || groups != 1 || out > k {
        return None;
    }
    let aside = k * stretch(k, out, n);
    let room = match dtype {
        DType::F32 => scratch::room::<f32>(aside),
        DType::F64 => scratch::room::<f64>(aside),
        _ => return None,
    };
    (room * 2 <= out * n * dtype.size()).then_some(room)
}

/// Whether a result shares cells with `x`, both row-major. (Other layouts share none: the operator's `reuse` forbids it.)
pub(crate) fn meet(x: &View<'_>, out: &ViewMut<'_>) -> bool {
    let cells = |base: *const u8, layout: &Layout, dtype: DType| {
        let bytes = |n: i64| n as usize * dtype.size();
        let start = (base as usize).wrapping_add(bytes(layout.offset));
        start..start + bytes(layout.numel())
    };
    if !x.layout().is_contiguous() || !out.layout().is_contiguous() {
        return false;
    }
    let (a, b) = (cells(x.base(), x.layout(), x.dtype()), cells(out.base(), out.layout(), out.dtype()));
    a.start < b.end && b.start < a.end
}

/// `y = weight · x + bias` over `k` channels of `n` positions each, row-major, where `y` is the end of `x` or apart from it.
///
/// # Safety
/// `x` has `k` × `n` elements to read, `y` as many as `bias` and `weight` have rows, × `n`, to write. Either `y` is the last of
/// `x`, or they are apart; no other thread uses either meanwhile.
pub(crate) unsafe fn over<T: Number>(
    x: *const T,
    (k, n): (usize, usize),
    weight: &[T],
    bias: Option<&[T]>,
    y: *mut T,
    threads: usize,
) {
    let out = weight.len() / k.max(1);
    let wide = stretch(k, out, n);
    let mut aside = Temp::filled(k * wide, T::default());
    for first in (0..n).step_by(wide.max(1)) {
        let len = wide.min(n - first);
        for (row, line) in aside.chunks_exact_mut(wide).enumerate() {
            // SAFETY: the stretch is inside the row, and `aside` is apart from both.
            unsafe { std::ptr::copy_nonoverlapping(x.add(row * n + first), line.as_mut_ptr(), len) }
        }
        // SAFETY: `weight` is out × k, `aside` k × len with rows `wide` apart; of `y` the same stretch of `out` rows is written,
        // cells of positions that were put aside.
        unsafe {
            let (a, b) = ((weight.as_ptr(), k as isize, 1), (aside.as_ptr(), wide as isize, 1));
            let c = (y.add(first), n as isize, 1);
            if let Some(bias) = bias {
                start(bias, c.0, (n as isize, 1), len);
            }
            if n == 1 {
                T::product((out, len, k), true, a, b, c, bias.is_some(), threads);
            } else {
                T::product_of((out, len, k), &Strided::new(a), &Strided::new(b), c, bias.is_some(), threads);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::conv;
    use restride_tensor::{Access, RawTensor};

    fn drawn(sizes: &[i64], seed: u64) -> RawTensor {
        let t = RawTensor::zeros(DType::F32, Layout::contiguous(sizes));
        let numbers = (0..t.numel() as u64).map(|i| ((i + seed) * 2654435761 % 1999) as f64 / 1000.0 - 1.0);
        crate::support::convert::scatter(&numbers.collect::<Vec<f64>>(), &t.write().view_mut());
        t
    }

    /// Windows of one element, all in order.
    fn of_one(h: usize, w: usize) -> Window {
        let size = [1, h, w];
        Window { kernel: [1; 3], stride: [1; 3], pad: [0; 3], dilation: [1; 3], input: size, output: size }
    }

    #[test]
    fn a_result_over_its_input_has_the_same_bits() {
        let shapes =
            [(2, 2, 8, 8), (24, 24, 30, 31), (40, 7, 56, 56), (300, 280, 20, 13), (60, 1, 56, 56), (9, 4, 1, 4000)];
        for (k, out, h, w) in shapes {
            let window = of_one(h, w);
            let room = room(DType::F32, (k, out), &window, 1).expect("it is worth it");
            let (h, w) = (h as i64, w as i64);
            let x = drawn(&[1, k as i64, h, w], 1);
            let (weight, bias) = (drawn(&[out as i64, k as i64, 1, 1], 2), drawn(&[out as i64], 3));
            let bias = bias.read();
            for bias in [None, Some(bias.view())] {
                let apart = RawTensor::zeros(DType::F32, Layout::contiguous(&[1, out as i64, h, w]));
                conv(&x.read().view(), &weight.read().view(), bias.as_ref(), &window, 1, &apart.write().view_mut(), 1)
                    .unwrap();
                for threads in [1, 2] {
                    let same = drawn(&[1, k as i64, h, w], 1);
                    let offset = same.numel() as i64 - apart.numel() as i64;
                    let lies = Layout { offset, ..Layout::contiguous(&[1, out as i64, h, w]) };
                    let over = same.alias(DType::F32, lies).unwrap();
                    let both = Access::of([&same], [&over]).unwrap();
                    // SAFETY: the kernel copes with a result on the end of its input.
                    let (from, to) = unsafe { (both.view(&same), both.view_mut(&over)) };
                    let run = || conv(&from, &weight.read().view(), bias.as_ref(), &window, 1, &to, threads);
                    let (done, taken) = scratch::taken(run);
                    done.unwrap();
                    drop(both);
                    assert!(taken <= room, "{taken} of {room} bytes");
                    assert!(same.storage().to_vec().ends_with(&apart.storage().to_vec()), "{k} to {out} channels");
                }
            }
        }
    }

    #[test]
    fn what_needs_all_of_its_input_is_refused_over_it() {
        let window = of_one(8, 8);
        let (x, weight) = (drawn(&[2, 2, 8, 8], 1), drawn(&[2, 2, 1, 1], 2));
        let over = x.alias(DType::F32, Layout::contiguous(&[2, 2, 8, 8])).unwrap();
        let both = Access::of([&x], [&over]).unwrap();
        // SAFETY: the kernel compares the addresses of operand and result.
        let (from, to) = unsafe { (both.view(&x), both.view_mut(&over)) };
        assert!(conv(&from, &weight.read().view(), None, &window, 1, &to, 1).is_err());
        assert_eq!(room(DType::F32, (2, 3), &window, 1), None);
        assert_eq!(room(DType::F32, (2, 2), &window, 2), None);
        let strided = Window { stride: [1, 2, 2], output: [1, 4, 4], ..window };
        assert_eq!(room(DType::F32, (2, 2), &strided, 1), None);
    }
}

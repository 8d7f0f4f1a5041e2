//! Convolutions with windows of one element whose result takes the place of their input's end: each position of the result needs the
//! same position of the input alone. The results of a stretch of positions are computed aside, then put over its input.

use crate::conv::implicit::start;
use crate::conv::window::Window;
use crate::conv::{Number, SHARED};
use crate::matmul::panels::Strided;
use crate::support::par;
use crate::support::stack::Stack;
use restride_tensor::{DType, Layout, View, ViewMut};

/// Elements of results that are computed aside at a time, on the stack of each thread.
const ASIDE: usize = 1 << 15;

/// Whether a convolution of one sample in `x`, row-major, with as many channels as `channels` has (in, out), may put its result over its
/// input.
pub fn fits(dtype: DType, (k, out): (usize, usize), w: &Window, groups: usize) -> bool {
    w.is_identity() && groups == 1 && out <= k && out <= ASIDE && matches!(dtype, DType::F32 | DType::F64)
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
    let threads = if out * n * k < SHARED { 1 } else { threads };
    // Stretches of whole vectors, as even as possible, a few for each thread.
    let vector = T::width() / 2;
    let most = (ASIDE / out.max(1) / vector * vector).max(1);
    let len = n.div_ceil(n.div_ceil(most).next_multiple_of(threads)).next_multiple_of(vector).min(most).min(n);
    let count = n.div_ceil(len.max(1));
    let inner = if count == 1 { threads } else { 1 };
    // SAFETY: the caller's promise; stretches have positions of their own.
    let at = unsafe { par::Across::new((x, y)) };
    par::each(threads, count, &|i| {
        let (x, y) = *at.get();
        let first = i * len;
        let positions = len.min(n - first);
        // SAFETY: a stretch of each row; `y` has the stretch of as many rows as the bias.
        unsafe { stretch(x.add(first), (k, n), (out, positions), weight, bias, y.add(first), inner) }
    });
}

/// As [`over`], of a stretch of positions whose first is that of `x` and `y`.
///
/// # Safety
/// As [`over`].
unsafe fn stretch<T: Number>(
    x: *const T,
    (k, n): (usize, usize),
    (out, len): (usize, usize),
    weight: &[T],
    bias: Option<&[T]>,
    y: *mut T,
    threads: usize,
) {
    let mut aside = Stack::<T, ASIDE>::new();
    let to = aside.start();
    let c = (to, len as isize, 1);
    // SAFETY: `weight` is out × k, the stretch of `x` k × len with rows `n` apart; there is room aside for out × len results, which go to
    // `y` once nothing reads its positions of `x` any more.
    unsafe {
        let (a, b) = ((weight.as_ptr(), k as isize, 1), (x, n as isize, 1));
        if let Some(bias) = bias {
            start(bias, to, (len as isize, 1), len);
        }
        if n == 1 {
            T::product((out, len, k), true, a, b, c, bias.is_some(), threads);
        } else {
            T::product_of((out, len, k), &Strided::new(a), &Strided::new(b), c, bias.is_some(), threads);
        }
        for row in 0..out {
            std::ptr::copy_nonoverlapping(to.add(row * len), y.add(row * n), len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::conv;
    use crate::support::scratch;
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
            assert!(fits(DType::F32, (k, out), &window, 1));
            let (h, w) = (h as i64, w as i64);
            let x = drawn(&[1, k as i64, h, w], 1);
            let (weight, bias) = (drawn(&[out as i64, k as i64, 1, 1], 2), drawn(&[out as i64], 3));
            let bias = bias.read();
            for bias in [None, Some(bias.view())] {
                let apart = RawTensor::zeros(DType::F32, Layout::contiguous(&[1, out as i64, h, w]));
                conv(&x.read().view(), &weight.read().view(), bias.as_ref(), &window, 1, &apart.write().view_mut(), 1)
                    .unwrap();
                for threads in [1, 2, 3] {
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
                    assert_eq!(taken, 0, "bytes of scratch");
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
        assert!(!fits(DType::F32, (2, 3), &window, 1));
        assert!(!fits(DType::F32, (2, 2), &window, 2));
        let strided = Window { stride: [1, 2, 2], output: [1, 4, 4], ..window };
        assert!(!fits(DType::F32, (2, 2), &strided, 1));
    }
}

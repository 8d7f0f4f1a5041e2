//! The padded input under a box of windows, put so that a tap of neighbouring windows is a run.
//!
//! Rows and columns are dealt out by their remainder to the strides ("phases"): windows that are `stride` apart are then neighbours. A
//! window has a flat number, row · pitch + column; the element of tap `t` of channel `c` for the window `f` is at
//! `c · channel + taps[t] + f`. Numbers between the columns of a box and the pitch are of no window.

use crate::conv::lanes::{Lanes, clear, copy};
use crate::conv::window::Window;
use smallvec::SmallVec;

/// Most taps of a window for which frames are made.
pub(crate) const TAPS: usize = 512;

/// Something for each tap. Few windows have more than there is room for in place.
pub(crate) type EachTap<T> = SmallVec<[T; 32]>;

/// Where the elements of a tensor are: the first one's address, and distances of channels and in the three dimensions of a plane.
#[derive(Clone, Copy)]
pub(crate) struct Planes<P> {
    pub base: P,
    pub channel: isize,
    pub strides: [isize; 3],
}

impl<P> Planes<P> {
    /// The distance of windows, where it is one for all of a plane with these sizes.
    pub(crate) fn line(&self, size: [usize; 3]) -> Option<isize> {
        let s = self.strides;
        crate::conv::implicit::uniform(&[(size[0], s[0]), (size[1], s[1]), (size[2], s[2])])
    }
}

impl<T> Planes<*const T> {
    /// The same elements of another type.
    pub(crate) fn cast<U>(self) -> Planes<*const U> {
        Planes { base: self.base.cast(), channel: self.channel, strides: self.strides }
    }
}

impl<T> Planes<*mut T> {
    /// As [`cast`](Planes::cast).
    pub(crate) fn cast_mut<U>(self) -> Planes<*mut U> {
        Planes { base: self.base.cast(), channel: self.channel, strides: self.strides }
    }
}

/// Geometry of boxes of `rows` × `columns` windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    w: Window,
    pub rows: usize,
    pub columns: usize,
    /// Elements from a row to the next.
    pub pitch: usize,
    /// Phases of rows and of columns, rows of a phase.
    phases: [usize; 2],
    high: usize,
    /// Elements of a channel.
    pub channel: usize,
}

impl Frame {
    pub(crate) fn new(w: &Window, rows: usize, columns: usize) -> Frame {
        let [_, sy, sx] = w.stride;
        let [kd, kh, kw] = w.kernel;
        let reach = |d: usize| (w.kernel[d] - 1) * w.dilation[d] / w.stride[d];
        let phases = [if kh == 1 { 1 } else { sy }, if kw == 1 { 1 } else { sx }];
        let (high, wide) = (rows + reach(1), columns + reach(2));
        // The zeros to the left of a row are those to the right of the one before it.
        let shared = w.input[2] + w.pad[2];
        let fits = columns == w.output[2] && sx == 1 && columns <= shared && wide <= shared + w.pad[2];
        let pitch = if fits { wide.min(shared) } else { wide };
        Frame { w: *w, rows, columns, pitch, phases, high, channel: kd * phases[0] * phases[1] * high * pitch }
    }

    /// Flat numbers of all windows of a box with `rows` rows.
    pub(crate) fn flat(&self, rows: usize) -> usize {
        (rows - 1) * self.pitch + self.columns
    }

    /// Zeros after the last channel that are read: a row's right padding, and the rest of a vector.
    pub(crate) fn slack(&self, vector: usize) -> usize {
        self.w.pad[2] + vector
    }

    /// Position of each tap for window 0.
    pub(crate) fn taps(&self, mut put: impl FnMut(usize, usize)) {
        let ([_, sy, sx], [_, dy, dx]) = (self.w.stride, self.w.dilation);
        let [py, px] = self.phases;
        self.w.each_tap(|t, [kz, ky, kx]| {
            let (y, x) = (ky * dy, kx * dx);
            let phase = (kz * py + y % sy) * px + x % sx;
            put(t, (phase * self.high + y / sy) * self.pitch + x / sx);
        });
    }

    /// Writes one channel for the box whose first window is `at`; its padding only where `pad`.
    ///
    /// # Safety
    /// `x` has a plane of the window's input to read, `to` has `channel` elements to write.
    #[inline(always)]
    pub(crate) unsafe fn fill<V: Lanes<T = f32>>(
        &self,
        x: *const f32,
        strides: [isize; 3],
        at: [usize; 3],
        to: *mut f32,
        pad: bool,
    ) {
        let w = &self.w;
        let [py, px] = self.phases;
        let mut row = to;
        for kz in 0..w.kernel[0] {
            let z = w.at(0, at[0], kz);
            for (y0, x0) in (0..py).flat_map(|y| (0..px).map(move |x| (y, x))) {
                // Columns `lo .. hi` are inside of the input.
                let first = at[2] * w.stride[2] + x0;
                let lo = w.pad[2].saturating_sub(first).div_ceil(w.stride[2]).min(self.pitch);
                let hi = (w.input[2] + w.pad[2]).saturating_sub(first).div_ceil(w.stride[2]).clamp(lo, self.pitch);
                for j in 0..self.high {
                    let y = ((at[1] + j) * w.stride[1] + y0).checked_sub(w.pad[1]).filter(|&y| y < w.input[1]);
                    // SAFETY: the row is one of the channel's; columns from `lo` to `hi` are elements of the plane.
                    unsafe {
                        match z.zip(y).filter(|_| lo < hi) {
                            None if pad => clear::<V>(row, self.pitch),
                            None => {}
                            Some((z, y)) => {
                                let column = (first + lo * w.stride[2] - w.pad[2]) as isize;
                                let from =
                                    x.offset(z as isize * strides[0] + y as isize * strides[1] + column * strides[2]);
                                if pad {
                                    clear::<V>(row, lo);
                                    clear::<V>(row.add(hi), self.pitch - hi);
                                }
                                gather::<V>(from, strides[2] * w.stride[2] as isize, row.add(lo), hi - lo);
                            }
                        }
                        row = row.add(self.pitch);
                    }
                }
            }
        }
    }
}

/// Copies `n` elements that are `step` apart to neighbours.
///
/// # Safety
/// They are readable and writable, apart from each other.
#[inline(always)]
pub(crate) unsafe fn gather<V: Lanes<T = f32>>(from: *const f32, step: isize, to: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match step {
            1 => copy::<V>(from, to, n),
            2 => evens(from, to, n),
            _ => (0..n).for_each(|i| to.add(i).write(from.offset(i as isize * step).read())),
        }
    }
}

/// Every second element, eight of them.
///
/// # Safety
/// They are readable.
#[inline(always)]
pub(crate) unsafe fn eight_evens<T: Copy>(from: *const T) -> [T; 8] {
    // SAFETY: the caller's promise; the last element that is read is the last one of the eight.
    let (a, b) = unsafe { (from.cast::<[T; 8]>().read_unaligned(), from.add(7).cast::<[T; 8]>().read_unaligned()) };
    [a[0], a[2], a[4], a[6], b[1], b[3], b[5], b[7]]
}

/// Copies every second element, `n` of them.
///
/// # Safety
/// They are readable and writable, apart from each other.
#[inline(always)]
pub(crate) unsafe fn evens<T: Copy>(from: *const T, to: *mut T, n: usize) {
    // SAFETY: the caller's promise; the last element that is read is the last one copied. The last ones may be copied twice.
    unsafe {
        if n >= 8 {
            let mut i = 0;
            while i < n {
                i = i.min(n - 8);
                to.add(i).cast::<[T; 8]>().write_unaligned(eight_evens(from.add(2 * i)));
                i += 8;
            }
        } else if n >= 4 {
            let mut i = 0;
            while i < n {
                i = i.min(n - 4);
                let a = from.add(2 * i).cast::<[T; 4]>().read_unaligned();
                let b = from.add(2 * i + 3).cast::<[T; 4]>().read_unaligned();
                to.add(i).cast::<[T; 4]>().write_unaligned([a[0], a[2], b[1], b[3]]);
                i += 4;
            }
        } else {
            let mut i = 0;
            while i < n {
                to.add(i).write(from.add(2 * i).read());
                i += 1;
            }
        }
    }
}

/// Copies `n` neighbours to elements that are `step` apart.
///
/// # Safety
/// As [`gather`].
#[inline(always)]
pub(crate) unsafe fn spread<V: Lanes<T = f32>>(from: *const f32, to: *mut f32, step: isize, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match step {
            1 => copy::<V>(from, to, n),
            _ => (0..n).for_each(|i| to.offset(i as isize * step).write(from.add(i).read())),
        }
    }
}

//! The padded input under a box of windows, copied once for all taps: of planes as a [`Frame`], of a channels-last input as rows of
//! pixels.

use crate::conv::Shape;
use crate::conv::frame::{Frame, Planes, TAPS};
use crate::conv::lanes::{Lanes, clear, copy};
use crate::conv::tiled::FRAME;
use crate::conv::window::Window;
use std::ops::Range;

/// Pixels of a multiple of these elements would compete for sets of the first cache.
const APART: usize = 128;

/// With this number of boxes for each thread, one more makes no difference.
const MANY: usize = 16;

/// Most windows of a row of a box: their results have a place on the stack.
pub(super) const COLUMNS: usize = 256;

/// Padded rows of a channels-last input: the element of tap `t` of channel `c` for the first window is at `taps[t] + c`.
pub(super) struct Pixels {
    w: Window,
    cin: usize,
    /// Rows of a plane, pixels of a row, elements of a pixel with those that keep pixels in different sets of the first cache.
    high: usize,
    wide: usize,
    pixel: usize,
}

impl Pixels {
    /// For boxes of `rows` × `columns` windows, and their elements; `None` where there are too many to count.
    fn new(w: &Window, cin: usize, rows: usize, columns: usize) -> Option<(Pixels, usize)> {
        let reach = |d: usize, n: usize| (n - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
        let (high, wide) = (reach(1, rows), reach(2, columns));
        let pixel = if cin.is_multiple_of(APART) { cin + 16 } else { cin };
        let all = high.checked_mul(wide)?.checked_mul(pixel)?.checked_mul(w.kernel[0])?;
        Some((Pixels { w: *w, cin, high, wide, pixel }, all))
    }

    /// Position of each tap for window 0.
    fn taps(&self, mut put: impl FnMut(usize, usize)) {
        let [_, dy, dx] = self.w.dilation;
        self.w.each_tap(|t, [z, y, x]| put(t, ((z * self.high + y * dy) * self.wide + x * dx) * self.pixel));
    }

    /// Writes the rows for the box whose first window is `at`.
    ///
    /// # Safety
    /// `x` is a group's input to read, channels side by side; `to` has room for the rows.
    #[inline(always)]
    unsafe fn fill<V: Lanes<T = f32>>(&self, x: *const f32, strides: [isize; 3], at: [usize; 3], mut to: *mut f32) {
        let (w, cin, apart) = (&self.w, self.cin, self.pixel);
        let first = at[2] * w.stride[2];
        let lo = w.pad[2].saturating_sub(first).min(self.wide);
        let hi = (w.input[2] + w.pad[2]).saturating_sub(first).clamp(lo, self.wide);
        for kz in 0..w.kernel[0] {
            for j in 0..self.high {
                let y = (at[1] * w.stride[1] + j).checked_sub(w.pad[1]).filter(|&y| y < w.input[1]);
                // SAFETY: the caller's promise; pixels from `lo` to `hi` are of the input.
                unsafe {
                    match w.at(0, at[0], kz).zip(y).filter(|_| lo < hi) {
                        None => clear::<V>(to, self.wide * apart),
                        Some((z, y)) => {
                            let pixel = (first + lo - w.pad[2]) as isize;
                            let from = x.offset(z as isize * strides[0] + y as isize * strides[1] + pixel * strides[2]);
                            clear::<V>(to, lo * apart);
                            if strides[2] == cin as isize && apart == cin {
                                copy::<V>(from, to.add(lo * cin), (hi - lo) * cin);
                            } else {
                                let mut i = lo;
                                while i < hi {
                                    copy::<V>(from.offset((i - lo) as isize * strides[2]), to.add(i * apart), cin);
                                    i += 1;
                                }
                            }
                            clear::<V>(to.add(hi * apart), (self.wide - hi) * apart);
                        }
                    }
                    to = to.add(self.wide * apart);
                }
            }
        }
    }
}

/// The input under a box.
pub(super) enum BoxInput {
    Pixels(Pixels),
    Planes(Frame),
}

impl BoxInput {
    /// Distance of channels.
    pub(super) fn channel(&self) -> usize {
        match self {
            BoxInput::Pixels(_) => 1,
            BoxInput::Planes(frame) => frame.channel,
        }
    }
    /// Distance of rows of windows.
    pub(super) fn row(&self) -> usize {
        match self {
            BoxInput::Pixels(p) => p.w.stride[1] * p.wide * p.pixel,
            BoxInput::Planes(frame) => frame.pitch,
        }
    }
    /// Distance of windows of a row.
    pub(super) fn near(&self) -> usize {
        match self {
            BoxInput::Pixels(p) => p.w.stride[2] * p.pixel,
            BoxInput::Planes(_) => 1,
        }
    }
    /// Position of each tap of channel 0 for window 0.
    pub(super) fn taps(&self, put: impl FnMut(usize, usize)) {
        match self {
            BoxInput::Pixels(p) => p.taps(put),
            BoxInput::Planes(frame) => frame.taps(put),
        }
    }
}

/// Boxes of a convolution's windows.
pub(super) struct WindowBoxes {
    pub input: BoxInput,
    /// Most rows of windows of a box, its columns, and boxes of an image.
    pub rows: usize,
    pub columns: usize,
    pub down: usize,
    pub across: usize,
    /// Parts of the result channels.
    pub parts: usize,
    /// Elements of the input under a box.
    pub elements: usize,
}

impl WindowBoxes {
    /// Boxes whose input has at most `room` elements, of at most `parts` parts of the channels and with rows for this number of threads.
    pub(super) fn of(
        s: &Shape,
        x: &Planes<*const f32>,
        parts: usize,
        threads: usize,
        room: usize,
    ) -> Option<WindowBoxes> {
        let w = &s.w;
        if w.taps() > TAPS || (0..3).any(|d| w.pad[d] > FRAME || w.dilation[d] * w.kernel[d] > FRAME) {
            return None;
        }
        let last = x.channel == 1 && s.cin > 1;
        let fits = |rows: usize, columns: usize| {
            if last {
                let (pixels, all) = Pixels::new(w, s.cin, rows, columns)?;
                (all <= room).then_some((BoxInput::Pixels(pixels), all))
            } else {
                let frame = Frame::new(w, rows, columns);
                let all = frame.channel.checked_mul(s.cin)?.checked_add(frame.slack(0))?;
                (all <= room).then_some((BoxInput::Planes(frame), all))
            }
        };
        let [_, oh, ow] = w.output;
        let even = |n: usize, most: usize| n.div_ceil(n.div_ceil(most.max(1)));
        // As many rows as fit and give all threads the same work, else parts of a row.
        let images = s.batch * s.groups * w.output[0];
        let wide = even(ow, COLUMNS);
        let (down, columns) = match (1..=oh).rev().find(|&rows| fits(rows, wide).is_some()) {
            Some(rows) => {
                let boxes = images * oh.div_ceil(rows);
                let even = if boxes < MANY * threads { boxes.next_multiple_of(threads) } else { boxes };
                (even.div_ceil(images).min(oh), wide)
            }
            None => {
                let mut columns = wide;
                while columns > 1 && fits(1, columns).is_none() {
                    columns = columns.div_ceil(2);
                }
                (oh, even(ow, columns))
            }
        };
        let rows = oh.div_ceil(down);
        let (input, elements) = fits(rows, columns)?;
        let across = ow.div_ceil(columns);
        Some(WindowBoxes { input, rows, columns, down, across, parts, elements })
    }

    /// The rows of windows of a box: those of two boxes differ by one at most.
    pub(super) fn rows_of(&self, oh: usize, number: usize) -> Range<usize> {
        oh * number / self.down..oh * (number + 1) / self.down
    }

    /// Copies the input under the box whose first window is `at`.
    ///
    /// # Safety
    /// `from` is the first element of a group's input in the planes of `x`, `to` has [`WindowBoxes::elements`] to write.
    #[inline(always)]
    pub(super) unsafe fn fill<V: Lanes<T = f32>>(
        &self,
        x: &Planes<*const f32>,
        from: *const f32,
        cin: usize,
        at: [usize; 3],
        to: *mut f32,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.input {
                BoxInput::Pixels(pixels) => pixels.fill::<V>(from, x.strides, at, to),
                BoxInput::Planes(frame) => {
                    let mut c = 0;
                    while c < cin {
                        let from = from.offset(c as isize * x.channel);
                        frame.fill::<V>(from, x.strides, at, to.add(c * frame.channel), true);
                        c += 1;
                    }
                    // Its last windows read beyond it.
                    clear::<V>(to.add(cin * frame.channel), frame.slack(0));
                }
            }
        }
    }
}

//! Windows of pooling, several results at a time: neighbouring windows of a row, or channels of one window where they are side by
//! side in memory.
//!
//! A result is made of the elements of its window in row-major order: element `j` of each line goes to part `j % PARTS`. Layouts only
//! choose which results are computed together.

use crate::conv::frame::{Planes, eight_evens};
use crate::pool::{PoolWindows, Span};
use crate::support::array;
use crate::support::isa;
use crate::support::pack::Compute;
use crate::support::par::{self, EvenParts};
use restride_tensor::DType;
use std::ops::Range;

/// Results that are computed together.
pub(super) const SIDE: usize = 16;
/// Results that fill one vector of AVX2.
pub(super) const HALF: usize = SIDE / 2;
/// Elements that are worth a thread.
const SHARED: usize = 1 << 14;
/// Most elements of a window that are listed before channels are visited.
const TAPS: usize = 512;

/// Whether planes of the type are common: loops for single cases, and for several instruction sets, are worth their code.
pub(super) const fn is_common<T: Compute>() -> bool {
    matches!(T::DTYPE, DType::F32)
}

/// The window of a dimension that has one element.
const ONE: Span = Span { start: 0, end: 1, step: 1, size: 1 };

/// What becomes of the elements of a window.
pub(super) trait Fold<T>: Sync {
    /// Partial results of a window.
    const PARTS: usize;
    /// A part without elements. Of eight parts, one that it is added to stays as it is.
    const START: T;
    /// A part with one more element.
    fn step(part: T, x: T) -> T;
    /// The divisor of a window's result; 1 of one without elements.
    fn divisor(&self, w: &[Span; 3]) -> T;
    /// The result, from the parts with [`START`](Fold::START) after them up to eight.
    fn finish(&self, parts: [T; 8], divisor: T) -> T;
}

/// A pooling in strides.
pub(super) struct Pooling<'a, T, F> {
    pub s: PoolWindows<'a>,
    pub fold: F,
    /// Samples and channels.
    pub size: [usize; 2],
    pub x: Planes<*const T>,
    pub x_sample: isize,
    pub y: Planes<*mut T>,
    pub y_sample: isize,
}
// SAFETY: threads read the operand and write each their own elements of the result.
unsafe impl<T: Sync, F: Sync> Sync for Pooling<'_, T, F> {}

impl<T: Compute, F: Fold<T> + Copy> Pooling<'_, T, F> {
    /// Runs it.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of `y` writable, different cells that no other thread uses and that
    /// are none of the operand.
    pub(super) unsafe fn run(&self, threads: usize) {
        let [samples, channels] = self.size;
        let [d, h, _] = self.s.windows.each_ref().map(|w| w.len());
        let threads = if samples * channels * self.s.volume() < SHARED { 1 } else { threads };
        let last = self.x.channel == 1 && self.y.channel == 1 && channels > 1;
        let items = if last { samples * d * h } else { samples * channels };
        EvenParts::new(items, threads).each(&|range| {
            // Items share no elements of the result.
            if last {
                isa::run(Items::<_, _, true>(self, range));
            } else {
                isa::run(Items::<_, _, false>(self, range));
            }
        });
    }

    /// As [`run`](Pooling::run), where `line` is the only window of a plane, of all its elements in order.
    ///
    /// # Safety
    /// As [`run`](Pooling::run).
    pub(super) unsafe fn run_line(&self, line: Span, threads: usize) {
        if let Some(step) = self.x.line(self.s.input) {
            let s = PoolWindows { spatial: 1, input: [1, 1, line.end], windows: [&[ONE], &[ONE], &[line]] };
            let x = Planes { strides: [0, 0, step], ..self.x };
            // SAFETY: the caller's promise, of the same elements.
            return unsafe { Pooling { s, x, ..*self }.run(threads) };
        }
        // Planes with gaps.
        let ([_, h, w], strides, [samples, channels]) = (self.s.input, self.x.strides, self.size);
        par::each(threads, samples * channels, &|item| {
            let mut parts = [F::START; 8];
            let (n, c) = ((item / channels) as isize, (item % channels) as isize);
            // SAFETY: the caller's promise; each item is one thread's.
            unsafe {
                let from = self.x.base.offset(n * self.x_sample + c * self.x.channel);
                for i in 0..line.end {
                    let at = [i / (h * w), i / w % h, i % w];
                    let cell = (0..3).map(|d| at[d] as isize * strides[d]).sum();
                    parts[i % 8] = F::step(parts[i % 8], from.offset(cell).read());
                }
                let to = self.y.base.offset(n * self.y_sample + c * self.y.channel);
                to.write(self.fold.finish(parts, self.fold.divisor(&[ONE, ONE, line])));
            }
        });
    }

    /// All channels of a line of windows.
    #[inline(always)]
    unsafe fn line(&self, item: usize) {
        let [z, y, x] = self.s.windows.each_ref().map(|w| &w[..]);
        let (n, line) = (item / (z.len() * y.len()), item % (z.len() * y.len()));
        let (oz, oy) = (line / y.len(), line % y.len());
        let channels = self.size[1];
        // SAFETY: the caller's promise.
        unsafe {
            let from = self.x.base.offset(n as isize * self.x_sample);
            let to = self.y.base.offset(n as isize * self.y_sample);
            let to = to.offset(oz as isize * self.y.strides[0] + oy as isize * self.y.strides[1]);
            let mut listed = Listed { taps: [0; TAPS], ends: [0; 8], shape: None, divisor: F::START };
            for (ox, &x) in x.iter().enumerate() {
                let w = [z[oz], y[oy], x];
                let to = to.offset(ox as isize * self.y.strides[2]);
                if const { is_common::<T>() } && channels >= SIDE && self.list(&w, &mut listed) {
                    let s = &self.x.strides;
                    let first = (0..3).map(|d| w[d].start as isize * s[d]).sum::<isize>();
                    self.all_channels(&listed, from.wrapping_offset(first), to);
                    continue;
                }
                let mut c = 0;
                while const { is_common::<T>() } && c + SIDE <= channels {
                    self.block::<1, true>(&w, from.add(c), 1, SIDE, to.add(c), 1);
                    c += SIDE;
                }
                while c < channels {
                    self.block::<1, false>(&w, from.add(c), 1, channels - c, to.add(c), 1);
                    c += SIDE;
                }
            }
        }
    }

    /// Lists the elements of a window, of each part after those of the one before, from its first one on: sums of parts are then
    /// registers. Windows of one line that are alike have one list. False if there are too many.
    #[inline(always)]
    fn list(&self, w: &[Span; 3], to: &mut Listed<T>) -> bool {
        let shape = (w[2].end.saturating_sub(w[2].start), w[2].step, w[2].size);
        if to.shape == Some(shape) {
            return true;
        }
        let s = &self.x.strides;
        let count = |w: &Span| w.end.saturating_sub(w.start).div_ceil(w.step.max(1));
        let counts = [count(&w[0]), count(&w[1]), count(&w[2])];
        if counts.iter().product::<usize>() > TAPS {
            return false;
        }
        let mut n = 0;
        for p in 0..8 {
            if p < F::PARTS {
                for (i, j) in (0..counts[0]).flat_map(|i| (0..counts[1]).map(move |j| (i, j))) {
                    let line = (i * w[0].step) as isize * s[0] + (j * w[1].step) as isize * s[1];
                    for k in (p..counts[2]).step_by(F::PARTS) {
                        to.taps[n] = line + (k * w[2].step) as isize * s[2];
                        n += 1;
                    }
                }
            }
            to.ends[p] = n;
        }
        (to.shape, to.divisor) = (Some(shape), self.fold.divisor(w));
        true
    }

    /// All channels of a window, at least [`SIDE`] that are side by side.
    #[inline(always)]
    unsafe fn all_channels(&self, of: &Listed<T>, x: *const T, y: *mut T) {
        let channels = self.size[1];
        let taps = &of.taps[..of.ends[7]];
        // SAFETY: the caller's promise; the last channels may be visited twice.
        unsafe {
            let mut c = 0;
            while c + 2 * SIDE <= channels {
                self.channels::<{ 2 * SIDE }>(taps, &of.ends, of.divisor, x.add(c), y.add(c));
                c += 2 * SIDE;
            }
            while c < channels {
                c = c.min(channels - SIDE);
                self.channels::<SIDE>(taps, &of.ends, of.divisor, x.add(c), y.add(c));
                c += SIDE;
            }
        }
    }

    /// Some channels of a window: the elements of part `p` end at `ends[p]`.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // lanes
    unsafe fn channels<const N: usize>(&self, taps: &[isize], ends: &[usize; 8], divisor: T, x: *const T, y: *mut T) {
        let mut made = [F::START; N];
        if let (&[a, b, c, d], true) = (taps, ends[0] == 2 && ends[1] == 4) {
            // Two lines of two elements, the most frequent window of means: no loop over elements.
            // SAFETY: the caller's promise.
            let [a, b, c, d]: [&[T; N]; 4] =
                unsafe { [&*x.offset(a).cast(), &*x.offset(b).cast(), &*x.offset(c).cast(), &*x.offset(d).cast()] };
            for l in 0..N {
                let mut parts = [F::START; 8];
                parts[0] = F::step(F::step(F::START, a[l]), b[l]);
                parts[1] = F::step(F::step(F::START, c[l]), d[l]);
                made[l] = self.fold.finish(parts, divisor);
            }
        } else if ends[1] == ends[7] {
            // SAFETY: the caller's promise.
            let [first, second] =
                unsafe { [Self::part::<N>(&taps[..ends[0]], x), Self::part::<N>(&taps[ends[0]..ends[1]], x)] };
            for l in 0..N {
                let mut parts = [F::START; 8];
                (parts[0], parts[1]) = (first[l], second[l]);
                made[l] = self.fold.finish(parts, divisor);
            }
        } else {
            let mut parts = [[F::START; N]; 8];
            let mut from = 0;
            for (to, &end) in parts.iter_mut().zip(ends) {
                // SAFETY: the caller's promise.
                *to = unsafe { Self::part::<N>(&taps[from..end], x) };
                from = end;
            }
            for l in 0..N {
                made[l] = self.fold.finish(array::from_fn(|p| parts[p][l]), divisor);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { y.cast::<[T; N]>().write_unaligned(made) }
    }

    /// A part of a window of some channels: its elements one after the other. No closure: one that is not inlined has no vectors of
    /// the processor.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // lanes
    unsafe fn part<const N: usize>(taps: &[isize], x: *const T) -> [T; N] {
        let mut sums = [F::START; N];
        for &tap in taps {
            // SAFETY: the caller's promise.
            let row = unsafe { x.offset(tap).cast::<[T; N]>().read_unaligned() };
            for l in 0..N {
                sums[l] = F::step(sums[l], row[l]);
            }
        }
        sums
    }

    /// The one window of planes whose lines are runs of several elements.
    fn whole(&self) -> Option<[Span; 3]> {
        let [z, y, x] = self.s.windows.each_ref().map(|w| &w[..]);
        let (&[z], &[y], &[x]) = (z, y, x) else { return None };
        (self.x.strides[2] == 1 && x.step == 1 && x.start + 4 <= x.end).then_some([z, y, x])
    }

    /// Samples' planes with one window, `P` of them.
    #[inline(always)]
    unsafe fn planes<const P: usize>(&self, w: &[Span; 3], item: usize) {
        let of = |p: usize| (((item + p) / self.size[1]) as isize, ((item + p) % self.size[1]) as isize);
        let x = array::from_fn(|p| self.x.base.wrapping_offset(of(p).0 * self.x_sample + of(p).1 * self.x.channel));
        let y = array::from_fn(|p| self.y.base.wrapping_offset(of(p).0 * self.y_sample + of(p).1 * self.y.channel));
        // SAFETY: the caller's promise.
        unsafe { self.alone::<P>(w, x, y) }
    }

    /// All windows of a plane.
    #[inline(always)]
    unsafe fn plane(&self, item: usize) {
        let (n, c) = (item / self.size[1], item % self.size[1]);
        let [z, y, x] = self.s.windows.each_ref().map(|w| &w[..]);
        let width = self.x.strides[2];
        // SAFETY: the caller's promise.
        unsafe {
            let from = self.x.base.offset(n as isize * self.x_sample).offset(c as isize * self.x.channel);
            let to = self.y.base.offset(n as isize * self.y_sample).offset(c as isize * self.y.channel);
            let mut groups = [AlikeWindows::default(); GROUPS];
            // Windows that fill a block.
            let full = if F::PARTS == 1 { HALF } else { SIDE };
            for (oz, &z) in z.iter().enumerate() {
                for (oy, &y) in y.iter().enumerate() {
                    let to = to.offset(oz as isize * self.y.strides[0] + oy as isize * self.y.strides[1]);
                    let step = self.y.strides[2];
                    let (mut i, mut g) = (0, 0);
                    while i < x.len() {
                        // Those of the first line serve for all.
                        let group = match groups.get(g) {
                            Some(known) if known.many > 0 => *known,
                            _ => AlikeWindows::next(x, i, const { is_common::<T>() }),
                        };
                        if let Some(to) = groups.get_mut(g) {
                            *to = group;
                        }
                        g += 1;
                        let AlikeWindows { first, many, apart } = group;
                        i = first;
                        let (w, to) = ([z, y, x[i]], to.offset(i as isize * step));
                        let long = width == 1 && x[i].step == 1 && x[i].start + 4 <= x[i].end;
                        if const { F::PARTS == 8 && is_common::<T>() } && long && many < HALF {
                            self.alone::<1>(&w, [from], [to]);
                            i += 1;
                            continue;
                        }
                        match (many, apart as isize * width) {
                            (_, 1) if const { is_common::<T>() } && many >= full => {
                                self.block::<1, true>(&w, from, 1, many, to, step)
                            }
                            (_, 2) if const { is_common::<T>() } && many >= full => {
                                self.block::<2, true>(&w, from, 2, many, to, step)
                            }
                            (_, lane) => self.block::<0, false>(&w, from, lane, many, to, step),
                        }
                        i += many;
                    }
                }
            }
        }
    }

    /// A result of each of `P` planes, whose eight parts are computed together: the elements of a line are side by side.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // parts
    unsafe fn alone<const P: usize>(&self, w: &[Span; 3], x: [*const T; P], y: [*mut T; P]) {
        let [_, h, wide] = self.s.input;
        let s = &self.x.strides;
        let dense = s[1] == wide as isize && s[0] == (h * wide) as isize;
        let n = w[2].end - w[2].start;
        let mut parts = [[F::START; 8]; P];
        // SAFETY: the caller's promise. Elements after the line are read only inside of the plane, and do not count.
        unsafe {
            for i in (w[0].start..w[0].end).step_by(w[0].step) {
                for j in (w[1].start..w[1].end).step_by(w[1].step) {
                    let line = i as isize * s[0] + j as isize * s[1] + w[2].start as isize;
                    let left = self.s.volume() - ((i * h + j) * wide + w[2].start);
                    let mut k = 0;
                    while k + 8 <= n {
                        for (parts, x) in parts.iter_mut().zip(x) {
                            let row = x.offset(line).add(k).cast::<[T; 8]>().read_unaligned();
                            for p in 0..8 {
                                parts[p] = F::step(parts[p], row[p]);
                            }
                        }
                        k += 8;
                    }
                    if k < n && dense && k + 8 <= left {
                        for (parts, x) in parts.iter_mut().zip(x) {
                            let row = x.offset(line).add(k).cast::<[T; 8]>().read_unaligned();
                            for p in 0..8 {
                                let x = if k + p < n { row[p] } else { F::START };
                                parts[p] = F::step(parts[p], x);
                            }
                        }
                    } else {
                        for (parts, x) in parts.iter_mut().zip(x) {
                            for p in 0..n - k {
                                parts[p] = F::step(parts[p], x.offset(line).add(k + p).read());
                            }
                        }
                    }
                }
            }
            // The compiler would choose the loop's registers by what follows, and shuffle them in each round.
            let parts = if P > 1 { std::hint::black_box(parts) } else { parts };
            let divisor = self.fold.divisor(w);
            for (parts, y) in parts.into_iter().zip(y) {
                y.write(self.fold.finish(parts, divisor));
            }
        }
    }

    /// Eight results of one part each: few enough for registers.
    ///
    /// # Safety
    /// As [`block`](Pooling::block).
    #[inline(always)]
    unsafe fn eight_of_one_part<const LANE: usize>(&self, w: &[Span; 3], x: *const T, y: *mut T, out: isize) {
        let (s, divisor) = (&self.x.strides, self.fold.divisor(w));
        let mut part = [F::START; 8];
        // SAFETY: the caller's promise.
        unsafe {
            let mut i = w[0].start;
            while i < w[0].end {
                let mut j = w[1].start;
                while j < w[1].end {
                    let mut from = x.offset(i as isize * s[0] + j as isize * s[1] + w[2].start as isize * s[2]);
                    let mut k = w[2].start;
                    while k < w[2].end {
                        let row = eight::<T, LANE>(from);
                        for l in 0..8 {
                            part[l] = F::step(part[l], row[l]);
                        }
                        k += w[2].step;
                        from = from.wrapping_offset(w[2].step as isize * s[2]);
                    }
                    j += w[1].step;
                }
                i += w[0].step;
            }
            let finish = |l: usize| {
                let mut parts = [F::START; 8];
                parts[0] = part[l];
                self.fold.finish(parts, divisor)
            };
            write_side::<T, 8>(array::from_fn(finish), 8, y, out);
        }
    }

    /// A further element of each window, `LANE` apart.
    ///
    /// # Safety
    /// They are readable.
    #[inline(always)]
    unsafe fn step_side<const LANE: usize>(parts: &mut [T; SIDE], from: *const T) {
        for half in [0, 8] {
            // SAFETY: the caller's promise.
            let row = unsafe { eight::<T, LANE>(from.add(half * LANE)) };
            for l in 0..8 {
                parts[half + l] = F::step(parts[half + l], row[l]);
            }
        }
    }

    /// `n` results: their elements `lane` apart (`LANE`, if that is known), their cells `out` apart. If `FULL`, there are [`SIDE`] of them,
    /// or of one part at least [`HALF`].
    #[inline(always)]
    unsafe fn block<const LANE: usize, const FULL: bool>(
        &self,
        w: &[Span; 3],
        x: *const T,
        lane: isize,
        n: usize,
        y: *mut T,
        out: isize,
    ) {
        let lane = if LANE > 0 { LANE as isize } else { lane };
        let n = if FULL && F::PARTS > 1 { SIDE } else { n.min(SIDE) };
        let (s, divisor) = (&self.x.strides, self.fold.divisor(w));
        if F::PARTS == 8 && FULL && w[2].end <= w[2].start + 2 * w[2].step && w[2].end > w[2].start {
            // Lines of one or two elements have as many parts: registers.
            let (mut first, mut second) = ([F::START; SIDE], [F::START; SIDE]);
            let two = w[2].end > w[2].start + w[2].step;
            // SAFETY: the caller's promise.
            unsafe {
                let mut i = w[0].start;
                while i < w[0].end {
                    let mut j = w[1].start;
                    while j < w[1].end {
                        let line = x.offset(i as isize * s[0] + j as isize * s[1] + w[2].start as isize * s[2]);
                        Self::step_side::<LANE>(&mut first, line);
                        if two {
                            Self::step_side::<LANE>(&mut second, line.offset(w[2].step as isize * s[2]));
                        }
                        j += w[1].step;
                    }
                    i += w[0].step;
                }
                let finish = |l: usize| {
                    let mut parts = [F::START; 8];
                    (parts[0], parts[1]) = (first[l], second[l]);
                    self.fold.finish(parts, divisor)
                };
                write_side::<T, SIDE>(array::from_fn(finish), n, y, out);
            }
            return;
        }
        if F::PARTS == 1 && FULL {
            // SAFETY: the caller's promise.
            unsafe {
                self.eight_of_one_part::<LANE>(w, x, y, out);
                // The last eight; some of them may be among the first.
                let last = n - HALF;
                if last > 0 {
                    self.eight_of_one_part::<LANE>(w, x.add(last * LANE), y.offset(last as isize * out), out);
                }
            }
            return;
        }
        let mut parts = [[F::START; SIDE]; 8];
        // SAFETY: the caller's promise.
        unsafe {
            let mut i = w[0].start;
            while i < w[0].end {
                let mut j = w[1].start;
                while j < w[1].end {
                    let line = x.offset(i as isize * s[0] + j as isize * s[1]);
                    let (mut k, mut at) = (w[2].start, 0);
                    while k < w[2].end {
                        let part = &mut parts[at % F::PARTS];
                        let from = line.offset(k as isize * s[2]);
                        if FULL {
                            Self::step_side::<LANE>(part, from);
                        } else {
                            for (l, part) in part[..n].iter_mut().enumerate() {
                                *part = F::step(*part, from.offset(l as isize * lane).read());
                            }
                        }
                        (k, at) = (k + w[2].step, at + 1);
                    }
                    j += w[1].step;
                }
                i += w[0].step;
            }
            let finish = |l: usize| {
                let parts = array::from_fn(|p| if p < F::PARTS { parts[p][l] } else { F::START });
                self.fold.finish(parts, divisor)
            };
            write_side::<T, SIDE>(array::from_fn(finish), n, y, out);
        }
    }
}

/// Eight elements that are `LANE` apart, 1 or 2.
///
/// # Safety
/// They are readable.
#[inline(always)]
pub(super) unsafe fn eight<T: Copy, const LANE: usize>(from: *const T) -> [T; 8] {
    // SAFETY: the caller's promise.
    unsafe { if LANE == 1 { from.cast::<[T; 8]>().read_unaligned() } else { eight_evens(from) } }
}

/// Writes the first `n` results, `out` apart.
///
/// # Safety
/// Their cells are writable.
#[inline(always)]
pub(super) unsafe fn write_side<T: Copy, const N: usize>(results: [T; N], n: usize, y: *mut T, out: isize) {
    // SAFETY: the caller's promise.
    unsafe {
        if n == N && out == 1 {
            return y.cast::<[T; N]>().write_unaligned(results);
        }
        for (l, x) in results.into_iter().enumerate().take(n) {
            y.offset(l as isize * out).write(x);
        }
    }
}

/// Most groups of windows of a line that are looked for once.
pub(super) const GROUPS: usize = 16;

/// Neighbouring windows of a line that differ in their place alone, `apart` from each other.
#[derive(Clone, Copy, Default)]
pub(super) struct AlikeWindows {
    pub first: usize,
    pub many: usize,
    pub apart: usize,
}

impl AlikeWindows {
    /// Those from window `at` on; where `full`, some before it once more, so that there are [`SIDE`].
    #[inline(always)]
    pub fn next(x: &[Span], at: usize, full: bool) -> AlikeWindows {
        let found = AlikeWindows::of(x, at);
        if full && found.many > 1 && found.many < SIDE && at + found.many >= SIDE {
            let more = AlikeWindows::of(x, at + found.many - SIDE);
            if more.many == SIDE {
                return more;
            }
        }
        found
    }

    #[inline(always)]
    fn of(x: &[Span], first: usize) -> AlikeWindows {
        let x = &x[first..];
        let shape = |s: &Span| (s.end.wrapping_sub(s.start), s.step, s.size);
        let Some(second) = x.get(1).filter(|s| shape(s) == shape(&x[0]) && s.start >= x[0].start) else {
            return AlikeWindows { first, many: 1, apart: 0 };
        };
        let apart = second.start - x[0].start;
        let same = |i: &usize| shape(&x[*i]) == shape(&x[0]) && x[*i].start == x[0].start + i * apart;
        AlikeWindows { first, many: (2..x.len().min(SIDE)).take_while(same).count() + 2, apart }
    }
}

/// The elements of a window, from its first one on.
struct Listed<T> {
    taps: [isize; TAPS],
    /// Where those of each part end.
    ends: [usize; 8],
    /// Length, step and size of the window in its line.
    shape: Option<(usize, usize, usize)>,
    divisor: T,
}

/// A task's range of lines, where channels are `LAST`, or of planes.
struct Items<'a, T, F, const LAST: bool>(&'a Pooling<'a, T, F>, Range<usize>);

impl<T: Compute, F: Fold<T> + Copy, const LAST: bool> isa::Work for Items<'_, T, F, LAST> {
    type Out = ();
    const VECTORS: bool = is_common::<T>();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let mut i = self.1.start;
        if const { !LAST && F::PARTS == 8 && is_common::<T>() }
            && let Some(w) = self.0.whole()
        {
            // Sums of one plane wait for each other.
            while i + 4 <= self.1.end {
                // SAFETY: as below.
                unsafe { self.0.planes::<4>(&w, i) }
                i += 4;
            }
        }
        while i < self.1.end {
            // SAFETY: whoever runs the pooling keeps its promise.
            unsafe { if LAST { self.0.line(i) } else { self.0.plane(i) } }
            i += 1;
        }
    }
}

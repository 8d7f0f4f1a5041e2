//! Maxima of windows, with their places in the plane: eight neighbouring windows at a time where the elements of a line are side by side.

use super::lanes::{AlikeWindows, GROUPS, HALF, Pooling, eight, is_common, write_side};
use super::{Greatest, Span};
use crate::conv::frame::Planes;
use crate::conv::planes;
use crate::support::array;
use crate::support::isa;
use crate::support::number::Ordered;
use crate::support::par::EvenParts;
use restride_tensor::ViewMut;
use std::ops::Range;

/// Maxima and where they are.
pub(super) fn with_indices<T: Ordered>(of: &Pooling<'_, T, Greatest>, indices: &ViewMut<'_>, threads: usize) {
    let (places, places_sample) =
        planes(indices.ptr::<i64>(), indices.layout(), indices.sizes().len() == of.s.spatial + 2);
    let placed = PlacedMaxima { of, places, places_sample };
    let items = of.size[0] * of.size[1];
    EvenParts::new(items, threads).each(&|items| {
        // Items share no elements of the results.
        isa::run(PlacedItems(&placed, items));
    });
}

struct PlacedMaxima<'a, T> {
    of: &'a Pooling<'a, T, Greatest>,
    places: Planes<*mut i64>,
    places_sample: isize,
}
// SAFETY: threads read the operand and write each their own elements of the results.
unsafe impl<T: Sync> Sync for PlacedMaxima<'_, T> {}

/// A plane of the operand, and the line of results that is written.
#[derive(Clone, Copy)]
struct LineOfPlaces<T> {
    x: *const T,
    y: *mut T,
    places: *mut i64,
}

impl<T: Ordered> PlacedMaxima<'_, T> {
    /// All windows of a plane.
    #[inline(always)]
    unsafe fn plane(&self, item: usize) {
        let of = self.of;
        let (n, c) = ((item / of.size[1]) as isize, (item % of.size[1]) as isize);
        let [z, y, x] = of.s.windows.each_ref().map(|w| &w[..]);
        // Places are counted in 32 bits there.
        let vectors = const { is_common::<T>() } && of.x.strides[2] == 1 && i32::try_from(of.s.volume()).is_ok();
        let mut groups = [AlikeWindows::default(); GROUPS];
        // SAFETY: the sizes are those of a pooling: positions of elements are inside of their planes.
        unsafe {
            let from = of.x.base.offset(n * of.x_sample + c * of.x.channel);
            let to = of.y.base.offset(n * of.y_sample + c * of.y.channel);
            let places = self.places.base.offset(n * self.places_sample + c * self.places.channel);
            for (i, &z) in z.iter().enumerate() {
                for (j, &y) in y.iter().enumerate() {
                    let line = |s: &[isize; 3]| i as isize * s[0] + j as isize * s[1];
                    let line = LineOfPlaces {
                        x: from,
                        y: to.offset(line(&of.y.strides)),
                        places: places.offset(line(&self.places.strides)),
                    };
                    let (mut k, mut g) = (0, 0);
                    while vectors && k < x.len() {
                        // Those of the first line serve for all.
                        let group = match groups.get(g) {
                            Some(known) if known.many > 0 => *known,
                            _ => AlikeWindows::next(x, k, true),
                        };
                        if let Some(to) = groups.get_mut(g) {
                            *to = group;
                        }
                        g += 1;
                        k = group.first;
                        let w = [z, y, x[k]];
                        match (group.many, group.apart) {
                            _ if w.iter().any(|w| w.start >= w.end) => self.some(&line, [z, y], x, k, group.many),
                            (HALF.., 1) => self.eights::<1>(&line, &w, k, group.many),
                            (HALF.., 2) => self.eights::<2>(&line, &w, k, group.many),
                            (many, _) => self.some(&line, [z, y], x, k, many),
                        }
                        k += group.many;
                    }
                    self.some(&line, [z, y], x, k, x.len() - k);
                }
            }
        }
    }

    /// `many` windows with elements, `LANE` apart, from window `k` of a line on: [`HALF`] to twice as many. The first eight, then the last
    /// eight; some windows may be among both.
    #[inline(always)]
    unsafe fn eights<const LANE: usize>(&self, line: &LineOfPlaces<T>, w: &[Span; 3], k: usize, many: usize) {
        let last = many - HALF;
        for first in [0, last].into_iter().take(1 + (last > 0) as usize) {
            let mut w = *w;
            w[2].start += first * LANE;
            w[2].end += first * LANE;
            // SAFETY: the caller's promise.
            unsafe { self.eight::<LANE>(line, &w, k + first) }
        }
    }

    /// Eight windows with elements, `LANE` apart.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // lanes
    unsafe fn eight<const LANE: usize>(&self, line: &LineOfPlaces<T>, w: &[Span; 3], k: usize) {
        let (s, strides) = (self.of.s, &self.of.x.strides);
        let start = |z: usize, y: usize| (z * s.input[1] + y) * s.input[2];
        let first = (start(w[0].start, w[1].start) + w[2].start) as i32;
        let mut best = [T::LEAST; 8];
        let mut places: [i32; 8] = array::from_fn(|l| first + (l * LANE) as i32);
        // SAFETY: the caller's promise.
        unsafe {
            let mut i = w[0].start;
            while i < w[0].end {
                let mut j = w[1].start;
                while j < w[1].end {
                    let from = line.x.offset(i as isize * strides[0] + j as isize * strides[1]);
                    let mut at = w[2].start;
                    while at < w[2].end {
                        let row = eight::<T, LANE>(from.add(at));
                        let place = (start(i, j) + at) as i32;
                        for l in 0..8 {
                            let better = row[l].beats(best[l]);
                            best[l] = if better { row[l] } else { best[l] };
                            places[l] = if better { place + (l * LANE) as i32 } else { places[l] };
                        }
                        at += w[2].step;
                    }
                    j += w[1].step;
                }
                i += w[0].step;
            }
            // Where nothing was greater than the least number, all elements are that number.
            let step = self.of.y.strides[2];
            write_side::<T, 8>(best, 8, line.y.offset(k as isize * step), step);
            let step = self.places.strides[2];
            write_side::<i64, 8>(places.map(i64::from), 8, line.places.offset(k as isize * step), step);
        }
    }

    /// Some windows of a line, one after the other.
    unsafe fn some(&self, line: &LineOfPlaces<T>, [z, y]: [Span; 2], x: &[Span], k: usize, many: usize) {
        let (s, strides) = (self.of.s, &self.of.x.strides);
        let cell = |at: [usize; 3]| (0..3).map(|d| at[d] as isize * strides[d]).sum::<isize>();
        for (k, w) in x.iter().enumerate().skip(k).take(many) {
            let first = (z.start * s.input[1] + y.start) * s.input[2] + w.start;
            let (mut best, mut place, mut found) = (T::LEAST, first, false);
            // SAFETY: the caller's promise.
            unsafe {
                let mut at = [z.start, y.start, w.start];
                while at[0] < z.end {
                    at[1] = y.start;
                    while at[1] < y.end {
                        let before = (at[0] * s.input[1] + at[1]) * s.input[2];
                        let from = line.x.offset(cell([at[0], at[1], 0]));
                        at[2] = w.start;
                        while at[2] < w.end {
                            let v = from.offset(at[2] as isize * strides[2]).read();
                            if v.beats(best) {
                                (best, place, found) = (v, before + at[2], true);
                            }
                            at[2] += w.step;
                        }
                        at[1] += y.step;
                    }
                    at[0] += z.step;
                }
                if !found && place < s.volume() {
                    // Nothing is greater than the least number; a window without elements has no maximum.
                    let at = [place / (s.input[1] * s.input[2]), place / s.input[2] % s.input[1], place % s.input[2]];
                    best = line.x.offset(cell(at)).read();
                }
                line.y.offset(k as isize * self.of.y.strides[2]).write(best);
                line.places.offset(k as isize * self.places.strides[2]).write(place as i64);
            }
        }
    }
}

/// A task's range of planes.
struct PlacedItems<'a, T>(&'a PlacedMaxima<'a, T>, Range<usize>);

impl<T: Ordered> isa::Work for PlacedItems<'_, T> {
    type Out = ();
    const VECTORS: bool = is_common::<T>();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        for item in self.1 {
            // SAFETY: whoever runs the pooling keeps its promise.
            unsafe { self.0.plane(item) }
        }
    }
}

//! The rows of a box of the iteration space, in the order in which the last output lies in memory: dimensions that go on in each other
//! are one row.

use super::{BUFFERS, ChannelFactors, RowProgram};
use smallvec::SmallVec;
use std::ops::Range;

/// Most elements of units that are copied to be a row.
const SHORT: usize = 256;

/// A walk over the rows of a box: tensors first, then factors.
pub struct RowWalk {
    pub len: usize,
    /// Where a row is all channels several times: their number, and how often factors have them one after the other.
    pub period: Option<(usize, usize)>,
    /// Elements of a row that have the same factors, where their channel's number goes up along the row.
    pub unit: Option<usize>,
    /// Of each tensor whose units are apart from each other, their distance.
    pub jumps: SmallVec<[Option<isize>; 8]>,
    pub strides: SmallVec<[isize; 12]>,
    start: SmallVec<[isize; 12]>,
    outer: SmallVec<[usize; 6]>,
    /// Steps along each outer dimension, in each layout.
    steps: SmallVec<[isize; 48]>,
}

impl RowWalk {
    /// The rows of a box of the program's space. With `units`, short rows that are apart in some tensors may be one.
    pub fn of(program: &RowProgram, origin: &[isize], sizes: &[i64], units: bool) -> RowWalk {
        let mut walk = RowWalk::new(program);
        walk.begin(program, origin);
        let dims: SmallVec<[usize; 6]> = program.order.iter().copied().filter(|d| sizes[*d] != 1).collect();
        walk.through(program, &dims, origin, sizes, units);
        walk
    }

    /// The rows of some dimensions, slowest first, from where these begin; each is of neighbours, or of elements that are equally far
    /// apart.
    pub fn along(program: &RowProgram, dims: &[usize], sizes: &[i64]) -> RowWalk {
        let mut walk = RowWalk::new(program);
        let dims: SmallVec<[usize; 6]> = dims.iter().copied().filter(|d| sizes[*d] != 1).collect();
        let origin: SmallVec<[isize; 6]> = SmallVec::from_elem(0, sizes.len());
        walk.through(program, &dims, &origin, sizes, false);
        walk
    }

    fn new(program: &RowProgram) -> RowWalk {
        let (tensors, all) = (program.tensors.len(), program.tensors.len() + program.scales.len());
        RowWalk {
            len: 1,
            period: None,
            unit: None,
            jumps: SmallVec::from_elem(None, tensors),
            strides: SmallVec::from_elem(1, all),
            start: SmallVec::from_elem(0, all),
            outer: SmallVec::new(),
            steps: SmallVec::new(),
        }
    }

    /// Begins at an index of the space.
    pub fn begin(&mut self, program: &RowProgram, origin: &[isize]) {
        let tensors = program.tensors.len();
        for (t, start) in program.tensors.iter().zip(&mut self.start) {
            *start = t.offset + t.strides.iter().zip(origin).map(|(s, at)| s * at).sum::<isize>();
        }
        for (scale, start) in program.scales.iter().zip(&mut self.start[tensors..]) {
            *start = origin[scale.dim];
        }
    }

    fn through(&mut self, program: &RowProgram, dims: &[usize], origin: &[isize], sizes: &[i64], units: bool) {
        let walk = self;
        let step = |k: usize, d: usize| match program.tensors.get(k) {
            Some(t) => t.strides[d],
            None => isize::from(program.scales[k - program.tensors.len()].dim == d),
        };
        let mut first = true;
        let tensors = program.tensors.len();
        for (at, &d) in dims.iter().enumerate() {
            let size = sizes[d] as usize;
            if !first && at + 1 == dims.len() && origin[d] == 0 {
                // Factors of channels that are neighbours in memory begin anew with each slower index.
                let anew = |s: &ChannelFactors| s.dim == d && s.count == size;
                let fits = |k: usize| match k.checked_sub(tensors).map(|k| &program.scales[k]) {
                    None => step(k, d) * size as isize == walk.strides[k],
                    Some(scale) => walk.strides[k] == 0 && (scale.dim != d || anew(scale)),
                };
                let times = program.scales.iter().find(|s| anew(s)).map(|s| s.times);
                if let Some(times) = times.filter(|_| size * program.buffers() <= BUFFERS)
                    && (0..walk.start.len()).all(fits)
                {
                    walk.period = Some((size, times));
                    walk.len *= size;
                    (0..walk.start.len()).for_each(|k| walk.strides[k] = step(k, d));
                    break;
                }
            }
            // The dimensions so far go on in this one where each of their steps is over all of it.
            let goes_on = !first && (0..walk.start.len()).all(|k| step(k, d) * size as isize == walk.strides[k]);
            if !first && !goes_on && units && walk.units(&dims[at..], tensors, sizes, step) {
                break;
            }
            if goes_on {
                walk.len *= size;
            } else {
                if !first {
                    walk.outer.push(walk.len);
                    walk.steps.extend_from_slice(&walk.strides);
                }
                walk.len = size;
            }
            first = false;
            (0..walk.start.len()).for_each(|k| walk.strides[k] = step(k, d));
        }
    }

    /// Makes one row of the dimensions so far and all faster ones, if factors stay the same along these. Tensors go on from one unit to the
    /// next, or have short ones that are apart or of one cell.
    fn units(&mut self, rest: &[usize], tensors: usize, sizes: &[i64], step: impl Fn(usize, usize) -> isize) -> bool {
        let over = |k: usize, d: usize| step(k, d) * sizes[d] as isize;
        let (Some(&first), Some(&last)) = (rest.first(), rest.last()) else { return false };
        let runs = (0..tensors).all(|k| rest.windows(2).all(|d| step(k, d[0]) == over(k, d[1])));
        let same = |k: usize| self.strides[k] == 1 && rest.iter().all(|d| step(k, *d) == 0);
        if !runs || !(tensors..self.strides.len()).all(same) {
            return false;
        }
        let unit = rest.iter().map(|d| sizes[*d] as usize).product::<usize>();
        let goes_on = |k: &usize| over(*k, first) == self.strides[*k];
        if !(0..tensors).all(|k| goes_on(&k) || unit <= SHORT && matches!(step(k, last), 0 | 1)) {
            return false;
        }
        for k in 0..tensors {
            self.jumps[k] = (over(k, first) != self.strides[k]).then_some(self.strides[k]);
            self.strides[k] = step(k, last);
        }
        self.len *= unit;
        self.unit = Some(unit);
        true
    }

    /// Calls `f` for each piece of a unit in some elements of a row: where it is among these, the unit, and its first element there.
    pub fn each_unit(&self, start: usize, n: usize, mut f: impl FnMut(Range<usize>, usize, usize)) {
        let unit = self.unit.unwrap_or(self.len);
        let mut done = 0;
        while done < n {
            let (number, from) = ((start + done) / unit, (start + done) % unit);
            let end = n.min(done + unit - from);
            f(done..end, number, from);
            done = end;
        }
    }

    /// Elements of all rows.
    pub fn rows_len(&self) -> usize {
        self.outer.iter().product::<usize>() * self.len
    }

    /// Whether there is one row.
    pub fn is_one(&self) -> bool {
        self.outer.is_empty()
    }

    /// Calls `f` for each row with its first element in each layout.
    pub fn for_each(&self, mut f: impl FnMut(&[isize])) {
        self.through_outer(self.outer.len(), &mut f);
    }

    /// Calls `f` for runs of rows that are equally far apart: with the first one's first element in each layout, the distances, if there
    /// are several rows, and their number.
    pub fn for_each_run(&self, mut f: impl FnMut(&[isize], Option<&[isize]>, usize)) {
        let Some((last, slower)) = self.outer.split_last() else { return self.for_each(|at| f(at, None, 1)) };
        let steps = &self.steps[slower.len() * self.start.len()..];
        self.through_outer(slower.len(), &mut |at| f(at, Some(steps), *last));
    }

    /// Calls `f` for each index of the slowest dimensions.
    fn through_outer(&self, dims: usize, f: &mut impl FnMut(&[isize])) {
        let mut at = self.start.clone();
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, dims);
        loop {
            f(&at);
            let mut d = dims;
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                let steps = &self.steps[d * at.len()..][..at.len()];
                index[d] += 1;
                if index[d] < self.outer[d] {
                    at.iter_mut().zip(steps).for_each(|(a, s)| *a += s);
                    break;
                }
                let back = self.outer[d] as isize - 1;
                at.iter_mut().zip(steps).for_each(|(a, s)| *a -= s * back);
                index[d] = 0;
            }
        }
    }
}

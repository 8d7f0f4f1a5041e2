//! A region in terms of indices of its base: dimensions that are taken whole, cut or fixed.
//!
//! A relation is independent of the base's strides, so the operators that it becomes (`slice`, `select`, `permute`, …) mean
//! the same for any layout of the base. Regions without a relation are read and written by `as_strided` and
//! `as_strided_scatter`, in terms of the base's eager layout.

use restride_tensor::{Dim, Dims, Layout, PerDim, by_stride};
use smallvec::SmallVec;

/// The part of one base dimension that a region takes.
#[derive(Clone, PartialEq, Debug)]
pub enum Extent<D> {
    /// Every index.
    Whole,
    /// One index: the dimension is gone.
    Index(D),
    /// A range with a step.
    Range {
        /// First index.
        start: D,
        /// Number of indices.
        len: D,
        /// Distance between indices.
        step: D,
    },
}

impl<D: Dim> Extent<D> {
    /// Whether two picks of a dimension are known to have no index in common.
    pub fn apart(&self, other: &Extent<D>) -> bool {
        let Some(((first, last, step), (start, end, stride))) = self.bounds().zip(other.bounds()) else { return false };
        let skips = || Some(first.minus(&start).known()? % step.known().filter(|s| *s > 0)? != 0);
        last.less(&start) == Some(true)
            || end.less(&first) == Some(true)
            || step.equals(&stride) == Some(true) && skips() == Some(true)
    }

    /// The first and last index and the step; `None` for a whole dimension.
    fn bounds(&self) -> Option<(D, D, D)> {
        match self {
            Extent::Whole => None,
            Extent::Index(i) => Some((i.clone(), i.clone(), D::from(1))),
            Extent::Range { start, len, step } => {
                Some((start.clone(), start.plus(&len.minus(&D::from(1)).times(step)), step.clone()))
            }
        }
    }
}

/// A region as indices of its base.
#[derive(Clone, PartialEq, Debug)]
pub struct Relation<D> {
    /// One per base dimension.
    pub picks: SmallVec<[Extent<D>; 4]>,
    /// Where each dimension of the region comes from: a base dimension, or `None` for one of size 1 or stride 0 that stands
    /// for none.
    pub source: SmallVec<[Option<usize>; 4]>,
}

impl<D: Dim> Relation<D> {
    /// Base dimensions that are not taken whole.
    pub fn partial(&self) -> impl Iterator<Item = usize> + '_ {
        self.picks.iter().enumerate().filter(|(_, p)| **p != Extent::Whole).map(|(d, _)| d)
    }

    /// Base dimensions that the region still has, in base order.
    pub fn kept(&self) -> SmallVec<[usize; 5]> {
        (0..self.picks.len()).filter(|d| !matches!(self.picks[*d], Extent::Index(_))).collect()
    }

    /// For each kept base dimension, in base order, its position among the region's dimensions; `None` for a base
    /// dimension of size 1 that no dimension of the region stands for.
    pub fn position(&self, base_dim: usize) -> Option<usize> {
        self.source.iter().position(|s| *s == Some(base_dim))
    }
}

/// The relation of a region to its base, if one can be proved. Every dimension of the region must run along one dimension
/// of the base.
pub fn relate<D: Dim>(base: &Layout<D>, region: &Layout<D>) -> Option<Relation<D>> {
    let rank = base.rank();
    let mut used: PerDim<bool> = PerDim::from_elem(false, rank);
    let mut source: SmallVec<[Option<usize>; 4]> = SmallVec::with_capacity(region.rank());
    let mut steps: Dims<D> = SmallVec::from_elem(D::from(1), rank);
    for (size, stride) in region.sizes.iter().zip(&region.strides) {
        if size.is(1) || stride.is(0) {
            source.push(None);
            continue;
        }
        let (d, step) = along(base, stride, &used)?;
        used[d] = true;
        steps[d] = step;
        source.push(Some(d));
    }
    let starts = starts(base, region, &source)?;
    let mut picks: SmallVec<[Extent<D>; 4]> = SmallVec::with_capacity(rank);
    for (d, start) in starts.into_iter().enumerate() {
        let size = &base.sizes[d];
        picks.push(match source.iter().position(|s| *s == Some(d)) {
            None if size.is(1) => Extent::Whole,
            None => Extent::Index(start),
            Some(i) if region.sizes[i].equals(size) == Some(true) && start.is(0) && steps[d].is(1) => Extent::Whole,
            Some(i) => Extent::Range { start, len: region.sizes[i].clone(), step: steps[d].clone() },
        });
    }
    let inside = picks.iter().zip(&base.sizes).enumerate().all(|(d, (p, size))| match p {
        Extent::Whole => true,
        Extent::Index(i) => i.less(size) != Some(false) && i.less(&D::from(0)) != Some(true),
        Extent::Range { start, len, step } => {
            let last = start.plus(&len.minus(&D::from(1)).times(step));
            let ends = last.less(size);
            start.less(&D::from(0)) != Some(true)
                && (ends == Some(true) || ends.is_none() && ends_there(base, &picks, d))
        }
    });
    inside.then(|| thin(Relation { picks, source }, region))
}

/// The relation with dimensions of size 1 of the region standing for indices that are taken, where they are in their
/// places: `x[:, 3:4]` is a slice then, and not an index whose dimension has to be put back.
fn thin<D: Dim>(r: Relation<D>, region: &Layout<D>) -> Relation<D> {
    let ones = r.source.iter().zip(&region.sizes).all(|(s, n)| s.is_some() || n.is(1));
    if !ones || r.source.len() != r.picks.len() || r.source.iter().all(Option::is_some) {
        return r;
    }
    let mut missing = (0..r.picks.len()).filter(|d| r.position(*d).is_none());
    let source: SmallVec<[Option<usize>; 4]> = r.source.iter().map(|s| s.or_else(|| missing.next())).collect();
    if !source.is_sorted() {
        return r;
    }
    let thick = |p: &Extent<D>| match p {
        Extent::Index(i) => Extent::Range { start: i.clone(), len: D::from(1), step: D::from(1) },
        p => p.clone(),
    };
    Relation { picks: r.picks.iter().map(thick).collect(), source }
}

/// Whether a range ends inside its dimension although the sizes do not prove it: behind the outermost dimension is no
/// memory, and a range that runs on into the next row, which the region has too, would visit cells twice.
fn ends_there<D: Dim>(base: &Layout<D>, picks: &[Extent<D>], d: usize) -> bool {
    let (stride, span) = (&base.strides[d], base.strides[d].times(&base.sizes[d]));
    let mut outer = (0..base.rank()).filter(|&e| e != d && !base.sizes[e].is(1));
    let outermost = outer.clone().all(|e| stride.less(&base.strides[e]) == Some(false));
    let next = outer.find(|&e| base.strides[e].equals(&span) == Some(true));
    outermost || next.is_some_and(|e| !matches!(picks[e], Extent::Index(_)))
}

/// The base dimension that a stride runs along, and the step in that dimension.
fn along<D: Dim>(base: &Layout<D>, stride: &D, used: &[bool]) -> Option<(usize, D)> {
    let free = |d: &usize| !used[*d] && !base.sizes[*d].is(1);
    if let Some(d) = (0..base.rank()).filter(free).find(|&d| base.strides[d].equals(stride) == Some(true)) {
        return Some((d, D::from(1)));
    }
    // A multiple of a known stride: of the largest one that it reaches.
    let Some(wanted) = stride.known() else {
        // A symbolic stride: a known multiple of the stride of one dimension of the base.
        let times = |d: usize| {
            let (step, rest) = stride.divide(&base.strides[d]);
            step.known().filter(|step| *step > 1 && rest.is(0)).map(|step| (d, D::from(step)))
        };
        return (0..base.rank()).filter(free).find_map(times);
    };
    (0..base.rank())
        .filter(free)
        .filter_map(|d| base.strides[d].known().filter(|s| *s > 0 && *s <= wanted).map(|s| (s, d)))
        .max()
        .filter(|(s, _)| wanted % s == 0)
        .map(|(s, d)| (d, D::from(wanted / s)))
}

/// The index of the region's first element in each base dimension.
pub fn starts<D: Dim>(base: &Layout<D>, region: &Layout<D>, source: &[Option<usize>]) -> Option<Dims<D>> {
    let rank = base.rank();
    let mut shift = region.offset.minus(&base.offset);
    let mut starts: Dims<D> = SmallVec::from_elem(D::from(0), rank);
    if let (Some(known), Some(_)) = (base.known(), shift.known()) {
        // Digits of the shift over the strides, largest first; unique as the strides nest.
        let mut order: PerDim<usize> = (0..rank).filter(|&d| known.sizes[d] > 1).collect();
        by_stride(&mut order, |d| known.strides[d]);
        let mut reach = 0;
        for &d in order.iter().rev() {
            if known.strides[d] <= reach {
                return None;
            }
            reach += known.strides[d] * (known.sizes[d] - 1);
        }
        let mut left = shift.known()?;
        if left < 0 {
            return None;
        }
        for &d in &order {
            starts[d] = D::from(left / known.strides[d]);
            left %= known.strides[d];
        }
        return (left == 0).then_some(starts);
    }
    if shift.is(0) {
        return Some(starts);
    }
    // With symbolic sizes and one dimension cut or fixed, the shift is along that dimension.
    let mut cut = (0..rank).filter(|&d| match source.iter().position(|s| *s == Some(d)) {
        Some(i) => region.sizes[i].equals(&base.sizes[d]) != Some(true),
        None => !base.sizes[d].is(1),
    });
    if let (Some(d), None) = (cut.next(), cut.next()) {
        let (start, rest) = shift.divide(&base.strides[d]);
        if rest.is(0) {
            starts[d] = start;
            return Some(starts);
        }
    }
    // Otherwise it is divided by the outermost stride, the rest by the next, and so on.
    let mut inner: PerDim<usize> = (0..rank).filter(|&d| !base.sizes[d].is(1)).collect();
    while !inner.is_empty() {
        let d = outermost(base, &inner)?;
        inner.retain(|e| *e != d);
        let (start, rest) = digit(&shift, &base.strides[d])?;
        starts[d] = start;
        shift = rest;
    }
    shift.is(0).then_some(starts)
}

/// The dimension whose stride every other one's stride divides.
fn outermost<D: Dim>(base: &Layout<D>, dims: &[usize]) -> Option<usize> {
    let divides = |by: &D, n: &D| !by.is(0) && n.divide(by).1.is(0);
    let strides = &base.strides;
    dims.iter().copied().find(|&d| dims.iter().all(|&e| e == d || divides(&strides[e], &strides[d])))
}

/// A shift as index times stride and a rest that is known to be less than the stride, or at least not negative, as the index
/// is then.
fn digit<D: Dim>(shift: &D, stride: &D) -> Option<(D, D)> {
    let zero = D::from(0);
    let (index, rest) = shift.divide(stride);
    let before = (index.minus(&D::from(1)), rest.plus(stride));
    [(index, rest), before].into_iter().find(|(index, rest)| {
        let positive = |n: &D| n.less(&zero) == Some(false);
        let below = rest.less(stride);
        positive(rest) && (below == Some(true) || below.is_none() && positive(index))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Layout {
        Layout::contiguous(&[2i64, 3, 4])
    }

    #[test]
    fn finds_what_was_taken() {
        let r = base().select(1, &2).unwrap().transpose(0, 1).unwrap();
        let rel = relate(&base(), &r).unwrap();
        assert_eq!(rel.picks[..], [Extent::Whole, Extent::Index(2), Extent::Whole]);
        assert_eq!(rel.source[..], [Some(2), Some(0)]);
        let r = base().slice(2, Some(&1), None, &2).unwrap().unsqueeze(0).unwrap();
        let rel = relate(&base(), &r).unwrap();
        assert_eq!(rel.picks[2], Extent::Range { start: 1, len: 2, step: 2 });
        assert_eq!(rel.source[..], [None, Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn keeps_thin_slices() {
        let r = base().slice(1, Some(&2), Some(&3), &1).unwrap();
        let rel = relate(&base(), &r).unwrap();
        assert_eq!(rel.picks[..], [Extent::Whole, Extent::Range { start: 2, len: 1, step: 1 }, Extent::Whole]);
        assert_eq!(rel.source[..], [Some(0), Some(1), Some(2)]);
        // Of the dimensions of size 1 of one cell, each stands for the one in its place.
        let cell = r.select(0, &1).unwrap().unsqueeze(0).unwrap();
        assert_eq!(relate(&base(), &cell).unwrap().source[..], [Some(0), Some(1), Some(2)]);
        // Where the dimension of size 1 is elsewhere, the index goes and another dimension comes.
        let moved = r.transpose(0, 1).unwrap();
        assert_eq!(relate(&base(), &moved).unwrap().source[..], [None, Some(0), Some(2)]);
    }

    #[test]
    fn finds_several_cuts_of_symbolic_sizes() {
        use restride_ir::{Expr, Symbol};
        let sym = |name: &str| Expr::Sym(Symbol::new(name, Some(4), None));
        let (s0, s1, i, n) = (sym("s0"), sym("s1"), Expr::Int, sym("n"));
        let base = Layout::contiguous(&[s0, s1.clone(), i(6)]);
        // y[1:, -2, n:n+2], whose last dimension has six indices.
        let r = base.slice(0, Some(&i(1)), None, &i(1)).unwrap().select(1, &i(-2)).unwrap();
        let r = r.slice(1, Some(&i(2)), Some(&i(5)), &i(2)).unwrap();
        let rel = relate(&base, &r).unwrap();
        assert_eq!(rel.picks[1], Extent::Index(s1.minus(&i(2))));
        assert_eq!(rel.picks[2], Extent::Range { start: i(2), len: i(2), step: i(2) });
        assert_eq!(rel.source[..], [Some(0), Some(2)]);
        // If the cut may run on into the next row, no relation is proved.
        let r = Layout::strided(&[i(2)], &[i(1)], n.clone());
        assert_eq!(relate(&Layout::contiguous(&[n, i(6)]), &r), None);
    }

    #[test]
    fn refuses_what_is_no_box_of_indices() {
        assert_eq!(relate(&base(), &base().view(&[6, 4]).unwrap()), None);
        assert_eq!(relate(&base(), &base().diagonal(0, 0, 1).unwrap()), None);
        assert_eq!(relate(&base(), &Layout::strided(&[2i64, 2], &[1, 1], 0)), None);
    }

    #[test]
    fn every_relation_names_the_cells_of_its_region() {
        let dims: &[(i64, i64, i64)] = &[(0, 2, 1), (1, 2, 1), (0, 3, 2), (2, 1, 1)];
        for &(s0, n0, k0) in dims {
            for &(s2, n2, k2) in dims {
                let b = Layout::contiguous(&[4i64, 2, 5]);
                let r = b.slice(0, Some(&s0), Some(&(s0 + n0)), &k0).unwrap();
                let r = r.slice(2, Some(&s2), Some(&(s2 + n2)), &k2).unwrap();
                let Some(rel) = relate(&b, &r) else { continue };
                let mut again = b.clone();
                for (d, p) in rel.picks.iter().enumerate().rev() {
                    again = match p {
                        Extent::Whole => again,
                        Extent::Index(i) => again.select(d as i64, i).unwrap(),
                        Extent::Range { start, len, step } => {
                            again.slice(d as i64, Some(start), Some(&(start + (len - 1) * step + 1)), step).unwrap()
                        }
                    };
                }
                assert_eq!(again.cells(), r.cells());
            }
        }
    }
}

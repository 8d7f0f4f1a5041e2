//! Overlap of two strided boxes of cells, exact within a bounded search.
//!
//! Two layouts meet where `sum(stride_k * x_k) = c` has a solution with `0 <= x_k < size_k` over the
//! dimensions of both: a bounded linear Diophantine equation. It is searched from the largest stride down,
//! cutting by the reach of the remaining dimensions and by their greatest common divisor; past a budget the
//! answer is `Unknown`, which callers treat as overlapping.

use crate::{Dim, Layout, PerDim};
use smallvec::SmallVec;

/// Relation of the cells of one layout to those of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overlap {
    /// No cell in common.
    Disjoint,
    /// The same cells, index by index.
    Same,
    /// All cells of the first are cells of the second.
    Inside,
    /// All cells of the second are cells of the first.
    Contains,
    /// Some cells in common.
    Partial,
    /// Not decided within the budget.
    Unknown,
}

const BUDGET: u32 = 20_000;

/// (stride, size) of the dimensions of two layouts.
type Terms = SmallVec<[(i64, i64); 16]>;

/// Relation of the cells of `a` to those of `b`, which count the same elements on the same storage.
pub fn overlap(a: &Layout, b: &Layout) -> Overlap {
    if a.same_cells(b) && !a.sizes.contains(&0) {
        return Overlap::Same;
    }
    match meets(a, b) {
        Some(false) => Overlap::Disjoint,
        None => Overlap::Unknown,
        Some(true) => {
            let (ra, rb) = (a.cell_range(), b.cell_range());
            // A dense box contains all cells in its range.
            if b.is_dense() && rb.start <= ra.start && ra.end <= rb.end {
                Overlap::Inside
            } else if a.is_dense() && ra.start <= rb.start && rb.end <= ra.end {
                Overlap::Contains
            } else {
                contained(a, b)
            }
        }
    }
}

/// As [`overlap`], for elements of `size_a` and `size_b` bytes.
pub fn overlap_bytes(a: &Layout, size_a: usize, b: &Layout, size_b: usize) -> Overlap {
    if size_a == size_b {
        return overlap(a, b);
    }
    overlap(&in_bytes(a, size_a), &in_bytes(b, size_b))
}

/// Whether the elements of each index begin at the same byte in both, and no element of one index meets one of another
/// index: what goes index by index may write one while it reads the other. Sizes are the same for that.
pub fn index_by_index(a: &Layout, size_a: usize, b: &Layout, size_b: usize) -> bool {
    if size_a == size_b {
        return a.same_cells(b);
    }
    let at = |cells: i64, size: usize| cells.checked_mul(size as i64);
    let begins = at(a.offset, size_a).is_some_and(|x| at(b.offset, size_b) == Some(x));
    let steps = |d: usize| at(a.strides[d], size_a).is_some_and(|x| at(b.strides[d], size_b) == Some(x));
    let wider = if size_a > size_b { a } else { b };
    a.sizes == b.sizes
        && (a.sizes.contains(&0)
            || begins && (0..a.rank()).all(|d| a.sizes[d] == 1 || steps(d)) && self_overlaps(wider) == Some(false))
}

fn in_bytes(l: &Layout, size: usize) -> Layout {
    let mut out = l.map(|x| *x);
    let size = size as i64;
    out.strides.iter_mut().for_each(|s| *s *= size);
    out.offset *= size;
    out.sizes.push(size);
    out.strides.push(1);
    merged(&out)
}

/// The same cells in the same order with as few dimensions as that takes, so that elements of different types on the same
/// bytes are seen to be on them.
fn merged(l: &Layout) -> Layout {
    let mut dims = Terms::new();
    for (&n, &s) in l.sizes.iter().zip(&l.strides) {
        match dims.last_mut() {
            _ if n == 1 => {}
            Some(last) if s.checked_mul(n) == Some(last.1) => *last = (last.0.saturating_mul(n), s),
            _ => dims.push((n, s)),
        }
    }
    let (sizes, strides): (PerDim<i64>, PerDim<i64>) = dims.into_iter().unzip();
    Layout::strided(&sizes, &strides, l.offset)
}

/// As [`self_overlaps`] for symbolic sizes and strides: whether each stride provably steps over all that the smaller ones reach,
/// so that no two indices share a cell.
pub fn nested<D: Dim>(l: &Layout<D>) -> bool {
    if packed(l) {
        return true;
    }
    let mut left: PerDim<usize> = (0..l.rank()).filter(|&d| !l.sizes[d].is(1)).collect();
    // Cells from the first to the last that is reached so far.
    let mut reach = D::from(1);
    while !left.is_empty() {
        let stride = |d: usize| &l.strides[d];
        let fits = |d: usize| stride(d).less(&reach) == Some(false);
        // One that is provably the smallest, or else one that none is provably smaller than.
        let smallest = |d: usize| left.iter().all(|&e| e == d || stride(e).less(stride(d)) == Some(false));
        let maybe = |d: usize| left.iter().all(|&e| stride(e).less(stride(d)) != Some(true));
        let place = |found: &dyn Fn(usize) -> bool| left.iter().position(|&d| fits(d) && found(d));
        let Some(next) = place(&smallest).or_else(|| place(&maybe)) else { return false };
        let d = left.remove(next);
        reach = reach.plus(&l.sizes[d].minus(&D::from(1)).times(&l.strides[d]));
    }
    true
}

/// Whether each stride is the product of the sizes with smaller strides, whatever these are: without elements where one is 0.
fn packed<D: Dim>(l: &Layout<D>) -> bool {
    let one = D::from(1);
    let mut left: PerDim<usize> = (0..l.rank()).filter(|&d| !l.sizes[d].is(1)).collect();
    // PyTorch counts a size of 0 as 1 in strides.
    let (mut product, mut positive) = (one.clone(), one.clone());
    let is = |a: &D, b: &D| a.equals(b) == Some(true);
    while let Some(at) = left.iter().position(|&d| is(&l.strides[d], &product) || is(&l.strides[d], &positive)) {
        let size = &l.sizes[left.remove(at)];
        product = product.times(size);
        positive = positive.times(&size.larger(&one));
    }
    left.is_empty()
}

/// Whether two indices of one layout share a cell; `None` if not decided within the budget.
pub fn self_overlaps(l: &Layout) -> Option<bool> {
    if l.sizes.contains(&0) {
        return Some(false);
    }
    let mut dims: Terms =
        l.sizes.iter().zip(&l.strides).filter(|(n, _)| **n > 1).map(|(&n, &s)| (s.abs(), n)).collect();
    dims.sort_unstable();
    if dims.first().is_some_and(|d| d.0 == 0) {
        return Some(true);
    }
    // Each stride steps over all that the smaller ones reach: no two indices can meet.
    let mut reach = 0i64;
    let mut nested = true;
    for &(s, n) in &dims {
        nested &= s > reach;
        reach = reach.saturating_add(s.saturating_mul(n - 1));
    }
    if nested {
        return Some(false);
    }
    // A meeting is a non-zero difference of indices that moves by no cells; its first non-zero
    // difference, in the order of dims, may be taken as positive.
    let mut budget = BUDGET;
    for first in 0..dims.len() {
        let terms: Terms = dims[first + 1..].iter().map(|&(s, n)| (s, 2 * n - 1)).collect();
        let shift: i64 = dims[first + 1..].iter().map(|&(s, n)| s * (n - 1)).sum();
        let (s, n) = dims[first];
        let mut terms_first = terms;
        terms_first.push((s, n - 1));
        match solve(terms_first, shift - s, &mut budget) {
            Some(false) => {}
            other => return other,
        }
    }
    Some(false)
}

fn meets(a: &Layout, b: &Layout) -> Option<bool> {
    if a.sizes.contains(&0) || b.sizes.contains(&0) {
        return Some(false);
    }
    let (ra, rb) = (a.cell_range(), b.cell_range());
    if ra.end <= rb.start || rb.end <= ra.start {
        return Some(false);
    }
    // A dense box has every cell of its range.
    if ra.contains(&b.offset) && a.is_dense() || rb.contains(&a.offset) && b.is_dense() {
        return Some(true);
    }
    // a.offset + sum(sa * x) = b.offset + sum(sb * y); y is counted from the far end so that all signs agree.
    let mut target = b.offset - a.offset;
    let mut terms = Terms::new();
    let mut add = |stride: i64, size: i64, sign: i64| {
        let s = stride * sign;
        if size > 1 && s != 0 {
            if s < 0 {
                target -= s * (size - 1);
            }
            terms.push((s.abs(), size));
        }
    };
    for (&n, &s) in a.sizes.iter().zip(&a.strides) {
        add(s, n, 1);
    }
    for (&n, &s) in b.sizes.iter().zip(&b.strides) {
        add(s, n, -1);
    }
    solve(terms, target, &mut { BUDGET })
}

/// Whether `sum(s * x) = target` with `0 <= x < n` for terms `(s, n)`, all `s > 0`.
fn solve(mut terms: Terms, target: i64, budget: &mut u32) -> Option<bool> {
    terms.retain(|t| t.1 > 1);
    terms.sort_unstable();
    // Terms of one stride are one term; so are terms that continue each other's runs.
    let mut merged = Terms::new();
    for (s, n) in terms {
        match merged.last_mut() {
            Some(last) if last.0 == s => last.1 = last.1.saturating_add(n - 1),
            Some(last) if s % last.0 == 0 && s / last.0 <= last.1 => {
                last.1 = last.1.saturating_add((s / last.0).saturating_mul(n - 1));
            }
            _ => merged.push((s, n)),
        }
    }
    let mut reach: SmallVec<[i64; 16]> = SmallVec::new();
    let mut gcd: SmallVec<[i64; 16]> = SmallVec::new();
    let (mut r, mut g) = (0i64, 0i64);
    for &(s, n) in &merged {
        r = r.saturating_add(s.saturating_mul(n - 1));
        g = num_gcd(g, s);
        reach.push(r);
        gcd.push(g);
    }
    fn go(terms: &[(i64, i64)], reach: &[i64], gcd: &[i64], target: i64, budget: &mut u32) -> Option<bool> {
        let Some((&(s, n), rest)) = terms.split_last() else { return Some(target == 0) };
        let k = terms.len() - 1;
        if target < 0 || target > reach[k] || target % gcd[k] != 0 {
            return Some(false);
        }
        let below = if k > 0 { reach[k - 1] } else { 0 };
        let lo = (target - below).max(0).div_euclid(s) + ((target - below).max(0).rem_euclid(s) != 0) as i64;
        let hi = (target / s).min(n - 1);
        let mut x = lo;
        while x <= hi {
            *budget = budget.checked_sub(1)?;
            match go(rest, &reach[..k], &gcd[..k], target - s * x, budget) {
                Some(false) => {}
                other => return other,
            }
            x += 1;
        }
        Some(false)
    }
    go(&merged, &reach, &gcd, target, budget)
}

fn num_gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { num_gcd(b, a % b) }
}

/// For layouts that meet: `Inside` or `Contains` if the dimensions of one are, one by one, found in those of
/// the other; otherwise `Partial`.
fn contained(a: &Layout, b: &Layout) -> Overlap {
    if box_inside(a, b) {
        Overlap::Inside
    } else if box_inside(b, a) {
        Overlap::Contains
    } else {
        Overlap::Partial
    }
}

/// Whether every index of `a` is provably an index of `b`: the dimensions of `b` nest (each stride steps over
/// what the smaller ones reach), so that a cell has at most one index, found by division.
fn box_inside(a: &Layout, b: &Layout) -> bool {
    let mut dims: Terms = b.sizes.iter().zip(&b.strides).filter(|(n, _)| **n > 1).map(|(&n, &s)| (s, n)).collect();
    dims.sort_unstable_by(|x, y| y.cmp(x));
    // The same cells in fewer dimensions: rows that follow each other are one.
    let mut joined = Terms::new();
    for (s, n) in dims {
        match joined.last_mut() {
            Some(last) if s.checked_mul(n) == Some(last.0) => *last = (s, last.1.saturating_mul(n)),
            _ => joined.push((s, n)),
        }
    }
    let dims = joined;
    let mut reach = 0;
    for &(s, n) in dims.iter().rev() {
        if s <= reach {
            return false;
        }
        reach += s * (n - 1);
    }
    // Index ranges of `b` that the dimensions of `a` use: each stride of `a` is split over the strides of `b`
    // as a carry-free number, so the ranges of the dimensions add up.
    let mut rest = a.offset - b.offset;
    if rest < 0 {
        return false;
    }
    let digits = |mut x: i64| -> Option<PerDim<i64>> {
        let mut out = PerDim::new();
        for &(s, _) in &dims {
            out.push(x / s);
            x %= s;
        }
        (x == 0).then_some(out)
    };
    let Some(mut high) = digits(std::mem::take(&mut rest)) else { return false };
    for (&n, &s) in a.sizes.iter().zip(&a.strides) {
        if n <= 1 || s == 0 {
            continue;
        }
        if s < 0 {
            return false;
        }
        let Some(step) = digits(s) else { return false };
        for (h, d) in high.iter_mut().zip(step) {
            *h += d * (n - 1);
        }
    }
    high.iter().zip(&dims).all(|(&h, &(_, n))| h < n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_other_types_are_the_same_bytes() {
        let ints = Layout::strided(&[4i64, 2], &[4, 1], 1);
        let bytes = Layout::strided(&[4i64, 8], &[16, 1], 4);
        assert_eq!(overlap_bytes(&ints, 4, &bytes, 1), Overlap::Same);
        let first = Layout::strided(&[4i64, 4], &[16, 1], 4);
        assert_eq!(overlap_bytes(&first, 1, &ints, 4), Overlap::Inside);
    }
    use std::collections::BTreeSet;

    /// A small deterministic generator; the tests only need variety.
    struct Lcg(u64);
    impl Lcg {
        fn below(&mut self, n: i64) -> i64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((self.0 >> 33) % n as u64) as i64
        }
        fn layout(&mut self) -> Layout {
            let rank = self.below(4) as usize;
            let sizes: Vec<i64> = (0..rank).map(|_| self.below(5)).collect();
            let strides: Vec<i64> = (0..rank).map(|_| self.below(9)).collect();
            Layout::strided(&sizes, &strides, self.below(12))
        }
    }

    #[test]
    fn agrees_with_enumeration() {
        let mut rng = Lcg(7);
        let mut inside = 0;
        // Miri takes 0.1 s for one.
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        for _ in 0..rounds {
            let (a, b) = (rng.layout(), rng.layout());
            let (ca, cb): (BTreeSet<_>, BTreeSet<_>) =
                (a.cells().into_iter().collect(), b.cells().into_iter().collect());
            let common = ca.intersection(&cb).count();
            match overlap(&a, &b) {
                Overlap::Disjoint => assert_eq!(common, 0, "{a} {b}"),
                Overlap::Same => assert_eq!(a.cells(), b.cells(), "{a} {b}"),
                Overlap::Inside => {
                    inside += 1;
                    assert!(common > 0 && ca.is_subset(&cb), "{a} {b}");
                }
                Overlap::Contains => assert!(common > 0 && cb.is_subset(&ca), "{a} {b}"),
                Overlap::Partial => assert!(common > 0, "{a} {b}"),
                Overlap::Unknown => panic!("small layouts are decided: {a} {b}"),
            }
            let repeats = a.cells().len() != ca.len();
            assert_eq!(self_overlaps(&a), Some(repeats), "{a}");
        }
        assert!(cfg!(miri) || inside > 200, "{inside}");
    }

    #[test]
    fn interleaved_columns_are_disjoint() {
        let base = Layout::contiguous(&[1000i64, 84]);
        let col = |s: i64| base.slice(1, Some(&s), None, &4).unwrap();
        assert_eq!(overlap(&col(0), &col(1)), Overlap::Disjoint);
        assert_eq!(overlap(&col(0), &base), Overlap::Inside);
        // The same cells in one dimension and in two.
        let flat = Layout::strided(&[24i64], &[8], 5);
        assert_eq!(overlap(&flat, &Layout::strided(&[6i64, 4], &[32, 8], 5)), Overlap::Inside);
        assert_eq!(overlap(&base, &col(3)), Overlap::Contains);
        assert_eq!(overlap(&col(2), &col(2)), Overlap::Same);
    }

    #[test]
    fn bytes_of_different_elements() {
        let f = Layout::contiguous(&[4i64]);
        let h = Layout::strided(&[2i64], &[1], 6);
        assert_eq!(overlap_bytes(&f, 4, &h, 2), Overlap::Contains);
        assert_eq!(overlap_bytes(&f, 4, &Layout::strided(&[2i64], &[1], 8), 2), Overlap::Disjoint);
    }
}

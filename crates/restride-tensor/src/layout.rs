//! Strided layouts: the map from indices to cells, and every way a view changes it.
//!
//! Generic over the type of sizes and strides: `i64` where they are known, a symbolic expression in a program
//! with dynamic shapes. Rules that must decide something ask [`Dim::equals`], which answers `None` when it
//! cannot be proved either way.

use smallvec::{Array, SmallVec};
use std::fmt;

/// Sizes or strides, one per dimension.
pub type Dims<D> = SmallVec<<D as Dim>::Room>;

/// Anything else that there is one of per dimension.
pub type PerDim<T> = SmallVec<[T; 6]>;

/// A size, stride or offset: known (`i64`) or symbolic.
pub trait Dim: Clone + PartialEq + From<i64> + fmt::Debug + fmt::Display {
    /// How many need no memory of their own: of known ones those that kernels commonly see (windows of images have six), as long
    /// as a layout is not longer than what is moved without a call, 128 bytes: with room for eight the kernels of small tensors
    /// took up to a third longer. Of symbolic ones, which are wider and many, those of most values.
    type Room: Array<Item = Self>;
    /// The value, if it is known.
    fn known(&self) -> Option<i64>;
    /// Sum.
    fn plus(&self, other: &Self) -> Self;
    /// Difference.
    fn minus(&self, other: &Self) -> Self;
    /// Product.
    fn times(&self, other: &Self) -> Self;
    /// Quotient rounded towards minus infinity; the divisor is positive.
    fn floor_div(&self, other: &Self) -> Self;
    /// The smaller of two.
    fn smaller(&self, other: &Self) -> Self;
    /// The larger of two.
    fn larger(&self, other: &Self) -> Self;
    /// Whether two are equal, if that can be proved or refuted.
    fn equals(&self, other: &Self) -> Option<bool>;
    /// Whether this is less than the other, if that can be proved or refuted.
    fn less(&self, other: &Self) -> Option<bool>;
    /// `is(1)` and the like: provably equal to a number.
    fn is(&self, n: i64) -> bool {
        self.equals(&Self::from(n)) == Some(true)
    }
}

impl Dim for i64 {
    type Room = [i64; 6];
    fn known(&self) -> Option<i64> {
        Some(*self)
    }
    fn plus(&self, other: &Self) -> Self {
        self.wrapping_add(*other)
    }
    fn minus(&self, other: &Self) -> Self {
        self.wrapping_sub(*other)
    }
    fn times(&self, other: &Self) -> Self {
        self.wrapping_mul(*other)
    }
    fn floor_div(&self, other: &Self) -> Self {
        self.div_euclid(*other)
    }
    fn smaller(&self, other: &Self) -> Self {
        (*self).min(*other)
    }
    fn larger(&self, other: &Self) -> Self {
        (*self).max(*other)
    }
    fn equals(&self, other: &Self) -> Option<bool> {
        Some(self == other)
    }
    fn less(&self, other: &Self) -> Option<bool> {
        Some(self < other)
    }
}

/// Why a view cannot be made of a layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutError(pub String);

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for LayoutError {}

type Result<T> = std::result::Result<T, LayoutError>;
fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(LayoutError(message.into()))
}

/// Sizes, strides and offset, in elements, on one storage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout<D: Dim = i64> {
    /// Number of indices in each dimension.
    pub sizes: Dims<D>,
    /// Cells between neighbours in each dimension. Never negative in an eager PyTorch tensor.
    pub strides: Dims<D>,
    /// Cell of the first element.
    pub offset: D,
}

/// Strides of a row-major tensor (PyTorch's: a dimension of size 0 counts as 1).
fn row_major<D: Dim>(sizes: &[D]) -> Dims<D> {
    let mut strides: Dims<D> = sizes.iter().map(|_| D::from(1)).collect();
    for d in (0..sizes.len().saturating_sub(1)).rev() {
        let size = if sizes[d + 1].known() == Some(0) { D::from(1) } else { sizes[d + 1].clone() };
        strides[d] = strides[d + 1].times(&size);
    }
    strides
}

impl<D: Dim> Layout<D> {
    /// A row-major layout from cell 0.
    pub fn contiguous(sizes: &[D]) -> Self {
        Layout { sizes: sizes.iter().cloned().collect(), strides: row_major(sizes), offset: D::from(0) }
    }

    /// A layout of the given sizes, dense from cell 0, with dimensions laid out from slowest to fastest in
    /// the order `perm` (PyTorch's `empty_permuted`).
    pub fn permuted(sizes: &[D], perm: &[usize]) -> Self {
        let ordered: Vec<D> = perm.iter().map(|&d| sizes[d].clone()).collect();
        let dense = row_major(&ordered);
        let mut strides: Dims<D> = sizes.iter().map(|_| D::from(1)).collect();
        for (stride, &d) in dense.iter().zip(perm) {
            strides[d] = stride.clone();
        }
        Layout { sizes: sizes.iter().cloned().collect(), strides, offset: D::from(0) }
    }

    /// Sizes, strides and offset as given.
    pub fn strided(sizes: &[D], strides: &[D], offset: D) -> Self {
        Layout { sizes: sizes.iter().cloned().collect(), strides: strides.iter().cloned().collect(), offset }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Number of elements.
    pub fn numel(&self) -> D {
        self.sizes.iter().fold(D::from(1), |n, s| n.times(s))
    }

    /// Whether this is row-major (dimensions of size 1 may have any stride), as PyTorch's `is_contiguous`;
    /// false when it cannot be proved.
    pub fn is_contiguous(&self) -> bool {
        if self.sizes.iter().any(|s| s.is(0)) {
            return true;
        }
        let mut expected = D::from(1);
        for (size, stride) in self.sizes.iter().zip(&self.strides).rev() {
            if size.is(1) {
                continue;
            }
            if stride.equals(&expected) != Some(true) {
                return false;
            }
            expected = expected.times(size);
        }
        true
    }

    /// A dimension that may be counted from the end, checked. A 0-d tensor takes 0 and -1.
    pub fn dim(&self, dim: i64) -> Result<usize> {
        wrap_dim(dim, self.rank())
    }

    /// The same cells with dimensions in another order.
    pub fn permute(&self, dims: &[i64]) -> Result<Self> {
        if dims.len() != self.rank() {
            return fail(format!("permute: {} dimensions given for a tensor of {}", dims.len(), self.rank()));
        }
        let mut seen: SmallVec<[bool; 8]> = SmallVec::from_elem(false, self.rank());
        let mut out = Layout { sizes: SmallVec::new(), strides: SmallVec::new(), offset: self.offset.clone() };
        for &d in dims {
            let d = self.dim(d)?;
            if std::mem::replace(&mut seen[d], true) {
                return fail(format!("permute: dimension {d} appears twice"));
            }
            out.sizes.push(self.sizes[d].clone());
            out.strides.push(self.strides[d].clone());
        }
        Ok(out)
    }

    /// Two dimensions exchanged.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Self> {
        let (a, b) = (self.dim(a)?, self.dim(b)?);
        let mut out = self.clone();
        if self.rank() > 0 {
            out.sizes.swap(a, b);
            out.strides.swap(a, b);
        }
        Ok(out)
    }

    /// `start:end:step` of one dimension with Python's clamping; `None` bounds are the ends.
    pub fn slice(&self, dim: i64, start: Option<&D>, end: Option<&D>, step: &D) -> Result<Self> {
        if self.rank() == 0 {
            return fail("slice: a 0-d tensor cannot be sliced");
        }
        let d = self.dim(dim)?;
        if step.less(&D::from(1)) != Some(false) {
            return fail(format!("slice: step must be positive, got {step}"));
        }
        let size = &self.sizes[d];
        let zero = D::from(0);
        let clamp = |x: &D| -> D {
            if x.known() == Some(i64::MAX) {
                return size.clone();
            }
            let x = match x.less(&zero) {
                Some(true) => x.plus(size),
                _ => x.clone(),
            };
            x.larger(&zero).smaller(size)
        };
        let start = start.map_or(zero.clone(), clamp);
        let end = end.map_or(size.clone(), clamp).larger(&start);
        let mut out = self.clone();
        out.offset = self.offset.plus(&start.times(&self.strides[d]));
        let span = end.minus(&start);
        out.sizes[d] = if step.is(1) { span } else { span.plus(&step.minus(&D::from(1))).floor_div(step) };
        out.strides[d] = self.strides[d].times(step);
        Ok(out)
    }

    /// One index of a dimension, which disappears. A negative index counts from the end.
    pub fn select(&self, dim: i64, index: &D) -> Result<Self> {
        if self.rank() == 0 {
            return fail("select: a 0-d tensor has no dimension to select from");
        }
        let d = self.dim(dim)?;
        let size = &self.sizes[d];
        let index = match index.less(&D::from(0)) {
            Some(true) => index.plus(size),
            _ => index.clone(),
        };
        if index.less(&D::from(0)) == Some(true) || index.less(size) == Some(false) {
            return fail(format!("select: index {index} is out of range for dimension {d} of size {size}"));
        }
        let mut out = self.clone();
        out.offset = self.offset.plus(&index.times(&self.strides[d]));
        out.sizes.remove(d);
        out.strides.remove(d);
        Ok(out)
    }

    /// Broadcast to the given sizes (-1 keeps a size): new and stretched dimensions get stride 0.
    pub fn expand(&self, sizes: &[D]) -> Result<Self> {
        if sizes.len() < self.rank() {
            return fail(format!("expand: {} sizes given for a tensor of {} dimensions", sizes.len(), self.rank()));
        }
        let lead = sizes.len() - self.rank();
        let mut out = Layout { sizes: SmallVec::new(), strides: SmallVec::new(), offset: self.offset.clone() };
        for (i, want) in sizes.iter().enumerate() {
            if i < lead {
                if want.is(-1) {
                    return fail("expand: -1 is not allowed for a leading, new dimension");
                }
                out.sizes.push(want.clone());
                out.strides.push(D::from(0));
                continue;
            }
            let (have, stride) = (&self.sizes[i - lead], &self.strides[i - lead]);
            if want.is(-1) || want.equals(have) == Some(true) {
                out.sizes.push(have.clone());
                out.strides.push(stride.clone());
            } else if have.is(1) {
                out.sizes.push(want.clone());
                out.strides.push(D::from(0));
            } else if want.equals(have).is_none() {
                // Not provable: a symbolic size that must equal the other at run time.
                out.sizes.push(have.clone());
                out.strides.push(stride.clone());
            } else {
                return fail(format!("expand: size {have} of dimension {} cannot become {want}", i - lead));
            }
        }
        // A new dimension of size 1 is not stretched: PyTorch gives it the stride that it would have in front of
        // the others (a 0-d tensor has none).
        for d in (0..lead).rev() {
            if self.rank() > 0 && out.sizes[d].is(1) {
                out.strides[d] = out.sizes[d + 1].times(&out.strides[d + 1]);
            }
        }
        Ok(out)
    }

    /// A new dimension of size 1 before `dim`.
    pub fn unsqueeze(&self, dim: i64) -> Result<Self> {
        let d = wrap_dim(dim, self.rank() + 1)?;
        let mut out = self.clone();
        let stride = match self.sizes.get(d) {
            Some(size) => size.times(&self.strides[d]),
            None => D::from(1),
        };
        out.sizes.insert(d, D::from(1));
        out.strides.insert(d, stride);
        Ok(out)
    }

    /// Without those of the given dimensions (all, if `None`) that have size 1.
    pub fn squeeze(&self, dims: Option<&[i64]>) -> Result<Self> {
        let mut drop = vec![dims.is_none(); self.rank()];
        for &d in dims.unwrap_or(&[]) {
            let d = self.dim(d)?;
            if self.rank() > 0 {
                drop[d] = true;
            }
        }
        let mut out = Layout { sizes: SmallVec::new(), strides: SmallVec::new(), offset: self.offset.clone() };
        for (d, droppable) in drop.into_iter().enumerate() {
            if !(droppable && self.sizes[d].is(1)) {
                out.sizes.push(self.sizes[d].clone());
                out.strides.push(self.strides[d].clone());
            }
        }
        Ok(out)
    }

    /// Sizes with one -1 replaced by what the number of elements leaves for it.
    pub fn infer_sizes(&self, sizes: &[D]) -> Result<Dims<D>> {
        infer_sizes(&self.numel(), sizes)
    }

    /// The same cells under other sizes (PyTorch's `computeStride`); `None` if strides cannot express it or it
    /// cannot be proved that they do. `sizes` has no -1 (see [`Layout::infer_sizes`]).
    pub fn view(&self, sizes: &[D]) -> Option<Self> {
        let same = self.rank() == sizes.len() && self.sizes.iter().zip(sizes).all(|(a, b)| a.equals(b) == Some(true));
        if same {
            return Some(self.clone());
        }
        let numel = self.numel();
        let wanted = sizes.iter().fold(D::from(1), |n, s| n.times(s));
        if numel.equals(&wanted) != Some(true) {
            return None;
        }
        let offset = self.offset.clone();
        if numel.is(0) {
            return Some(Layout { offset, ..Layout::contiguous(sizes) });
        }
        let strides = self.split_strides(sizes);
        // What is contiguous can be viewed under any sizes, also where symbolic sizes hide how they divide.
        let strides = strides.or_else(|| self.is_contiguous().then(|| row_major(sizes)))?;
        Some(Layout { sizes: sizes.iter().cloned().collect(), strides, offset })
    }

    /// Strides of the same cells under other sizes of the same product, one run of cells after the other.
    fn split_strides(&self, sizes: &[D]) -> Option<Dims<D>> {
        let one = D::from(1);
        let mut strides: Dims<D> = sizes.iter().map(|_| one.clone()).collect();
        let mut view_d = sizes.len();
        let mut base = self.strides.last().cloned().unwrap_or_else(|| one.clone());
        let (mut have, mut seen) = (one.clone(), one.clone());
        if self.rank() == 0 {
            return Some(strides);
        }
        for d in (0..self.rank()).rev() {
            have = have.times(&self.sizes[d]);
            // A chunk of dimensions that are one run of cells ends where the next stride does not continue it.
            let ends =
                d == 0 || (!self.sizes[d - 1].is(1) && self.strides[d - 1].equals(&have.times(&base)) != Some(true));
            if ends {
                while view_d > 0 && (seen.equals(&have) != Some(true) || sizes[view_d - 1].is(1)) {
                    view_d -= 1;
                    strides[view_d] = seen.times(&base);
                    seen = seen.times(&sizes[view_d]);
                }
                if seen.equals(&have) != Some(true) {
                    return None;
                }
                if d > 0 {
                    base = self.strides[d - 1].clone();
                    (have, seen) = (one.clone(), one.clone());
                }
            }
        }
        (view_d == 0).then_some(strides)
    }

    /// Windows of `size` every `step` along a dimension, as a new last dimension.
    pub fn unfold(&self, dim: i64, size: &D, step: &D) -> Result<Self> {
        let mut out = self.clone();
        if self.rank() == 0 {
            wrap_dim(dim, 1)?;
            out.sizes.push(size.clone());
            out.strides.push(D::from(1));
            return Ok(out);
        }
        let d = self.dim(dim)?;
        if self.sizes[d].less(size) == Some(true) {
            return fail(format!("unfold: window {size} is larger than dimension {d} of size {}", self.sizes[d]));
        }
        if step.less(&D::from(1)) != Some(false) {
            return fail(format!("unfold: step must be positive, got {step}"));
        }
        out.sizes.push(size.clone());
        out.strides.push(self.strides[d].clone());
        out.sizes[d] = self.sizes[d].minus(size).floor_div(step).plus(&D::from(1));
        out.strides[d] = self.strides[d].times(step);
        Ok(out)
    }

    /// The diagonal of two dimensions, as a new last dimension.
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Self> {
        let (a, b) = (self.dim(dim1)?, self.dim(dim2)?);
        if a == b || self.rank() < 2 {
            return fail("diagonal: needs two different dimensions");
        }
        let zero = D::from(0);
        let shift = D::from(offset.saturating_abs());
        let mut out = self.clone();
        let (rows, cols) = if offset >= 0 {
            (self.sizes[a].clone(), self.sizes[b].minus(&shift).larger(&zero))
        } else {
            (self.sizes[a].minus(&shift).larger(&zero), self.sizes[b].clone())
        };
        let size = rows.smaller(&cols);
        // PyTorch skips to the first element only where there is one.
        if !size.is(0) {
            let stride = if offset >= 0 { &self.strides[b] } else { &self.strides[a] };
            out.offset = self.offset.plus(&shift.times(stride));
        }
        let stride = self.strides[a].plus(&self.strides[b]);
        let (lo, hi) = (a.min(b), a.max(b));
        for d in [hi, lo] {
            out.sizes.remove(d);
            out.strides.remove(d);
        }
        out.sizes.push(size);
        out.strides.push(stride);
        Ok(out)
    }

    /// Same sizes and the same cells in the same order: strides of dimensions of size 1 do not matter.
    pub fn same_cells(&self, other: &Self) -> bool {
        self.rank() == other.rank()
            && self.sizes.iter().zip(&other.sizes).all(|(a, b)| a.equals(b) == Some(true))
            && (self.sizes.iter().any(|s| s.is(0))
                || (self.offset.equals(&other.offset) == Some(true)
                    && (0..self.rank())
                        .all(|d| self.sizes[d].is(1) || self.strides[d].equals(&other.strides[d]) == Some(true))))
    }

    /// The layout with every size, stride and the offset mapped.
    pub fn map<E: Dim>(&self, mut f: impl FnMut(&D) -> E) -> Layout<E> {
        Layout {
            sizes: self.sizes.iter().map(&mut f).collect(),
            strides: self.strides.iter().map(&mut f).collect(),
            offset: f(&self.offset),
        }
    }

    /// The known layout, if all of it is.
    pub fn known(&self) -> Option<Layout<i64>> {
        Some(Layout {
            sizes: self.sizes.iter().map(D::known).collect::<Option<_>>()?,
            strides: self.strides.iter().map(D::known).collect::<Option<_>>()?,
            offset: self.offset.known()?,
        })
    }
}

/// A dimension that may be counted from the end, of a tensor of `rank`. Rank 0 counts as 1.
fn wrap_dim(dim: i64, rank: usize) -> Result<usize> {
    let n = rank.max(1) as i64;
    if dim < -n || dim >= n {
        return fail(format!("dimension {dim} is out of range [{}, {}]", -n, n - 1));
    }
    Ok(dim.rem_euclid(n) as usize)
}

fn infer_sizes<D: Dim>(numel: &D, sizes: &[D]) -> Result<Dims<D>> {
    let mut out: Dims<D> = sizes.iter().cloned().collect();
    let mut hole = None;
    let mut rest = D::from(1);
    for (i, s) in sizes.iter().enumerate() {
        if s.is(-1) {
            if hole.replace(i).is_some() {
                return fail("only one size can be -1");
            }
        } else {
            rest = rest.times(s);
        }
    }
    let bad = || LayoutError(format!("sizes {} do not fit {numel} elements", show(sizes)));
    if let Some(i) = hole {
        if rest.is(0) {
            return fail(format!("the size left out of {} is ambiguous for no elements", show(sizes)));
        }
        out[i] = numel.floor_div(&rest);
        if rest.times(&out[i]).equals(numel) == Some(false) {
            return Err(bad());
        }
    } else if rest.equals(numel) == Some(false) {
        return Err(bad());
    }
    Ok(out)
}

fn show<D: Dim>(dims: &[D]) -> String {
    let items: Vec<String> = dims.iter().map(|d| d.to_string()).collect();
    format!("[{}]", items.join(", "))
}

impl Layout<i64> {
    /// Cells that the layout reaches, as a half-open range; empty if it has no elements. Saturates.
    pub fn cell_range(&self) -> std::ops::Range<i64> {
        if self.sizes.contains(&0) {
            return self.offset..self.offset;
        }
        let (mut lo, mut hi) = (self.offset, self.offset);
        for (&n, &s) in self.sizes.iter().zip(&self.strides) {
            let reach = s.saturating_mul(n - 1);
            if reach < 0 {
                lo = lo.saturating_add(reach);
            } else {
                hi = hi.saturating_add(reach);
            }
        }
        lo..hi.saturating_add(1)
    }

    /// The cell of an index.
    pub fn cell(&self, index: &[i64]) -> i64 {
        self.offset + index.iter().zip(&self.strides).map(|(i, s)| i * s).sum::<i64>()
    }

    /// All cells in logical (row-major) order of the indices.
    pub fn cells(&self) -> Vec<i64> {
        let mut out = vec![self.offset];
        for (&n, &s) in self.sizes.iter().zip(&self.strides) {
            out = out.iter().flat_map(|&c| (0..n).map(move |i| c + i * s)).collect();
        }
        out
    }

    /// Every cell of one range is hit exactly once (PyTorch's "non-overlapping and dense").
    pub fn is_dense(&self) -> bool {
        if self.sizes.contains(&0) {
            return true;
        }
        let mut dims: PerDim<(i64, i64)> =
            self.sizes.iter().zip(&self.strides).filter(|(n, _)| **n > 1).map(|(&n, &s)| (s, n)).collect();
        dims.sort_unstable();
        let mut expected = 1;
        for (stride, size) in dims {
            if stride != expected {
                return false;
            }
            expected *= size;
        }
        true
    }
}

impl<D: Dim> fmt::Display for Layout<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}+{}", show(&self.sizes), show(&self.strides), self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_dimensions_lie_in_a_short_layout() {
        assert!(!Layout::contiguous(&[2i64; 6]).strides.spilled());
        assert!(size_of::<Layout>() <= 128);
    }

    fn cells_after(l: Layout) -> Vec<i64> {
        l.cells()
    }

    #[test]
    fn views_reach_the_cells_that_indexing_reaches() {
        let base = Layout::contiguous(&[2i64, 3, 4]);
        assert_eq!(cells_after(base.select(1, &-1).unwrap()), [8, 9, 10, 11, 20, 21, 22, 23]);
        assert_eq!(
            cells_after(base.slice(2, Some(&1), Some(&i64::MAX), &2).unwrap().select(0, &0).unwrap()),
            [1, 3, 5, 7, 9, 11]
        );
        assert_eq!(base.transpose(0, 2).unwrap().cell(&[3, 2, 1]), 23);
        assert_eq!(cells_after(base.diagonal(1, 0, 1).unwrap()), [4, 20, 5, 21, 6, 22, 7, 23]);
        assert_eq!(base.unfold(2, &2, &1).unwrap().sizes[..], [2, 3, 3, 2]);
    }

    #[test]
    fn view_needs_one_run_of_cells() {
        let base = Layout::contiguous(&[4i64, 6]);
        assert_eq!(base.view(&[2, 2, 6]).unwrap().strides[..], [12, 6, 1]);
        let t = base.transpose(0, 1).unwrap();
        assert!(t.view(&[24]).is_none());
        assert_eq!(t.view(&[3, 2, 4]).unwrap().strides[..], [2, 1, 6]);
        let cut = base.slice(1, Some(&0), Some(&3), &1).unwrap();
        assert!(cut.view(&[12]).is_none());
        assert_eq!(cut.view(&[2, 2, 3]).unwrap().strides[..], [12, 6, 1]);
    }

    // The numbers are what PyTorch was seen to give.
    #[test]
    fn strides_of_dimensions_of_size_one_are_pytorchs() {
        let odd = Layout::strided(&[3i64, 1], &[1, 5], 0);
        assert_eq!(odd.view(&[1, 3, 1]).unwrap().strides[..], [3, 1, 5]);
        assert_eq!(odd.view(&[3, 1, 1]).unwrap().strides[..], [1, 5, 5]);
        assert_eq!(Layout::strided(&[0i64, 3], &[7, 2], 0).view(&[3, 0]).unwrap().strides[..], [1, 1]);
        let row = Layout::contiguous(&[3i64]);
        assert_eq!(row.expand(&[1, 1, 3]).unwrap().strides[..], [3, 3, 1]);
        assert_eq!(row.expand(&[2, 1, 3]).unwrap().strides[..], [0, 3, 1]);
        assert_eq!(Layout::contiguous(&[] as &[i64]).expand(&[1, 3]).unwrap().strides[..], [0, 0]);
        assert_eq!(Layout::contiguous(&[1i64]).expand(&[3, 1]).unwrap().strides[..], [0, 1]);
    }

    #[test]
    fn slices_clamp_as_python_does() {
        let base = Layout::contiguous(&[5i64]);
        let take = |a: i64, b: i64, s: i64| base.slice(0, Some(&a), Some(&b), &s).unwrap().cells();
        assert_eq!(take(-2, i64::MAX, 1), [3, 4]);
        assert_eq!(take(1, 100, 3), [1, 4]);
        assert!(take(4, 2, 1).is_empty());
        assert!(take(-100, -4, 1) == [0]);
        assert!(base.slice(0, None, None, &0).is_err());
    }

    #[test]
    fn dense_and_contiguous() {
        let base = Layout::contiguous(&[2i64, 3]);
        assert!(base.is_contiguous() && base.is_dense());
        let t = base.transpose(0, 1).unwrap();
        assert!(!t.is_contiguous() && t.is_dense());
        assert!(!base.slice(1, Some(&0), Some(&2), &1).unwrap().is_dense());
        assert!(!base.expand(&[4, 2, 3]).unwrap().is_dense());
    }

    #[test]
    fn sizes_are_inferred_or_refused() {
        let base = Layout::contiguous(&[2i64, 3]);
        assert_eq!(base.infer_sizes(&[-1, 2]).unwrap()[..], [3, 2]);
        assert!(base.infer_sizes(&[-1, 4]).is_err());
        assert!(base.infer_sizes(&[-1, -1]).is_err());
    }
}

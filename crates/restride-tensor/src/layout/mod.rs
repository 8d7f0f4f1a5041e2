//! Strided layouts: the map from indices to cells, and (`views.rs`) every way a view changes it.
//!
//! Generic over the type of sizes and strides: `i64` where they are known, a symbolic expression in a program
//! with dynamic shapes. Rules that must decide something ask [`Dim::equals`], which answers `None` when it
//! cannot be proved either way.

mod dim;
mod views;

pub use dim::{Dim, Dims, PerDim};

use std::fmt;

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
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Layout<D: Dim = i64> {
    /// Number of indices in each dimension.
    pub sizes: Dims<D>,
    /// Cells between neighbours in each dimension. Never negative in an eager PyTorch tensor.
    pub strides: Dims<D>,
    /// Cell of the first element.
    pub offset: D,
}

impl<D: Dim> Clone for Layout<D> {
    fn clone(&self) -> Self {
        Layout { sizes: D::copied(&self.sizes), strides: D::copied(&self.strides), offset: self.offset.clone() }
    }
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

/// Sorts dimensions by the distance between their cells, the largest first; equal ones keep their order. By insertion: a tensor has
/// few dimensions, and a general sort is five kilobytes of code for each caller.
pub fn by_stride<D: Copy>(dims: &mut [D], stride: impl Fn(D) -> i64) {
    for end in 1..dims.len() {
        let mut at = end;
        while at > 0 && stride(dims[at - 1]).unsigned_abs() < stride(dims[at]).unsigned_abs() {
            dims.swap(at - 1, at);
            at -= 1;
        }
    }
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

    /// Bytes that elements of a size reach, counted from cell 0. `None` for what no memory can be: not one stride for each
    /// size, a negative size, a first element before cell 0, more elements than can be counted.
    pub fn byte_range(&self, size: usize) -> Option<std::ops::Range<usize>> {
        if self.sizes.len() != self.strides.len() || self.sizes.iter().any(|n| *n < 0) || self.offset < 0 {
            return None;
        }
        if self.sizes.contains(&0) {
            return Some(0..0);
        }
        // So that the bytes of a copy can be counted, whatever its element type.
        let mut most = i64::MAX / 16;
        let (mut low, mut high) = (i128::from(self.offset), i128::from(self.offset));
        for (&n, &s) in self.sizes.iter().zip(&self.strides) {
            most = most.checked_div(n)?;
            let reach = i128::from(s) * i128::from(n - 1);
            if reach < 0 { low += reach } else { high = high.checked_add(reach)? }
        }
        let bytes =
            |cells: i128| usize::try_from(cells.checked_mul(size as i128)?).ok().filter(|n| *n <= isize::MAX as usize);
        if most == 0 {
            return None;
        }
        Some(bytes(low)?..bytes(high.checked_add(1)?)?)
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

//! Every way a view changes a layout.

use super::{Dim, Dims, Layout, LayoutError, Result, fail, row_major, show, wrap_dim};
use smallvec::SmallVec;

impl<D: Dim> Layout<D> {
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
        // An exporter ensures it of a symbolic one.
        if step.less(&D::from(1)) == Some(true) {
            return fail(format!("slice: step must be positive, got {step}"));
        }
        let size = &self.sizes[d];
        let zero = D::from(0);
        let clamp = |x: &D| -> D {
            if x.known() == Some(i64::MAX) {
                return size.clone();
            }
            x.bound_from_start(size).larger(&zero).smaller(size)
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
        let index = index.counted_from_start(size);
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
        let mut out = infer_sizes(&self.numel(), sizes)?;
        let hole = sizes.iter().position(|s| s.is(-1));
        if let Some(i) = hole.filter(|&i| out[i].known().is_none()) {
            // Sizes that both sides have are left out of the division, so that what it gives is not a fraction of symbols.
            let mut own: Dims<D> = self.sizes.iter().cloned().collect();
            let mut rest = D::from(1);
            for s in sizes.iter().filter(|s| !s.is(-1)) {
                match own.iter().position(|o| o.equals(s) == Some(true)) {
                    Some(at) => drop(own.remove(at)),
                    None => rest = rest.times(s),
                }
            }
            if rest.is(1) {
                out[i] = own.iter().fold(D::from(1), |n, s| n.times(s));
            }
        }
        Ok(out)
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

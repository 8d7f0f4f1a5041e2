//! Sizes and strides of results, as PyTorch's `TensorIterator` and `empty_like` choose them.

pub(crate) use restride_ir::dense_like;
use restride_ir::{Dims, Layout, MemoryFormat, OpError, fastest_first};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

/// Sizes to which all given sizes broadcast.
pub(crate) fn broadcast_sizes(operands: &[&[i64]]) -> Result<Dims<i64>> {
    let mut out: Dims<i64> = Dims::<i64>::new();
    for (k, sizes) in operands.iter().enumerate() {
        if k == 0 {
            out.extend(sizes.iter().copied());
            continue;
        }
        while out.len() < sizes.len() {
            out.insert(0, 1);
        }
        let lead = out.len() - sizes.len();
        for (d, &n) in sizes.iter().enumerate() {
            let m = &mut out[lead + d];
            if *m == 1 {
                *m = n;
            } else if n != 1 && n != *m {
                return Err(OpError::new(format!(
                    "The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {}",
                    lead + d
                )));
            }
        }
    }
    Ok(out)
}

/// A layout broadcast to sizes: new and expanded dimensions have stride 0.
///
/// # Panics
/// The layout does not broadcast to these sizes.
pub(crate) fn broadcast(layout: &Layout, sizes: &[i64]) -> Layout {
    let lead = sizes.len() - layout.rank();
    let mut strides: Dims<i64> = Dims::<i64>::from_elem(0, sizes.len());
    for d in 0..layout.rank() {
        if layout.sizes[d] == sizes[lead + d] {
            strides[lead + d] = layout.strides[d];
        } else {
            assert_eq!(layout.sizes[d], 1, "{layout} does not broadcast to {sizes:?}");
        }
    }
    Layout { sizes: sizes.iter().copied().collect(), strides, offset: layout.offset }
}

/// Layout of a pointwise result: broadcast sizes, in the dimension order that the operands' strides suggest. Plain numbers
/// count as 0-d layouts.
pub(crate) fn pointwise(operands: &[&Layout]) -> Result<Layout> {
    let sizes = broadcast_sizes(&operands.iter().map(|l| &l.sizes[..]).collect::<SmallVec<[&[i64]; 4]>>())?;
    // Fast path: fewer than two dimensions, or one row-major operand with elements beside 0-d ones.
    let mut orders = operands.iter().filter(|l| l.rank() > 0);
    let row_major = |l: &&&Layout| l.strides == Layout::contiguous(&sizes).strides;
    let one = !sizes.contains(&0) && orders.next().is_some_and(|l| row_major(&l)) && orders.next().is_none();
    if sizes.len() < 2 || one {
        return Ok(Layout::contiguous(&sizes));
    }
    if let Some(layout) = same_shape(&sizes, operands) {
        return Ok(layout);
    }
    let wide: SmallVec<[Layout; 4]> = operands.iter().map(|l| broadcast(l, &sizes)).collect();
    Ok(ordered(&sizes, &wide.iter().collect::<SmallVec<[&Layout; 4]>>()))
}

/// The layout if all operands have the result's sizes and agree on a dense dimension order.
fn same_shape(sizes: &[i64], operands: &[&Layout]) -> Option<Layout> {
    if operands.iter().any(|l| l.sizes[..] != *sizes) {
        return None;
    }
    if operands.iter().all(|l| l.is_contiguous()) {
        return Some(Layout::contiguous(sizes));
    }
    if operands.iter().all(|l| is_channels_last(l)) {
        return Some(channels_last(sizes));
    }
    let last = operands.last()?;
    if operands.iter().all(|l| l.is_dense() && l.strides == last.strides) {
        return Some(Layout::strided(sizes, &last.strides, 0));
    }
    None
}

/// The general case: sorts dimensions by the operands' strides and leaves ambiguous ones in row-major order.
fn ordered(sizes: &[i64], operands: &[&Layout]) -> Layout {
    let rank = sizes.len();
    let strides: SmallVec<[&[i64]; 4]> = operands.iter().map(|l| &l.strides[..]).collect();
    let perm = fastest_first(sizes, &strides);
    if rank < 2 || perm.iter().enumerate().all(|(i, &d)| d == rank - 1 - i) {
        return Layout::contiguous(sizes);
    }
    let mut strides: Dims<i64> = Dims::<i64>::from_elem(0, rank);
    let mut next = 1;
    for &d in &perm {
        strides[d] = next;
        next *= sizes[d];
    }
    Layout::strided(sizes, &strides, 0)
}

/// Whether 4 dimensions have NHWC strides, as PyTorch's `is_contiguous(memory_format=torch.channels_last)`.
pub(crate) fn is_channels_last(l: &Layout) -> bool {
    l.rank() == 4 && follows(l, &[1, 3, 2, 0])
}

fn follows(l: &Layout, fastest_first: &[usize]) -> bool {
    let mut expected = 1;
    fastest_first.iter().all(|&d| {
        let fits = l.sizes[d] == 1 || l.strides[d] == expected;
        if l.sizes[d] != 1 {
            expected *= l.sizes[d];
        }
        fits
    })
}

/// A dense layout of 4 or 5 dimensions with dimension 1 (channels) fastest.
pub(crate) fn channels_last(sizes: &[i64]) -> Layout {
    let mut strides: Dims<i64> = Dims::<i64>::from_elem(1, sizes.len());
    let mut next = sizes[1].max(1);
    for d in (2..sizes.len()).rev() {
        strides[d] = next;
        next *= sizes[d].max(1);
    }
    strides[0] = next;
    Layout::strided(sizes, &strides, 0)
}

/// A dense layout in a memory format; `Preserve` follows `like`.
pub(crate) fn in_format(format: MemoryFormat, like: &Layout) -> Result<Layout> {
    match format {
        MemoryFormat::Contiguous => Ok(Layout::contiguous(&like.sizes)),
        MemoryFormat::Preserve => Ok(dense_like(like)),
        MemoryFormat::ChannelsLast if like.rank() == 4 => Ok(channels_last(&like.sizes)),
        MemoryFormat::ChannelsLast3d if like.rank() == 5 => Ok(channels_last(&like.sizes)),
        MemoryFormat::ChannelsLast => Err(OpError::new("required rank 4 tensor to use channels_last format")),
        MemoryFormat::ChannelsLast3d => Err(OpError::new("required rank 5 tensor to use channels_last_3d format")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strides(operands: &[&Layout]) -> Vec<i64> {
        pointwise(operands).unwrap().strides.to_vec()
    }

    // Expected strides are those of `torch.add` on tensors with these strides.
    #[test]
    fn results_follow_the_operands() {
        let row = Layout::contiguous(&[2i64, 3, 4]);
        let t = Layout::contiguous(&[4i64, 3, 2]).transpose(0, 2).unwrap();
        let number = Layout::contiguous(&[] as &[i64]);
        assert_eq!(strides(&[&row, &t]), [12, 4, 1]);
        assert_eq!(strides(&[&t, &row]), [1, 2, 6]);
        assert_eq!(strides(&[&t, &number]), [1, 2, 6]);
        assert_eq!(strides(&[&t]), [1, 2, 6]);
        let last = Layout::contiguous(&[4i64]);
        assert_eq!(strides(&[&last, &t]), [1, 2, 6]);
        let nhwc = channels_last(&[2, 3, 4, 5]);
        assert_eq!(strides(&[&nhwc, &nhwc]), [60, 1, 15, 3]);
        let channel = Layout::contiguous(&[3i64, 1, 1]);
        assert_eq!(strides(&[&nhwc, &channel]), [60, 1, 15, 3]);
        let wide = last.expand(&[2, 3, 4]).unwrap();
        assert_eq!(strides(&[&wide]), [12, 4, 1]);
    }

    #[test]
    fn sizes_broadcast_or_fail() {
        assert_eq!(broadcast_sizes(&[&[3, 1], &[2, 1, 4], &[]]).unwrap()[..], [2, 3, 4]);
        assert_eq!(broadcast_sizes(&[&[0], &[1]]).unwrap()[..], [0]);
        let e = broadcast_sizes(&[&[2, 3], &[4]]).unwrap_err();
        assert!(e.0.contains("size of tensor a (3) must match the size of tensor b (4)"), "{e}");
    }

    #[test]
    fn dense_layouts_keep_their_order() {
        let t = Layout::contiguous(&[4i64, 6]).transpose(0, 1).unwrap();
        assert_eq!(dense_like(&t).strides[..], [1, 6]);
        let cut = t.slice(0, None, None, &2).unwrap();
        assert_eq!(dense_like(&cut).strides[..], [1, 3]);
        assert_eq!(in_format(MemoryFormat::Contiguous, &cut).unwrap().strides[..], [4, 1]);
        assert!(in_format(MemoryFormat::ChannelsLast, &cut).is_err());
    }
}

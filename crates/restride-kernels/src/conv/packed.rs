//! Filters that are packed once, in the panels that products read: terms × result channels of each group.

use crate::conv::frame::Planes;
use crate::conv::implicit::{Order, Weights};
use crate::conv::tiled::FEWEST;
use crate::conv::window::Window;
use crate::conv::{Number, Shape, planes};
use crate::matmul::packed::{columns, packed_len, write};
use crate::support::pack::with_compute;
use restride_tensor::{DType, View, ViewMut};

/// The order of terms in which a filter, O × C/groups × …, is worth packing: true for channel by channel of each tap. `None` if it is not:
/// one of few result channels a group would grow.
pub fn filter_order(dtype: DType, weight: &[i64], w: &Window, groups: usize) -> Option<bool> {
    let (o, cin) = (weight[0] as usize, weight[1] as usize);
    let s = Shape { batch: 1, groups, cin, cout: o / groups.max(1), w: *w };
    let channels = cin > 1 && s.cout >= FEWEST;
    let worth = matches!(dtype, DType::F32 | DType::F64) && channels && w.taps() > 1 && weight.iter().all(|&n| n > 0);
    worth.then(|| Order::of(&s) == Order::Taps)
}

/// Result channels of a packed filter's group, with those that fill up its panels.
pub fn filled_channels(dtype: DType, channels: usize) -> usize {
    columns(channels, dtype.size())
}

/// Packs a filter, O × C/groups × …: O filled up group by group, terms in order, channel by channel of each tap where `by_taps`.
///
/// # Errors
/// A result of another type or size, or not row-major.
pub fn pack_filter(weight: &View<'_>, groups: usize, by_taps: bool, out: &ViewMut<'_>) -> Result<(), String> {
    let (o, cin) = (weight.sizes()[0] as usize / groups, weight.sizes()[1] as usize);
    let spatial = &weight.sizes()[2..];
    let ones = vec![1; spatial.len()];
    let w = Window::new(spatial, spatial, &ones, &ones, &vec![0; spatial.len()], &ones);
    let k = cin * w.taps();
    let len = packed_len(weight.dtype(), k, o).filter(|n| n.checked_mul(groups) == Some(out.numel()));
    let (Some(len), true) = (len, out.dtype() == weight.dtype() && out.layout().is_contiguous()) else {
        return Err("a filter is packed into as many elements as its panels have".into());
    };
    if !matches!(weight.dtype(), DType::F32 | DType::F64) {
        return Err(format!("filters of {} are not packed", weight.dtype().torch_name()));
    }
    with_compute!(float weight.dtype(), T => {
        let (at, each) = planes(weight.ptr::<T>(), weight.layout(), true);
        let order = if by_taps { Order::Taps } else { Order::Channels };
        for g in 0..groups {
            let base = at.base.wrapping_offset((g * o) as isize * each);
            let of = Weights { at: Planes { base, ..at }, out: each, w: &w, cin, order };
            // SAFETY: the filters of a group, and the group's part of the result.
            unsafe { write::<T>(&of, (k, o), out.ptr::<T>().wrapping_add(g * len)) }
        }
    });
    Ok(())
}

/// Elements of a group of a packed filter.
pub(super) fn group_len<T: Number>(s: &Shape) -> usize {
    s.cin * s.w.taps() * columns(s.cout, size_of::<T>())
}

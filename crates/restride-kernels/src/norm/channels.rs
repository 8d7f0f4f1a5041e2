//! `x * scale + shift` with numbers of each channel, in the strides of operand and result.

use super::{Factor, Scaled};
use crate::norm::softmax::{rows_room, rowwise};
use crate::support::array;
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Compute, Stored, is_compute};
use crate::support::par::{self, EvenParts};
use crate::support::rows::{Rows, channels_last};
use restride_tensor::{Layout, PerDim, View, ViewMut};

/// Elements that are worth a thread.
pub(super) const SHARED: usize = 1 << 14;
/// Elements that stay in a cache while the channels of a block are visited one run after the other.
const BLOCK: usize = 4096;

/// Whether the channels of each position are side by side in operand and result.
fn is_by_position(x: Stored<'_>, out: Stored<'_>) -> bool {
    let beside = |l: &Layout| l.rank() > 1 && l.sizes[1] > 1 && l.strides[1] == 1;
    x.0 == out.0 && is_compute(x.0) && beside(x.1) && beside(out.1)
}

/// Bytes of scratch of [`scale_channels`].
pub(super) fn scale_room(x: Stored<'_>, out: Stored<'_>) -> usize {
    match (channels_last(x.1), channels_last(out.1)) {
        _ if is_by_position(x, out) => 0,
        (Some(lx), Some(lo)) if x.1.sizes[1] > 1 => rows_room((x.0, &lx), x.1.sizes[1] as usize, (out.0, &lo)),
        _ => rows_room(x, out.1.sizes[2..].iter().product::<i64>() as usize, out),
    }
}

/// `x * scale[channel] + shift[channel]` with channels in dimension 1. The result may share the memory of `x` index by index.
pub(super) fn scale_channels<T: Real + Compute, N: Factor<T>>(
    x: &View<'_>,
    scale: &[N],
    shift: &[N],
    out: &ViewMut<'_>,
    threads: usize,
) {
    if out.numel() == 0 {
        return;
    }
    if is_by_position((x.dtype(), x.layout()), (out.dtype(), out.layout())) {
        by_position(x, (scale, shift), out, threads);
        return;
    }
    // With the channels last in memory, rows run over them.
    match (channels_last(x.layout()), channels_last(out.layout())) {
        // A single channel is one row.
        (Some(lx), Some(lo)) if scale.len() > 1 => {
            // SAFETY: the same cells in another order.
            let (x, out) = unsafe { (x.with_layout(&lx), out.with_layout(&lo)) };
            rowwise::<T>(&x, &out, scale.len(), threads, &|_, row| {
                isa::run(Scaled::Each(row, scale, shift));
            });
        }
        _ => {
            let inner: usize = out.sizes()[2..].iter().map(|&n| n as usize).product();
            rowwise::<T>(x, out, inner, threads, &|i, row| {
                isa::run(Scaled::One(row, scale[i % scale.len()], shift[i % shift.len()]));
            });
        }
    }
}

/// As [`scale_channels`], of elements of the compute type whose channels are side by side.
fn by_position<T: Real + Compute, N: Factor<T>>(
    x: &View<'_>,
    numbers: (&[N], &[N]),
    out: &ViewMut<'_>,
    threads: usize,
) {
    debug_assert!(x.dtype() == T::DTYPE && out.dtype() == T::DTYPE, "elements are of the compute type");
    let channels = numbers.0.len();
    assert!(x.sizes() == out.sizes() && x.sizes()[1] as usize == channels, "numbers are those of the channels");
    let without = |l: &Layout| {
        let keep = |v: &[i64]| v.iter().enumerate().filter(|(d, _)| *d != 1).map(|(_, &n)| n).collect::<PerDim<i64>>();
        Layout::strided(&keep(&l.sizes), &keep(&l.strides), l.offset)
    };
    let (from, to) = (without(x.layout()), without(out.layout()));
    let rows = Rows::any_order(&[&to, &from]);
    let positions = from.numel() as usize;
    let threads = if positions * channels < SHARED { 1 } else { threads };
    let base = (out.base().cast::<T>(), x.base().cast::<T>());
    // SAFETY: each position is one thread's, and an operand in the memory of the result has the same index in each cell.
    let shared = unsafe { par::Across::new((base, rows)) };
    EvenParts::new(positions, threads).at_least(BLOCK / channels).each(&|part| {
        let ((to, from), rows) = shared.get();
        let mut at = 0;
        rows.for_each(|cell| {
            // Positions of this row that are of the part.
            let within = |position: usize| position.clamp(at, at + rows.len()) - at;
            let (lo, hi) = (within(part.start), within(part.end));
            if lo < hi {
                let steps = [rows.stride(0), rows.stride(1)];
                isa::run(PositionRows {
                    to: to.wrapping_offset(cell[0] + lo as isize * steps[0]),
                    from: from.wrapping_offset(cell[1] + lo as isize * steps[1]),
                    steps,
                    count: hi - lo,
                    numbers,
                });
            }
            at += rows.len();
        });
    });
}

/// Some positions: all channels of each are side by side. Made by [`by_position`], which has the right to these cells.
struct PositionRows<'a, T, N> {
    to: *mut T,
    from: *const T,
    /// From a position to the next, in the result and in the operand.
    steps: [isize; 2],
    count: usize,
    numbers: (&'a [N], &'a [N]),
}

impl<T: Real, N: Factor<T>> PositionRows<'_, T, N> {
    /// `C` channels from `c` on, of a range of positions.
    #[inline(always)]
    fn channels<const C: usize>(&self, c: usize, first: usize, last: usize) {
        let part = |of: &[N]| array::from_fn::<N, C>(|i| of[c + i]);
        let (scale, shift) = (part(self.numbers.0), part(self.numbers.1));
        for p in first as isize..last as isize {
            let from = self.from.wrapping_offset(p * self.steps[1]).wrapping_add(c).cast::<[T; C]>();
            let to = self.to.wrapping_offset(p * self.steps[0]).wrapping_add(c).cast::<[T; C]>();
            // SAFETY: `C` channels of a position, read before they are written.
            unsafe {
                let x = from.read_unaligned();
                to.write_unaligned(array::from_fn(|i| N::map(x[i], scale[i], shift[i])));
            }
        }
    }
}

impl<T: Real, N: Factor<T>> isa::Work for PositionRows<'_, T, N> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let channels = self.numbers.0.len();
        let some = (BLOCK / channels).max(1);
        let mut first = 0;
        while first < self.count {
            let last = self.count.min(first + some);
            let mut c = 0;
            while c + 16 <= channels {
                self.channels::<16>(c, first, last);
                c += 16;
            }
            while c + 4 <= channels {
                self.channels::<4>(c, first, last);
                c += 4;
            }
            while c < channels {
                self.channels::<1>(c, first, last);
                c += 1;
            }
            first = last;
        }
    }
}

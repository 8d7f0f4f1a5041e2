//! Group normalisation.

use super::beside::{ChannelsBeside, TogetherRuns, channels_beside, moments_room};
use super::channels::{scale_channels, scale_room};
use super::moments::{Moments, NormParts, moments};
use super::softmax::{rows_room, rowwise};
use super::{Affine, Scaled, numbers, put};
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Stored, pack, packed_room, with_compute};
use crate::support::par;
use crate::support::scratch::{self, Temp};
use restride_tensor::{Layout, View, ViewMut};

/// Positions from which on a channel's sums are computed alone.
const LONG_CHANNEL: usize = 256;

/// One sample.
fn sample_of(l: &Layout, sample: usize) -> Layout {
    let mut one = l.clone();
    one.sizes[0] = 1;
    one.offset += sample as i64 * l.strides[0];
    one
}

/// Group normalisation: `x` is N × C × …, with `groups` groups of channels. Mean and inverse standard deviation are
/// written where asked for.
pub fn group_norm(
    x: &View<'_>,
    groups: usize,
    affine_: Affine<'_>,
    eps: f64,
    out: &ViewMut<'_>,
    stats: (Option<&ViewMut<'_>>, Option<&ViewMut<'_>>),
    threads: usize,
) -> Result<(), String> {
    let channels = x.sizes()[1] as usize;
    let inner: usize = x.sizes()[2..].iter().map(|&n| n as usize).product();
    let len = channels / groups * inner;
    // The channels of a group are summed one by one where they are not short.
    let run = if inner < LONG_CHANNEL { len } else { inner };
    with_compute!(float out.dtype(), T => {
        let rows = x.sizes()[0] as usize * groups;
        let mut found = Temp::filled(rows, Moments::default());
        let (w, b) = (numbers(affine_.weight.as_ref()), numbers(affine_.bias.as_ref()));
        let factors = |m: &Moments, c: usize| {
            let (scale, shift) = m.factors((len, eps), (w.as_deref(), b.as_deref()), c);
            (T::of(scale), T::of(shift))
        };
        let parts = NormParts { run, part: len, step: run, runs: len / run.max(1), row: inner, channels };
        if let Some(beside) = channels_beside(x.layout()) {
            if run == inner {
                // SAFETY: the same cells in another order.
                let data = pack::<T>(&unsafe { x.with_layout(&beside) });
                let of = ChannelsBeside { data: &data, positions: inner, channels };
                of.moments(TogetherRuns::Group(channels / groups), &mut found, threads);
            } else {
                let data = pack::<T>(x);
                par::pieces(threads, &mut found, 1, &|i, m| m[0] = moments(std::iter::once(&data[i * len..][..len]), len));
            }
            let mut both = [(); 2].map(|()| Temp::filled(channels, T::default()));
            for (sample, found) in found.chunks(groups).enumerate() {
                for c in 0..channels {
                    (both[0][c], both[1][c]) = factors(&found[c / (channels / groups)], c);
                }
                let (from, to) = (sample_of(x.layout(), sample), sample_of(out.layout(), sample));
                // SAFETY: a part of the cells.
                let (x, out) = unsafe { (x.with_layout(&from), out.with_layout(&to)) };
                scale_channels::<T, T>(&x, &both[0], &both[1], &out, threads);
            }
        } else if !parts.normalise::<T, T>(x, out, &mut found, &factors, threads) {
            {
                let data = pack::<T>(x);
                par::pieces(threads, &mut found, 1, &|i, m| m[0] = moments(data[i * len..][..len].chunks(run.max(1)), len));
            }
            rowwise::<T>(x, out, inner, threads, &|i, row| {
                let (scale, shift) = factors(&found[i / (channels / groups)], i % channels);
                isa::run(Scaled::One(row, scale, shift));
            });
        }
        put(stats.0, found.iter().map(|m| m.mean));
        put(stats.1, found.iter().map(|m| m.rstd(len, eps)));
    });
    Ok(())
}

/// Scratch bytes of [`group_norm`].
pub fn group_norm_room(x: Stored<'_>, groups: usize, out: Stored<'_>) -> usize {
    let (rows, channels) = (x.1.sizes[0] as usize * groups, x.1.sizes[1] as usize);
    let inner = x.1.sizes[2..].iter().product::<i64>() as usize;
    // Weight, bias and written statistics, besides the moments.
    let numbers = 4 * scratch::room::<f64>(channels) + scratch::room::<f64>(rows);
    let scaled =
        if x.1.numel() == 0 { 0 } else { scale_room((x.0, &sample_of(x.1, 0)), (out.0, &sample_of(out.1, 0))) };
    let moments = if inner < LONG_CHANNEL { packed_room(x) } else { moments_room(x) };
    scratch::room::<Moments>(rows) + numbers + moments.max(rows_room(x, inner, out)) + scaled
}

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
        let beside = channels_beside(x.layout());
        if beside.is_some() || !parts.normalise::<T, T>(x, out, &mut found, &factors, threads) {
            match &beside {
                Some(beside) if inner >= LONG_CHANNEL => {
                    // SAFETY: the same cells in another order.
                    let data = pack::<T>(&unsafe { x.with_layout(beside) });
                    let of = ChannelsBeside { data: &data, positions: inner, channels };
                    of.moments(TogetherRuns::Group(channels / groups), &mut found, threads);
                }
                _ => {
                    let data = pack::<T>(x);
                    let runs = |part: usize| data[part * len..][..len].chunks(run.max(1));
                    par::pieces(threads, &mut found, 1, &|part, m| m[0] = moments(runs(part), len));
                }
            }
            let factors = |sample: usize, c: usize| factors(&found[sample * groups + c / (channels / groups)], c);
            if beside.is_some() {
                let [mut scale, mut shift] = [(); 2].map(|()| Temp::filled(channels, T::default()));
                for sample in 0..x.sizes()[0] as usize {
                    for (c, (scale, shift)) in scale.iter_mut().zip(shift.iter_mut()).enumerate() {
                        (*scale, *shift) = factors(sample, c);
                    }
                    let (from, to) = (sample_of(x.layout(), sample), sample_of(out.layout(), sample));
                    // SAFETY: a part of the cells.
                    let (x, out) = unsafe { (x.with_layout(&from), out.with_layout(&to)) };
                    scale_channels::<T, T>(&x, &scale, &shift, &out, threads);
                }
            } else {
                rowwise::<T>(x, out, inner, threads, &|i, row| {
                    let (scale, shift) = factors(i / channels, i % channels);
                    isa::run(Scaled::One(row, scale, shift));
                });
            }
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

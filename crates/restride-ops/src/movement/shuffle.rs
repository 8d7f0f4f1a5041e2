//! Shuffles: blocks of space to channels and back, and channels in another order.

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Arg, Emit, MemoryFormat, OpDef, Val};
use smallvec::smallvec;

fn clone(e: &mut dyn Emit, v: Val, format: MemoryFormat) -> Result<Val> {
    emit!(e, "aten.clone.default", v, Arg::MemoryFormat(format))
}

/// Copies `v` in row-major order, gives it other sizes and the memory format that `like` suggests.
fn finish(e: &mut dyn Emit, v: Val, out: Vec<i64>, like: Val) -> Vals {
    let v = clone(e, v, MemoryFormat::Contiguous)?;
    let rank = out.len();
    let v = emit!(e, "aten.view.default", v, out)?;
    let last = suggests_channels_last(&e.meta(like).layout) && rank == 4;
    Ok(smallvec![if last { clone(e, v, MemoryFormat::ChannelsLast)? } else { v }])
}

/// Views `v` under other sizes, or copies it if strides cannot express them.
fn reshape(e: &mut dyn Emit, v: Val, sizes: Vec<i64>) -> Result<Val> {
    emit!(e, "aten.reshape.default", v, sizes)
}

fn pixel_shuffle(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, r) = (*a.tensor(0)?, a.int(1)?);
    let s = sizes(e, x);
    ensure!(
        s.len() >= 3,
        "pixel_shuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
        s.len()
    );
    ensure!(r > 0 && r < 1 << 30, "pixel_shuffle expects a positive upscale_factor, but got {r}");
    let lead = s.len() - 3;
    let (c, h, w) = (s[lead], s[lead + 1], s[lead + 2]);
    ensure!(
        c % (r * r) == 0,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)={c} is not divisible by {}",
        r * r
    );
    let mut split = s[..lead].to_vec();
    split.extend([c / (r * r), r, r, h, w]);
    let mut out = s[..lead].to_vec();
    out.extend([c / (r * r), h * r, w * r]);
    let v = reshape(e, x, split)?;
    let l = lead as i64;
    let perm: Vec<i64> = (0..l).chain([l, l + 3, l + 1, l + 4, l + 2]).collect();
    let v = emit!(e, "aten.permute.default", v, perm)?;
    finish(e, v, out, x)
}

fn pixel_unshuffle(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, r) = (*a.tensor(0)?, a.int(1)?);
    let s = sizes(e, x);
    ensure!(
        s.len() >= 3,
        "pixel_unshuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
        s.len()
    );
    ensure!(r > 0 && r < 1 << 30, "pixel_unshuffle expects a positive downscale_factor, but got {r}");
    let lead = s.len() - 3;
    let (c, h, w) = (s[lead], s[lead + 1], s[lead + 2]);
    for (n, what) in [(h, "height"), (w, "width")] {
        ensure!(
            n % r == 0,
            "pixel_unshuffle expects {what} to be divisible by downscale_factor, but {n} is not divisible by {r}"
        );
    }
    let mut split = s[..lead].to_vec();
    split.extend([c, h / r, r, w / r, r]);
    let mut out = s[..lead].to_vec();
    out.extend([c * r * r, h / r, w / r]);
    let v = reshape(e, x, split)?;
    let l = lead as i64;
    let perm: Vec<i64> = (0..l).chain([l, l + 2, l + 4, l + 1, l + 3]).collect();
    let v = emit!(e, "aten.permute.default", v, perm)?;
    finish(e, v, out, x)
}

fn channel_shuffle(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, groups) = (*a.tensor(0)?, a.int(1)?);
    let s = sizes(e, x);
    ensure!(s.len() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes {s:?}");
    ensure!(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:{groups}");
    ensure!(
        s[1] % groups == 0,
        "Number of channels must be divisible by groups. Got {} channels and {groups} groups.",
        s[1]
    );
    let mut split = vec![s[0], groups, s[1] / groups];
    split.extend(&s[2..]);
    let v = reshape(e, x, split)?;
    let perm: Vec<i64> = [0, 2, 1].into_iter().chain(3..s.len() as i64 + 1).collect();
    let v = emit!(e, "aten.permute.default", v, perm)?;
    finish(e, v, s, x)
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(pixel_shuffle, pixel_samples(&[2, 8, 3, 4]), "pixel_shuffle").exactly(),
    composite!(pixel_unshuffle, pixel_samples(&[2, 3, 4, 6]), "pixel_unshuffle").exactly(),
    composite!(channel_shuffle, channel_samples(), "channel_shuffle").exactly(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn pixel_samples(shape: &[i64]) -> Samples {
        let d = DType::F32;
        let mut out: Samples = forms(d, shape, 1).into_iter().map(|x| sample![x, 2]).collect();
        out.extend([
            sample![nhwc(d, shape, 1), 2],
            sample![tensor(d, &shape[1..], 1), 2],
            sample![tensor(d, shape, 1), 1],
            sample![tensor(d, shape, 1), 3],
            sample![tensor(d, shape, 1), 0],
            sample![tensor(d, &shape[2..], 1), 2],
            sample![tensor(DType::I64, shape, 1), 2],
            sample![tensor(DType::BF16, shape, 1), 2],
        ]);
        out
    }

    pub(crate) fn channel_samples() -> Samples {
        let d = DType::F32;
        let shape = &[2, 6, 3, 4];
        let mut out: Samples = forms(d, shape, 1).into_iter().map(|x| sample![x, 3]).collect();
        out.extend([
            sample![nhwc(d, shape, 1), 2],
            sample![tensor(d, &[2, 6, 3], 1), 2],
            sample![tensor(d, shape, 1), 4],
            sample![tensor(d, shape, 1), 1],
        ]);
        out
    }
}

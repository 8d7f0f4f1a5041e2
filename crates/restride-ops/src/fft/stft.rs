//! Short-time Fourier transforms and their inverse.

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Val};
use smallvec::smallvec;

/// Frame lengths that both directions use.
struct Frames {
    n_fft: i64,
    hop: i64,
    win: i64,
}

impl Frames {
    fn read(a: &ValArgs<'_>) -> Result<Frames> {
        let n_fft = a.int(1)?;
        ensure!((1..1 << 40).contains(&n_fft), "expected 0 < n_fft, but got {n_fft}");
        let f = Frames { n_fft, hop: a.opt_int(2)?.unwrap_or(n_fft / 4), win: a.opt_int(3)?.unwrap_or(n_fft) };
        ensure!((1..1 << 40).contains(&f.hop), "expected hop_length > 0, but got hop_length={}", f.hop);
        ensure!(f.win > 0 && f.win <= n_fft, "expected 0 < win_length <= n_fft, but got win_length={}", f.win);
        Ok(f)
    }
    /// The window centred in a frame; `None` if it is all ones.
    fn window(&self, e: &mut dyn Emit, given: Option<Val>, dtype: DType) -> Result<Option<Val>> {
        if let Some(w) = given {
            let s = sizes(e, w);
            ensure!(
                s == [self.win],
                "expected a 1D window tensor of size equal to win_length={}, but got window with size {s:?}",
                self.win
            );
        }
        if self.win == self.n_fft {
            return Ok(given);
        }
        let w = match given {
            Some(w) => w,
            None => emit!(e, "aten.ones.default", [self.win], dtype)?,
        };
        let left = (self.n_fft - self.win) / 2;
        emit!(e, "aten.constant_pad_nd.default", w, [left, self.n_fft - self.win - left], 0).map(Some)
    }
}

/// Options of `stft` beside frames and window.
struct StftOptions {
    pad: Option<String>,
    normalized: bool,
    onesided: Option<bool>,
    return_complex: Option<bool>,
    align: Option<bool>,
}

fn stft_with(e: &mut dyn Emit, a: &ValArgs<'_>, how: &StftOptions) -> Vals {
    let (x, window) = (*a.tensor(0)?, a.opt_tensor(4)?.copied());
    let t = e.meta(x);
    ensure!(t.dtype.is_float() || t.dtype.is_complex(), "expected a tensor of floating point or complex values");
    ensure!(t.rank() == 1 || t.rank() == 2, "expected a 1D or 2D tensor");
    ensure!(how.align != Some(true), "stft with align_to_window is not supported");
    let complex_window = window.is_some_and(|w| e.meta(w).dtype.is_complex());
    let return_complex = match how.return_complex {
        Some(c) => c,
        None => {
            ensure!(
                t.dtype.is_complex() || complex_window,
                "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a future PyTorch release."
            );
            true
        }
    };
    let f = Frames::read(a)?;
    let mut v = if t.rank() == 1 { emit!(e, "aten.unsqueeze.default", x, 0)? } else { x };
    if let Some(mode) = &how.pad {
        let pad = f.n_fft / 2;
        let v3 = emit!(e, "aten.unsqueeze.default", v, 0)?;
        let padded = emit!(e, "aten.pad.default", v3, [pad, pad], &**mode)?;
        v = emit!(e, "aten.squeeze.dim", padded, 0)?;
    }
    let len = sizes(e, v)[1];
    ensure!(f.n_fft <= len, "expected 0 < n_fft < {len}, but got n_fft={}", f.n_fft);
    let dtype = e.meta(v).dtype;
    let mut v = emit!(e, "aten.unfold.default", v, 1, f.n_fft, f.hop)?;
    if let Some(w) = f.window(e, window, dtype)? {
        v = emit!(e, "aten.mul.Tensor", v, w)?;
    }
    let complex = e.meta(v).dtype.is_complex();
    let onesided = how.onesided.unwrap_or(!complex);
    let norm = how.normalized as i64;
    let v = if complex {
        ensure!(!onesided, "Cannot have onesided output if window or input is complex");
        emit!(e, "aten._fft_c2c.default", v, [2], norm, true)?
    } else {
        emit!(e, "aten._fft_r2c.default", v, [2], norm, onesided)?
    };
    let mut v = emit!(e, "aten.transpose.int", v, 1, 2)?;
    if t.rank() == 1 {
        v = emit!(e, "aten.squeeze.dim", v, 0)?;
    }
    Ok(smallvec![if return_complex { v } else { emit!(e, "aten.view_as_real.default", v)? }])
}

fn stft(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let how = StftOptions {
        pad: None,
        normalized: a.bool(5)?,
        onesided: a.opt_bool(6)?,
        return_complex: a.opt_bool(7)?,
        align: a.opt_bool(8)?,
    };
    stft_with(e, a, &how)
}

fn stft_center(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let center = a.bool(5)?;
    let how = StftOptions {
        pad: if center { Some(a.str(6)?.to_string()) } else { None },
        normalized: a.bool(7)?,
        onesided: a.opt_bool(8)?,
        return_complex: a.opt_bool(9)?,
        align: a.opt_bool(10)?,
    };
    stft_with(e, a, &how)
}

/// `(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)`
fn istft(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, window) = (*a.tensor(0)?, a.opt_tensor(4)?.copied());
    let (center, normalized, length, return_complex) = (a.bool(5)?, a.bool(6)?, a.opt_int(8)?, a.bool(9)?);
    let t = e.meta(x);
    ensure!(
        t.dtype.is_complex(),
        "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
    );
    ensure!(t.rank() == 2 || t.rank() == 3, "expected a tensor with 2 or 3 dimensions, but got {}", t.rank());
    ensure!(t.layout.numel() > 0, "input tensor cannot be empty");
    let f = Frames::read(a)?;
    let (fft_size, frames) = (t.sizes()[t.rank() - 2], t.sizes()[t.rank() - 1]);
    let onesided = a.opt_bool(7)?.unwrap_or(fft_size != f.n_fft);
    let want = if onesided { f.n_fft / 2 + 1 } else { f.n_fft };
    ensure!(
        fft_size == want,
        "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when onesided=True or n_fft otherwise, but got {fft_size}"
    );
    ensure!(f.hop <= f.win, "expected 0 < hop_length <= win_length");
    let all = f.n_fft + f.hop * (frames - 1);
    let dtype = t.dtype.real();
    let w = match f.window(e, window, dtype)? {
        Some(w) => w,
        None => emit!(e, "aten.ones.default", [f.n_fft], dtype)?,
    };
    let mut v = if t.rank() == 2 { emit!(e, "aten.unsqueeze.default", x, 0)? } else { x };
    v = emit!(e, "aten.transpose.int", v, 1, 2)?;
    let norm = if normalized { 1 } else { 2 };
    v = if return_complex {
        ensure!(!onesided, "Cannot have onesided output if window or input is complex");
        emit!(e, "aten._fft_c2c.default", v, [2], norm, false)?
    } else {
        ensure!(!e.meta(w).dtype.is_complex(), "Complex windows are incompatible with return_complex=False");
        if !onesided {
            v = emit!(e, "aten.slice.Tensor", v, 2, 0, f.n_fft / 2 + 1, 1)?;
        }
        emit!(e, "aten._fft_c2r.default", v, [2], norm, f.n_fft)?
    };
    let row = emit!(e, "aten.view.default", w, [1, 1, f.n_fft])?;
    let v = emit!(e, "aten.mul.Tensor", v, row)?;
    let batch = sizes(e, v)[0];
    let mut y = emit!(e, "aten.unfold_backward.default", v, [batch, all], 1, f.n_fft, f.hop)?;
    let square = emit!(e, "aten.mul.Tensor", w, w)?;
    let square = emit!(e, "aten.expand.default", square, [1, frames, f.n_fft])?;
    let mut envelope = emit!(e, "aten.unfold_backward.default", square, [1, all], 1, f.n_fft, f.hop)?;
    let start = if center { f.n_fft / 2 } else { 0 };
    let end = match length {
        Some(n) => start + n,
        None if center => all - f.n_fft / 2,
        None => all,
    };
    ensure!(end > start, "istft: the result would be empty");
    y = emit!(e, "aten.slice.Tensor", y, 1, start, end.min(all), 1)?;
    envelope = emit!(e, "aten.slice.Tensor", envelope, 1, start, end.min(all), 1)?;
    let least = emit!(e, "aten.abs.default", envelope)?;
    let least = emit!(e, "aten.min.default", least)?;
    let fine = emit!(e, "aten.ge.Scalar", least, 1e-11)?;
    emit_all!(e, "aten._assert_async.msg", fine, "window overlap add min: 1")?;
    y = emit!(e, "aten.div.Tensor", y, envelope)?;
    if t.rank() == 2 {
        y = emit!(e, "aten.squeeze.dim", y, 0)?;
    }
    if end > all {
        y = emit!(e, "aten.constant_pad_nd.default", y, [0, end - all], 0)?;
    }
    Ok(smallvec![y])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(stft, stft_samples(false), "stft"),
    composite!(stft_center, stft_samples(true), "stft.center"),
    composite!(istft, istft_samples(), "istft").failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn window(n: i64) -> RawTensor {
        in_range(DType::F32, Layout::contiguous(&[n]), 9, 0.2, 1.0)
    }

    pub(crate) fn stft_samples(center: bool) -> Samples {
        let d = DType::F32;
        let arg = |b: bool| crate::support::samples::IntoArg::arg(b);
        let none = || restride_ir::Arg::None;
        // Each call up to its window, then the remaining arguments.
        let calls: Vec<(restride_ir::Sample, [restride_ir::SampleArg; 3])> = vec![
            (sample![tensor(d, &[2, 40], 1), 16, 4, 16, window(16)], [arg(false), none(), arg(true)]),
            (sample![strided(d, &[40], 1), 16, (), 10, window(10)], [arg(true), arg(false), arg(true)]),
            (sample![tensor(d, &[2, 40], 1), 9, 5, (), ()], [arg(false), arg(true), arg(false)]),
            (sample![tensor(DType::F64, &[40], 1), 8, (), 6, ()], [arg(false), none(), arg(true)]),
            (sample![tensor(DType::C64, &[40], 1), 8, (), (), ()], [arg(false), none(), none()]),
            (sample![tensor(d, &[40], 1), 82, (), (), ()], [arg(false), none(), arg(true)]),
            (sample![tensor(d, &[40], 1), 8, (), (), ()], [arg(false), none(), none()]),
        ];
        let full = |(mut s, rest): (restride_ir::Sample, [restride_ir::SampleArg; 3])| {
            if center {
                s.args.extend([arg(true), crate::support::samples::IntoArg::arg("reflect")]);
            }
            s.args.extend(rest);
            s
        };
        calls.into_iter().map(full).collect()
    }

    pub(crate) fn istft_samples() -> Samples {
        let c = DType::C64;
        vec![
            sample![tensor(c, &[2, 9, 6], 1), 16, 4, 16, window(16)],
            sample![tensor(c, &[9, 6], 1), 16, (), (), (), true, true, true, 30],
            sample![tensor(c, &[9, 6], 1), 16, (), 12, window(12), true, false, (), 18],
            sample![tensor(c, &[16, 6], 1), 16, 4, (), (), false, false, (), (), true],
            sample![tensor(c, &[16, 6], 1), 16, 4, (), ()],
            sample![tensor(c, &[9, 6], 1), 16, 4, 16, RawTensor::zeros(DType::F32, Layout::contiguous(&[16]))],
            sample![tensor(c, &[8, 6], 1), 16, 4],
            sample![tensor(DType::C128, &[2, 9, 6], 1), 16],
        ]
    }
}

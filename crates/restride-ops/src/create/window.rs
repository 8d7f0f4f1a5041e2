//! SignalWindow functions of signal processing.

use crate::create::range::made;
use crate::create::{put, row_major};
use crate::pointwise::{Metas, Result};
use crate::support::ensure;
use restride_ir::{Args, Call, Meta, OpDef, Scalar};
use restride_kernels::pointwise::bessel_i0;
use restride_kernels::support::convert::scatter;
use restride_kernels::support::scratch::Temp;
use restride_tensor::DType::*;

/// The window functions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignalWindow {
    Bartlett,
    Blackman,
    /// The cosine window with parameters `alpha` and `beta`.
    Cosine,
    /// A ratio of Bessel functions with parameter `beta`.
    Kaiser,
}

/// Shape rule: length, periodic flag, and the element type at a position.
fn infer_window(a: &Args<'_, Meta>, dtype_at: usize) -> Metas {
    let n = a.int(0)?;
    ensure!(n >= 0, "window_length must be non-negative, got {n}");
    let dtype = a.opt_dtype(dtype_at)?.unwrap_or(F32);
    ensure!(dtype.is_float(), "a window's elements are floating point numbers, not {}", dtype.torch_name());
    row_major(dtype, &[n])
}
fn run_window(c: &Call<'_>, window: SignalWindow, periodic: bool, alpha: f64, beta: f64) -> Result<()> {
    let out = &c.outs[0];
    let n = out.numel();
    if n == 1 {
        return put(Scalar::Int(1), out);
    }
    // A periodic window is one element longer, without its last element.
    let last = (if periodic { n } else { n.saturating_sub(1) }) as f64;
    let turn = |i: f64| 2.0 * std::f64::consts::PI * i / last;
    let one = |i: f64| match window {
        SignalWindow::Bartlett => 1.0 - (2.0 * i / last - 1.0).abs(),
        SignalWindow::Blackman => 0.42 - 0.5 * turn(i).cos() + 0.08 * (2.0 * turn(i)).cos(),
        SignalWindow::Cosine => alpha - beta * turn(i).cos(),
        SignalWindow::Kaiser => {
            bessel_i0((1.0 - (2.0 * i / last - 1.0).powi(2)).max(0.0).sqrt() * beta) / bessel_i0(beta)
        }
    };
    scatter(&Temp::gather(n, (0..n).map(|i| one(i as f64))), out);
    Ok(())
}
/// Declares a window that is always periodic, and its overload with a flag.
macro_rules! window {
    ($name:literal, $flagged:literal, $window:expr, $alpha:literal, $beta:literal) => {
        [
            made(
                $name,
                |a| infer_window(a, 1),
                |c| run_window(c, $window, true, $alpha, $beta),
                samples!(|| s_window(&[])),
            ),
            made(
                $flagged,
                |a| infer_window(a, 2),
                |c| run_window(c, $window, c.args.bool(1)?, $alpha, $beta),
                samples!(|| s_window_flagged(&[])),
            ),
        ]
    };
}

pub(crate) static PLAIN: [[OpDef; 2]; 4] = [
    window!("hann_window", "hann_window.periodic", SignalWindow::Cosine, 0.5, 0.5),
    window!("hamming_window", "hamming_window.periodic", SignalWindow::Cosine, 0.54, 0.46),
    window!("bartlett_window", "bartlett_window.periodic", SignalWindow::Bartlett, 0.0, 0.0),
    window!("blackman_window", "blackman_window.periodic", SignalWindow::Blackman, 0.0, 0.0),
];
pub(crate) static OPS: &[OpDef] = table![
    made(
        "hamming_window.periodic_alpha",
        |a| infer_window(a, 3),
        |c| run_window(c, SignalWindow::Cosine, c.args.bool(1)?, c.args.float(2)?, 0.46),
        samples!(|| s_window_flagged(&[0.6])),
    ),
    made(
        "hamming_window.periodic_alpha_beta",
        |a| infer_window(a, 4),
        |c| run_window(c, SignalWindow::Cosine, c.args.bool(1)?, c.args.float(2)?, c.args.float(3)?),
        samples!(|| s_window_flagged(&[0.6, 0.3])),
    ),
    made(
        "kaiser_window",
        |a| infer_window(a, 1),
        |c| run_window(c, SignalWindow::Kaiser, true, 0.0, 12.0),
        samples!(|| s_window(&[])),
    ),
    made(
        "kaiser_window.periodic",
        |a| infer_window(a, 2),
        |c| run_window(c, SignalWindow::Kaiser, c.args.bool(1)?, 0.0, 12.0),
        samples!(|| s_window(&[Arg::Scalar(Scalar::Bool(false))])),
    ),
    made(
        "kaiser_window.beta",
        |a| infer_window(a, 3),
        |c| run_window(c, SignalWindow::Kaiser, c.args.bool(1)?, 0.0, c.args.float(2)?),
        samples!(|| s_window(&[Arg::Scalar(Scalar::Bool(true)), Arg::Scalar(Scalar::Float(3.0))])),
    ),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    use crate::create::range::samples::typed;
    pub(super) use crate::support::samples::*;

    pub(crate) fn s_window(extra: &[Arg<restride_tensor::RawTensor, Scalar>]) -> Vec<Sample> {
        let mut out = Vec::new();
        for n in [0, 1, 2, 5, 16, -1] {
            let mut s = sample![n];
            s.args.extend(extra.iter().cloned());
            out.push(s.clone());
            out.extend([F64, I64].map(|d| typed(s.clone(), d)));
        }
        out
    }

    pub(crate) fn s_window_flagged(more: &[f64]) -> Vec<Sample> {
        let flagged = |flag: bool| {
            let flag = std::iter::once(Arg::Scalar(Scalar::Bool(flag)));
            s_window(&flag.chain(more.iter().map(|x| Arg::Scalar(Scalar::Float(*x)))).collect::<Vec<_>>())
        };
        let mut out = flagged(true);
        out.extend(flagged(false));
        out
    }
}

//! Gradients of arithmetic, unary functions, and selections.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, op, rule};
use restride_ir::Grad;
use std::f64::consts::{LN_2, LN_10, PI};

/// `add` and its like: the second operand is multiplied by `alpha`.
fn added<'c>(c: &'c Cx<'c>, sign: f64) {
    c.give(0, || c.grad());
    c.give(1, || {
        let g = c.grad().times(&c.num(2));
        if sign < 0.0 { -g } else { g }
    });
}

fn rsub<'c>(c: &'c Cx<'c>) {
    c.give(0, || -c.grad().times(&c.num(2)));
    c.give(1, || c.grad());
}

fn mul<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad() * c.arg(1).conj());
    c.give(1, || c.grad() * c.arg(0).conj());
}

/// The plain number at argument `i`, conjugated if it is complex.
fn number(c: &Cx<'_>, i: usize) -> restride_ir::Arg<restride_ir::Val, restride_ir::Expr> {
    match c.raw(i) {
        restride_ir::Arg::Complex(re, im) => restride_ir::Arg::Complex(re, -im),
        other => other,
    }
}

fn div<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad() / c.arg(1).conj());
    c.give(1, || -c.grad() * (c.arg(0) / c.arg(1) / c.arg(1)).conj());
}

/// `div` with a rounding mode: a rounded result has gradient zero.
fn div_mode<'c>(c: &'c Cx<'c>) {
    if c.is_none(2) {
        div(c);
    } else {
        c.zero(0);
        c.zero(1);
    }
}

fn div_scalar_mode<'c>(c: &'c Cx<'c>) {
    if c.is_none(2) {
        c.set(0, op!(c, "aten.div.Scalar", c.grad(), number(c, 1)));
    } else {
        c.zero(0);
    }
}

/// `remainder` and `fmod`: slope 1 for the dividend, minus the rounded quotient for the divisor.
fn remainder<'c>(c: &'c Cx<'c>, mode: &str) {
    c.give(0, || c.grad());
    c.give(1, || -c.grad() * op!(c, "aten.div.Tensor_mode", c.arg(0), c.arg(1), mode));
}

fn pow_number<'c>(c: &'c Cx<'c>) {
    let e = c.num(1);
    match e.constant().map(|s| s.as_f64()) {
        Some(0.0) => c.zero(0),
        Some(1.0) => c.set(0, c.grad()),
        Some(2.0) => c.set(0, c.grad() * (c.arg(0) * 2.0).conj()),
        _ => {
            use restride_ir::Dim;
            let less = match e.constant() {
                Some(s) if matches!(s, restride_ir::Scalar::Float(_)) => restride_ir::Expr::float(s.as_f64() - 1.0),
                _ => e.minus(&restride_ir::Expr::Int(1)),
            };
            c.set(0, c.grad() * c.arg(0).pow(less).times(&e).conj());
        }
    }
}

fn pow<'c>(c: &'c Cx<'c>) {
    let (x, e) = (c.arg(0), c.arg(1));
    c.give(0, || {
        let d = e * op!(c, "aten.pow.Tensor_Tensor", x, e - 1.0);
        (c.grad() * d.conj()).except(e.is("eq", 0))
    });
    c.give(1, || {
        let d = c.result() * x.log();
        let flat = if e.dtype().is_complex() {
            x.is("eq", 0)
        } else {
            op!(c, "aten.logical_and.default", x.is("eq", 0), e.is("ge", 0))
        };
        c.grad() * d.conj().except(flat)
    });
}

/// Gradient of a plain number raised to a tensor.
fn number_pow<'c>(c: &'c Cx<'c>) {
    let base = c.float(0);
    // Base 0 has slope 0; at negative exponents the slope is undefined.
    if base == 0.0 {
        c.zero(1);
    } else {
        c.set(1, c.grad() * (c.result() * base.ln()).conj());
    }
}

fn atan2<'c>(c: &'c Cx<'c>) {
    let (y, x) = (c.arg(0), c.arg(1));
    let norm = y.square() + x.square();
    let inverse = norm.reciprocal().except(norm.is("eq", 0));
    c.give(0, || c.grad() * x * inverse);
    c.give(1, || c.grad() * -y * inverse);
}

fn copysign<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    c.zero(1);
    c.give(0, || c.grad() * (c.result() / x).except(x.is("eq", 0)));
}

/// `log(exp(a) + exp(b))`, and its base-2 form.
fn logaddexp<'c>(c: &'c Cx<'c>, scale: f64) {
    let d = (c.arg(0) - c.arg(1)) * scale;
    c.give(0, || c.grad() * d.sigmoid().conj());
    c.give(1, || c.grad() * (-d).sigmoid().conj());
}

/// `x * log(y)`, which is 0 where x is 0.
fn xlogy<'c>(c: &'c Cx<'c>) {
    let (x, y) = (c.arg(0), c.arg(1));
    c.give(0, || {
        let out = op!(c, "aten.logical_and.default", x.is("eq", 0), y.is("le", 0));
        c.grad() * y.log().except(out)
    });
    c.give(1, || c.grad() * x / y);
}

fn xlog1py<'c>(c: &'c Cx<'c>) {
    let (x, y) = (c.arg(0), c.arg(1));
    c.give(0, || {
        let out = op!(c, "aten.logical_and.default", x.is("eq", 0), y.is("le", -1));
        c.grad() * y.unary("aten.log1p.default").except(out)
    });
    c.give(1, || c.grad() * x / (y + 1.0));
}

/// `maximum` and `minimum`: equal elements share the gradient.
fn extreme<'c>(c: &'c Cx<'c>, loses: &str) {
    let (x, y) = (c.arg(0), c.arg(1));
    let half = || op!(c, "aten.where.self", x.than("eq", y), c.grad() * 0.5, c.grad());
    c.give(0, || half().except(x.than(loses, y)));
    c.give(1, || half().except(y.than(loses, x)));
}

/// `fmax` and `fmin`: the first operand wins if both are equal or the second is NaN.
fn fextreme<'c>(c: &'c Cx<'c>, wins: &str) {
    let (x, y) = (c.arg(0), c.arg(1));
    let first = op!(c, "aten.logical_or.default", x.than(wins, y), y.than("ne", y));
    c.give(0, || c.grad().only(first));
    c.give(1, || c.grad().except(first));
}

fn lerp<'c>(c: &'c Cx<'c>, weight: Option<T<'c>>) {
    match weight {
        Some(w) => {
            c.give(0, || c.grad() * (1.0 - w).conj());
            c.give(1, || c.grad() * w.conj());
            c.give(2, || c.grad() * (c.arg(1) - c.arg(0)).conj());
        }
        None => {
            let w = c.float(2);
            c.give(0, || c.grad() * (1.0 - w));
            c.give(1, || c.grad() * w);
        }
    }
}

fn addcmul<'c>(c: &'c Cx<'c>) {
    let value = c.num(3);
    c.give(0, || c.grad());
    c.give(1, || c.grad() * c.arg(2).times(&value).conj());
    c.give(2, || c.grad() * c.arg(1).times(&value).conj());
}

fn addcdiv<'c>(c: &'c Cx<'c>) {
    let value = c.num(3);
    c.give(0, || c.grad());
    c.give(1, || (c.grad() / c.arg(2).conj()).times(&value));
    c.give(2, || -c.grad() * (c.arg(1) / c.arg(2).square()).times(&value).conj());
}

fn ldexp<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad() * op!(c, "aten.pow.Scalar", 2.0, c.arg(1)));
    c.give(1, || c.grad() * c.result() * LN_2);
}

/// `clamp` with plain numbers as bounds.
fn clamp<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let low = (!c.is_none(1)).then(|| op!(c, "aten.ge.Scalar", x, c.raw(1)));
    let high = (!c.is_none(2)).then(|| op!(c, "aten.le.Scalar", x, c.raw(2)));
    c.set(0, within(c, low, high));
}

/// The gradient where both conditions hold, zero elsewhere.
fn within<'c>(c: &'c Cx<'c>, low: Option<T<'c>>, high: Option<T<'c>>) -> T<'c> {
    match (low, high) {
        (Some(a), Some(b)) => c.grad().only(op!(c, "aten.logical_and.default", a, b)),
        (Some(a), None) | (None, Some(a)) => c.grad().only(a),
        (None, None) => c.grad(),
    }
}

fn clamp_tensor<'c>(c: &'c Cx<'c>) {
    let (x, low, high) = (c.arg(0), c.opt(1), c.opt(2));
    c.give(0, || within(c, low.map(|l| x.than("ge", l)), high.map(|h| x.than("le", h))));
    if let Some(low) = low {
        c.give(1, || {
            let below = x.than("lt", low);
            let takes = high.map_or(below, |h| op!(c, "aten.logical_and.default", below, low.than("lt", h)));
            c.grad().only(takes)
        });
    }
    if let Some(high) = high {
        c.give(2, || {
            let above = x.than("gt", high);
            let takes = low.map_or(above, |l| op!(c, "aten.logical_or.default", above, high.than("lt", l)));
            c.grad().only(takes)
        });
    }
}

/// `clamp_min` and `clamp_max` with a plain number as the bound.
fn bound<'c>(c: &'c Cx<'c>, keeps: &str) {
    c.set(0, c.grad().only(op!(c, &format!("aten.{keeps}.Scalar"), c.arg(0), c.raw(1))));
}

fn bound_tensor<'c>(c: &'c Cx<'c>, keeps: &str) {
    let inside = c.arg(0).than(keeps, c.arg(1));
    c.give(0, || c.grad().only(inside));
    c.give(1, || c.grad().except(inside));
}

/// `where`: the overload decides which operands are tensors.
fn where_(c: &Cx<'_>, first: Option<usize>, second: Option<usize>) {
    if let Some(i) = first {
        give_plain(c, i, true);
    }
    if let Some(i) = second {
        give_plain(c, i, false);
    }
}

fn give_plain<'c>(c: &'c Cx<'c>, i: usize, takes: bool) {
    c.give(i, || if takes { c.grad().only(c.arg(0)) } else { c.grad().except(c.arg(0)) });
}

fn sgn<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    if x.dtype().is_complex() {
        let size = x.unary("aten.abs.default");
        let s = c.result();
        let along = (c.grad() * s.conj()).real();
        c.set(0, ((c.grad() - s * along) / size).except(size.is("eq", 0)));
    } else {
        c.zero(0);
    }
}

fn angle<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    if x.dtype().is_complex() {
        let norm = (x * x.conj()).real();
        let turned = op!(c, "aten.mul.Scalar", x, restride_ir::Arg::Complex(0.0, 1.0));
        c.set(0, (turned * (c.grad() / norm)).except(norm.is("eq", 0)));
    } else {
        c.zero(0);
    }
}

fn complex<'c>(c: &'c Cx<'c>) {
    let pairs = c.grad().unary("aten.view_as_real.default");
    c.give(0, || pairs.select(-1, 0));
    c.give(1, || pairs.select(-1, 1));
}

fn polar<'c>(c: &'c Cx<'c>) {
    let g = c.grad().conj();
    c.give(0, || {
        let one = op!(c, "aten.full.default", c.arg(0).sizes(), 1, c.arg(0).dtype());
        (g * op!(c, "aten.polar.default", one, c.arg(1))).real()
    });
    c.give(1, || op!(c, "aten.mul.Scalar", g * c.result(), restride_ir::Arg::Complex(0.0, 1.0)).real());
}

fn sinc<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let t = x * PI;
    let d = (t * t.cos() - t.sin()) / (x * t);
    c.set(0, c.grad() * d.except(x.is("eq", 0)).conj());
}

/// `i1` and `i1e`, whose derivatives divide by the operand.
fn i1<'c>(c: &'c Cx<'c>, scaled: bool) {
    let x = c.arg(0);
    let small = x.unary("aten.abs.default").is("lt", f64::EPSILON);
    let safe = op!(c, "aten.masked_fill.Scalar", x, small, 1.0);
    let d = if scaled {
        safe.unary("aten.special_i0e.default") - c.result() * (safe.sign() + safe.reciprocal())
    } else {
        safe.unary("aten.i0.default") - c.result() / safe
    };
    c.set(0, c.grad() * op!(c, "aten.masked_fill.Scalar", d, small, 0.5));
}

/// A rule that multiplies the gradient of one operand by a factor.
macro_rules! factor {
    (|$c:ident, $x:ident| $d:expr) => {
        rule!(|$c| {
            let $x = $c.arg(0);
            let d: T<'_> = $d;
            $c.set(0, $c.grad() * d.conj());
        })
    };
}

pub(crate) static GRADS: Rules = &[
    (&["aten.add.Tensor"], rule!(|c| added(c, 1.0))),
    (&["aten.sub.Tensor"], rule!(|c| added(c, -1.0))),
    (&["aten.add.Scalar", "aten.sub.Scalar"], rule!(|c| c.set(0, c.grad()))),
    (&["aten.rsub.Tensor"], rule!(rsub)),
    (&["aten.rsub.Scalar"], rule!(|c| c.set(0, -c.grad().times(&c.num(2))))),
    (&["aten.mul.Tensor"], rule!(mul)),
    (&["aten.mul.Scalar"], rule!(|c| c.set(0, op!(c, "aten.mul.Scalar", c.grad(), number(c, 1))))),
    (&["aten.div.Tensor"], rule!(div)),
    (&["aten.div.Scalar"], rule!(|c| c.set(0, op!(c, "aten.div.Scalar", c.grad(), number(c, 1))))),
    (&["aten.div.Tensor_mode"], rule!(div_mode)),
    (&["aten.div.Scalar_mode"], rule!(div_scalar_mode)),
    (&["aten.remainder.Tensor"], rule!(|c| remainder(c, "floor"))),
    (&["aten.fmod.Tensor"], rule!(|c| remainder(c, "trunc"))),
    (&["aten.remainder.Scalar", "aten.fmod.Scalar"], rule!(|c| c.set(0, c.grad()))),
    (
        &["aten.remainder.Scalar_Tensor"],
        rule!(|c| {
            let q = op!(c, "aten.floor_divide.default", op!(c, "aten.full_like.default", c.arg(1), c.raw(0)), c.arg(1));
            c.set(1, -c.grad() * q);
        }),
    ),
    (&["aten.pow.Tensor_Scalar", "aten.float_power.Tensor_Scalar"], rule!(pow_number)),
    (&["aten.pow.Tensor_Tensor", "aten.float_power.Tensor_Tensor"], rule!(pow)),
    (&["aten.pow.Scalar", "aten.float_power.Scalar"], rule!(number_pow)),
    (&["aten.atan2.default"], rule!(atan2)),
    (
        &["aten.hypot.default"],
        rule!(|c| {
            c.give(0, || c.grad() * (c.arg(0) / c.result()));
            c.give(1, || c.grad() * (c.arg(1) / c.result()));
        }),
    ),
    (&["aten.copysign.Tensor", "aten.copysign.Scalar"], rule!(copysign)),
    (&["aten.logaddexp.default"], rule!(|c| logaddexp(c, 1.0))),
    (
        &["aten.frexp.Tensor"],
        rule!(|c| c.set(0, c.grad() / op!(c, "aten.exp2.default", c.result_at(1).to(c.arg(0).dtype())))),
    ),
    (
        &["aten.nextafter.default"],
        rule!(|c| {
            c.give(0, || c.grad());
            c.zero(1);
        }),
    ),
    (&["aten.logaddexp2.default"], rule!(|c| logaddexp(c, LN_2))),
    (&["aten.xlogy.Tensor"], rule!(xlogy)),
    (
        &["aten.xlogy.Scalar_Other"],
        rule!(|c| {
            let y = c.float(1);
            let g = c.grad() * y.ln();
            c.set(0, if y > 0.0 { g } else { g.except(c.arg(0).is("eq", 0)) });
        }),
    ),
    (&["aten.xlogy.Scalar_Self"], rule!(|c| c.set(1, op!(c, "aten.mul.Scalar", c.grad() / c.arg(1), c.raw(0))))),
    (&["aten.special_xlog1py.default"], rule!(xlog1py)),
    (
        &["aten.special_xlog1py.other_scalar"],
        rule!(|c| {
            let y = c.float(1);
            let g = c.grad() * y.ln_1p();
            c.set(0, if y > -1.0 { g } else { g.except(c.arg(0).is("eq", 0)) });
        }),
    ),
    (
        &["aten.special_xlog1py.self_scalar"],
        rule!(|c| c.set(1, op!(c, "aten.mul.Scalar", c.grad() / (c.arg(1) + 1.0), c.raw(0)))),
    ),
    (&["aten.maximum.default"], rule!(|c| extreme(c, "lt"))),
    (&["aten.minimum.default"], rule!(|c| extreme(c, "gt"))),
    (&["aten.fmax.default"], rule!(|c| fextreme(c, "ge"))),
    (&["aten.fmin.default"], rule!(|c| fextreme(c, "le"))),
    (&["aten.addcmul.default"], rule!(addcmul)),
    (&["aten.addcdiv.default"], rule!(addcdiv)),
    (&["aten.lerp.Scalar"], rule!(|c| lerp(c, None))),
    (&["aten.lerp.Tensor"], rule!(|c| lerp(c, Some(c.arg(2))))),
    (&["aten.ldexp.Tensor"], rule!(ldexp)),
    (&["aten.neg.default"], rule!(|c| c.set(0, -c.grad()))),
    (&["aten.abs.default"], rule!(|c| c.set(0, c.grad() * c.arg(0).sign()))),
    (&["aten.angle.default"], rule!(angle)),
    (&["aten.complex.default"], rule!(complex)),
    (&["aten.polar.default"], rule!(polar)),
    (&["aten.conj_physical.default", "aten._conj_physical.default"], rule!(|c| c.set(0, c.grad().conj()))),
    (&["aten.sgn.default"], rule!(sgn)),
    (&["aten.logit.default"], rule!(|c| c.set(0, op!(c, "aten.logit_backward.default", c.grad(), c.arg(0), c.raw(1))))),
    (&["aten.nan_to_num.default"], rule!(|c| c.set(0, c.grad().only(c.arg(0).unary("aten.isfinite.default"))))),
    (&["aten.exp.default"], factor!(|c, _x| c.result())),
    (&["aten.exp2.default"], factor!(|c, _x| c.result() * LN_2)),
    (&["aten.expm1.default"], factor!(|c, _x| c.result() + 1.0)),
    (&["aten.log.default"], rule!(|c| c.set(0, c.grad() / c.arg(0).conj()))),
    (&["aten.log2.default"], rule!(|c| c.set(0, c.grad() / (c.arg(0) * LN_2).conj()))),
    (&["aten.log10.default"], rule!(|c| c.set(0, c.grad() / (c.arg(0) * LN_10).conj()))),
    (&["aten.log1p.default"], rule!(|c| c.set(0, c.grad() / (c.arg(0) + 1.0).conj()))),
    (&["aten.sqrt.default"], rule!(|c| c.set(0, c.grad() / (c.result() * 2.0).conj()))),
    (&["aten.rsqrt.default"], factor!(|c, _x| c.result().pow(3) * -0.5)),
    (&["aten.reciprocal.default"], factor!(|c, _x| -c.result().square())),
    (&["aten.square.default"], factor!(|_c, x| x * 2.0)),
    (&["aten.sin.default"], factor!(|_c, x| x.cos())),
    (&["aten.cos.default"], factor!(|_c, x| -x.sin())),
    (&["aten.tan.default"], factor!(|c, _x| c.result().square() + 1.0)),
    (&["aten.asin.default"], factor!(|_c, x| (1.0 - x.square()).rsqrt())),
    (&["aten.acos.default"], factor!(|_c, x| -(1.0 - x.square()).rsqrt())),
    (&["aten.atan.default"], factor!(|_c, x| (x.square() + 1.0).reciprocal())),
    (&["aten.sinh.default"], factor!(|_c, x| x.unary("aten.cosh.default"))),
    (&["aten.cosh.default"], factor!(|_c, x| x.unary("aten.sinh.default"))),
    (&["aten.asinh.default"], factor!(|_c, x| (x.square() + 1.0).rsqrt())),
    (
        &["aten.acosh.default"],
        factor!(|_c, x| {
            // For complex numbers the root of the square is not the product of the roots.
            if x.dtype().is_complex() {
                ((x - 1.0).sqrt() * (x + 1.0).sqrt()).reciprocal()
            } else {
                (x.square() - 1.0).rsqrt()
            }
        }),
    ),
    (&["aten.atanh.default"], factor!(|_c, x| (1.0 - x.square()).reciprocal())),
    (&["aten.erf.default"], factor!(|_c, x| (-x.square()).exp() * (2.0 / PI.sqrt()))),
    (&["aten.erfc.default"], factor!(|_c, x| (-x.square()).exp() * (-2.0 / PI.sqrt()))),
    (&["aten.erfinv.default"], factor!(|c, _x| c.result().square().exp() * (PI.sqrt() / 2.0))),
    (&["aten.lgamma.default"], factor!(|_c, x| x.unary("aten.digamma.default"))),
    (&["aten.digamma.default"], factor!(|c, x| op!(c, "aten.polygamma.default", 1, x))),
    (
        &["aten.polygamma.default"],
        rule!(|c| c.set(1, c.grad() * op!(c, "aten.polygamma.default", c.int(0) + 1, c.arg(1)))),
    ),
    (&["aten.sinc.default"], rule!(sinc)),
    (&["aten.deg2rad.default"], rule!(|c| c.set(0, c.grad() * (PI / 180.0)))),
    (&["aten.rad2deg.default"], rule!(|c| c.set(0, c.grad() * (180.0 / PI)))),
    (&["aten.frac.default"], rule!(|c| c.set(0, c.grad()))),
    (&["aten.special_entr.default"], rule!(|c| c.set(0, c.grad() * -(c.arg(0).log() + 1.0)))),
    (&["aten.special_ndtr.default"], factor!(|_c, x| (x.square() * -0.5).exp() * (2.0 * PI).sqrt().recip())),
    (&["aten.i0.default"], factor!(|_c, x| x.unary("aten.special_i1.default"))),
    (&["aten.special_i0e.default"], factor!(|c, x| x.unary("aten.special_i1e.default") - x.sign() * c.result())),
    (&["aten.special_i1.default"], rule!(|c| i1(c, false))),
    (&["aten.special_i1e.default"], rule!(|c| i1(c, true))),
    (&["aten.where.self"], rule!(|c| where_(c, Some(1), Some(2)))),
    (&["aten.where.ScalarSelf"], rule!(|c| where_(c, None, Some(2)))),
    (&["aten.where.ScalarOther"], rule!(|c| where_(c, Some(1), None))),
    (&["aten.masked_fill.Scalar"], rule!(|c| c.set(0, c.grad().except(c.arg(1))))),
    (
        &["aten.masked_fill.Tensor"],
        rule!(|c| {
            c.give(0, || c.grad().except(c.arg(1)));
            c.give(2, || c.grad().only(c.arg(1)).sum_all());
        }),
    ),
    (&["aten.clamp.default"], rule!(clamp)),
    (&["aten.clamp.Tensor"], rule!(clamp_tensor)),
    (&["aten.clamp_min.default"], rule!(|c| bound(c, "ge"))),
    (&["aten.clamp_max.default"], rule!(|c| bound(c, "le"))),
    (&["aten.clamp_min.Tensor"], rule!(|c| bound_tensor(c, "ge"))),
    (&["aten.clamp_max.Tensor"], rule!(|c| bound_tensor(c, "le"))),
    (
        &[
            "aten.floor.default",
            "aten.ceil.default",
            "aten.round.default",
            "aten.round.decimals",
            "aten.trunc.default",
            "aten.sign.default",
            "aten.floor_divide.default",
            "aten.floor_divide.Scalar",
            "aten.heaviside.default",
            "aten.where.Scalar",
        ],
        Grad::Zero,
    ),
];

//! Gradients of arithmetic, unary functions, and selections.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, op, rule};
use restride_ir::{Arg, Expr};
use std::f64::consts::{LN_2, LN_10, PI};

/// `add` and its like: the second operand is multiplied by `alpha`.
fn added<'c>(c: &'c Cx<'c>, sign: f64) {
    c.give(0, || c.grad());
    c.give(1, || {
        let g = c.grad().times(c.conj_num(2));
        if sign < 0.0 { -g } else { g }
    });
}

fn rsub<'c>(c: &'c Cx<'c>) {
    c.give(0, || -c.grad().times(c.conj_num(2)));
    c.give(1, || c.grad());
}

fn mul<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad() * c.arg(1).conj());
    c.give(1, || c.grad() * c.arg(0).conj());
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
        c.set(0, op!(c, "aten.div.Scalar", c.grad(), c.conj_num(1)));
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
    if let Arg::Complex(re, im) = c.raw(1) {
        return c.set(0, c.grad() * c.arg(0).pow(Arg::Complex(re - 1.0, im)).times(c.raw(1)).conj());
    }
    let e = c.num(1);
    match e.constant().map(|s| s.as_f64()) {
        Some(0.0) => c.zero(0),
        Some(1.0) => c.set(0, c.grad()),
        Some(2.0) => c.set(0, c.grad() * (c.arg(0) * 2.0).conj()),
        _ => {
            use restride_ir::Dim;
            let less = match e.constant() {
                Some(s) if matches!(s, restride_ir::Scalar::Float(_)) => Expr::float(s.as_f64() - 1.0),
                _ => e.minus(&Expr::Int(1)),
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
    let (re, im) = c.complex(0);
    let exponent = c.arg(1);
    let complex = exponent.dtype().is_complex();
    // A negative number has a logarithm beside complex exponents alone.
    let log = if im == 0.0 && (re > 0.0 || !complex) {
        Arg::Scalar(Expr::float(re.ln()))
    } else {
        Arg::Complex(re.hypot(im).ln(), im.atan2(re))
    };
    let slope = c.result().times(log).conj();
    // The slope of base 0 is 0 at exponents that are not negative.
    let flat = (re, im) == (0.0, 0.0) && !complex;
    c.set(1, c.grad() * if flat { slope.except(exponent.is("ge", 0)) } else { slope });
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
        op!(c, "aten.xlogy.Tensor", c.grad(), y).except(out)
    });
    c.give(1, || c.grad() * x / y);
}

fn xlog1py<'c>(c: &'c Cx<'c>) {
    let (x, y) = (c.arg(0), c.arg(1));
    c.give(0, || {
        let out = op!(c, "aten.logical_and.default", x.is("eq", 0), y.is("le", -1));
        op!(c, "aten.special_xlog1py.default", c.grad(), y).except(out)
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

/// `fmax` and `fmin`: equal elements share the gradient; the first operand takes it if the second is NaN.
fn fextreme<'c>(c: &'c Cx<'c>, wins: &str) {
    let (x, y) = (c.arg(0), c.arg(1));
    let half = || op!(c, "aten.where.self", x.than("eq", y), c.grad() * 0.5, c.grad());
    let first = op!(c, "aten.logical_or.default", x.than(wins, y), y.than("ne", y));
    c.give(0, || half().only(op!(c, "aten.logical_or.default", first, x.than("eq", y))));
    c.give(1, || half().except(first));
}

fn lerp<'c>(c: &'c Cx<'c>, weight: Option<T<'c>>) {
    match weight {
        Some(w) => {
            c.give(0, || c.grad() * (1.0 - w).conj());
            c.give(1, || c.grad() * w.conj());
            c.give(2, || c.grad() * (c.arg(1) - c.arg(0)).conj());
        }
        None => {
            let (re, im) = c.complex(2);
            let rest = if im == 0.0 { Arg::Scalar(Expr::float(1.0 - re)) } else { Arg::Complex(1.0 - re, im) };
            c.give(0, || c.grad().times(rest));
            c.give(1, || c.grad().times(c.conj_num(2)));
        }
    }
}

fn addcmul<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad());
    c.give(1, || c.grad() * c.arg(2).times(c.raw(3)).conj());
    c.give(2, || c.grad() * c.arg(1).times(c.raw(3)).conj());
}

fn addcdiv<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad());
    c.give(1, || (c.grad() / c.arg(2).conj()).times(c.conj_num(3)));
    c.give(2, || -c.grad() * (c.arg(1) / c.arg(2).square()).times(c.raw(3)).conj());
}

/// `clamp` with plain numbers as bounds: zero at a bound.
fn clamp<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let low = (!c.is_none(1)).then(|| op!(c, "aten.gt.Scalar", x, c.raw(1)));
    let high = (!c.is_none(2)).then(|| op!(c, "aten.lt.Scalar", x, c.raw(2)));
    c.set(
        0,
        match (low, high) {
            (Some(a), Some(b)) => c.grad().only(op!(c, "aten.logical_and.default", a, b)),
            (Some(a), None) | (None, Some(a)) => c.grad().only(a),
            (None, None) => c.grad(),
        },
    );
}

/// `clamp` with tensors as bounds: an element and the bound that it equals share the gradient. The upper bound wins over a larger
/// lower one, and takes nothing where both are equal.
fn clamp_tensor<'c>(c: &'c Cx<'c>) {
    let (low, high) = match (c.opt(1), c.opt(2)) {
        (Some(low), Some(high)) => (low, high),
        (Some(_), None) => return bound_tensor(c, 1, "lt", "gt"),
        (None, Some(_)) => return bound_tensor(c, 2, "gt", "lt"),
        (None, None) => return c.set(0, c.grad()),
    };
    let x = c.arg(0);
    let and = |a: T<'c>, b: T<'c>| op!(c, "aten.logical_and.default", a, b);
    let or = |a: T<'c>, b: T<'c>| op!(c, "aten.logical_or.default", a, b);
    let apart = low.than("lt", high);
    let (at_low, at_high) = (and(x.than("eq", low), apart), and(x.than("eq", high), apart));
    let halved = |tie: T<'c>| op!(c, "aten.where.self", tie, c.grad() * 0.5, c.grad());
    c.give(0, || halved(or(at_low, at_high)).except(or(x.than("lt", low), x.than("gt", high))));
    c.give(1, || halved(at_low).only(or(and(x.than("lt", low), low.than("le", high)), at_low)));
    c.give(2, || {
        let above = and(x.than("gt", high), low.than("le", high));
        halved(at_high).only(or(low.than("gt", high), or(above, at_high)))
    });
}

/// `clamp_min` and `clamp_max` with a plain number as the bound: zero at the bound.
fn bound<'c>(c: &'c Cx<'c>, keeps: &str) {
    c.set(0, c.grad().only(op!(c, &format!("aten.{keeps}.Scalar"), c.arg(0), c.raw(1))));
}

/// `clamp_min` and `clamp_max` with argument `i` as the bound: equal elements share the gradient.
fn bound_tensor<'c>(c: &'c Cx<'c>, i: usize, loses: &str, wins: &str) {
    let (x, y) = (c.arg(0), c.arg(i));
    let half = || op!(c, "aten.where.self", x.than("eq", y), c.grad() * 0.5, c.grad());
    c.give(0, || half().except(x.than(loses, y)));
    c.give(i, || half().except(x.than(wins, y)));
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
        let turned = op!(c, "aten.mul.Scalar", x, Arg::Complex(0.0, 1.0));
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
    c.give(1, || op!(c, "aten.mul.Scalar", g * c.result(), Arg::Complex(0.0, 1.0)).real());
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
    (&["add.Tensor"], rule!(|c| added(c, 1.0))),
    (&["sub.Tensor"], rule!(|c| added(c, -1.0))),
    (&["add.Scalar", "sub.Scalar"], rule!(|c| c.set(0, c.grad()))),
    (&["rsub.Tensor"], rule!(rsub)),
    (&["rsub.Scalar"], rule!(|c| c.set(0, -c.grad().times(c.conj_num(2))))),
    (&["mul.Tensor"], rule!(mul)),
    (&["mul.Scalar"], rule!(|c| c.set(0, op!(c, "aten.mul.Scalar", c.grad(), c.conj_num(1))))),
    (&["div.Tensor"], rule!(div)),
    (&["div.Scalar"], rule!(|c| c.set(0, op!(c, "aten.div.Scalar", c.grad(), c.conj_num(1))))),
    (&["div.Tensor_mode"], rule!(div_mode)),
    (&["div.Scalar_mode"], rule!(div_scalar_mode)),
    (&["remainder.Tensor"], rule!(|c| remainder(c, "floor"))),
    (&["fmod.Tensor"], rule!(|c| remainder(c, "trunc"))),
    (&["remainder.Scalar", "fmod.Scalar"], rule!(|c| c.set(0, c.grad()))),
    (
        &["remainder.Scalar_Tensor"],
        rule!(|c| {
            let q = op!(c, "aten.floor_divide.default", op!(c, "aten.full_like.default", c.arg(1), c.raw(0)), c.arg(1));
            c.set(1, -c.grad() * q);
        }),
    ),
    (&["pow.Tensor_Scalar", "float_power.Tensor_Scalar"], rule!(pow_number)),
    (&["pow.Tensor_Tensor", "float_power.Tensor_Tensor"], rule!(pow)),
    (&["pow.Scalar", "float_power.Scalar"], rule!(number_pow)),
    (&["atan2"], rule!(atan2)),
    (
        &["hypot"],
        rule!(|c| {
            c.give(0, || c.grad() * (c.arg(0) / c.result()));
            c.give(1, || c.grad() * (c.arg(1) / c.result()));
        }),
    ),
    (&["copysign.Tensor", "copysign.Scalar"], rule!(copysign)),
    (&["logaddexp"], rule!(|c| logaddexp(c, 1.0))),
    (
        &["frexp.Tensor"],
        rule!(|c| c.set(0, c.grad() / op!(c, "aten.exp2.default", c.result_at(1).to(c.arg(0).dtype())))),
    ),
    (
        &["nextafter"],
        rule!(|c| {
            c.give(0, || c.grad().only(c.arg(0).than("ne", c.arg(1))));
            c.zero(1);
        }),
    ),
    (&["logaddexp2"], rule!(|c| logaddexp(c, LN_2))),
    (&["xlogy.Tensor"], rule!(xlogy)),
    (
        &["xlogy.Scalar_Other"],
        rule!(|c| {
            let y = c.float(1);
            let g = c.grad() * y.ln();
            c.set(0, if y > 0.0 { g } else { g.except(c.arg(0).is("eq", 0)) });
        }),
    ),
    (&["xlogy.Scalar_Self"], rule!(|c| c.set(1, op!(c, "aten.mul.Scalar", c.grad() / c.arg(1), c.raw(0))))),
    (&["special_xlog1py"], rule!(xlog1py)),
    (
        &["special_xlog1py.other_scalar"],
        rule!(|c| {
            let y = c.float(1);
            let g = c.grad() * y.ln_1p();
            c.set(0, if y > -1.0 { g } else { g.except(c.arg(0).is("eq", 0)) });
        }),
    ),
    (
        &["special_xlog1py.self_scalar"],
        rule!(|c| c.set(1, op!(c, "aten.mul.Scalar", c.grad() / (c.arg(1) + 1.0), c.raw(0)))),
    ),
    (&["maximum"], rule!(|c| extreme(c, "lt"))),
    (&["minimum"], rule!(|c| extreme(c, "gt"))),
    (&["fmax"], rule!(|c| fextreme(c, "gt"))),
    (&["fmin"], rule!(|c| fextreme(c, "lt"))),
    (&["addcmul"], rule!(addcmul)),
    (&["addcdiv"], rule!(addcdiv)),
    (&["lerp.Scalar"], rule!(|c| lerp(c, None))),
    (&["lerp.Tensor"], rule!(|c| lerp(c, Some(c.arg(2))))),
    (&["neg"], rule!(|c| c.set(0, -c.grad()))),
    (&["abs"], rule!(|c| c.set(0, c.grad() * c.arg(0).sign()))),
    (&["angle"], rule!(angle)),
    (&["complex"], rule!(complex)),
    (&["polar"], rule!(polar)),
    (&["conj_physical", "_conj_physical"], rule!(|c| c.set(0, c.grad().conj()))),
    (&["sgn"], rule!(sgn)),
    (&["logit"], rule!(|c| c.set(0, op!(c, "aten.logit_backward.default", c.grad(), c.arg(0), c.raw(1))))),
    (&["nan_to_num"], rule!(|c| c.set(0, c.grad().only(c.arg(0).unary("aten.isfinite.default"))))),
    (&["exp"], factor!(|c, _x| c.result())),
    (&["exp2"], factor!(|c, _x| c.result() * LN_2)),
    (&["expm1"], factor!(|c, _x| c.result() + 1.0)),
    (&["log"], rule!(|c| c.set(0, c.grad() / c.arg(0).conj()))),
    (&["log2"], rule!(|c| c.set(0, c.grad() / (c.arg(0) * LN_2).conj()))),
    (&["log10"], rule!(|c| c.set(0, c.grad() / (c.arg(0) * LN_10).conj()))),
    (&["log1p"], rule!(|c| c.set(0, c.grad() / (c.arg(0) + 1.0).conj()))),
    (&["sqrt"], rule!(|c| c.set(0, c.grad() / (c.result() * 2.0).conj()))),
    (&["rsqrt"], factor!(|c, _x| c.result().pow(3) * -0.5)),
    (&["reciprocal"], factor!(|c, _x| -c.result().square())),
    (&["square"], factor!(|_c, x| x * 2.0)),
    (&["sin"], factor!(|_c, x| x.cos())),
    (&["cos"], factor!(|_c, x| -x.sin())),
    (&["tan"], factor!(|c, _x| c.result().square() + 1.0)),
    (&["asin"], factor!(|_c, x| (1.0 - x.square()).rsqrt())),
    (&["acos"], factor!(|_c, x| -(1.0 - x.square()).rsqrt())),
    (&["atan"], factor!(|_c, x| (x.square() + 1.0).reciprocal())),
    (&["sinh"], factor!(|_c, x| x.unary("aten.cosh.default"))),
    (&["cosh"], factor!(|_c, x| x.unary("aten.sinh.default"))),
    (&["asinh"], factor!(|_c, x| (x.square() + 1.0).rsqrt())),
    (
        &["acosh"],
        factor!(|_c, x| {
            // For complex numbers the root of the square is not the product of the roots.
            if x.dtype().is_complex() {
                ((x - 1.0).sqrt() * (x + 1.0).sqrt()).reciprocal()
            } else {
                (x.square() - 1.0).rsqrt()
            }
        }),
    ),
    (&["atanh"], factor!(|_c, x| (1.0 - x.square()).reciprocal())),
    (&["erf"], factor!(|_c, x| (-x.square()).exp() * (2.0 / PI.sqrt()))),
    (&["erfc"], factor!(|_c, x| (-x.square()).exp() * (-2.0 / PI.sqrt()))),
    (&["erfinv"], factor!(|c, _x| c.result().square().exp() * (PI.sqrt() / 2.0))),
    (&["lgamma"], factor!(|_c, x| x.unary("aten.digamma.default"))),
    (&["digamma"], factor!(|c, x| op!(c, "aten.polygamma.default", 1, x))),
    (&["polygamma"], rule!(|c| c.set(1, c.grad() * op!(c, "aten.polygamma.default", c.int(0) + 1, c.arg(1))))),
    (&["sinc"], rule!(sinc)),
    (&["deg2rad"], rule!(|c| c.set(0, c.grad() * (PI / 180.0)))),
    (&["rad2deg"], rule!(|c| c.set(0, c.grad() * (180.0 / PI)))),
    (&["frac"], rule!(|c| c.set(0, c.grad()))),
    (&["special_entr"], rule!(|c| c.set(0, c.grad() * -(c.arg(0).log() + 1.0)))),
    (&["special_ndtr"], factor!(|_c, x| (x.square() * -0.5).exp() * (2.0 * PI).sqrt().recip())),
    (&["i0"], factor!(|_c, x| x.unary("aten.special_i1.default"))),
    (&["special_i0e"], factor!(|c, x| x.unary("aten.special_i1e.default") - x.sign() * c.result())),
    (&["special_i1"], rule!(|c| i1(c, false))),
    (&["special_i1e"], rule!(|c| i1(c, true))),
    (&["where.self"], rule!(|c| where_(c, Some(1), Some(2)))),
    (&["where.ScalarSelf"], rule!(|c| where_(c, None, Some(2)))),
    (&["where.ScalarOther"], rule!(|c| where_(c, Some(1), None))),
    (&["masked_fill.Scalar"], rule!(|c| c.set(0, c.grad().except(c.arg(1))))),
    (
        &["masked_fill.Tensor"],
        rule!(|c| {
            c.give(0, || c.grad().except(c.arg(1)));
            c.give(2, || c.grad().only(c.arg(1)).sum_all());
        }),
    ),
    (&["clamp"], rule!(clamp)),
    (&["clamp.Tensor"], rule!(clamp_tensor)),
    (&["clamp_min"], rule!(|c| bound(c, "gt"))),
    (&["clamp_max"], rule!(|c| bound(c, "lt"))),
    (&["clamp_min.Tensor"], rule!(|c| bound_tensor(c, 1, "lt", "gt"))),
    (&["clamp_max.Tensor"], rule!(|c| bound_tensor(c, 1, "gt", "lt"))),
];

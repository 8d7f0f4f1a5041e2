//! Special functions: Bessel and Airy functions, orthogonal polynomials, incomplete gamma functions.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, op as call, rule};
use crate::pointwise::{Metas, Promotion, infer, not_for, op, own, run};
use crate::support::composite::composite;
use crate::support::promote::to_float;
use crate::support::{ValArgs, Vals, emit, ensure, pass};
use restride_ir::{Args, Emit, Grad, Meta, OpDef};
use restride_kernels::pointwise::{self as k, Pointwise};
use restride_tensor::DType::*;
use smallvec::smallvec;
use std::f64::consts::{FRAC_2_PI, PI};

/// As `Promotion::Float`, but refuses both half types, as PyTorch does.
fn infer_full(a: &Args<'_, Meta>, at: &[usize], op: &Pointwise) -> Metas {
    let out = infer(a, at, &[], Promotion::Float, op)?;
    if matches!(out[0].dtype, F16 | BF16) { not_for(out[0].dtype) } else { Ok(out) }
}

/// Declares a function without half types: schema, positions of operands, function, sample calls.
macro_rules! full {
    ($schema:expr, ($($x:literal),+), $f:expr, $samples:expr) => {
        own!(
            $schema,
            |a| infer_full(a, &[$($x),+], &$f),
            |c| run(c, &[$($x),+], &[], Promotion::Float, &$f),
            ($($x),+),
            $samples
        )
    };
}

/// `mvlgamma(self, p)`: sums `lgamma` of `self` minus multiples of one half.
fn mvlgamma(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, p) = (*a.tensor(0)?, a.int(1)?);
    ensure!(p >= 1, "p has to be greater than or equal to 1");
    ensure!(e.meta(x).dtype != Bool, "The input tensor may not be a boolean tensor.");
    let dtype = to_float(e.meta(x).dtype);
    let (half, none) = (p as f64 / 2.0, ());
    let less = emit!(e, "aten.arange.start_step", 0.5 - half, 0.5, 0.5, dtype, none, none, none)?;
    let x = emit!(e, "aten.unsqueeze.default", x, -1)?;
    let each = emit!(e, "aten.add.Tensor", less, x)?;
    let each = emit!(e, "aten.lgamma.default", each)?;
    let all = emit!(e, "aten.sum.dim_IntList", each, [-1i64], false, none)?;
    Ok(smallvec![emit!(e, "aten.add.Scalar", all, (p * (p - 1)) as f64 * PI.ln() / 4.0)?])
}

fn gammainc(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![emit!(e, "aten.igamma.default", pass(a, 0), pass(a, 1))?])
}
fn gammaincc(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![emit!(e, "aten.igammac.default", pass(a, 0), pass(a, 1))?])
}

pub(crate) static OPS: &[OpDef] = table![
    full!("special_airy_ai", (0), k::AIRY_AI, || finite(-9.0, 9.0)).graded(Grad::Zero),
    full!("special_bessel_j0", (0), k::BESSEL_J0, || full(-9.0, 9.0)),
    full!("special_bessel_j1", (0), k::BESSEL_J1, || full(-9.0, 9.0)),
    full!("special_bessel_y0", (0), k::BESSEL_Y0, || full(0.1, 9.0)),
    full!("special_bessel_y1", (0), k::BESSEL_Y1, || full(0.1, 9.0)),
    full!("special_modified_bessel_i0", (0), k::BESSEL_I0, || full(-9.0, 9.0)),
    full!("special_modified_bessel_i1", (0), k::BESSEL_I1, || full(-9.0, 9.0)),
    full!("special_modified_bessel_k0", (0), k::BESSEL_K0, || full(0.1, 9.0)),
    full!("special_modified_bessel_k1", (0), k::BESSEL_K1, || full(0.1, 9.0)),
    full!("special_scaled_modified_bessel_k0", (0), k::BESSEL_K0E, || full(-1.0, 9.0)).graded(Grad::Zero),
    full!("special_scaled_modified_bessel_k1", (0), k::BESSEL_K1E, || full(-1.0, 9.0)).graded(Grad::Zero),
    full!("special_spherical_bessel_j0", (0), k::SPHERICAL_BESSEL_J0, || full(-3.0, 3.0)).graded(Grad::Zero),
    full!("special_erfcx", (0), k::ERFCX, || full(-3.0, 9.0)),
    full!("special_log_ndtr", (0), k::LOG_NORMAL_CDF, || full(-9.0, 3.0)),
    full!("special_ndtri", (0), k::NORMAL_QUANTILE, || full(0.1, 0.9)),
    full!("special_zeta", (0, 1), k::ZETA, || positive(NO_BOOL, &[])),
    full!("special_zeta.other_scalar", (0, 1), k::ZETA, || { with_number(NO_BOOL) }),
    full!("special_zeta.self_scalar", (0, 1), k::ZETA, || { number_first(NO_BOOL) }),
    op!("igamma", Same(0, 1), k::IGAMMA, || positive(NO_BOOL, &[f64::INFINITY])),
    op!("igammac", Same(0, 1), k::IGAMMAC, || positive(NO_BOOL, &[f64::INFINITY])),
    composite!(gammainc, positive(REAL, &[f64::INFINITY]), "special_gammainc"),
    composite!(gammaincc, positive(REAL, &[f64::INFINITY]), "special_gammaincc"),
    composite!(mvlgamma, multivariate(), "mvlgamma"),
];

/// Declares orthogonal polynomials of argument and degree, with the overloads in which one of the two is a number. PyTorch
/// does not differentiate them; their gradient is zero.
macro_rules! polynomials {
    ($($name:literal: $f:expr),* $(,)?) => {
        table![$(
            full!(concat!("special_", $name), (0, 1), $f, degrees).graded(Grad::Zero),
            full!(concat!("special_", $name, ".x_scalar"), (0, 1), $f, || number_first(NO_BOOL)).graded(Grad::Zero),
            full!(concat!("special_", $name, ".n_scalar"), (0, 1), $f, || with_number(NO_BOOL)).graded(Grad::Zero),
        )*]
    };
}
pub(crate) static POLYNOMIALS: &[OpDef] = polynomials! {
    "chebyshev_polynomial_t": k::CHEBYSHEV_T,
    "chebyshev_polynomial_u": k::CHEBYSHEV_U,
    "chebyshev_polynomial_v": k::CHEBYSHEV_V,
    "chebyshev_polynomial_w": k::CHEBYSHEV_W,
    "shifted_chebyshev_polynomial_t": k::SHIFTED_CHEBYSHEV_T,
    "shifted_chebyshev_polynomial_u": k::SHIFTED_CHEBYSHEV_U,
    "shifted_chebyshev_polynomial_v": k::SHIFTED_CHEBYSHEV_V,
    "shifted_chebyshev_polynomial_w": k::SHIFTED_CHEBYSHEV_W,
    "hermite_polynomial_h": k::HERMITE_H,
    "hermite_polynomial_he": k::HERMITE_HE,
    "laguerre_polynomial_l": k::LAGUERRE,
    "legendre_polynomial_p": k::LEGENDRE,
};

/// Declares `d(x) * grad` as the rule of a function of one number.
macro_rules! slope {
    ($name:literal, |$c:ident, $x:ident| $d:expr) => {
        (
            &[$name],
            rule!(|$c| {
                let $x = $c.arg(0);
                $c.set(0, $c.grad() * $d);
            }),
        )
    };
}

/// Derivative of a Bessel function of order 1 from the one of order 0; at 0, where the formula divides by 0, its limit.
fn of_order_one<'c>(c: &'c Cx<'c>, zero: &str, limit: f64) {
    let x = c.arg(0);
    let origin = x.is("eq", 0);
    let safe = call!(c, "aten.masked_fill.Scalar", x, origin, 1.0);
    let d = safe.unary(zero) - c.result() / safe;
    c.set(0, c.grad() * call!(c, "aten.masked_fill.Scalar", d, origin, limit));
}

/// PyTorch differentiates incomplete gamma functions by the bound alone.
fn incomplete<'c>(c: &'c Cx<'c>, sign: f64, name: &str) {
    if c.needs(0) {
        return c.fail(format!("the derivative for '{name}: input' is not implemented"));
    }
    let (a, x) = (c.arg(0), c.arg(1));
    let density = ((a - 1.0) * x.log() - x - a.unary("aten.lgamma.default")).exp();
    c.give(1, || c.grad() * density * sign);
}

/// PyTorch differentiates the Hurwitz zeta function by the second operand alone.
fn zeta<'c>(c: &'c Cx<'c>, other: Option<T<'c>>, name: &str) {
    let Some(q) = other.filter(|_| !c.needs(0)) else {
        return c.fail("the derivative for 'zeta' is not implemented");
    };
    let s = c.arg(0);
    let next = call!(c, name, s + 1.0, q);
    c.set(1, c.grad() * -s * next);
}

pub(crate) static GRADS: Rules = &[
    slope!("special_bessel_j0", |_c, x| -x.unary("aten.special_bessel_j1.default")),
    (&["special_bessel_j1"], rule!(|c| of_order_one(c, "aten.special_bessel_j0.default", 0.5))),
    slope!("special_bessel_y0", |_c, x| -x.unary("aten.special_bessel_y1.default")),
    (&["special_bessel_y1"], rule!(|c| of_order_one(c, "aten.special_bessel_y0.default", f64::INFINITY))),
    slope!("special_modified_bessel_i0", |_c, x| x.unary("aten.special_modified_bessel_i1.default")),
    (&["special_modified_bessel_i1"], rule!(|c| of_order_one(c, "aten.special_modified_bessel_i0.default", 0.5))),
    slope!("special_modified_bessel_k0", |_c, x| -x.unary("aten.special_modified_bessel_k1.default")),
    slope!("special_modified_bessel_k1", |c, x| {
        -x.unary("aten.special_modified_bessel_k0.default") - c.result() / x
    }),
    slope!("special_erfcx", |c, x| c.result() * x * 2.0 - (2.0 / PI.sqrt())),
    slope!("special_log_ndtr", |_c, x| {
        (x * -std::f64::consts::FRAC_1_SQRT_2).unary("aten.special_erfcx.default").reciprocal() * FRAC_2_PI.sqrt()
    }),
    slope!("special_ndtri", |c, _x| (c.result().square() * 0.5).exp() * (2.0 * PI).sqrt()),
    (&["special_zeta"], rule!(|c| zeta(c, c.opt(1), "aten.special_zeta.default"))),
    (&["special_zeta.self_scalar"], rule!(|c| zeta(c, c.opt(1), "aten.special_zeta.default"))),
    (&["special_zeta.other_scalar"], rule!(|c| zeta(c, None, "aten.special_zeta.default"))),
    (&["igamma"], rule!(|c| incomplete(c, 1.0, "igamma"))),
    (&["igammac"], rule!(|c| incomplete(c, -1.0, "igammac"))),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::pointwise::samples::*;
    pub(super) use crate::support::samples::*;

    /// Sample tensors without half types, with zeros, infinities and NaN.
    pub(crate) fn full(lo: f64, hi: f64) -> Vec<Sample> {
        let mut out = unary(ALL_REAL, lo, hi);
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 1e-30, 90.0, -90.0, -2.5, 1.1];
        out.push(sample![RawTensor::from_slice(&odd, &[12])]);
        out
    }

    /// Samples without infinities, for which PyTorch returns NaN instead of the limit.
    pub(crate) fn finite(lo: f64, hi: f64) -> Vec<Sample> {
        let mut out = unary(ALL_REAL, lo, hi);
        out.push(sample![RawTensor::from_slice(&[f64::NAN, f64::NEG_INFINITY, 0.0, -0.0, 1e-30, 90.0, -90.0], &[7])]);
        out
    }

    /// Sample arguments inside and outside -1..1, with degrees on both sides of each change of formula.
    pub(crate) fn degrees() -> Vec<Sample> {
        let mut out = binary(NO_BOOL);
        let x: Vec<f64> = (-12..=12).map(|i| f64::from(i) / 8.0).collect();
        let n: Vec<f64> = (-1..13).map(f64::from).collect();
        let (x, n) = (RawTensor::from_slice(&x, &[25, 1]), RawTensor::from_slice(&n, &[14]));
        out.push(sample![x, n]);
        out.push(sample![transposed(F64, &[3, 4], 1), tensor(Bool, &[4], 2)]);
        out
    }

    /// Sample pairs of positive numbers, and values at the ends of the function's range.
    pub(crate) fn positive(types: Types, ends: &[f64]) -> Vec<Sample> {
        let mut out = Vec::new();
        for (a, b) in pairs(types) {
            let above = |t: RawTensor, seed| match t.dtype() {
                d if d.is_float() => in_range(d, t.layout().clone(), seed, 0.1, 9.0),
                _ => t,
            };
            out.push(sample![above(a, 1), above(b, 2)]);
        }
        let odd = [&[0.0, -1.0, 1e-5, 0.3, 1.0, 1.2, 2.5, 19.0, 30.0, 150.0, 300.0, f64::NAN], ends].concat();
        let n = odd.len() as i64;
        out.push(sample![RawTensor::from_slice(&odd, &[n, 1]), RawTensor::from_slice(&odd, &[n])]);
        out
    }

    pub(crate) fn multivariate() -> Vec<Sample> {
        let mut out = Vec::new();
        for (p, x) in every_layout(ALL_REAL, 3.0, 9.0).into_iter().enumerate() {
            out.push(sample![x, p as i64 % 4 + 1]);
        }
        out.push(sample![tensor(F32, &[3], 1), 0]);
        out.push(sample![tensor(C64, &[3], 1), 1]);
        out
    }
}

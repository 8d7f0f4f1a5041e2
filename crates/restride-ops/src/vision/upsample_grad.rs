//! Gradients of interpolations.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, form, op, rule};
use restride_ir::{Arg, Dim, Expr, ExprFn};

/// Interpolation is linear and separable: each dimension's matrix is the interpolated identity.
fn upsample<'c>(c: &'c Cx<'c>, name: &str, dims: usize, aligns: bool) {
    let x = c.arg(0);
    let out = c.nums(1);
    if out.len() != dims {
        return c.fail("interpolation to other numbers of sizes");
    }
    let numbers: Vec<_> = (2..2 + usize::from(aligns)).map(|i| c.raw(i)).collect();
    let scales = 2 + usize::from(aligns);
    let mut g = c.grad();
    let dtype = g.dtype();
    // If all sizes are equal, the operator copies the elements, whatever the scales.
    let copies = (0..dims).all(|d| x.size(d as i64 + 2).equals(&out[d]) == Some(true));
    for (d, out) in out.iter().enumerate() {
        let n = x.size(d as i64 + 2);
        let eye = op!(c, "aten.eye.default", &n, dtype);
        // The identity's rows stand in the last dimension, which PyTorch's antialiasing kernels need: they are wrong in an image
        // whose last size is 1.
        let mut sizes = vec![Expr::Int(1); dims + 2];
        (sizes[1], sizes[dims + 1]) = (n.clone(), n.clone());
        let mut to = vec![Expr::Int(1); dims];
        to[dims - 1] = out.clone();
        let stretched = !copies && dims > 1 && !matches!(c.raw(scales + d), Arg::None);
        if stretched {
            to[dims - 2] = Expr::Int(2);
        }
        let mut args = vec![eye.reshape(sizes).operand(), to.operand()];
        args.extend(numbers.iter().cloned());
        args.extend((1..dims).map(|_| Arg::None));
        args.push(c.raw(scales + d));
        let mut matrix = c.call(name, &args);
        if stretched {
            matrix = matrix.slice(dims as i64, Expr::Int(0), Expr::Int(1));
        }
        let matrix = matrix.reshape(vec![n, out.clone()]);
        let last = dims as i64 + 1;
        let at = d as i64 + 2;
        g = g.transpose(at, last).matmul(matrix.mt()).transpose(at, last);
    }
    c.set(0, g);
}

/// Turns a call of the `vec` overload, `(input, output_size, [align_corners,] scale_factors)`, into one of the overload with sizes. The
/// sizes may be symbolic.
fn resized<'c>(c: &'c Cx<'c>, name: &str, dims: usize, aligns: bool) -> Vec<T<'c>> {
    let (x, at) = (c.arg(0), 2 + usize::from(aligns));
    let mut out = c.nums(1);
    let mut scales = vec![Arg::None; dims];
    if !c.is_none(at) {
        let factors = c.nums(at);
        let scaled = |(d, f): (usize, &Expr)| {
            let n = x.size(d as i64 + 2);
            match f.constant().map(|f| f.as_f64()).filter(|f| f.fract() == 0.0 && f.abs() < 1e9) {
                Some(f) => n.times(&Expr::Int(f as i64)),
                None => {
                    let n = Expr::call(ExprFn::ToFloat, vec![n]);
                    Expr::call(ExprFn::Trunc, vec![Expr::call(ExprFn::Mul, vec![n, f.clone()])])
                }
            }
        };
        out = factors.iter().enumerate().map(scaled).collect();
        scales = factors.into_iter().map(Arg::Scalar).collect();
    }
    if out.len() != dims || scales.len() != dims {
        c.fail("interpolation to other numbers of sizes");
    }
    let mut args = vec![x.operand(), out.operand()];
    args.extend((2..at).map(|i| c.raw(i)));
    args.extend(scales);
    vec![c.call(name, &args)]
}

macro_rules! upsamples {
    ($($name:literal $dims:literal $aligns:literal;)*) => {
        &[$(
            (&[$name], rule!(|c| upsample(c, concat!("aten.", $name, ".default"), $dims, $aligns))),
            (&[concat!($name, ".vec")], form!(|c| resized(c, concat!("aten.", $name, ".default"), $dims, $aligns))),
        )*]
    };
}

pub(crate) static GRADS: Rules = upsamples! {
    "upsample_nearest1d" 1 false;
    "upsample_nearest2d" 2 false;
    "upsample_nearest3d" 3 false;
    "_upsample_nearest_exact1d" 1 false;
    "_upsample_nearest_exact2d" 2 false;
    "_upsample_nearest_exact3d" 3 false;
    "upsample_linear1d" 1 true;
    "upsample_bilinear2d" 2 true;
    "upsample_trilinear3d" 3 true;
    "upsample_bicubic2d" 2 true;
    "_upsample_bilinear2d_aa" 2 true;
    "_upsample_bicubic2d_aa" 2 true;
    "_upsample_lanczos2d_aa" 2 true;
};

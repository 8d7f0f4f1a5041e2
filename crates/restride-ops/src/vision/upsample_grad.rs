//! Gradients of interpolations.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, TermOperand, op, rule};
use restride_ir::{Arg, Dim, Expr};

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
    for d in 0..dims {
        let n = x.size(d as i64 + 2);
        let eye = op!(c, "aten.eye.default", &n, dtype);
        let mut sizes = vec![Expr::Int(1); dims + 2];
        (sizes[1], sizes[d + 2]) = (n.clone(), n.clone());
        let mut to = vec![Expr::Int(1); dims];
        to[d] = out[d].clone();
        let beside = (d + 1) % dims;
        let stretched = !copies && dims > 1 && !matches!(c.raw(scales + d), Arg::None);
        if stretched {
            to[beside] = Expr::Int(2);
        }
        let mut args = vec![eye.reshape(sizes).operand(), to.clone().operand()];
        args.extend(numbers.iter().cloned());
        args.extend((0..dims).map(|k| if k == d { c.raw(scales + d) } else { Arg::None }));
        let mut matrix = c.call(name, &args);
        if stretched {
            matrix = matrix.slice(beside as i64 + 2, Expr::Int(0), Expr::Int(1));
        }
        let matrix = matrix.reshape(vec![n, to[d].clone()]);
        let last = dims as i64 + 1;
        let at = d as i64 + 2;
        g = g.transpose(at, last).matmul(matrix.mt()).transpose(at, last);
    }
    c.set(0, g);
}

macro_rules! upsamples {
    ($($name:literal $dims:literal $aligns:literal;)*) => {
        &[$((&[$name], rule!(|c| upsample(c, concat!("aten.", $name, ".default"), $dims, $aligns)))),*]
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
};

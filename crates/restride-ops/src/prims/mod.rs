//! PyTorch's `prims`: what its decompositions are written in. Each is a composition of `aten` operators.

use crate::support::composite::composite;
use crate::support::{Result, ValArgs, Vals, emit, ensure, fail, pass, sizes};
use restride_ir::{DType, Emit, MemoryFormat, OpDef, Val};
use smallvec::smallvec;

/// Declares a prim: its schema, its composition, sample calls.
macro_rules! prim {
    ($schema:literal, |$e:ident, $a:ident| $body:expr, $samples:expr) => {{
        fn form($e: &mut dyn Emit, $a: &ValArgs<'_>) -> Vals {
            $body
        }
        composite!(form, $samples, concat!("prims::", $schema))
    }};
    // The same arguments go to another operator.
    ($schema:literal, $op:literal, $samples:expr) => {
        prim!($schema, |e, a| e.call($op, a.0), $samples)
    };
}

/// The operand and the dimensions of a sum or product. PyTorch's prims keep the type, its operators widen small integers.
fn reduction(e: &dyn Emit, a: &ValArgs<'_>) -> Result<(Val, Vec<i64>)> {
    let (x, dims) = (*a.tensor(0)?, a.ints(1)?.to_vec());
    let dtype = e.meta(x).dtype;
    ensure!(
        !dtype.is_int() && dtype != DType::Bool || dtype == DType::I64,
        "a reduction of {dtype} that keeps the type"
    );
    ensure!(a.is_none(2), "an output type of a reduction");
    Ok((x, dims))
}

/// `sum(inp, dims, output_dtype)`
fn sum(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, dims) = reduction(e, a)?;
    if dims.is_empty() {
        return Ok(smallvec![emit!(e, "aten.clone.default", x)?]);
    }
    Ok(smallvec![emit!(e, "aten.sum.dim_IntList", x, dims)?])
}

/// `prod(inp, dims, output_dtype)`: one dimension after the other.
fn prod(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, mut dims) = reduction(e, a)?;
    dims.sort_unstable();
    let mut out = emit!(e, "aten.clone.default", x)?;
    for d in dims.into_iter().rev() {
        out = emit!(e, "aten.prod.dim_int", out, d)?;
    }
    Ok(smallvec![out])
}

/// `amax` and `amin` over the dimensions of argument 1.
fn extreme(e: &mut dyn Emit, a: &ValArgs<'_>, op: &str) -> Vals {
    ensure!(a.is_none(2), "an output type of {op}");
    Ok(smallvec![emit!(e, op, *a.tensor(0)?, pass(a, 1))?])
}

/// `var(inp, dims, correction, output_dtype)`
fn var(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    ensure!(a.is_none(3), "an output type of prims::var");
    Ok(smallvec![emit!(e, "aten.var.correction", *a.tensor(0)?, pass(a, 1), pass(a, 2))?])
}

/// `div(self, other)`: integers are truncated.
fn div(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    if e.meta(x).dtype.is_float() || e.meta(x).dtype.is_complex() {
        return Ok(smallvec![emit!(e, "aten.div.Tensor", x, y)?]);
    }
    Ok(smallvec![emit!(e, "aten.div.Tensor_mode", x, y, "trunc")?])
}

/// `broadcast_in_dim(a, shape, broadcast_dimensions)`: the dimensions of `a` are these of the result.
fn broadcast(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (mut x, shape, own) = (*a.tensor(0)?, a.ints(1)?, a.ints(2)?);
    ensure!(own.len() == e.meta(x).rank(), "broadcast_in_dim: {} dimensions for {own:?}", e.meta(x).rank());
    for d in 0..shape.len() as i64 {
        if !own.contains(&d) {
            x = emit!(e, "aten.unsqueeze.default", x, d)?;
        }
    }
    Ok(smallvec![emit!(e, "aten.expand.default", x, shape)?])
}

/// Sizes with the dimensions `start..=end` merged into one.
fn collapsed(e: &dyn Emit, a: &ValArgs<'_>) -> Result<Vec<i64>> {
    let all = sizes(e, *a.tensor(0)?);
    let (start, end) = (a.int(1)?, a.int(2)?);
    if all.is_empty() {
        return Ok(vec![1]);
    }
    ensure!(
        0 <= start && start <= end && (end as usize) < all.len(),
        "collapse: no dimensions {start}..={end} in {all:?}"
    );
    let (start, end) = (start as usize, end as usize);
    let mut out = all[..start].to_vec();
    out.push(all[start..=end].iter().product());
    out.extend(&all[end + 1..]);
    Ok(out)
}

/// `split_dim(a, dim, outer_length)`
fn split_dim(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, dim, outer) = (*a.tensor(0)?, a.int(1)?, a.int(2)?);
    let mut all = sizes(e, x);
    ensure!(0 <= dim && (dim as usize) < all.len(), "split_dim: no dimension {dim} in {all:?}");
    let n = all[dim as usize];
    ensure!(outer > 0 && n % outer == 0, "split_dim: {outer} does not divide {n}");
    all.splice(dim as usize..=dim as usize, [outer, n / outer]);
    Ok(smallvec![emit!(e, "aten.view.default", x, all)?])
}

/// A row-major copy in other sizes.
fn reshaped(e: &mut dyn Emit, x: Val, shape: Vec<i64>) -> Vals {
    let out = emit!(e, "aten.reshape.default", x, shape)?;
    Ok(smallvec![emit!(e, "aten.clone.default", out, restride_ir::Arg::MemoryFormat(MemoryFormat::Contiguous))?])
}

/// `iota(length, start, step, dtype, device, requires_grad)`
fn iota(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (n, start, step) = (a.int(0)?, a.int(1)?, a.int(2)?);
    let end = n.checked_mul(step).and_then(|d| start.checked_add(d));
    let Some(end) = end else { return fail("iota: out of range") };
    Ok(smallvec![emit!(e, "aten.arange.start_step", start, end, step, pass(a, 3))?])
}

pub(crate) static OPS: &[OpDef] = table![
    prim!("abs", "aten.abs.default", unary()),
    prim!("acos", "aten.acos.default", unary()),
    prim!("acosh", "aten.acosh.default", above_one()),
    prim!("asin", "aten.asin.default", unary()),
    prim!("asinh", "aten.asinh.default", unary()),
    prim!("atan", "aten.atan.default", unary()),
    prim!("atanh", "aten.atanh.default", unary()),
    prim!("bessel_i0", "aten.i0.default", unary()),
    prim!("bessel_i0e", "aten.special_i0e.default", unary()),
    prim!("bessel_i1", "aten.special_i1.default", unary()),
    prim!("bessel_i1e", "aten.special_i1e.default", unary()),
    prim!("bessel_j0", "aten.special_bessel_j0.default", unary()),
    prim!("bessel_j1", "aten.special_bessel_j1.default", unary()),
    prim!("spherical_bessel_j0", "aten.special_spherical_bessel_j0.default", unary()),
    prim!("bitwise_not", "aten.bitwise_not.default", whole()),
    prim!("ceil", "aten.ceil.default", unary()),
    prim!("conj_physical", "aten._conj_physical.default", complex()),
    prim!("cos", "aten.cos.default", unary()),
    prim!("cosh", "aten.cosh.default", unary()),
    prim!("digamma", "aten.digamma.default", unary()),
    prim!("erf", "aten.erf.default", unary()),
    prim!("erf_inv", "aten.erfinv.default", unary()),
    prim!("erfc", "aten.erfc.default", unary()),
    prim!("erfcx", "aten.special_erfcx.default", unary()),
    prim!("exp", "aten.exp.default", unary()),
    prim!("exp2", "aten.exp2.default", unary()),
    prim!("expm1", "aten.expm1.default", unary()),
    prim!("fill", "aten.fill.Scalar", filled()),
    prim!("floor", "aten.floor.default", unary()),
    prim!("frexp", "aten.frexp.Tensor", unary()),
    prim!("isfinite", "aten.isfinite.default", unary()),
    prim!("lgamma", "aten.lgamma.default", unary()),
    prim!("log", "aten.log.default", unary()),
    prim!("log10", "aten.log10.default", unary()),
    prim!("log1p", "aten.log1p.default", unary()),
    prim!("log2", "aten.log2.default", unary()),
    prim!("ndtri", "aten.special_ndtri.default", unary()),
    prim!("neg", "aten.neg.default", unary()),
    prim!("reciprocal", "aten.reciprocal.default", unary()),
    prim!("round", "aten.round.default", unary()),
    prim!("rsqrt", "aten.rsqrt.default", unary()),
    prim!("sign", "aten.sign.default", unary()),
    prim!("signbit", "aten.signbit.default", unary()),
    prim!("sin", "aten.sin.default", unary()),
    prim!("sinh", "aten.sinh.default", unary()),
    prim!("sqrt", "aten.sqrt.default", unary()),
    prim!("tan", "aten.tan.default", unary()),
    prim!("tanh", "aten.tanh.default", unary()),
    prim!("trunc", "aten.trunc.default", unary()),
    prim!("add", "aten.add.Tensor", binary()),
    prim!("atan2", "aten.atan2.default", binary()),
    prim!("bitwise_and", "aten.bitwise_and.Tensor", wholes()),
    prim!("bitwise_or", "aten.bitwise_or.Tensor", wholes()),
    prim!("bitwise_xor", "aten.bitwise_xor.Tensor", wholes()),
    composite!(div, either(), "prims::div").failing(),
    prim!("eq", "aten.eq.Tensor", either()),
    prim!("fmax", "aten.fmax.default", binary()),
    prim!("fmin", "aten.fmin.default", binary()),
    prim!("fmod", "aten.fmod.Tensor", binary()),
    prim!("gcd", "aten.gcd.default", wholes()),
    prim!("ge", "aten.ge.Tensor", either()),
    prim!("gt", "aten.gt.Tensor", either()),
    prim!("hypot", "aten.hypot.default", binary()),
    prim!("igamma", "aten.igamma.default", binary()),
    prim!("igammac", "aten.igammac.default", binary()),
    prim!("le", "aten.le.Tensor", either()),
    prim!("lt", "aten.lt.Tensor", either()),
    prim!("maximum", "aten.maximum.default", either()),
    prim!("minimum", "aten.minimum.default", either()),
    prim!("mul", "aten.mul.Tensor", either()),
    prim!("ne", "aten.ne.Tensor", either()),
    prim!("nextafter", "aten.nextafter.default", binary()),
    prim!("pow", "aten.pow.Tensor_Tensor", binary()),
    prim!("remainder", "aten.remainder.Tensor", binary()),
    prim!("shift_left", "aten.bitwise_left_shift.Tensor", wholes()),
    prim!("shift_right_arithmetic", "aten.bitwise_right_shift.Tensor", wholes()),
    prim!("sub", "aten.sub.Tensor", either()),
    prim!("zeta", "aten.special_zeta.default", binary()),
    prim!("where", "aten.where.self", chosen()),
    composite!(sum, reduced(), "prims::sum"),
    composite!(prod, reduced(), "prims::prod"),
    composite!(var, spread(), "prims::var"),
    prim!("amax", |e, a| extreme(e, a, "aten.amax.default"), reduced()),
    prim!("amin", |e, a| extreme(e, a, "aten.amin.default"), reduced()),
    composite!(broadcast, broadcasts(), "prims::broadcast_in_dim"),
    composite!(split_dim, splits(), "prims::split_dim"),
    composite!(iota, counts(), "prims::iota"),
    prim!(
        "collapse_view",
        |e, a| {
            let shape = collapsed(e, a)?;
            Ok(smallvec![emit!(e, "aten.view.default", *a.tensor(0)?, shape)?])
        },
        viewed()
    ),
    prim!(
        "collapse",
        |e, a| {
            let shape = collapsed(e, a)?;
            reshaped(e, *a.tensor(0)?, shape)
        },
        merged()
    ),
    prim!("reshape", |e, a| reshaped(e, *a.tensor(0)?, a.ints(1)?.to_vec()), shapes()),
    prim!("squeeze", "aten.squeeze.dims", squeezed()),
    prim!("transpose", "aten.permute.default", permuted()),
    prim!("view_of", "aten.alias.default", unary()),
    prim!("cat", "aten.cat.default", joined()),
    prim!("clone", "aten.clone.default", unary()),
    prim!("rev", "aten.flip.default", reversed()),
    prim!(
        "convert_element_type",
        |e, a| Ok(smallvec![emit!(e, "aten._to_copy.default", *a.tensor(0)?, pass(a, 1))?]),
        converted()
    ),
    prim!(
        "fft_r2c",
        |e, a| Ok(smallvec![emit!(e, "aten._fft_r2c.default", pass(a, 0), pass(a, 1), 0, pass(a, 2))?]),
        real_fft()
    ),
    prim!(
        "fft_c2c",
        |e, a| Ok(smallvec![emit!(e, "aten._fft_c2c.default", pass(a, 0), pass(a, 1), 0, pass(a, 2))?]),
        complex_fft()
    ),
    prim!(
        "fft_c2r",
        |e, a| Ok(smallvec![emit!(e, "aten._fft_c2r.default", pass(a, 0), pass(a, 1), 0, pass(a, 2))?]),
        back_fft()
    ),
];

/// The operators of this family.
pub(crate) static FAMILY: crate::Family = crate::Family { ops: &[OPS], gradients: &[], aliases: &[] };

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    const F: DType = DType::F32;

    pub(crate) fn unary() -> Samples {
        let within = |d: DType, l: Layout| in_range(d, l, 1, 0.1, 0.9);
        vec![
            sample![within(F, Layout::contiguous(&[2, 3]))],
            sample![within(DType::F64, Layout::permuted(&[3, 2], &[1, 0]))],
        ]
    }
    pub(crate) fn above_one() -> Samples {
        vec![sample![in_range(F, Layout::contiguous(&[5]), 1, 1.1, 3.0)]]
    }
    pub(crate) fn whole() -> Samples {
        vec![sample![tensor(DType::I64, &[4], 1)], sample![tensor(DType::Bool, &[4], 1)]]
    }
    pub(crate) fn complex() -> Samples {
        vec![sample![tensor(DType::C64, &[4], 1)]]
    }
    pub(crate) fn filled() -> Samples {
        vec![sample![tensor(F, &[2, 3], 1), 2.5]]
    }
    pub(crate) fn binary() -> Samples {
        let within = |d: DType, l: Layout, seed| in_range(d, l, seed, 1.1, 2.9);
        vec![
            sample![within(F, Layout::contiguous(&[2, 3]), 1), within(F, Layout::permuted(&[2, 3], &[1, 0]), 2)],
            sample![within(DType::F64, Layout::contiguous(&[3]), 1), within(DType::F64, Layout::contiguous(&[3]), 2)],
        ]
    }
    pub(crate) fn wholes() -> Samples {
        let few = |seed| in_range(DType::I64, Layout::contiguous(&[5]), seed, 1.0, 9.0);
        vec![sample![few(1), few(2)]]
    }
    pub(crate) fn either() -> Samples {
        [binary(), wholes()].concat()
    }
    pub(crate) fn chosen() -> Samples {
        vec![sample![tensor(DType::Bool, &[2, 3], 1), tensor(F, &[2, 3], 2), tensor(F, &[2, 3], 3)]]
    }
    pub(crate) fn reduced() -> Samples {
        let x = tensor(F, &[2, 3, 4], 1);
        vec![sample![&x, [0, 2]], sample![&x, [1]], sample![tensor(DType::I64, &[3, 4], 1), [1]]]
    }
    pub(crate) fn spread() -> Samples {
        let x = tensor(F, &[2, 3, 4], 1);
        vec![sample![&x, [0, 2], 1.0], sample![&x, [1], 0.0]]
    }
    pub(crate) fn broadcasts() -> Samples {
        vec![
            sample![tensor(F, &[3], 1), [2, 3], [1]],
            sample![tensor(F, &[3, 1], 1), [3, 4, 5], [0, 2]],
            sample![tensor(F, &[], 1), [2], restride_ir::Arg::Scalars(Vec::new())],
        ]
    }
    pub(crate) fn splits() -> Samples {
        vec![sample![tensor(F, &[2, 6], 1), 1, 3], sample![transposed(F, &[6, 2], 1), 0, 2]]
    }
    pub(crate) fn counts() -> Samples {
        vec![
            sample![5, 1, 2, DType::I64, Arg::Device("cpu".into()), false],
            sample![3, 0, -1, DType::I32, Arg::Device("cpu".into()), false],
        ]
    }
    pub(crate) fn merged() -> Samples {
        vec![sample![tensor(F, &[2, 3, 4], 1), 0, 1], sample![tensor(F, &[2, 3, 4], 1), 1, 1]]
    }
    /// Dimensions that merge in every layout.
    pub(crate) fn viewed() -> Samples {
        vec![sample![tensor(F, &[3, 1, 4], 1), 0, 1], sample![tensor(F, &[2, 3, 4], 1), 1, 1]]
    }
    pub(crate) fn shapes() -> Samples {
        vec![sample![tensor(F, &[2, 6], 1), [3, 4]], sample![transposed(F, &[2, 6], 1), [12]]]
    }
    pub(crate) fn squeezed() -> Samples {
        vec![sample![tensor(F, &[1, 3, 1], 1), [0, 2]], sample![tensor(F, &[1, 3, 1], 1), [2]]]
    }
    pub(crate) fn permuted() -> Samples {
        vec![sample![tensor(F, &[2, 3, 4], 1), [2, 0, 1]]]
    }
    pub(crate) fn joined() -> Samples {
        vec![sample![vec![tensor(F, &[2, 3], 1), tensor(F, &[1, 3], 2)], 0]]
    }
    pub(crate) fn reversed() -> Samples {
        vec![sample![tensor(F, &[2, 3], 1), [0, 1]]]
    }
    pub(crate) fn converted() -> Samples {
        vec![sample![transposed(F, &[2, 3], 1), DType::F64], sample![tensor(F, &[2, 3], 1), DType::F32]]
    }
    pub(crate) fn real_fft() -> Samples {
        vec![sample![tensor(F, &[2, 6], 1), [1], true], sample![tensor(F, &[2, 6], 1), [0, 1], false]]
    }
    pub(crate) fn complex_fft() -> Samples {
        vec![sample![tensor(DType::C64, &[2, 6], 1), [0, 1], true]]
    }
    pub(crate) fn back_fft() -> Samples {
        vec![sample![tensor(DType::C64, &[2, 4], 1), [1], 6]]
    }
}

//! Discrete and short-time Fourier transforms, frequencies and shifts.

mod stft;

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Layout, Meta, OpDef, Val};
use restride_kernels::fft::{self, FftDims, Transform};
use restride_tensor::by_stride;
use smallvec::smallvec;

/// A dimension counted from 0. Transforms have none of a scalar, whose dimension 0 other operators take.
fn dim(l: &Layout, d: i64) -> Result<usize> {
    ensure!(l.rank() > 0, "Dimension specified as {d} but tensor has no dimensions");
    Ok(l.dim(d)?)
}

/// The transformed dimensions as distinct positions.
fn dims<V>(a: &Args<'_, V>, i: usize, l: &Layout) -> Result<FftDims> {
    let mut out = FftDims::new();
    for d in a.ints(i)? {
        let d = dim(l, d)?;
        ensure!(!out.contains(&d), "FFT dims must be unique");
        out.push(d);
    }
    Ok(out)
}

fn transform<V>(a: &Args<'_, V>, l: &Layout, signal: &[i64], forward: bool) -> Result<Transform> {
    let dims = dims(a, 1, l)?;
    let n: f64 = dims.iter().map(|&d| signal[d] as f64).product();
    let scale = match a.int(2)? {
        0 => 1.0,
        1 => 1.0 / n.sqrt(),
        2 => 1.0 / n,
        other => return fail(format!("Unsupported normalization type {other}")),
    };
    Ok(Transform { dims, forward, scale })
}

/// Type of a transform's result as in PyTorch: untransformed dimensions first, ordered by the input's strides.
fn result(dtype: DType, input: &Layout, sizes: &[i64], transformed: &[usize]) -> Meta {
    let rank = sizes.len();
    let mut order: Vec<usize> = (0..rank).collect();
    // Mirrors `std::partition` on bidirectional iterators, which decides the order of equal strides.
    let (mut first, mut last) = (0, rank);
    loop {
        while first != last && !transformed.contains(&order[first]) {
            first += 1;
        }
        if first == last {
            break;
        }
        last -= 1;
        while first != last && transformed.contains(&order[last]) {
            last -= 1;
        }
        if first == last {
            break;
        }
        order.swap(first, last);
        first += 1;
    }
    by_stride(&mut order[..first], |d| input.strides[d]);
    order.truncate(first);
    order.extend(transformed);
    Meta::new(dtype, Layout::permuted(sizes, &order))
}

/// Transformed dimensions by descending stride; `keep_last` keeps the last one last.
fn sorted(dims: &[usize], l: &Layout, keep_last: bool) -> Vec<usize> {
    let mut out = dims.to_vec();
    let n = out.len() - (keep_last && !out.is_empty()) as usize;
    by_stride(&mut out[..n], |d| l.strides[d]);
    out
}

fn check_sizes(l: &Layout, dims: &[usize]) -> Result<()> {
    for &d in dims {
        ensure!(l.sizes[d] > 0, "Invalid number of data points ({}) specified", l.sizes[d]);
    }
    Ok(())
}

fn c2c_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    ensure!(x.dtype.is_complex(), "_fft_c2c expects a complex tensor, got {}", name(x.dtype));
    let t = transform(a, &x.layout, x.sizes(), true)?;
    if t.dims.is_empty() {
        return one(Meta::new(x.dtype, crate::support::strides::dense_like(&x.layout)));
    }
    check_sizes(&x.layout, &t.dims)?;
    one(result(x.dtype, &x.layout, x.sizes(), &sorted(&t.dims, &x.layout, false)))
}
fn c2c(c: &Call<'_>) -> Result<()> {
    let x = c.args.tensor(0)?;
    let t = transform(&c.args, x.layout(), x.sizes(), c.args.bool(3)?)?;
    ran(fft::c2c(x, &t, &c.outs[0]))
}
fn c2c_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    let x = a.tensor(0)?;
    Ok(fft::c2c_room(stored(x), &transform(a, &x.layout, x.sizes(), a.bool(3)?)?))
}

fn r2c_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    ensure!(matches!(x.dtype, DType::F32 | DType::F64), "Unsupported dtype {}", name(x.dtype));
    let t = transform(a, &x.layout, x.sizes(), true)?;
    let Some(&last) = t.dims.last() else { return fail("_fft_r2c needs a dimension") };
    check_sizes(&x.layout, &t.dims)?;
    let mut sizes = x.sizes().to_vec();
    if a.bool(3)? {
        sizes[last] = sizes[last] / 2 + 1;
    }
    one(result(x.dtype.complex(), &x.layout, &sizes, &sorted(&t.dims, &x.layout, true)))
}
fn r2c(c: &Call<'_>) -> Result<()> {
    let x = c.args.tensor(0)?;
    ran(fft::r2c(x, &transform(&c.args, x.layout(), x.sizes(), true)?, &c.outs[0]))
}
fn r2c_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let x = a.tensor(0)?;
    Ok(fft::r2c_room(stored(x), &transform(a, &x.layout, x.sizes(), true)?, stored(&outs[0])))
}

fn c2r_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, n) = (a.tensor(0)?, a.int(3)?);
    ensure!(x.dtype.is_complex(), "_fft_c2r expects a complex tensor, got {}", name(x.dtype));
    let dims = dims(a, 1, &x.layout)?;
    let Some((&last, rest)) = dims.split_last() else { return fail("_fft_c2r needs a dimension") };
    ensure!((1..1 << 40).contains(&n), "Invalid number of data points ({n}) specified");
    check_sizes(&x.layout, &dims)?;
    // The other dimensions transform first, into a separate result.
    let between = match rest {
        [] => x.clone(),
        rest => result(x.dtype, &x.layout, x.sizes(), &sorted(rest, &x.layout, false)),
    };
    let mut sizes = x.sizes().to_vec();
    sizes[last] = n;
    one(result(x.dtype.real(), &between.layout, &sizes, &[last]))
}
fn c2r(c: &Call<'_>) -> Result<()> {
    let x = c.args.tensor(0)?;
    let t = transform(&c.args, x.layout(), c.outs[0].sizes(), false)?;
    ran(fft::c2r(x, &t, &c.outs[0]))
}
fn c2r_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let x = a.tensor(0)?;
    Ok(fft::c2r_room(stored(x), &transform(a, &x.layout, outs[0].sizes(), false)?, stored(&outs[0])))
}

fn windows_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, sizes, dim, size, step) = (a.tensor(0)?, a.ints(1)?, a.int(2)?, a.int(3)?, a.int(4)?);
    ensure!(sizes.iter().all(|&n| (0..1 << 40).contains(&n)), "unfold_backward: bad sizes {sizes:?}");
    let dim = Layout::contiguous(&sizes).dim(dim)?;
    let length = sizes.get(dim).copied().unwrap_or(1);
    ensure!(step > 0 && size >= 0 && size <= length, "unfold_backward: bad size {size} or step {step}");
    let mut want = sizes.clone();
    // The windows of a scalar have no dimension of their own.
    if let Some(windows) = want.get_mut(dim) {
        *windows = (length - size) / step + 1;
    }
    want.push(size);
    ensure!(*x.sizes() == want[..], "unfold_backward: expected a gradient of sizes {want:?}, got {:?}", x.sizes());
    one(fresh(x.dtype, &sizes))
}
fn windows(c: &Call<'_>) -> Result<()> {
    let dim = c.outs[0].layout().dim(c.args.int(2)?)?;
    ran(fft::add_windows(c.args.tensor(0)?, dim, c.args.int(4)? as usize, &c.outs[0]))
}

/// Promotes an operand to a float or, if `complex`, complex type.
fn promoted(e: &mut dyn Emit, x: Val, complex: bool) -> Result<Val> {
    let own = e.meta(x).dtype;
    let dtype = if own.is_float() || own.is_complex() { own } else { DType::F32 };
    ensure!(!matches!(dtype, DType::F16 | DType::BF16), "Unsupported dtype {}", name(dtype));
    let dtype = if complex { dtype.complex() } else { dtype };
    if dtype == own { Ok(x) } else { emit!(e, "aten.to.dtype", x, dtype) }
}

/// PyTorch's normalization modes: none, by the root of the size, or by the size.
fn norm(a: &ValArgs<'_>, i: usize, forward: bool) -> Result<i64> {
    match a.opt_str(i)? {
        None | Some("backward") => Ok(if forward { 0 } else { 2 }),
        Some("forward") => Ok(if forward { 2 } else { 0 }),
        Some("ortho") => Ok(1),
        Some(other) => fail(format!("Invalid normalization mode: \"{other}\"")),
    }
}

/// Truncates or zero-pads a dimension to a size.
fn resized(e: &mut dyn Emit, x: Val, dim: usize, n: i64) -> Result<Val> {
    let s = sizes(e, x);
    ensure!((1..1 << 40).contains(&n), "Invalid number of data points ({n}) specified");
    // One call for all sizes: padding by a negative number truncates.
    if s[dim] >= n && !e.any_sizes() {
        return if s[dim] == n { Ok(x) } else { emit!(e, "aten.slice.Tensor", x, dim as i64, 0, n, 1) };
    }
    let mut pad = vec![0; 2 * (s.len() - dim)];
    if let Some(last) = pad.last_mut() {
        *last = n - s[dim];
    }
    emit!(e, "aten.constant_pad_nd.default", x, pad, 0)
}

/// Kinds of transforms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FftKind {
    /// Complex (or real) numbers to complex ones.
    Plain,
    /// Real numbers to the first half of their spectrum.
    Real,
    /// Half of a spectrum to real numbers.
    ToReal,
}

/// Sizes and dimensions of a transform over several dimensions.
fn shape(a: &ValArgs<'_>, l: &Layout) -> Result<(Vec<Option<i64>>, Vec<usize>)> {
    let (s, d) = (a.opt_ints(1)?, a.opt_ints(2)?);
    let rank = l.rank();
    let mut dims = Vec::new();
    match (&d, &s) {
        (Some(d), _) => {
            for &d in d {
                let d = dim(l, d)?;
                ensure!(!dims.contains(&d), "FFT dims must be unique");
                dims.push(d);
            }
        }
        (None, Some(s)) => {
            ensure!(s.len() <= rank, "Got shape with {} values but input tensor only has {rank} dimensions.", s.len());
            dims = (rank - s.len()..rank).collect();
        }
        (None, None) => dims = (0..rank).collect(),
    }
    let n = match s {
        None => vec![None; dims.len()],
        Some(s) => {
            ensure!(s.len() == dims.len(), "When given, dim and shape arguments must have the same length");
            s.into_iter().map(|n| (n != -1).then_some(n)).collect()
        }
    };
    Ok((n, dims))
}

/// Requested sizes and dimensions of a transform over one or several dimensions.
fn selected(a: &ValArgs<'_>, given: &Meta, several: bool) -> Result<(Vec<Option<i64>>, Vec<usize>)> {
    if several {
        return shape(a, &given.layout);
    }
    Ok((vec![a.opt_int(1)?], vec![dim(&given.layout, a.int(2)?)?]))
}

/// Every transform except the Hermitian ones, over one dimension or several.
fn run(e: &mut dyn Emit, a: &ValArgs<'_>, kind: FftKind, forward: bool, several: bool) -> Vals {
    let x = *a.tensor(0)?;
    let given = e.meta(x);
    ensure!(
        kind != FftKind::Real || !given.dtype.is_complex(),
        "rfft expects a real input tensor, but got {}",
        name(given.dtype)
    );
    let (n, dims) = selected(a, &given, several)?;
    let norm = norm(a, 3, forward)?;
    // A one-dimensional transform of real numbers uses the real transform.
    let real = kind == FftKind::Real || kind == FftKind::Plain && !several && !given.dtype.is_complex();
    let mut x = promoted(e, x, !real)?;
    let mut last_size = 0;
    for (i, (&n, &d)) in n.iter().zip(&dims).enumerate() {
        let own = given.sizes()[d];
        if kind == FftKind::ToReal && i + 1 == dims.len() {
            last_size = n.unwrap_or(2 * (own - 1));
            ensure!(last_size >= 1, "Invalid number of data points ({last_size}) specified");
            if n.is_some() {
                x = resized(e, x, d, last_size / 2 + 1)?;
            }
        } else {
            ensure!(n.unwrap_or(own) >= 1, "Invalid number of data points ({}) specified", n.unwrap_or(own));
            if let Some(n) = n {
                x = resized(e, x, d, n)?;
            }
        }
    }
    let list: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
    ensure!(kind == FftKind::Plain || !list.is_empty(), "at least one axis must be transformed");
    Ok(smallvec![match kind {
        FftKind::ToReal => emit!(e, "aten._fft_c2r.default", x, list, norm, last_size)?,
        FftKind::Real => emit!(e, "aten._fft_r2c.default", x, list, norm, true)?,
        FftKind::Plain if real => {
            let v = emit!(e, "aten._fft_r2c.default", x, list, norm, false)?;
            if forward { v } else { emit!(e, "aten._conj.default", v)? }
        }
        FftKind::Plain => emit!(e, "aten._fft_c2c.default", x, list, norm, forward)?,
    }])
}

macro_rules! transforms {
    ($($name:ident, $kind:expr, $forward:expr, $several:expr;)*) => {$(
        fn $name(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
            run(e, a, $kind, $forward, $several)
        }
    )*};
}
transforms! {
    fft, FftKind::Plain, true, false;
    ifft, FftKind::Plain, false, false;
    rfft, FftKind::Real, true, false;
    irfft, FftKind::ToReal, false, false;
    fftn, FftKind::Plain, true, true;
    ifftn, FftKind::Plain, false, true;
    rfftn, FftKind::Real, true, true;
    irfftn, FftKind::ToReal, false, true;
}

/// A Hermitian half spectrum, transformed forward to real numbers: the inverse transform of its conjugate.
fn hermitian(e: &mut dyn Emit, a: &ValArgs<'_>, several: bool) -> Vals {
    let given = e.meta(*a.tensor(0)?);
    let (n, dims) = selected(a, &given, several)?;
    let norm = norm(a, 3, true)?;
    let Some((&last, rest)) = dims.split_last() else { return fail("at least one axis must be transformed") };
    let own = given.sizes()[last];
    let last_size = n[dims.len() - 1].unwrap_or(2 * (own - 1));
    ensure!(last_size >= 1, "Invalid number of data points ({last_size}) specified");
    let mut x = promoted(e, *a.tensor(0)?, true)?;
    for (&n, &d) in n.iter().zip(rest) {
        if let Some(n) = n {
            x = resized(e, x, d, n)?;
        }
    }
    if n[dims.len() - 1].is_some() {
        x = resized(e, x, last, last_size / 2 + 1)?;
    }
    if !rest.is_empty() {
        let rest: Vec<i64> = rest.iter().map(|&d| d as i64).collect();
        x = emit!(e, "aten._fft_c2c.default", x, rest, norm, true)?;
    }
    let x = emit!(e, "aten.conj_physical.default", x)?;
    Ok(smallvec![emit!(e, "aten._fft_c2r.default", x, [last as i64], norm, last_size)?])
}
fn hfft(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    hermitian(e, a, false)
}
fn hfftn(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    hermitian(e, a, true)
}

/// The inverse of [`hermitian`]: the conjugate of the half spectrum of real numbers.
fn to_hermitian(e: &mut dyn Emit, a: &ValArgs<'_>, several: bool) -> Vals {
    let given = e.meta(*a.tensor(0)?);
    ensure!(!given.dtype.is_complex(), "ihfft expects a real input tensor, but got {}", name(given.dtype));
    let (n, dims) = selected(a, &given, several)?;
    let norm = norm(a, 3, false)?;
    let Some((&last, rest)) = dims.split_last() else { return fail("at least one axis must be transformed") };
    let mut x = promoted(e, *a.tensor(0)?, false)?;
    for (&n, &d) in n.iter().zip(&dims) {
        if let Some(n) = n {
            x = resized(e, x, d, n)?;
        }
    }
    let half = emit!(e, "aten._fft_r2c.default", x, [last as i64], norm, true)?;
    if !several {
        return Ok(smallvec![emit!(e, "aten._conj.default", half)?]);
    }
    let half = emit!(e, "aten.conj_physical.default", half)?;
    if rest.is_empty() {
        return Ok(smallvec![half]);
    }
    let rest: Vec<i64> = rest.iter().map(|&d| d as i64).collect();
    Ok(smallvec![emit!(e, "aten._fft_c2c.default", half, rest, norm, false)?])
}
fn ihfft(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    to_hermitian(e, a, false)
}
fn ihfftn(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    to_hermitian(e, a, true)
}

fn shift(e: &mut dyn Emit, a: &ValArgs<'_>, more: i64) -> Vals {
    let x = *a.tensor(0)?;
    let t = e.meta(x);
    let dims = a.opt_ints(1)?.unwrap_or_else(|| (0..t.rank() as i64).collect());
    let mut by = Vec::new();
    for &d in &dims {
        by.push((t.sizes()[t.layout.dim(d)?] + more) / 2);
    }
    Ok(smallvec![emit!(e, "aten.roll.default", x, by, dims)?])
}
fn fftshift(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    shift(e, a, 0)
}
fn ifftshift(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    shift(e, a, 1)
}

/// `(n, d, dtype, …)`
fn rfftfreq(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (n, d, dtype) = (a.int(0)?, a.float(1)?, a.opt_dtype(2)?.unwrap_or(DType::F32));
    let v = emit!(e, "aten.arange.default", n / 2 + 1, dtype)?;
    Ok(smallvec![emit!(e, "aten.mul.Tensor", v, 1.0 / (n as f64 * d))?])
}
fn fftfreq(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (n, d, dtype) = (a.int(0)?, a.float(1)?, a.opt_dtype(2)?.unwrap_or(DType::F32));
    ensure!(n >= 0, "fftfreq: n must not be negative, got {n}");
    let up = emit!(e, "aten.arange.default", (n + 1) / 2, dtype)?;
    let down = emit!(e, "aten.arange.start", -(n / 2), 0, dtype)?;
    let v = emit!(e, "aten.cat.default", vec![up, down], 0)?;
    Ok(smallvec![emit!(e, "aten.mul.Tensor", v, 1.0 / (n as f64 * d))?])
}

pub(crate) static OPS: &[OpDef] = table![
    close(
        "_fft_c2c",
        c2c_infer,
        c2c,
        c2c_scratch,
        samples!(|| {
            let arg = crate::support::samples::IntoArg::arg;
            let mut out = raw_samples(DType::C64, arg(true));
            out.extend(raw_samples(DType::C128, arg(false)));
            out
        }),
    ),
    close(
        "_fft_r2c",
        r2c_infer,
        r2c,
        r2c_scratch,
        samples!(|| {
            let arg = crate::support::samples::IntoArg::arg;
            let mut out = raw_samples(DType::F32, arg(true));
            out.extend(raw_samples(DType::F64, arg(false)));
            out
        }),
    ),
    close("_fft_c2r", c2r_infer, c2r, c2r_scratch, samples!(s_fft_c2r)),
    close("unfold_backward", windows_infer, windows, crate::support::scratch::packed, samples!(s_unfold_backward)),
    composite!(fft, one_samples(ANY), "fft_fft"),
    composite!(ifft, one_samples(ANY), "fft_ifft"),
    composite!(rfft, one_samples(REALS), "fft_rfft"),
    composite!(irfft, one_samples(ANY), "fft_irfft"),
    composite!(fftn, many_samples(ANY), "fft_fftn"),
    composite!(ifftn, many_samples(ANY), "fft_ifftn"),
    composite!(rfftn, many_samples(REALS), "fft_rfftn"),
    composite!(irfftn, many_samples(ANY), "fft_irfftn"),
    composite!(fftn, many_samples(ANY), "fft_fft2"),
    composite!(ifftn, many_samples(ANY), "fft_ifft2"),
    composite!(rfftn, many_samples(REALS), "fft_rfft2"),
    composite!(irfftn, many_samples(ANY), "fft_irfft2"),
    composite!(hfft, one_samples(ANY), "fft_hfft"),
    composite!(ihfft, one_samples(REALS), "fft_ihfft"),
    composite!(hfftn, many_samples(ANY), "fft_hfft2"),
    composite!(ihfftn, many_samples(REALS), "fft_ihfft2"),
    composite!(hfftn, many_samples(ANY), "fft_hfftn"),
    composite!(ihfftn, many_samples(REALS), "fft_ihfftn"),
    composite!(fftshift, s_fft_fftshift(), "fft_fftshift"),
    composite!(ifftshift, s_fft_ifftshift(), "fft_ifftshift"),
    composite!(fftfreq, vec![sample![8], sample![7, 0.5], sample![5, 2.0, DType::F64]], "fft_fftfreq"),
    composite!(rfftfreq, vec![sample![8], sample![7, 0.5], sample![5, 2.0, DType::F64]], "fft_rfftfreq"),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family { ops: &[OPS, stft::OPS], gradients: &[], aliases: &[] };

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const SHAPE: [i64; 3] = [3, 4, 5];

    pub(crate) fn raw_samples(d: DType, last: restride_ir::SampleArg) -> Samples {
        let mut out = Samples::new();
        for (i, x) in forms(d, &SHAPE, 1).into_iter().enumerate() {
            for dims in [&[2i64][..], &[0], &[1, 2], &[2, 0]] {
                let mut s = sample![&x, dims, i as i64 % 3];
                s.args.push(last.clone());
                out.push(s);
            }
        }
        out
    }

    pub(crate) fn one_samples(d: &[DType]) -> Samples {
        let mut out = Samples::new();
        for &d in d {
            out.push(sample![tensor(d, &SHAPE, 1)]);
            out.push(sample![transposed(d, &SHAPE, 1), 6, 0]);
            out.push(sample![strided(d, &SHAPE, 1), 3, 1, "ortho"]);
            out.push(sample![tensor(d, &[8], 1), (), -1, "forward"]);
        }
        out.push(sample![tensor(d[0], &[8], 1), 0]);
        out.push(sample![tensor(d[0], &[8], 1), (), 0, "none"]);
        out
    }

    pub(crate) fn many_samples(d: &[DType]) -> Samples {
        let mut out = Samples::new();
        for &d in d {
            out.push(sample![tensor(d, &SHAPE, 1)]);
            out.push(sample![transposed(d, &SHAPE, 1), (), [0, 1]]);
            out.push(sample![tensor(d, &SHAPE, 1), [6, -1], [0, 2], "ortho"]);
            out.push(sample![tensor(d, &SHAPE, 1), [3, 4], [2, 0], "forward"]);
        }
        out.push(sample![tensor(DType::F32, &[], 1), (), [0]]);
        out
    }

    pub(crate) const ANY: &[DType] = &[DType::F32, DType::C64, DType::F64, DType::I64];

    pub(crate) const REALS: &[DType] = &[DType::F32, DType::F64, DType::I32];

    pub(crate) fn s_fft_c2r() -> Samples {
        let mut out = Samples::new();
        for dims in [&[2i64][..], &[1, 2], &[2, 0]] {
            let n = 2 * (SHAPE[dims[dims.len() - 1] as usize] - 1);
            out.push(sample![tensor(DType::C64, &SHAPE, 1), dims, 2, n]);
            out.push(sample![transposed(DType::C128, &SHAPE, 1), dims, 1, n + 1]);
        }
        out
    }

    pub(crate) fn s_unfold_backward() -> Samples {
        vec![
            sample![tensor(DType::F32, &[2, 4, 3], 1), [2, 9], 1, 3, 2],
            sample![transposed(DType::F64, &[4, 2, 3], 1), [6, 2], 0, 3, 1],
            sample![tensor(DType::F32, &[1], 1), &[] as &[i64], 0, 1, 1],
            sample![tensor(DType::F32, &[0], 1), &[] as &[i64], -1, 0, 1],
        ]
    }

    pub(crate) fn s_fft_fftshift() -> Samples {
        vec![sample![tensor(DType::F32, &SHAPE, 1)], sample![tensor(DType::F32, &SHAPE, 1), [2]]]
    }

    pub(crate) fn s_fft_ifftshift() -> Samples {
        vec![sample![tensor(DType::F32, &SHAPE, 1)], sample![tensor(DType::F32, &SHAPE, 1), [2]]]
    }
}

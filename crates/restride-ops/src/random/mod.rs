//! Random numbers and dropout. Draws come from a counter of our own; PyTorch's draws would need its generator.

mod dropout;
mod generator;
mod integers;

use crate::create::check_sizes;
use crate::support::promote::name;
use crate::support::strides::{dense_like, in_format};
use crate::support::{Metas, Result, ensure, fresh};
use restride_ir::{Args, Call, Ctx, MemoryFormat, Meta, OpDef, OpError};
use restride_kernels::random::{self as k, Distribution, Draws};
use restride_kernels::support::convert::gather;
use restride_kernels::support::rows::cells;
use restride_kernels::support::scratch::{Temp, room};
use restride_tensor::{DType, Layout};
use smallvec::smallvec;

/// The draws of a call.
pub(crate) fn draws(ctx: &Ctx) -> Draws {
    Draws::new(&[ctx.rng.seed, ctx.rng.call, ctx.rng.node as u64, ctx.rng.iteration])
}

/// The type of the only result.
pub(crate) fn one(meta: Meta) -> Metas {
    Ok(smallvec![meta])
}

pub(crate) fn numbers(dtype: DType) -> Result<()> {
    ensure!(dtype.is_float() || dtype.is_complex(), "random numbers are not implemented for '{}'", name(dtype));
    Ok(())
}
/// Refuses complex numbers and `bool`.
fn countable(dtype: DType) -> Result<()> {
    ensure!(!dtype.is_complex() && dtype != DType::Bool, "\"geometric_cpu\" not implemented for '{}'", name(dtype));
    Ok(())
}
/// Refuses types other than real floating-point ones.
pub(crate) fn real(dtype: DType) -> Result<()> {
    ensure!(dtype.is_float(), "expected a floating point type, got '{}'", name(dtype));
    Ok(())
}

/// Sizes at argument `at`, followed by the element type.
pub(crate) fn sized(a: &Args<'_, Meta>, at: usize, default: DType) -> Result<Meta> {
    let dtype = a.opt_dtype(at + 1)?.unwrap_or(default);
    let sizes = a.ints(at)?;
    check_sizes(dtype, &sizes)?;
    Ok(fresh(dtype, &sizes))
}
/// The type of argument 0, with element type and memory format from the options.
pub(crate) fn like(a: &Args<'_, Meta>, options: usize) -> Result<Meta> {
    let t = a.tensor(0)?;
    let format = a.opt_memory_format(options + 4)?.unwrap_or(MemoryFormat::Preserve);
    Ok(Meta::new(a.opt_dtype(options)?.unwrap_or(t.dtype), in_format(format, &t.layout)?))
}
/// Type of a result that replaces the content of argument 0.
pub(crate) fn same(a: &Args<'_, Meta>) -> Result<Meta> {
    let t = a.tensor(0)?;
    Ok(Meta::new(t.dtype, dense_like(&t.layout)))
}

fn infer_sized_floats(a: &Args<'_, Meta>) -> Metas {
    let m = sized(a, 0, DType::F32)?;
    numbers(m.dtype)?;
    one(m)
}
fn infer_like_floats(a: &Args<'_, Meta>) -> Metas {
    let m = like(a, 1)?;
    numbers(m.dtype)?;
    one(m)
}

fn draw(c: &Call<'_>, what: Distribution) -> Result<()> {
    k::draw(&draws(c.ctx), what, &c.outs[0], c.ctx.threads);
    Ok(())
}

/// Two parameters from positions, with defaults.
fn two<V>(a: &Args<'_, V>, at: usize, defaults: (f64, f64)) -> Result<(f64, f64)> {
    Ok((a.opt_float(at)?.unwrap_or(defaults.0), a.opt_float(at + 1)?.unwrap_or(defaults.1)))
}
fn uniform<V>(a: &Args<'_, V>) -> Result<Distribution> {
    let (from, to) = two(a, 1, (0.0, 1.0))?;
    ensure!(from <= to, "uniform_ expects to return a [from, to) range, but found from={from} > to={to}");
    Ok(Distribution::Uniform(from, to))
}
fn std(std: f64) -> Result<f64> {
    ensure!(std >= 0.0, "normal expects std >= 0.0, but found std {std}");
    Ok(std)
}
fn normal<V>(a: &Args<'_, V>) -> Result<Distribution> {
    let (mean, s) = two(a, 1, (0.0, 1.0))?;
    Ok(Distribution::Normal(mean, std(s)?))
}
fn log_normal<V>(a: &Args<'_, V>) -> Result<Distribution> {
    let (mean, s) = two(a, 1, (1.0, 2.0))?;
    ensure!(s > 0.0, "log_normal_ expects std > 0.0, but found std={s}");
    Ok(Distribution::LogNormal(mean, s))
}
fn cauchy<V>(a: &Args<'_, V>) -> Result<Distribution> {
    let (median, width) = two(a, 1, (0.0, 1.0))?;
    ensure!(width > 0.0, "cauchy_ expects sigma > 0.0, but found sigma={width}");
    Ok(Distribution::Cauchy(median, width))
}
fn exponential<V>(a: &Args<'_, V>) -> Result<Distribution> {
    let rate = a.opt_float(1)?.unwrap_or(1.0);
    ensure!(rate > 0.0, "exponential_ expects lambda > 0.0, but found lambda={rate}");
    Ok(Distribution::Exponential(rate))
}
fn geometric<V>(a: &Args<'_, V>) -> Result<Distribution> {
    let p = a.float(1)?;
    ensure!(p > 0.0 && p < 1.0, "geometric_ expects p to be in (0, 1), but got p={p}");
    Ok(Distribution::Geometric(p))
}
fn bernoulli_p<V>(a: &Args<'_, V>) -> Result<Distribution> {
    let p = a.opt_float(1)?.unwrap_or(0.5);
    ensure!((0.0..=1.0).contains(&p), "bernoulli_ expects p to be in [0, 1], but got p={p}");
    Ok(Distribution::Bernoulli(p))
}

/// Row-major layout in argument 0's element type.
fn row_major(a: &Args<'_, Meta>) -> Result<Meta> {
    let t = a.tensor(0)?;
    Ok(fresh(t.dtype, t.sizes()))
}
fn infer_bernoulli(a: &Args<'_, Meta>) -> Metas {
    real(a.tensor(0)?.dtype)?;
    one(row_major(a)?)
}
fn run_bernoulli(c: &Call<'_>) -> Result<()> {
    let p = gather::<f64>(*c.args.tensor(0)?);
    k::bernoulli(&draws(c.ctx), &p, &c.outs[0], c.ctx.threads).map_err(OpError::new)
}
fn infer_bernoulli_tensor(a: &Args<'_, Meta>) -> Metas {
    let (t, p) = (a.tensor(0)?, a.tensor(1)?);
    real(p.dtype)?;
    ensure!(!t.dtype.is_complex(), "bernoulli is not implemented for '{}'", name(t.dtype));
    let sizes = crate::support::strides::broadcast_sizes(&[t.sizes(), p.sizes()])?;
    ensure!(sizes[..] == *t.sizes(), "output with shape {:?} doesn't match the broadcast shape {sizes:?}", t.sizes());
    one(same(a)?)
}
fn run_bernoulli_tensor(c: &Call<'_>) -> Result<()> {
    let p = spread(c.args.tensor(1)?, c.outs[0].sizes());
    k::bernoulli(&draws(c.ctx), &p, &c.outs[0], c.ctx.threads).map_err(OpError::new)
}

/// The elements of a view broadcast to `sizes`, in row-major order.
fn spread(v: &restride_tensor::View<'_>, sizes: &[i64]) -> Temp<f64> {
    let each = gather::<f64>(*v);
    if v.sizes() == sizes {
        return each;
    }
    let from = cells(&crate::support::strides::broadcast(&Layout::contiguous(v.sizes()), sizes));
    from.iter().map(|&c| each[c as usize]).collect()
}
fn spread_scratch(v: &Meta, sizes: &[i64]) -> usize {
    let n = sizes.iter().product::<i64>() as usize;
    let wide = if v.sizes() == sizes { 0 } else { room::<isize>(n) + room::<f64>(n) };
    room::<f64>(v.layout.numel() as usize) + wide
}
fn bernoulli_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(spread_scratch(a.tensor(0)?, outs[0].sizes()))
}
fn bernoulli_tensor_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(spread_scratch(a.tensor(1)?, outs[0].sizes()))
}
fn normals_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let of = |i: usize| a.as_tensor(i).map_or(room::<f64>(1), |v| spread_scratch(v, outs[0].sizes()));
    Ok(of(0) + of(1))
}
fn poisson_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    Ok(room::<f64>(a.tensor(0)?.layout.numel() as usize))
}

/// Shape rule of `normal` with tensors as means, standard deviations, or both.
fn infer_normals(a: &Args<'_, Meta>) -> Metas {
    let (mean, s) = (a.tensor(0).ok(), a.tensor(1).ok());
    let own: Vec<&Meta> = [mean, s].into_iter().flatten().collect();
    if let Ok(x) = a.float(1) {
        std(x)?;
    }
    for t in &own {
        numbers(t.dtype)?;
    }
    ensure!(s.is_none_or(|s| !s.dtype.is_complex()), "normal expects standard deviation to be non-complex");
    let sizes = crate::support::strides::broadcast_sizes(&own.iter().map(|m| m.sizes()).collect::<Vec<_>>())?;
    let dtype = own.iter().map(|m| m.dtype).reduce(DType::promote).unwrap_or(DType::F32);
    ensure!(!dtype.is_complex(), "normal of complex means is not supported");
    one(fresh(dtype, &sizes))
}
fn run_normals(c: &Call<'_>) -> Result<()> {
    let sizes = c.outs[0].sizes();
    let read = |i: usize| match c.args.as_tensor(i) {
        Some(v) => Ok(spread(v, sizes)),
        None => Ok::<_, OpError>(Temp::filled(1, c.args.float(i)?)),
    };
    let (mean, s) = (read(0)?, read(1)?);
    ensure!(s.iter().all(|&s| s >= 0.0), "normal expects all elements of std >= 0.0");
    k::normals(&draws(c.ctx), &mean, &s, &c.outs[0], c.ctx.threads).map_err(OpError::new)?;
    Ok(())
}

fn infer_multinomial(a: &Args<'_, Meta>) -> Metas {
    let p = a.tensor(0)?;
    real(p.dtype)?;
    let n = a.int(1)?;
    ensure!(matches!(p.layout.rank(), 1 | 2), "prob_dist must be 1 or 2 dim");
    let categories = p.sizes()[p.layout.rank() - 1];
    ensure!(n > 0, "cannot sample n_sample <= 0 samples");
    ensure!(categories > 0, "cannot sample from no categories");
    ensure!(
        a.opt_bool(2)?.unwrap_or(false) || n <= categories,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
    );
    let mut sizes = p.sizes()[..p.layout.rank() - 1].to_vec();
    sizes.push(n);
    one(fresh(DType::I64, &sizes))
}
fn run_multinomial(c: &Call<'_>) -> Result<()> {
    let replacement = c.args.opt_bool(2)?.unwrap_or(false);
    k::multinomial(&draws(c.ctx), c.args.tensor(0)?, replacement, &c.outs[0]).map_err(OpError::new)
}

fn multinomial_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let replacement = a.opt_bool(2)?.unwrap_or(false);
    Ok(k::multinomial_room(&a.tensor(0)?.layout, replacement, outs[0].layout.numel()))
}

fn infer_poisson(a: &Args<'_, Meta>) -> Metas {
    real(a.tensor(0)?.dtype)?;
    one(row_major(a)?)
}
fn run_poisson(c: &Call<'_>) -> Result<()> {
    k::poisson(&draws(c.ctx), c.args.tensor(0)?, &c.outs[0], c.ctx.threads).map_err(OpError::new)
}

fn infer_gamma(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    ensure!(matches!(t.dtype, DType::F32 | DType::F64), "\"gamma\" not implemented for '{}'", name(t.dtype));
    one(row_major(a)?)
}
fn run_gamma(c: &Call<'_>) -> Result<()> {
    let shapes = gather::<f64>(*c.args.tensor(0)?);
    k::gammas(&draws(c.ctx), &shapes, &c.outs[0], c.ctx.threads);
    Ok(())
}
fn run_dirichlet(c: &Call<'_>) -> Result<()> {
    let t = c.args.tensor(0)?;
    let row = t.sizes().last().map_or(1, |&n| n as usize);
    k::dirichlet(&draws(c.ctx), &gather::<f64>(*t), row, &c.outs[0]);
    Ok(())
}
fn dirichlet_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    Ok(2 * room::<f64>(a.tensor(0)?.layout.numel() as usize))
}

/// `binomial(count, prob)`. The result has the count's sizes row-major, unless the probabilities broadcast it.
fn infer_binomial(a: &Args<'_, Meta>) -> Metas {
    let (n, p) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(n.dtype.is_float(), "binomial only supports floating-point dtypes for count, got: {}", name(n.dtype));
    ensure!(p.dtype.is_float(), "binomial only supports floating-point dtypes for prob, got: {}", name(p.dtype));
    ensure!(n.dtype == p.dtype, "Found dtype {} but expected {}", name(p.dtype), name(n.dtype));
    ensure!(matches!(n.dtype, DType::F32 | DType::F64), "\"binomial_cpu\" not implemented for '{}'", name(n.dtype));
    let sizes = crate::support::strides::broadcast_sizes(&[n.sizes(), p.sizes()])?;
    if sizes[..] == *n.sizes() {
        return one(fresh(n.dtype, &sizes));
    }
    one(Meta::new(n.dtype, crate::support::strides::pointwise(&[&n.layout, &p.layout])?))
}
fn run_binomial(c: &Call<'_>) -> Result<()> {
    let sizes = c.outs[0].sizes();
    let (n, p) = (spread(c.args.tensor(0)?, sizes), spread(c.args.tensor(1)?, sizes));
    k::binomial(&draws(c.ctx), &n, &p, &c.outs[0], c.ctx.threads).map_err(OpError::new)
}

/// Declares an operator that draws: schema, shape rule, kernel, sample calls.
macro_rules! random {
    ($schema:literal, $infer:expr, $run:expr, $samples:expr) => {
        $crate::random::random!($schema, $infer, $run, |_, _| Ok(0), $samples)
    };
    ($schema:literal, $infer:expr, $run:expr, $scratch:expr, $samples:expr) => {
        restride_ir::OpDef {
            random: true,
            exactness: restride_ir::Exactness::Random,
            ..$crate::support::close($schema, $infer, $run, $scratch, samples!($samples))
        }
    };
}
/// Declares draws that do not depend on elements of operands.
macro_rules! drawn {
    ($($declared:tt)*) => {
        $crate::random::random!($($declared)*).graded(restride_ir::Grad::Zero)
    };
}
pub(crate) use {drawn, random};

/// Declares an operator that fills argument 0 with draws from a distribution.
macro_rules! content {
    ($schema:literal, $what:ident) => {
        content!($schema, $what, real)
    };
    ($schema:literal, $what:ident, $types:path) => {
        drawn!(
            $schema,
            |a| {
                $what(a)?;
                let m = same(a)?;
                $types(m.dtype)?;
                one(m)
            },
            |c| draw(c, $what(&c.args)?),
            contents
        )
    };
}

pub(crate) static OPS: &[OpDef] = table![
    drawn!("rand", infer_sized_floats, |c| draw(c, Distribution::Uniform(0.0, 1.0)), sized_samples),
    drawn!("randn", infer_sized_floats, |c| draw(c, Distribution::Normal(0.0, 1.0)), sized_samples),
    drawn!("rand_like", infer_like_floats, |c| draw(c, Distribution::Uniform(0.0, 1.0)), likes),
    drawn!("randn_like", infer_like_floats, |c| draw(c, Distribution::Normal(0.0, 1.0)), likes),
    drawn!(
        "normal.float_float",
        |a| {
            let dtype = a.opt_dtype(4)?.unwrap_or(DType::F32);
            numbers(dtype)?;
            std(a.float(1)?)?;
            let sizes = a.ints(2)?;
            check_sizes(dtype, &sizes)?;
            one(fresh(dtype, &sizes))
        },
        |c| draw(c, Distribution::Normal(c.args.float(0)?, std(c.args.float(1)?)?)),
        || vec![sample![1.0, 2.0, [2, 3]], sample![0.0, -1.0, [2]], sample![0.0, 1.0, [2], (), DType::F64]]
    ),
    drawn!("normal.Tensor_Tensor", infer_normals, run_normals, normals_scratch, || normal_tensors()[0].clone())
        .failing(),
    drawn!("normal.Tensor_float", infer_normals, run_normals, normals_scratch, || normal_tensors()[1].clone()),
    drawn!("normal.float_Tensor", infer_normals, run_normals, normals_scratch, || normal_tensors()[2].clone())
        .failing(),
    content!("normal_functional", normal, numbers),
    content!("uniform", uniform, numbers),
    content!("log_normal", log_normal),
    content!("cauchy", cauchy),
    content!("exponential", exponential),
    content!("geometric", geometric, countable),
    drawn!("bernoulli", infer_bernoulli, run_bernoulli, bernoulli_scratch, probabilities).failing(),
    drawn!(
        "bernoulli.Tensor",
        infer_bernoulli_tensor,
        run_bernoulli_tensor,
        bernoulli_tensor_scratch,
        bernoulli_tensors
    )
    .failing(),
    drawn!(
        "bernoulli.p",
        |a| {
            bernoulli_p(a)?;
            ensure!(!a.tensor(0)?.dtype.is_complex(), "bernoulli is not implemented for complex numbers");
            one(row_major(a)?)
        },
        |c| draw(c, bernoulli_p(&c.args)?),
        s_bernoulli_p
    ),
    drawn!("multinomial", infer_multinomial, run_multinomial, multinomial_scratch, multinomials).failing(),
    drawn!("poisson", infer_poisson, run_poisson, poisson_scratch, probabilities).failing(),
    random!("_standard_gamma", infer_gamma, run_gamma, poisson_scratch, probabilities),
    random!("_sample_dirichlet", infer_gamma, run_dirichlet, dirichlet_scratch, probabilities),
    drawn!("binomial", infer_binomial, run_binomial, normals_scratch, trials).failing(),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family =
    crate::Family { ops: &[OPS, integers::OPS, generator::OPS, dropout::OPS], gradients: &[], aliases: &[] };

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn sized_samples() -> Vec<Sample> {
        let mut out = vec![sample![[2, 3]], sample![NO], sample![[0, 4]], sample![[2, -1]]];
        out.extend([DType::F64, DType::F16, DType::BF16, DType::C64].map(|d| sample![[3], d]));
        out
    }

    /// Sample tensors of every layout.
    pub(crate) fn forms() -> Vec<RawTensor> {
        vec![
            tensor(F, &[2, 3], 1),
            transposed(F, &[2, 3, 4], 2),
            strided(F, &[3, 4], 3),
            expanded(F, &[3, 4], 4),
            tensor(F, &[], 5),
            tensor(F, &[0, 2], 6),
            tensor(DType::F64, &[3], 7),
            tensor(DType::F16, &[3], 8),
            tensor(DType::BF16, &[3], 9),
        ]
    }

    pub(crate) fn likes() -> Vec<Sample> {
        let mut out: Vec<Sample> = forms().into_iter().map(|t| sample![t]).collect();
        out.push(sample![transposed(F, &[2, 3], 1), DType::F64, (), (), (), MemoryFormat::Contiguous]);
        out.push(sample![tensor(DType::I64, &[2, 3], 1), DType::F32]);
        out
    }

    /// Sample calls with a parameter that every distribution accepts.
    pub(crate) fn contents() -> Vec<Sample> {
        forms().into_iter().map(|t| sample![t, 0.5]).collect()
    }

    pub(crate) fn probabilities() -> Vec<Sample> {
        forms().into_iter().map(|t| sample![in_range(t.dtype(), t.layout().clone(), 1, 0.0, 1.0)]).collect()
    }

    pub(crate) fn trials() -> Vec<Sample> {
        let p = |d: DType, layout: Layout| in_range(d, layout, 1, 0.0, 1.0);
        let n = |d: DType, layout: Layout| in_range(d, layout, 2, -1.0, 40.0);
        let turned = || Layout::permuted(&[2, 3], &[1, 0]);
        vec![
            sample![n(F, Layout::contiguous(&[2, 3])), p(F, turned())],
            sample![n(DType::F64, turned()), p(DType::F64, turned())],
            sample![n(F, Layout::contiguous(&[2, 3])), p(F, Layout::contiguous(&[3]))],
            sample![n(F, Layout::contiguous(&[2, 1])), p(F, turned())],
            sample![n(F, Layout::contiguous(&[0])), p(F, Layout::contiguous(&[1]))],
            sample![n(F, Layout::contiguous(&[2])), p(DType::F64, Layout::contiguous(&[2]))],
            sample![n(DType::F16, Layout::contiguous(&[2])), p(DType::F16, Layout::contiguous(&[2]))],
            sample![tensor(DType::I64, &[2], 1), p(F, Layout::contiguous(&[2]))],
        ]
    }

    pub(crate) fn bernoulli_tensors() -> Vec<Sample> {
        let p = |sizes: &[i64]| in_range(F, Layout::contiguous(sizes), 1, 0.0, 1.0);
        vec![
            sample![transposed(F, &[2, 3], 1), p(&[3])],
            sample![tensor(DType::I64, &[2, 3], 1), p(&[2, 3])],
            sample![tensor(DType::Bool, &[2, 3], 1), p(&[])],
        ]
    }

    pub(crate) fn normal_tensors() -> [Vec<Sample>; 3] {
        let s = |sizes: &[i64]| in_range(F, Layout::contiguous(sizes), 1, 0.0, 1.0);
        let mean = transposed(F, &[2, 3], 1);
        [
            vec![sample![&mean, s(&[3])], sample![tensor(F, &[3], 1), s(&[2, 3])]],
            vec![sample![&mean], sample![&mean, 0.0], sample![&mean, -1.0]],
            vec![sample![1.0, s(&[2, 3])], sample![0.0, s(&[])]],
        ]
    }

    pub(crate) fn multinomials() -> Vec<Sample> {
        let p = |sizes: &[i64]| in_range(F, Layout::contiguous(sizes), 1, 0.1, 1.0);
        vec![
            sample![p(&[5]), 3],
            sample![p(&[2, 5]), 5],
            sample![p(&[2, 5]), 7, true],
            sample![p(&[2, 5]), 7],
            sample![p(&[2, 3, 5]), 1],
            sample![ints(&[1, 2], &[2]), 1],
        ]
    }

    pub(crate) fn s_bernoulli_p() -> Samples {
        let mut out = contents();
        out.push(sample![tensor(DType::I64, &[3], 1), 0.5]);
        out.push(sample![tensor(DType::Bool, &[3], 1), 1.5]);
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::lookup;

    #[test]
    fn in_place_forms_have_twins_that_run() {
        for (name, twin) in [
            ("aten.dropout_.default", "aten.dropout.default"),
            ("aten.alpha_dropout_.default", "aten.alpha_dropout.default"),
            ("aten.uniform_.default", "aten.uniform.default"),
            ("aten.normal_.default", "aten.normal_functional.default"),
            ("aten.random_.from", "aten.random.from"),
            ("aten.random_.default", "aten.random.default"),
            ("aten.bernoulli_.float", "aten.bernoulli.p"),
            ("aten.bernoulli_.Tensor", "aten.bernoulli.Tensor"),
            ("aten.exponential_.default", "aten.exponential.default"),
            ("aten.geometric_.default", "aten.geometric.default"),
        ] {
            let op = lookup(name).unwrap();
            assert_eq!(op.twin().map(|t| t.op.name()), Some(twin), "{name}");
            assert!(op.can_run(), "{name}");
        }
    }
}

//! `gradient`: numerical derivatives along dimensions, on even or given coordinates.

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Emit, OpDef, Scalar, Val};
use smallvec::smallvec;

/// Elements `from..to` of a dimension; negative numbers count from the end.
fn part(e: &mut dyn Emit, x: Val, d: usize, from: i64, to: i64) -> Result<Val> {
    let n = sizes(e, x)[d];
    let at = |i: i64| if i < 0 { i + n } else { i };
    emit!(e, "aten.slice.Tensor", x, d as i64, at(from), if to == 0 { n } else { at(to) }, 1)
}

fn differentiated(x: &[i64], d: usize, order: i64) -> Result<()> {
    ensure!(matches!(order, 1 | 2), "torch.gradient only supports edge_order=1 and edge_order=2.");
    ensure!(x[d] > order, "torch.gradient expected each dimension size to be at least edge_order+1");
    Ok(())
}

/// A weighted sum of parts.
fn mixed(e: &mut dyn Emit, parts: &[(Val, f64)]) -> Result<Val> {
    let mut sum = None;
    for &(v, w) in parts {
        let v = emit!(e, "aten.mul.Scalar", v, w)?;
        sum = Some(match sum {
            Some(s) => emit!(e, "aten.add.Tensor", s, v)?,
            None => v,
        });
    }
    sum.ok_or_else(|| restride_ir::OpError::new("a sum of nothing"))
}

/// Derivative on even coordinates with distance `dx`.
fn even(e: &mut dyn Emit, x: Val, d: usize, dx: Scalar, order: i64) -> Result<Val> {
    differentiated(&sizes(e, x), d, order)?;
    let (after, before) = (part(e, x, d, 2, 0)?, part(e, x, d, 0, -2)?);
    let center = emit!(e, "aten.sub.Tensor", after, before)?;
    let center = emit!(e, "aten.div.Scalar", center, dx)?;
    let center = emit!(e, "aten.div.Scalar", center, 2)?;
    let ends = if order == 1 {
        let pair = |e: &mut dyn Emit, from: i64, middle: i64, to: i64| -> Result<Val> {
            let (l, r) = (part(e, x, d, from, middle)?, part(e, x, d, middle, to)?);
            emit!(e, "aten.sub.Tensor", r, l)
        };
        [pair(e, 0, 1, 2)?, pair(e, -2, -1, 0)?]
    } else {
        let first = [part(e, x, d, 0, 1)?, part(e, x, d, 1, 2)?, part(e, x, d, 2, 3)?];
        let last = [part(e, x, d, -3, -2)?, part(e, x, d, -2, -1)?, part(e, x, d, -1, 0)?];
        [
            mixed(e, &[(first[0], -1.5), (first[1], 2.0), (first[2], -0.5)])?,
            mixed(e, &[(last[0], 0.5), (last[1], -2.0), (last[2], 1.5)])?,
        ]
    };
    let first = emit!(e, "aten.div.Scalar", ends[0], dx)?;
    let last = emit!(e, "aten.div.Scalar", ends[1], dx)?;
    emit!(e, "aten.cat.default", vec![first, center, last], d as i64)
}

/// Applies an arithmetic operator to distances.
fn binary(e: &mut dyn Emit, op: &str, a: Val, b: Val) -> Result<Val> {
    emit!(e, &format!("aten.{op}.Tensor"), a, b)
}

/// Derivative on given coordinates.
fn uneven(e: &mut dyn Emit, x: Val, d: usize, at: Val, order: i64) -> Result<Val> {
    let own = sizes(e, x);
    let points = sizes(e, at);
    ensure!(
        points.len() == 1,
        "torch.gradient expected each element of spacing to have one dimension, but got an element with {} dimensions!",
        points.len()
    );
    differentiated(&own, d, order)?;
    ensure!(
        points[0] == own[d],
        "torch.gradient expected spacing to have as many elements as dimension {d} of the input, {} not {}",
        own[d],
        points[0]
    );
    let rank = own.len();
    let dx = emit!(e, "aten.diff.default", at, 1, 0)?;
    // Three neighbours, with weights that are vectors along the dimension.
    let weighted = |e: &mut dyn Emit, weights: [Val; 3], parts: [Val; 3]| -> Result<Val> {
        let mut sum = None;
        for (w, p) in weights.into_iter().zip(parts) {
            let mut shape = vec![1; rank];
            shape[d] = sizes(e, w)[0];
            let w = emit!(e, "aten.view.default", w, shape)?;
            let v = binary(e, "mul", w, p)?;
            sum = Some(match sum {
                Some(s) => binary(e, "add", s, v)?,
                None => v,
            });
        }
        sum.ok_or_else(|| restride_ir::OpError::new("a sum of nothing"))
    };
    let (d1, d2) = (part(e, dx, 0, 0, -1)?, part(e, dx, 0, 1, 0)?);
    let both = binary(e, "add", d1, d2)?;
    let product = binary(e, "mul", d1, d2)?;
    let (below, above) = (binary(e, "mul", d1, both)?, binary(e, "mul", d2, both)?);
    let minus = emit!(e, "aten.neg.default", d2)?;
    let apart = binary(e, "sub", d2, d1)?;
    let weights = [binary(e, "div", minus, below)?, binary(e, "div", apart, product)?, binary(e, "div", d1, above)?];
    let parts = [part(e, x, d, 0, -2)?, part(e, x, d, 1, -1)?, part(e, x, d, 2, 0)?];
    let center = weighted(e, weights, parts)?;
    let ends = if order == 1 {
        let pair = |e: &mut dyn Emit, from: i64, middle: i64, to: i64, dx: Val| -> Result<Val> {
            let (l, r) = (part(e, x, d, from, middle)?, part(e, x, d, middle, to)?);
            let v = binary(e, "sub", r, l)?;
            let mut shape = vec![1; rank];
            shape[d] = 1;
            let dx = emit!(e, "aten.view.default", dx, shape)?;
            binary(e, "div", v, dx)
        };
        let (first, last) = (part(e, dx, 0, 0, 1)?, part(e, dx, 0, -1, 0)?);
        [pair(e, 0, 1, 2, first)?, pair(e, -2, -1, 0, last)?]
    } else {
        // At an end, the slope of the parabola through three points; `p` and `q` are their distances from outside in.
        let end = |e: &mut dyn Emit, p: Val, q: Val, sign: f64, parts: [Val; 3]| -> Result<Val> {
            let both = binary(e, "add", p, q)?;
            let twice = binary(e, "add", p, both)?;
            let (pb, qb, pq) = (binary(e, "mul", p, both)?, binary(e, "mul", q, both)?, binary(e, "mul", p, q)?);
            let weights = [binary(e, "div", twice, pb)?, binary(e, "div", both, pq)?, binary(e, "div", p, qb)?];
            let mut signed = Vec::new();
            for (w, s) in weights.into_iter().zip([-sign, sign, -sign]) {
                signed.push(emit!(e, "aten.mul.Scalar", w, s)?);
            }
            weighted(e, [signed[0], signed[1], signed[2]], parts)
        };
        let first = [part(e, x, d, 0, 1)?, part(e, x, d, 1, 2)?, part(e, x, d, 2, 3)?];
        let last = [part(e, x, d, -1, 0)?, part(e, x, d, -2, -1)?, part(e, x, d, -3, -2)?];
        let (p, q) = (part(e, dx, 0, 0, 1)?, part(e, dx, 0, 1, 2)?);
        let (r, s) = (part(e, dx, 0, -1, 0)?, part(e, dx, 0, -2, -1)?);
        [end(e, p, q, 1.0, first)?, end(e, r, s, -1.0, last)?]
    };
    emit!(e, "aten.cat.default", vec![ends[0], center, ends[1]], d as i64)
}

/// Source of the coordinates.
enum Spacing {
    One(Scalar),
    Each(Vec<Scalar>),
    Points(Vec<Val>),
}

/// Derivatives along the dimensions at argument `at`, either a list, one dimension, or all.
fn slopes(e: &mut dyn Emit, a: &ValArgs<'_>, spacing: Spacing, dim: usize) -> Vals {
    let x = *a.tensor(0)?;
    let layout = e.meta(x).layout;
    let order = a.int(dim + 1)?;
    let given: Option<Vec<i64>> = match a.0.get(dim) {
        None | Some(restride_ir::Arg::None) => None,
        Some(restride_ir::Arg::Scalars(_)) => Some(a.ints(dim)?.to_vec()),
        Some(_) => Some(vec![a.int(dim)?]),
    };
    let dims = match given {
        None => (0..layout.rank()).collect(),
        Some(list) => {
            let mut dims = Vec::new();
            for d in list {
                let d = layout.dim(d)?;
                ensure!(!dims.contains(&d), "dim {d} appears multiple times in the list of dims");
                dims.push(d);
            }
            dims
        }
    };
    let count = match &spacing {
        Spacing::One(_) => dims.len(),
        Spacing::Each(s) => s.len(),
        Spacing::Points(p) => p.len(),
    };
    ensure!(
        count == dims.len(),
        "torch.gradient expected spacing to be unspecified, a scalar, or a list of length {}, but got a list of length {count}",
        dims.len()
    );
    let mut out = smallvec![];
    for (i, &d) in dims.iter().enumerate() {
        out.push(match &spacing {
            Spacing::One(dx) => even(e, x, d, *dx, order)?,
            Spacing::Each(s) => even(e, x, d, s[i], order)?,
            Spacing::Points(p) => uneven(e, x, d, p[i], order)?,
        });
    }
    Ok(out)
}

fn by_one(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    slopes(e, a, Spacing::One(a.opt_scalar(1)?.unwrap_or(Scalar::Int(1))), 2)
}
fn by_none(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    slopes(e, a, Spacing::One(Scalar::Int(1)), 1)
}
fn by_each(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    slopes(e, a, Spacing::Each(a.numbers(1)?.to_vec()), 2)
}
fn by_points(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    slopes(e, a, Spacing::Points(a.tensors(1)?.into_iter().copied().collect()), 2)
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(by_one, one_samples(), "gradient.scalarint"),
    composite!(by_one, one_list_samples(), "gradient.scalararray"),
    composite!(by_none, list_samples(), "gradient.array"),
    composite!(by_each, each_samples(false), "gradient.scalarrayint"),
    composite!(by_each, each_samples(true), "gradient.scalarrayarray"),
    composite!(by_points, point_samples(false), "gradient.tensorarrayint"),
    composite!(by_points, point_samples(true), "gradient.tensorarray"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn points(n: usize) -> restride_tensor::RawTensor {
        let data: Vec<f32> = (0..n).map(|i| (i * i) as f32 * 0.5 + i as f32).collect();
        restride_tensor::RawTensor::from_slice(&data, &[n as i64])
    }

    pub(crate) fn one_samples() -> Samples {
        vec![
            sample![tensor(F, &[4, 5], 1)],
            sample![transposed(F, &[4, 5], 1), 0.5, 1],
            sample![tensor(DType::I64, &[6], 1), 2.0, 0, 2],
            sample![tensor(DType::C64, &[4], 1), (), -1],
            sample![tensor(F, &[1, 5], 1)],
            sample![tensor(F, &[4], 1), (), 0, 3],
        ]
    }

    pub(crate) fn list_samples() -> Samples {
        vec![
            sample![tensor(F, &[4, 5], 1), [0, 1]],
            sample![tensor(F, &[4, 5], 1), [1], 2],
            sample![tensor(F, &[4, 5], 1), [1, 1]],
        ]
    }

    pub(crate) fn one_list_samples() -> Samples {
        vec![sample![tensor(F, &[4, 5], 1), 0.5, [0, 1]], sample![tensor(F, &[4, 5], 1), 2, [-1], 2]]
    }

    pub(crate) fn each_samples(list: bool) -> Samples {
        let x = tensor(F, &[4, 5], 1);
        if list {
            vec![sample![&x, [0.5, 2.0], [0, 1]], sample![&x, [0.5], [0], 2], sample![&x, [0.5], [0, 1]]]
        } else {
            vec![sample![&x, [0.5, 2.0]], sample![&x, [0.5], 1]]
        }
    }

    pub(crate) fn point_samples(list: bool) -> Samples {
        let x = tensor(F, &[4, 5], 1);
        if list {
            vec![sample![&x, vec![points(4), points(5)], [0, 1]], sample![&x, vec![points(5)], [1], 2]]
        } else {
            vec![
                sample![&x, vec![points(4), points(5)]],
                sample![&x, vec![points(4)], 0, 2],
                sample![&x, vec![points(5)], 0],
            ]
        }
    }
}

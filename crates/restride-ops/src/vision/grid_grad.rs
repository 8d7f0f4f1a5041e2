//! Gradients of grid sampling.
//!
//! A sample is a sum over taps: a few elements per dimension, weighted by their distance from the position. The rule
//! differentiates it by the image and, through the slopes of the weights, by the positions.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, op, product, rule};
use restride_ir::{DType, Dim, Expr, ExprFn};

/// One tap of a dimension: its index (as a float, possibly outside the image), its weight, and the weight's slope by the
/// position.
struct GridWeight<'c> {
    at: T<'c>,
    weight: Option<T<'c>>,
    slope: Option<T<'c>>,
}

/// Positions, and their slopes by the values of the grid.
#[derive(Clone, Copy)]
struct GridPositions<'c> {
    at: T<'c>,
    slope: Option<T<'c>>,
}

/// Interpolation, padding and alignment of a dimension.
#[derive(Clone, Copy)]
struct GridMode {
    interpolation: i64,
    padding: i64,
    aligned: bool,
}

/// The last index of a dimension.
fn last(n: &Expr) -> Expr {
    n.minus(&Expr::Int(1))
}

/// Maps a position into the image: clamps it to the edge (1) or reflects it (2).
fn inside<'c>(p: GridPositions<'c>, n: &Expr, how: GridMode) -> GridPositions<'c> {
    let c = p.at.cx();
    let mut p = p;
    let slope = |old: Option<T<'c>>, by: T<'c>| Some(old.map_or(by, |s| s * by));
    if how.padding == 2 {
        // The span of one element is 0; any other divisor does, as the clamp below leaves one position.
        let (low, span) = if how.aligned { (0.0, last(n).larger(&Expr::Int(1))) } else { (-0.5, n.clone()) };
        let off = p.at - low;
        let sign = op!(c, "aten.where.Scalar", off.is("lt", 0), -1.0, 1.0).to(p.at.dtype());
        let off = off.unary("aten.abs.default");
        let turns = off.over(&span).unary("aten.floor.default");
        let extra = off - turns.times(&span);
        let odd = op!(c, "aten.remainder.Scalar", turns, 2).is("eq", 1);
        let at = op!(c, "aten.where.self", odd, op!(c, "aten.rsub.Scalar", extra, &span), extra) + low;
        let back = op!(c, "aten.where.Scalar", odd, -1.0, 1.0).to(p.at.dtype());
        p = GridPositions { at, slope: slope(p.slope, sign * back) };
    }
    if how.padding != 0 {
        let beyond = op!(c, "aten.logical_or.default", p.at.is("le", 0), p.at.is("ge", last(n)));
        let kept = op!(c, "aten.where.Scalar", beyond, 0.0, 1.0).to(p.at.dtype());
        let at = op!(c, "aten.clamp.default", p.at, 0, last(n));
        p = GridPositions { at, slope: slope(p.slope, kept) };
    }
    p
}

/// Weights and slopes of the four cubic taps around a position at distance `t` after the second tap.
fn cubic<'c>(t: T<'c>) -> Vec<(T<'c>, T<'c>)> {
    let a = -0.75;
    // Polynomials for distances up to 1, and from 1 to 2.
    let near = |x: T<'c>| ((x * (a + 2.0) - (a + 3.0)) * x * x + 1.0, (x * (3.0 * (a + 2.0)) - 2.0 * (a + 3.0)) * x);
    let far = |x: T<'c>| (((x - 5.0) * x + 8.0) * x * a - 4.0 * a, ((x * 3.0 - 10.0) * x + 8.0) * a);
    let turned = |(w, s): (T<'c>, T<'c>)| (w, -s);
    vec![far(t + 1.0), near(t), turned(near(1.0 - t)), turned(far(2.0 - t))]
}

/// The taps of a dimension of `n` elements for the values of the grid.
fn taps<'c>(given: T<'c>, n: &Expr, how: GridMode) -> Vec<GridWeight<'c>> {
    let scale = Expr::call(ExprFn::TrueDiv, vec![if how.aligned { last(n) } else { n.clone() }, Expr::Int(2)]);
    let at = (given + 1.0).times(&scale) - if how.aligned { 0.0 } else { 0.5 };
    let floor = |t: T<'c>| t.unary("aten.floor.default");
    if how.interpolation == 2 {
        // Each tap is mapped into the image separately.
        let low = floor(at);
        let one = |(k, (weight, slope)): (usize, (T<'c>, T<'c>))| {
            let place = inside(GridPositions { at: low + (k as f64 - 1.0), slope: None }, n, how);
            GridWeight { at: place.at, weight: Some(weight), slope: Some(slope.times(&scale)) }
        };
        return cubic(at - low).into_iter().enumerate().map(one).collect();
    }
    let place = inside(GridPositions { at, slope: None }, n, how);
    if how.interpolation == 1 {
        return vec![GridWeight { at: place.at.unary("aten.round.default"), weight: None, slope: None }];
    }
    let low = floor(place.at);
    let part = place.at - low;
    let up = place.slope.map_or_else(|| op!(part.cx(), "aten.full_like.default", part, &scale), |s| s.times(&scale));
    vec![
        GridWeight { at: low, weight: Some(1.0 - part), slope: Some(-up) },
        GridWeight { at: low + 1.0, weight: Some(part), slope: Some(up) },
    ]
}

/// `grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)`
fn grid_sampler<'c>(c: &'c Cx<'c>, dims: usize) {
    let (x, grid) = (c.arg(0), c.arg(1));
    let (batch, channels) = (x.size(0), x.size(1));
    let how = GridMode { interpolation: c.int(2), padding: c.int(3), aligned: c.flag(4) };
    let points = product(&grid.sizes()[1..=dims]);
    let wide = if matches!(x.dtype(), DType::F16 | DType::BF16) { DType::F32 } else { x.dtype() };
    let flat = |t: T<'c>| t.to(wide).reshape(vec![batch.clone(), channels.clone(), product(&t.sizes()[2..])]);
    let (image, g) = (flat(x), flat(c.grad()));
    let sizes = x.sizes()[2..].to_vec();
    // The grid lists the position in the last dimension first.
    let each: Vec<Vec<GridWeight<'c>>> = (0..dims)
        .map(|d| {
            let at = grid.to(wide).select(-1, (dims - 1 - d) as i64).reshape(vec![batch.clone(), points.clone()]);
            taps(at, &sizes[d], how)
        })
        .collect();
    let mut of_image = image.zeros_like();
    let mut of_places: Vec<Option<T<'c>>> = vec![None; dims];
    for corner in 0..each.iter().map(Vec::len).product::<usize>() {
        let mut rest = corner;
        let chosen: Vec<&GridWeight<'c>> = each
            .iter()
            .map(|taps| {
                let tap = &taps[rest % taps.len()];
                rest /= taps.len();
                tap
            })
            .collect();
        let mut index: Option<T<'c>> = None;
        let mut there: Option<T<'c>> = None;
        for (tap, n) in chosen.iter().zip(&sizes) {
            let seen = op!(c, "aten.logical_and.default", tap.at.is("ge", 0), tap.at.is("le", last(n)));
            there = Some(there.map_or(seen, |t| op!(c, "aten.logical_and.default", t, seen)));
            // A position outside of the image, as a NaN is, reads any element: its part is left out below.
            let at = op!(c, "aten.clamp.default", tap.at, 0, last(n));
            let at = op!(c, "aten.nan_to_num.default", at, 0.0).to(DType::I64);
            index = Some(index.map_or(at, |i| op!(c, "aten.mul.Scalar", i, n) + at));
        }
        let (Some(index), Some(there)) = (index, there) else { return c.fail("an image without dimensions") };
        let spread = vec![batch.clone(), channels.clone(), points.clone()];
        let index = index.unsqueeze(1).expand(spread);
        let times = |all: &mut dyn Iterator<Item = T<'c>>| all.reduce(|a, b| a * b);
        if c.needs(0) {
            let weight = times(&mut chosen.iter().filter_map(|t| t.weight));
            let part = weight.map_or(g, |w| g * w.unsqueeze(1)).only(there.unsqueeze(1));
            of_image = op!(c, "aten.scatter_add.default", of_image, 2, index, part);
        }
        if c.needs(1) && chosen.iter().all(|t| t.slope.is_some()) {
            let value = op!(c, "aten.gather.default", image, 2, index);
            let along = (value * g).sum(vec![1], false).only(there);
            for (d, place) in of_places.iter_mut().enumerate() {
                let others = chosen.iter().enumerate().filter_map(|(k, t)| if k == d { t.slope } else { t.weight });
                let part = times(&mut others.into_iter()).map_or(along, |w| along * w);
                *place = Some(place.map_or(part, |t| t + part));
            }
        }
    }
    c.give(0, || of_image.reshape(x.sizes()));
    c.give(1, || {
        let zeros = || op!(c, "aten.full.default", vec![batch.clone(), points.clone()], 0, wide);
        let parts: Vec<T<'c>> = of_places.iter().rev().map(|p| p.unwrap_or_else(zeros)).collect();
        op!(c, "aten.stack.default", parts, -1).reshape(grid.sizes())
    });
}

pub(crate) static GRADS: Rules =
    &[(&["grid_sampler_2d"], rule!(|c| grid_sampler(c, 2))), (&["grid_sampler_3d"], rule!(|c| grid_sampler(c, 3)))];

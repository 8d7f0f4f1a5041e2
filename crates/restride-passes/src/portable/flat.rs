//! Writes into regions that no chain of views shows: `index_put` on the base as one run of cells.

use crate::build::Builder;
use restride_ir::{Arg, DType, Dim, Dims, Expr, Layout, TensorType, ValueId};
use restride_tensor::{by_stride, self_overlaps};

/// The base with the region's cells replaced, if its cells are dense and the region has none of them twice.
pub(super) fn put(b: &mut Builder<'_>, base: ValueId, region: &Layout<Expr>, value: ValueId) -> Option<ValueId> {
    let ty = b.graph.tensor(base).clone();
    let order = in_order(&ty.layout)?;
    let single = region.known().is_some_and(|l| self_overlaps(&l) == Some(false)) || restride_tensor::nested(region);
    if !single || b.graph.tensor(value).dtype != ty.dtype {
        return None;
    }
    let of = |dtype: DType, sizes: &[Expr]| TensorType::new(dtype, Layout::contiguous(sizes));
    let permuted = ty.layout.permute(&order).ok()?;
    let turned = !order.is_sorted();
    let mut cells = base;
    if turned {
        let dims = Arg::Scalars(order.iter().map(|d| Expr::Int(*d)).collect());
        cells =
            b.call("aten.permute.default", vec![Arg::Value(cells), dims], TensorType::new(ty.dtype, permuted.clone()));
    }
    cells = b.reshape(cells, of(ty.dtype, &[ty.layout.numel()]));
    let index = index(b, region, &region.offset.minus(&ty.layout.offset));
    let value = b.reshape(value, of(ty.dtype, &[region.numel()]));
    let args = vec![Arg::Value(cells), Arg::Values(vec![Some(index)]), Arg::Value(value)];
    let mut made = b.call("aten.index_put.default", args, of(ty.dtype, &[ty.layout.numel()]));
    made = b.reshape(made, of(ty.dtype, &permuted.sizes));
    if turned {
        let mut back = vec![Expr::Int(0); order.len()];
        order.iter().enumerate().for_each(|(i, d)| back[*d as usize] = Expr::Int(i as i64));
        made = b.call("aten.permute.default", vec![Arg::Value(made), Arg::Scalars(back)], ty.clone());
    }
    Some(b.declare(made, &ty))
}

/// The order of dimensions in which a layout is one run of cells.
fn in_order(l: &Layout<Expr>) -> Option<Dims<i64>> {
    let mut order: Dims<i64> = (0..l.rank() as i64).collect();
    if !l.is_contiguous() {
        let known = l.known()?;
        by_stride(&mut order, |d| known.strides[d as usize]);
    }
    l.permute(&order).ok()?.is_contiguous().then_some(order)
}

/// The cells of a region in its logical order, from `start` on.
fn index(b: &mut Builder<'_>, region: &Layout<Expr>, start: &Expr) -> ValueId {
    let ty = |sizes: &[Expr]| TensorType::new(DType::I64, Layout::contiguous(sizes));
    let moving: Vec<(&Expr, &Expr)> = region.sizes.iter().zip(&region.strides).filter(|(n, _)| !n.is(1)).collect();
    let mut sum: Option<(ValueId, Vec<Expr>)> = None;
    for (i, (n, stride)) in moving.iter().enumerate() {
        let from = if i == 0 { start.clone() } else { Expr::Int(0) };
        let args = [from.clone(), from.plus(&n.times(stride)), (*stride).clone()].map(Arg::Scalar).to_vec();
        let mut line = b.call("aten.arange.start_step", args, ty(std::slice::from_ref(*n)));
        let mut sizes = vec![(*n).clone()];
        sizes.resize(moving.len() - i, Expr::Int(1));
        line = b.reshape(line, ty(&sizes));
        sum = Some(match sum {
            None => (line, sizes),
            Some((before, mut all)) => {
                all[i] = (*n).clone();
                (b.call("aten.add.Tensor", vec![Arg::Value(before), Arg::Value(line)], ty(&all)), all)
            }
        });
    }
    match sum {
        Some((sum, _)) => b.reshape(sum, ty(&[region.numel()])),
        None => {
            let args = vec![Arg::Scalars(vec![Expr::Int(1)]), Arg::Scalar(start.clone()), Arg::DType(DType::I64)];
            b.call("aten.full.default", args, ty(&[Expr::Int(1)]))
        }
    }
}

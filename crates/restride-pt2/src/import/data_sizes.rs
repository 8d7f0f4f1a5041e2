//! Results whose sizes are data and that torch.export declares otherwise than PyTorch returns them.

use super::nodes::GraphImporter;
use restride_ir::{Arg, Dim, Expr, Layout, Op, Origin, Result, Scalar, TensorType, Type};
use std::sync::Arc;

/// Settles the distinct slices along a dimension. `unique_consecutive` over the last one has the operand's sizes after the
/// result's, since the exporter computes `shape[:dim] + [n] + shape[dim + 1:]` with `dim = -1`; the counts have size `n`. In
/// memory the dimension is the first.
pub(super) fn settle(importer: &GraphImporter<'_>, op: Op, args: &[Arg], results: &mut [(String, Type)]) {
    let dim = match op.name() {
        "aten.unique_consecutive.default" => args.get(3),
        "aten.unique_dim.default" | "aten.unique_dim_consecutive.default" => args.get(1),
        _ => return,
    };
    let (Some(Arg::Value(v)), Some(Arg::Scalar(dim))) = (args.first(), dim) else { return };
    let [(_, Type::Tensor(values)), _, (_, counts)] = results else { return };
    let Some(rank) = importer.value_type(*v).tensor().map(|t| t.rank()) else { return };
    let Some(Scalar::Int(dim)) = dim.constant() else { return };
    if rank == 0 || !(-(rank as i64)..rank as i64).contains(&dim) {
        return;
    }
    if dim == -1 && values.rank() == 2 * rank {
        values.layout = Layout::contiguous(&values.layout.sizes[..rank]);
        if let Type::Tensor(counts) = counts {
            counts.layout = Layout::contiguous(&values.layout.sizes[rank - 1..]);
        }
    }
    if values.rank() == rank {
        let d = dim.rem_euclid(rank as i64) as usize;
        let mut sizes = values.layout.sizes.to_vec();
        sizes[..=d].rotate_right(1);
        let mut strides = Layout::contiguous(&sizes).strides.to_vec();
        strides[..=d].rotate_left(1);
        values.layout.strides = strides.into_iter().collect();
    }
}

impl GraphImporter<'_> {
    /// Adds `nonzero` and views of its columns for a call that returns them one by one; false for any other call.
    pub(super) fn columns_of(
        &mut self,
        op: Op,
        args: &[Arg],
        results: &[(String, Type)],
        origin: &Arc<Origin>,
    ) -> Result<bool> {
        let ("aten.nonzero_numpy.default" | "aten.where.default", [x]) = (op.name(), args) else { return Ok(false) };
        // One column, of any operand, shares its memory with no other.
        let ([(_, Type::Tensor(first)), _, ..], true) = (results, results.iter().all(|r| r.1.tensor().is_some()))
        else {
            return Ok(false);
        };
        let [n] = &first.layout.sizes[..] else { return Ok(false) };
        let (nonzero, unbind) = (self.operator("aten.nonzero.default")?, self.operator("aten.unbind.int")?);
        let (n, one, dtype) = (n.clone(), Expr::Int(1), first.dtype);
        let sizes = [n.clone(), Expr::Int(results.len() as i64)];
        let found = TensorType::new(dtype, Layout::strided(&sizes, &[one.clone(), n.clone()], Expr::Int(0)));
        let named = vec![(self.fresh("nonzero"), Type::Tensor(found))];
        let id = self.add(nonzero, vec![x.clone()], named, origin.clone());
        let found = self.value_of(id);
        self.sized_by_data(found);
        let columns = results.iter().enumerate().map(|(j, (name, _))| {
            let at = n.times(&Expr::Int(j as i64));
            let column = Layout::strided(std::slice::from_ref(&n), std::slice::from_ref(&one), at);
            (self.fresh(name), Type::Tensor(TensorType::new(dtype, column)))
        });
        let columns = columns.collect();
        let id = self.add(unbind, vec![Arg::Value(found), Arg::Scalar(one)], columns, origin.clone());
        for (k, (name, _)) in results.iter().enumerate() {
            self.bind(name.clone(), self.graph().nodes[id].results[k]);
        }
        Ok(true)
    }
}

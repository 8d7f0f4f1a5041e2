//! Types and aliases of results in eager PyTorch.

use crate::{Arg, Args, Meta, Op, ViewOutcome, write_order::fastest_first};
use restride_tensor::{Dims, Layout, Scalar};

impl Op {
    /// Types of a call's results in eager PyTorch, by the view rule or the shape function; `None` if neither decides.
    pub fn eager_metas(self, args: &[Arg<Meta, Scalar>]) -> Option<Vec<Meta>> {
        if let Some(rule) = self.def().view {
            let number = |s: &Scalar| match s {
                Scalar::Int(_) | Scalar::Bool(_) => Ok(s.as_i64()),
                _ => Err(()),
            };
            let numbers: Vec<Arg<Meta, i64>> =
                args.iter().map(|a| a.try_map(|m| Ok(m.clone()), number)).collect::<Result<_, ()>>().ok()?;
            match (rule.known)(&Args(&numbers)).ok()? {
                ViewOutcome::Views(types) => return Some(types.into_vec()),
                ViewOutcome::Copy => {}
                ViewOutcome::Unknown => return None,
            }
        }
        let rule = self.def().infer?;
        Some(rule(&Args(args)).ok()?.into_vec())
    }
}

impl Op {
    /// Whether PyTorch may return an operand, or a view of one, undeclared: it decomposes some operators into views
    /// (`einsum` of one operand, `meshgrid`), and some return their operand.
    pub fn may_pass_through(self) -> bool {
        self.def().decompose.is_some() || self.def().may_return_operand
    }
}

impl Meta {
    /// Whether element types, sizes and strides are equal; strides of dimensions of size 1 do not count.
    pub fn same_strides(&self, other: &Meta) -> bool {
        let (a, b) = (&self.layout, &other.layout);
        self.dtype == other.dtype
            && a.sizes == b.sizes
            && (0..a.rank()).all(|i| a.sizes[i] == 1 || a.strides[i] == b.strides[i])
    }
}

/// Layout of `empty_like`: the strides of a dense layout, else dense strides in the same order of dimensions.
pub fn dense_like(l: &Layout) -> Layout {
    if l.is_dense() {
        return Layout::strided(&l.sizes, &l.strides, 0);
    }
    let perm = fastest_first(&l.sizes, &[&l.strides]);
    let mut strides: Dims<i64> = Dims::<i64>::from_elem(1, l.rank());
    let mut next = 1;
    for &d in &perm {
        strides[d] = next;
        next *= l.sizes[d].max(1);
    }
    Layout::strided(&l.sizes, &strides, 0)
}

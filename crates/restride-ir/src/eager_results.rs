//! What PyTorch's own kernels give.

use crate::{Arg, Args, Meta, Op, ViewOutcome, write_order::fastest_first};
use restride_tensor::{Dims, Layout, Scalar};

impl Op {
    /// Types of the results of a call in eager PyTorch, by the view rule where it gives views and by the shape rule
    /// otherwise; `None` if neither tells.
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
    /// Whether PyTorch may return an operand, or a view of one, although no schema declares it: some operators are composed of
    /// views (`einsum` of one operand, `meshgrid`), and some return what they are given.
    pub fn may_pass_through(self) -> bool {
        self.def().decompose.is_some() || self.def().may_return_operand
    }
}

impl Meta {
    /// Whether elements lie alike: element type, sizes, and strides but for dimensions of one index, whose strides mean
    /// nothing.
    pub fn lies_like(&self, other: &Meta) -> bool {
        let (a, b) = (&self.layout, &other.layout);
        self.dtype == other.dtype
            && a.sizes == b.sizes
            && (0..a.rank()).all(|i| a.sizes[i] == 1 || a.strides[i] == b.strides[i])
    }
}

/// What `empty_like` makes of a layout: its strides if it is dense, otherwise dense strides in its order.
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

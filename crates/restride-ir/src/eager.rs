//! What PyTorch's own kernels give.

use crate::{Arg, Args, Meta, Op, ViewOutcome};
use restride_tensor::Scalar;

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
    /// Whether PyTorch may give an operand, or a view of one, as a result although no declaration says so: it composes some
    /// operators of views (`einsum` of one operand, `meshgrid`), and `conj_physical` gives real tensors back.
    pub fn may_pass_through(self) -> bool {
        self.def().decompose.is_some() || self.schema().name == "conj_physical"
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

//! What PyTorch's own kernels give.

use crate::{Arg, Args, Meta, Op, ViewOutcome, visits::fastest_first};
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
    /// Whether PyTorch may give an operand, or a view of one, as a result although no declaration says so: it composes some
    /// operators of views (`einsum` of one operand, `meshgrid`), and `conj_physical` gives real tensors back.
    pub fn may_pass_through(self) -> bool {
        self.def().decompose.is_some() || self.schema().name == "conj_physical"
    }

    /// Whether this is a view that not every strides allow.
    pub fn asks_for_strides(self) -> bool {
        matches!(
            self.name(),
            "aten.view.default"
                | "aten._unsafe_view.default"
                | "aten._reshape_alias.default"
                | "aten.view.dtype"
                | "aten.view_as_complex.default"
                | "aten.view_as.default"
                | "aten.unflatten.int"
        )
    }

    /// Whether this is the one functional operator (`copy`) whose in-place form reads and writes through lazy bits. Others
    /// are given copies of lazily mapped operands, with the bits applied, and what they write to such a copy is copied back.
    pub fn maps_bits(self) -> bool {
        self.schema().namespace == "aten" && self.schema().name == "copy"
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

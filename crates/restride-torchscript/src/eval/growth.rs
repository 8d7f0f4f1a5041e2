//! Lists to which a loop on data appends: their items are rows of one tensor, and their length is a number that a run learns.

use super::Evaluator;
use crate::record::TensorRef;
use crate::value::{KeywordArgs, PyValue};
use restride_ir::{Arg, Dim, Error, Expr, ExprFn, Result};

/// Refuses a list whose length data decides.
pub(super) fn fixed_length(value: &PyValue) -> Result<()> {
    match value {
        PyValue::List(l) if l.borrow().iter().any(|i| matches!(i, PyValue::Rows(_))) => {
            Err(Error::unsupported("reading items of a list to which a loop appends as often as data decides")
                .help("join the list with torch.stack or torch.cat, and index the tensor"))
        }
        _ => Ok(()),
    }
}

/// The number of items.
pub(super) fn length(items: &[PyValue]) -> Expr {
    items.iter().fold(Expr::Int(0), |n, item| match item {
        PyValue::Rows(t) => n.plus(&t.ty().layout.sizes[0]),
        _ => n.plus(&Expr::Int(1)),
    })
}

impl Evaluator<'_, '_> {
    /// `torch.stack` and `torch.cat` of a list whose length data decides; `None` for other calls.
    pub(super) fn joined_rows(
        &mut self,
        name: &str,
        args: &[PyValue],
        kwargs: &KeywordArgs,
    ) -> Result<Option<PyValue>> {
        let Some(list @ PyValue::List(items)) = args.first() else { return Ok(None) };
        if fixed_length(list).is_ok() || !matches!(name, "stack" | "cat" | "concat" | "concatenate") {
            return Ok(None);
        }
        let dim = kwargs.iter().find(|k| &*k.0 == "dim").map(|k| &k.1).or(args.get(1));
        let dim = match dim {
            Some(d) => self.known_int(d, "a dimension")?,
            None => 0,
        };
        let items = items.borrow().clone();
        let some = Expr::call(ExprFn::Gt, vec![length(&items), Expr::Int(0)]);
        let text = format!("{name} expects a non-empty TensorList");
        self.rec.call_named("aten._assert_scalar.default", vec![Arg::Scalar(some), Arg::Str(text.into())])?;
        let mut parts: Vec<Option<TensorRef>> = Vec::new();
        for item in &items {
            parts.push(Some(match (item, name == "stack") {
                (PyValue::Tensor(t), true) => {
                    self.rec.tensor("aten.unsqueeze.default", vec![Arg::Value(t.clone()), Arg::Scalar(Expr::Int(0))])?
                }
                (PyValue::Tensor(t), false) => t.clone(),
                (PyValue::Rows(t), true) => t.clone(),
                (PyValue::Rows(t), false) if dim == 0 && t.rank() > 1 => {
                    let flat = vec![Arg::Value(t.clone()), Arg::Scalar(Expr::Int(0)), Arg::Scalar(Expr::Int(1))];
                    self.rec.tensor("aten.flatten.using_ints", flat)?
                }
                (PyValue::Rows(_), false) => {
                    return Err(Error::unsupported(format!(
                        "{name} over dimension {dim} of a list to which a loop appends as often as data decides"
                    ))
                    .help("use torch.stack, or torch.cat over dimension 0"));
                }
                (other, _) => return Err(Error::unsupported(format!("{name} of a list with {}", other.kind()))),
            }));
        }
        let mut out = self.rec.tensor("aten.cat.default", vec![Arg::Values(parts)])?;
        if name == "stack" && dim != 0 {
            let moved = vec![Arg::Value(out), Arg::Scalar(Expr::Int(0)), Arg::Scalar(Expr::Int(dim))];
            out = self.rec.tensor("aten.movedim.int", moved)?;
        }
        Ok(Some(PyValue::Tensor(out)))
    }
}

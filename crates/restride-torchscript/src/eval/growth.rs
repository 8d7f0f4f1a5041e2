//! Lists to which a loop on data appends: their items are rows of one tensor, and their length is a number that a run learns.

use super::Evaluator;
use super::joins::{Joined, Merged};
use crate::record::TensorRef;
use crate::value::{KeywordArgs, PyValue};
use restride_ir::{Arg, DType, Dim, Error, Expr, ExprFn, Result};

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

/// The element type and the sizes of an item.
fn row_type(item: &PyValue) -> Option<(DType, Vec<Expr>)> {
    match item {
        PyValue::Tensor(t) => Some((t.dtype(), t.ty().layout.sizes.to_vec())),
        PyValue::Rows(t) => Some((t.dtype(), t.ty().layout.sizes[1..].to_vec())),
        _ => None,
    }
}

impl Evaluator<'_, '_> {
    /// The items that one of two branches adds to a list, as rows of one tensor.
    pub(super) fn either_rows(&mut self, joined: &mut Joined, items: [&[PyValue]; 2]) -> Result<Merged> {
        let all = || items.iter().copied().flatten();
        let types: Option<Vec<(DType, Vec<Expr>)>> = all().map(row_type).collect();
        let row = match types.as_deref() {
            Some([row, more @ ..]) if more.iter().all(|t| t == row) && row.1.iter().all(|n| self.rec.known_here(n)) => {
                row.clone()
            }
            _ => {
                let why = "a branch on data gives lists of different lengths, whose items are not tensors of one type";
                return Ok(Merged::Poison(why.into()));
            }
        };
        let mut both = Vec::new();
        for (which, items) in items.into_iter().enumerate() {
            let (rows, shown) = self.in_body(joined, which, |e| e.stacked(items, &row))?;
            joined.shown.extend(shown.into_iter().map(|t| (joined.pairs.len(), t)));
            both.push(rows);
        }
        joined.pairs.push([both[0].clone(), both[1].clone()]);
        Ok(Merged::Rows(joined.pairs.len() - 1))
    }

    /// Items as rows of one tensor, and those whose memory is seen outside of the body under construction.
    fn stacked(&mut self, items: &[PyValue], row: &(DType, Vec<Expr>)) -> Result<(TensorRef, Vec<TensorRef>)> {
        let mut parts: Vec<Option<TensorRef>> = Vec::new();
        let mut shown = Vec::new();
        for item in items {
            let (PyValue::Tensor(t) | PyValue::Rows(t)) = item else {
                return Err(Error::invalid("a list of rows with another item"));
            };
            if self.rec.shows_outside(t) {
                shown.push(t.clone());
            }
            let part = match item {
                PyValue::Rows(_) => t.clone(),
                _ => {
                    self.rec.tensor("aten.unsqueeze.default", vec![Arg::Value(t.clone()), Arg::Scalar(Expr::Int(0))])?
                }
            };
            parts.push(Some(part));
        }
        let rows = match &parts[..] {
            [] => {
                let sizes = std::iter::once(Expr::Int(0)).chain(row.1.iter().cloned()).collect();
                self.rec.tensor("aten.zeros.default", vec![Arg::Scalars(sizes), Arg::DType(row.0)])?
            }
            [Some(one)] => one.clone(),
            _ => self.rec.tensor("aten.cat.default", vec![Arg::Values(parts)])?,
        };
        Ok((rows, shown))
    }

    /// An item of a list whose length data decides; its memory may be that of a tensor that the list got.
    pub(super) fn item_of_rows(&mut self, items: &[PyValue], index: &PyValue) -> Result<PyValue> {
        let plain = items.iter().take_while(|v| !matches!(v, PyValue::Rows(_))).count();
        let index = self.number(index)?;
        if let Expr::Int(i) = index
            && usize::try_from(i).is_ok_and(|i| i < plain)
        {
            return Ok(items[i as usize].clone());
        }
        let types: Option<Vec<(DType, Vec<Expr>)>> = items.iter().map(row_type).collect();
        let Some(row) = types.and_then(|t| t.first().cloned()) else {
            return Err(Error::unsupported("reading an item of a list of different values whose length data decides"));
        };
        let (rows, _) = self.stacked(items, &row)?;
        let args = vec![Arg::Value(rows), Arg::Scalar(Expr::Int(0)), Arg::Scalar(index)];
        let item = self.rec.tensor("aten.select.int", args)?;
        for given in items {
            if let PyValue::Tensor(t) | PyValue::Rows(t) = given {
                self.rec.may_share(&item, t);
            }
        }
        Ok(PyValue::Tensor(item))
    }

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
            let moved = self.rec.tensor("aten.movedim.int", moved)?;
            let row_major = Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous);
            out = self.rec.tensor("aten.clone.default", vec![Arg::Value(moved), row_major])?;
        }
        Ok(Some(PyValue::Tensor(out)))
    }
}

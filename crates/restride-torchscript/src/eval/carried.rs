//! Variables that a loop on data carries: each is a tree of tensors and numbers, which the loop has as tensors.

use super::Evaluator;
use super::branches::{is_flag, same};
use crate::record::TensorRef;
use crate::value::{Fields, PyValue};
use restride_ir::{Arg, DType, Error, Expr, Result};
use std::rc::Rc;
use std::sync::Arc;

/// How the code sees a carried value.
pub(super) enum CarriedShape {
    Tensor,
    Number,
    Tuple(Vec<CarriedShape>, Option<Rc<Fields>>),
    List(Vec<CarriedShape>),
    /// A value that is the same in each iteration, so that the loop does not have it.
    Fixed(PyValue),
}

/// A variable that a loop carries.
pub(super) struct CarriedVariable {
    pub name: Arc<str>,
    pub shape: CarriedShape,
    /// The first of its tensors.
    pub first: usize,
}

impl CarriedVariable {
    /// Whether it is one tensor.
    pub fn is_tensor(&self) -> bool {
        matches!(self.shape, CarriedShape::Tensor)
    }
}

fn turned(name: &str, value: &PyValue) -> Error {
    Error::unsupported(format!("a loop whose end depends on data turns {name} into {}", value.kind()))
}

impl Evaluator<'_, '_> {
    /// The shape of a value before a loop; its tensors are added to `initial`.
    pub(super) fn carried_shape(&mut self, value: &PyValue, initial: &mut Vec<TensorRef>) -> Result<CarriedShape> {
        Ok(match value {
            PyValue::Tensor(t) => {
                initial.push(t.clone());
                CarriedShape::Tensor
            }
            PyValue::Num(e) => {
                initial.push(self.rec.scalar_tensor(e, super::numbers::dtype_of(e))?);
                CarriedShape::Number
            }
            PyValue::Tuple(items, fields) => {
                let parts = items.iter().map(|v| self.carried_shape(v, initial)).collect::<Result<_>>()?;
                CarriedShape::Tuple(parts, fields.clone())
            }
            PyValue::List(items) if super::growth::fixed_length(value).is_ok() => {
                let items = items.borrow().clone();
                CarriedShape::List(items.iter().map(|v| self.carried_shape(v, initial)).collect::<Result<_>>()?)
            }
            other => CarriedShape::Fixed(other.clone()),
        })
    }

    /// A carried value of these tensors. Numbers are read from them, or stay tensors in a condition.
    pub(super) fn carried_value(
        &mut self,
        shape: &CarriedShape,
        tensors: &mut impl Iterator<Item = TensorRef>,
        numbers: bool,
    ) -> Result<PyValue> {
        let mut next = || tensors.next().ok_or_else(|| Error::invalid("a loop carries too few tensors"));
        Ok(match shape {
            CarriedShape::Tensor => PyValue::Tensor(next()?),
            CarriedShape::Number => {
                let t = next()?;
                if numbers { PyValue::Num(self.rec.item(&t)?) } else { PyValue::Tensor(t) }
            }
            CarriedShape::Tuple(parts, fields) => {
                let parts =
                    parts.iter().map(|p| self.carried_value(p, tensors, numbers)).collect::<Result<Vec<_>>>()?;
                PyValue::Tuple(parts.into(), fields.clone())
            }
            CarriedShape::List(parts) => {
                PyValue::list(parts.iter().map(|p| self.carried_value(p, tensors, numbers)).collect::<Result<_>>()?)
            }
            CarriedShape::Fixed(value) => value.clone(),
        })
    }

    /// Adds the tensors of a carried value after an iteration to `left`, for the loop's `inputs`.
    pub(super) fn left_tensors(
        &mut self,
        name: &str,
        shape: &CarriedShape,
        value: &PyValue,
        inputs: &[TensorRef],
        left: &mut Vec<TensorRef>,
    ) -> Result<()> {
        let input = inputs.get(left.len());
        match (shape, value, input) {
            (CarriedShape::Tensor | CarriedShape::Number, PyValue::Tensor(t), _) => left.push(t.clone()),
            (CarriedShape::Number, PyValue::Num(e), Some(input)) => {
                left.push(self.rec.scalar_tensor(e, input.dtype())?);
            }
            (CarriedShape::Tensor, PyValue::Num(e), Some(input)) if e.is_bool() && is_flag(input) => {
                left.push(self.rec.scalar_tensor(e, DType::Bool)?);
            }
            (CarriedShape::Tuple(parts, _) | CarriedShape::List(parts), _, _) => {
                let items = value.items().filter(|items| items.len() == parts.len());
                let items = items.ok_or_else(|| turned(name, value))?;
                for (part, item) in parts.iter().zip(&items) {
                    self.left_tensors(name, part, item, inputs, left)?;
                }
            }
            (CarriedShape::Fixed(old), new, _) if same(old, new) => {}
            _ => return Err(turned(name, value)),
        }
        Ok(())
    }

    /// A value of the type of `like`, for a variable that nothing reads before an iteration sets it.
    pub(super) fn placeholder(&mut self, name: &str, like: &PyValue) -> Result<PyValue> {
        let many = |e: &mut Self, items: &[PyValue]| -> Result<Vec<PyValue>> {
            items.iter().map(|v| e.placeholder(name, v)).collect()
        };
        Ok(match like {
            PyValue::Tensor(t) => {
                let ty = t.ty();
                if let Some(size) = ty.layout.sizes.iter().find(|n| !self.rec.known_here(n)) {
                    return Err(Error::unsupported(format!(
                        "a loop whose end depends on data sets {name} to a tensor whose size is known in the loop alone: {size}"
                    )));
                }
                let args = vec![Arg::Scalars(ty.layout.sizes.to_vec()), Arg::DType(ty.dtype)];
                PyValue::Tensor(self.rec.tensor("aten.zeros.default", args)?)
            }
            PyValue::Num(e) if e.is_bool() => PyValue::bool(false),
            PyValue::Num(e) if e.is_float() => PyValue::float(0.0),
            PyValue::Num(_) => PyValue::Num(Expr::Int(0)),
            PyValue::Tuple(items, fields) => PyValue::Tuple(many(self, items)?.into(), fields.clone()),
            PyValue::List(items) => PyValue::list(many(self, &items.borrow().clone())?),
            other => other.clone(),
        })
    }
}

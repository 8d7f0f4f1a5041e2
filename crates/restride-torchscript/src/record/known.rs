//! Contents of small tensors that are known while the code is evaluated: sizes that travel as tensors, constants.

use super::call::CallArg;
use super::{Recorder, TensorRef};
use restride_exec::eager::{self, Tensor};
use restride_ir::{Arg, DType, Dim, Expr, ExprFn, Kernel, Op, Scalar};

/// Most elements of a tensor whose contents are followed.
const MAX_ELEMENTS: usize = 4096;

/// Contents of a tensor.
#[derive(Clone)]
pub enum Known {
    /// The elements.
    Data(Tensor),
    /// The one integer of a tensor of 64-bit integers, over symbols.
    Number(Expr),
}

impl Recorder<'_> {
    /// The contents of a tensor, if nothing wrote it since they were found.
    pub fn known(&self, t: &TensorRef) -> Option<Known> {
        let known = t.known.borrow();
        let (known, version) = known.as_ref()?;
        (*version == self.groups[self.root(t.group) as usize].0).then(|| known.clone())
    }

    /// Notes the contents of a tensor.
    pub fn set_known(&self, t: &TensorRef, known: Known) {
        let version = self.groups[self.root(t.group) as usize].0;
        *t.known.borrow_mut() = Some((known, version));
    }

    /// Notes the one element of a tensor.
    pub(super) fn set_known_number(&self, t: &TensorRef, e: &Expr) {
        let ty = t.ty();
        match e.constant() {
            Some(n) => {
                let call = vec![Arg::Scalar(n), Arg::DType(ty.dtype)];
                let made = eager::call_op("aten.scalar_tensor.default", &call);
                if let Some(data) = made.ok().and_then(|m| m.first().and_then(|v| v.tensor().cloned())) {
                    self.set_known(t, Known::Data(data));
                }
            }
            None if ty.dtype == DType::I64 && !e.is_float() && !e.is_bool() => {
                self.set_known(t, Known::Number(e.clone()));
            }
            None => {}
        }
    }

    /// The number in a tensor of one element, if it is known.
    pub fn known_number(&self, t: &TensorRef) -> Option<Expr> {
        match self.known(t)? {
            Known::Number(e) => Some(e),
            Known::Data(data) => match data.item().ok()? {
                Scalar::Complex(_) => None,
                n => Some(Expr::from(n)),
            },
        }
    }

    /// The elements of a tensor in logical order, if they are known.
    pub fn known_elements(&self, t: &TensorRef) -> Option<Vec<Expr>> {
        match self.known(t)? {
            Known::Number(e) => Some(vec![e]),
            Known::Data(data) => {
                let raw = data.to_raw().ok()?;
                let index = |mut n: usize| {
                    let mut out = vec![0; raw.layout().rank()];
                    for (d, size) in raw.layout().sizes.iter().enumerate().rev() {
                        out[d] = n as i64 % size.max(&1);
                        n /= (*size).max(1) as usize;
                    }
                    out
                };
                (0..raw.numel())
                    .map(|n| match raw.get(&index(n)) {
                        Scalar::Complex(_) => None,
                        n => Some(Expr::from(n)),
                    })
                    .collect()
            }
        }
    }

    /// Contents of the results of a call whose operands are known.
    pub(super) fn fold(&self, op: Op, args: &[CallArg]) -> Option<Vec<Known>> {
        let tensors: Vec<&TensorRef> = args.iter().flat_map(Arg::values).collect();
        if tensors.is_empty() {
            return None;
        }
        if op.is_mutable() || matches!(op.def().kernel, Kernel::Scalar(_) | Kernel::Dynamic(_)) {
            return None;
        }
        if tensors.iter().any(|t| self.known(t).is_none()) {
            return None;
        }
        if tensors.iter().any(|t| matches!(self.known(t), Some(Known::Number(_)))) {
            return self.fold_number(op, args).map(|e| vec![Known::Number(e)]);
        }
        let real = args.iter().map(|a| {
            a.try_map(
                |t| match self.known(t) {
                    Some(Known::Data(d)) if d.numel() <= MAX_ELEMENTS => Ok(d),
                    _ => Err(()),
                },
                |e| e.constant().ok_or(()),
            )
        });
        let real: Vec<Arg<Tensor, Scalar>> = real.collect::<Result<_, ()>>().ok()?;
        // An expanded result would take memory beyond bound.
        let metas: Vec<Arg<restride_ir::Meta, Scalar>> =
            real.iter().map(|a| a.map_values(|t| restride_ir::Meta::new(t.dtype(), t.layout()))).collect();
        let types = restride_ops::types(op, &metas).ok()?;
        if types.iter().any(|t| t.layout.numel() > MAX_ELEMENTS as i64) {
            return None;
        }
        let made = eager::call_op(op.name(), &real).ok()?;
        made.into_iter().map(|v| Some(Known::Data(v.tensor()?.clone()))).collect()
    }

    /// Integer arithmetic over symbols.
    fn fold_number(&self, op: Op, args: &[CallArg]) -> Option<Expr> {
        let one = |a: &CallArg| match a {
            Arg::Value(t) if t.dtype() == DType::I64 && t.rank() == 0 => self.known_number(t),
            Arg::Scalar(e) if !e.is_float() && !e.is_bool() => Some(e.clone()),
            _ => None,
        };
        let integer = |e: Option<Expr>| e.filter(|e| !e.is_float() && !e.is_bool());
        let schema = op.schema();
        if schema.namespace != "aten" {
            return None;
        }
        let a = integer(one(args.first()?))?;
        let b = || integer(one(args.get(1)?));
        Some(match (&schema.name[..], &schema.overload[..]) {
            ("add", _) => a.plus(&b()?.times(&one(args.get(2)?)?)),
            ("sub", _) => a.minus(&b()?.times(&one(args.get(2)?)?)),
            ("mul", _) => a.times(&b()?),
            ("floor_divide", _) => a.floor_div(&b()?),
            ("div", "Tensor_mode" | "Scalar_mode") if matches!(args.get(2), Some(Arg::Str(m)) if **m == *"floor") => {
                a.floor_div(&b()?)
            }
            ("remainder", _) => Expr::call(ExprFn::Mod, vec![a, b()?]),
            ("neg", _) => a.times(&Expr::Int(-1)),
            ("detach" | "clone" | "alias" | "lift_fresh_copy" | "contiguous", _) => a,
            ("to", _) | ("_to_copy", _) => {
                let dtypes = args.iter().filter_map(|a| if let Arg::DType(d) = a { Some(*d) } else { None });
                if dtypes.into_iter().all(|d| d == DType::I64) { a } else { return None }
            }
            _ => return None,
        })
    }
}

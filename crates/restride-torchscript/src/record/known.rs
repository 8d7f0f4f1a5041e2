//! SavedModule of small tensors that are known while the code is evaluated: sizes that travel as tensors, constants.

use super::call::CallArg;
use super::{Recorder, TensorRef};
use restride_exec::eager::{self, Tensor};
use restride_ir::{Arg, DType, Dim, Expr, ExprFn, Kernel, Op, Scalar};

/// Most elements of a tensor whose contents are followed.
const MAX_ELEMENTS: usize = 4096;

/// SavedModule of a tensor.
#[derive(Clone)]
pub enum KnownContent {
    /// The elements.
    Data(Tensor),
    /// The elements of a small tensor of 64-bit integers in logical order, over symbols, and its sizes.
    Numbers(Vec<Expr>, Vec<i64>),
}

/// Most elements of a tensor that is followed over symbols.
const MAX_NUMBERS: usize = 64;

impl Recorder<'_> {
    /// The contents of a tensor, if nothing wrote it since they were found.
    pub fn known(&self, t: &TensorRef) -> Option<KnownContent> {
        let known = t.known.borrow();
        let (known, version) = known.as_ref()?;
        (*version == self.groups[self.root(t.group) as usize].0).then(|| known.clone())
    }

    /// Notes the contents of a tensor.
    pub fn set_known(&self, t: &TensorRef, known: KnownContent) {
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
                    self.set_known(t, KnownContent::Data(data));
                }
            }
            None if ty.dtype == DType::I64 && !e.is_float() && !e.is_bool() => {
                self.set_known(t, KnownContent::Numbers(vec![e.clone()], Vec::new()));
            }
            None => {}
        }
    }

    /// The number in a tensor of one element, if it is known.
    pub fn known_number(&self, t: &TensorRef) -> Option<Expr> {
        match self.known(t)? {
            KnownContent::Numbers(mut e, _) => {
                if e.len() == 1 {
                    e.pop()
                } else {
                    None
                }
            }
            KnownContent::Data(data) => match data.item().ok()? {
                Scalar::Complex(_) => None,
                n => Some(Expr::from(n)),
            },
        }
    }

    /// The elements of a tensor in logical order, if they are known.
    pub fn known_elements(&self, t: &TensorRef) -> Option<Vec<Expr>> {
        match self.known(t)? {
            KnownContent::Numbers(e, _) => Some(e),
            KnownContent::Data(data) => {
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

    /// SavedModule of the results of a call whose operands are known.
    pub(super) fn fold(&self, op: Op, args: &[CallArg]) -> Option<Vec<KnownContent>> {
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
        if tensors.iter().any(|t| matches!(self.known(t), Some(KnownContent::Numbers(..)))) {
            return self.fold_numbers(op, args).map(|(e, sizes)| vec![KnownContent::Numbers(e, sizes)]);
        }
        let real = args.iter().map(|a| {
            a.try_map(
                |t| match self.known(t) {
                    Some(KnownContent::Data(d)) if d.numel() <= MAX_ELEMENTS => Ok(d),
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
        made.into_iter().map(|v| Some(KnownContent::Data(v.tensor()?.clone()))).collect()
    }

    /// Integer arithmetic over symbols, and movements of the numbers.
    fn fold_numbers(&self, op: Op, args: &[CallArg]) -> Option<(Vec<Expr>, Vec<i64>)> {
        let schema = op.schema();
        if schema.namespace != "aten" {
            return None;
        }
        let of = |t: &TensorRef| -> Option<(Vec<Expr>, Vec<i64>)> {
            if t.dtype() != DType::I64 {
                return None;
            }
            let sizes: Vec<i64> = t.ty().layout.sizes.iter().map(Dim::known).collect::<Option<_>>()?;
            let elements = self.known_elements(t)?;
            (elements.len() <= MAX_NUMBERS).then_some((elements, sizes))
        };
        let operand = |i: usize| match args.get(i)? {
            Arg::Value(t) => of(t),
            Arg::Scalar(e) if !e.is_float() && !e.is_bool() => Some((vec![e.clone()], Vec::new())),
            _ => None,
        };
        let known = |i: usize| match args.get(i) {
            Some(Arg::Scalar(Expr::Int(n))) => Some(*n),
            _ => None,
        };
        let pairs = |f: &dyn Fn(&Expr, &Expr) -> Expr| -> Option<(Vec<Expr>, Vec<i64>)> {
            let ((a, s), (b, t)) = (operand(0)?, operand(1)?);
            match (a.len(), b.len()) {
                (n, m) if s == t && n == m => Some((a.iter().zip(&b).map(|(a, b)| f(a, b)).collect(), s)),
                (_, 1) if t.len() <= s.len() => Some((a.iter().map(|a| f(a, &b[0])).collect(), s)),
                (1, _) if s.len() <= t.len() => Some((b.iter().map(|b| f(&a[0], b)).collect(), t)),
                _ => None,
            }
        };
        let alpha = |i: usize| match args.get(i) {
            Some(Arg::Scalar(e)) => e.clone(),
            _ => Expr::Int(1),
        };
        let all = |f: ExprFn| {
            let (a, _) = operand(0)?;
            let mut parts = a.into_iter();
            let first = parts.next()?;
            Some((vec![parts.fold(first, |x, y| Expr::call(f, vec![x, y]))], Vec::new()))
        };
        let list = || match args.first()? {
            Arg::Values(ts) => ts.iter().map(|t| of(t.as_ref()?)).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        match (&schema.name[..], &schema.overload[..]) {
            ("add", _) => pairs(&|a, b| a.plus(&b.times(&alpha(2)))),
            ("sub", _) => pairs(&|a, b| a.minus(&b.times(&alpha(2)))),
            ("mul", _) => pairs(&|a, b| a.times(b)),
            ("floor_divide", _) => pairs(&|a, b| a.floor_div(b)),
            ("div", "Tensor_mode" | "Scalar_mode") if matches!(args.get(2), Some(Arg::Str(m)) if **m == *"floor") => {
                pairs(&|a, b| a.floor_div(b))
            }
            ("remainder", _) => pairs(&|a, b| Expr::call(ExprFn::Mod, vec![a.clone(), b.clone()])),
            ("minimum", _) | ("min", "other") => pairs(&|a, b| Expr::call(ExprFn::Min, vec![a.clone(), b.clone()])),
            ("maximum", _) | ("max", "other") => pairs(&|a, b| Expr::call(ExprFn::Max, vec![a.clone(), b.clone()])),
            ("neg", _) => operand(0).map(|(a, s)| (a.iter().map(|a| a.times(&Expr::Int(-1))).collect(), s)),
            ("min", "default") => all(ExprFn::Min),
            ("max", "default") => all(ExprFn::Max),
            ("sum", "default") => all(ExprFn::Add),
            ("prod", "default") => all(ExprFn::Mul),
            ("stack", _) if known(1) == Some(0) => {
                let parts = list()?;
                let sizes = parts.first()?.1.clone();
                let n = parts.len() as i64;
                let elements = parts.into_iter().flat_map(|p| p.0).collect();
                Some((elements, std::iter::once(n).chain(sizes).collect()))
            }
            ("cat", "default") if matches!(known(1), Some(0 | -1)) => {
                let parts = list()?;
                if parts.iter().any(|p| p.1.len() != 1) {
                    return None;
                }
                let elements: Vec<Expr> = parts.into_iter().flat_map(|p| p.0).collect();
                let n = elements.len() as i64;
                Some((elements, vec![n]))
            }
            ("select", "int") if matches!(known(1), Some(0)) => {
                let ((a, s), i) = (operand(0)?, known(2)?);
                let n = *s.first()?;
                let i = if i < 0 { i + n } else { i };
                let each = (a.len() as i64).checked_div(n)?;
                let part = a.get((i * each) as usize..((i + 1) * each) as usize)?;
                Some((part.to_vec(), s[1..].to_vec()))
            }
            (
                "unsqueeze" | "squeeze" | "view" | "reshape" | "flatten" | "detach" | "clone" | "alias"
                | "lift_fresh_copy" | "contiguous" | "to" | "_to_copy" | "slice",
                _,
            ) => {
                let (a, _) = operand(0)?;
                let typed: Option<Vec<Arg<restride_ir::Meta, Scalar>>> = args
                    .iter()
                    .map(|a| a.try_map(|t| t.ty().known().ok_or(()), |e| e.constant().ok_or(())).ok())
                    .collect();
                let types = restride_ops::types(op, &typed?).ok()?;
                let [ty] = &types[..] else { return None };
                if ty.dtype != DType::I64 {
                    return None;
                }
                let sizes = ty.layout.sizes.to_vec();
                if schema.name == "slice" {
                    let (start, step) = (known(2).unwrap_or(0), known(4).unwrap_or(1));
                    if known(1) != Some(0) || sizes.len() != 1 || step != 1 {
                        return None;
                    }
                    let start = if start < 0 { start + a.len() as i64 } else { start }.max(0) as usize;
                    return Some((a.get(start..start + sizes[0] as usize)?.to_vec(), sizes));
                }
                Some((a, sizes))
            }
            _ => None,
        }
    }
}

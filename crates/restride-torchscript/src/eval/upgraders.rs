//! Operators whose meaning changed, in archives from before: PyTorch's `upgraders_entry.cpp`.

use super::{Dialect, Evaluator};
use crate::value::PyValue;
use restride_ir::{DType, Expr, Result};
use std::sync::Arc;

impl Evaluator<'_, '_> {
    /// The value of a call as the archive's version meant it; `None` where nothing changed since.
    pub(crate) fn upgraded(
        &mut self,
        name: &str,
        args: &[PyValue],
        kwargs: &[(Arc<str>, PyValue)],
    ) -> Result<Option<PyValue>> {
        let Dialect::TorchScript(version) = self.dialect else { return Ok(None) };
        let has = |n: &str| kwargs.iter().any(|k| &*k.0 == n);
        let with = |extra: &[(&str, PyValue)]| {
            let mut all = kwargs.to_vec();
            all.extend(extra.iter().map(|(n, v)| (Arc::from(*n), v.clone())));
            all
        };
        let float = |v: &PyValue| match v {
            PyValue::Tensor(t) => t.dtype().is_float() || t.dtype().is_complex(),
            PyValue::Num(e) => e.is_float(),
            PyValue::Complex(..) => true,
            _ => false,
        };
        match (name, version, args) {
            // Integers were divided as integers.
            ("div" | "div_", 0..4, [a, b]) if !has("rounding_mode") && (a.has_tensor() || b.has_tensor()) => {
                if float(a) || float(b) {
                    return Ok(None);
                }
                let kwargs = with(&[("rounding_mode", PyValue::str("trunc"))]);
                self.dispatch("aten", name, args, &kwargs).map(Some)
            }
            // A fill of integers gave floats.
            ("full", 0..5, [_, fill, ..]) if !float(fill) && !has("dtype") && args.len() < 4 => {
                let kwargs = with(&[("dtype", PyValue::DType(DType::F32))]);
                self.dispatch("aten", name, args, &kwargs).map(Some)
            }
            // The number of steps was optional.
            ("linspace" | "logspace", 0..9, [a, b, rest @ ..])
                if matches!(rest.first(), None | Some(PyValue::None)) =>
            {
                let mut all = vec![a.clone(), b.clone()];
                if !has("steps") {
                    all.push(PyValue::int(100));
                }
                all.extend(rest.iter().skip(1).cloned());
                let kwargs: Vec<(Arc<str>, PyValue)> = kwargs
                    .iter()
                    .map(|(n, v)| match (&**n, v) {
                        ("steps", PyValue::None) => (n.clone(), PyValue::Num(Expr::Int(100))),
                        _ => (n.clone(), v.clone()),
                    })
                    .collect();
                self.dispatch("aten", name, &all, &kwargs).map(Some)
            }
            _ => Ok(None),
        }
    }
}

//! Operators whose meaning changed, in archives from before: PyTorch's `upgraders_entry.cpp`, as data.

use super::{Dialect, Evaluator};
use crate::value::{KeywordArgs, PyValue};
use restride_ir::{DType, Result};
use std::sync::Arc;

/// What a call of an operator meant before a version.
struct Upgrader {
    op: &'static str,
    /// The first version of archives in which it means what it means today.
    since: u64,
    meant: Meant,
}

/// How an operator was meant.
enum Meant {
    /// Division of integers, into integers, dropped the fraction.
    Truncated,
    /// Without `dtype`, a fill of integers or bools gave floats.
    FloatFill,
    /// The operator had fewer arguments, and PyTorch added this flag last.
    Flag { at: usize, value: bool },
    /// An argument could be `None`, and then was this number.
    Default { name: &'static str, at: usize, value: i64 },
}

const STEPS: Meant = Meant::Default { name: "steps", at: 2, value: 100 };

/// `gelu` got `approximate` in version 10, with a default that means the same.
/// `_convolution` got `allow_tf32` in PyTorch 1.7, which left the version as it was.
const UPGRADERS: [Upgrader; 6] = [
    Upgrader { op: "_convolution", since: u64::MAX, meant: Meant::Flag { at: 12, value: true } },
    Upgrader { op: "div", since: 4, meant: Meant::Truncated },
    Upgrader { op: "div_", since: 4, meant: Meant::Truncated },
    Upgrader { op: "full", since: 5, meant: Meant::FloatFill },
    Upgrader { op: "linspace", since: 8, meant: STEPS },
    Upgrader { op: "logspace", since: 9, meant: STEPS },
];

impl Evaluator<'_, '_> {
    /// The value of a call as the archive's version meant it; `None` where nothing changed since.
    pub(crate) fn upgraded(&mut self, name: &str, args: &[PyValue], kwargs: &KeywordArgs) -> Result<Option<PyValue>> {
        let version = match self.dialect {
            Dialect::TorchScript(version) => version,
            // Printed TorchScript says no version: it is taken for one of today.
            Dialect::JitIr => u64::MAX - 1,
            Dialect::Python => return Ok(None),
        };
        let Some(upgrader) = UPGRADERS.iter().find(|u| u.op == name && version < u.since) else { return Ok(None) };
        let get = |n: &str| kwargs.iter().find(|k| &*k.0 == n).map(|k| &k.1);
        let (mut args, mut kwargs_now) = (args.to_vec(), kwargs.to_vec());
        match upgrader.meant {
            Meant::Truncated => {
                // `rounding_mode` came with the new meaning, and `out` decides as the operands do.
                let tensors = args.iter().any(PyValue::has_tensor);
                if args.len() != 2 || get("rounding_mode").is_some() || !tensors {
                    return Ok(None);
                }
                if args.iter().chain(get("out")).any(floats) {
                    return Ok(None);
                }
                kwargs_now.push(("rounding_mode".into(), PyValue::str("trunc")));
            }
            Meant::FloatFill => {
                let typed = get("dtype").or(args.get(2)).is_some_and(|d| !matches!(d, PyValue::None));
                if typed || get("out").is_some() || args.get(1).or(get("fill_value")).is_some_and(floats) {
                    return Ok(None);
                }
                if args.len() > 2 {
                    args[2] = PyValue::DType(DType::F32);
                } else {
                    kwargs_now.retain(|k| &*k.0 != "dtype");
                    kwargs_now.push((Arc::from("dtype"), PyValue::DType(DType::F32)));
                }
            }
            Meant::Flag { at, value } => {
                if args.len() != at || !kwargs.is_empty() {
                    return Ok(None);
                }
                args.push(PyValue::bool(value));
            }
            Meant::Default { name, at, value } => {
                if args.len() == at && get(name).is_none_or(|v| matches!(v, PyValue::None)) {
                    kwargs_now.retain(|k| &*k.0 != name);
                    args.push(PyValue::int(value));
                } else if matches!(args.get(at), Some(PyValue::None)) {
                    args[at] = PyValue::int(value);
                } else {
                    return Ok(None);
                }
            }
        }
        self.dispatch("aten", name, &args, &kwargs_now).map(Some)
    }
}

/// Whether a value is a float or complex number, or a tensor of those.
fn floats(v: &PyValue) -> bool {
    match v {
        PyValue::Tensor(t) => t.dtype().is_float() || t.dtype().is_complex(),
        PyValue::Num(e) => e.is_float(),
        PyValue::Complex(..) => true,
        _ => false,
    }
}

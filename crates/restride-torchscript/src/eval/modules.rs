//! Calls of PyTorch's modules, by their printed form and the weights of their paths.

use super::Evaluator;
use crate::value::{KeywordArgs, PyObject, PyValue};
use restride_ir::{Error, Expr, Result};
use std::rc::Rc;

/// Calls a module of a class with its printed options.
pub(super) fn call(
    eval: &mut Evaluator<'_, '_>,
    object: &Rc<PyObject>,
    class: &str,
    args: &[PyValue],
    _kwargs: &KeywordArgs,
    options: &[PyValue],
    named: &KeywordArgs,
) -> Result<PyValue> {
    let path = object.path.borrow().clone().unwrap_or_default();
    let x = args.first().cloned().unwrap_or(PyValue::None);
    let option = |name: &str, at: usize, default: PyValue| {
        named
            .iter()
            .find(|k| &*k.0 == name)
            .map(|k| k.1.clone())
            .or_else(|| options.get(at).cloned())
            .unwrap_or(default)
    };
    let none = usize::MAX;
    let is = |name: &str, default: bool| {
        matches!(option(name, none, PyValue::bool(default)), PyValue::Num(Expr::Bool(true)))
    };
    let weight = |eval: &mut Evaluator<'_, '_>, name: &str| {
        eval.get_attribute(&PyValue::Object(object.clone()), &name.into()).map_err(|_| {
            Error::new(restride_ir::ErrorKind::Inputs, format!("the weight {path}.{name} is not given"))
                .help("give weights with --weights FILE")
        })
    };
    let optional = |eval: &mut Evaluator<'_, '_>, name: &str, has: bool| {
        if has { weight(eval, name) } else { Ok(PyValue::None) }
    };
    let torch = |eval: &mut Evaluator<'_, '_>, name: &str, args: &[PyValue]| eval.dispatch("aten", name, args, &[]);
    Ok(match class {
        "Linear" => {
            let (w, b) = (weight(eval, "weight")?, optional(eval, "bias", is("bias", true))?);
            torch(eval, "linear", &[x, w, b])?
        }
        "Conv1d" | "Conv2d" | "Conv3d" => {
            let mode = option("padding_mode", none, PyValue::str("zeros"));
            if !matches!(&mode, PyValue::Str(s) if &**s == "zeros") {
                return Err(Error::unsupported(format!("the padding mode of the module {path}")));
            }
            let (w, b) = (weight(eval, "weight")?, optional(eval, "bias", is("bias", true))?);
            let call = [
                x,
                w,
                b,
                listed(option("stride", 3, PyValue::int(1))),
                listed(option("padding", none, PyValue::int(0))),
                listed(option("dilation", none, PyValue::int(1))),
                option("groups", none, PyValue::int(1)),
            ];
            torch(eval, &class.to_lowercase(), &call)?
        }
        "BatchNorm1d" | "BatchNorm2d" | "BatchNorm3d" => {
            let affine = is("affine", true);
            let call = [
                x,
                optional(eval, "weight", affine)?,
                optional(eval, "bias", affine)?,
                weight(eval, "running_mean")?,
                weight(eval, "running_var")?,
                PyValue::bool(false),
                option("momentum", none, PyValue::float(0.1)),
                option("eps", none, PyValue::float(1e-5)),
                PyValue::bool(true),
            ];
            let note = format!("the module {path} is taken in evaluation mode, which its printed form does not say");
            eval.rec.program.notes.push(note);
            torch(eval, "batch_norm", &call)?
        }
        "LayerNorm" => {
            let affine = is("elementwise_affine", true);
            let (w, b) = (optional(eval, "weight", affine)?, optional(eval, "bias", affine && is("bias", true))?);
            let shape = listed(option("normalized_shape", 0, PyValue::None));
            torch(eval, "layer_norm", &[x, shape, w, b, option("eps", none, PyValue::float(1e-5))])?
        }
        "GroupNorm" => {
            let affine = is("affine", true);
            let (w, b) = (optional(eval, "weight", affine)?, optional(eval, "bias", affine)?);
            torch(
                eval,
                "group_norm",
                &[x, option("num_groups", 0, PyValue::None), w, b, option("eps", none, PyValue::float(1e-5))],
            )?
        }
        "Embedding" => {
            let w = weight(eval, "weight")?;
            torch(eval, "embedding", &[w, x, option("padding_idx", none, PyValue::int(-1))])?
        }
        "Dropout" | "Dropout1d" | "Dropout2d" | "Identity" | "DropPath" => {
            if class != "Identity" {
                let note =
                    format!("the module {path} is taken in evaluation mode, which its printed form does not say");
                eval.rec.program.notes.push(note);
            }
            x
        }
        "Flatten" => {
            let (from, to) = (option("start_dim", 0, PyValue::int(1)), option("end_dim", 1, PyValue::int(-1)));
            torch(eval, "flatten", &[x, from, to])?
        }
        "MaxPool1d" | "MaxPool2d" | "MaxPool3d" | "AvgPool1d" | "AvgPool2d" | "AvgPool3d" => {
            let kernel = listed(option("kernel_size", 0, PyValue::None));
            let mut call = vec![
                x,
                kernel.clone(),
                listed(option("stride", 1, kernel)),
                listed(option("padding", 2, PyValue::int(0))),
            ];
            let name =
                format!("{}_pool{}", if class.starts_with("Max") { "max" } else { "avg" }, &class[7..].to_lowercase());
            if class.starts_with("Max") {
                call.push(listed(option("dilation", 3, PyValue::int(1))));
            }
            call.push(PyValue::bool(is("ceil_mode", false)));
            torch(eval, &name, &call)?
        }
        "AdaptiveAvgPool1d" | "AdaptiveAvgPool2d" | "AdaptiveAvgPool3d" => {
            let rank = class.as_bytes()[class.len() - 2] - b'0';
            let size = match option("output_size", 0, PyValue::int(1)) {
                PyValue::Num(e) => PyValue::list(vec![PyValue::Num(e); rank as usize]),
                v => listed(v),
            };
            torch(eval, &format!("adaptive_avg_pool{rank}d"), &[x, size])?
        }
        "Softmax" | "LogSoftmax" => {
            let name = if class == "Softmax" { "softmax" } else { "log_softmax" };
            torch(eval, name, &[x, option("dim", 0, PyValue::int(-1))])?
        }
        "LeakyReLU" => {
            let slope = option("negative_slope", 0, PyValue::float(0.01));
            torch(eval, if is("inplace", false) { "leaky_relu_" } else { "leaky_relu" }, &[x, slope])?
        }
        "GELU" => {
            let how = option("approximate", 0, PyValue::str("none"));
            eval.dispatch("aten", "gelu", &[x], &[("approximate".into(), how)])?
        }
        "ReLU" | "ReLU6" | "SiLU" | "Hardswish" | "Hardsigmoid" | "Sigmoid" | "Tanh" | "Mish" | "ELU" | "SELU"
        | "Softplus" => {
            let name = class.to_lowercase();
            torch(eval, &if is("inplace", false) { format!("{name}_") } else { name }, &[x])?
        }
        _ => {
            return Err(Error::unsupported(format!("a call of the module {path} of class {class}"))
                .help("export the program, or open the archive of torch.jit.save"));
        }
    })
}

/// Printed tuples as lists.
fn listed(v: PyValue) -> PyValue {
    match v {
        PyValue::Tuple(items, _) => PyValue::list(items.to_vec()),
        v => v,
    }
}

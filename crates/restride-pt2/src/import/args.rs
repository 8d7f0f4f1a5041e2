//! Reads arguments of nodes.

use super::nodes::GraphImporter;
use crate::dtype::computed;
use crate::model::{self, Argument, NumberArgument};
use restride_ir::{Arg, ArgType, Error, Expr, MemoryFormat, Result, ValueId};

/// A constant among the graph's inputs or outputs.
pub fn constant(arg: &Argument) -> Result<Arg> {
    Ok(match arg {
        Argument::AsNone(_) => Arg::None,
        Argument::AsInt(i) => Arg::Scalar(Expr::Int(*i)),
        Argument::AsFloat(x) => Arg::Scalar(Expr::float(x.0)),
        Argument::AsBool(b) => Arg::Scalar(Expr::Bool(*b)),
        Argument::AsString(s) => Arg::Str(s.as_str().into()),
        Argument::AsComplex(z) => Arg::Complex(z.real.0, z.imag.0),
        Argument::AsSymInt(NumberArgument::AsInt(i)) => Arg::Scalar(Expr::Int(*i)),
        Argument::AsSymFloat(NumberArgument::AsFloat(x)) => Arg::Scalar(Expr::float(x.0)),
        Argument::AsSymBool(NumberArgument::AsBool(b)) => Arg::Scalar(Expr::Bool(*b)),
        Argument::AsScalarType(s) => Arg::DType(computed(s.dtype()?)?),
        Argument::AsDevice(d) => Arg::Device(d.r#type.as_str().into()),
        other => return Err(Error::unsupported(format!("an input or output of kind {}", tag(other)))),
    })
}

fn tag(arg: &Argument) -> String {
    let text = format!("{arg:?}");
    text.split(['(', ' ']).next().unwrap_or("?").to_string()
}

impl GraphImporter<'_> {
    fn tensors(&self, list: &[model::TensorArgument]) -> Result<Vec<Option<ValueId>>> {
        list.iter().map(|t| self.value(&t.name).map(Some)).collect()
    }

    fn known(&self, n: &NumberArgument) -> Result<Expr> {
        Ok(match n {
            NumberArgument::AsName(name) => self.number(name)?,
            NumberArgument::AsInt(i) => Expr::Int(*i),
            NumberArgument::AsFloat(x) => Expr::float(x.0),
            NumberArgument::AsBool(b) => Expr::Bool(*b),
        })
    }

    /// Reads an argument; the schema decides the type where the file leaves it open.
    pub fn arg(&mut self, arg: &Argument, ty: Option<ArgType>) -> Result<Arg> {
        let ints = |v: &[i64]| Arg::Scalars(v.iter().map(|i| Expr::Int(*i)).collect());
        Ok(match arg {
            Argument::AsTensor(t) => Arg::Value(self.value(&t.name)?),
            Argument::AsTensors(list) => Arg::Values(self.tensors(list)?),
            Argument::AsOptionalTensors(list) => Arg::Values(
                list.iter()
                    .map(|t| match t {
                        model::OptionalTensorArgument::AsTensor(t) => self.value(&t.name).map(Some),
                        model::OptionalTensorArgument::AsNone(_) => Ok(None),
                    })
                    .collect::<Result<_>>()?,
            ),
            Argument::AsOptionalTensor(model::OptionalTensorArgument::AsTensor(t)) => Arg::Value(self.value(&t.name)?),
            Argument::AsOptionalTensor(model::OptionalTensorArgument::AsNone(_)) => Arg::None,
            Argument::AsNestedTensors(_)
            | Argument::AsIntLists(_)
            | Argument::AsFloatLists(_)
            | Argument::AsStringToArgument(_) => {
                return Err(Error::unsupported(format!("an argument of kind {}", tag(arg))));
            }
            Argument::AsInts(v) if v.is_empty() && matches!(ty, Some(ArgType::Tensors | ArgType::OptTensors)) => {
                Arg::Values(Vec::new())
            }
            Argument::AsInt(i) if ty == Some(ArgType::Float) => Arg::Scalar(Expr::float(*i as f64)),
            Argument::AsInt(i) if matches!(ty, Some(ArgType::Ints(_))) => ints(&[*i]),
            Argument::AsInts(v) if ty == Some(ArgType::Floats) => {
                Arg::Scalars(v.iter().map(|i| Expr::float(*i as f64)).collect())
            }
            Argument::AsInts(v) => ints(v),
            Argument::AsFloats(v) => Arg::Scalars(v.iter().map(|x| Expr::float(x.0)).collect()),
            Argument::AsBools(v) => Arg::Scalars(v.iter().map(|b| Expr::Bool(*b)).collect()),
            Argument::AsStrings(v) => Arg::Strs(v.iter().map(|s| s.as_str().into()).collect()),
            Argument::AsSymInt(n) | Argument::AsSymFloat(n) | Argument::AsSymBool(n) => Arg::Scalar(self.known(n)?),
            Argument::AsSymInts(list) | Argument::AsSymFloats(list) | Argument::AsSymBools(list) => {
                Arg::Scalars(list.iter().map(|n| self.known(n)).collect::<Result<_>>()?)
            }
            Argument::AsLayout(model::Layout::Strided) => Arg::Strided,
            Argument::AsLayout(_) => return Err(Error::unsupported("a layout other than strided")),
            Argument::AsMemoryFormat(m) => Arg::MemoryFormat(match m {
                model::MemoryFormat::ContiguousFormat => MemoryFormat::Contiguous,
                model::MemoryFormat::ChannelsLast => MemoryFormat::ChannelsLast,
                model::MemoryFormat::ChannelsLast3d => MemoryFormat::ChannelsLast3d,
                model::MemoryFormat::PreserveFormat | model::MemoryFormat::Unknown => MemoryFormat::Preserve,
            }),
            Argument::AsDevice(d) => {
                self.device(d);
                Arg::Device("cpu".into())
            }
            Argument::AsGraph(g) => Arg::Graph(self.subgraph(&g.name, &g.graph)?),
            Argument::AsOperator(name) => Arg::Op(self.operator(name)?),
            Argument::AsCustomObj(o) => Arg::Value(self.value(&o.name)?),
            other => constant(other)?,
        })
    }
}

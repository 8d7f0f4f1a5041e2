//! Default values of schemas as arguments.

use crate::{Arg, ArgType, Op, OpError, SchemaArg, SchemaDefault};
use restride_tensor::Scalar;

impl SchemaArg {
    /// The default of an argument; `None` if it is required. A single number for a list of known length (`SymInt[2]
    /// stride=1`) is repeated.
    pub fn default_arg<V, S: From<Scalar>>(&self) -> Option<Arg<V, S>> {
        let number = |i: i64| match self.ty {
            ArgType::Bool | ArgType::Bools(_) => Scalar::Bool(i != 0),
            ArgType::Float | ArgType::Floats => Scalar::Float(i as f64),
            _ => Scalar::Int(i),
        };
        Some(match self.default.as_ref()? {
            SchemaDefault::None => Arg::None,
            SchemaDefault::Bool(b) => Arg::Scalar(Scalar::Bool(*b).into()),
            SchemaDefault::Int(i) => Arg::Scalar(number(*i).into()),
            SchemaDefault::Float(x) => Arg::Scalar(Scalar::Float(*x).into()),
            // The only string defaults of device arguments name devices.
            SchemaDefault::Str(s) if self.ty == ArgType::Device => Arg::Device(s.as_str().into()),
            SchemaDefault::Str(s) => Arg::Str(s.as_str().into()),
            SchemaDefault::Ints(list) => match self.ty {
                ArgType::Tensors | ArgType::OptTensors if list.is_empty() => Arg::Values(Vec::new()),
                ArgType::Strs if list.is_empty() => Arg::Strs(Vec::new()),
                ArgType::Ints(Some(n)) | ArgType::Bools(Some(n)) if list.len() == 1 => {
                    Arg::Scalars((0..n).map(|_| number(list[0]).into()).collect())
                }
                _ => Arg::Scalars(list.iter().map(|&i| number(i).into()).collect()),
            },
            SchemaDefault::MemoryFormat(m) => Arg::MemoryFormat(*m),
            SchemaDefault::Strided => Arg::Strided,
            SchemaDefault::DType(d) => Arg::DType(*d),
        })
    }
}

impl Op {
    /// Appends the schema's defaults of missing trailing arguments.
    ///
    /// # Errors
    /// A missing argument without a default, by name.
    pub fn fill_defaults<V, S: From<Scalar>>(self, args: &mut Vec<Arg<V, S>>) -> Result<(), OpError> {
        for decl in self.schema().args.iter().skip(args.len()) {
            let missing = || OpError::new(format!("{self} is not given {}", decl.name));
            args.push(decl.default_arg().ok_or_else(missing)?);
        }
        Ok(())
    }

    /// Appends the schema's defaults of missing trailing arguments; `None` for those without a default.
    pub fn fill_defaults_or_none<V, S: From<Scalar>>(self, args: &mut Vec<Arg<V, S>>) {
        for decl in self.schema().args.iter().skip(args.len()) {
            args.push(decl.default_arg().unwrap_or(Arg::None));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Arg, Expr, Schema};

    #[test]
    fn defaults_are_typed_by_their_arguments() {
        let s = Schema::parse(
            "aten::f(Tensor x, SymInt[2] stride=1, bool[3] mask=[True, False, True], float eps=1, Scalar alpha=1, int? dim=None) -> Tensor",
        )
        .unwrap();
        let d = |i: usize| s.args[i].default_arg::<(), Expr>();
        assert_eq!(d(0), None);
        assert_eq!(d(1), Some(Arg::Scalars(vec![Expr::Int(1), Expr::Int(1)])));
        assert_eq!(d(2), Some(Arg::Scalars(vec![Expr::Bool(true), Expr::Bool(false), Expr::Bool(true)])));
        assert_eq!(d(3), Some(Arg::Scalar(Expr::float(1.0))));
        assert_eq!(d(4), Some(Arg::Scalar(Expr::Int(1))));
        assert_eq!(d(5), Some(Arg::None));
    }
}

//! Arguments of operator calls: values and expressions in a graph, types and numbers in shape functions, views and numbers
//! in kernels.

use crate::{Expr, GraphId, Op, OpError, ValueId};
use restride_tensor::{DType, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// PyTorch's memory formats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryFormat {
    /// Row-major.
    Contiguous,
    /// The input's strides, if they are dense.
    Preserve,
    /// NHWC.
    ChannelsLast,
    /// NDHWC.
    ChannelsLast3d,
}

/// One argument. `V` stands for a tensor (or other value), `S` for a number.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg<V = ValueId, S = Expr> {
    /// `None`.
    None,
    /// A tensor.
    Value(V),
    /// `Tensor[]` or `Tensor?[]`.
    Values(Vec<Option<V>>),
    /// A number: int, float, bool or symbolic.
    Scalar(S),
    /// A list of numbers.
    Scalars(Vec<S>),
    /// A complex number.
    Complex(f64, f64),
    /// A string.
    Str(Arc<str>),
    /// A list of strings.
    Strs(Vec<Arc<str>>),
    /// An element type.
    DType(DType),
    /// A device, by name (`cpu`, `cuda:0`).
    Device(Arc<str>),
    /// `torch.strided`, the only supported layout.
    Strided,
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// A subgraph of a higher-order operator.
    Graph(GraphId),
    /// An operator as an argument (`auto_functionalized_v2`).
    Op(Op),
}

impl<V, S> Arg<V, S> {
    /// The values in this argument, in order.
    pub fn values(&self) -> ArgValues<'_, V> {
        let (one, many): (Option<&V>, &[Option<V>]) = match self {
            Arg::Value(v) => (Some(v), &[]),
            Arg::Values(vs) => (None, vs),
            _ => (None, &[]),
        };
        ArgValues { one, many: many.iter() }
    }

    /// The subgraph that this argument is.
    pub fn graph(&self) -> Option<GraphId> {
        if let Arg::Graph(g) = self { Some(*g) } else { None }
    }

    /// The numbers in this argument, in order.
    pub fn scalars(&self) -> &[S] {
        match self {
            Arg::Scalar(s) => std::slice::from_ref(s),
            Arg::Scalars(s) => s,
            _ => &[],
        }
    }

    /// The same argument with values and numbers mapped.
    ///
    /// # Errors
    /// The first of `value` and `scalar`.
    pub fn try_map<W, T, E>(
        &self,
        mut value: impl FnMut(&V) -> Result<W, E>,
        mut scalar: impl FnMut(&S) -> Result<T, E>,
    ) -> Result<Arg<W, T>, E> {
        self.try_map_by(&mut value, &mut scalar)
    }

    /// [`Arg::try_map`], compiled once for all closures.
    fn try_map_by<W, T, E>(
        &self,
        value: &mut dyn FnMut(&V) -> Result<W, E>,
        scalar: &mut dyn FnMut(&S) -> Result<T, E>,
    ) -> Result<Arg<W, T>, E> {
        Ok(match self {
            Arg::None => Arg::None,
            Arg::Value(v) => Arg::Value(value(v)?),
            Arg::Values(vs) => {
                let mut mapped = Vec::with_capacity(vs.len());
                for v in vs {
                    mapped.push(match v {
                        Some(v) => Some(value(v)?),
                        None => None,
                    });
                }
                Arg::Values(mapped)
            }
            Arg::Scalar(s) => Arg::Scalar(scalar(s)?),
            Arg::Scalars(ss) => {
                let mut mapped = Vec::with_capacity(ss.len());
                for s in ss {
                    mapped.push(scalar(s)?);
                }
                Arg::Scalars(mapped)
            }
            Arg::Complex(re, im) => Arg::Complex(*re, *im),
            Arg::Str(s) => Arg::Str(s.clone()),
            Arg::Strs(s) => Arg::Strs(s.clone()),
            Arg::DType(d) => Arg::DType(*d),
            Arg::Device(d) => Arg::Device(d.clone()),
            Arg::Strided => Arg::Strided,
            Arg::MemoryFormat(m) => Arg::MemoryFormat(*m),
            Arg::Graph(g) => Arg::Graph(*g),
            Arg::Op(op) => Arg::Op(*op),
        })
    }

    /// The arguments of a call with values and numbers mapped, in a list of exact length.
    ///
    /// # Errors
    /// The first of `value` and `scalar`.
    pub fn try_map_all<W, T, E>(
        args: &[Self],
        mut value: impl FnMut(&V) -> Result<W, E>,
        mut scalar: impl FnMut(&S) -> Result<T, E>,
    ) -> Result<Vec<Arg<W, T>>, E> {
        let (value, scalar): (&mut dyn FnMut(&V) -> _, &mut dyn FnMut(&S) -> _) = (&mut value, &mut scalar);
        let mut out = Vec::with_capacity(args.len());
        for a in args {
            out.push(a.try_map_by(value, scalar)?);
        }
        Ok(out)
    }

    /// The same argument with values mapped.
    pub fn map_values<W>(&self, mut value: impl FnMut(&V) -> W) -> Arg<W, S>
    where
        S: Clone,
    {
        let mapped: Result<_, std::convert::Infallible> = self.try_map(|v| Ok(value(v)), |s| Ok(s.clone()));
        match mapped {
            Ok(arg) => arg,
        }
    }
}

/// The values of an argument, in order: what [`Arg::values`] gives.
#[derive(Clone, Debug)]
pub struct ArgValues<'a, V> {
    one: Option<&'a V>,
    many: std::slice::Iter<'a, Option<V>>,
}

impl<'a, V> Iterator for ArgValues<'a, V> {
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
        if let Some(v) = self.one.take() {
            return Some(v);
        }
        loop {
            if let Some(v) = self.many.next()? {
                return Some(v);
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let one = usize::from(self.one.is_some());
        (one, Some(one + self.many.len()))
    }
}

/// The values of several arguments, in order: what [`crate::Node::operands`] gives. One function for all loops over them, most of
/// which are compiled for size.
#[derive(Clone, Debug)]
pub struct ArgsValues<'a> {
    rest: std::slice::Iter<'a, Arg>,
    now: ArgValues<'a, ValueId>,
}

impl<'a> ArgsValues<'a> {
    /// The values of these arguments.
    pub fn of(args: &'a [Arg]) -> ArgsValues<'a> {
        ArgsValues { rest: args.iter(), now: ArgValues { one: None, many: [].iter() } }
    }
}

impl Iterator for ArgsValues<'_> {
    type Item = ValueId;

    fn next(&mut self) -> Option<ValueId> {
        loop {
            if let Some(&v) = self.now.next() {
                return Some(v);
            }
            self.now = self.rest.next()?.values();
        }
    }
}

type ArgResult<T> = Result<T, OpError>;

/// Integers; short lists need no allocation.
pub type Ints = SmallVec<[i64; 8]>;
/// Operands; short lists need no allocation.
pub type Operands<T> = SmallVec<[T; 32]>;

/// Arguments of one call, read by position and schema type. Every reader of an argument of another kind fails with its
/// position.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a, V, S = Scalar>(pub &'a [Arg<V, S>]);

impl<'a, V, S> Args<'a, V, S> {
    fn at(&self, i: usize) -> &'a Arg<V, S> {
        self.0.get(i).unwrap_or(&Arg::None)
    }
    fn wrong<T>(&self, i: usize, want: &str) -> ArgResult<T> {
        Err(OpError::new(format!("argument {i} is not {want}")))
    }
    /// Whether the argument is missing or `None`.
    pub fn is_none(&self, i: usize) -> bool {
        matches!(self.at(i), Arg::None)
    }
    /// A tensor.
    pub fn tensor(&self, i: usize) -> ArgResult<&'a V> {
        match self.at(i) {
            Arg::Value(v) => Ok(v),
            _ => self.wrong(i, "a tensor"),
        }
    }
    /// A tensor, where other kinds are allowed too.
    pub fn as_tensor(&self, i: usize) -> Option<&'a V> {
        match self.at(i) {
            Arg::Value(v) => Some(v),
            _ => None,
        }
    }
    /// A tensor or `None`.
    pub fn opt_tensor(&self, i: usize) -> ArgResult<Option<&'a V>> {
        match self.at(i) {
            Arg::None => Ok(None),
            Arg::Value(v) => Ok(Some(v)),
            _ => self.wrong(i, "a tensor or None"),
        }
    }
    /// A list of tensors.
    pub fn tensors(&self, i: usize) -> ArgResult<Operands<&'a V>> {
        match self.at(i) {
            Arg::Values(vs) => match vs.iter().map(Option::as_ref).collect() {
                Some(vs) => Ok(vs),
                None => self.wrong(i, "a list of tensors (it holds None)"),
            },
            // In files, an empty list has no element type.
            Arg::Scalars(s) if s.is_empty() => Ok(Operands::new()),
            _ => self.wrong(i, "a list of tensors"),
        }
    }
    /// A list of tensors and `None`s.
    pub fn opt_tensors(&self, i: usize) -> ArgResult<Operands<Option<&'a V>>> {
        match self.at(i) {
            Arg::Values(vs) => Ok(vs.iter().map(Option::as_ref).collect()),
            Arg::Scalars(s) if s.is_empty() => Ok(Operands::new()),
            _ => self.wrong(i, "a list of tensors"),
        }
    }
    /// A string.
    pub fn str(&self, i: usize) -> ArgResult<&'a str> {
        match self.at(i) {
            Arg::Str(s) => Ok(s),
            _ => self.wrong(i, "a string"),
        }
    }
    /// A string or `None`.
    pub fn opt_str(&self, i: usize) -> ArgResult<Option<&'a str>> {
        if self.is_none(i) { Ok(None) } else { self.str(i).map(Some) }
    }
    /// An element type or `None`.
    pub fn opt_dtype(&self, i: usize) -> ArgResult<Option<DType>> {
        match self.at(i) {
            Arg::None => Ok(None),
            Arg::DType(d) => Ok(Some(*d)),
            _ => self.wrong(i, "an element type"),
        }
    }
    /// A memory format or `None`.
    pub fn opt_memory_format(&self, i: usize) -> ArgResult<Option<MemoryFormat>> {
        match self.at(i) {
            Arg::None => Ok(None),
            Arg::MemoryFormat(m) => Ok(Some(*m)),
            _ => self.wrong(i, "a memory format"),
        }
    }
    /// A number of this level: an expression, or a known number.
    pub fn number(&self, i: usize) -> ArgResult<&'a S> {
        match self.at(i) {
            Arg::Scalar(s) => Ok(s),
            _ => self.wrong(i, "a number"),
        }
    }
    /// A number of this level, or `None`.
    pub fn opt_number(&self, i: usize) -> ArgResult<Option<&'a S>> {
        if self.is_none(i) { Ok(None) } else { self.number(i).map(Some) }
    }
    /// Numbers of this level; a single number counts as a list of one.
    pub fn numbers(&self, i: usize) -> ArgResult<&'a [S]> {
        match self.at(i) {
            Arg::Scalars(s) => Ok(s),
            Arg::Scalar(s) => Ok(std::slice::from_ref(s)),
            _ => self.wrong(i, "a list of numbers"),
        }
    }
    /// Numbers of this level, or `None`.
    pub fn opt_numbers(&self, i: usize) -> ArgResult<Option<&'a [S]>> {
        if self.is_none(i) { Ok(None) } else { self.numbers(i).map(Some) }
    }
}

impl<'a, V> Args<'a, V, Scalar> {
    /// A number, complex included.
    pub fn scalar(&self, i: usize) -> ArgResult<Scalar> {
        match self.at(i) {
            Arg::Scalar(s) => Ok(*s),
            Arg::Complex(re, im) => Ok(Scalar::Complex(restride_tensor::C64::new(*re, *im))),
            _ => self.wrong(i, "a number"),
        }
    }
    /// A number or `None`.
    pub fn opt_scalar(&self, i: usize) -> ArgResult<Option<Scalar>> {
        if self.is_none(i) { Ok(None) } else { self.scalar(i).map(Some) }
    }
    /// An integer (a bool counts as one).
    pub fn int(&self, i: usize) -> ArgResult<i64> {
        match self.at(i) {
            Arg::Scalar(s @ (Scalar::Int(_) | Scalar::Bool(_))) => Ok(s.as_i64()),
            _ => self.wrong(i, "an integer"),
        }
    }
    /// An integer or `None`.
    pub fn opt_int(&self, i: usize) -> ArgResult<Option<i64>> {
        if self.is_none(i) { Ok(None) } else { self.int(i).map(Some) }
    }
    /// A float (an integer counts as one).
    pub fn float(&self, i: usize) -> ArgResult<f64> {
        match self.at(i) {
            Arg::Scalar(s) => Ok(s.as_f64()),
            _ => self.wrong(i, "a float"),
        }
    }
    /// A float or `None`.
    pub fn opt_float(&self, i: usize) -> ArgResult<Option<f64>> {
        if self.is_none(i) { Ok(None) } else { self.float(i).map(Some) }
    }
    /// A bool.
    pub fn bool(&self, i: usize) -> ArgResult<bool> {
        match self.at(i) {
            Arg::Scalar(s @ (Scalar::Bool(_) | Scalar::Int(_))) => Ok(s.as_bool()),
            _ => self.wrong(i, "a bool"),
        }
    }
    /// A bool or `None`.
    pub fn opt_bool(&self, i: usize) -> ArgResult<Option<bool>> {
        if self.is_none(i) { Ok(None) } else { self.bool(i).map(Some) }
    }
    /// A list of integers; a single one counts as a list of one.
    pub fn ints(&self, i: usize) -> ArgResult<Ints> {
        self.numbers(i)?
            .iter()
            .map(|s| match s {
                Scalar::Int(_) | Scalar::Bool(_) => Ok(s.as_i64()),
                _ => self.wrong(i, "a list of integers"),
            })
            .collect()
    }
    /// A list of integers or `None`.
    pub fn opt_ints(&self, i: usize) -> ArgResult<Option<Ints>> {
        if self.is_none(i) { Ok(None) } else { self.ints(i).map(Some) }
    }
    /// A list of floats or `None`.
    pub fn opt_floats(&self, i: usize) -> ArgResult<Option<Vec<f64>>> {
        Ok(self.opt_numbers(i)?.map(|n| n.iter().map(|s| s.as_f64()).collect()))
    }
}

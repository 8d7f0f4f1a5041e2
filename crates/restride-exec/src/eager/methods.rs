//! The usual calls as methods. Everything else is [`Tensor::call`].

use super::call::{Value, call_op};
use super::engine::{self, GradOptions};
use super::tensor::Tensor;
use restride_ir::{Arg, Error, MemoryFormat, Result, Scalar};
use restride_tensor::DType;

/// An argument of a call.
type EagerArg = Arg<Tensor, Scalar>;

impl From<&Tensor> for Arg<Tensor, Scalar> {
    fn from(t: &Tensor) -> Self {
        Arg::Value(t.clone())
    }
}

fn int(n: i64) -> EagerArg {
    Arg::Scalar(Scalar::Int(n))
}

fn ints(all: &[i64]) -> EagerArg {
    Arg::Scalars(all.iter().map(|n| Scalar::Int(*n)).collect())
}

impl Tensor {
    /// Calls any operator by its name, as `aten.add.Tensor`; trailing arguments left out take their defaults. Lists of
    /// results are spread.
    ///
    /// # Errors
    /// An operator that there is not, PyTorch's refusals, what cannot be run.
    pub fn call(name: &str, args: &[Arg<Tensor, Scalar>]) -> Result<Vec<Value>> {
        call_op(name, args)
    }

    /// As [`Tensor::call`], for operators with one result.
    ///
    /// # Errors
    /// As [`Tensor::call`]; a result that is no tensor.
    pub fn call_one(name: &str, args: &[Arg<Tensor, Scalar>]) -> Result<Tensor> {
        match call_op(name, args)?.into_iter().next() {
            Some(Value::Tensor(t)) => Ok(t),
            _ => Err(Error::invalid(format!("the first result of {name} is no tensor"))),
        }
    }

    fn all(name: &str, args: &[EagerArg]) -> Result<Vec<Tensor>> {
        let one = |v| match v {
            Value::Tensor(t) => Ok(t),
            _ => Err(Error::invalid(format!("a result of {name} is no tensor"))),
        };
        call_op(name, args)?.into_iter().map(one).collect()
    }

    /// Adds the gradient of this tensor, which has one element, to those of the leaves that it depends on.
    ///
    /// # Errors
    /// As [`engine::backward`].
    pub fn backward(&self) -> Result<()> {
        engine::backward(std::slice::from_ref(self), &[], &GradOptions::default())
    }

    /// As [`Tensor::backward`], from a given gradient.
    ///
    /// # Errors
    /// As [`engine::backward`].
    pub fn backward_from(&self, gradient: &Tensor, options: &GradOptions) -> Result<()> {
        engine::backward(std::slice::from_ref(self), &[Some(gradient.clone())], options)
    }

    /// Makes it a leaf that asks for its gradient, or no longer.
    ///
    /// # Errors
    /// As [`Tensor::set_requires_grad`].
    pub fn requires_grad_(&self, on: bool) -> Result<&Tensor> {
        self.set_requires_grad(on)?;
        Ok(self)
    }

    /// `self[start:end]` along a dimension.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn slice(&self, dim: i64, start: i64, end: i64) -> Result<Tensor> {
        Tensor::call_one("aten.slice.Tensor", &[self.into(), int(dim), int(start), int(end)])
    }

    /// `length` indices from `start` along a dimension.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        Tensor::call_one("aten.narrow.default", &[self.into(), int(dim), int(start), int(length)])
    }

    /// One index of a dimension.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        Tensor::call_one("aten.select.int", &[self.into(), int(dim), int(index)])
    }

    /// A view of other sizes.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn view_as_sizes(&self, sizes: &[i64]) -> Result<Tensor> {
        Tensor::call_one("aten.view.default", &[self.into(), ints(sizes)])
    }

    /// Other sizes: a view where strides allow it.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn reshape(&self, sizes: &[i64]) -> Result<Tensor> {
        Tensor::call_one("aten.reshape.default", &[self.into(), ints(sizes)])
    }

    /// Dimensions in another order.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        Tensor::call_one("aten.permute.default", &[self.into(), ints(dims)])
    }

    /// Two dimensions exchanged.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        Tensor::call_one("aten.transpose.int", &[self.into(), int(a), int(b)])
    }

    /// Larger sizes, without a copy.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn expand(&self, sizes: &[i64]) -> Result<Tensor> {
        Tensor::call_one("aten.expand.default", &[self.into(), ints(sizes)])
    }

    /// The primitive that all views are: sizes, strides and offset in the memory.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn restride(&self, sizes: &[i64], strides: &[i64], offset: i64) -> Result<Tensor> {
        Tensor::call_one("aten.as_strided.default", &[self.into(), ints(sizes), ints(strides), int(offset)])
    }

    /// Views of parts of this size along a dimension; the last may be smaller.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn split(&self, size: i64, dim: i64) -> Result<Vec<Tensor>> {
        Tensor::all("aten.split.Tensor", &[self.into(), int(size), int(dim)])
    }

    /// Views of each index of a dimension.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn unbind(&self, dim: i64) -> Result<Vec<Tensor>> {
        Tensor::all("aten.unbind.int", &[self.into(), int(dim)])
    }

    /// The sum over dimensions.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn sum_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        let keep = Arg::Scalar(Scalar::Bool(keepdim));
        Tensor::call_one("aten.sum.dim_IntList", &[self.into(), ints(dims), keep])
    }

    /// Row-major: itself if it is, otherwise a copy.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn contiguous(&self) -> Result<Tensor> {
        Tensor::call_one("aten.contiguous.default", &[self.into(), Arg::MemoryFormat(MemoryFormat::Contiguous)])
    }

    /// Elements of another type.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn to(&self, dtype: DType) -> Result<Tensor> {
        Tensor::call_one("aten.to.dtype", &[self.into(), Arg::DType(dtype)])
    }

    /// Writes a number into every element.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn fill_(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        Tensor::call_one("aten.fill_.Scalar", &[self.into(), Arg::Scalar(value.into())])
    }
}

macro_rules! unary {
    ($($name:ident = $op:literal, $doc:literal;)*) => {
        impl Tensor {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                /// As [`Tensor::call`].
                pub fn $name(&self) -> Result<Tensor> {
                    Tensor::call_one($op, &[self.into()])
                }
            )*
        }
    };
}

macro_rules! binary {
    ($($name:ident = $op:literal, $doc:literal;)*) => {
        impl Tensor {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                /// As [`Tensor::call`].
                pub fn $name(&self, other: &Tensor) -> Result<Tensor> {
                    Tensor::call_one($op, &[self.into(), other.into()])
                }
            )*
        }
    };
}

macro_rules! with_number {
    ($($name:ident = $op:literal, $doc:literal;)*) => {
        impl Tensor {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                /// As [`Tensor::call`].
                pub fn $name(&self, other: impl Into<Scalar>) -> Result<Tensor> {
                    Tensor::call_one($op, &[self.into(), Arg::Scalar(other.into())])
                }
            )*
        }
    };
}

unary! {
    clone_elements = "aten.clone.default", "A copy on memory of its own.";
    t = "aten.t.default", "The transpose of a matrix.";
    neg = "aten.neg.default", "`-self`.";
    exp = "aten.exp.default", "The exponential.";
    log = "aten.log.default", "The natural logarithm.";
    sin = "aten.sin.default", "The sine.";
    cos = "aten.cos.default", "The cosine.";
    tanh = "aten.tanh.default", "The hyperbolic tangent.";
    sigmoid = "aten.sigmoid.default", "The logistic function.";
    relu = "aten.relu.default", "The positive part.";
    sqrt = "aten.sqrt.default", "The square root.";
    sum = "aten.sum.default", "The sum of all elements.";
    mean = "aten.mean.default", "The mean of all elements.";
    exp_ = "aten.exp_.default", "The exponential, in place.";
    sigmoid_ = "aten.sigmoid_.default", "The logistic function, in place.";
    tanh_ = "aten.tanh_.default", "The hyperbolic tangent, in place.";
    relu_ = "aten.relu_.default", "The positive part, in place.";
    zero_ = "aten.zero_.default", "Zeros in place.";
}

binary! {
    add = "aten.add.Tensor", "`self + other`.";
    sub = "aten.sub.Tensor", "`self - other`.";
    mul = "aten.mul.Tensor", "`self * other`.";
    div = "aten.div.Tensor", "`self / other`.";
    matmul = "aten.matmul.default", "The matrix product.";
    add_ = "aten.add_.Tensor", "`self += other`.";
    sub_ = "aten.sub_.Tensor", "`self -= other`.";
    mul_ = "aten.mul_.Tensor", "`self *= other`.";
    div_ = "aten.div_.Tensor", "`self /= other`.";
    copy_ = "aten.copy_.default", "Writes the elements of another tensor, which is broadcast.";
}

with_number! {
    add_number = "aten.add.Scalar", "`self + number`.";
    mul_number = "aten.mul.Scalar", "`self * number`.";
    pow = "aten.pow.Tensor_Scalar", "`self ** number`.";
    add_number_ = "aten.add_.Scalar", "`self += number`.";
    mul_number_ = "aten.mul_.Scalar", "`self *= number`.";
}

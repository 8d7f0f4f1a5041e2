//! The usual calls as methods. Everything else is [`Tensor::call`].

use super::call::{EagerValue, call_op};
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

/// A parameter of a method, as an argument.
trait AsArg {
    fn arg(self) -> EagerArg;
}

impl AsArg for &Tensor {
    fn arg(self) -> EagerArg {
        self.into()
    }
}

impl AsArg for i64 {
    fn arg(self) -> EagerArg {
        Arg::Scalar(Scalar::Int(self))
    }
}

impl AsArg for bool {
    fn arg(self) -> EagerArg {
        Arg::Scalar(Scalar::Bool(self))
    }
}

impl AsArg for &[i64] {
    fn arg(self) -> EagerArg {
        Arg::Scalars(self.iter().map(|n| Scalar::Int(*n)).collect())
    }
}

impl AsArg for DType {
    fn arg(self) -> EagerArg {
        Arg::DType(self)
    }
}

impl Tensor {
    /// Calls any operator by its name, as `aten.add.Tensor`; trailing arguments left out take their defaults. Lists of
    /// results are spread.
    ///
    /// # Errors
    /// An unknown operator, PyTorch's refusals, an operator without a kernel.
    pub fn call(name: &str, args: &[Arg<Tensor, Scalar>]) -> Result<Vec<EagerValue>> {
        call_op(name, args)
    }

    /// As [`Tensor::call`], for operators with one result.
    ///
    /// # Errors
    /// As [`Tensor::call`]; a result that is no tensor.
    pub fn call_one(name: &str, args: &[Arg<Tensor, Scalar>]) -> Result<Tensor> {
        match call_op(name, args)?.into_iter().next() {
            Some(EagerValue::Tensor(t)) => Ok(t),
            _ => Err(Error::invalid(format!("the first result of {name} is no tensor"))),
        }
    }

    fn all(name: &str, args: &[EagerArg]) -> Result<Vec<Tensor>> {
        let one = |v| match v {
            EagerValue::Tensor(t) => Ok(t),
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

    /// Views of parts of this size along a dimension; the last may be smaller.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn split(&self, size: i64, dim: i64) -> Result<Vec<Tensor>> {
        Tensor::all("aten.split.Tensor", &[self.into(), size.arg(), dim.arg()])
    }

    /// Views of each index of a dimension.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn unbind(&self, dim: i64) -> Result<Vec<Tensor>> {
        Tensor::all("aten.unbind.int", &[self.into(), dim.arg()])
    }

    /// Row-major: itself if it is, otherwise a copy.
    ///
    /// # Errors
    /// As [`Tensor::call`].
    pub fn contiguous(&self) -> Result<Tensor> {
        Tensor::call_one("aten.contiguous.default", &[self.into(), Arg::MemoryFormat(MemoryFormat::Contiguous)])
    }
}

/// Methods that call an operator with one result.
macro_rules! methods {
    ($($doc:literal $name:ident($($arg:ident: $ty:ty),*) = $op:literal;)*) => {
        impl Tensor {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                /// As [`Tensor::call`].
                pub fn $name(&self $(, $arg: $ty)*) -> Result<Tensor> {
                    Tensor::call_one($op, &[self.into() $(, $arg.arg())*])
                }
            )*
        }
    };
}

macro_rules! with_number {
    ($($doc:literal $name:ident = $op:literal;)*) => {
        impl Tensor {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                /// As [`Tensor::call`].
                pub fn $name(&self, number: impl Into<Scalar>) -> Result<Tensor> {
                    Tensor::call_one($op, &[self.into(), Arg::Scalar(number.into())])
                }
            )*
        }
    };
}

methods! {
    "`self[start:end]` along a dimension." slice(dim: i64, start: i64, end: i64) = "aten.slice.Tensor";
    "`length` indices from `start` along a dimension." narrow(dim: i64, start: i64, length: i64) = "aten.narrow.default";
    "One index of a dimension." select(dim: i64, index: i64) = "aten.select.int";
    "A view of other sizes." view_as_sizes(sizes: &[i64]) = "aten.view.default";
    "Other sizes: a view where strides allow it." reshape(sizes: &[i64]) = "aten.reshape.default";
    "Dimensions in another order." permute(dims: &[i64]) = "aten.permute.default";
    "Two dimensions exchanged." transpose(a: i64, b: i64) = "aten.transpose.int";
    "Larger sizes, without a copy." expand(sizes: &[i64]) = "aten.expand.default";
    "The primitive that all views are: sizes, strides and offset in the memory."
    restride(sizes: &[i64], strides: &[i64], offset: i64) = "aten.as_strided.default";
    "The sum over dimensions." sum_dims(dims: &[i64], keepdim: bool) = "aten.sum.dim_IntList";
    "Elements of another type." to(dtype: DType) = "aten.to.dtype";
    "A copy on memory of its own." clone_elements() = "aten.clone.default";
    "The transpose of a matrix." t() = "aten.t.default";
    "`-self`." neg() = "aten.neg.default";
    "The exponential." exp() = "aten.exp.default";
    "The natural logarithm." log() = "aten.log.default";
    "The sine." sin() = "aten.sin.default";
    "The cosine." cos() = "aten.cos.default";
    "The hyperbolic tangent." tanh() = "aten.tanh.default";
    "The logistic function." sigmoid() = "aten.sigmoid.default";
    "The positive part." relu() = "aten.relu.default";
    "The square root." sqrt() = "aten.sqrt.default";
    "The sum of all elements." sum() = "aten.sum.default";
    "The mean of all elements." mean() = "aten.mean.default";
    "The exponential, in place." exp_() = "aten.exp_.default";
    "The logistic function, in place." sigmoid_() = "aten.sigmoid_.default";
    "The hyperbolic tangent, in place." tanh_() = "aten.tanh_.default";
    "The positive part, in place." relu_() = "aten.relu_.default";
    "Zeros in place." zero_() = "aten.zero_.default";
    "`self + other`." add(other: &Tensor) = "aten.add.Tensor";
    "`self - other`." sub(other: &Tensor) = "aten.sub.Tensor";
    "`self * other`." mul(other: &Tensor) = "aten.mul.Tensor";
    "`self / other`." div(other: &Tensor) = "aten.div.Tensor";
    "The matrix product." matmul(other: &Tensor) = "aten.matmul.default";
    "`self += other`." add_(other: &Tensor) = "aten.add_.Tensor";
    "`self -= other`." sub_(other: &Tensor) = "aten.sub_.Tensor";
    "`self *= other`." mul_(other: &Tensor) = "aten.mul_.Tensor";
    "`self /= other`." div_(other: &Tensor) = "aten.div_.Tensor";
    "Writes the elements of another tensor, which is broadcast." copy_(other: &Tensor) = "aten.copy_.default";
}

with_number! {
    "Writes a number into every element." fill_ = "aten.fill_.Scalar";
    "`self + number`." add_number = "aten.add.Scalar";
    "`self * number`." mul_number = "aten.mul.Scalar";
    "`self ** number`." pow = "aten.pow.Tensor_Scalar";
    "`self += number`." add_number_ = "aten.add_.Scalar";
    "`self *= number`." mul_number_ = "aten.mul_.Scalar";
}

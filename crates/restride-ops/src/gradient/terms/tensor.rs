//! `T`, a tensor in a rule: operators as methods, and arithmetic.

use super::{Cx, TermOperand, op, wrap};
use restride_ir::{Arg, DType, Dim, Expr, TensorType, Val};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A tensor in a rule.
#[derive(Clone, Copy)]
pub(crate) struct T<'c> {
    pub(super) cx: &'c Cx<'c>,
    pub(super) v: Val,
}

impl<'c> T<'c> {
    /// The rule's context.
    pub fn cx(self) -> &'c Cx<'c> {
        self.cx
    }
    /// The value of this term.
    pub fn val(self) -> Val {
        self.v
    }
    /// Type.
    pub fn ty(self) -> TensorType {
        self.cx.core.ty(self.v)
    }
    /// Element type.
    pub fn dtype(self) -> DType {
        self.ty().dtype
    }
    /// Sizes.
    pub fn sizes(self) -> Vec<Expr> {
        self.ty().layout.sizes.to_vec()
    }
    /// Number of dimensions.
    pub fn rank(self) -> usize {
        self.ty().rank()
    }
    /// Size of a dimension; negative ones count from the end. A 0-d tensor has one dimension of size 1.
    pub fn size(self, dim: i64) -> Expr {
        let sizes = self.sizes();
        sizes.get(wrap(dim, sizes.len())).cloned().unwrap_or(Expr::Int(1))
    }
    /// Number of elements.
    pub fn numel(self) -> Expr {
        self.ty().layout.numel()
    }
    /// Applies an operator with this tensor as its only argument.
    pub fn unary(self, op: &str) -> T<'c> {
        op!(self.cx, op, self)
    }
    /// Zeros with this tensor's type.
    pub fn zeros_like(self) -> T<'c> {
        let ty = self.ty();
        op!(self.cx, "aten.full.default", ty.layout.sizes.to_vec(), 0, ty.dtype)
    }
    /// Complex conjugate; a real tensor stays as it is.
    pub fn conj(self) -> T<'c> {
        if self.dtype().is_complex() { self.unary("aten.conj_physical.default") } else { self }
    }
    /// Real part; a real tensor stays as it is.
    pub fn real(self) -> T<'c> {
        if !self.dtype().is_complex() {
            return self;
        }
        let pairs = self.unary("aten.view_as_real.default");
        op!(self.cx, "aten.select.int", pairs, -1, 0)
    }
    /// The complex tensor with this as its real part and `imag` as its imaginary part.
    pub fn with_imag(self, imag: T<'c>) -> T<'c> {
        op!(self.cx, "aten.complex.default", self, imag)
    }
    /// Imaginary part of a complex tensor.
    pub fn imag(self) -> T<'c> {
        let pairs = self.unary("aten.view_as_real.default");
        op!(self.cx, "aten.select.int", pairs, -1, 1)
    }
    pub fn exp(self) -> T<'c> {
        self.unary("aten.exp.default")
    }
    pub fn log(self) -> T<'c> {
        self.unary("aten.log.default")
    }
    pub fn sin(self) -> T<'c> {
        self.unary("aten.sin.default")
    }
    pub fn cos(self) -> T<'c> {
        self.unary("aten.cos.default")
    }
    pub fn sqrt(self) -> T<'c> {
        self.unary("aten.sqrt.default")
    }
    pub fn rsqrt(self) -> T<'c> {
        self.unary("aten.rsqrt.default")
    }
    pub fn reciprocal(self) -> T<'c> {
        self.unary("aten.reciprocal.default")
    }
    pub fn sign(self) -> T<'c> {
        self.unary("aten.sgn.default")
    }
    pub fn sigmoid(self) -> T<'c> {
        self.unary("aten.sigmoid.default")
    }
    /// The square.
    pub fn square(self) -> T<'c> {
        self * self
    }
    /// This tensor raised to a power.
    pub fn pow(self, e: impl TermOperand) -> T<'c> {
        op!(self.cx, "aten.pow.Tensor_Scalar", self, e)
    }
    /// This tensor where the mask is true, zero elsewhere.
    pub fn only(self, mask: T<'c>) -> T<'c> {
        op!(self.cx, "aten.where.ScalarOther", mask, self, 0)
    }
    /// Zero where the mask is true, this tensor elsewhere.
    pub fn except(self, mask: T<'c>) -> T<'c> {
        op!(self.cx, "aten.masked_fill.Scalar", self, mask, 0)
    }
    /// Compares (`gt`, `eq`, …) with a number.
    pub fn is(self, how: &str, n: impl TermOperand) -> T<'c> {
        op!(self.cx, &format!("aten.{how}.Scalar"), self, n)
    }
    /// Compares with a tensor.
    pub fn than(self, how: &str, other: T<'c>) -> T<'c> {
        op!(self.cx, &format!("aten.{how}.Tensor"), self, other)
    }
    /// Casts to an element type.
    pub fn to(self, dtype: DType) -> T<'c> {
        if self.dtype() == dtype { self } else { op!(self.cx, "aten._to_copy.default", self, dtype) }
    }
    /// Reshapes to these sizes.
    pub fn reshape(self, sizes: Vec<Expr>) -> T<'c> {
        let own = self.sizes();
        let same = own.len() == sizes.len() && own.iter().zip(&sizes).all(|(a, b)| a.equals(b) == Some(true));
        if same { self } else { op!(self.cx, "aten.reshape.default", self, sizes) }
    }
    /// Broadcast to these sizes.
    pub fn expand(self, sizes: Vec<Expr>) -> T<'c> {
        let own = self.sizes();
        let same = own.len() == sizes.len() && own.iter().zip(&sizes).all(|(a, b)| a.equals(b) == Some(true));
        if same { self } else { op!(self.cx, "aten.expand.default", self, sizes) }
    }
    /// Inserts a dimension of size 1 at `dim`.
    pub fn unsqueeze(self, dim: i64) -> T<'c> {
        op!(self.cx, "aten.unsqueeze.default", self, dim)
    }
    /// Removes the dimension of size 1 at `dim`.
    pub fn squeeze(self, dim: i64) -> T<'c> {
        op!(self.cx, "aten.squeeze.dim", self, dim)
    }
    /// Exchanges two dimensions.
    pub fn transpose(self, a: i64, b: i64) -> T<'c> {
        op!(self.cx, "aten.transpose.int", self, a, b)
    }
    /// Exchanges the last two dimensions.
    pub fn mt(self) -> T<'c> {
        self.transpose(-2, -1)
    }
    /// The conjugate transpose of matrices.
    pub fn mh(self) -> T<'c> {
        self.mt().conj()
    }
    /// Reorders dimensions.
    pub fn permute(self, dims: Vec<i64>) -> T<'c> {
        op!(self.cx, "aten.permute.default", self, dims)
    }
    /// Sums over dimensions; an empty list leaves the tensor as it is.
    pub fn sum(self, dims: Vec<i64>, keep: bool) -> T<'c> {
        if dims.is_empty() { self } else { op!(self.cx, "aten.sum.dim_IntList", self, dims, keep) }
    }
    /// Sums over all dimensions.
    pub fn sum_all(self) -> T<'c> {
        self.unary("aten.sum.default")
    }
    /// Matrix product.
    pub fn matmul(self, other: T<'c>) -> T<'c> {
        op!(self.cx, "aten.matmul.default", self, other)
    }
    /// Elements `from..to` of a dimension.
    pub fn slice(self, dim: i64, from: Expr, to: Expr) -> T<'c> {
        op!(self.cx, "aten.slice.Tensor", self, dim, from, to)
    }
    /// Element `at` of a dimension.
    pub fn select(self, dim: i64, at: impl TermOperand) -> T<'c> {
        op!(self.cx, "aten.select.int", self, dim, at)
    }
    /// Multiplies by a number, which may be symbolic or complex.
    pub fn times(self, n: impl TermOperand) -> T<'c> {
        let n = n.operand();
        match &n {
            Arg::Scalar(e) if e.constant().is_some_and(|s| s.as_f64() == 1.0) => self,
            _ => op!(self.cx, "aten.mul.Scalar", self, n),
        }
    }
    /// Divides by a number, which may be symbolic.
    pub fn over(self, n: &Expr) -> T<'c> {
        op!(self.cx, "aten.div.Scalar", self, n)
    }
}

macro_rules! arithmetic {
    ($($trait:ident $f:ident $tensor:literal $scalar:literal;)*) => {$(
        impl<'c> $trait<T<'c>> for T<'c> {
            type Output = T<'c>;
            fn $f(self, other: T<'c>) -> T<'c> {
                op!(self.cx, $tensor, self, other)
            }
        }
        impl<'c> $trait<f64> for T<'c> {
            type Output = T<'c>;
            fn $f(self, other: f64) -> T<'c> {
                op!(self.cx, $scalar, self, other)
            }
        }
    )*};
}
arithmetic! {
    Add add "aten.add.Tensor" "aten.add.Scalar";
    Sub sub "aten.sub.Tensor" "aten.sub.Scalar";
    Mul mul "aten.mul.Tensor" "aten.mul.Scalar";
    Div div "aten.div.Tensor" "aten.div.Scalar";
}
impl<'c> Add<T<'c>> for f64 {
    type Output = T<'c>;
    fn add(self, other: T<'c>) -> T<'c> {
        other + self
    }
}
impl<'c> Mul<T<'c>> for f64 {
    type Output = T<'c>;
    fn mul(self, other: T<'c>) -> T<'c> {
        other * self
    }
}
impl<'c> Sub<T<'c>> for f64 {
    type Output = T<'c>;
    fn sub(self, other: T<'c>) -> T<'c> {
        op!(other.cx, "aten.rsub.Scalar", other, self)
    }
}
impl<'c> Neg for T<'c> {
    type Output = T<'c>;
    fn neg(self) -> T<'c> {
        self.unary("aten.neg.default")
    }
}

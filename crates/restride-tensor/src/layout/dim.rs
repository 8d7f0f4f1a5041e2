//! Sizes and strides: known numbers or symbolic ones.

use smallvec::{Array, SmallVec};
use std::fmt;

/// Sizes or strides, one per dimension.
pub type Dims<D> = SmallVec<<D as Dim>::Room>;

/// A list with one entry a dimension.
pub type PerDim<T> = SmallVec<[T; 6]>;

/// A size, stride or offset: known (`i64`) or symbolic.
pub trait Dim: Clone + PartialEq + From<i64> + fmt::Debug + fmt::Display {
    /// How many need no memory of their own: of known ones those that kernels commonly see (windows of images have six), as long
    /// as a layout is not longer than what is moved without a call, 128 bytes: with room for eight the kernels of small tensors
    /// took up to a third longer. Of symbolic ones, which are wider and many, those of most values.
    type Room: Array<Item = Self>;
    /// The value, if it is known.
    fn known(&self) -> Option<i64>;
    /// Sum.
    fn plus(&self, other: &Self) -> Self;
    /// Difference.
    fn minus(&self, other: &Self) -> Self;
    /// Product.
    fn times(&self, other: &Self) -> Self;
    /// Quotient rounded towards minus infinity; the divisor is positive.
    fn floor_div(&self, other: &Self) -> Self;
    /// Quotient and remainder: `self` is `quotient * other + remainder`. Of symbolic numbers the quotient takes what `other`
    /// divides term by term, so the remainder may be negative or exceed `other`. The divisor is positive.
    fn divide(&self, other: &Self) -> (Self, Self);
    /// The smaller of two.
    fn smaller(&self, other: &Self) -> Self;
    /// The larger of two.
    fn larger(&self, other: &Self) -> Self;
    /// Whether two are equal, if that can be proved or refuted.
    fn equals(&self, other: &Self) -> Option<bool>;
    /// Whether this is less than the other, if that can be proved or refuted.
    fn less(&self, other: &Self) -> Option<bool>;
    /// An index counted from the start, of one that counts from the end of `size` where it is negative. The sign of a
    /// known one is known.
    fn counted_from_start(&self, size: &Self) -> Self {
        match self.less(&Self::from(0)) {
            Some(true) => self.plus(size),
            _ => self.clone(),
        }
    }
    /// The same of any number, such as a bound of a slice, which is clamped afterwards.
    fn bound_from_start(&self, size: &Self) -> Self {
        self.counted_from_start(size)
    }
    /// A copy of a list of them.
    fn copied(dims: &Dims<Self>) -> Dims<Self> {
        dims.clone()
    }
    /// `is(1)` and the like: provably equal to a number.
    fn is(&self, n: i64) -> bool {
        self.equals(&Self::from(n)) == Some(true)
    }
}

impl Dim for i64 {
    type Room = [i64; 6];
    fn copied(dims: &Dims<i64>) -> Dims<i64> {
        Dims::<i64>::from_slice(dims)
    }
    fn known(&self) -> Option<i64> {
        Some(*self)
    }
    fn plus(&self, other: &Self) -> Self {
        self.wrapping_add(*other)
    }
    fn minus(&self, other: &Self) -> Self {
        self.wrapping_sub(*other)
    }
    fn times(&self, other: &Self) -> Self {
        self.wrapping_mul(*other)
    }
    fn floor_div(&self, other: &Self) -> Self {
        self.div_euclid(*other)
    }
    fn divide(&self, other: &Self) -> (Self, Self) {
        (self.div_euclid(*other), self.rem_euclid(*other))
    }
    fn smaller(&self, other: &Self) -> Self {
        (*self).min(*other)
    }
    fn larger(&self, other: &Self) -> Self {
        (*self).max(*other)
    }
    fn equals(&self, other: &Self) -> Option<bool> {
        Some(self == other)
    }
    fn less(&self, other: &Self) -> Option<bool> {
        Some(self < other)
    }
}

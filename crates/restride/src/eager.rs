//! Gradients eagerly: tensors that remember how they were computed, in-place operators on views included.
//!
//! ```
//! use restride::Tensor;
//!
//! let x = Tensor::from_slice(&[1.0, 2.0, 3.0], &[3])?.requiring_grad()?;
//! let y = x.mul(&x)?;
//! // A write through a view is part of its base's history.
//! y.slice(0, 0, 2)?.mul_(&x.slice(0, 1, 3)?)?;
//! y.sum()?.backward()?;
//! let gradient: Vec<f64> = x.grad().expect("x asked for it").to_vec()?;
//! assert_eq!(gradient, [4.0, 13.0, 10.0]);
//! # Ok::<(), restride::Error>(())
//! ```
//!
//! Any operator is called by its name ([`Tensor::call`]); the usual ones are methods. A value that a gradient needs and
//! that was overwritten since is an error in the backward pass, as in PyTorch; but only the value's own cells count,
//! not all of its memory. [`saved_tensors`] sets another way: [`Saved::Strict`] refuses whatever PyTorch refuses,
//! [`Saved::CloneOnWrite`] copies values before they are written over.
//!
//! [`apply`] calls a [`Function`], which has a backward pass of its own.
//!
//! A write under [`no_grad`], or through a detached tensor, changes values and not the gradient, as in PyTorch. Gradients that are recorded themselves (`create_graph`) hold their leaves, and are
//! freed when the leaf's gradient is taken away ([`Tensor::set_grad`]).

pub use restride_exec::eager::*;

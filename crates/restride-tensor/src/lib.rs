//! What a tensor is in memory: element types, strided layouts and their algebra, storages, and views.
//!
//! A [`Layout`] maps indices to cells of one storage; every PyTorch view is one, and views compose. The
//! crate knows nothing of operators or graphs.

mod dtype;
mod layout;
mod overlap;
mod scalar;
mod storage;
mod view;

pub use dtype::{DType, Element};
pub use layout::{Dim, Dims, Layout, LayoutError, PerDim};
pub use overlap::{Overlap, index_by_index, nested, overlap, overlap_bytes, self_overlaps};
pub use scalar::Scalar;
pub use storage::{Bytes, Storage, Tensor};
pub use view::{View, ViewMut};

pub use half::{bf16, f16};
/// Complex numbers with `f32` parts (`torch.complex64`).
pub type C32 = num_complex::Complex<f32>;
/// Complex numbers with `f64` parts (`torch.complex128`).
pub type C64 = num_complex::Complex<f64>;

//! Tensors in memory: element types, strided layouts and their algebra, storages, and views.
//!
//! A [`Layout`] maps indices to cells of one storage. Every PyTorch view is a layout, and views compose. The crate knows
//! neither operators nor graphs.
//!
//! # Memory
//!
//! Any number of tensors share a [`Storage`], and each may write it. The crate keeps Rust's aliasing rules at run time:
//!
//! - *Ownership.* A storage owns its bytes, or reads immutable [`Bytes`] until the first write copies them (weights, often
//!   a mapped file), or refers to foreign memory: of an owner that it keeps ([`Storage::from_owner`]), or of a caller that
//!   it notifies after the last use ([`Storage::foreign`]). Foreign memory is written in place, never grows, and may be
//!   read-only. Storages are reference-counted atomically; the thread that drops the last handle frees or releases the
//!   bytes.
//! - *Locks.* The lock of a storage has any number of readers or one writer, and never blocks: a conflict is an
//!   [`AccessError`], or a panic from methods that document it. Growth and the copy at the first write take the writer's
//!   lock, so the bytes stay in place under a [`View`]: views borrow a [`ReadGuard`], [`WriteGuard`] or [`Access`], which
//!   hold the lock.
//! - *Threads.* [`Storage`], [`RawTensor`] and [`Bytes`] are `Send + Sync`. Views are neither: a kernel that shares work
//!   between threads passes addresses and ensures that no two threads write an element.
//! - *Reads of written memory.* In-place operators need them. Safe code cannot create such views: [`Access`] locks the
//!   storages of all operands once, each for reading or writing, and gives overlapping views through `unsafe` functions.
//!   The caller knows from declarations which operators support that.
//! - *Bounds.* A tensor's layout stays inside of its storage, with aligned elements ([`Layout::byte_range`]). Storages
//!   never shrink, so no later check is needed.
//!
//! A session keeps addresses over many runs. Each run takes the lock of each storage once and compares the addresses; steps
//! take none.

mod dtype;
mod formula;
mod layout;
mod overlap;
mod scalar;
mod storage;
mod tensor;
mod view;

pub use dtype::{DType, Element};
pub use formula::{BinaryStep, Formula, FormulaFn, FormulaStep, FormulaTerm, UnaryStep, evaluate};
pub use layout::{Dim, Dims, Layout, LayoutError, PerDim, by_stride};
pub use overlap::{Overlap, index_by_index, nested, overlap, overlap_bytes, self_overlaps};
pub use scalar::Scalar;
pub use storage::{AccessError, Bytes, Contents, Lock, Storage};
pub use tensor::{Access, RawTensor, ReadGuard, WriteGuard};
pub use view::{Fitted, View, ViewMut};

pub use half::{bf16, f16};
/// Complex numbers with `f32` parts (`torch.complex64`).
pub type C32 = num_complex::Complex<f32>;
/// Complex numbers with `f64` parts (`torch.complex128`).
pub type C64 = num_complex::Complex<f64>;

//! What a tensor is in memory: element types, strided layouts and their algebra, storages, and views.
//!
//! A [`Layout`] maps indices to cells of one storage; every PyTorch view is one, and views compose. The
//! crate knows nothing of operators or graphs.
//!
//! # Memory
//!
//! Aliasing is what this project is about, so any number of tensors share a [`Storage`] and each may write it. Rust's rules are
//! kept at run time:
//!
//! - *Whose the bytes are.* A storage owns them, reads as immutable [`Bytes`] until the first write copies them (weights, often
//!   a mapped file), or stands for memory of somebody else: of an owner that it keeps ([`Storage::from_owner`]), or of a caller
//!   who is told when it is needed no more ([`Storage::foreign`]). Foreign memory is written where it is, never grows, and may be
//!   read-only. Storages are counted atomically; whoever drops the last handle, on any thread, frees or releases the bytes.
//! - *Who may use them when.* A lock in each storage has any number of readers or one writer. Nobody waits for it: who would have
//!   to gets an [`AccessError`] (or a panic, from methods that say so). Growing and copying on the first write take the writer's
//!   lock, so the bytes stay where they are while anybody has a [`View`] of them: views borrow a [`ReadGuard`], [`WriteGuard`] or
//!   [`Access`], which hold the lock.
//! - *What goes to other threads.* [`Storage`], [`RawTensor`] and [`Bytes`] are `Send + Sync`. Views are neither: a kernel that
//!   shares its work between threads hands over addresses and is answerable for who writes which element.
//! - *Reading what is written.* An in-place operator does. Safe code cannot make views for that; [`Access`] locks the storages of
//!   all operands once, each as a writer or a reader, and gives views that overlap through `unsafe` functions. Who runs operators
//!   knows from their declarations which of them cope.
//! - *What fits.* A tensor is made only of a layout that lies in its storage, with aligned elements ([`Layout::byte_range`]).
//!   Storages never shrink, so this stays true, and nothing checks it again.
//!
//! A program that is bound to its memory for many runs keeps addresses. Each run takes the locks of its storages, one for each,
//! and compares the addresses; a step of a run takes none.

mod dtype;
mod layout;
mod overlap;
mod scalar;
mod storage;
mod tensor;
mod view;

pub use dtype::{DType, Element};
pub use layout::{Dim, Dims, Layout, LayoutError, PerDim};
pub use overlap::{Overlap, index_by_index, nested, overlap, overlap_bytes, self_overlaps};
pub use scalar::Scalar;
pub use storage::{AccessError, Bytes, Lock, Storage};
pub use tensor::{Access, RawTensor, ReadGuard, WriteGuard};
pub use view::{Fitted, View, ViewMut};

pub use half::{bf16, f16};
/// Complex numbers with `f32` parts (`torch.complex64`).
pub type C32 = num_complex::Complex<f32>;
/// Complex numbers with `f64` parts (`torch.complex128`).
pub type C64 = num_complex::Complex<f64>;

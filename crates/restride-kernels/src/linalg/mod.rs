//! Dense linear algebra on matrices of real or complex numbers, computed in double precision whatever the element type.
//!
//! PyTorch returns LAPACK's results: rows exchanged (from 1), the order of the first minor that fails, real diagonals of R,
//! reflections and blocks in LAPACK's form. So these are LAPACK's algorithms, but for those of eigenvalues and singular values.
//!
//! Matrices are stored in scratch, a stack: a function allocates its results before its temporaries, and its arguments
//! were allocated before both.

mod bidiagonal;
mod cholesky;
mod eig;
mod expm;
mod field;
mod ldl;
mod lu;
mod matrix;
mod qr;
mod tridiagonal;
mod vectors;

pub use bidiagonal::{SingularVectors, Svd, svd, svd_room};
pub use cholesky::cholesky;
pub use eig::{Eig, eig, eig_room};
pub use expm::{matrix_exp, matrix_exp_room};
pub use field::Field;
pub use ldl::{Ldl, ldl, ldl_solve};
pub use lu::{Lu, lu, lu_room, lu_unpack, lu_unpack_room, triangular};
pub use matrix::{Matrix, MatrixBatch, matrix_room};
pub use qr::{Reflections, apply_q, q_of, qr, qr_room, reflections};
pub use tridiagonal::{eigh, eigh_room};

/// Rows and columns that are computed one by one; products of matrices do the rest.
const BLOCK: usize = 32;

#[cfg(test)]
mod tests;

//! Dense linear algebra on matrices of real or complex numbers, computed in double precision whatever the element type.
//!
//! What LAPACK's results are is part of PyTorch's: rows exchanged (from 1), the order of the first minor that fails, real
//! diagonals of R, reflections and blocks as they are kept. So these are its algorithms, unblocked.
//!
//! Matrices lie in working memory, which is given back from its end: what a function returns is made before what it needs
//! on the way, and what it takes over was made before that.

mod cholesky;
mod eig;
mod expm;
mod field;
mod jacobi;
mod ldl;
mod lu;
mod matrix;
mod qr;

pub use cholesky::cholesky;
pub use eig::{Eig, eig, eig_room};
pub use expm::{matrix_exp, matrix_exp_room};
pub use field::Field;
pub use jacobi::{Svd, eigh, eigh_room, svd, svd_room};
pub use ldl::{Ldl, ldl, ldl_solve};
pub use lu::{Lu, lu, lu_room, lu_unpack, lu_unpack_room, triangular};
pub use matrix::{Matrices, Matrix, matrix_room};
pub use qr::{Reflections, apply_q, q_of, qr, qr_room, reflections};

#[cfg(test)]
mod tests;

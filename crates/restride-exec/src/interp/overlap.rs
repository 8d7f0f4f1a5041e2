//! What eager PyTorch refuses to write: the rules of `ATen/MemoryOverlap.cpp`, word for word. They look at layouts
//! without searching: "too hard" passes.

use super::frame::refused;
use restride_ir::Result;
use restride_tensor::Tensor;

const INTERNAL: &str = "unsupported operation: more than one element of the written-to tensor refers to a single memory \
     location. Please clone() the tensor before performing the operation.";
const SHARED: &str = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
     memory location. Please clone() the tensor before performing the operation.";

/// How PyTorch sees two tensors lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Full,
    Partial,
    No,
    TooHard,
}

/// Refuses a target that puts several elements in one cell, as far as a stride of 0 shows it.
pub(super) fn no_internal_overlap(t: &Tensor) -> Result<()> {
    let l = t.layout();
    let stretched = l.sizes.iter().zip(&l.strides).any(|(&n, &s)| s == 0 && n > 1);
    if !l.is_dense() && stretched { Err(refused(INTERNAL)) } else { Ok(()) }
}

fn status(a: &Tensor, b: &Tensor) -> Status {
    if a.numel() == 0 || b.numel() == 0 {
        return Status::No;
    }
    if !a.layout().is_dense() || !b.layout().is_dense() {
        return Status::TooHard;
    }
    if !a.storage().same(b.storage()) {
        return Status::No;
    }
    let bytes = |t: &Tensor| {
        let begin = t.layout().offset as i128 * t.dtype().size() as i128;
        (begin, begin + t.numel() as i128 * t.dtype().size() as i128)
    };
    let (a_bytes, b_bytes) = (bytes(a), bytes(b));
    if a_bytes == b_bytes {
        return if a.layout().strides == b.layout().strides { Status::Full } else { Status::Partial };
    }
    if a_bytes.0 < b_bytes.1 && b_bytes.0 < a_bytes.1 { Status::Partial } else { Status::No }
}

/// Refuses an operand that shares cells with the target; `same` allows one that is the target cell for cell.
pub(super) fn no_overlap(target: &Tensor, operand: &Tensor, is_target: bool, same: bool) -> Result<()> {
    let status = if is_target { Status::Full } else { status(target, operand) };
    match status {
        Status::Partial => Err(refused(SHARED)),
        Status::Full if !same => Err(refused(SHARED)),
        Status::Full | Status::No | Status::TooHard => Ok(()),
    }
}

//! What eager PyTorch refuses to write: the rules of `ATen/MemoryOverlap.cpp`, for whoever runs or rewrites a mutating
//! call. They look at layouts without searching: what is "too hard" to see passes.

use crate::{Arg, Error, ErrorKind, Meta, OverlapCheck, Result, TensorType, Twin};
use restride_tensor::{DType, Dim, Layout, Overlap, overlap_bytes};

/// PyTorch's words for a target with several elements in one cell.
const INTERNAL: &str = "unsupported operation: more than one element of the written-to tensor refers to a single memory \
     location. Please clone() the tensor before performing the operation.";
/// PyTorch's words for a target that shares cells with an operand.
const SHARED: &str = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
     memory location. Please clone() the tensor before performing the operation.";

/// What eager PyTorch does not see, and what has no meaning but its loops'.
const ORDER: &str =
    "a write that reads the memory it writes, in the order of PyTorch's loop. Clone the tensor before it.";

/// What the rules see of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Memory {
    /// Which storage.
    storage: usize,
    /// Which tensor object.
    object: usize,
    /// Element type and cells, where sizes are known.
    ty: Option<Meta>,
    /// A dimension of several elements has stride 0.
    stretched: bool,
}

impl Memory {
    /// A tensor of this type; the numbers tell storages, and tensor objects, apart.
    pub fn new<D: Dim>(ty: &TensorType<D>, storage: usize, object: usize) -> Memory {
        let one = D::from(1);
        let dims = ty.layout.sizes.iter().zip(&ty.layout.strides);
        let stretched = dims.into_iter().any(|(n, s)| s.is(0) && one.less(n) == Some(true))
            && !ty.layout.sizes.iter().any(|n| n.is(0));
        let known = ty.layout.known().map(|l| TensorType::new(ty.dtype, l));
        Memory { storage, object, ty: known, stretched }
    }
}

/// How PyTorch sees two tensors lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Full,
    Partial,
    No,
    TooHard,
}

/// Refuses a mutating call that eager PyTorch refuses for how its arguments lie in memory; `see` tells that of a
/// tensor. The check is the one that the functional form declares.
///
/// # Errors
/// PyTorch's words.
pub fn refuse_overlap<V, S>(twin: &Twin, args: &[Arg<V, S>], see: impl Fn(&V) -> Option<Memory>) -> Result<()> {
    let check = twin.op.def().overlap;
    if check == OverlapCheck::None {
        return Ok(());
    }
    for &(arg, _) in &twin.writes {
        let Some(target) = args.get(arg as usize).and_then(|a| a.values().next()).and_then(&see) else { continue };
        if !matches!(check, OverlapCheck::Operands | OverlapCheck::PartialMask) && target.stretched {
            return Err(Error::new(ErrorKind::Program, INTERNAL));
        }
        for (i, other) in args.iter().enumerate().filter(|(i, _)| *i != arg as usize) {
            // Outputs are held against inputs, not against each other.
            if twin.writes.iter().any(|w| w.0 as usize == i) && !twin.args.contains(&(i as u8)) {
                continue;
            }
            for operand in other.values().filter_map(&see) {
                let found = status(&target, &operand);
                match check {
                    OverlapCheck::PartialMask if i != 1 => {}
                    OverlapCheck::Partial | OverlapCheck::PartialMask => match found {
                        Status::Partial => return Err(Error::new(ErrorKind::Program, SHARED)),
                        Status::Full | Status::No | Status::TooHard => {}
                    },
                    OverlapCheck::Any | OverlapCheck::Operands => match found {
                        Status::Full | Status::Partial => return Err(Error::new(ErrorKind::Program, SHARED)),
                        Status::TooHard if meet(&target, &operand) => return Err(Error::unsupported(ORDER)),
                        Status::No | Status::TooHard => {}
                    },
                    // `fill_` takes a copy of its number.
                    OverlapCheck::Target if twin.op.def().pointwise => {}
                    OverlapCheck::Target if meet(&target, &operand) => return Err(Error::unsupported(ORDER)),
                    OverlapCheck::Target | OverlapCheck::None => {}
                }
            }
        }
    }
    Ok(())
}

fn status(a: &Memory, b: &Memory) -> Status {
    if a.object == b.object {
        return Status::Full;
    }
    let (Some(x), Some(y)) = (&a.ty, &b.ty) else { return Status::TooHard };
    if x.layout.sizes.contains(&0) || y.layout.sizes.contains(&0) || a.storage != b.storage {
        return Status::No;
    }
    if !x.layout.is_dense() || !y.layout.is_dense() {
        return Status::TooHard;
    }
    let bytes = |t: &Meta| {
        let cells: &Layout = &t.layout;
        let begin = cells.offset as i128 * t.dtype.size() as i128;
        (begin, begin + cells.numel() as i128 * t.dtype.size() as i128)
    };
    let (p, q) = (bytes(x), bytes(y));
    if p == q {
        return if x.layout.strides == y.layout.strides { Status::Full } else { Status::Partial };
    }
    if p.0 < q.1 && q.0 < p.1 { Status::Partial } else { Status::No }
}

/// Whether two tensors have a cell in common, as far as that is known.
fn meet(a: &Memory, b: &Memory) -> bool {
    let (Some(x), Some(y)) = (&a.ty, &b.ty) else { return false };
    a.storage == b.storage
        && !x.layout.sizes.contains(&0)
        && !y.layout.sizes.contains(&0)
        && overlap_bytes(&x.layout, x.dtype.size(), &y.layout, y.dtype.size()) != Overlap::Disjoint
}

/// Refuses to write elements of one type into a tensor of another that PyTorch does not cast them to in place.
///
/// # Errors
/// PyTorch's words.
pub fn refuse_cast(from: DType, to: DType) -> Result<()> {
    if from.can_cast(to) {
        return Ok(());
    }
    let (from, to) = (from.scalar_type(), to.scalar_type());
    let what = format!("result type {from} can't be cast to the desired output type {to}");
    Err(Error::new(ErrorKind::Program, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sizes: &[i64], strides: &[i64], offset: i64, object: usize) -> Memory {
        Memory::new(&Meta::new(DType::F32, Layout::strided(sizes, strides, offset)), 0, object)
    }

    #[test]
    fn overlap_is_seen_where_pytorch_sees_it() {
        let all = at(&[2, 2], &[2, 1], 0, 1);
        assert_eq!(status(&all, &all), Status::Full);
        assert_eq!(status(&all, &at(&[2, 2], &[2, 1], 0, 2)), Status::Full);
        assert_eq!(status(&all, &at(&[2, 2], &[1, 2], 0, 2)), Status::Partial);
        assert_eq!(status(&all, &at(&[2], &[1], 3, 2)), Status::Partial);
        assert_eq!(status(&all, &at(&[2], &[1], 4, 2)), Status::No);
        assert_eq!(status(&all, &at(&[2], &[2], 0, 2)), Status::TooHard);
        assert!(at(&[2, 2], &[0, 1], 0, 1).stretched);
        assert!(!at(&[1, 2], &[0, 1], 0, 1).stretched && !at(&[0, 2], &[1, 0], 0, 1).stretched);
    }
}

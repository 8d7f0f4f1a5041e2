//! Writes that eager PyTorch refuses: the rules of `ATen/MemoryOverlap.cpp` for interpreter and functionalization. The
//! rules look at layouts without a search; overlaps that are "too hard" pass.

mod out;

pub use out::OutSize;

use crate::{Arg, Error, ErrorKind, LazyBits, Meta, OverlapCheck, Result, Scalar, TensorType, Twin, TwinReturn};
use restride_tensor::{DType, Dim, Layout, Overlap, overlap_bytes};

/// PyTorch's message for a target with several elements in one cell.
const INTERNAL: &str = "unsupported operation: more than one element of the written-to tensor refers to a single memory \
     location. Please clone() the tensor before performing the operation.";
/// PyTorch's message for a target that shares cells with an operand.
const SHARED: &str = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
     memory location. Please clone() the tensor before performing the operation.";

/// A write that eager PyTorch accepts, with an effect that only its loops define.
const ORDER: &str = "unsupported: the write reads cells of its own target, in the order of PyTorch's loop. Clone the operand before the write.";

/// PyTorch writes a copy of a lazily mapped tensor, and copies back only the call's first result.
const UNRETURNED: &str =
    "unsupported: a conjugate or negative view is written by a result other than the call's first.";

/// Two results on the same memory.
const TWO: &str = "unsupported: one call writes two results to the same memory. Give each result its own memory.";

/// A tensor as the rules see it.
#[derive(Clone, PartialEq, Debug)]
pub struct OperandMemory {
    /// Identity of the storage.
    storage: usize,
    /// Identity of the tensor object.
    object: usize,
    /// Element type.
    dtype: DType,
    /// Element type and cells, if sizes are known.
    ty: Option<Meta>,
    /// A dimension of size 2 or more has stride 0.
    stretched: bool,
    /// Lazy bits.
    bits: LazyBits,
}

impl OperandMemory {
    /// A tensor of this type. `storage` and `object` are identities.
    pub fn new<D: Dim>(ty: &TensorType<D>, storage: usize, object: usize) -> OperandMemory {
        let one = D::from(1);
        let dims = ty.layout.sizes.iter().zip(&ty.layout.strides);
        let stretched = dims.into_iter().any(|(n, s)| s.is(0) && one.less(n) == Some(true))
            && !ty.layout.sizes.iter().any(|n| n.is(0));
        let known = ty.layout.known().map(|l| TensorType::new(ty.dtype, l));
        OperandMemory { storage, object, dtype: ty.dtype, ty: known, stretched, bits: LazyBits::default() }
    }

    /// Whether two tensors have the same cells in the same order.
    fn is_data_of(&self, other: &OperandMemory) -> bool {
        self.ty.is_some() && self.ty == other.ty && self.storage == other.storage && self.bits == other.bits
    }

    /// The same with lazy bits.
    pub fn with_bits(self, bits: LazyBits) -> OperandMemory {
        OperandMemory { bits, ..self }
    }
}

/// Refuses in-place operators that PyTorch lacks for some types.
fn refuse_in_place<I: Iterator<Item = OperandMemory>>(twin: &Twin, tensors: impl Fn(u8) -> I) -> Result<()> {
    let schema = twin.op.schema();
    let abs = schema.namespace == "aten" && matches!(&schema.name[..], "abs" | "absolute") && !twin.resizes;
    if abs && twin.writes.iter().any(|w| tensors(w.0).any(|t| t.dtype.is_complex())) {
        return Err(Error::new(ErrorKind::Program, "In-place abs is not supported for complex tensors."));
    }
    Ok(())
}

/// Overlap of two tensors, as PyTorch sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Full,
    Partial,
    No,
    TooHard,
}

/// Refuses a mutating call that eager PyTorch refuses because its arguments overlap, by the check that the functional form
/// declares, or by the verdicts on the `out=` form. `see` describes a tensor; `size` tells what becomes of an `out`: a written
/// argument and the functional form's result for it.
///
/// # Errors
/// In PyTorch's words.
pub fn refuse_overlap<V, S: PartialEq + From<Scalar>>(
    twin: &Twin,
    args: &[Arg<V, S>],
    see: impl Fn(&V) -> Option<OperandMemory>,
    size: impl Fn(u8, u8) -> OutSize,
) -> Result<()> {
    let tensors = |i: u8| args.get(i as usize).into_iter().flat_map(|a| a.values()).filter_map(&see);
    refuse_in_place(twin, tensors)?;
    let copies = twin.op.def().maps_bits;
    for (arg, target) in twin.writes.iter().flat_map(|w| tensors(w.0).map(|t| (w.0, t))) {
        if !copies && !target.bits.is_clear() && twin.returns.first() != Some(&TwinReturn::Arg(arg)) {
            return Err(Error::unsupported(UNRETURNED).help("call resolve_conj() and resolve_neg() before it"));
        }
        // PyTorch resolves lazily mapped tensors, writes the copies and copies them back.
        if !copies && !target.bits.is_clear() && target.stretched {
            return Err(Error::new(ErrorKind::Program, INTERNAL));
        }
        let empty = target.ty.as_ref().is_some_and(|t| t.layout.sizes.contains(&0));
        let negated = |o: OperandMemory| o.bits.neg != target.bits.neg;
        if copies && target.dtype == DType::Bool && !empty && (0..args.len() as u8).any(|i| tensors(i).any(negated)) {
            return Err(Error::new(ErrorKind::Program, "\"neg_cpu\" not implemented for 'Bool'"));
        }
    }
    // A cell that two results write has no defined content.
    for (k, first) in twin.writes.iter().enumerate() {
        for second in &twin.writes[k + 1..] {
            if tensors(first.0).any(|a| tensors(second.0).any(|b| share(&a, &b, twin.resizes))) {
                return Err(Error::unsupported(TWO));
            }
        }
    }
    // A copy onto itself does nothing.
    if copies
        && let [Arg::Value(target), Arg::Value(source), ..] = args
        && let (Some(target), Some(source)) = (see(target), see(source))
        && target.is_data_of(&source)
    {
        return Ok(());
    }
    if twin.resizes {
        return refuse_out(twin, tensors, size);
    }
    let check = twin.op.def().overlap;
    if check == OverlapCheck::None {
        return Ok(());
    }
    let empty = |t: &OperandMemory| t.ty.as_ref().is_some_and(|t| t.layout.sizes[..] == [0]);
    if check == OverlapCheck::Pieces && twin.args.iter().all(|i| tensors(*i).all(|t| empty(&t))) {
        return Ok(());
    }
    for &(arg, _) in &twin.writes {
        let Some(target) = args.get(arg as usize).and_then(|a| a.values().next()).and_then(&see) else { continue };
        if !copies && !target.bits.is_clear() {
            continue;
        }
        let filled = check == OverlapCheck::Operands && fills(args, &see);
        let passes = matches!(
            check,
            OverlapCheck::Operands | OverlapCheck::Index | OverlapCheck::PartialMask | OverlapCheck::Unseen
        );
        if !passes && target.stretched {
            return Err(Error::new(ErrorKind::Program, INTERNAL));
        }
        for (i, other) in args.iter().enumerate().filter(|(i, _)| *i != arg as usize) {
            // PyTorch checks outputs against inputs, not against each other.
            if twin.writes.iter().any(|w| w.0 as usize == i) && !twin.args.contains(&(i as u8)) {
                continue;
            }
            if i == 2 && filled {
                continue;
            }
            // A lazily mapped operand is a resolved copy.
            for operand in other.values().filter_map(&see).filter(|o| copies || o.bits.is_clear()) {
                let found = status(&target, &operand);
                // A converting copy that reads cells it wrote has no meaning but its loop's.
                if converts_itself(twin, &target, &operand) {
                    return Err(Error::unsupported(ORDER));
                }
                match check {
                    OverlapCheck::Operands if filled && found != Status::Partial => {}
                    OverlapCheck::PartialMask if i != 1 => {}
                    OverlapCheck::Index if i != 2 => {}
                    OverlapCheck::Partial | OverlapCheck::PartialMask => match found {
                        Status::Partial => return Err(Error::new(ErrorKind::Program, SHARED)),
                        Status::Full | Status::No | Status::TooHard => {}
                    },
                    OverlapCheck::Any | OverlapCheck::Pieces | OverlapCheck::Operands | OverlapCheck::Index => {
                        match found {
                            Status::Full | Status::Partial => return Err(Error::new(ErrorKind::Program, SHARED)),
                            Status::TooHard if meet(&target, &operand) => return Err(Error::unsupported(ORDER)),
                            Status::No | Status::TooHard => {}
                        }
                    }
                    // `fill_` copies its number first.
                    OverlapCheck::Unseen if share(&target, &operand, false) => return Err(Error::unsupported(ORDER)),
                    OverlapCheck::Unseen => {}
                    OverlapCheck::Target if twin.op.def().pointwise => {}
                    OverlapCheck::Target if meet(&target, &operand) => return Err(Error::unsupported(ORDER)),
                    OverlapCheck::Target | OverlapCheck::None => {}
                }
            }
        }
    }
    Ok(())
}

/// The part of [`refuse_overlap`] that is about `out=` forms.
fn refuse_out<I: Iterator<Item = OperandMemory>>(
    twin: &Twin,
    tensors: impl Fn(u8) -> I,
    size: impl Fn(u8, u8) -> OutSize,
) -> Result<()> {
    let copies = twin.op.def().maps_bits;
    // A lazily mapped tensor is a resolved copy.
    let plain = |t: &OperandMemory| copies || t.bits.is_clear();
    let operands: Vec<_> = twin.args.iter().map(|&i| tensors(i).filter(plain).collect()).collect();
    for (k, &(arg, result)) in twin.writes.iter().enumerate() {
        let Some(target) = tensors(arg).next().filter(plain) else { continue };
        let meets = |o: &OperandMemory| o.storage == target.storage;
        if target.stretched || operands.iter().flatten().any(meets) {
            out::refuse(twin, k, &target, &operands, size(arg, result))?;
        }
    }
    Ok(())
}

fn status(a: &OperandMemory, b: &OperandMemory) -> Status {
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

/// Whether two tensors share a cell, as far as sizes are known.
fn meet(a: &OperandMemory, b: &OperandMemory) -> bool {
    let (Some(x), Some(y)) = (&a.ty, &b.ty) else { return false };
    a.storage == b.storage
        && !x.layout.sizes.contains(&0)
        && !y.layout.sizes.contains(&0)
        && overlap_bytes(&x.layout, x.dtype.size(), &y.layout, y.dtype.size()) != Overlap::Disjoint
}

/// Whether PyTorch runs `index_put_(self, indices, values, accumulate)` as `masked_fill_`: one mask and one number, which
/// is read first.
fn fills<V, S: PartialEq + From<Scalar>>(args: &[Arg<V, S>], see: impl Fn(&V) -> Option<OperandMemory>) -> bool {
    let [_, Arg::Values(indices), Arg::Value(value), rest @ ..] = args else { return false };
    let accumulates =
        !rest.is_empty() && !matches!(rest.first(), Some(Arg::Scalar(s)) if *s == S::from(Scalar::Bool(false)));
    let mut masks = indices.iter().flatten().filter_map(&see);
    let one = see(value).and_then(|v| v.ty).is_some_and(|t| t.layout.numel() == 1);
    let mask = |m: OperandMemory| matches!(m.dtype, DType::Bool | DType::U8);
    !accumulates && one && masks.next().is_some_and(mask) && masks.next().is_none()
}

/// Whether two tensors may share a cell, now or after a resize of an empty tensor.
fn share(a: &OperandMemory, b: &OperandMemory, resizes: bool) -> bool {
    let (Some(x), Some(y)) = (&a.ty, &b.ty) else { return a.storage == b.storage };
    let empty = x.layout.sizes.contains(&0) || y.layout.sizes.contains(&0);
    meet(a, b) || a.storage == b.storage && resizes && empty
}

/// Whether a call copies elements of one type over those of another on the same memory.
fn converts_itself(twin: &Twin, target: &OperandMemory, operand: &OperandMemory) -> bool {
    let (Some(x), Some(y)) = (&target.ty, &operand.ty) else { return false };
    twin.op.def().maps_bits && x.dtype != y.dtype && x.layout.numel() > 1 && meet(target, operand)
}

/// Refuses a write into a tensor whose element type PyTorch does not cast to in place.
///
/// # Errors
/// In PyTorch's words.
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

    fn at(sizes: &[i64], strides: &[i64], offset: i64, object: usize) -> OperandMemory {
        OperandMemory::new(&Meta::new(DType::F32, Layout::strided(sizes, strides, offset)), 0, object)
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

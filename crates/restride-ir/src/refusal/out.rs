//! `out=` forms whose `out` overlaps itself or an operand: what PyTorch does is measured, form by form (`Twin::outs`).

use super::{INTERNAL, ORDER, OperandMemory, SHARED, Status, meet, status};
use crate::{Error, ErrorKind, Meta, OutOverlaps, OutVerdict, Result, Twin};
use restride_tensor::Layout;
use smallvec::SmallVec;

/// An `out=` form whose behaviour on overlapping memory is not known.
const OPEN: &str = "unsupported: `out` has several elements in one cell, and what this `out=` form does then is not known. Give it memory of its own.";

/// What a call makes of the sizes of its `out`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutSize {
    /// They are the result's.
    Kept,
    /// They become the result's, which has this many elements.
    Resized(i64),
    /// The sizes of the result are not known.
    Unknown,
}

/// Refuses a call whose `out` (the form's written argument `k`) overlaps itself or an operand, unless its result is that of memory
/// apart. `operands` are the functional form's arguments.
pub(super) fn refuse(
    twin: &Twin,
    k: usize,
    target: &OperandMemory,
    operands: &[SmallVec<[OperandMemory; 1]>],
    size: OutSize,
) -> Result<()> {
    let unknown = OutOverlaps::default();
    let own = twin.outs.get(k).unwrap_or(&unknown);
    if target.stretched {
        let [same, other] = own.stretched;
        let verdict = match size {
            OutSize::Kept => same,
            OutSize::Resized(_) => other,
            OutSize::Unknown if same == other => same,
            OutSize::Unknown => OutVerdict::Open,
        };
        match verdict {
            OutVerdict::Refused => return Err(Error::new(ErrorKind::Program, INTERNAL)),
            OutVerdict::Open => return Err(Error::unsupported(OPEN)),
            OutVerdict::Apart | OutVerdict::Loop => {}
        }
    }
    for (i, list) in operands.iter().enumerate() {
        let mut letters = own.shared.get(i).copied().unwrap_or_default();
        // A copied result is apart, unless the functional form returns its operand or reads cells beyond it.
        for letter in letters.iter_mut().filter(|l| **l == OutVerdict::Open && own.copies && !twin.op.def().strided) {
            *letter = OutVerdict::Apart;
        }
        for operand in list {
            match verdict(twin, letters, target, operand, size) {
                OutVerdict::Refused => return Err(Error::new(ErrorKind::Program, SHARED)),
                OutVerdict::Open | OutVerdict::Loop => return Err(Error::unsupported(ORDER)),
                OutVerdict::Apart => {}
            }
        }
    }
    Ok(())
}

/// What PyTorch does with this pair of tensors.
fn verdict(
    twin: &Twin,
    [full, partial, grown, left]: [OutVerdict; 4],
    target: &OperandMemory,
    operand: &OperandMemory,
    size: OutSize,
) -> OutVerdict {
    let pointwise = twin.op.def().pointwise;
    let resized = match size {
        OutSize::Kept => {
            return match status(target, operand) {
                // Each element is read before the write of its own cell.
                Status::Full if full == OutVerdict::Open && pointwise => OutVerdict::Apart,
                Status::Full => full,
                Status::Partial => partial,
                // PyTorch does not see it. Pointwise forms run in rounds.
                Status::TooHard if pointwise || !meet(target, operand) => OutVerdict::Apart,
                Status::TooHard if partial == OutVerdict::Apart || target.is_data_of(operand) => unseen(full),
                Status::TooHard => OutVerdict::Open,
                Status::No => OutVerdict::Apart,
            };
        }
        OutSize::Resized(count) => target.ty.as_ref().map(|t| {
            let offset = t.layout.offset;
            Meta::new(t.dtype, Layout { offset, ..Layout::contiguous(&[count]) })
        }),
        OutSize::Unknown => None,
    };
    let Some(resized) = resized else {
        let all = [full, partial, grown, left].iter().all(|v| *v == OutVerdict::Apart);
        return if all || target.storage != operand.storage { OutVerdict::Apart } else { OutVerdict::Open };
    };
    let after = OperandMemory { ty: Some(resized), ..target.clone() };
    match (meet(target, operand), meet(&after, operand)) {
        (false, false) => OutVerdict::Apart,
        (false, true) => grown,
        (true, false) => left,
        (true, true) if grown == left => left,
        (true, true) if [grown, left].contains(&OutVerdict::Refused) => OutVerdict::Refused,
        (true, true) => OutVerdict::Open,
    }
}

/// What a form does that would have refused the pair if it saw it.
fn unseen(verdict: OutVerdict) -> OutVerdict {
    if verdict == OutVerdict::Apart { verdict } else { OutVerdict::Open }
}

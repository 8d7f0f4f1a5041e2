//! The order in which eager PyTorch visits the elements of a pointwise write. The order shows if several elements of the
//! target share a cell, or if an operand has cells of the target that are written before they are read.

use crate::{Error, Meta, OpDef, OpError, Result};
use restride_tensor::{DType, Layout, LayoutError, Overlap, overlap_bytes, self_overlaps};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A chunk that every vectorised loop of PyTorch takes at once, on any processor: two vectors of 32 bytes.
const CHUNK_BYTES: i64 = 64;
/// Larger writes are not searched for reads of written cells.
const MAX_LOOKED_AT: i64 = 1 << 16;

/// Dimensions from fastest to slowest, sorted as by PyTorch's `TensorIterator`: by the strides of the first operand that
/// distinguishes two dimensions. `strides` are the operands', 0 where broadcast.
pub fn fastest_first(sizes: &[i64], strides: &[&[i64]]) -> SmallVec<[usize; 6]> {
    let compare = |a: usize, b: usize| {
        for s in strides {
            let (x, y) = (s[a], s[b]);
            if x == 0 || y == 0 {
                continue;
            }
            match x.cmp(&y) {
                std::cmp::Ordering::Less => return -1,
                std::cmp::Ordering::Greater => return 1,
                std::cmp::Ordering::Equal if sizes[a] > sizes[b] => return 1,
                std::cmp::Ordering::Equal => {}
            }
        }
        0
    };
    // Insertion sort, as comparisons may be ambiguous (0).
    let rank = sizes.len();
    let mut perm: SmallVec<[usize; 6]> = (0..rank).rev().collect();
    for i in 1..rank {
        let mut at = i;
        for j in (0..i).rev() {
            match compare(perm[j], perm[at]) {
                1 => {
                    perm.swap(j, at);
                    at = j;
                }
                -1 => break,
                _ => {}
            }
        }
    }
    perm
}

/// An operand of a pointwise write.
#[derive(Clone, Debug)]
pub struct Visited {
    /// Element type and cells.
    pub ty: Meta,
    /// Whether it shares the target's storage.
    pub shares: bool,
}

/// Split of a pointwise write into parts that leave the same content as PyTorch's loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Visits {
    /// The target's dimensions, slowest first.
    pub order: SmallVec<[usize; 6]>,
    /// Number of dimensions that are looped over; the inner ones run at once.
    pub depth: usize,
}

impl Visits {
    /// Parts of a target of these sizes in the order of the writes, each by its index in the looped dimensions, slowest
    /// first.
    pub fn indices(&self, sizes: &[i64]) -> impl Iterator<Item = SmallVec<[i64; 6]>> + use<> {
        let ends: SmallVec<[i64; 6]> = self.order[..self.depth].iter().map(|&d| sizes[d]).collect();
        let first = (!sizes.contains(&0)).then(|| SmallVec::from_elem(0, self.depth));
        std::iter::successors(first, move |index: &SmallVec<[i64; 6]>| {
            // Next index, fastest dimension last.
            let d = (0..index.len()).rev().find(|&d| index[d] + 1 < ends[d])?;
            let mut next = index.clone();
            next[d] += 1;
            next[d + 1..].fill(0);
            Some(next)
        })
    }

    /// Cells of one part of the target, or of an operand broadcast to the target's sizes. All dimensions stay, in the
    /// loop's order.
    ///
    /// # Errors
    /// An operand does not broadcast.
    pub fn part(&self, layout: &Layout, sizes: &[i64], index: &[i64]) -> Result<Layout, OpError> {
        let order: SmallVec<[i64; 6]> = self.order.iter().map(|d| *d as i64).collect();
        let one = |l: Layout, (d, i): (usize, &i64)| l.slice(d as i64, Some(i), Some(&(i + 1)), &1);
        let part = |l: Layout| -> Result<Layout, LayoutError> {
            index.iter().enumerate().try_fold(l.expand(sizes)?.permute(&order)?, one)
        };
        Ok(part(layout.clone())?)
    }
}

/// The visits of a write; `None` if it may run at once. `operands` are those of the functional form, in order, with the
/// target if the write reads it.
///
/// # Errors
/// The write reads cells that it wrote before, in an order that depends on the processor.
pub fn visits(target: &Meta, operands: &[Visited]) -> Result<Option<Visits>> {
    let sizes = &target.layout.sizes[..];
    if sizes.contains(&0) {
        return Ok(None);
    }
    let meets = |o: &Visited| {
        let same = o.ty.dtype == target.dtype && o.ty.layout.same_cells(&target.layout);
        let (a, b) = (&target.layout, &o.ty.layout);
        o.shares && !same && overlap_bytes(a, target.dtype.size(), b, o.ty.dtype.size()) != Overlap::Disjoint
    };
    let repeats = match self_overlaps(&target.layout) {
        Some(repeats) => repeats,
        None => {
            return Err(Error::unsupported("unsupported: the write's target may have several elements in one cell"));
        }
    };
    let met: SmallVec<[bool; 4]> = operands.iter().map(meets).collect();
    if !repeats && !met.contains(&true) {
        return Ok(None);
    }
    if !fits(target, operands) {
        return Ok(None);
    }
    let stretched: std::result::Result<SmallVec<[Layout; 4]>, _> =
        operands.iter().map(|o| o.ty.layout.expand(sizes)).collect();
    let Ok(stretched) = stretched else { return Ok(None) };
    let strides: SmallVec<[&[i64]; 4]> =
        std::iter::once(&target.layout).chain(&stretched).map(|l| &l.strides[..]).collect();
    let fast = fastest_first(sizes, &strides);
    let order: SmallVec<[usize; 6]> = fast.iter().rev().copied().collect();
    let permuted = |l: &Layout| {
        let dims: SmallVec<[i64; 6]> = order.iter().map(|d| *d as i64).collect();
        l.permute(&dims).expect("an order of all dimensions")
    };
    let out = permuted(&target.layout);
    let reads_what_it_wrote = operands
        .iter()
        .zip(&stretched)
        .zip(&met)
        .any(|((o, l), met)| *met && o.ty.dtype == target.dtype && written_before(&out, &permuted(l)));
    if reads_what_it_wrote {
        let all: SmallVec<[Layout; 4]> = std::iter::once(&target.layout).chain(&stretched).map(permuted).collect();
        if run(&all) * target.dtype.size() as i64 >= CHUNK_BYTES {
            let what =
                "unsupported: the write reads cells that it has written, in an order that depends on the processor";
            return Err(Error::unsupported(what).help("clone the operand before the write"));
        }
        return Ok(Some(Visits { depth: order.len(), order }));
    }
    if !repeats {
        return Ok(None);
    }
    let inner = |depth: usize| Layout::strided(&out.sizes[depth..], &out.strides[depth..], out.offset);
    let depth = (0..=order.len()).find(|d| self_overlaps(&inner(*d)) == Some(false)).unwrap_or(order.len());
    Ok(Some(Visits { order, depth }))
}

/// Whether PyTorch computes a write in another type than the target's. It then converts all operands first, and copies the
/// result back as `copy_` does. The type is the operands' promoted type; 0-d operands count less.
pub fn computed_aside(def: &OpDef, target: &Meta, operands: &[Visited]) -> bool {
    if !def.pointwise {
        return def.halves_aside && matches!(target.dtype, DType::F16 | DType::BF16);
    }
    let wide = operands.iter().any(|o| o.ty.rank() > 0);
    let common = operands.iter().filter(|o| o.ty.rank() > 0 || !wide).map(|o| o.ty.dtype).reduce(DType::promote);
    common.is_some_and(|common| common != target.dtype)
}

/// Whether the operands broadcast to the target's sizes. An `out=` of other sizes is resized; the operator refuses operands
/// that do not broadcast.
pub fn fits(target: &Meta, operands: &[Visited]) -> bool {
    let sizes = &target.layout.sizes;
    let has = |o: &Visited, d: usize| {
        let at = (d + o.ty.rank()).checked_sub(sizes.len());
        at.is_some_and(|at| o.ty.layout.sizes[at] == sizes[d])
    };
    operands.iter().all(|o| o.ty.layout.expand(sizes).is_ok())
        && (operands.is_empty() || (0..sizes.len()).all(|d| sizes[d] == 1 || operands.iter().any(|o| has(o, d))))
        && (operands.is_empty() || operands.iter().any(|o| o.ty.rank() == sizes.len()))
}

/// Whether an operand has a cell that the target wrote at an earlier visit.
fn written_before(out: &Layout, operand: &Layout) -> bool {
    if out.numel() > MAX_LOOKED_AT {
        return true;
    }
    let mut first: HashMap<i64, usize> = HashMap::new();
    for (i, cell) in out.cells().into_iter().enumerate() {
        first.entry(cell).or_insert(i);
    }
    operand.cells().into_iter().enumerate().any(|(j, cell)| first.get(&cell).is_some_and(|i| *i < j))
}

/// Elements in a row that are contiguous (or one element) in every operand: a run that a vectorised loop may take.
fn run(operands: &[Layout]) -> i64 {
    let sizes = &operands[0].sizes;
    let mut len = 1;
    for d in (0..sizes.len()).rev().filter(|d| sizes[*d] > 1) {
        let goes_on = operands.iter().enumerate().all(|(k, l)| l.strides[d] == len || k > 0 && l.strides[d] == 0);
        if !goes_on {
            break;
        }
        len *= sizes[d];
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(sizes: &[i64], strides: &[i64], offset: i64) -> Meta {
        Meta { dtype: DType::F32, layout: Layout::strided(sizes, strides, offset) }
    }
    fn on_it(ty: Meta) -> Visited {
        Visited { ty, shares: true }
    }

    #[test]
    fn the_target_tells_the_order() {
        let windows = meta(&[3, 3], &[1, 2], 0);
        let apart = Visited { ty: meta(&[3, 3], &[3, 1], 0), shares: false };
        let v = visits(&windows, &[on_it(windows.clone()), apart]).unwrap().unwrap();
        assert_eq!((&v.order[..], v.depth), (&[1, 0][..], 1));
    }

    #[test]
    fn parts_are_visited_slowest_dimension_first() {
        let v = Visits { order: [1, 0, 2].into_iter().collect(), depth: 2 };
        let (sizes, target) = ([2, 3, 4], Layout::contiguous(&[2, 3, 4]));
        let indices: Vec<_> = v.indices(&sizes).collect();
        assert_eq!(indices.len(), 6);
        assert_eq!(indices[..3].iter().map(|i| &i[..]).collect::<Vec<_>>(), [[0, 0], [0, 1], [1, 0]]);
        let starts: Vec<_> =
            indices.iter().map(|i| v.part(&target, &sizes, i).unwrap()).map(|l| (l.offset, l.sizes.to_vec())).collect();
        assert_eq!(starts.iter().map(|(o, _)| *o).collect::<Vec<_>>(), [0, 12, 4, 16, 8, 20]);
        assert!(starts.iter().all(|(_, s)| s[..] == [1, 1, 4]));
        // An operand of fewer dimensions.
        let row = Layout::contiguous(&[3, 4]);
        assert_eq!(v.part(&row, &sizes, &[2, 1]).unwrap().cells(), [8, 9, 10, 11]);
        assert!(v.part(&Layout::contiguous(&[5]), &sizes, &[0, 0]).is_err());
        assert_eq!(v.indices(&[2, 3, 0]).count(), 0);
        assert_eq!(Visits { depth: 0, ..v }.indices(&sizes).count(), 1);
    }

    #[test]
    fn reading_ahead_is_no_matter() {
        let (left, right) = (meta(&[3, 2], &[3, 1], 0), meta(&[3, 2], &[3, 1], 1));
        assert_eq!(visits(&left, &[on_it(left.clone()), on_it(right.clone())]).unwrap(), None);
        let v = visits(&right, &[on_it(right.clone()), on_it(left)]).unwrap().unwrap();
        assert_eq!(v.depth, 2);
    }

    #[test]
    fn another_type_puts_all_aside() {
        let target = meta(&[3, 3], &[1, 2], 0);
        let operand = |dtype, sizes: &[i64]| Visited { ty: Meta::contiguous(dtype, sizes), shares: false };
        let def = OpDef { pointwise: true, ..OpDef::new("test::op(Tensor a) -> Tensor") };
        let aside =
            |dtype, sizes: &[i64]| computed_aside(&def, &target, &[on_it(target.clone()), operand(dtype, sizes)]);
        assert!(aside(DType::F64, &[3]) && aside(DType::C64, &[3, 3]));
        assert!(!aside(DType::F64, &[]) && !aside(DType::I64, &[3]) && !aside(DType::F32, &[3]));
    }

    #[test]
    fn vectors_decide_nothing() {
        let (left, right) = (meta(&[2, 40], &[50, 1], 0), meta(&[2, 40], &[50, 1], 1));
        assert!(visits(&right, &[on_it(right.clone()), on_it(left.clone())]).is_err());
        let strided = |offset| meta(&[2, 20], &[50, 2], offset);
        assert!(visits(&strided(2), &[on_it(strided(2)), on_it(strided(0))]).unwrap().is_some());
        assert_eq!(visits(&left, &[on_it(right)]).unwrap(), None);
    }
}

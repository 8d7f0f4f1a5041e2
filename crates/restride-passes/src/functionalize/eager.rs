//! Writes that eager PyTorch refuses, and the order of writes that visit a cell more than once.
//!
//! The rules are those of `ATen/MemoryOverlap.cpp`: an expanded target is refused, a self-overlap that is harder to see
//! is not; operand and target may be the same cells, not partly the same.

use restride_ir::{Error, ErrorKind, Expr, Layout, Result, TensorType};
use restride_tensor::{Dim, self_overlaps};

/// PyTorch's words for a target with several elements in one cell.
pub const INTERNAL: &str = "unsupported operation: more than one element of the written-to tensor refers to a single memory \
     location. Please clone() the tensor before performing the operation.";
/// PyTorch's words for a target that shares cells with an operand.
pub const PARTIAL: &str = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
     memory location. Please clone() the tensor before performing the operation.";

/// Past this many rounds a self-overlapping write is refused.
const MAX_ROUNDS: usize = 4096;

/// Refuses a target that eager PyTorch refuses to write.
pub fn check_target(ty: &TensorType) -> Result<()> {
    let expanded =
        ty.layout.sizes.iter().zip(&ty.layout.strides).any(|(n, s)| s.is(0) && Expr::Int(1).less(n) == Some(true));
    if expanded { Err(Error::new(ErrorKind::Program, INTERNAL)) } else { Ok(()) }
}

/// Refuses an operand that shares some cells of the target's storage without being the same cells.
pub fn check_operand(target: &TensorType, operand: &TensorType, same_allowed: bool) -> Result<()> {
    let (Some(t), Some(o)) = (target.known(), operand.known()) else { return Ok(()) };
    if !t.layout.is_dense() || !o.layout.is_dense() {
        return Ok(());
    }
    let bytes = |l: &Layout, size: usize| {
        let r = l.cell_range();
        (r.start * size as i64, r.end * size as i64)
    };
    let (a, b) = (bytes(&t.layout, t.dtype.size()), bytes(&o.layout, o.dtype.size()));
    if a == b && t.layout.strides == o.layout.strides {
        return if same_allowed { Ok(()) } else { Err(Error::new(ErrorKind::Program, PARTIAL)) };
    }
    if a.0 < b.1 && b.0 < a.1 { Err(Error::new(ErrorKind::Program, PARTIAL)) } else { Ok(()) }
}

/// Index prefixes whose sub-layouts have no cell twice, in logical order: a write into a self-overlapping target runs
/// once for each. `None` if the target has no cell twice.
pub fn rounds(ty: &TensorType) -> Result<Option<Vec<Vec<i64>>>> {
    let Some(layout) = ty.layout.known() else { return Ok(None) };
    match self_overlaps(&layout) {
        Some(false) => return Ok(None),
        Some(true) => {}
        None => return Err(Error::unsupported("a write whose target may have several elements in one cell")),
    }
    let mut depth = 0;
    while depth < layout.rank() {
        depth += 1;
        let inner = Layout::strided(&layout.sizes[depth..], &layout.strides[depth..], layout.offset);
        if self_overlaps(&inner) == Some(false) {
            break;
        }
    }
    let mut out: Vec<Vec<i64>> = vec![Vec::new()];
    for &n in &layout.sizes[..depth] {
        if out.len() as i64 * n > MAX_ROUNDS as i64 {
            return Err(Error::unsupported("a write whose target has very many elements in one cell")
                .help("clone the tensor before writing it"));
        }
        out = out.iter().flat_map(|p| (0..n).map(move |i| [p.as_slice(), &[i]].concat())).collect();
    }
    Ok(Some(out))
}

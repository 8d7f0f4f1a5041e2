//! The order of writes that visit a cell more than once: eager PyTorch lets them pass where the overlap is hard to see,
//! and they mean a scalar loop in the logical order of the indices.

use restride_ir::{Error, Layout, Result, TensorType};
use restride_tensor::self_overlaps;

/// Past this many rounds a self-overlapping write is refused.
const MAX_ROUNDS: usize = 4096;

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

//! Scratch bytes of kernels, from the types and layouts of operands and results.

use crate::support::Result;
use restride_ir::{Args, Meta};
use restride_kernels::movement::remap::remap_room;
use restride_kernels::support::pack::packed_rooms;
use restride_kernels::support::scratch::room;
use restride_tensor::{DType, Layout};

/// Element type and layout of a tensor.
pub(crate) fn stored(m: &Meta) -> (DType, &Layout) {
    (m.dtype, &m.layout)
}

/// Element type and layout of an optional argument.
pub(crate) fn opt_stored<'a>(a: &Args<'a, Meta>, i: usize) -> Result<Option<(DType, &'a Layout)>> {
    Ok(a.opt_tensor(i)?.map(stored))
}

/// Scratch bytes of a kernel that packs all operands and results that are not row-major.
pub(crate) fn packed(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let each = a.0.iter().flat_map(|arg| arg.values()).chain(outs);
    Ok(packed_rooms(each.map(stored)))
}

/// Scratch bytes of a kernel that maps each result dimension to operand elements.
pub(crate) fn mapped(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let maps: usize = outs[0].sizes().iter().map(|&n| room::<usize>(n as usize)).sum();
    Ok(maps + remap_room(stored(a.tensor(0)?), stored(&outs[0])))
}

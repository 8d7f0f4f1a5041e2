//! Working memory of kernels, from how their operands and results lie: what operators declare as `scratch`.

use crate::support::Result;
use restride_ir::{Args, Meta};
use restride_kernels::support::pack::packed_rooms;
use restride_kernels::support::scratch::room;
use restride_tensor::{DType, Layout};

/// Where a tensor lies.
pub(crate) fn lies(m: &Meta) -> (DType, &Layout) {
    (m.dtype, &m.layout)
}

/// The same of an optional argument.
pub(crate) fn opt_lies<'a>(a: &Args<'a, Meta>, i: usize) -> Result<Option<(DType, &'a Layout)>> {
    Ok(a.opt_tensor(i)?.map(lies))
}

/// Of a kernel that puts operands and results in order which do not lie so, all of them.
pub(crate) fn packed(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let each = a.0.iter().flat_map(|arg| arg.values()).chain(outs);
    Ok(packed_rooms(each.map(lies)))
}

/// Of a kernel that looks up elements by one map for each dimension of the result.
pub(crate) fn mapped(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let maps: usize = outs[0].sizes().iter().map(|&n| room::<usize>(n as usize)).sum();
    Ok(maps + packed(a, outs)?)
}

//! `fill_diagonal_`, which PyTorch has only in place.

use crate::support::composite::composed;
use crate::support::*;
use restride_ir::{Dim, Emit, Expr, InPlaceCalls, OpDef, OverlapCheck, TwinDecl, TwinReturn, ViewArgs};
use smallvec::smallvec;

/// A row-major copy with every `step`-th element replaced.
fn fill_diagonal(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let (meta, wrap) = (e.meta(x), a.bool(2)?);
    let n = meta.sizes().to_vec();
    ensure!(n.len() >= 2, "dimensions must larger than 1");
    ensure!(n.len() == 2 || n.iter().all(|s| *s == n[0]), "all dimensions of input must be of equal length");
    if n.len() == 2 && !(wrap && n[0] > n[1] + 1) {
        let value = emit!(e, "aten.full.default", [n[0].min(n[1])], a.scalar(1)?, meta.dtype)?;
        return Ok(smallvec![emit!(e, "aten.diagonal_scatter.default", x, value)?]);
    }
    let numel: i64 = n.iter().product();
    // The distance between neighbours on the diagonal, in row-major order.
    let step: i64 = (1..=n.len()).map(|d| n[d..].iter().product::<i64>()).sum();
    let count = if n.len() == 2 { (numel + step - 1) / step } else { n[0] };
    let flat = emit!(e, "aten.reshape.default", x, [numel])?;
    let value = emit!(e, "aten.full.default", [count], a.scalar(1)?, meta.dtype)?;
    let end = (count - 1).max(0) * step + i64::from(count > 0);
    let flat = emit!(e, "aten.slice_scatter.default", flat, value, 0, 0, end, step)?;
    Ok(smallvec![emit!(e, "aten.reshape.default", flat, n)?])
}

/// PyTorch's calls: the diagonal, and the rest of a wrapped one, are filled through the target's strides.
fn fill_in_place(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let (meta, wrap) = (e.meta(x), a.bool(2)?);
    let (n, strides) = (&meta.layout.sizes, &meta.layout.strides);
    ensure!(n.len() >= 2, "dimensions must larger than 1");
    ensure!(n.len() == 2 || n.iter().all(|s| *s == n[0]), "all dimensions of input must be of equal length");
    let (count, stride, offset) = (n[0].min(n[1]), strides.iter().sum::<i64>(), meta.layout.offset);
    let diagonal = emit!(e, "aten.as_strided.default", x, [count], [stride], offset)?;
    emit_all!(e, "aten.fill_.Scalar", diagonal, pass(a, 1))?;
    if wrap && n.len() == 2 && n[0] > n[1] + 1 {
        let step = n[1] + 1;
        let rest = (n[0] * n[1] + step - 1) / step - count;
        let diagonal = emit!(e, "aten.as_strided.default", x, [rest], [stride], offset + strides[0] * step)?;
        emit_all!(e, "aten.fill_.Scalar", diagonal, pass(a, 1))?;
    }
    Ok(smallvec![x])
}

/// Rows that follow each other in memory wrap as elements do.
fn wraps_as_elements(a: &ViewArgs<'_, Expr>) -> Result<bool> {
    let layout = &a.tensor(0)?.layout;
    if layout.rank() != 2 || a.known(2)? == 0 {
        return Ok(true);
    }
    let (n, strides) = (&layout.sizes, &layout.strides);
    let few = n[0].known().zip(n[1].known()).is_some_and(|(rows, columns)| rows <= columns + 1);
    Ok(few || strides[0].equals(&n[1].times(&strides[1])) == Some(true))
}

pub(crate) static OPS: &[OpDef] = table![
    OpDef {
        doc: "The functional form of fill_diagonal_",
        infer: composed!(fill_diagonal),
        // The diagonal of an expanded tensor may still visit each cell once.
        overlap: OverlapCheck::None,
        decompose: Some(fill_diagonal),
        ..OpDef::new("restride::fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor")
    },
    OpDef {
        twin: Some(TwinDecl {
            op: "restride.fill_diagonal.default",
            args: &[0, 1, 2],
            writes: &[(0, 0)],
            returns: &[TwinReturn::Arg(0)],
            when: None,
        }),
        in_place_calls: Some(&InPlaceCalls { calls: fill_in_place, as_twin: wraps_as_elements }),
        samples: samples!(samples),
        ..OpDef::new("fill_diagonal_")
    },
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn samples() -> Samples {
        let mut out = Vec::new();
        for d in [DType::F32, DType::I64] {
            for (n, wrap) in [(&[3i64, 3] as &[i64], false), (&[7, 3], true), (&[7, 3], false), (&[2, 5], true)] {
                out.push(sample![tensor(d, n, 0), 5, wrap]);
                out.push(sample![transposed(d, n, 1), 5, wrap]);
                out.push(sample![strided(d, n, 2), 5, wrap]);
            }
            out.push(sample![tensor(d, &[3, 3, 3], 0), 5, false]);
            out.push(sample![tensor(d, &[0, 3], 0), 5, true]);
        }
        out
    }
}

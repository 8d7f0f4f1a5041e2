//! Products of several matrices, and aliases of the product of two.

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Emit, OpDef, Val};
use smallvec::smallvec;

/// The cheapest order of products of matrices `d[i]` × `d[i + 1]`: the split point of each subsequence.
fn cuts(d: &[i64]) -> Vec<Vec<usize>> {
    let n = d.len() - 1;
    let mut cost = vec![vec![0i128; n]; n];
    let mut cut = vec![vec![0; n]; n];
    for len in 1..n {
        for i in 0..n - len {
            let j = i + len;
            let price = |k: usize| cost[i][k] + cost[k + 1][j] + d[i] as i128 * d[k + 1] as i128 * d[j + 1] as i128;
            let best = (i..j).min_by_key(|&k| price(k)).unwrap_or(i);
            (cost[i][j], cut[i][j]) = (price(best), best);
        }
    }
    cut
}

fn product(e: &mut dyn Emit, ms: &[Val], cut: &[Vec<usize>], i: usize, j: usize) -> Result<Val> {
    if i == j {
        return Ok(ms[i]);
    }
    let k = cut[i][j];
    let (a, b) = (product(e, ms, cut, i, k)?, product(e, ms, cut, k + 1, j)?);
    emit!(e, "aten.mm.default", a, b)
}

/// The product of several matrices.
fn chained(e: &mut dyn Emit, ms: &[Val]) -> Result<Val> {
    let mut d = vec![sizes(e, ms[0])[0]];
    for (i, &m) in ms.iter().enumerate() {
        let s = sizes(e, m);
        ensure!(
            s.len() == 2,
            "Tensor {i} of a product of matrices has {} dimensions, but was expected to have 2",
            s.len()
        );
        ensure!(s[0] == d[i], "tensor {i} of a product of matrices has {} rows where {} are needed", s[0], d[i]);
        d.push(s[1]);
    }
    product(e, ms, &cuts(&d), 0, ms.len() - 1)
}

fn chain(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let ms: Vec<Val> = a.tensors(0)?.into_iter().copied().collect();
    ensure!(!ms.is_empty(), "chain_matmul(): Expected one or more matrices");
    for (i, &m) in ms.iter().enumerate() {
        let rank = sizes(e, m).len();
        ensure!(rank == 2, "Tensor {i} of a product of matrices has {rank} dimensions, but was expected to have 2");
    }
    // One matrix is copied, not returned.
    if let [only] = ms[..] {
        return Ok(smallvec![emit!(e, "aten.clone.default", only)?]);
    }
    Ok(smallvec![chained(e, &ms)?])
}

/// `multi_dot`: the first and last operands may be vectors, a row and a column.
fn multi_dot(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let mut ms: Vec<Val> = a.tensors(0)?.into_iter().copied().collect();
    let n = ms.len();
    ensure!(n >= 2, "linalg.multi_dot: expected at least 2 tensors but got {n}");
    let dtype = e.meta(ms[0]).dtype;
    for &m in &ms {
        ensure!(e.meta(m).dtype == dtype, "linalg.multi_dot: all tensors must have be the same dtype");
    }
    let (first, last) = (sizes(e, ms[0]).len(), sizes(e, ms[n - 1]).len());
    if first == 1 {
        ms[0] = emit!(e, "aten.unsqueeze.default", ms[0], 0)?;
    }
    if last == 1 {
        ms[n - 1] = emit!(e, "aten.unsqueeze.default", ms[n - 1], -1)?;
    }
    let mut out = chained(e, &ms)?;
    if last == 1 {
        out = emit!(e, "aten.squeeze.dim", out, 1)?;
    }
    if first == 1 {
        out = emit!(e, "aten.squeeze.dim", out, 0)?;
    }
    Ok(smallvec![out])
}

fn matmul(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![emit!(e, "aten.matmul.default", pass(a, 0), pass(a, 1))?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(chain, chain_samples(), "chain_matmul"),
    composite!(multi_dot, multi_dot_samples(), "linalg_multi_dot"),
    composite!(matmul, matmul_samples(), "linalg_matmul"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn chain_samples() -> Samples {
        let d = DType::F32;
        vec![
            sample![vec![
                tensor(d, &[2, 3], 1),
                transposed(d, &[3, 4], 2),
                tensor(d, &[4, 5], 3),
                tensor(d, &[5, 1], 4)
            ]],
            sample![vec![tensor(d, &[9, 2], 1), tensor(d, &[2, 8], 2), tensor(d, &[8, 3], 3)]],
            sample![vec![tensor(d, &[2, 3], 1), tensor(d, &[3, 4], 2)]],
            sample![vec![tensor(d, &[2, 3], 1), tensor(d, &[4, 4], 2)]],
            sample![vec![tensor(d, &[2, 3], 1), tensor(d, &[3], 2)]],
        ]
    }

    pub(crate) fn multi_dot_samples() -> Samples {
        let d = DType::F64;
        let mut out = chain_samples();
        out.push(sample![vec![tensor(d, &[3], 1), tensor(d, &[3, 4], 2), tensor(d, &[4], 3)]]);
        out.push(sample![vec![tensor(d, &[3], 1), tensor(d, &[3, 4], 2), tensor(d, &[4, 2], 3)]]);
        out.push(sample![vec![tensor(d, &[3], 1)]]);
        out
    }

    pub(crate) fn matmul_samples() -> Samples {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[5, 2, 3], 1), transposed(d, &[3, 4], 2)],
            sample![tensor(d, &[3], 1), tensor(d, &[3], 2)],
        ]
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_cheapest_order_is_found() {
        // (10 × 100) (100 × 5) (5 × 50): the first product comes first.
        assert_eq!(super::cuts(&[10, 100, 5, 50])[0][2], 1);
        assert_eq!(super::cuts(&[50, 5, 100, 10])[0][2], 0);
    }
}

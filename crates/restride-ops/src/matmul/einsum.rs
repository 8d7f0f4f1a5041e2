//! `einsum`: permutes operands to a common dimension order, then multiplies them pairwise by `bmm`.
//!
//! The steps are PyTorch's, so the result has PyTorch's strides and is a view of the operand where PyTorch's is. PyTorch takes
//! dimensions of one index for missing ones. Where sizes are examples of symbolic ones, these steps would not be those of other
//! sizes: there a dimension of one index is missing only if another operand has more in it.

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Emit, OpDef, Val};
use smallvec::smallvec;

/// Index of a letter in PyTorch's order: upper case first.
fn letter(c: char) -> usize {
    if c.is_ascii_uppercase() { c as usize - 'A' as usize } else { 26 + c as usize - 'a' as usize }
}
const LETTERS: usize = 52;

/// A subscript: a letter, or the dimensions under `...`.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Subscript {
    Letter(usize),
    Ellipsis,
}

/// Parses the subscripts of one operand or of the output.
fn subscripts(text: &str, whose: &str) -> Result<Vec<Subscript>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == ' ' {
            rest = &rest[1..];
        } else if let Some(tail) = rest.strip_prefix("...") {
            ensure!(
                !out.contains(&Subscript::Ellipsis),
                "einsum(): found '.' for {whose} for which an ellipsis was already found"
            );
            out.push(Subscript::Ellipsis);
            rest = tail;
        } else if c.is_ascii_alphabetic() {
            out.push(Subscript::Letter(letter(c)));
            rest = &rest[1..];
        } else {
            return fail(format!(
                "einsum(): invalid subscript '{c}' for {whose}, subscripts must be in [a-zA-Z] or an ellipsis (...)"
            ));
        }
    }
    Ok(out)
}

/// Position of every dimension: output dimensions first, then summed ones.
struct EinsumPlan {
    /// Position of each letter.
    position: [Option<usize>; LETTERS],
    /// First position of the dimensions under `...`.
    ellipsis: usize,
    /// Number of dimensions under `...`.
    ellipsis_dims: usize,
    /// Number of output dimensions.
    out: usize,
    /// Number of all dimensions.
    all: usize,
}

fn plan(inputs: &[Vec<Subscript>], ranks: &[usize], output: Option<Vec<Subscript>>) -> Result<EinsumPlan> {
    let mut count = [0usize; LETTERS];
    let mut ellipsis_dims = 0;
    for (i, (labels, &rank)) in inputs.iter().zip(ranks).enumerate() {
        let letters = labels.iter().filter(|s| **s != Subscript::Ellipsis).count();
        if letters < labels.len() {
            ensure!(
                letters <= rank,
                "einsum(): the number of subscripts in the equation ({letters}) is more than the number of dimensions ({rank}) for operand {i}"
            );
            ellipsis_dims = ellipsis_dims.max(rank - letters);
        } else {
            ensure!(
                letters == rank,
                "einsum(): the number of subscripts in the equation ({letters}) does not match the number of dimensions ({rank}) for operand {i} and no ellipsis was given"
            );
        }
        for s in labels {
            if let Subscript::Letter(l) = s {
                count[*l] += 1;
            }
        }
    }
    let mut p = EinsumPlan { position: [None; LETTERS], ellipsis: 0, ellipsis_dims, out: 0, all: 0 };
    let mut ellipsis_placed = false;
    match output {
        None => {
            ellipsis_placed = true;
            p.all = ellipsis_dims;
            for l in (0..LETTERS).filter(|&l| count[l] == 1) {
                p.position[l] = Some(p.all);
                p.all += 1;
            }
        }
        Some(labels) => {
            for s in labels {
                match s {
                    Subscript::Ellipsis => {
                        (p.ellipsis, ellipsis_placed) = (p.all, true);
                        p.all += ellipsis_dims;
                    }
                    Subscript::Letter(l) => {
                        ensure!(count[l] > 0, "einsum(): an output subscript does not appear for any input operand");
                        ensure!(
                            p.position[l].is_none(),
                            "einsum(): an output subscript appears more than once in the output"
                        );
                        p.position[l] = Some(p.all);
                        p.all += 1;
                    }
                }
            }
        }
    }
    p.out = p.all;
    if !ellipsis_placed {
        p.ellipsis = p.all;
        p.all += ellipsis_dims;
    }
    for (position, _) in p.position.iter_mut().zip(count).filter(|(p, count)| *count > 0 && p.is_none()) {
        *position = Some(p.all);
        p.all += 1;
    }
    Ok(p)
}

/// An operand with its dimensions in the plan's order, and which of them it names; the others have size 1.
fn align(e: &mut dyn Emit, mut v: Val, labels: &[Subscript], p: &EinsumPlan, i: usize) -> Result<(Val, Vec<bool>)> {
    let rank = e.meta(v).rank();
    let mut from: Vec<Option<i64>> = vec![None; p.all];
    let mut dim = 0;
    for s in labels {
        match s {
            Subscript::Ellipsis => {
                let covered = rank + 1 - labels.len();
                for j in p.ellipsis_dims - covered..p.ellipsis_dims {
                    from[p.ellipsis + j] = Some(dim);
                    dim += 1;
                }
            }
            Subscript::Letter(l) => {
                let at = p.position[*l].unwrap_or_default();
                match from[at] {
                    None => {
                        from[at] = Some(dim);
                        dim += 1;
                    }
                    Some(before) => {
                        let n = sizes(e, v);
                        ensure!(
                            n[dim as usize] == n[before as usize],
                            "einsum(): a subscript is repeated for operand {i} but the sizes don't match, {} != {}",
                            n[dim as usize],
                            n[before as usize]
                        );
                        let d = emit!(e, "aten.diagonal.default", v, 0, before, dim)?;
                        // The diagonal becomes the last dimension; this permutation moves it to the letter's position.
                        let mut perm: Vec<i64> = (0..n.len() as i64 - 2).collect();
                        perm.insert(before as usize, n.len() as i64 - 2);
                        v = emit!(e, "aten.permute.default", d, perm)?;
                    }
                }
            }
        }
    }
    let named = from.iter().map(Option::is_some).collect();
    for slot in from.iter_mut().filter(|f| f.is_none()) {
        v = emit!(e, "aten.unsqueeze.default", v, dim)?;
        *slot = Some(dim);
        dim += 1;
    }
    let perm: Vec<i64> = from.into_iter().flatten().collect();
    Ok((emit!(e, "aten.permute.default", v, perm)?, named))
}

/// An operand with the dimensions of the plan.
struct AlignedOperand {
    value: Val,
    /// The dimensions that it has; it is broadcast along the others, which have size 1.
    has: Vec<bool>,
}

/// Multiplies two aligned operands and sums over some dimensions, kept with size 1.
fn pair(e: &mut dyn Emit, a: AlignedOperand, b: AlignedOperand, sum: &[usize]) -> Result<AlignedOperand> {
    let has = (0..a.has.len()).map(|d| (a.has[d] || b.has[d]) && !sum.contains(&d)).collect();
    Ok(AlignedOperand { value: product(e, a, b, sum)?, has })
}

fn product(e: &mut dyn Emit, left: AlignedOperand, right: AlignedOperand, sum: &[usize]) -> Result<Val> {
    let (AlignedOperand { value: mut a, has: has_a }, AlignedOperand { value: mut b, has: has_b }) = (left, right);
    if sum.is_empty() {
        return emit!(e, "aten.mul.Tensor", a, b);
    }
    // Dimensions of both operands, of one operand only, and summed ones.
    let (mut both, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
    let (mut batch, mut rows, mut cols, mut shared) = (1, 1, 1, 1);
    for (d, (in_a, in_b)) in has_a.into_iter().zip(has_b).enumerate() {
        let (m, n) = (sizes(e, a)[d], sizes(e, b)[d]);
        let dim = [d as i64];
        match (sum.contains(&d), in_a, in_b) {
            (true, true, true) => {
                ensure!(m == n, "non-broadcast dimensions must match");
                shared *= m;
            }
            (true, true, false) => a = emit!(e, "aten.sum.dim_IntList", a, dim, true, ())?,
            (true, false, true) => b = emit!(e, "aten.sum.dim_IntList", b, dim, true, ())?,
            (true, false, false) => {}
            (false, true, true) => {
                ensure!(m == n, "non-broadcast dimensions must match");
                batch *= m;
                both.push(d);
            }
            (false, true, false) => {
                rows *= m;
                left.push(d);
            }
            (false, false, _) => {
                cols *= n;
                right.push(d);
            }
        }
    }
    // If the output lists all dimensions of the right operand first, exchanged operands save a permutation.
    if let (Some(&first), Some(&last)) = (left.first(), right.last())
        && last < first
    {
        std::mem::swap(&mut a, &mut b);
        std::mem::swap(&mut left, &mut right);
        std::mem::swap(&mut rows, &mut cols);
    }
    let order = |lists: &[&[usize]]| -> Vec<i64> { lists.iter().flat_map(|l| l.iter().map(|&d| d as i64)).collect() };
    let (sa, sb) = (sizes(e, a), sizes(e, b));
    let sizes_out: Vec<i64> = both
        .iter()
        .chain(&left)
        .map(|&d| sa[d])
        .chain(sum.iter().map(|_| 1))
        .chain(right.iter().map(|&d| sb[d]))
        .collect();
    let x = emit!(e, "aten.permute.default", a, order(&[&both, &left, sum, &right]))?;
    let x = emit!(e, "aten.reshape.default", x, [batch, rows, shared])?;
    let y = emit!(e, "aten.permute.default", b, order(&[&both, sum, &right, &left]))?;
    let y = emit!(e, "aten.reshape.default", y, [batch, shared, cols])?;
    let product = emit!(e, "aten.bmm.default", x, y)?;
    let product = emit!(e, "aten.view.default", product, sizes_out)?;
    let placed = order(&[&both, &left, sum, &right]);
    let mut back = vec![0i64; placed.len()];
    for (i, &d) in placed.iter().enumerate() {
        back[d as usize] = i as i64;
    }
    emit!(e, "aten.permute.default", product, back)
}

fn einsum(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let equation = a.str(0)?;
    let operands: Vec<Val> = a.tensors(1)?.into_iter().copied().collect();
    let path = a.opt_ints(2)?;
    ensure!(!operands.is_empty(), "einsum(): must provide at least one operand");
    let (lhs, rhs) = match equation.split_once("->") {
        Some((l, r)) => (l, Some(r)),
        None => (equation, None),
    };
    let parts: Vec<&str> = lhs.split(',').collect();
    ensure!(
        parts.len() == operands.len(),
        "einsum(): {} operands were provided than specified in the equation",
        if parts.len() > operands.len() { "fewer" } else { "more" }
    );
    let inputs: Vec<Vec<Subscript>> =
        parts.iter().enumerate().map(|(i, p)| subscripts(p, &format!("operand {i}"))).collect::<Result<_>>()?;
    let output = rhs.map(|r| subscripts(r, "output")).transpose()?;
    let ranks: Vec<usize> = operands.iter().map(|&v| e.meta(v).rank()).collect();
    let p = plan(&inputs, &ranks, output)?;
    let (mut ops, mut named) = (Vec::new(), Vec::new());
    for (i, (&v, labels)) in operands.iter().zip(&inputs).enumerate() {
        let (value, names) = align(e, v, labels, &p, i)?;
        ops.push(value);
        named.push(names);
    }
    let mut width = vec![1i64; p.all];
    for (i, &v) in ops.iter().enumerate() {
        for (d, &n) in sizes(e, v).iter().enumerate().filter(|(_, n)| **n != 1) {
            ensure!(
                width[d] == 1 || width[d] == n,
                "einsum(): a subscript has size {n} for operand {i} which does not broadcast with previously seen size {}",
                width[d]
            );
            width[d] = n;
        }
    }
    // Number of operands that have a dimension.
    let mut many = vec![0usize; p.all];
    let mut ops: Vec<AlignedOperand> = ops
        .into_iter()
        .zip(&named)
        .map(|(value, named)| {
            let n = sizes(e, value);
            let has = (0..p.all).map(|d| n[d] != 1 || e.any_sizes() && named[d] && width[d] == 1).collect();
            AlignedOperand { value, has }
        })
        .collect();
    for op in &ops {
        many.iter_mut().zip(&op.has).for_each(|(n, has)| *n += usize::from(*has));
    }
    if let Some(path) = &path {
        let want = if operands.len() == 1 { 1 } else { 2 * (operands.len() - 1) };
        ensure!(
            path.len() == want,
            "einsum(): expected contraction path given in path parameter to have size {want} but got {}",
            path.len()
        );
    }
    let mut steps = path.as_deref().map(|p| p.chunks(2));
    while ops.len() > 1 {
        let (i, j) = match steps.as_mut().and_then(Iterator::next) {
            Some(&[i, j]) => (i.min(j), i.max(j)),
            _ => (0, 1),
        };
        ensure!(i >= 0 && i != j && j < ops.len() as i64, "einsum(): invalid contraction ({i}, {j})");
        let mut b = ops.remove(j as usize);
        let mut a = ops.remove(i as usize);
        let (mut sum, mut sum_a, mut sum_b) = (Vec::new(), Vec::new(), Vec::new());
        for (d, many) in many.iter_mut().enumerate().skip(p.out) {
            match (a.has[d], b.has[d]) {
                (true, true) => {
                    *many -= 1;
                    if *many == 1 {
                        sum.push(d);
                        *many = 0;
                    }
                }
                (true, false) if *many == 1 => {
                    sum_a.push(d as i64);
                    *many = 0;
                }
                (false, true) if *many == 1 => {
                    sum_b.push(d as i64);
                    *many = 0;
                }
                _ => {}
            }
        }
        for (x, dims) in [(&mut a, sum_a), (&mut b, sum_b)] {
            if !dims.is_empty() {
                dims.iter().for_each(|&d| x.has[d as usize] = false);
                x.value = emit!(e, "aten.sum.dim_IntList", x.value, dims, true, ())?;
            }
        }
        let product = pair(e, a, b, &sum)?;
        if steps.is_some() { ops.push(product) } else { ops.insert(0, product) }
    }
    let result = ops[0].value;
    if p.all == p.out {
        return Ok(smallvec![result]);
    }
    if operands.len() > 1 {
        let kept = sizes(e, result)[..p.out].to_vec();
        return Ok(smallvec![emit!(e, "aten.view.default", result, kept)?]);
    }
    let summed: Vec<i64> = (p.out as i64..p.all as i64).collect();
    Ok(smallvec![emit!(e, "aten.sum.dim_IntList", result, summed, false, ())?])
}

pub(crate) static OPS: &[OpDef] = table![composite!(einsum, einsum_samples(), "einsum")];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn einsum_samples() -> Samples {
        let d = DType::F32;
        let equations: [(&str, &[&[i64]]); 17] = [
            ("bhqd,bhkd->bhqk", &[&[2, 3, 4, 5], &[2, 3, 6, 5]]),
            ("i,j->ij", &[&[2], &[3]]),
            ("ij->ji", &[&[2, 3]]),
            ("ii->i", &[&[3, 3]]),
            ("ii", &[&[3, 3]]),
            ("ij->j", &[&[2, 3]]),
            ("bij,bjk->bik", &[&[2, 3, 4], &[2, 4, 5]]),
            ("nchw,oc->nohw", &[&[2, 3, 4, 5], &[6, 3]]),
            ("bqnc,bnchw->bqnhw", &[&[1, 2, 3, 4], &[1, 3, 4, 5, 6]]),
            ("...ij,...jk->...ik", &[&[2, 3, 4], &[4, 5]]),
            ("abc,cd,de->abe", &[&[2, 3, 4], &[4, 5], &[5, 6]]),
            ("ij,ij->", &[&[2, 3], &[2, 3]]),
            ("blhd,bshd->bhls", &[&[2, 3, 4, 5], &[2, 6, 4, 5]]),
            ("bij, bjk", &[&[2, 3, 4], &[2, 4, 5]]),
            ("ijk,ij->ik", &[&[2, 3, 4], &[2, 1]]),
            ("bclhn,bclhp->bchpn", &[&[1, 2, 4, 3, 5], &[1, 2, 4, 3, 6]]),
            ("jkc,abij->akbci", &[&[5, 2, 3], &[2, 3, 4, 5]]),
        ];
        let mut out = Vec::new();
        for (eq, shapes) in equations {
            type Make = fn(DType, &[i64], u64) -> restride_tensor::RawTensor;
            for make in [tensor as Make, transposed, strided] {
                let operands: Vec<_> = shapes.iter().enumerate().map(|(i, s)| make(d, s, i as u64)).collect();
                out.push(sample![eq, operands]);
            }
        }
        let chain = |path: &[i64]| {
            sample!["ab,bc,cd->ad", vec![tensor(d, &[2, 3], 0), tensor(d, &[3, 4], 1), tensor(d, &[4, 5], 2)], path]
        };
        out.push(chain(&[1, 2, 0, 1]));
        out.push(chain(&[0, 1, 0, 1]));
        out
    }
}

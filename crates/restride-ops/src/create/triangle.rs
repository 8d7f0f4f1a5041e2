//! Triangles of matrices, `one_hot`, and `meshgrid`.

use crate::create::range::columns;
use crate::create::row_major;
use crate::pointwise::{Metas, Result};
use crate::support::composite::composite;
use crate::support::{IN_PLACE, ensure, exact, fail, without_scratch};
use restride_ir::{Arg, Args, Call, Emit, Meta, OpDef, OpError, Scalar, Val};
use restride_kernels::movement::triangle::triangle;
use restride_kernels::support::convert::{gather, scatter};
use restride_kernels::support::scratch::{Temp, room};
use restride_tensor::DType::*;
use smallvec::SmallVec;

fn infer_tri(a: &Args<'_, Meta>, name: &str) -> Metas {
    let t = a.tensor(0)?;
    ensure!(t.rank() >= 2, "{name}: input tensor must have at least 2 dimensions");
    row_major(t.dtype, t.sizes())
}
fn run_tri(c: &Call<'_>, lower: bool) -> Result<()> {
    let (x, diagonal) = (c.args.tensor(0)?, c.args.int(1)?);
    let cols = *x.sizes().last().unwrap_or(&0);
    let kept = |row: usize| {
        let kept = columns(lower, row as i64, cols, diagonal);
        kept.start as usize..kept.end as usize
    };
    triangle(x, &kept, &c.outs[0]).map_err(OpError::new)
}

/// `one_hot` requires the number of classes; otherwise the data would decide the sizes.
fn infer_one_hot(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    ensure!(t.dtype == I64, "one_hot is only applicable to index tensor of type LongTensor.");
    let mut sizes = t.sizes().to_vec();
    match a.int(1)? {
        0 if t.layout.numel() == 0 => {
            return fail("Can not infer total number of classes from empty tensor.");
        }
        0 => return fail("Class values must be smaller than num_classes."),
        n if n < 0 => return fail("one_hot without a number of classes has sizes that depend on the data"),
        n => sizes.push(n),
    }
    row_major(I64, &sizes)
}
fn run_one_hot(c: &Call<'_>) -> Result<()> {
    let classes = gather::<i64>(*c.args.tensor(0)?);
    let n = c.args.int(1)?;
    if classes.iter().any(|x| *x < 0) {
        return fail("Class values must be non-negative.");
    }
    if classes.iter().any(|x| *x >= n) {
        return fail("Class values must be smaller than num_classes.");
    }
    let mut data = Temp::filled(c.outs[0].numel(), 0i64);
    for (row, class) in data.chunks_exact_mut(n as usize).zip(&classes) {
        row[*class as usize] = 1;
    }
    scatter(&data, &c.outs[0]);
    Ok(())
}
fn one_hot_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let of = |m: &Meta| room::<i64>(m.layout.numel() as usize);
    Ok(of(a.tensor(0)?) + of(&outs[0]))
}

/// Places each tensor along its own dimension and expands it over the others.
fn grid(e: &mut dyn Emit, tensors: &[Val]) -> Result<SmallVec<[Val; 1]>> {
    let mut sizes = Vec::with_capacity(tensors.len());
    let first = tensors.first().map(|t| e.meta(*t).dtype);
    for t in tensors {
        let t = e.meta(*t);
        ensure!(t.rank() <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}");
        ensure!(Some(t.dtype) == first, "torch.meshgrid expects all tensors to have the same dtype");
        sizes.push(t.layout.numel());
    }
    let list = |sizes: &[i64]| Arg::Scalars(sizes.iter().map(|&n| Scalar::Int(n)).collect());
    let mut out = SmallVec::new();
    for (d, t) in tensors.iter().enumerate() {
        let mut own = vec![1; sizes.len()];
        own[d] = sizes[d];
        let view = e.call("aten.view.default", &[Arg::Value(*t), list(&own)])?[0];
        out.push(e.call("aten.expand.default", &[Arg::Value(view), list(&sizes)])?[0]);
    }
    Ok(out)
}
fn meshgrid(e: &mut dyn Emit, a: &Args<'_, Val>) -> Result<SmallVec<[Val; 1]>> {
    let mut tensors: Vec<Val> = a.tensors(0)?.into_iter().copied().collect();
    ensure!(!tensors.is_empty(), "torch.meshgrid expects a non-empty TensorList");
    let swapped = match a.opt_str(1)? {
        None | Some("ij") => false,
        Some("xy") => tensors.len() > 1,
        Some(other) => {
            return fail(format!("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {other}"));
        }
    };
    if !swapped {
        return grid(e, &tensors);
    }
    tensors.swap(0, 1);
    let mut out = grid(e, &tensors)?;
    out.swap(0, 1);
    Ok(out)
}

pub(crate) static OPS: &[OpDef] = table![
    without_scratch("tril", |a| infer_tri(a, "tril"), |c| run_tri(c, true), samples!(s_tri))
        .exactly()
        .reusing(IN_PLACE),
    without_scratch("triu", |a| infer_tri(a, "triu"), |c| run_tri(c, false), samples!(s_tri))
        .exactly()
        .reusing(IN_PLACE),
    exact("one_hot", infer_one_hot, run_one_hot, one_hot_scratch, samples!(s_one_hot)).failing(),
    composite!(meshgrid, s_meshgrid(), "meshgrid").exactly(),
    composite!(meshgrid, s_meshgrid_indexed(), "meshgrid.indexing").exactly(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::pointwise::samples::*;
    pub(super) use crate::support::samples::*;

    pub(crate) fn s_tri() -> Vec<Sample> {
        let mut out: Vec<Sample> = every_layout(ALL, -2.0, 2.0).into_iter().map(|t| sample![t]).collect();
        for d in [-7, -2, -1, 1, 2, 7] {
            out.push(sample![tensor(F32, &[3, 4], 1), d]);
            out.push(sample![transposed(I64, &[4, 3, 2], 2), d]);
            out.push(sample![strided(C64, &[2, 3, 2], 3), d]);
        }
        out.push(sample![RawTensor::from_slice(&[f32::NAN, f32::INFINITY, f32::NAN, -1.0], &[2, 2])]);
        out.extend(DType::ALL.map(|d| sample![tensor(d, &[3, 3], 4)]));
        out.push(sample![tensor(F32, &[0, 3], 1)]);
        out
    }

    pub(crate) fn s_one_hot() -> Vec<Sample> {
        let classes = ints(&[0, 3, 1, 1, 2, 0], &[2, 3]);
        let turned = classes.alias(I64, classes.layout().transpose(0, 1).expect("a matrix")).expect("the same cells");
        vec![
            sample![&classes, 4],
            sample![turned, 5],
            sample![&classes, 3],
            sample![&classes, 0],
            sample![ints(&[2], &[]), 3],
            sample![ints(&[], &[0, 2]), 3],
            sample![ints(&[], &[0]), 0],
            sample![ints(&[-1], &[1]), 3],
            sample![tensor(I32, &[2], 1), 9],
        ]
    }

    pub(crate) fn s_meshgrid() -> Vec<Sample> {
        let (a, b, c) = (tensor(F32, &[2], 1), strided(F32, &[3], 2), tensor(F32, &[], 3));
        vec![
            sample![vec![a.clone(), b.clone(), c.clone()]],
            sample![vec![a.clone()]],
            sample![vec![a.clone(), tensor(F32, &[0], 1)]],
            sample![vec![a.clone(), tensor(I64, &[2], 1)]],
            sample![vec![a, tensor(F32, &[2, 2], 1)]],
            sample![Vec::<RawTensor>::new()],
        ]
    }

    pub(crate) fn s_meshgrid_indexed() -> Vec<Sample> {
        let mut out = Vec::new();
        for how in ["ij", "xy", "yx"] {
            out.extend(s_meshgrid().into_iter().map(|mut s| {
                s.args.push(Arg::Str(how.into()));
                s
            }));
        }
        out
    }
}

//! What PyTorch's own tests hold about eager autograd with in-place operators on views; numbers are those of
//! `docs/semantics.md`.

mod bits;
mod passes;
mod saved;
mod strict;
mod views;

use restride_exec::eager::{self, EagerValue, GradOptions, Saved, Tensor, no_grad, saved_tensors};
use restride_ir::{Arg, Layout, Result, Scalar};

pub(crate) type F<'f> = dyn Fn(&[Tensor]) -> Result<Tensor> + 'f;

pub(crate) fn tensor(data: &[f64], sizes: &[i64]) -> Tensor {
    Tensor::from_slice(data, sizes).unwrap()
}

pub(crate) fn ramp(n: usize, from: f64) -> Vec<f64> {
    (0..n).map(|k| from + 0.3 * k as f64).collect()
}

pub(crate) fn leaf(data: &[f64], sizes: &[i64]) -> Tensor {
    tensor(data, sizes).requiring_grad().unwrap()
}

/// Leaves of these sizes with numbers that all differ.
pub(crate) fn leaves(sizes: &[&[i64]]) -> Vec<Tensor> {
    let one = |(k, s): (usize, &&[i64])| leaf(&ramp(s.iter().product::<i64>() as usize, 0.7 + 0.1 * k as f64), s);
    sizes.iter().enumerate().map(one).collect()
}

/// A sum in which every element has another weight.
pub(crate) fn weighted(t: &Tensor) -> Result<Tensor> {
    let n = t.numel();
    let w = tensor(&(1..=n).map(|k| k as f64).collect::<Vec<_>>(), &t.sizes());
    t.mul(&w)?.sum()
}

pub(crate) fn numbers(t: &Tensor) -> Vec<f64> {
    t.contiguous().unwrap().to_vec().unwrap()
}

pub(crate) fn value(f: &F<'_>, at: &[Vec<f64>], sizes: &[&[i64]]) -> f64 {
    let leaves: Vec<Tensor> = at.iter().zip(sizes).map(|(d, s)| leaf(d, s)).collect();
    f(&leaves).unwrap().to_vec::<f64>().unwrap()[0]
}

/// Differences of a function of leaves.
pub(crate) fn differences(f: &F<'_>, sizes: &[&[i64]], step: f64) -> Vec<Vec<f64>> {
    let at: Vec<Vec<f64>> = leaves(sizes).iter().map(numbers).collect();
    let moved = |i: usize, k: usize, by: f64| {
        let mut at = at.clone();
        at[i][k] += by;
        value(f, &at, sizes)
    };
    let one = |i: usize, k: usize| (moved(i, k, step) - moved(i, k, -step)) / (2.0 * step);
    (0..at.len()).map(|i| (0..at[i].len()).map(|k| one(i, k)).collect()).collect()
}

pub(crate) fn near(ours: &[Vec<f64>], theirs: &[Vec<f64>], tolerance: f64) {
    let pairs = ours.iter().flatten().zip(theirs.iter().flatten());
    assert_eq!(ours.iter().map(Vec::len).collect::<Vec<_>>(), theirs.iter().map(Vec::len).collect::<Vec<_>>());
    assert!(pairs.clone().all(|(a, b)| (a - b).abs() < tolerance * (1.0 + b.abs())), "{ours:?}, not {theirs:?}");
}

pub(crate) fn gradients(f: &F<'_>, leaves: &[Tensor]) -> Vec<Vec<f64>> {
    let options = GradOptions { allow_unused: true, ..GradOptions::default() };
    let found = eager::grad(&[f(leaves).unwrap()], leaves, &[], &options).unwrap();
    found.iter().zip(leaves).map(|(g, l)| g.as_ref().map_or(vec![0.0; l.numel()], numbers)).collect()
}

/// Gradients are the derivative, under each way to guard saved values.
pub(crate) fn holds(sizes: &[&[i64]], f: &F<'_>) {
    for how in [Saved::Regions, Saved::CloneOnWrite, Saved::Strict] {
        let _how = saved_tensors(how);
        near(&gradients(f, &leaves(sizes)), &differences(f, sizes, 1e-6), 1e-6);
    }
}

/// Gradients of gradients, too.
pub(crate) fn holds_twice(sizes: &[&[i64]], f: &F<'_>) {
    holds(sizes, f);
    let first = |leaves: &[Tensor]| -> Result<Tensor> {
        let options = GradOptions { create_graph: true, allow_unused: true, ..GradOptions::default() };
        let found = eager::grad(&[f(leaves)?], leaves, &[], &options)?;
        let mut total = Tensor::scalar(0.0);
        for g in found.into_iter().flatten() {
            total = total.add(&weighted(&g)?)?;
        }
        Ok(total)
    };
    near(&gradients(&first, &leaves(sizes)), &differences(&first, sizes, 1e-6), 1e-5);
}

pub(crate) fn refused(what: Result<impl Sized>, words: &str) {
    match what {
        Ok(_) => panic!("not refused: {words}"),
        Err(e) => assert!(e.to_string().contains(words), "{e}\nand not: {words}"),
    }
}

pub(crate) fn unsqueezed_in_place(t: &Tensor) -> Result<Tensor> {
    Tensor::call_one("aten.unsqueeze_.default", &[t.into(), Arg::Scalar(Scalar::Int(0))])
}

pub(crate) const MANY: &str = "output of a function that returns multiple views";
pub(crate) const NO_GRAD: &str =
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled";
pub(crate) const LEAF: &str = "a leaf Variable that requires grad is being used in an in-place operation";
pub(crate) const VIEW_OF_LEAF: &str =
    "a view of a leaf Variable that requires grad is being used in an in-place operation";
pub(crate) const VERSION: &str = "modified by an inplace operation";

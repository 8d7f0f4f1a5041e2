//! What PyTorch's own tests hold about eager autograd with in-place operators on views; numbers are those of
//! `docs/semantics.md`.

use restride_exec::eager::{self, GradOptions, Saved, Tensor, Value, no_grad, saved_tensors};
use restride_ir::{Arg, Layout, Result, Scalar};

type F<'f> = dyn Fn(&[Tensor]) -> Result<Tensor> + 'f;

fn tensor(data: &[f64], sizes: &[i64]) -> Tensor {
    Tensor::from_slice(data, sizes).unwrap()
}

fn ramp(n: usize, from: f64) -> Vec<f64> {
    (0..n).map(|k| from + 0.3 * k as f64).collect()
}

fn leaf(data: &[f64], sizes: &[i64]) -> Tensor {
    tensor(data, sizes).requiring_grad().unwrap()
}

/// Leaves of these sizes with numbers that all differ.
fn leaves(sizes: &[&[i64]]) -> Vec<Tensor> {
    let one = |(k, s): (usize, &&[i64])| leaf(&ramp(s.iter().product::<i64>() as usize, 0.7 + 0.1 * k as f64), s);
    sizes.iter().enumerate().map(one).collect()
}

/// A sum in which every element has another weight.
fn weighted(t: &Tensor) -> Result<Tensor> {
    let n = t.numel();
    let w = tensor(&(1..=n).map(|k| k as f64).collect::<Vec<_>>(), &t.sizes());
    t.mul(&w)?.sum()
}

fn numbers(t: &Tensor) -> Vec<f64> {
    t.contiguous().unwrap().to_vec().unwrap()
}

fn value(f: &F<'_>, at: &[Vec<f64>], sizes: &[&[i64]]) -> f64 {
    let leaves: Vec<Tensor> = at.iter().zip(sizes).map(|(d, s)| leaf(d, s)).collect();
    f(&leaves).unwrap().to_vec::<f64>().unwrap()[0]
}

/// Differences of a function of leaves.
fn differences(f: &F<'_>, sizes: &[&[i64]], step: f64) -> Vec<Vec<f64>> {
    let at: Vec<Vec<f64>> = leaves(sizes).iter().map(numbers).collect();
    let moved = |i: usize, k: usize, by: f64| {
        let mut at = at.clone();
        at[i][k] += by;
        value(f, &at, sizes)
    };
    let one = |i: usize, k: usize| (moved(i, k, step) - moved(i, k, -step)) / (2.0 * step);
    (0..at.len()).map(|i| (0..at[i].len()).map(|k| one(i, k)).collect()).collect()
}

fn near(ours: &[Vec<f64>], theirs: &[Vec<f64>], tolerance: f64) {
    let pairs = ours.iter().flatten().zip(theirs.iter().flatten());
    assert_eq!(ours.iter().map(Vec::len).collect::<Vec<_>>(), theirs.iter().map(Vec::len).collect::<Vec<_>>());
    assert!(pairs.clone().all(|(a, b)| (a - b).abs() < tolerance * (1.0 + b.abs())), "{ours:?}, not {theirs:?}");
}

fn gradients(f: &F<'_>, leaves: &[Tensor]) -> Vec<Vec<f64>> {
    let options = GradOptions { allow_unused: true, ..GradOptions::default() };
    let found = eager::grad(&[f(leaves).unwrap()], leaves, &[], &options).unwrap();
    found.iter().zip(leaves).map(|(g, l)| g.as_ref().map_or(vec![0.0; l.numel()], numbers)).collect()
}

/// Gradients are the derivative, under each way to guard saved values.
fn holds(sizes: &[&[i64]], f: &F<'_>) {
    for how in [Saved::Regions, Saved::CloneOnWrite, Saved::Strict] {
        let _how = saved_tensors(how);
        near(&gradients(f, &leaves(sizes)), &differences(f, sizes, 1e-6), 1e-6);
    }
}

/// Gradients of gradients, too.
fn holds_twice(sizes: &[&[i64]], f: &F<'_>) {
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

fn refused(what: Result<impl Sized>, words: &str) {
    match what {
        Ok(_) => panic!("not refused: {words}"),
        Err(e) => assert!(e.to_string().contains(words), "{e}\nand not: {words}"),
    }
}

const MANY: &str = "output of a function that returns multiple views";
const NO_GRAD: &str = "A view was created in no_grad mode and is being modified inplace with grad mode enabled";
const LEAF: &str = "a leaf Variable that requires grad is being used in an in-place operation";
const VIEW_OF_LEAF: &str = "a view of a leaf Variable that requires grad is being used in an in-place operation";
const VERSION: &str = "modified by an inplace operation";

#[test]
fn b9_139_writes_through_views_reach_base_siblings_and_views() {
    holds_twice(&[&[3, 3], &[3]], &|x| {
        let b = x[0].clone_elements()?;
        b.select(0, 1)?.mul_(&x[1])?;
        weighted(&b.mul(&b)?)
    });
    holds(&[&[3, 3], &[3]], &|x| {
        let b = x[0].clone_elements()?;
        let v = b.select(0, 1)?;
        b.mul_(&x[1])?;
        weighted(&v)
    });
    holds(&[&[2, 2]], &|x| {
        let b = x[0].clone_elements()?;
        let (v, w) = (b.narrow(0, 0, 1)?, b.narrow(0, 0, 1)?);
        v.mul_number_(2)?;
        weighted(&w)
    });
    holds(&[&[2, 2]], &|x| {
        let b = x[0].clone_elements()?;
        b.narrow(0, 0, 1)?.narrow(1, 1, 1)?.mul_number_(2)?;
        weighted(&b)
    });
    // A base that is not row-major: a clone keeps the order of dimensions.
    holds_twice(&[&[2, 3]], &|x| {
        let b = x[0].t()?.clone_elements()?;
        assert_ne!(b.layout().strides, Layout::contiguous(&b.sizes()).strides);
        let v = b.narrow(0, 0, 2)?.narrow(1, 1, 1)?;
        v.mul_(&v.exp()?)?;
        weighted(&b.mul(&b)?)
    });
}

#[test]
fn b9_140_history_asked_for_under_no_grad() {
    holds(&[&[4], &[2]], &|x| {
        let b = x[0].mul_number(1)?;
        let v = b.slice(0, 1, 3)?;
        b.slice(0, 0, 2)?.mul_(&x[1])?;
        {
            let _off = no_grad();
            assert!(v.grad_fn().is_some());
        }
        weighted(&v)
    });
}

#[test]
fn b9_141_two_disjoint_views_of_views() {
    holds_twice(&[&[4, 4], &[2, 2]], &|x| {
        let b = x[0].clone_elements()?;
        b.narrow(0, 2, 2)?.narrow(1, 0, 2)?.mul_(&x[1])?;
        b.narrow(0, 0, 2)?.narrow(1, 2, 2)?.mul_(&x[1])?;
        weighted(&b)
    });
}

#[test]
fn b9_142_a_constant_base_becomes_differentiable() {
    let ones = || tensor(&[1.0; 5], &[5]);
    let r = leaf(&[0.5], &[1]);
    let b = ones();
    let old = b.select(0, 1).unwrap();
    assert!(!b.requires_grad() && !old.requires_grad());
    b.slice(0, 0, 3).unwrap().mul_(&r).unwrap();
    assert!(b.requires_grad() && old.requires_grad());
    holds(&[&[1]], &|x| {
        let b = ones();
        let old = b.select(0, 1)?;
        b.slice(0, 0, 3)?.mul_(&x[0])?;
        old.mul(&old)?.add(&weighted(&b)?)
    });
}

#[test]
fn b9_143_only_the_multiplier_asks() {
    let (b, y) = (tensor(&ramp(4, 1.0), &[2, 2]), leaf(&[2.0, 3.0], &[2]));
    let v = b.select(0, 1).unwrap();
    v.mul_(&y).unwrap();
    weighted(&v).unwrap().backward().unwrap();
    assert!(b.grad().is_none());
    near(&[numbers(&y.grad().unwrap())], &[vec![1.6, 2.0 * 1.9]], 1e-12);
}

#[test]
fn b9_144_views_that_come_in_numbers() {
    let base = || leaf(&ramp(4, 1.0), &[4]).mul_number(1).unwrap();
    {
        let _strict = saved_tensors(Saved::Strict);
        refused(base().split(2, 0).unwrap()[0].mul_number_(3), MANY);
        refused(base().unbind(0).unwrap()[1].mul_number_(3), MANY);
        let part = &base().split(2, 0).unwrap()[1];
        refused(part.select(0, 0).unwrap().mul_number_(3), MANY);
        let view = base().slice(0, 0, 4).unwrap();
        refused(view.split(2, 0).unwrap()[0].mul_number_(3), MANY);
        let parts = Tensor::call("aten.unsafe_split.Tensor", &[(&base()).into(), Arg::Scalar(Scalar::Int(2))]).unwrap();
        parts[0].tensor().unwrap().mul_number_(3).unwrap();
        // A list of one is a list; and what was not written itself is not read when its base was.
        refused(base().split(4, 0).unwrap()[0].mul_number_(3), MANY);
        let b = base();
        let part = b.split(2, 0).unwrap()[0].clone();
        b.mul_number_(3).unwrap();
        assert!(part.detach().mul_number(2).is_ok() && part.requires_grad());
        refused(part.mul_number(2), MANY);
    }
    // There is no need to refuse them.
    for op in ["aten.split.Tensor", "aten.chunk.default", "aten.unsafe_split.Tensor"] {
        let f = move |x: &[Tensor]| -> Result<Tensor> {
            let b = x[0].mul_number(1)?;
            let parts = Tensor::call(op, &[(&b).into(), Arg::Scalar(Scalar::Int(2))])?;
            let part = |k: usize| parts[k].tensor().cloned().expect("a part");
            part(0).mul_(&part(1))?;
            part(1).mul_number_(3)?;
            weighted(&b)?.add(&part(0).exp()?.sum()?)
        };
        let _cloning = saved_tensors(Saved::CloneOnWrite);
        near(&gradients(&f, &leaves(&[&[4]])), &differences(&f, &[&[4]], 1e-6), 1e-6);
    }
    let f = |x: &[Tensor]| -> Result<Tensor> {
        let b = x[0].mul_number(1)?;
        let c = &b.unbind(0)?[0];
        c.view_as_sizes(&[1])?.mul_number_(2)?;
        weighted(&b)
    };
    near(&gradients(&f, &leaves(&[&[4]])), &differences(&f, &[&[4]], 1e-6), 1e-6);
}

#[test]
fn b9_145_where_views_are_made_and_where_they_are_written() {
    for many in [false, true] {
        for view_grad in [true, false] {
            for write_grad in [true, false] {
                for asks in [true, false] {
                    let _strict = saved_tensors(Saved::Strict);
                    let x = tensor(&ramp(2, 1.0), &[2]);
                    x.set_requires_grad(asks).unwrap();
                    let b = x.mul_number(1).unwrap();
                    let v = {
                        let _mode = eager::set_grad_enabled(view_grad);
                        if many { b.unbind(0).unwrap()[0].clone() } else { b.view_as_sizes(&[2]).unwrap() }
                    };
                    let _mode = eager::set_grad_enabled(write_grad);
                    let written = v.mul_number_(2);
                    match (asks && write_grad, view_grad, many) {
                        (true, false, _) => refused(written, NO_GRAD),
                        (true, true, true) => refused(written, MANY),
                        _ => assert!(written.is_ok()),
                    }
                }
            }
        }
    }
}

#[test]
fn b9_146_view_operators_in_place_on_views() {
    let turn = |op: &str, v: &Tensor| {
        let int = |n: i64| Arg::Scalar(Scalar::Int(n));
        let ints = |all: &[i64]| Arg::Scalars(all.iter().map(|n| Scalar::Int(*n)).collect());
        let rest = match op {
            "aten.as_strided_.default" => vec![ints(&[1, 2]), ints(&[2, 1])],
            "aten.transpose_.default" | "aten.swapdims_.default" | "aten.swapaxes_.default" => vec![int(0), int(1)],
            "aten.unsqueeze_.default" => vec![int(0)],
            "aten.squeeze_.dim" => vec![int(0)],
            _ => Vec::new(),
        };
        let mut args = vec![Arg::from(v)];
        args.extend(rest);
        Tensor::call_one(op, &args)
    };
    let all = [
        "aten.as_strided_.default",
        "aten.transpose_.default",
        "aten.t_.default",
        "aten.squeeze_.dim",
        "aten.unsqueeze_.default",
        "aten.swapdims_.default",
        "aten.swapaxes_.default",
    ];
    for op in all {
        // The gradient is that of what is seen, of views and of bases.
        holds(&[&[1, 4]], &|x| {
            let b = x[0].mul_number(1)?;
            let v = b.slice(1, 1, 3)?;
            turn(op, &v)?;
            v.mul_(&v.exp()?)?;
            weighted(&v)?.add(&weighted(&b)?)
        });
        holds(&[&[1, 4]], &|x| {
            let b = x[0].mul_number(1)?;
            let v = b.slice(1, 1, 4)?;
            turn(op, &b)?;
            b.mul_(&b.exp()?)?;
            weighted(&v)?.add(&weighted(&b)?)
        });
        let _strict = saved_tensors(Saved::Strict);
        let b = leaf(&ramp(4, 1.0), &[2, 1, 2]).mul_number(1).unwrap();
        refused(turn(op, &b.unbind(0).unwrap()[0]), MANY);
        let v = {
            let _off = no_grad();
            b.select(0, 0).unwrap()
        };
        refused(turn(op, &v), NO_GRAD);
    }
}

#[test]
fn b9_147_views_made_before_the_base_asks() {
    let _strict = saved_tensors(Saved::Strict);
    let b = tensor(&ramp(4, 1.0), &[4]);
    let (v, w) = {
        let _off = no_grad();
        let v = b.slice(0, 0, 2).unwrap();
        let w = v.select(0, 0).unwrap();
        (v, w)
    };
    b.set_requires_grad(true).unwrap();
    refused(v.mul_number_(2), NO_GRAD);
    refused(w.mul_number_(2), NO_GRAD);
    let b = leaf(&ramp(4, 1.0), &[4]);
    let v = b.slice(0, 0, 2).unwrap();
    refused(v.mul_number_(2), VIEW_OF_LEAF);
}

#[test]
fn b9_152_in_place_view_of_another_element_type() {
    holds(&[&[3, 2]], &|x| {
        let zero = x[0].mul_number(0)?;
        let b = Tensor::call_one("aten.complex.default", &[(&x[0]).into(), (&zero).into()])?.mul_number(1)?;
        let r = Tensor::call_one("aten.view_as_real.default", &[(&b).into()])?;
        Tensor::call_one(
            "aten.transpose_.default",
            &[(&r).into(), Arg::Scalar(Scalar::Int(0)), Arg::Scalar(Scalar::Int(1))],
        )?;
        r.mul_(&r.add_number(1)?)?;
        weighted(&r)
    });
    // Through the imaginary part, and through conjugates.
    holds_twice(&[&[3]], &|x| {
        let b = Tensor::call_one("aten.complex.default", &[(&x[0]).into(), (&x[0]).into()])?.mul_number(1)?;
        let parts = Tensor::call_one("aten.view_as_real.default", &[(&b).into()])?;
        parts.select(-1, 1)?.mul_(&x[0])?;
        let c = Tensor::call_one("aten.conj.default", &[(&b).into()])?;
        c.mul_(&b.exp()?)?;
        weighted(&Tensor::call_one("aten.view_as_real.default", &[(&b).into()])?)
    });
}

#[test]
fn b9_153_leaves_are_not_written() {
    let x = leaf(&ramp(3, 1.0), &[3]);
    refused(x.mul_number_(2), LEAF);
    refused(x.slice(0, 0, 2).unwrap().mul_number_(2), VIEW_OF_LEAF);
    refused(x.unsqueeze_in_place(), LEAF);
    let _off = no_grad();
    x.mul_number_(2).unwrap();
    assert!(x.is_leaf() && x.requires_grad());
    near(&[numbers(&x)], &[vec![2.0, 2.6, 3.2]], 1e-12);
}

trait UnsqueezeInPlace {
    fn unsqueeze_in_place(&self) -> Result<Tensor>;
}

impl UnsqueezeInPlace for Tensor {
    fn unsqueeze_in_place(&self) -> Result<Tensor> {
        Tensor::call_one("aten.unsqueeze_.default", &[self.into(), Arg::Scalar(Scalar::Int(0))])
    }
}

#[test]
fn b9_154_versions_are_shared() {
    let b = tensor(&ramp(4, 1.0), &[4]);
    let (v, d, c) = (b.slice(0, 0, 2).unwrap(), b.detach(), b.clone_elements().unwrap());
    v.mul_number_(2).unwrap();
    assert_eq!([b.version(), v.version(), d.version(), c.version()], [1, 1, 1, 0]);
    d.mul_number_(2).unwrap().mul_number_(2).unwrap();
    assert_eq!([b.version(), v.version(), d.version()], [3, 3, 3]);
    // The object is another one, the memory is not.
    d.unsqueeze_in_place().unwrap();
    assert_eq!(d.version(), b.version());
}

#[test]
fn b9_155_saved_values_that_were_overwritten() {
    let x = leaf(&ramp(3, 1.0), &[3]);
    let y = x.exp().unwrap();
    y.mul_number_(2).unwrap().add_number_(1).unwrap();
    let why = y.sum().unwrap().backward().unwrap_err().to_string();
    for words in [VERSION, "[f64[3]]", "output 0 of aten.exp.default", "is at version 2; expected version 0 instead"] {
        assert!(why.contains(words), "{why}");
    }
    // Another part of the same memory is no matter, unless one is strict.
    let other_part = || -> Result<()> {
        let b = leaf(&ramp(4, 1.0), &[4]).mul_number(1)?;
        let v = b.slice(0, 2, 4)?;
        let z = v.mul(&v)?;
        b.slice(0, 0, 2)?.mul_number_(2)?;
        z.sum()?.backward()
    };
    other_part().unwrap();
    let _strict = saved_tensors(Saved::Strict);
    refused(other_part(), VERSION);
}

#[test]
fn b9_155_a_tensor_written_by_itself() {
    let f =
        || leaf(&[2.0], &[1]).mul_number(1).and_then(|t| t.mul_(&t)).and_then(|t| t.sum()).and_then(|t| t.backward());
    f().unwrap();
    let _strict = saved_tensors(Saved::Strict);
    refused(f(), VERSION);
}

#[test]
fn b9_156_clones_on_write() {
    let _cloning = saved_tensors(Saved::CloneOnWrite);
    let f = |x: &[Tensor]| -> Result<Tensor> {
        let y = x[0].mul_number(1)?;
        let (a, b) = (y.exp()?, y.mul(&y)?);
        let c = a.mul(&b)?;
        y.select(0, 0)?.mul_number_(3)?;
        {
            let _off = no_grad();
            let both = Arg::Values(vec![Some(a.clone()), Some(b.clone())]);
            Tensor::call("aten._foreach_zero_.default", &[both])?;
            Tensor::call("aten.mul.out", &[(&x[1]).into(), (&x[1]).into(), (&b).into()])?;
        }
        weighted(&c)?.add(&weighted(&y.mul(&y)?)?)
    };
    near(&gradients(&f, &leaves(&[&[3], &[3]])), &differences(&f, &[&[3], &[3]], 1e-6), 1e-6);
    // It is kept as it was saved, whatever holds afterwards.
    let x = leaf(&[1.0, 2.0], &[2]);
    let y = x.exp().unwrap();
    drop(_cloning);
    y.zero_().unwrap();
    let z = x.exp().unwrap();
    let loss = z.sum().unwrap();
    loss.backward().unwrap();
    refused(loss.backward(), "backward through the graph a second time");
}

#[test]
fn b9_158_a_view_made_and_written_under_no_grad_can_be_shown() {
    let b = leaf(&ramp(4, 1.0), &[4]).mul_number(1).unwrap();
    let v = {
        let _off = no_grad();
        let v = b.slice(0, 0, 2).unwrap();
        v.mul_number_(2).unwrap();
        v
    };
    assert_eq!(format!("{v:?}"), "Tensor(f64[2])");
    assert!(format!("{b:?}").contains("copy_slices"));
}

#[test]
fn b9_160_gradients_kept_of_a_history_that_is_gone() {
    let b = leaf(&ramp(4, 1.0), &[4]).mul_number(1).unwrap();
    let v = b.slice(0, 2, 4).unwrap();
    let w = v.select(0, 1).unwrap();
    v.retain_grad().unwrap();
    b.select(0, 0).unwrap().add_number_(0).unwrap();
    w.backward().unwrap();
    assert!(v.grad().is_none());
    // Without a write it is kept, and hooks are called.
    let b = leaf(&ramp(4, 1.0), &[4]).mul_number(1).unwrap();
    let v = b.slice(0, 2, 4).unwrap();
    v.retain_grad().unwrap();
    let hook = v.register_hook(|g| g.mul_number(3).ok()).unwrap();
    v.select(0, 1)
        .unwrap()
        .backward_from(&Tensor::scalar(1.0), &GradOptions { retain_graph: Some(true), ..Default::default() })
        .unwrap();
    assert_eq!(numbers(&v.grad().unwrap()), [0.0, 3.0]);
    hook.remove();
    v.set_grad(None);
    v.select(0, 1).unwrap().backward().unwrap();
    assert_eq!(numbers(&v.grad().unwrap()), [0.0, 1.0]);
    // A base that is written keeps the gradient of what it is then.
    let x = leaf(&ramp(2, 1.0), &[2]);
    let b = x.mul_number(1).unwrap();
    b.retain_grad().unwrap();
    b.mul_number_(5).unwrap();
    b.sum().unwrap().backward().unwrap();
    assert_eq!(numbers(&b.grad().unwrap()), [1.0, 1.0]);
    assert_eq!(numbers(&x.grad().unwrap()), [5.0, 5.0]);
}

#[test]
fn b9_161_restride_of_overlapping_geometry() {
    holds_twice(&[&[5]], &|x| {
        let e = x[0].restride(&[3, 3], &[1, 1], 0)?;
        weighted(&e.mul(&e)?)
    });
    // Of a leaf whose elements share cells each element has its share.
    let e = leaf(&[1.0, 2.0], &[2]).expand(&[3, 2]).unwrap().detach().requiring_grad().unwrap();
    let shown = e.restride(&[4], &[0], 1).unwrap();
    shown.sum().unwrap().backward().unwrap();
    near(&[numbers(&e.grad().unwrap())], &[vec![0.0, 4.0 / 3.0, 0.0, 4.0 / 3.0, 0.0, 4.0 / 3.0]], 1e-12);
    // Writes through what overlaps itself: each visit counts.
    holds(&[&[5]], &|x| {
        let b = x[0].mul_number(1)?;
        let w = Tensor::call_one(
            "aten.unfold.default",
            &[(&b).into(), Arg::Scalar(Scalar::Int(0)), Arg::Scalar(Scalar::Int(3)), Arg::Scalar(Scalar::Int(1))],
        )?;
        w.mul_number_(2)?;
        weighted(&b)
    });
}

#[test]
fn b9_162_how_gradients_lie() {
    let turned = tensor(&ramp(6, 1.0), &[2, 3]).t().unwrap().clone_elements().unwrap().requiring_grad().unwrap();
    let gapped = tensor(&ramp(8, 1.0), &[8]).restride(&[2, 2], &[4, 2], 0).unwrap().detach().requiring_grad().unwrap();
    turned.mul(&turned).unwrap().sum().unwrap().backward().unwrap();
    gapped.mul(&gapped).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(turned.grad().unwrap().layout().strides[..], turned.layout().strides[..]);
    assert_eq!(gapped.grad().unwrap().layout().strides[..], [2, 1]);
}

#[test]
fn gradients_add_up_and_are_apart() {
    let x = leaves(&[&[2], &[2]]);
    for _ in 0..2 {
        x[0].add(&x[1]).unwrap().sum().unwrap().backward().unwrap();
    }
    let (a, b) = (x[0].grad().unwrap(), x[1].grad().unwrap());
    assert_eq!(numbers(&a), [2.0, 2.0]);
    a.zero_().unwrap();
    assert_eq!(numbers(&b), [2.0, 2.0]);
}

#[test]
fn pytorchs_refusals_of_a_pass() {
    let x = leaves(&[&[2], &[2]]);
    refused(x[0].mul_number(2).unwrap().backward(), "grad can be implicitly created only for scalar outputs");
    refused(tensor(&[1.0], &[]).backward(), "does not require grad and does not have a grad_fn");
    let y = x[0].sum().unwrap();
    refused(
        eager::grad(&[y], &[x[1].clone()], &[], &GradOptions::default()),
        "appears to not have been used in the graph",
    );
    let whole = Tensor::from_slice(&[1i64, 2], &[2]).unwrap();
    refused(whole.set_requires_grad(true), "only Tensors of floating point");
    refused(x[0].exp().unwrap().set_requires_grad(false), "you can only change requires_grad flags of leaf variables");
    refused(
        Tensor::call(
            "aten.add.out",
            &[(&x[0]).into(), (&x[1]).into(), Arg::Scalar(Scalar::Int(1)), (&tensor(&[0.0; 2], &[2])).into()],
        ),
        "out=",
    );
}

#[test]
fn a_long_history_is_gone_through_and_dropped() {
    let x = leaf(&[1.0], &[1]);
    let mut y = x.mul_number(1).unwrap();
    for _ in 0..10_000 {
        y = y.add(&x).unwrap();
    }
    y.sum().unwrap().backward().unwrap();
    assert_eq!(numbers(&x.grad().unwrap()), [10_001.0]);
    drop(y);
}

#[test]
fn what_no_rule_reads_is_not_kept() {
    // `add` reads nothing, `mul` both: a write to an operand of `add` is no matter.
    let x = leaves(&[&[2], &[2]]);
    let a = x[0].mul_number(1).unwrap();
    let c = a.add(&x[1]).unwrap();
    a.zero_().unwrap();
    c.sum().unwrap().backward().unwrap();
    assert_eq!(numbers(&x[0].grad().unwrap()), [1.0, 1.0]);
    assert!(matches!(&Tensor::call("aten.sum.default", &[(&x[0]).into()]).unwrap()[..], [Value::Tensor(_)]));
}

#[test]
fn running_statistics_have_no_history() {
    let (mean, var) = (tensor(&[0.0; 2], &[2]), tensor(&[1.0; 2], &[2]));
    let x = leaf(&ramp(6, 1.0), &[3, 2]);
    for _ in 0..3 {
        let y = Tensor::call_one(
            "aten.batch_norm.default",
            &[
                (&x).into(),
                Arg::None,
                Arg::None,
                (&mean).into(),
                (&var).into(),
                Arg::Scalar(Scalar::Bool(true)),
                Arg::Scalar(Scalar::Float(0.1)),
                Arg::Scalar(Scalar::Float(1e-5)),
                Arg::Scalar(Scalar::Bool(false)),
            ],
        )
        .unwrap();
        weighted(&y).unwrap().backward().unwrap();
        assert!(!mean.requires_grad() && !var.requires_grad());
    }
    assert_eq!([mean.version(), var.version()], [3, 3]);
    assert!(x.grad().is_some());
}

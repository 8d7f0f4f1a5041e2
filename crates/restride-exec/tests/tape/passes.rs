//! Backward passes: what they refuse, keep and give.

use super::*;

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
    assert!(format!("{b:?}").contains("aten.mul"));
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

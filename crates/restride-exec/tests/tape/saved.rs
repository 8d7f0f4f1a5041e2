//! Values that gradients read, and versions of memory.

use super::*;

#[test]
fn b9_154_versions_are_shared() {
    let b = tensor(&ramp(4, 1.0), &[4]);
    let (v, d, c) = (b.slice(0, 0, 2).unwrap(), b.detach(), b.clone_elements().unwrap());
    v.mul_number_(2).unwrap();
    assert_eq!([b.version(), v.version(), d.version(), c.version()], [1, 1, 1, 0]);
    d.mul_number_(2).unwrap().mul_number_(2).unwrap();
    assert_eq!([b.version(), v.version(), d.version()], [3, 3, 3]);
    // The object is another one, the memory is not.
    unsqueezed_in_place(&d).unwrap();
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
fn what_no_rule_reads_is_not_kept() {
    // `add` reads nothing, `mul` both: a write to an operand of `add` is no matter.
    let x = leaves(&[&[2], &[2]]);
    let a = x[0].mul_number(1).unwrap();
    let c = a.add(&x[1]).unwrap();
    a.zero_().unwrap();
    c.sum().unwrap().backward().unwrap();
    assert_eq!(numbers(&x[0].grad().unwrap()), [1.0, 1.0]);
    assert!(matches!(&Tensor::call("aten.sum.default", &[(&x[0]).into()]).unwrap()[..], [EagerValue::Tensor(_)]));
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

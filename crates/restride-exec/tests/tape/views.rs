//! Histories of bases and of views of them.

use super::*;

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
    refused(unsqueezed_in_place(&x), LEAF);
    let _off = no_grad();
    x.mul_number_(2).unwrap();
    assert!(x.is_leaf() && x.requires_grad());
    near(&[numbers(&x)], &[vec![2.0, 2.6, 3.2]], 1e-12);
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

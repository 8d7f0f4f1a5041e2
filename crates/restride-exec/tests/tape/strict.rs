//! As strict as PyTorch: what it refuses beyond need. Each case is run with and without the switch.

use super::*;

const MANY_BEHIND: &str =
    "its base or another view of its base has been modified inplace. This view is the output of a function";
const NO_GRAD_BEHIND: &str =
    "A view was created in no_grad mode and its base or another view of its base has been modified inplace";

fn call(op: &str, args: &[Arg<Tensor, Scalar>]) -> Result<Tensor> {
    Tensor::call_one(op, args)
}

fn int(n: i64) -> Arg<Tensor, Scalar> {
    Arg::Scalar(Scalar::Int(n))
}

fn float(x: f64) -> Arg<Tensor, Scalar> {
    Arg::Scalar(Scalar::Float(x))
}

/// A function of one leaf of 3×3 elements, whose result is summed and differentiated.
fn passes(f: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<f64>> {
    let x = leaf(&ramp(9, 0.2), &[3, 3]);
    f(&x)?.sum()?.backward()?;
    Ok(x.grad().map_or(vec![0.0; 9], |g| numbers(&g)))
}

/// PyTorch refuses it with these words, and nothing else does.
fn strict_alone(words: &str, f: &dyn Fn(&Tensor) -> Result<Tensor>) {
    passes(f).unwrap();
    let _strict = saved_tensors(Saved::Strict);
    refused(passes(f), words);
}

/// PyTorch takes it.
fn taken(f: &dyn Fn(&Tensor) -> Result<Tensor>) {
    let _strict = saved_tensors(Saved::Strict);
    passes(f).unwrap();
}

#[test]
fn values_that_pytorch_keeps_without_need() {
    // `index_add` keeps its source for its sizes.
    strict_alone(VERSION, &|x| {
        let (b, at) = (x.mul_number(1)?, Tensor::from_slice(&[0i64], &[1])?);
        let row = b.slice(0, 0, 1)?;
        let y = call("aten.index_add.default", &[x.into(), int(0), (&at).into(), (&row).into()])?;
        b.mul_number_(2)?;
        y.mul_number(2)
    });
    // A maximum keeps both operands; a minimum over a dimension its result.
    strict_alone(VERSION, &|x| {
        let y = call("aten.amax.default", &[x.into(), Arg::Scalars(vec![Scalar::Int(0)])])?.mul_number(1)?;
        let z = call("aten.amax.default", &[(&y).into(), Arg::Scalars(vec![Scalar::Int(0)])])?;
        y.slice(0, 0, 0)?.mul_number_(2)?;
        Ok(z)
    });
}

#[test]
fn values_that_pytorch_does_not_keep() {
    // The rule of `add` reads nothing, that of `mul` by a constant not the other operand.
    taken(&|x| {
        let (b, c) = (x.mul_number(1)?, tensor(&ramp(9, 1.0), &[3, 3]));
        let y = b.add(&c)?.add(&b.mul(&c)?)?;
        b.zero_()?;
        Ok(y)
    });
}

#[test]
fn conditions_are_on_the_gradients_asked_for() {
    // `mul` keeps an operand only for the gradient of the other one.
    let f = |constant: bool| {
        move |x: &Tensor| {
            let (b, c) = (x.mul_number(1)?, x.mul_number(3)?);
            let c = if constant { c.detach() } else { c };
            let y = b.mul(&c)?;
            b.zero_()?;
            Ok(y)
        }
    };
    taken(&f(true));
    let _strict = saved_tensors(Saved::Strict);
    refused(passes(&f(false)), VERSION);
}

#[test]
fn what_is_overwritten_is_gone_through_as_well() {
    // PyTorch goes on with zeros where a value was overwritten, and looks at what the node saved.
    let all: [fn(&Tensor, &Tensor) -> Result<Tensor>; 3] =
        [|y, x| y.copy_(x), |y, _| y.zero_(), |y, _| call("aten.fill_.Scalar", &[y.into(), float(2.0)])];
    for write in all {
        strict_alone(VERSION, &|x| {
            let y = x.exp()?;
            write(&y, x)?;
            y.mul(x)
        });
    }
}

#[test]
fn forms_in_place_that_keep_other_values() {
    // `elu` keeps its operand, `elu_` its result.
    let twice = |x: &Tensor| -> Result<Tensor> {
        let y = x.mul_number(1)?;
        call("aten.elu_.default", &[(&y).into()])?;
        y.mul_number_(2)
    };
    let _strict = saved_tensors(Saved::Strict);
    refused(passes(&twice), VERSION);
}

#[test]
fn steps_have_gradients_of_zero() {
    let steps = |x: &Tensor| call("aten.floor.default", &[x.into()]);
    refused(passes(&steps), "does not require grad");
    let _strict = saved_tensors(Saved::Strict);
    assert_eq!(passes(&steps).unwrap(), [0.0; 9]);
    refused(
        passes(&|x| call("aten.heaviside.default", &[x.into(), x.into()])),
        "derivative for aten::heaviside is not implemented",
    );
}

#[test]
fn views_whose_memory_was_written() {
    let many = |write: fn(&Tensor) -> Result<Tensor>| {
        move |x: &Tensor| {
            let b = x.mul_number(1)?;
            let part = b.split(2, 0)?.remove(0);
            write(&b)?;
            part.mul_number(2)
        }
    };
    strict_alone(MANY_BEHIND, &many(|b| b.mul_number_(2)));
    // Whoever writes it: a constant in the same memory, or a write that is not recorded.
    strict_alone(MANY_BEHIND, &many(|b| b.detach().mul_number_(2)));
    strict_alone(
        MANY_BEHIND,
        &many(|b| {
            let _off = no_grad();
            b.mul_number_(2)
        }),
    );
    // `t_` counts as a write.
    strict_alone(MANY_BEHIND, &many(|b| call("aten.t_.default", &[b.into()])));
    let _strict = saved_tensors(Saved::Strict);
    refused(
        passes(&|x| {
            let v = {
                let _off = no_grad();
                let v = x.slice(0, 0, 2)?;
                x.mul_number_(2)?;
                v
            };
            v.add(&x.slice(0, 0, 2)?)
        }),
        NO_GRAD_BEHIND,
    );
}

#[test]
fn views_from_before_their_base_had_a_history() {
    // PyTorch takes such a view for a leaf, until somebody looks at its history.
    let f = |looked: bool| {
        move |x: &Tensor| {
            let b = tensor(&[1.0; 9], &[3, 3]);
            let v = b.slice(0, 0, 2)?;
            b.mul_(x)?;
            if looked {
                v.mul_number(2)?;
            }
            v.mul_number_(3)?;
            v.mul_number_(3)?;
            Ok(b)
        }
    };
    strict_alone(LEAF, &f(false));
    taken(&f(true));
}

#[test]
fn lists_of_views_that_are_made_one_by_one() {
    for (op, count) in [("aten.tensor_split.sections", 2), ("aten.hsplit.int", 3), ("aten.vsplit.int", 3)] {
        taken(&|x| {
            let b = x.mul_number(1)?;
            let parts = Tensor::call(op, &[(&b).into(), int(count)])?;
            parts[0].tensor().expect("a part").mul_number_(3)?;
            Ok(b)
        });
    }
    let _strict = saved_tensors(Saved::Strict);
    refused(
        passes(&|x| {
            let b = x.mul_number(1)?;
            b.split(2, 0)?[0].mul_number_(3)?;
            Ok(b)
        }),
        MANY,
    );
    // Also where only the other operand asks.
    refused(tensor(&ramp(9, 1.0), &[3, 3]).split(2, 0).unwrap()[0].mul_(&leaf(&[1.0], &[1])), MANY);
}

#[test]
fn writes_that_are_not_recorded_guard_nothing() {
    taken(&|x| {
        let (a, b) = (x.mul_number(1)?, x.exp()?);
        {
            let _off = no_grad();
            a.mul_(&b)?;
            a.mul_(&a)?;
        }
        let y = a.add_number(1)?;
        a.zero_()?;
        Ok(y)
    });
    // Backward passes through the earlier history as if the write had not happened, and asks for its saved values.
    let written = |x: &Tensor| {
        let y = x.exp()?;
        let _off = no_grad();
        y.zero_()
    };
    refused(passes(&written), VERSION);
    let _strict = saved_tensors(Saved::Strict);
    refused(passes(&written), VERSION);
}

#[test]
fn detached_in_place() {
    for how in [Saved::Regions, Saved::Strict] {
        let _how = saved_tensors(how);
        let f = |x: &Tensor| {
            let y = x.mul_number(2)?;
            call("aten.detach_.default", &[(&y).into()])?;
            y.mul(x)
        };
        near(&[passes(&f).unwrap()], &[ramp(9, 0.2).iter().map(|v| 2.0 * v).collect()], 1e-12);
        refused(
            passes(&|x| call("aten.detach_.default", &[(&x.mul_number(1)?.slice(0, 0, 2)?).into()])),
            "Can't detach views in-place",
        );
    }
    // Views keep their histories, and PyTorch takes their base for a leaf.
    strict_alone(VIEW_OF_LEAF, &|x| {
        let y = x.mul_number(2)?;
        let v = y.slice(0, 0, 2)?;
        call("aten.detach_.default", &[(&y).into()])?;
        let z = v.add(&x.select(0, 0)?)?;
        v.mul_number_(3)?;
        Ok(z)
    });
    strict_alone("a saved tensor that has been detached in-place", &|x| {
        let y = x.mul_number(2)?;
        let z = y.mul(&y)?;
        call("aten.detach_.default", &[(&y).into()])?;
        Ok(z)
    });
}

#[test]
fn views_made_under_no_grad_require_gradients_like_their_base() {
    let _strict = saved_tensors(Saved::Strict);
    let x = leaf(&ramp(9, 0.2), &[3, 3]);
    let base = x.mul_number(2).unwrap();
    let view = {
        let _off = no_grad();
        base.slice(0, 0, 2).unwrap()
    };
    assert!(view.requires_grad() && view.is_leaf());
    // No gradient passes it. A whole backward pass visits the calls on it and checks what they saved; a pass to `x` alone does not.
    let loss = || {
        let y = view.exp()?;
        y.mul_number_(2)?;
        y.sum()?.add(&base.sum()?)
    };
    refused(eager::backward(&[loss().unwrap()], &[], &GradOptions::default()), VERSION);
    let found = eager::grad(&[loss().unwrap()], std::slice::from_ref(&x), &[], &GradOptions::default()).unwrap();
    near(&[numbers(found[0].as_ref().unwrap())], &[vec![2.0; 9]], 1e-12);
}

//! Functions with a backward pass of their own, on the eager tape.

use restride_exec::eager::{Function, GradOptions, Saved, Saving, Tensor, apply, grad, no_grad, saved_tensors};
use restride_ir::Result;
use std::rc::Rc;

/// What a function does, as closures.
struct Made<F, B>(F, B);

impl<F, B> Function for Made<F, B>
where
    F: Fn(&[Tensor], &mut Saving) -> Result<Vec<Tensor>>,
    B: Fn(&[Tensor], &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>,
{
    fn name(&self) -> &str {
        "made"
    }
    fn forward(&self, inputs: &[Tensor], saving: &mut Saving) -> Result<Vec<Tensor>> {
        (self.0)(inputs, saving)
    }
    fn backward(&self, saved: &[Tensor], grads: &[Option<Tensor>], needs: &[bool]) -> Result<Vec<Option<Tensor>>> {
        assert_eq!(needs.len(), 1);
        (self.1)(saved, grads)
    }
}

/// `x * x * x`, which saves its input.
fn cube() -> Rc<dyn Function> {
    Rc::new(Made(
        |x: &[Tensor], saving: &mut Saving| {
            saving.save(&x[0]);
            Ok(vec![x[0].mul(&x[0])?.mul(&x[0])?])
        },
        |saved: &[Tensor], g: &[Option<Tensor>]| {
            let slope = saved[0].mul(&saved[0])?.mul_number(3)?;
            Ok(vec![g[0].as_ref().map(|g| slope.mul(g)).transpose()?])
        },
    ))
}

/// The exponential function, which saves its result.
fn exponential() -> Rc<dyn Function> {
    Rc::new(Made(
        |x: &[Tensor], saving: &mut Saving| {
            let y = x[0].exp()?;
            saving.save(&y);
            Ok(vec![y])
        },
        |saved: &[Tensor], g: &[Option<Tensor>]| Ok(vec![g[0].as_ref().map(|g| saved[0].mul(g)).transpose()?]),
    ))
}

/// Gives what a closure makes of its input, and no gradient.
fn giving(f: impl Fn(&Tensor) -> Result<Vec<Tensor>> + 'static) -> Rc<dyn Function> {
    Rc::new(Made(move |x: &[Tensor], _: &mut Saving| f(&x[0]), |_: &[Tensor], _: &[Option<Tensor>]| Ok(vec![None])))
}

fn run(function: Rc<dyn Function>, x: &Tensor) -> Result<Vec<Tensor>> {
    apply(function, std::slice::from_ref(x))
}

fn leaf(data: &[f64]) -> Tensor {
    Tensor::from_slice(data, &[data.len() as i64]).unwrap().requiring_grad().unwrap()
}

fn numbers(t: &Tensor) -> Vec<f64> {
    t.to_vec().unwrap()
}

fn refused(what: Result<impl Sized>, words: &str) {
    let e = what.err().map_or_else(String::new, |e| e.to_string());
    assert!(e.contains(words), "{e:?}");
}

/// First and second derivatives of the sum at a point.
fn derivatives(f: impl Fn(&Tensor) -> Result<Tensor>, at: f64) -> (f64, f64) {
    let x = leaf(&[at]);
    let options = GradOptions { create_graph: true, ..GradOptions::default() };
    let y = f(&x).unwrap().sum().unwrap();
    let first = grad(&[y], std::slice::from_ref(&x), &[], &options).unwrap().remove(0).expect("a gradient");
    let second = grad(&[first.sum().unwrap()], &[x], &[], &GradOptions::default()).unwrap().remove(0);
    (numbers(&first)[0], numbers(&second.expect("a gradient"))[0])
}

#[test]
fn custom_functions_have_first_and_second_derivatives() {
    assert_eq!(derivatives(|x| Ok(run(cube(), x)?.remove(0)), 2.0), (12.0, 12.0));
    let e = 0.5f64.exp();
    assert_eq!(derivatives(|x| Ok(run(exponential(), x)?.remove(0)), 0.5), (e, e));
    // The input is a view, written afterwards and read through another view.
    let f = |x: &Tensor| {
        let y = x.mul_number(2)?;
        let z = apply(cube(), &[y.slice(0, 0, 1)?])?.remove(0);
        z.slice(0, 0, 1)?.mul_number_(5)?;
        Ok(z)
    };
    assert_eq!(derivatives(f, 1.0), (120.0, 240.0));
}

#[test]
fn b9_148_results_in_memory_of_inputs() {
    let x = leaf(&[1.0, 2.0]);
    refused(run(giving(|x| Ok(vec![x.clone()])), &x), "in the memory of its input 0");
    refused(run(giving(|x| Ok(vec![x.slice(0, 0, 1)?])), &x), "return a clone");
    let twice = giving(|x| {
        let y = x.exp()?;
        Ok(vec![y.clone(), y.slice(0, 0, 1)?])
    });
    refused(run(twice, &x), "in the memory of its result 0");
    // A view of a value of its own may be written.
    let part = apply(giving(|x| Ok(vec![x.exp()?.slice(0, 0, 1)?])), &[x]).unwrap().remove(0);
    part.mul_number_(0).unwrap();
    assert_eq!(numbers(&part), [0.0]);
    assert!(part.requires_grad());
}

#[test]
fn b9_149_custom_functions_under_no_grad() {
    let x = leaf(&[2.0]);
    let _off = no_grad();
    let y = run(cube(), &x).unwrap().remove(0);
    assert!(!y.requires_grad() && y.grad_fn().is_none());
    refused(apply(giving(|x| Ok(vec![x.clone()])), &[x]), "in the memory of its input 0");
}

#[test]
fn b9_150_custom_functions_that_write_inputs() {
    let x = leaf(&[2.0]).mul_number(1).unwrap();
    let writes = giving(|x| {
        x.mul_number_(2)?;
        Ok(vec![x.exp()?])
    });
    refused(apply(writes, std::slice::from_ref(&x)), "function made writes its input 0");
    // It says so before anything is written, also through a view.
    assert_eq!((numbers(&x), x.version()), (vec![2.0], 0));
    let part = giving(|x| {
        x.slice(0, 0, 1)?.zero_()?;
        Ok(vec![x.exp()?])
    });
    refused(apply(part, std::slice::from_ref(&x)), "function made writes its input 0");
    assert_eq!(numbers(&x), [2.0]);
    x.mul_number_(3).unwrap();
}

#[test]
fn b9_151_what_custom_functions_save() {
    // Written since, or copied before that.
    let written = || {
        let x = leaf(&[2.0]);
        let y = x.mul_number(1)?;
        let z = run(cube(), &y)?.remove(0);
        y.mul_number_(7)?;
        z.sum()?.backward()?;
        Ok(numbers(&x.grad().expect("a gradient")))
    };
    refused(written(), "modified by an inplace operation");
    {
        let _cloning = saved_tensors(Saved::CloneOnWrite);
        assert_eq!(written().unwrap(), [12.0]);
    }
    // Nothing is left of it when its results are gone, also where it saved one of them.
    let function = exponential();
    let held = Rc::downgrade(&function);
    let z = apply(function, &[leaf(&[2.0])]).unwrap().remove(0);
    assert_eq!(z.grad_fn().as_deref(), Some("made"));
    drop(z);
    assert!(held.upgrade().is_none());
    // Once.
    let x = leaf(&[2.0]);
    let z = apply(cube(), &[x]).unwrap().remove(0).sum().unwrap();
    z.backward().unwrap();
    refused(z.backward(), "a second time");
}

#[test]
fn a_wrong_number_of_gradients_is_refused() {
    let none = Rc::new(Made(
        |x: &[Tensor], _: &mut Saving| Ok(vec![x[0].exp()?]),
        |_: &[Tensor], _: &[Option<Tensor>]| Ok(vec![]),
    ));
    let y = apply(none, &[leaf(&[1.0])]).unwrap().remove(0).sum().unwrap();
    refused(y.backward(), "incorrect number of gradients (expected 1, got 0)");
    let short = Rc::new(Made(
        |x: &[Tensor], _: &mut Saving| Ok(vec![x[0].exp()?]),
        |_: &[Tensor], _: &[Option<Tensor>]| Ok(vec![Some(Tensor::from_slice(&[1.0, 2.0, 3.0], &[3])?)]),
    ));
    let y = apply(short, &[leaf(&[1.0, 2.0])]).unwrap().remove(0).sum().unwrap();
    refused(y.backward(), "3");
}

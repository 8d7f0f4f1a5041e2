//! Gradients through conditions and loops, functional and placed, against differences of what the program computes.

use restride::{CompileOptions, Compiled, DType, GradOptions, Inputs, Program, RawTensor, RunOptions, RunValue, State};
use restride_ir::text::parse;
use restride_testing::finite_differences::against;
use restride_testing::rng::Rng;

fn program(text: &str) -> Program {
    parse(text, &restride_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn given(inputs: &[RawTensor], others: &[RawTensor]) -> Inputs {
    Inputs::new(others.iter().chain(inputs).cloned().map(RunValue::Tensor)).deep_clone()
}

/// A program's inputs: those that come first and are not differentiated, then numbers between -1 and 1.
fn check(text: &str, fixed: &[RawTensor], sizes: &[&[i64]], max_trips: Option<u64>) {
    let program = program(text);
    let mut rng = Rng::new(7);
    let mut number = || (rng.below(2000) as f64) / 1000.0 - 1.0;
    let inputs: Vec<RawTensor> = sizes
        .iter()
        .map(|s| RawTensor::from_slice(&(0..s.iter().product::<i64>()).map(|_| number()).collect::<Vec<f64>>(), s))
        .collect();
    let compiled = Compiled::new(program.clone(), None, &CompileOptions::default()).expect("compiles");
    let options = GradOptions { max_trips, ..GradOptions::default() };
    let joint = compiled.grad(&options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let all = given(&inputs, fixed);
    let by_interp = {
        let mut state = State::new(&joint).expect("no state");
        restride::interpret(&joint, &all.deep_clone(), &mut state, &RunOptions::default()).expect("runs").gradients
    };
    let placed = Compiled::new(joint, Some(&all), &CompileOptions::default()).expect("compiles");
    let out = placed.instance().expect("an instance").run(&all, &RunOptions::default()).expect("runs");
    assert_eq!(out.gradients.len(), inputs.len());
    for ((_, a), (_, b)) in by_interp.iter().zip(&out.gradients) {
        assert_eq!(a.to_elements::<f64>(), b.to_elements::<f64>(), "{text}");
    }
    let loss = |at: &[RawTensor]| {
        let mut state = State::new(&program).map_err(|e| e.to_string())?;
        let out = restride::interpret(&program, &given(at, fixed), &mut state, &RunOptions::default());
        let out = out.map_err(|e| e.to_string())?;
        Ok(out.values[0].tensor().ok_or("no loss")?.get(&[]).as_f64())
    };
    let gradients: Vec<(usize, RawTensor)> = out.gradients.into_iter().map(|(i, g)| (i - fixed.len(), g)).collect();
    against(loss, &inputs, &gradients, 1e-6, &mut Rng::new(1)).unwrap_or_else(|e| panic!("{e}\n{text}"));
}

const COND: &str = "
graph(%p: bool[], %x: f64[4], %y: f64[4]) {
  %a: f64[4] = aten.mul.Tensor(%x, 2)
  %r: f64[4], %t: f64[4] = higher_order.cond(%p, @yes, @no, [%a, %y, %x])
  %m: f64[4] = aten.mul.Tensor(%r, %t)
  %sum: f64[] = aten.sum.default(%m)
  return %sum
}
graph @yes(%x: f64[4], %y: f64[4], %z: f64[4]) {
  %b: f64[4] = aten.mul.Tensor(%x, %y)
  %d: f64[4] = aten.flip.default(%b, [0])
  %e: f64[4] = aten.clone.default(%x)
  return %d, %e
}
graph @no(%x: f64[4], %y: f64[4], %z: f64[4]) {
  %s: f64[4] = aten.sin.default(%x)
  %e: f64[4] = aten.mul.Tensor(%s, %z)
  %f: f64[4] = aten.exp.default(%z)
  return %e, %f
}
";

fn flag(p: bool) -> RawTensor {
    let byte = RawTensor::from_slice(&[u8::from(p)], &[]);
    RawTensor::new(byte.storage().clone(), DType::Bool, byte.layout().clone()).expect("a byte")
}

#[test]
fn cond() {
    for p in [true, false] {
        check(COND, &[flag(p)], &[&[4], &[4]], None);
    }
}

const SCAN: &str = "
graph(%n: i64[], %h: f64[3], %xs: f64[5, 3], %w: f64[3, 3]) {
  %c: i64[], %last: f64[3], %ys: f64[5, 3], %unused: f64[5] = higher_order.scan(@step, [%n, %h], [%xs], [%w])
  %a: f64[5, 3] = aten.mul.Tensor(%ys, %ys)
  %b: f64[] = aten.sum.default(%a)
  %d: f64[] = aten.sum.default(%last)
  %e: f64[] = aten.add.Tensor(%b, %d)
  return %e
}
graph @step(%n: i64[], %h: f64[3], %x: f64[3], %w: f64[3, 3]) {
  %m: i64[] = aten.add.Tensor(%n, 1)
  %f: f64[] = aten._to_copy.default(%m, dtype=f64)
  %v: f64[3] = aten.mv.default(%w, %h)
  %s: f64[3] = aten.add.Tensor(%v, %x)
  %t: f64[3] = aten.tanh.default(%s)
  %y: f64[3] = aten.mul.Tensor(%t, %f)
  %u: f64[] = aten.sum.default(%x)
  return %m, %t, %y, %u
}
";

#[test]
fn scan() {
    check(SCAN, &[RawTensor::from_slice(&[2i64], &[])], &[&[3], &[5, 3], &[3, 3]], None);
}

const MAP: &str = "
graph(%xs: f64[4, 3], %w: f64[3]) {
  %ys: f64[4] = higher_order.map_impl(@each, [%xs], [%w])
  %zs: f64[4, 3] = higher_order.map_impl(@alone, [%xs], [])
  %a: f64[4] = aten.mul.Tensor(%ys, %ys)
  %b: f64[] = aten.sum.default(%a)
  %c: f64[] = aten.sum.default(%zs)
  %e: f64[] = aten.add.Tensor(%b, %c)
  return %e
}
graph @each(%x: f64[3], %w: f64[3]) {
  %m: f64[3] = aten.mul.Tensor(%x, %w)
  %s: f64[3] = aten.sin.default(%m)
  %u: f64[] = aten.sum.default(%s)
  return %u
}
graph @alone(%x: f64[3]) {
  %s: f64[3] = aten.exp.default(%x)
  return %s
}
";

#[test]
fn map() {
    check(MAP, &[], &[&[4, 3], &[3]], None);
}

const WHILE: &str = "
graph(%n: i64[], %x: f64[3], %w: f64[3]) {
  %m: i64[], %y: f64[3] = higher_order.while_loop(@test, @body, [%n, %x], [%w])
  %a: f64[3] = aten.mul.Tensor(%y, %y)
  %b: f64[] = aten.sum.default(%a)
  return %b
}
graph @test(%n: i64[], %x: f64[3], %w: f64[3]) {
  %g: bool[] = aten.lt.Scalar(%n, 4)
  return %g
}
graph @body(%n: i64[], %x: f64[3], %w: f64[3]) {
  %m: i64[] = aten.add.Tensor(%n, 1)
  %s: f64[3] = aten.sin.default(%x)
  %y: f64[3] = aten.add.Tensor(%s, %w)
  return %m, %y
}
";

#[test]
fn while_loop() {
    for n in [0i64, 1, 4, 9] {
        check(WHILE, &[RawTensor::from_slice(&[n], &[])], &[&[3], &[3]], Some(4));
    }
    check(WHILE, &[RawTensor::from_slice(&[0i64], &[])], &[&[3], &[3]], Some(11));
}

#[test]
fn loops_have_to_end() {
    let compiled = Compiled::new(program(WHILE), None, &CompileOptions::default()).expect("compiles");
    let e = compiled.grad(&GradOptions::default()).expect_err("a refusal").to_string();
    assert!(e.contains("without a limit on its iterations") && e.contains("--max-trips"), "{e}");
    let options = GradOptions { max_trips: Some(3), ..GradOptions::default() };
    let joint = compiled.grad(&options).expect("gradients");
    let numbers = |k: f64| RawTensor::from_slice(&[k, 0.5, 0.25], &[3]);
    let inputs = given(&[numbers(0.1), numbers(0.2)], &[RawTensor::from_slice(&[0i64], &[])]);
    let placed = Compiled::new(joint, Some(&inputs), &CompileOptions::default()).expect("compiles");
    let e =
        placed.instance().expect("an instance").run(&inputs, &RunOptions::default()).expect_err("too many").to_string();
    assert!(e.contains("the loop runs more than 3 iterations"), "{e}");
}

/// A condition within a scan within a scan.
const NESTED: &str = "
graph(%h: f64[2], %xs: f64[3, 4, 2], %w: f64[2]) {
  %last: f64[2], %ys: f64[3, 2] = higher_order.scan(@outer, [%h], [%xs], [%w])
  %a: f64[3, 2] = aten.mul.Tensor(%ys, %ys)
  %b: f64[] = aten.sum.default(%a)
  return %b
}
graph @outer(%h: f64[2], %x: f64[4, 2], %w: f64[2]) {
  %g: f64[2], %ys: f64[4, 2] = higher_order.scan(@inner, [%h], [%x], [%w])
  %s: f64[2] = aten.sum.dim_IntList(%ys, [0])
  return %g, %s
}
graph @inner(%h: f64[2], %x: f64[2], %w: f64[2]) {
  %t: f64[] = aten.sum.default(%x)
  %p: bool[] = aten.gt.Scalar(%t, 0)
  %r: f64[2] = higher_order.cond(%p, @yes, @no, [%h, %x, %w])
  %y: f64[2] = aten.mul.Tensor(%r, %x)
  return %r, %y
}
graph @yes(%h: f64[2], %x: f64[2], %w: f64[2]) {
  %m: f64[2] = aten.mul.Tensor(%h, %w)
  %a: f64[2] = aten.add.Tensor(%m, %x)
  return %a
}
graph @no(%h: f64[2], %x: f64[2], %w: f64[2]) {
  %m: f64[2] = aten.cos.default(%h)
  return %m
}
";

#[test]
fn nested() {
    check(NESTED, &[], &[&[2], &[3, 4, 2], &[2]], None);
}

/// Data decides which row is read, and how many rows there are.
#[test]
fn rows_that_data_decides() {
    let text = "symbol u0
      graph(%i: i64[], %x: f64[6, 2]) {
        %n: Sym(u0) = aten.item.default(%i)
        %y: f64[6, 2] = aten.mul.Tensor(%x, %x)
        %row: f64[2]+2*Mod(u0, 6) = aten.select.int(%y, 0, u0)
        %w: f64[2]+2*Mod(u0, 6) = aten.mul_.Scalar(%row, 3)
        %p: f64[6, 2] = aten.pow.Tensor_Scalar(%y, 2)
        %sum: f64[] = aten.sum.default(%p)
        return %sum
      }";
    for row in [0i64, 5, -1] {
        check(text, &[RawTensor::from_slice(&[row], &[])], &[&[6, 2]], None);
    }
    let text = "symbol u0 in [0, 6]
      graph(%g: i64[6], %x: f64[6]) {
        %own: i64[u0], %of: i64[6], %counts: i64[0] = aten._unique2.default(%g, True, True)
        %zeros: f64[u0] = aten.zeros.default([u0], dtype=f64)
        %sums: f64[u0] = aten.index_add.default(%zeros, 0, %of, %x)
        %p: f64[u0] = aten.pow.Tensor_Scalar(%sums, 2)
        %sum: f64[] = aten.sum.default(%p)
        return %sum
      }";
    check(text, &[RawTensor::from_slice(&[0i64, 2, 2, 5, 0, 1], &[6])], &[&[6]], None);
}

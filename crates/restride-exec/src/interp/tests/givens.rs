//! What a run is given: inputs, state, symbols, conditions.

use super::*;
use crate::random_inputs;
use restride_ir::Weight;
use restride_tensor::{Bytes, Scalar};
use std::sync::Arc;

fn with(text: &str, values: Vec<RunValue>) -> Result<Outputs, String> {
    let program = program(text);
    let mut state = State::new(&program).unwrap();
    interpret(&program, &Inputs::new(values), &mut state, &RunOptions::default()).map_err(|e| e.to_string())
}

const DYNAMIC: &str = "symbol s0 in [2, 8]
guard Eq(Mod(s0, 2), 0) \"s0 is even\"
graph(%x: f32[s0, 3], %y: f32[2*s0]) {
  %s: f32[3] = aten.sum.dim_IntList(%x, [0])
  return %s
}";

#[test]
fn sizes_tell_symbols_and_are_held_against_types_ranges_and_guards() {
    let t = |sizes: &[i64]| RunValue::Tensor(RawTensor::zeros(DType::F32, Layout::contiguous(sizes)));
    assert!(with(DYNAMIC, vec![t(&[4, 3]), t(&[8])]).is_ok());
    for (inputs, words) in [
        (vec![t(&[4, 3]), t(&[9])], "input y must have size 8 in dimension 0 (2*s0), and has 9"),
        (vec![t(&[4, 2]), t(&[8])], "input x must have size 3 in dimension 1"),
        (vec![t(&[4]), t(&[8])], "2 dimensions, and has 1"),
        (vec![t(&[10, 3]), t(&[20])], "s0 = 10 must be at most 8"),
        (vec![t(&[3, 3]), t(&[6])], "the inputs break a condition of the program: s0 is even"),
        (vec![t(&[4, 3])], "1 inputs are given, the program takes 2: x, y"),
        (vec![t(&[4, 3]), RunValue::None], "input y must be f32[2*s0], and None is given"),
        (vec![t(&[4, 3]), RunValue::Tensor(i64s(&[0; 8]))], "input y must be of f32, and is of i64"),
    ] {
        let e = with(DYNAMIC, inputs).unwrap_err();
        assert!(e.contains(words), "{e}");
    }
}

#[test]
fn derived_sizes_are_solved_for() {
    let text = "symbol s0\ngraph(%x: f32[2*s0 + 1]) {\n  %n: Sym(s0) = _operator.floordiv(2*s0 + 1, 2)\n  return %n\n}";
    let x = |n| RunValue::Tensor(RawTensor::zeros(DType::F32, Layout::contiguous(&[n])));
    let out = with(text, vec![x(7)]).unwrap();
    assert!(matches!(out.values[0], RunValue::Scalar(Scalar::Int(3))));
    assert!(with(text, vec![x(8)]).unwrap_err().contains("is not 2*s0 + 1"));
}

#[test]
fn fixed_inputs_take_their_value_only() {
    let text = "input %k: fixed \"k\" = 3\ninput %n: fixed \"n\" = None\ninput %s: fixed \"s\" = \"a\"
graph(%x: f32[1], %k: Sym(3), %n: None, %s: str) {
  return %x
}";
    let x = || RunValue::Tensor(f32s(&[1.]));
    let (three, a) = (RunValue::Scalar(Scalar::Int(3)), RunValue::Str("a".into()));
    assert!(with(text, vec![x(), three.clone(), RunValue::None, a.clone()]).is_ok());
    let three_point = RunValue::Scalar(Scalar::Float(3.0));
    let e = with(text, vec![x(), three_point, RunValue::None, a.clone()]).unwrap_err();
    assert!(e.contains("input k was fixed at export to 3, and the number 3.0 is given"), "{e}");
    let e = with(text, vec![x(), three.clone(), three, a]).unwrap_err();
    assert!(e.contains("input n was fixed at export to None"), "{e}");
}

#[test]
fn a_number_learnt_at_run_time_is_held_against_its_range() {
    let text = "symbol u0 in [0, 4]
graph(%x: f32[4], %n: i64[]) {
  %k: Sym(u0) = aten.item.default(%n)
  %v: f32[u0] = aten.slice.Tensor(%x, 0, None, u0)
  %w: f32[u0] = aten.add_.Tensor(%v, 1)
  return %k
}";
    let x = f32s(&[0.; 4]);
    runs(text, &[&x, &RawTensor::from_slice(&[2i64], &[])]);
    assert_eq!(x.to_elements::<f32>(), [1., 1., 0., 0.]);
    assert!(fails(text, &[&x, &RawTensor::from_slice(&[9i64], &[])]).contains("u0 = 9 must be at most 4"));
}

#[test]
fn assertions_stop_the_run() {
    let text = "symbol u0
graph(%n: i64[]) {
  %k: Sym(u0) = aten.item.default(%n)
  %g: Sym(Ge(u0, 3)) = _operator.ge(u0, 3)
  aten._assert_scalar.default(Ge(u0, 3), \"too few\")
  return %k
}";
    runs(text, &[&RawTensor::from_slice(&[3i64], &[])]);
    let e = run(text, &[&RawTensor::from_slice(&[2i64], &[])]).unwrap_err();
    assert_eq!(e.kind, restride_ir::ErrorKind::Program);
    assert!(e.to_string().contains("too few (at aten._assert_scalar.default"), "{e}");
}

#[test]
fn an_operator_without_a_kernel_is_refused_by_name() {
    let op = restride_ops::register_custom("exec_test::nothing(Tensor x) -> Tensor").unwrap();
    let text = format!("graph(%x: f32[1]) {{\n  %y: f32[1] = {}(%x)\n  return %y\n}}", op.name());
    let e = run(&text, &[&f32s(&[1.])]).unwrap_err();
    assert_eq!(e.kind, restride_ir::ErrorKind::Unsupported);
    assert!(e.to_string().contains("exec_test.nothing.default cannot be run"), "{e}");
}

/// A program that adds to a buffer, which shares its storage with a parameter.
fn tied() -> restride_ir::Program {
    let mut program = program(
        "weight \"w\": f32[4] storage 0 parameter\nweight \"b\": f32[2]+2 storage 0
input %w: parameter \"w\"\ninput %b: buffer \"b\"
graph(%w: f32[4], %b: f32[2]+2, %x: f32[2]) {
  %a: f32[2]+2 = aten.add_.Tensor(%b, %x)
  %s: f32[] = aten.sum.default(%w)
  return %s
}",
    );
    let bytes: Vec<u8> = [1f32, 2., 3., 4.].iter().flat_map(|x| x.to_le_bytes()).collect();
    let weight =
        |layout: Layout| Weight { storage: 0, dtype: DType::F32, layout, is_param: false, requires_grad: false };
    let weights = Arc::make_mut(&mut program.weights);
    weights.storages = vec![Bytes::copy_of(&bytes)];
    weights.tensors =
        [("w".into(), weight(Layout::contiguous(&[4]))), ("b".into(), weight(Layout::strided(&[2], &[1], 2)))].into();
    program
}

#[test]
fn weights_on_one_storage_share_it_and_the_program_keeps_its_own() {
    let program = tied();
    let mut state = State::new(&program).unwrap();
    let x = || Inputs::new([RunValue::Tensor(f32s(&[10., 20.]))]);
    let before = state.deep_clone();
    for run in 1..=2 {
        let out = interpret(&program, &x(), &mut state, &RunOptions::default()).unwrap();
        assert_eq!(floats(&out, 0), [10. + 30. * run as f32]);
    }
    assert_eq!(state.get("w").unwrap().to_elements::<f32>(), [1., 2., 23., 44.]);
    assert_eq!(before.get("b").unwrap().to_elements::<f32>(), [3., 4.]);
    assert!(before.get("b").unwrap().storage().same(before.get("w").unwrap().storage()));
    assert_eq!(State::new(&program).unwrap().get("w").unwrap().to_elements::<f32>(), [1., 2., 3., 4.]);
}

#[test]
fn inputs_that_share_storage_alias() {
    let base = count(&[4]);
    let (x, y) = (base.clone(), base.alias(DType::F32, Layout::strided(&[2], &[1], 1)).unwrap());
    let out = runs(
        "graph(%x: f32[4], %y: f32[2]) {\n  %a: f32[4] = aten.mul_.Tensor(%x, 2)\n  %b: f32[2] = aten.add.Tensor(%y, 0)\n  return %b\n}",
        &[&x, &y],
    );
    assert_eq!(floats(&out, 0), [2., 4.]);
}

#[test]
fn random_inputs_fit_the_program_and_follow_the_seed() {
    let p = program(DYNAMIC);
    let draw = |seed| random_inputs(&p, seed).unwrap().values[0].tensor().unwrap().to_elements::<f32>();
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
    let inputs = random_inputs(&p, 3).unwrap();
    interpret(&p, &inputs, &mut State::new(&p).unwrap(), &RunOptions::default()).unwrap();
}

//! Gradients where a function has no derivative, or the derivative has no number: what PyTorch's autograd gives there.

use restride::{CompileOptions, Compiled, GradOptions, Inputs, RunOptions, RunValue};
use restride_tensor::RawTensor;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// Gradients of the sum of a call on vectors `%x`, `%y` and `%z`, one for each that is given.
fn gradients(call: &str, of: &[&[f64]]) -> Vec<Vec<f64>> {
    let n = of[0].len();
    let inputs: Vec<String> = ["%x", "%y", "%z"].iter().take(of.len()).map(|v| format!("{v}: f64[{n}]")).collect();
    let (inputs, out) = (inputs.join(", "), if call.contains("logsumexp") { "".into() } else { n.to_string() });
    let text = format!(
        "graph({inputs}) {{
          %r: f64[{out}] = {call}
          %l: f64[] = aten.sum.default(%r)
          return %l
        }}"
    );
    let program = restride_ir::text::parse(&text, &restride_ops::lookup).expect("a program");
    let given = || Inputs::new(of.iter().map(|v| RunValue::Tensor(RawTensor::from_slice(v, &[n as i64]))));
    let compiled = Compiled::new(program, Some(&given()), &CompileOptions::default()).expect("compiles");
    let joint = compiled.grad(&GradOptions::default()).expect("has a gradient");
    let placed = Compiled::new(joint, Some(&given()), &CompileOptions::default()).expect("compiles");
    let out = placed.instance().and_then(|mut i| i.run(&given(), &RunOptions::default())).expect("runs");
    out.gradients.iter().map(|(_, g)| (0..n as i64).map(|i| g.get(&[i]).as_f64()).collect()).collect()
}

fn check(call: &str, of: &[&[f64]], expected: &[&[f64]]) {
    let made = gradients(call, of);
    let same = |a: &f64, b: &f64| a == b || a.is_nan() && b.is_nan();
    let alike = made.len() == expected.len()
        && made.iter().zip(expected).all(|(a, b)| a.len() == b.len() && a.iter().zip(*b).all(|(a, b)| same(a, b)));
    assert!(alike, "{call} at {of:?}: {made:?}, PyTorch {expected:?}");
}

#[test]
fn a_number_as_bound_has_slope_0() {
    let x: &[f64] = &[0.5, -0.5, 0.2, 0.7, NAN];
    check("aten.clamp.default(%x, -0.5, 0.5)", &[x], &[&[0.0, 0.0, 1.0, 0.0, 0.0]]);
    check("aten.clamp.default(%x, 0.5, 0.5)", &[x], &[&[0.0; 5]]);
    check("aten.clamp_min.default(%x, -0.5)", &[x], &[&[1.0, 0.0, 1.0, 1.0, 0.0]]);
    check("aten.clamp_max.default(%x, 0.5)", &[x], &[&[0.0, 1.0, 1.0, 0.0, 0.0]]);
}

#[test]
fn a_tensor_as_bound_shares_the_gradient() {
    let (x, y): (&[f64], &[f64]) = (&[1.0, 0.0, 1.0, 1.0, NAN], &[1.0, 1.0, 0.0, NAN, 1.0]);
    let min: [&[f64]; 2] = [&[0.5, 0.0, 1.0, 1.0, 1.0], &[0.5, 1.0, 0.0, 1.0, 1.0]];
    let max: [&[f64]; 2] = [&[0.5, 1.0, 0.0, 1.0, 1.0], &[0.5, 0.0, 1.0, 1.0, 1.0]];
    check("aten.clamp_min.Tensor(%x, %y)", &[x, y], &min);
    check("aten.clamp.Tensor(%x, %y, None)", &[x, y], &min);
    check("aten.clamp_max.Tensor(%x, %y)", &[x, y], &max);
    check("aten.clamp.Tensor(%x, None, %y)", &[x, y], &max);
    check("aten.fmax.default(%x, %y)", &[x, y], &[&[0.5, 0.0, 1.0, 1.0, 0.0], &[0.5, 1.0, 0.0, 0.0, 1.0]]);
    check("aten.fmin.default(%x, %y)", &[x, y], &[&[0.5, 1.0, 0.0, 1.0, 0.0], &[0.5, 0.0, 1.0, 0.0, 1.0]]);
}

#[test]
fn a_distance_without_end_has_slope_1() {
    let (x, y): (&[f64], &[f64]) = (&[INF, -INF, INF, NAN, 0.5, 2.0], &[0.0, 0.0, INF, 0.0, 0.0, INF]);
    let slopes: [&[f64]; 2] = [&[1.0, -1.0, NAN, NAN, 0.5, -1.0], &[-1.0, 1.0, NAN, NAN, -0.5, 1.0]];
    check("aten.smooth_l1_loss.default(%x, %y, 0, 1.0)", &[x, y], &slopes);
    check("aten.huber_loss.default(%x, %y, 0, 1.0)", &[x, y], &slopes);
}

/// All orders of an element and two bounds.
#[test]
fn an_element_between_two_tensors() {
    check(
        "aten.clamp.Tensor(%x, %y, %z)",
        &[
            &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, NAN, 2.0, 2.0],
            &[1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 2.0, NAN, NAN],
            &[2.0, 1.0, 1.0, 2.0, 1.0, 0.0, 2.0, 2.0, 1.0, 1.0, 1.0, 2.0],
        ],
        &[
            &[0.0, 0.0, 0.0, 0.5, 1.0, 0.0, 1.0, 0.5, 0.0, 1.0, 0.0, 1.0],
            &[1.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.5, 1.0, 1.0, 0.0, 0.0],
        ],
    );
}

#[test]
fn slopes_that_are_no_numbers() {
    check("aten.logsumexp.default(%x, [0])", &[&[-INF, -INF]], &[&[NAN, NAN]]);
    check("aten.logsumexp.default(%x, [0])", &[&[INF, 0.0]], &[&[NAN, 0.0]]);
    check("aten.logsumexp.default(%x, [0])", &[&[-INF, 0.0]], &[&[0.0, 1.0]]);
    check("aten.pow.Scalar(0.0, %x)", &[&[-1.0, 0.0, 1.0]], &[&[-INF, 0.0, 0.0]]);
    check("aten.nextafter.default(%x, %y)", &[&[1.0, 1.0], &[1.0, 2.0]], &[&[0.0, 1.0], &[0.0, 0.0]]);
    let (p, t): (&[f64], &[f64]) = (&[0.0, 1.0], &[0.0, 1.0]);
    let made = gradients("aten.binary_cross_entropy.default(%x, %y, None, 0)", &[p, t]);
    assert_eq!(made[1], [INF, -INF]);
}

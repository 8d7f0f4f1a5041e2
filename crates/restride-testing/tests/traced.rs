//! Operators that only traces of training steps contain: their results against differences of the loss that they belong to.

use restride::RawTensor;
use restride_exec::interp::RunOptions;
use restride_ir::text::parse;
use restride_ir::verify;
use restride_tensor::{DType, Layout};
use restride_testing::Leftovers;
use restride_testing::finite_differences::against;
use restride_testing::rng::Rng;
use restride_testing::scenarios::{given, loss};

/// Runs a program whose first output is a loss, and whose others are the gradients of its inputs in order.
fn gradients_of_loss(text: &str) {
    let program = parse(text, &restride_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&program).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let graph = program.graph();
    let inputs: Vec<RawTensor> = (program.signature.inputs.iter().enumerate())
        .map(|(i, spec)| {
            let sizes = graph.values[spec.value].ty.tensor().expect("a tensor").layout.sizes.iter();
            let sizes: Vec<i64> = sizes.map(|n| n.constant().expect("a known size").as_i64()).collect();
            let t = RawTensor::zeros(DType::F64, Layout::contiguous(&sizes));
            let numbers = (0..t.numel() as u64).map(|k| ((k + 17 * i as u64) * 7919 % 199) as f64 / 100.0 - 1.0);
            t.storage().write(&numbers.flat_map(f64::to_ne_bytes).collect::<Vec<u8>>());
            t
        })
        .collect();
    let out = Leftovers::interp(&program, &given(&inputs), &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let found: Vec<RawTensor> = out.values[1..].iter().map(|v| v.tensor().expect("a tensor").clone()).collect();
    assert_eq!(found.len(), inputs.len());
    let gradients: Vec<(usize, RawTensor)> = found.into_iter().enumerate().collect();
    against(|at| loss(&program, at), &inputs, &gradients, 1e-6, &mut Rng::new(1))
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
}

/// A layer of an LSTM as PyTorch traces it on CPUs, in both directions.
#[test]
fn a_traced_lstm_has_its_gradients() {
    // In PyTorch's graphs of whole modules states have no dimension of layers.
    for (reverse, state) in [("False", "1, 2, 5"), ("True", "1, 2, 5"), ("True", "2, 5")] {
        let operands = "%x, %w, %u, %b, %c, %h, %s";
        gradients_of_loss(&format!(
            "graph(%x: f64[3, 2, 4], %w: f64[20, 4], %u: f64[20, 5], %b: f64[20], %c: f64[20], %h: f64[{state}], %s: f64[{state}]) {{
  %o: f64[3, 2, 5], %y: f64[{state}], %z: f64[{state}], %e: u8[0] = aten.mkldnn_rnn_layer.default({operands}, {reverse}, [], 2, 5, 1, True, False, False, True)
  %oo: f64[3, 2, 5] = aten.mul.Tensor(%o, %o)
  %so: f64[] = aten.sum.default(%oo)
  %zz: f64[{state}] = aten.mul.Tensor(%z, %z)
  %sz: f64[] = aten.sum.default(%zz)
  %l: f64[] = aten.add.Tensor(%so, %sz)
  %go: f64[3, 2, 5] = aten.mul.Scalar(%o, 2)
  %gz: f64[{state}] = aten.mul.Scalar(%z, 2)
  %g0: f64[3, 2, 4], %g1: f64[20, 4], %g2: f64[20, 5], %g3: f64[20], %g4: f64[20], %g5: f64[{state}], %g6: f64[{state}] = aten.mkldnn_rnn_layer_backward.default({operands}, %o, %y, %z, %go, None, %gz, {reverse}, 2, 5, 1, True, True, False, [], False, %e)
  return %l, %g0, %g1, %g2, %g3, %g4, %g5, %g6
}}"
        ));
    }
}

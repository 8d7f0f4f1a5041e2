//! `mkldnn_rnn_layer`, which traces of LSTMs contain on CPUs, and its gradient: one layer in one direction, as compositions.
//!
//! PyTorch keeps what the gradient needs in a workspace that oneDNN alone reads. Here the workspace is empty, as in PyTorch's traces, and
//! the gradient computes the layer again.

use crate::gradient::pullback;
use crate::support::composite::composed;
use crate::support::*;
use restride_ir::{Arg, DType, DecomposeFn, Emit, InferFn, OpDef, Scalar, Val};
use smallvec::{SmallVec, smallvec};

/// The number of LSTMs among the kinds of networks.
const LSTM: i64 = 2;

/// One direction of one layer. Steps are the input's first dimension, whatever `batch_first` says of the module.
struct RnnLayer {
    input: Val,
    params: Vec<Val>,
    states: [Val; 2],
    /// Without the dimension of layers.
    flat: bool,
    reverse: bool,
}

impl RnnLayer {
    /// Reads `(input, weight0, weight1, weight2, weight3, hx_, cx_, ...)`; the other numbers are positions of arguments.
    fn read(e: &mut dyn Emit, a: &ValArgs<'_>, [reverse, mode, batch_sizes]: [usize; 3]) -> Result<RnnLayer> {
        ensure!(a.int(mode)? == LSTM, "unsupported: mkldnn_rnn_layer of mode {}, which is no LSTM", a.int(mode)?);
        ensure!(a.ints(batch_sizes)?.is_empty(), "unsupported: mkldnn_rnn_layer of a packed sequence");
        let flat = e.meta(*a.tensor(5)?).rank() == 2;
        Ok(RnnLayer {
            input: *a.tensor(0)?,
            params: (1..5).map(|i| a.tensor(i).copied()).collect::<Result<_>>()?,
            states: [in_layers(e, flat, *a.tensor(5)?)?, in_layers(e, flat, *a.tensor(6)?)?],
            flat,
            reverse: a.bool(reverse)?,
        })
    }

    /// In the order in which the layer takes its steps, or from there back to the input's.
    fn turned(&self, e: &mut dyn Emit, v: Val) -> Result<Val> {
        if self.reverse { emit!(e, "aten.flip.default", v, [0]) } else { Ok(v) }
    }

    /// Arguments of `lstm.input` for an input in the order of steps.
    fn call(&self, input: Val) -> Vec<Arg<Val, Scalar>> {
        let list = |v: &[Val]| Arg::Values(v.iter().map(|v| Some(*v)).collect());
        let (yes, no) = (Arg::Scalar(Scalar::Bool(true)), Arg::Scalar(Scalar::Bool(false)));
        let (one, dropout) = (Arg::Scalar(Scalar::Int(1)), Arg::Scalar(Scalar::Float(0.0)));
        vec![Arg::Value(input), list(&self.states), list(&self.params), yes, one, dropout, no.clone(), no.clone(), no]
    }
}

/// A state with a dimension of layers, as `lstm.input` takes it.
fn in_layers(e: &mut dyn Emit, flat: bool, state: Val) -> Result<Val> {
    if flat { emit!(e, "aten.unsqueeze.default", state, 0) } else { Ok(state) }
}

/// A state as the layer was given it.
fn as_given(e: &mut dyn Emit, flat: bool, state: Val) -> Result<Val> {
    if flat { emit!(e, "aten.squeeze.dim", state, 0) } else { Ok(state) }
}

/// `(input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, num_layers, has_biases,
/// bidirectional, batch_first, train)`
fn layer(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let of = RnnLayer::read(e, a, [7, 9, 8])?;
    let input = of.turned(e, of.input)?;
    let mut out = e.call("aten.lstm.input", &of.call(input))?;
    out[0] = of.turned(e, out[0])?;
    for state in &mut out[1..] {
        *state = as_given(e, of.flat, *state)?;
    }
    out.push(emit!(e, "aten.new_empty.default", of.input, [0], DType::U8)?);
    Ok(out)
}

/// `(input, weight1, weight2, weight3, weight4, hx_, cx_tmp, output, hy_, cy_, grad_output, grad_hy, grad_cy, reverse, mode,
/// hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, workspace)`: gradients of the first seven.
fn layer_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let of = RnnLayer::read(e, a, [13, 14, 20])?;
    let input = of.turned(e, of.input)?;
    let mut grads = SmallVec::<[Option<Val>; 3]>::new();
    for i in 10..13 {
        grads.push(a.opt_tensor(i)?.copied());
    }
    grads[0] = grads[0].map(|g| of.turned(e, g)).transpose()?;
    for state in &mut grads[1..] {
        *state = state.map(|g| in_layers(e, of.flat, g)).transpose()?;
    }
    let wanted: Vec<Val> = std::iter::once(input).chain(of.params.iter().copied()).chain(of.states).collect();
    let found = pullback(e, "aten.lstm.input", &of.call(input), &grads, &wanted)?;
    let mut out: SmallVec<[Val; 1]> = smallvec![];
    for (grad, of) in found.into_iter().zip(wanted) {
        out.push(match grad {
            Some(grad) => emit!(e, "aten.contiguous.default", grad)?,
            None => emit!(e, "aten.zeros_like.default", of)?,
        });
    }
    out[0] = of.turned(e, out[0])?;
    for state in &mut out[5..] {
        *state = as_given(e, of.flat, *state)?;
    }
    Ok(out)
}

/// Without samples: PyTorch's own calls fill a workspace that only oneDNN reads.
const fn unsampled(schema: &'static str, f: DecomposeFn, infer: Option<InferFn>) -> OpDef {
    OpDef { infer, decompose: Some(f), ..OpDef::new(schema) }
}

pub(crate) static OPS: &[OpDef] = table![
    unsampled("mkldnn_rnn_layer", layer, composed!(layer)),
    unsampled("mkldnn_rnn_layer_backward", layer_backward, composed!(layer_backward)),
];

//! Recurrent networks and cells: composed step by step, as on PyTorch's CPU, or one kernel for packed sequences.

mod layer;
mod packed;
mod packed_grad;

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Emit, OpDef, Val};
use smallvec::{SmallVec, smallvec};

/// The kinds of recurrent cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RnnCell {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

/// Parameters of one layer in one direction.
#[derive(Clone, Copy)]
struct Layer {
    w_ih: Val,
    w_hh: Val,
    b_ih: Option<Val>,
    b_hh: Option<Val>,
    /// Projection of the hidden state (LSTM only).
    w_hr: Option<Val>,
}

/// A hidden state, and the cell state of an LSTM.
type RnnState = SmallVec<[Val; 2]>;

impl RnnCell {
    /// Computes one step from the projected input.
    fn step(self, e: &mut dyn Emit, gates: Val, state: &RnnState, p: &Layer) -> Result<RnnState> {
        let h = state[0];
        let recurrent = emit!(e, "aten.linear.default", h, p.w_hh, p.b_hh)?;
        match self {
            RnnCell::Lstm => {
                let gates = emit!(e, "aten.add.Tensor", recurrent, gates)?;
                let parts = emit_all!(e, "aten.chunk.default", gates, 4, 1)?;
                let [i, f, g, o] = parts[..] else { return fail("the gates do not divide by 4") };
                let i = emit!(e, "aten.sigmoid.default", i)?;
                let f = emit!(e, "aten.sigmoid.default", f)?;
                let g = emit!(e, "aten.tanh.default", g)?;
                let o = emit!(e, "aten.sigmoid.default", o)?;
                let kept = emit!(e, "aten.mul.Tensor", f, state[1])?;
                let new = emit!(e, "aten.mul.Tensor", i, g)?;
                let c = emit!(e, "aten.add.Tensor", kept, new)?;
                let shown = emit!(e, "aten.tanh.default", c)?;
                let mut h = emit!(e, "aten.mul.Tensor", o, shown)?;
                if let Some(w) = p.w_hr {
                    h = emit!(e, "aten.linear.default", h, w, ())?;
                }
                Ok(smallvec![h, c])
            }
            RnnCell::Gru => {
                let inputs = emit_all!(e, "aten.chunk.default", gates, 3, 1)?;
                let hidden = emit_all!(e, "aten.chunk.default", recurrent, 3, 1)?;
                let ([ir, iz, inew], [hr, hz, hnew]) = (&inputs[..], &hidden[..]) else {
                    return fail("the gates do not divide by 3");
                };
                let reset = emit!(e, "aten.add.Tensor", *hr, *ir)?;
                let reset = emit!(e, "aten.sigmoid.default", reset)?;
                let update = emit!(e, "aten.add.Tensor", *hz, *iz)?;
                let update = emit!(e, "aten.sigmoid.default", update)?;
                let gated = emit!(e, "aten.mul.Tensor", reset, *hnew)?;
                let new = emit!(e, "aten.add.Tensor", *inew, gated)?;
                let new = emit!(e, "aten.tanh.default", new)?;
                let d = emit!(e, "aten.sub.Tensor", h, new)?;
                let d = emit!(e, "aten.mul.Tensor", d, update)?;
                Ok(smallvec![emit!(e, "aten.add.Tensor", d, new)?])
            }
            RnnCell::Tanh | RnnCell::Relu => {
                let sum = emit!(e, "aten.add.Tensor", recurrent, gates)?;
                let f = if self == RnnCell::Tanh { "aten.tanh.default" } else { "aten.relu.default" };
                Ok(smallvec![emit!(e, f, sum)?])
            }
        }
    }
}

/// A single step: `(input, hx, w_ih, w_hh, b_ih, b_hh)`.
fn cell(e: &mut dyn Emit, a: &ValArgs<'_>, cell: RnnCell) -> Vals {
    let x = *a.tensor(0)?;
    let state: RnnState = match cell {
        RnnCell::Lstm => a.tensors(1)?.into_iter().copied().collect(),
        _ => smallvec![*a.tensor(1)?],
    };
    ensure!(cell != RnnCell::Lstm || state.len() == 2, "lstm_cell expects two hidden states");
    let p = Layer {
        w_ih: *a.tensor(2)?,
        w_hh: *a.tensor(3)?,
        b_ih: a.opt_tensor(4)?.copied(),
        b_hh: a.opt_tensor(5)?.copied(),
        w_hr: None,
    };
    let (xs, hs) = (sizes(e, x), sizes(e, state[0]));
    ensure!(xs.len() == 2 && hs.len() == 2, "rnn cells expect a batch of inputs and hidden states");
    ensure!(xs[0] == hs[0], "Input batch size {} doesn't match hidden0 batch size {}", xs[0], hs[0]);
    let gates = emit!(e, "aten.linear.default", x, p.w_ih, p.b_ih)?;
    Ok(cell.step(e, gates, &state, &p)?.into_iter().collect())
}

/// Options of a network call.
struct Net {
    cell: RnnCell,
    layers: usize,
    dropout: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
}

/// Runs one layer in one direction over a time-first sequence; returns the outputs by step and the last state.
fn run(
    e: &mut dyn Emit,
    cell: RnnCell,
    x: Val,
    mut state: RnnState,
    p: &Layer,
    reverse: bool,
) -> Result<(Vec<Val>, RnnState)> {
    let steps = sizes(e, x)[0];
    let gates = emit!(e, "aten.linear.default", x, p.w_ih, p.b_ih)?;
    let mut out = Vec::new();
    for t in 0..steps {
        let t = if reverse { steps - 1 - t } else { t };
        let at = emit!(e, "aten.select.int", gates, 0, t)?;
        state = cell.step(e, at, &state, p)?;
        out.push(state[0]);
    }
    if reverse {
        out.reverse();
    }
    Ok((out, state))
}

/// Runs a network; each of `states` holds the states of all layers and directions.
fn network(e: &mut dyn Emit, net: &Net, input: Val, states: &[Val], params: &[Layer]) -> Vals {
    let directions = 1 + net.bidirectional as usize;
    let mut x = if net.batch_first { emit!(e, "aten.transpose.int", input, 0, 1)? } else { input };
    let mut last: Vec<RnnState> = Vec::new();
    for layer in 0..net.layers {
        let mut sides = Vec::new();
        for d in 0..directions {
            let at = layer * directions + d;
            let mut state = RnnState::new();
            for &s in states {
                state.push(emit!(e, "aten.select.int", s, 0, at as i64)?);
            }
            let (out, state) = run(e, net.cell, x, state, &params[at], d == 1)?;
            sides.push(emit!(e, "aten.stack.default", out, 0)?);
            last.push(state);
        }
        x = if directions == 2 { emit!(e, "aten.cat.default", sides, -1)? } else { sides[0] };
        if net.dropout != 0.0 && net.train && layer + 1 < net.layers {
            x = emit!(e, "aten.dropout.default", x, net.dropout, true)?;
        }
    }
    if net.batch_first {
        x = emit!(e, "aten.transpose.int", x, 0, 1)?;
    }
    let mut out: SmallVec<[Val; 1]> = smallvec![x];
    for kind in 0..states.len() {
        let all: Vec<Val> = last.iter().map(|s| s[kind]).collect();
        out.push(emit!(e, "aten.stack.default", all, 0)?);
    }
    Ok(out)
}

/// `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`
fn sequence(e: &mut dyn Emit, a: &ValArgs<'_>, cell: RnnCell) -> Vals {
    let input = *a.tensor(0)?;
    let states: Vec<Val> = match cell {
        RnnCell::Lstm => a.tensors(1)?.into_iter().copied().collect(),
        _ => vec![*a.tensor(1)?],
    };
    ensure!(cell != RnnCell::Lstm || states.len() == 2, "lstm expects two hidden states");
    let params: Vec<Val> = a.tensors(2)?.into_iter().copied().collect();
    let (biases, layers) = (a.bool(3)?, a.int(4)?);
    let net = Net {
        cell,
        layers: layers.clamp(0, 1 << 20) as usize,
        dropout: a.float(5)?,
        train: a.bool(6)?,
        bidirectional: a.bool(7)?,
        batch_first: a.bool(8)?,
    };
    let s = sizes(e, input);
    ensure!(s.len() == 3, "rnn: expected a 3-D input, got {} dimensions", s.len());
    ensure!(s[net.batch_first as usize] > 0, "Expected sequence length to be larger than 0 in RNN");
    ensure!(net.layers > 0, "rnn: number of layers must be positive");
    let count = net.layers * (1 + net.bidirectional as usize);
    for &v in &states {
        let n = sizes(e, v);
        ensure!(
            n.len() == 3 && n[0] == count as i64,
            "Expected hidden size to have {count} layers, got a hidden state of sizes {n:?}"
        );
    }
    let projected = cell == RnnCell::Lstm && sizes(e, states[0])[2] != sizes(e, states[1])[2];
    let each = 2 + 2 * biases as usize + projected as usize;
    ensure!(
        params.len() == count * each,
        "got an incorrect number of RNN parameters: {} for {count} layers of {each}",
        params.len()
    );
    let layers: Vec<Layer> = params
        .chunks(each)
        .map(|p| Layer {
            w_ih: p[0],
            w_hh: p[1],
            b_ih: biases.then(|| p[2]),
            b_hh: biases.then(|| p[3]),
            w_hr: projected.then(|| p[each - 1]),
        })
        .collect();
    network(e, &net, input, &states, &layers)
}

macro_rules! composed_as {
    ($($name:ident, $f:ident, $cell:expr;)*) => {$(
        fn $name(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
            $f(e, a, $cell)
        }
    )*};
}
composed_as! {
    lstm, sequence, RnnCell::Lstm;
    gru, sequence, RnnCell::Gru;
    rnn_tanh, sequence, RnnCell::Tanh;
    rnn_relu, sequence, RnnCell::Relu;
    lstm_cell, cell, RnnCell::Lstm;
    gru_cell, cell, RnnCell::Gru;
    rnn_tanh_cell, cell, RnnCell::Tanh;
    rnn_relu_cell, cell, RnnCell::Relu;
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(lstm, sequence_samples(RnnCell::Lstm), "lstm.input"),
    composite!(gru, sequence_samples(RnnCell::Gru), "gru.input"),
    composite!(rnn_tanh, sequence_samples(RnnCell::Tanh), "rnn_tanh.input"),
    composite!(rnn_relu, sequence_samples(RnnCell::Relu), "rnn_relu.input"),
    composite!(lstm_cell, cell_samples(RnnCell::Lstm), "lstm_cell"),
    composite!(gru_cell, cell_samples(RnnCell::Gru), "gru_cell"),
    composite!(rnn_tanh_cell, cell_samples(RnnCell::Tanh), "rnn_tanh_cell"),
    composite!(rnn_relu_cell, cell_samples(RnnCell::Relu), "rnn_relu_cell"),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family =
    crate::Family { ops: &[OPS, packed::OPS, layer::OPS], gradients: &[packed_grad::GRADS], aliases: &[] };

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    pub(super) fn gates(cell: RnnCell) -> i64 {
        match cell {
            RnnCell::Lstm => 4,
            RnnCell::Gru => 3,
            RnnCell::Tanh | RnnCell::Relu => 1,
        }
    }

    pub(super) fn cell_samples(cell: RnnCell) -> Samples {
        let d = DType::F32;
        let g = gates(cell);
        let state = |make: fn(DType, &[i64], u64) -> RawTensor, d: DType| -> SampleArg {
            match cell {
                RnnCell::Lstm => Arg::Values(vec![Some(make(d, &[2, 4], 2)), Some(make(d, &[2, 4], 3))]),
                _ => Arg::Value(make(d, &[2, 4], 2)),
            }
        };
        let call = |make: fn(DType, &[i64], u64) -> RawTensor, d: DType| {
            sample![make(d, &[2, 3], 1), state(make, d), make(d, &[4 * g, 3], 4), make(d, &[4 * g, 4], 5)]
        };
        let mut out: Samples = vec![call(tensor, d), call(transposed, d), call(strided, d), call(tensor, DType::F64)];
        let mut bias = call(tensor, d);
        bias.args.extend([Arg::Value(tensor(d, &[4 * g], 6)), Arg::Value(tensor(d, &[4 * g], 7))]);
        out.push(bias);
        let mut wrong = call(tensor, d);
        wrong.args[0] = Arg::Value(tensor(d, &[3, 3], 1));
        out.push(wrong);
        out
    }

    pub(super) fn sequence_samples(cell: RnnCell) -> Samples {
        let d = DType::F32;
        let g = gates(cell);
        let call = |d: DType, layers: i64, biases: bool, both: bool, batch_first: bool, projected: bool| -> Sample {
            let sides = 1 + both as i64;
            let (n, t, i, h) = (2, 4, 3, 5);
            let p = if projected { 2 } else { h };
            let x = if batch_first { tensor(d, &[n, t, i], 1) } else { tensor(d, &[t, n, i], 1) };
            let hidden = tensor(d, &[layers * sides, n, p], 2);
            let hx: SampleArg = match cell {
                RnnCell::Lstm => Arg::Values(vec![Some(hidden), Some(tensor(d, &[layers * sides, n, h], 3))]),
                _ => Arg::Value(hidden),
            };
            let mut params = Vec::new();
            for layer in 0..layers {
                for side in 0..sides {
                    let seed = (10 * (2 * layer + side)) as u64;
                    let wide = if layer == 0 { i } else { sides * p };
                    params.push(tensor(d, &[g * h, wide], seed + 1));
                    params.push(tensor(d, &[g * h, p], seed + 2));
                    if biases {
                        params.push(tensor(d, &[g * h], seed + 3));
                        params.push(tensor(d, &[g * h], seed + 4));
                    }
                    if projected {
                        params.push(tensor(d, &[p, h], seed + 5));
                    }
                }
            }
            sample![x, hx, params, biases, layers, 0.5, false, both, batch_first]
        };
        let mut out = vec![
            call(d, 1, true, false, false, false),
            call(d, 2, true, false, true, false),
            call(d, 2, false, true, false, false),
            call(d, 1, true, true, true, false),
            call(DType::F64, 2, true, true, true, false),
        ];
        if cell == RnnCell::Lstm {
            out.push(call(d, 2, true, true, true, true));
        } else {
            // PyTorch's LSTM does not check this.
            let mut wrong = call(d, 1, true, false, false, false);
            wrong.args[3] = crate::support::samples::IntoArg::arg(false);
            out.push(wrong);
        }
        out
    }
}

//! Recurrent networks over packed sequences, as one kernel.

use crate::support::promote::name;
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, DType, Meta, OpDef, Operands};
use restride_kernels::rnn::{Network, RnnKind};
use restride_kernels::support::scratch::room;
use restride_tensor::Dims;
use smallvec::{SmallVec, smallvec};

/// Checked `(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`.
fn network<V>(a: &Args<'_, V>, cell: RnnKind, sizes: impl Fn(&V) -> Dims<i64>) -> Result<(Network, Dims<i64>)> {
    let states = states(a, cell)?;
    ensure!(states.len() == if cell == RnnKind::Lstm { 2 } else { 1 }, "expected two hidden states");
    let shapes: SmallVec<[Dims<i64>; 2]> = states.iter().map(|s| sizes(s)).collect();
    let (data, count) = (sizes(a.tensor(0)?), a.int(5)?);
    ensure!(
        !a.bool(7)? || a.float(6)? == 0.0,
        "dropout between the layers of a network over packed sequences is not supported"
    );
    ensure!((1..1 << 20).contains(&count), "rnn: number of layers must be positive");
    let bidirectional = a.bool(8)?;
    let all = count * (1 + bidirectional as i64);
    ensure!(data.len() == 2, "rnn: expected packed data of 2 dimensions, got {}", data.len());
    for s in &shapes {
        ensure!(
            s.len() == 3 && s[0] == all && s[1] == shapes[0].get(1).copied().unwrap_or(0) && s[1] > 0,
            "Expected hidden size of {all} layers, got a hidden state of sizes {s:?}"
        );
    }
    let (shown, inner) = (shapes[0][2], shapes[shapes.len() - 1][2]);
    let net = Network {
        cell,
        layers: count as usize,
        bidirectional,
        biases: a.bool(4)?,
        projected: cell == RnnKind::Lstm && shown != inner,
    };
    let params = a.tensors(3)?;
    ensure!(
        params.len() == all as usize * net.each(),
        "got an incorrect number of RNN parameters: {} for {all} layers of {}",
        params.len(),
        net.each()
    );
    let gates = cell.gates() as i64 * inner;
    for (i, own) in params.chunks(net.each()).enumerate() {
        let wide = if i < 1 + bidirectional as usize { data[1] } else { shown * (1 + bidirectional as i64) };
        let mut want: SmallVec<[Dims<i64>; 5]> = smallvec![smallvec![gates, wide], smallvec![gates, shown]];
        if net.biases {
            want.extend([smallvec![gates], smallvec![gates]]);
        }
        if net.projected {
            want.push(smallvec![shown, inner]);
        }
        let have: SmallVec<[Dims<i64>; 5]> = own.iter().map(|p| sizes(p)).collect();
        ensure!(have == want, "RNN parameters of sizes {have:?}, expected {want:?}");
    }
    let out = smallvec![data[0], shown * (1 + bidirectional as i64)];
    Ok((net, out))
}

fn states<'a, V, S>(a: &Args<'a, V, S>, cell: RnnKind) -> Result<Operands<&'a V>> {
    if cell == RnnKind::Lstm { a.tensors(2) } else { Ok(std::iter::once(a.tensor(2)?).collect()) }
}

fn infer(a: &Args<'_, Meta>, cell: RnnKind) -> Metas {
    let x = a.tensor(0)?;
    let (_, out) = network(a, cell, |m| m.sizes().into())?;
    ensure!(x.dtype.is_float(), "packed RNNs are not implemented for '{}'", name(x.dtype));
    let steps = a.tensor(1)?;
    ensure!(steps.dtype == DType::I64 && steps.rank() == 1, "batch_sizes must be a 1-d tensor of int64");
    let states = states(a, cell)?;
    let all = states.iter().copied().chain(a.tensors(3)?);
    for t in all {
        ensure!(
            t.dtype == x.dtype,
            "packed RNNs need operands of one type, got {} and {}",
            name(x.dtype),
            name(t.dtype)
        );
    }
    let mut metas: SmallVec<[Meta; 1]> = SmallVec::new();
    metas.push(fresh(x.dtype, &out));
    metas.extend(states.into_iter().map(|s| fresh(s.dtype, s.sizes())));
    Ok(metas)
}

fn run(c: &Call<'_>, cell: RnnKind) -> Result<()> {
    let a = &c.args;
    let (net, _) = network(a, cell, |v| v.sizes().into())?;
    let steps = restride_kernels::support::convert::gather::<i64>(*a.tensor(1)?);
    ran(net.packed(a.tensor(0)?, &steps, &states(a, cell)?, &a.tensors(3)?, c.outs))
}

fn scratch(a: &Args<'_, Meta>, cell: RnnKind) -> Result<usize> {
    let (net, _) = network(a, cell, |m| m.sizes().into())?;
    let states: Vec<_> = states(a, cell)?.into_iter().map(stored).collect();
    let params: Vec<_> = a.tensors(3)?.into_iter().map(stored).collect();
    let steps = a.tensor(1)?.layout.numel();
    Ok(room::<i64>(steps as usize) + net.room(stored(a.tensor(0)?), steps, &states, &params))
}

macro_rules! packed {
    ($cell:expr, $schema:expr) => {
        close($schema, |a| infer(a, $cell), |c| run(c, $cell), |a, _| scratch(a, $cell), samples!(|| samples($cell)))
            .failing()
    };
}

pub(crate) static OPS: &[OpDef] = table![
    packed!(RnnKind::Lstm, "lstm.data"),
    packed!(RnnKind::Gru, "gru.data"),
    packed!(RnnKind::Tanh, "rnn_tanh.data"),
    packed!(RnnKind::Relu, "rnn_relu.data"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    pub(crate) fn samples(cell: RnnKind) -> Samples {
        let d = DType::F32;
        let g = cell.gates() as i64;
        let call = |d: DType, layers: i64, biases: bool, both: bool, projected: bool| -> Sample {
            let sides = 1 + both as i64;
            let (i, h) = (3, 5);
            let p = if projected { 2 } else { h };
            let hidden = tensor(d, &[layers * sides, 3, p], 2);
            let hx: SampleArg = match cell {
                RnnKind::Lstm => Arg::Values(vec![Some(hidden), Some(tensor(d, &[layers * sides, 3, h], 3))]),
                _ => Arg::Value(hidden),
            };
            let mut params = Vec::new();
            for at in 0..layers * sides {
                let seed = 10 * at as u64;
                let wide = if at < sides { i } else { sides * p };
                params.push(tensor(d, &[g * h, wide], seed + 1));
                params.push(tensor(d, &[g * h, p], seed + 2));
                if biases {
                    params.extend([tensor(d, &[g * h], seed + 3), tensor(d, &[g * h], seed + 4)]);
                }
                if projected {
                    params.push(tensor(d, &[p, h], seed + 5));
                }
            }
            sample![tensor(d, &[7, i], 1), ints(&[3, 2, 1, 1], &[4]), hx, params, biases, layers, 0.0, false, both]
        };
        let mut out = vec![
            call(d, 1, true, false, false),
            call(d, 2, false, true, false),
            call(DType::F64, 2, true, true, false),
        ];
        if cell == RnnKind::Lstm {
            out.push(call(d, 2, true, true, true));
        }
        let mut wrong = call(d, 1, true, false, false);
        wrong.args[4] = false.arg();
        if cell != RnnKind::Lstm {
            out.push(wrong);
        }
        out
    }
}

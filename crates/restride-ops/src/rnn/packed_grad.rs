//! Gradients of recurrent networks over packed sequences: composed step by step on full batches.
//!
//! Only the run knows the batch size of each step. So every sequence takes every step, and finished sequences keep their
//! state.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, form, op};
use restride_ir::{DType, Dim, Expr};
use restride_kernels::rnn::RnnKind;

/// The cell operator that computes one step.
fn step(cell: RnnKind) -> &'static str {
    match cell {
        RnnKind::Lstm => "aten.lstm_cell.default",
        RnnKind::Gru => "aten.gru_cell.default",
        RnnKind::Tanh => "aten.rnn_tanh_cell.default",
        RnnKind::Relu => "aten.rnn_relu_cell.default",
    }
}

/// Maps between packed rows and batches of one size.
struct Batches<'c> {
    steps: i64,
    width: Expr,
    /// The packed row of each step and sequence; the first row if it has none.
    rows: T<'c>,
    /// Whether the row exists: steps × sequences × 1.
    live: T<'c>,
    /// The flat index of step and sequence for each packed row.
    places: T<'c>,
}

impl<'c> Batches<'c> {
    fn new(c: &'c Cx<'c>, steps: i64, width: Expr) -> Batches<'c> {
        let counts = c.arg(1).to(DType::I64);
        let ends = op!(c, "aten.cumsum.default", counts, 0);
        let starts = ends - counts;
        let lane = op!(c, "aten.arange.default", &width);
        let live = lane.than("lt", counts.unsqueeze(1));
        let rows = (starts.unsqueeze(1) + lane).only(live);
        let row = op!(c, "aten.arange.default", c.arg(0).size(0));
        let at = op!(c, "aten.searchsorted.Tensor", ends, row, false, true);
        let first = op!(c, "aten.index_select.default", starts, 0, at);
        let places = at.times(&width) + (row - first);
        let all = Expr::Int(steps).times(&width);
        Batches { steps, width, rows: rows.reshape(vec![all]), live: live.unsqueeze(-1), places }
    }

    /// Unpacks rows to steps × sequences × features.
    fn spread(&self, x: T<'c>) -> T<'c> {
        let sizes = vec![Expr::Int(self.steps), self.width.clone(), x.size(-1)];
        op!(x.cx(), "aten.index_select.default", x, 0, self.rows).reshape(sizes)
    }

    /// Packs steps × sequences × features to rows.
    fn packed(&self, x: T<'c>) -> T<'c> {
        let sizes = vec![Expr::Int(self.steps).times(&self.width), x.size(-1)];
        op!(x.cx(), "aten.index_select.default", x.reshape(sizes), 0, self.places)
    }
}

/// `(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`. Type inference has already
/// refused dropout.
fn packed<'c>(c: &'c Cx<'c>, cell: RnnKind) -> Vec<T<'c>> {
    let states = c.list(2);
    let Some(steps) = c.arg(1).size(0).constant() else {
        c.fail(
            "the gradient of a network over packed sequences of unknown length: export it with a fixed number of steps, or with \
             padded sequences",
        );
        return Vec::new();
    };
    let batches = Batches::new(c, steps.as_i64(), states[0].size(1));
    let (biases, layers, directions) = (c.flag(4), c.int(5), 1 + c.int(8));
    let params = c.list(3);
    let each = params.len() / ((layers * directions).max(1) as usize).max(1);
    let mut x = batches.spread(c.arg(0));
    let mut last: Vec<Vec<T<'c>>> = vec![Vec::new(); states.len()];
    for layer in 0..layers {
        let mut sides = Vec::new();
        for side in 0..directions {
            let at = layer * directions + side;
            let own = &params[at as usize * each..][..each];
            let (inner, outer) = if biases { (Some(own[2]), Some(own[3])) } else { (None, None) };
            let projection = (each > 2 + 2 * usize::from(biases)).then(|| own[each - 1]);
            let mut state: Vec<T<'c>> = states.iter().map(|s| s.select(0, at)).collect();
            let mut shown = Vec::new();
            for i in 0..batches.steps {
                let t = if side == 1 { batches.steps - 1 - i } else { i };
                let before = if cell == RnnKind::Lstm { state.clone().operand() } else { state[0].operand() };
                let args = [
                    x.select(0, t).operand(),
                    before,
                    own[0].operand(),
                    own[1].operand(),
                    inner.operand(),
                    outer.operand(),
                ];
                let mut new = c.calls(step(cell), &args);
                if new.len() != state.len() {
                    return Vec::new();
                }
                if let Some(w) = projection {
                    new[0] = op!(c, "aten.linear.default", new[0], w);
                }
                shown.push(new[0]);
                let live = batches.live.select(0, t);
                for (old, new) in state.iter_mut().zip(new) {
                    *old = op!(c, "aten.where.self", live, new, *old);
                }
            }
            if side == 1 {
                shown.reverse();
            }
            sides.push(op!(c, "aten.stack.default", shown, 0));
            last.iter_mut().zip(state).for_each(|(all, s)| all.push(s));
        }
        x = if sides.len() == 1 { sides[0] } else { c.cat(&sides, -1) };
    }
    let ends = last.into_iter().map(|all| op!(c, "aten.stack.default", all, 0));
    std::iter::once(batches.packed(x)).chain(ends).collect()
}

pub(crate) static GRADS: Rules = &[
    (&["lstm.data"], form!(|c| packed(c, RnnKind::Lstm))),
    (&["gru.data"], form!(|c| packed(c, RnnKind::Gru))),
    (&["rnn_tanh.data"], form!(|c| packed(c, RnnKind::Tanh))),
    (&["rnn_relu.data"], form!(|c| packed(c, RnnKind::Relu))),
];

//! Recurrent networks over packed sequences: the batch shrinks as sequences end, which only the data says.

use crate::norm::softmax::sum;
use crate::support::number::Real;
use crate::support::pack::{
    Packed, Stored, compute_room, pack, pack_owned, pack_to, packed_rooms, unpack, with_compute,
};
use crate::support::scratch::{Temp, room};
use restride_tensor::{View, ViewMut};
use smallvec::SmallVec;

/// Which cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RnnKind {
    /// Long short-term memory: gates in, forget, cell, out.
    Lstm,
    /// Gated recurrent unit: gates reset, update, new.
    Gru,
    /// A layer with `tanh`.
    Tanh,
    /// A layer with `relu`.
    Relu,
}

impl RnnKind {
    /// How many times as wide as the hidden state the gates are.
    pub fn gates(self) -> usize {
        match self {
            RnnKind::Lstm => 4,
            RnnKind::Gru => 3,
            RnnKind::Tanh | RnnKind::Relu => 1,
        }
    }
}

/// A network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Which cell.
    pub cell: RnnKind,
    /// Number of layers.
    pub layers: usize,
    /// Whether every layer also runs backwards.
    pub bidirectional: bool,
    /// Whether layers have biases.
    pub biases: bool,
    /// Whether hidden states are projected.
    pub projected: bool,
}

impl Network {
    /// Number of parameters of a layer in one direction.
    pub fn each(&self) -> usize {
        2 + 2 * self.biases as usize + self.projected as usize
    }

    /// Runs over `data` (all steps' rows one after the other, `batch_sizes` rows each); `outs` are the outputs and the
    /// last states. Sizes are those of a checked call; `batch_sizes` is checked here.
    pub fn packed(
        &self,
        data: &View<'_>,
        batch_sizes: &[i64],
        states: &[&View<'_>],
        params: &[&View<'_>],
        outs: &[ViewMut<'_>],
    ) -> Result<(), String> {
        let batch = states[0].sizes()[1];
        let falls = batch_sizes.windows(2).all(|w| w[0] >= w[1]) && batch_sizes.iter().all(|&n| n > 0);
        if !falls || batch_sizes.first() != Some(&batch) || batch_sizes.iter().sum::<i64>() != data.sizes()[0] {
            return Err(format!(
                "batch_sizes {batch_sizes:?} do not fit {} rows of a batch of {batch}: they must fall from the batch's size to at least 1",
                data.sizes()[0]
            ));
        }
        with_compute!(float data.dtype(), T => self.run::<T>(data, batch_sizes, states, params, outs));
        Ok(())
    }

    /// Scratch bytes of [`Network::packed`].
    pub fn room(&self, data: Stored<'_>, steps: i64, states: &[Stored<'_>], params: &[Stored<'_>]) -> usize {
        let of = |n: i64| compute_room(data.0, n);
        let (shown, inner) = (states[0].1.sizes[2], states[states.len() - 1].1.sizes[2]);
        let wide = shown * (1 + self.bidirectional as i64);
        let width = data.1.sizes[1].max(wide);
        let state: usize = states.iter().map(|s| of(s.1.numel())).sum();
        let packed = params.chunks(self.each()).map(|p| packed_rooms(p.iter().copied())).max().unwrap_or(0);
        let step = 2 * of(self.cell.gates() as i64 * inner) + of(inner) + of(width.max(inner));
        2 * of(data.1.sizes[0] * width) + state + packed + room::<usize>(steps as usize) + step
    }

    fn run<T: Real>(
        &self,
        data: &View<'_>,
        steps: &[i64],
        states: &[&View<'_>],
        params: &[&View<'_>],
        outs: &[ViewMut<'_>],
    ) {
        let rows = data.sizes()[0] as usize;
        let directions = 1 + self.bidirectional as usize;
        let wide = states[0].sizes()[2] as usize;
        // A layer's input and its output; they swap roles after each layer.
        let mut width = data.sizes()[1] as usize;
        let most = rows * width.max(wide * directions);
        let (mut x, mut next) = (Temp::filled(most, T::zero()), Temp::filled(most, T::zero()));
        pack_to(data, &mut x[..rows * width]);
        let mut last: SmallVec<[Temp<T>; 2]> = states.iter().map(|s| pack_owned::<T>(s)).collect();
        for layer in 0..self.layers {
            for d in 0..directions {
                let at = layer * directions + d;
                let own = &params[at * self.each()..][..self.each()];
                let mut packed: SmallVec<[Packed<'_, T>; 5]> = own.iter().map(|p| pack::<T>(p)).collect();
                let params: SmallVec<[&[T]; 5]> = packed.iter().map(|p| &p[..]).collect();
                let mut own: SmallVec<[&mut [T]; 2]> = last
                    .iter_mut()
                    .map(|s| {
                        let each = s.len() / (self.layers * directions);
                        &mut s[at * each..(at + 1) * each]
                    })
                    .collect();
                let mut write = |row: usize, h: &[T]| {
                    next[(row * directions + d) * wide..][..wide].copy_from_slice(h);
                };
                self.layer(&x, width, steps, &params, &mut own, d == 1, &mut write);
                // Scratch is given back from its end.
                drop(params);
                while packed.pop().is_some() {}
            }
            std::mem::swap(&mut x, &mut next);
            width = wide * directions;
        }
        unpack(&x[..rows * width], &outs[0]);
        for (s, out) in last.iter().zip(&outs[1..]) {
            unpack(s, out);
        }
    }

    /// One layer in one direction; leaves in `states` those after each sequence's last step.
    fn layer<T: Real>(
        &self,
        x: &[T],
        width: usize,
        steps: &[i64],
        params: &[&[T]],
        states: &mut [&mut [T]],
        backwards: bool,
        write: &mut impl FnMut(usize, &[T]),
    ) {
        let starts = Temp::gather(
            steps.len(),
            steps.iter().scan(0, |at, &n| {
                *at += n as usize;
                Some(*at - n as usize)
            }),
        );
        let shown = states[0].len() / steps[0] as usize;
        let inner = states[states.len() - 1].len() / steps[0] as usize;
        let gates = self.cell.gates() * inner;
        let bias = |i: usize| if self.biases { Some(params[i]) } else { None };
        let (mut input, mut hidden) = (Temp::filled(gates, T::zero()), Temp::filled(gates, T::zero()));
        let mut h = Temp::filled(inner, T::zero());
        for i in 0..steps.len() {
            let t = if backwards { steps.len() - 1 - i } else { i };
            for b in 0..steps[t] as usize {
                let row = starts[t] + b;
                linear(&mut input, params[0], &x[row * width..][..width], bias(2));
                linear(&mut hidden, params[1], &states[0][b * shown..][..shown], bias(3));
                self.cell(&input, &hidden, states, b, &mut h);
                if self.projected {
                    linear(&mut states[0][b * shown..][..shown], params[params.len() - 1], &h, None);
                } else {
                    states[0][b * shown..][..shown].copy_from_slice(&h);
                }
                write(row, &states[0][b * shown..][..shown]);
            }
        }
    }

    fn cell<T: Real>(&self, x: &[T], r: &[T], states: &mut [&mut [T]], b: usize, h: &mut [T]) {
        let n = h.len();
        let sigmoid = |x: T| T::one() / (T::one() + (-x).exp());
        for (j, h) in h.iter_mut().enumerate() {
            let gate = |g: usize| x[g * n + j] + r[g * n + j];
            *h = match self.cell {
                RnnKind::Lstm => {
                    let c = &mut states[1][b * n + j];
                    *c = sigmoid(gate(1)) * *c + sigmoid(gate(0)) * gate(2).tanh();
                    sigmoid(gate(3)) * c.tanh()
                }
                RnnKind::Gru => {
                    let new = (x[2 * n + j] + sigmoid(gate(0)) * r[2 * n + j]).tanh();
                    (states[0][b * n + j] - new) * sigmoid(gate(1)) + new
                }
                RnnKind::Tanh => gate(0).tanh(),
                RnnKind::Relu => gate(0).max(T::zero()),
            };
        }
    }
}

/// `w x + b`.
fn linear<T: Real>(out: &mut [T], w: &[T], x: &[T], b: Option<&[T]>) {
    let n = x.len();
    let mut products = Temp::filled(n, T::zero());
    for (i, o) in out.iter_mut().enumerate() {
        products.iter_mut().zip(&w[i * n..]).zip(x).for_each(|((p, &w), &x)| *p = w * x);
        let dot = sum(&products, |p| p);
        *o = b.map_or(dot, |b| dot + b[i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, Layout, RawTensor};

    #[test]
    fn sequences_that_end_keep_their_state() {
        // A layer that adds input and state: running sums.
        let net = Network { cell: RnnKind::Relu, layers: 1, bidirectional: false, biases: false, projected: false };
        let data = RawTensor::from_slice(&[1f64, 10.0, 2.0, 20.0, 3.0], &[5, 1]);
        let one = RawTensor::from_slice(&[1f64], &[1, 1]);
        let h = RawTensor::zeros(DType::F64, Layout::contiguous(&[1, 2, 1]));
        let zeros = |sizes: &[i64]| RawTensor::zeros(DType::F64, Layout::contiguous(sizes));
        let (out, last) = (zeros(&[5, 1]), zeros(&[1, 2, 1]));
        let (data, one, h) = (data.read(), one.read(), h.read());
        let (v, w, s) = (data.view(), one.view(), h.view());
        let mut to = [&out, &last].map(RawTensor::write);
        let outs = to.each_mut().map(|w| w.view_mut());
        net.packed(&v, &[2, 2, 1], &[&s], &[&w, &w], &outs).unwrap();
        assert!(net.packed(&v, &[1, 2, 2], &[&s], &[&w, &w], &outs).is_err());
        assert!(net.packed(&v, &[2, 2], &[&s], &[&w, &w], &outs).is_err());
        drop(to);
        assert_eq!(out.to_elements::<f64>(), [1.0, 10.0, 3.0, 30.0, 6.0]);
        assert_eq!(last.to_elements::<f64>(), [6.0, 30.0]);
    }
}

//! Gradients of convolutions: the same products, and windows as columns.

use crate::conv::window::{Window, columns};
use crate::conv::{Number, Shape, TILE, batch, channels_at_once, row_major, scatter};
use crate::support::pack::{Stored, Target, compute_room, pack, packed_room, packed_rooms, with_compute};
use crate::support::scratch::Temp;
use restride_tensor::{View, ViewMut};

/// Gradients of a convolution that are asked for.
pub struct Gradients<'a> {
    /// Of the input.
    pub input: Option<&'a ViewMut<'a>>,
    /// Of the weight.
    pub weight: Option<&'a ViewMut<'a>>,
    /// Of the bias.
    pub bias: Option<&'a ViewMut<'a>>,
}

/// Gradients of [`conv`](super::conv) (or of [`conv_transposed`](super::conv_transposed), with its window) from the result's.
pub fn conv_backward(
    grad: &View<'_>,
    x: &View<'_>,
    weight: &View<'_>,
    w: &Window,
    transposed: bool,
    groups: usize,
    out: &Gradients<'_>,
    threads: usize,
) -> Result<(), String> {
    let (a, b) = (weight.sizes()[0] as usize, weight.sizes()[1] as usize);
    // Of the convolution that has this weight: its outputs are the transposed one's inputs.
    let s = Shape { batch: batch(x, weight), groups, cin: b, cout: a / groups, w: *w };
    let (wide, narrow) = if transposed { (grad, x) } else { (x, grad) };
    s.holds(wide.numel(), weight.numel(), narrow.numel())?;
    let of_size = |out: Option<&ViewMut<'_>>, n: usize| out.is_none_or(|out| out.numel() == n);
    if !of_size(out.input, x.numel()) || !of_size(out.weight, weight.numel()) {
        return Err("gradients have the sizes of what they are of".into());
    }
    with_compute!(any grad.dtype(), T => {
        let (g, x, weight) = (pack::<T>(grad), pack::<T>(x), pack::<T>(weight));
        if let Some(out) = &out.bias {
            let plane = if transposed { w.volume() } else { w.windows() };
            let mut target = Target::<T>::new(out);
            let sums = target.slice();
            sums.fill(T::default());
            let channels = sums.len();
            for (i, p) in g.chunks(plane.max(1)).enumerate() {
                sums[i % channels] += pairwise(p);
            }
            target.finish();
        }
        if let Some(out) = &out.input {
            let mut target = Target::<T>::new(out);
            let y = target.slice();
            if y.is_empty() {
            } else if transposed {
                row_major(&g, &weight, &s, y, threads);
            } else {
                scatter(&g, &weight, &Shape { cin: s.cout, cout: s.cin, ..s }, y, threads);
            }
            target.finish();
        }
        if let Some(out) = &out.weight {
            let mut target = Target::<T>::new(out);
            // The wide side has the window's input sizes, the narrow side its output sizes.
            let (wide, narrow) = if transposed { (&g, &x) } else { (&x, &g) };
            weight_gradient(wide, narrow, &s, target.slice(), threads);
            target.finish();
        }
    });
    Ok(())
}

/// Rows of columns for all windows that are made at a time.
fn rows_at_once(w: &Window, rows: usize) -> usize {
    (TILE / w.windows().max(1)).clamp(16, rows.max(16))
}

/// `grad[cout × (cin taps)] = Σ narrow[cout × windows] · columns(wide)ᵀ` over samples, for each group.
fn weight_gradient<T: Number>(wide: &[T], narrow: &[T], s: &Shape, y: &mut [T], threads: usize) {
    let (w, n) = (&s.w, s.w.windows());
    let k = s.cin * w.taps();
    y.fill(T::default());
    let many = rows_at_once(w, k);
    let mut cols = Temp::filled(many * n, T::default());
    let vector = s.cout == 1 || k == 1;
    for sample in 0..s.batch {
        for group in 0..s.groups {
            let image = sample * s.groups + group;
            let src = &wide[image * s.cin * w.volume()..][..s.cin * w.volume()];
            let a = &narrow[image * s.cout * n..][..s.cout * n];
            for first in (0..k).step_by(many) {
                let rows = many.min(k - first);
                columns(src, first..first + rows, w, 0, n, n, &mut cols);
                let c = &mut y[group * s.cout * k..][..s.cout * k][first..];
                let c = (c.as_mut_ptr(), k as isize, 1);
                let b = (cols.as_ptr(), 1, n as isize);
                // SAFETY: `a` is cout × n, `b` is n × rows, and `c` is a stretch of the columns of cout rows of `k`.
                unsafe { T::product((s.cout, rows, n), vector, (a.as_ptr(), n as isize, 1), b, c, true, threads) }
            }
        }
    }
}

/// Scratch bytes of [`conv_backward`] for the gradients asked for.
pub fn conv_backward_room(
    operands: [Stored<'_>; 3],
    w: &Window,
    transposed: bool,
    input: Option<Stored<'_>>,
    weight: Option<Stored<'_>>,
    bias: Option<Stored<'_>>,
) -> usize {
    let channels = operands[2].1.sizes[1] as usize;
    let columns = |n: usize| compute_room(operands[0].0, n as i64);
    let of_input = |out| {
        let made = if transposed { 0 } else { channels_at_once(w, channels) * w.taps() * w.windows() };
        packed_room(out) + columns(made)
    };
    let of_weight = |out| packed_room(out) + columns(rows_at_once(w, channels * w.taps()) * w.windows());
    let most = input.map_or(0, of_input).max(weight.map_or(0, of_weight)).max(bias.map_or(0, packed_room));
    packed_rooms(operands) + most
}

/// A sum in halves: the error grows with the logarithm of the length.
fn pairwise<T: Number>(x: &[T]) -> T {
    if x.len() <= 32 {
        return x.iter().fold(T::default(), |a, &b| a + b);
    }
    let (a, b) = x.split_at(x.len() / 2);
    pairwise(a) + pairwise(b)
}

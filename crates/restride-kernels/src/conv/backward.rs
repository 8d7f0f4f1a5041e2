//! Gradients of convolutions: of the input by transposed convolutions, of the weight by products with windows that are made panel by
//! panel.

use crate::conv::columns::{SampleRows, WindowTerms};
use crate::conv::depthwise_backward::DepthwiseGradient;
use crate::conv::frame::Planes;
use crate::conv::window::Window;
use crate::conv::{
    Number, Shape, batch, conv_room, conv_transposed_room, forward, is_plane, operand, operand_room, planes, transpose,
};
use crate::matmul::blocked::DEPTH;
use crate::matmul::panels::Strided;
use crate::reduce::{Reduction, reduce, reduce_room};
use crate::support::pack::{Packed, Stored, Target, pack, packed_room, with_compute};
use restride_tensor::{DType, Layout, PerDim, View, ViewMut};

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
    if let Some(out) = &out.bias {
        let reduced: PerDim<bool> = (0..grad.sizes().len()).map(|d| d != batched(x, weight) as usize).collect();
        if out.numel() != grad.sizes()[batched(x, weight) as usize] as usize {
            return Err("a convolution's bias has a number for each channel".into());
        }
        reduce(grad, &reduced, Reduction::Sum, grad.dtype(), out, threads)?;
    }
    with_compute!(any grad.dtype(), T => {
        if let Some(out) = &out.input
            && out.numel() > 0
        {
            if transposed {
                forward::<T>(grad, weight, false, None, &s, out, threads)?;
            } else {
                transpose::<T>(grad, weight, None, &Shape { cin: s.cout, cout: s.cin, ..s }, out, threads)?;
            }
        }
        if let Some(out) = &out.weight {
            // The wide side has the window's input sizes, the narrow side its output sizes.
            let (wide, narrow) = if transposed { (grad, x) } else { (x, grad) };
            weight_gradient::<T>(wide, narrow, &s, batched(x, weight), out, threads)?;
        }
    });
    Ok(())
}

/// Whether operands have a dimension of samples.
fn batched(x: &View<'_>, weight: &View<'_>) -> bool {
    x.sizes().len() == weight.sizes().len()
}

/// `grad[cout × (cin taps)] = Σ narrow[cout × windows] · windows(wide)[windows × (cin taps)]` over samples, for each group.
fn weight_gradient<T: Number>(
    wide: &View<'_>,
    narrow: &View<'_>,
    s: &Shape,
    batched: bool,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let w = &s.w;
    if !is_plane(wide.sizes(), batched, &w.input, s.groups * s.cin)
        || !is_plane(narrow.sizes(), batched, &w.output, s.groups * s.cout)
    {
        return Err("planes do not have the sizes of the windows".into());
    }
    let (n, k) = (w.windows(), s.cin * w.taps());
    let mut target = Target::<T>::new(out);
    let y = target.slice();
    if s.batch == 0 || n == 0 {
        y.fill(T::default());
        target.finish();
        return Ok(());
    }
    let wide = operand::<T>(wide);
    if s.cin == 1 && T::DTYPE == DType::F32 {
        let narrow = operand::<T>(narrow);
        let cast = |(planes, sample): (Planes<*const T>, isize)| (planes.cast(), sample);
        let of = DepthwiseGradient {
            w,
            batch: s.batch,
            channels: s.groups,
            each: s.cout,
            wide: cast(planes(wide.1, &wide.2, batched)),
            narrow: cast(planes(narrow.1, &narrow.2, batched)),
            y: y.as_mut_ptr().cast(),
        };
        // SAFETY: the sizes are those of a convolution; the result meets no operand.
        if unsafe { of.run(threads) } {
            target.finish();
            return Ok(());
        }
    }
    // Windows of the narrow side have one distance, where it is or in order.
    let narrow = if is_line(narrow.layout(), w, batched) { operand::<T>(narrow) } else { ordered::<T>(narrow) };
    let (x, x_sample) = planes(wide.1, &wide.2, batched);
    let (g, g_sample) = planes(narrow.1, &narrow.2, batched);
    let line = g.line(w.output).expect("windows have one distance");
    // Samples of a few windows are terms of one sum: the result, which may be large, is passed over once for each block of terms.
    let (each, parts) = if n < DEPTH { (s.batch, 1) } else { (1, s.batch) };
    for (part, group) in (0..parts).flat_map(|n| (0..s.groups).map(move |g| (n, g))) {
        let (from, to) = ((group * s.cin) as isize, (group * s.cout) as isize);
        let c = (y[group * s.cout * k..][..s.cout * k].as_mut_ptr(), k as isize, 1);
        // SAFETY: the sizes are those of a convolution; the result meets no operand.
        unsafe {
            let base = x.base.offset(part as isize * x_sample + from * x.channel);
            let right = WindowTerms::new(Planes { base, ..x }, x_sample, w, s.cin);
            let left = g.base.offset(part as isize * g_sample + to * g.channel);
            let (size, add) = ((s.cout, k, each * n), part > 0);
            if each == 1 || g_sample == n as isize * line {
                T::product_of(size, &Strided::new((left, g.channel, line)), &right, c, add, threads);
            } else {
                let left = SampleRows::new(left, g.channel, (line, n), g_sample);
                T::product_of(size, &left, &right, c, add, threads);
            }
        }
    }
    target.finish();
    Ok(())
}

/// Whether windows of a tensor have one distance.
fn is_line(layout: &Layout, w: &Window, batched: bool) -> bool {
    planes((), layout, batched).0.line(w.output).is_some()
}

/// An operand in order, as [`operand`].
fn ordered<'a, T: Number>(x: &View<'a>) -> (Option<Packed<'a, T>>, *const T, Layout) {
    let packed = pack::<T>(x);
    let at = packed.as_ptr();
    (Some(packed), at, Layout::contiguous(x.sizes()))
}

/// Scratch bytes of [`conv_backward`] for the gradients asked for: of gradient, input and weight.
pub fn conv_backward_room(
    [grad, x, weight]: [Stored<'_>; 3],
    w: &Window,
    transposed: bool,
    input: Option<Stored<'_>>,
    weight_grad: Option<Stored<'_>>,
    bias: Option<Stored<'_>>,
) -> usize {
    let batched = x.1.rank() == weight.1.rank();
    let of_input = |out| match transposed {
        true => conv_room(grad, weight, None, w, out),
        false => conv_transposed_room(grad, weight, None, w, out),
    };
    let of_weight = |out| {
        let (wide, narrow) = if transposed { (grad, x) } else { (x, grad) };
        let narrow = if is_line(narrow.1, w, batched) { operand_room(narrow) } else { packed_room(narrow) };
        packed_room(out) + operand_room(wide) + narrow
    };
    let of_bias = |out| {
        let reduced: PerDim<bool> = (0..grad.1.rank()).map(|d| d != batched as usize).collect();
        reduce_room(grad, &reduced, Reduction::Sum, grad.0, out)
    };
    input.map_or(0, of_input).max(weight_grad.map_or(0, of_weight)).max(bias.map_or(0, of_bias))
}

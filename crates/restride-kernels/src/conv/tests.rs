//! Convolutions against their definition, in all layouts.

use super::*;
use crate::support::isa::tests::on_each;
use restride_tensor::{DType, Layout, RawTensor};

fn numbers(n: usize, seed: i64) -> Vec<f64> {
    (0..n as i64).map(|i| ((i * 7919 + seed * 104729) % 31 - 15) as f64).collect()
}

/// The definition, one product at a time.
fn naive(x: &[f64], wt: &[f64], s: &Shape) -> Vec<f64> {
    let (w, n) = (&s.w, s.w.windows());
    let mut y = vec![0.0; s.batch * s.groups * s.cout * n];
    for b in 0..s.batch {
        for o in 0..s.groups * s.cout {
            for i in 0..n {
                let at = [i / (w.output[1] * w.output[2]), i / w.output[2] % w.output[1], i % w.output[2]];
                for c in 0..s.cin {
                    let channel = (b * s.groups + o / s.cout) * s.cin + c;
                    w.each_tap(|t, k| {
                        let p: Option<Vec<usize>> = (0..3).map(|d| w.at(d, at[d], k[d])).collect();
                        if let Some(p) = p {
                            let cell = (p[0] * w.input[1] + p[1]) * w.input[2] + p[2];
                            y[(b * s.groups * s.cout + o) * n + i] +=
                                x[channel * w.volume() + cell] * wt[(o * s.cin + c) * w.taps() + t];
                        }
                    });
                }
            }
        }
    }
    y
}

fn shapes() -> Vec<Shape> {
    let w2 = Window::new(&[9, 11], &[3, 3], &[5, 6], &[2, 2], &[1, 1], &[1, 1]);
    let w3 = Window::new(&[4, 5, 6], &[2, 3, 2], &[5, 3, 4], &[1, 1, 1], &[1, 0, 0], &[1, 1, 2]);
    let w1 = Window::new(&[7], &[1], &[7], &[1], &[0], &[1]);
    vec![
        Shape { batch: 2, groups: 1, cin: 3, cout: 4, w: w2 },
        Shape { batch: 1, groups: 2, cin: 3, cout: 2, w: w3 },
        Shape { batch: 2, groups: 3, cin: 1, cout: 2, w: w2 },
        Shape { batch: 3, groups: 1, cin: 4, cout: 5, w: w1 },
        Shape { batch: 1, groups: 1, cin: 1, cout: 1, w: w3 },
    ]
}

#[test]
fn convolutions_are_their_definition() {
    for s in shapes() {
        let x = numbers(s.batch * s.groups * s.cin * s.w.volume(), 1);
        let wt = numbers(s.groups * s.cout * s.cin * s.w.taps(), 2);
        let want = naive(&x, &wt, &s);
        let [sx, sw, sy] = s.sizes();
        let tx = RawTensor::from_slice(&x, &sx);
        let tw = RawTensor::from_slice(&wt, &sw);
        for threads in [1, 3] {
            let out = RawTensor::zeros(DType::F64, Layout::contiguous(&sy));
            conv(&tx.read().view(), &tw.read().view(), None, &s.w, s.groups, &out.write().view_mut(), threads).unwrap();
            assert_eq!(out.to_elements::<f64>(), want);
            if let Some(filter) = packed(&tw, &s) {
                let out = RawTensor::zeros(DType::F64, Layout::contiguous(&sy));
                let (x, filter, channels) = (tx.read(), filter.read(), (s.groups, s.groups * s.cout));
                conv_packed(&x.view(), &filter.view(), None, &s.w, channels, &out.write().view_mut(), threads).unwrap();
                assert_eq!(out.to_elements::<f64>(), want);
            }
        }
        // The transposed convolution and the gradients are transposes of the same linear map.
        let g = numbers(want.len(), 3);
        let tg = RawTensor::from_slice(&g, &sy);
        let back = RawTensor::zeros(DType::F64, Layout::contiguous(&sx));
        conv_transposed(&tg.read().view(), &tw.read().view(), None, &s.w, s.groups, &back.write().view_mut(), 2)
            .unwrap();
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        assert_eq!(dot(&want, &g), dot(&x, &back.to_elements::<f64>()));
        let gx = RawTensor::zeros(DType::F64, back.layout().clone());
        let gw = RawTensor::zeros(DType::F64, tw.layout().clone());
        let (mut input, mut weight) = (gx.write(), gw.write());
        let grads = Gradients { input: Some(&input.view_mut()), weight: Some(&weight.view_mut()), bias: None };
        conv_backward(&tg.read().view(), &tx.read().view(), &tw.read().view(), &s.w, false, s.groups, &grads, 2)
            .unwrap();
        drop((input, weight));
        assert_eq!(gx.to_elements::<f64>(), back.to_elements::<f64>());
        assert_eq!(dot(&gw.to_elements::<f64>(), &wt), dot(&want, &g));
    }
}

#[test]
fn bits_do_not_depend_on_strides_or_threads() {
    let s = Shape {
        batch: 2,
        groups: 1,
        cin: 16,
        cout: 24,
        w: Window::new(&[20, 20], &[3, 3], &[20, 20], &[1, 1], &[1, 1], &[1, 1]),
    };
    let x: Vec<f32> = numbers(2 * 16 * 400, 5).iter().map(|v| (v * 0.37) as f32).collect();
    let wt: Vec<f32> = numbers(24 * 16 * 9, 6).iter().map(|v| (v * 0.11) as f32).collect();
    let tw = RawTensor::from_slice(&wt, &[24, 16, 3, 3]);
    let mut want: Option<Vec<u32>> = None;
    for perm in [[0, 1, 2, 3], [0, 2, 3, 1], [3, 2, 1, 0]] {
        let tx = RawTensor::zeros(DType::F32, Layout::permuted(&[2, 16, 20, 20], &perm));
        crate::support::pack::unpack(&x, &tx.write().view_mut());
        for threads in [1, 2, 4] {
            let out = RawTensor::zeros(DType::F32, Layout::permuted(&[2, 24, 20, 20], &perm));
            conv(&tx.read().view(), &tw.read().view(), None, &s.w, 1, &out.write().view_mut(), threads).unwrap();
            let got: Vec<u32> = out.to_elements::<f32>().into_iter().map(f32::to_bits).collect();
            assert!(want.get_or_insert(got.clone()) == &got, "{perm:?} {threads}");
        }
    }
}

/// Elements that have many digits.
fn fractions(n: usize, seed: u64) -> Vec<f64> {
    (0..n as u64)
        .map(|i| ((i + seed).wrapping_mul(2654435761) % 1999) as f64 / 1000.0 - 1.0)
        .map(|v| v as f32 as f64)
        .collect()
}

/// Of type `f32`, in an order of its dimensions.
fn laid(data: &[f64], sizes: &[i64], order: &[usize]) -> RawTensor {
    let t = RawTensor::zeros(DType::F32, Layout::permuted(sizes, order));
    let data: Vec<f32> = data.iter().map(|&v| v as f32).collect();
    crate::support::pack::unpack(&data, &t.write().view_mut());
    t
}

/// A filter in panels, if it is worth that.
fn packed(weight: &RawTensor, s: &Shape) -> Option<RawTensor> {
    let mut sizes = weight.layout().sizes.to_vec();
    let by_taps = filter_order(weight.dtype(), &sizes, &s.w, s.groups)?;
    sizes[0] = (s.groups * filled_channels(weight.dtype(), s.cout)) as i64;
    let out = RawTensor::zeros(weight.dtype(), Layout::contiguous(&sizes));
    pack_filter(&weight.read().view(), s.groups, by_taps, &out.write().view_mut()).unwrap();
    Some(out)
}

/// Kernel, stride, padding, dilation and input; groups, input and output channels of a group; samples.
type Drawn = ([[usize; 3]; 5], [usize; 3], usize);

/// Convolutions whose planes, channels and windows end inside of vectors and tiles, and at their edges.
const DRAWN: &[Drawn] = &[
    ([[1, 3, 3], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 14, 14]], [40, 1, 1], 2),
    ([[1, 5, 5], [1, 2, 2], [0, 2, 2], [1, 1, 1], [1, 13, 18]], [83, 1, 1], 1),
    ([[1, 3, 5], [1, 1, 2], [0, 2, 3], [1, 2, 1], [1, 9, 70]], [5, 1, 3], 2),
    ([[1, 7, 7], [1, 1, 1], [0, 3, 3], [1, 1, 1], [1, 7, 7]], [16, 1, 1], 1),
    ([[1, 3, 3], [1, 3, 2], [0, 0, 0], [1, 1, 2], [1, 10, 200]], [3, 1, 1], 1),
    ([[2, 3, 2], [1, 2, 1], [1, 0, 1], [2, 1, 3], [4, 6, 9]], [20, 1, 1], 2),
    ([[1, 1, 9], [1, 1, 1], [0, 0, 8], [1, 1, 2], [1, 1, 9000]], [2, 1, 1], 1),
    ([[1, 3, 3], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 120, 110]], [3, 1, 1], 1),
    ([[1, 1, 1], [1, 2, 2], [0, 0, 0], [1, 1, 1], [1, 15, 15]], [33, 1, 1], 1),
    // Small planes: windows of one and two rows, boxes of rows.
    ([[1, 5, 5], [1, 1, 1], [0, 2, 2], [1, 1, 1], [1, 14, 14]], [37, 1, 1], 1),
    ([[1, 5, 5], [1, 2, 2], [0, 2, 2], [1, 1, 1], [1, 14, 13]], [72, 1, 1], 2),
    ([[1, 5, 5], [1, 1, 1], [0, 2, 2], [1, 1, 1], [1, 7, 7]], [24, 1, 1], 3),
    ([[1, 3, 3], [1, 1, 3], [0, 4, 2], [1, 2, 3], [1, 200, 5]], [19, 1, 1], 1),
    ([[1, 3, 9], [1, 1, 1], [0, 1, 4], [1, 1, 1], [1, 3, 10]], [8, 1, 1], 2),
    // Dense ones: few windows, and many.
    ([[1, 3, 3], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 5, 7]], [1, 35, 44], 2),
    ([[1, 3, 3], [1, 2, 2], [0, 1, 1], [1, 1, 1], [1, 31, 33]], [2, 17, 20], 1),
    ([[1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1], [1, 40, 31]], [1, 37, 50], 2),
    ([[1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1], [1, 20, 31]], [2, 37, 50], 2),
    ([[1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1], [1, 3, 3]], [1, 300, 45], 1),
    ([[1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1], [1, 1, 1]], [1, 70, 50], 2),
    ([[1, 1, 1], [1, 2, 2], [0, 0, 0], [1, 1, 1], [1, 9, 9]], [3, 20, 1], 1),
    ([[2, 3, 2], [1, 2, 1], [1, 0, 1], [2, 1, 3], [4, 9, 12]], [2, 5, 3], 2),
    ([[1, 1, 5], [1, 1, 3], [0, 0, 4], [1, 1, 2], [1, 1, 2000]], [1, 6, 40], 1),
    ([[1, 7, 7], [1, 2, 2], [0, 3, 3], [1, 1, 1], [1, 40, 40]], [1, 3, 16], 1),
    ([[1, 4, 4], [1, 1, 1], [0, 0, 0], [1, 1, 1], [1, 4, 4]], [1, 9, 30], 1),
    // Few input channels, and result channels for vectors.
    ([[1, 3, 3], [1, 2, 2], [0, 1, 1], [1, 1, 1], [1, 29, 35]], [1, 3, 16], 2),
    ([[1, 3, 3], [1, 1, 1], [0, 1, 1], [1, 2, 2], [1, 12, 70]], [1, 3, 27], 1),
    ([[2, 3, 3], [1, 1, 2], [1, 1, 0], [1, 1, 1], [3, 12, 40]], [1, 2, 12], 1),
    ([[1, 3, 1], [1, 2, 1], [0, 2, 0], [1, 1, 1], [1, 64, 5]], [2, 3, 9], 2),
    ([[1, 1, 1], [1, 2, 2], [0, 0, 0], [1, 1, 1], [1, 40, 25]], [1, 7, 40], 1),
    ([[1, 7, 7], [1, 1, 1], [0, 3, 2], [1, 1, 1], [1, 30, 40]], [1, 10, 24], 1),
    // A few windows of each of several samples.
    ([[1, 3, 3], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 4, 4]], [1, 40, 44], 5),
    ([[1, 3, 3], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 2, 2]], [2, 33, 40], 7),
    ([[1, 3, 3], [1, 2, 2], [0, 1, 1], [1, 1, 1], [1, 5, 4]], [1, 30, 70], 9),
    ([[2, 3, 2], [1, 2, 1], [1, 0, 1], [1, 1, 1], [2, 5, 3]], [1, 6, 20], 4),
    ([[1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1], [1, 3, 3]], [1, 300, 45], 6),
    ([[1, 1, 1], [1, 2, 2], [0, 0, 0], [1, 1, 1], [1, 5, 6]], [2, 20, 17], 4),
    ([[1, 3, 3], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 10, 10]], [1, 5, 6], 7),
];

impl Shape {
    fn drawn(([kernel, stride, pad, dilation, input], [groups, cin, cout], batch): Drawn) -> Shape {
        let output =
            std::array::from_fn(|d| (input[d] + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1);
        Shape { batch, groups, cin, cout, w: Window { input, kernel, output, stride, pad, dilation } }
    }
    /// Sizes of input, weight and result.
    fn sizes(&self) -> [Vec<i64>; 3] {
        let sizes = |a: usize, b: usize, c: [usize; 3]| [a, b, c[0], c[1], c[2]].map(|n| n as i64).to_vec();
        let (w, g) = (&self.w, self.groups);
        [
            sizes(self.batch, g * self.cin, w.input),
            sizes(g * self.cout, self.cin, w.kernel),
            sizes(self.batch, g * self.cout, w.output),
        ]
    }
}

const FIRST: [usize; 5] = [0, 1, 2, 3, 4];
const LAST: [usize; 5] = [0, 2, 3, 4, 1];

#[test]
fn layouts_threads_and_instruction_sets_of_f32() {
    let drawn = if cfg!(miri) { &DRAWN[..1] } else { DRAWN };
    for &d in drawn {
        let s = Shape::drawn(d);
        let [sx, sw, sy] = s.sizes();
        let count = |s: &[i64]| s.iter().product::<i64>() as usize;
        let (x, wt, bias) = (fractions(count(&sx), 1), fractions(count(&sw), 2), fractions(s.groups * s.cout, 3));
        let mut want = naive(&x, &wt, &s);
        want.iter_mut().enumerate().for_each(|(i, v)| *v += bias[i / s.w.windows() % bias.len()]);
        let tb = laid(&bias, &[bias.len() as i64], &[0]);
        let each = |threads: &[usize]| {
            let mut same: Option<Vec<u32>> = None;
            for (i, (ox, ow, oy)) in [
                (FIRST, FIRST, FIRST),
                (LAST, FIRST, LAST),
                (LAST, LAST, FIRST),
                (FIRST, FIRST, LAST),
                ([4, 1, 0, 3, 2], LAST, [1, 4, 2, 3, 0]),
            ]
            .into_iter()
            .enumerate()
            {
                let (tx, tw) = (laid(&x, &sx, &ox), laid(&wt, &sw, &ow));
                for &threads in threads {
                    let out = RawTensor::zeros(DType::F32, Layout::permuted(&sy, &oy));
                    let bias = tb.read();
                    conv(
                        &tx.read().view(),
                        &tw.read().view(),
                        Some(&bias.view()),
                        &s.w,
                        s.groups,
                        &out.write().view_mut(),
                        threads,
                    )
                    .unwrap();
                    let got = out.to_elements::<f32>();
                    for (got, want) in got.iter().zip(&want) {
                        assert!((*got as f64 - want).abs() <= 1e-5 * (4.0 + want.abs()), "{got} {want} {d:?} {i}");
                    }
                    let bits: Vec<u32> = got.into_iter().map(f32::to_bits).collect();
                    assert!(same.get_or_insert(bits.clone()) == &bits, "{d:?} {i} {threads}");
                    let Some(filter) = packed(&tw, &s) else { continue };
                    let out = RawTensor::zeros(DType::F32, Layout::permuted(&sy, &oy));
                    let channels = (s.groups, s.groups * s.cout);
                    let (x, filter) = (tx.read(), filter.read());
                    conv_packed(
                        &x.view(),
                        &filter.view(),
                        Some(&bias.view()),
                        &s.w,
                        channels,
                        &out.write().view_mut(),
                        threads,
                    )
                    .unwrap();
                    let bits: Vec<u32> = out.to_elements::<f32>().into_iter().map(f32::to_bits).collect();
                    assert!(same.as_ref() == Some(&bits), "{d:?} {i} {threads}, packed");
                }
            }
        };
        if s.cin == 1 && s.groups > 1 {
            on_each(|_| each(&[1, 3]));
        } else {
            // Products on other threads use the processor's vectors, which multiply and add at once.
            each(&[1, 3]);
            on_each(|_| each(&[1]));
        }
    }
}

/// Gradients of input and weight by their definition.
fn naive_gradients(x: &[f64], wt: &[f64], g: &[f64], s: &Shape) -> (Vec<f64>, Vec<f64>) {
    let (w, n) = (&s.w, s.w.windows());
    let (mut gx, mut gw) = (vec![0.0; x.len()], vec![0.0; wt.len()]);
    for (p, &g) in g.iter().enumerate() {
        let (b, o, i) = (p / (s.groups * s.cout * n), p / n % (s.groups * s.cout), p % n);
        let at = [i / (w.output[1] * w.output[2]), i / w.output[2] % w.output[1], i % w.output[2]];
        for c in 0..s.cin {
            let channel = (b * s.groups + o / s.cout) * s.cin + c;
            w.each_tap(|t, k| {
                let cell: Option<Vec<usize>> = (0..3).map(|d| w.at(d, at[d], k[d])).collect();
                if let Some(cell) = cell {
                    let cell = channel * w.volume() + (cell[0] * w.input[1] + cell[1]) * w.input[2] + cell[2];
                    let tap = (o * s.cin + c) * w.taps() + t;
                    gx[cell] += g * wt[tap];
                    gw[tap] += g * x[cell];
                }
            });
        }
    }
    (gx, gw)
}

#[test]
fn gradients_in_all_layouts() {
    let drawn = if cfg!(miri) { &DRAWN[13..14] } else { DRAWN };
    for &d in drawn {
        let s = Shape::drawn(d);
        let [sx, sw, sy] = s.sizes();
        let count = |s: &[i64]| s.iter().product::<i64>() as usize;
        let (x, wt, g) = (fractions(count(&sx), 1), fractions(count(&sw), 2), fractions(count(&sy), 3));
        let (want_x, want_w) = naive_gradients(&x, &wt, &g, &s);
        let mut same: Option<Vec<u32>> = None;
        let orders =
            [(FIRST, FIRST, FIRST), (LAST, FIRST, LAST), (FIRST, LAST, LAST), ([4, 1, 0, 3, 2], LAST, [1, 4, 2, 3, 0])];
        for (i, (ox, ow, oy)) in orders.into_iter().enumerate() {
            let (tx, tw, tg) = (laid(&x, &sx, &ox), laid(&wt, &sw, &ow), laid(&g, &sy, &oy));
            for threads in [1, 3] {
                let zeros =
                    |sizes: &[i64], order: &[usize]| RawTensor::zeros(DType::F32, Layout::permuted(sizes, order));
                let (gx, gw, gb) = (zeros(&sx, &ox), zeros(&sw, &ow), zeros(&sy[1..2], &[0]));
                let (mut input, mut weight, mut bias) = (gx.write(), gw.write(), gb.write());
                let grads = Gradients {
                    input: Some(&input.view_mut()),
                    weight: Some(&weight.view_mut()),
                    bias: Some(&bias.view_mut()),
                };
                let (x, w, g) = (tx.read(), tw.read(), tg.read());
                conv_backward(&g.view(), &x.view(), &w.view(), &s.w, false, s.groups, &grads, threads).unwrap();
                drop((input, weight, bias));
                let (gx, gw, gb) = (gx.to_elements::<f32>(), gw.to_elements::<f32>(), gb.to_elements::<f32>());
                for (got, want) in gx.iter().zip(&want_x).chain(gw.iter().zip(&want_w)) {
                    assert!((*got as f64 - want).abs() <= 2e-5 * (4.0 + want.abs()), "{got} {want} {d:?} {i}");
                }
                let bits: Vec<u32> = [gx, gw, gb].concat().into_iter().map(f32::to_bits).collect();
                assert!(same.get_or_insert(bits.clone()) == &bits, "{d:?} {i} {threads}");
            }
        }
    }
}

#[test]
fn depthwise_windows_have_no_terms_of_padding() {
    let s = Shape::drawn(DRAWN[0]);
    let [sx, sw, sy] = s.sizes();
    let x = vec![1.0; sx.iter().product::<i64>() as usize];
    let mut wt = vec![1.0; sw.iter().product::<i64>() as usize];
    wt.iter_mut().step_by(9).for_each(|w| *w = f64::INFINITY);
    for order in [FIRST, LAST] {
        let (tx, tw) = (laid(&x, &sx, &order), laid(&wt, &sw, &FIRST));
        let out = RawTensor::zeros(DType::F32, Layout::permuted(&sy, &order));
        conv(&tx.read().view(), &tw.read().view(), None, &s.w, s.groups, &out.write().view_mut(), 1).unwrap();
        let out = out.to_elements::<f32>();
        assert_eq!([out[0], out[1], out[14], out[15]], [4.0, 6.0, 6.0, f32::INFINITY]);
    }
}

#[test]
fn an_infinite_element_is_a_term_of_the_taps_that_read_it() {
    let s = Shape::drawn(([[1, 3, 3], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 5, 6]], [2, 1, 1], 2));
    let [sx, sw, sy] = s.sizes();
    let count = |s: &[i64]| s.iter().product::<i64>() as usize;
    let (mut x, g) = (fractions(count(&sx), 1), vec![1.0; count(&sy)]);
    // At the end of a row, which gaps of the gradient's frame meet as well.
    (x[0], x[11]) = (f64::INFINITY, f64::INFINITY);
    let (_, want) = naive_gradients(&x, &vec![0.0; count(&sw)], &g, &s);
    for order in [FIRST, LAST] {
        let (tx, tw, tg) = (laid(&x, &sx, &order), laid(&want, &sw, &FIRST), laid(&g, &sy, &order));
        let out = RawTensor::zeros(DType::F32, tw.layout().clone());
        let mut weight = out.write();
        let grads = Gradients { input: None, weight: Some(&weight.view_mut()), bias: None };
        let (x, w, g) = (tx.read(), tw.read(), tg.read());
        conv_backward(&g.view(), &x.view(), &w.view(), &s.w, false, s.groups, &grads, 1).unwrap();
        drop(weight);
        for (got, want) in out.to_elements::<f32>().into_iter().zip(&want) {
            assert!(f64::from(got) == *want || (f64::from(got) - want).abs() < 1e-4, "{got} {want}");
        }
    }
    assert!(want.iter().any(|v| v.is_finite()) && want.iter().any(|v| v.is_infinite()));
}

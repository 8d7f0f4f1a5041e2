//! Times of single kernels, to try a change without building the whole command.
//!
//!   cargo bench -p restride-kernels -- [PATTERN ...] [--against BINARY] [--threads N] [--seconds S]
//!
//! A row gives the fastest run in microseconds. `--against` names the binary of an earlier build (target/release/deps/kernels-*,
//! copied): it runs each row in turn with this one, and the row gives both times and their ratio.

use restride_kernels::conv::window::Window;
use restride_kernels::conv::{Gradients, conv, conv_backward, conv_packed, filled_channels, filter_order, pack_filter};
use restride_kernels::embedding::{Bag, Entries, bags};
use restride_kernels::matmul::{Added, packed, product};
use restride_kernels::movement::copy::same_order;
use restride_kernels::norm::softmax::{Softmax, softmax};
use restride_kernels::norm::{Affine, group_norm, layer_norm};
use restride_kernels::pointwise::{Input, Pointwise, compute};
use restride_kernels::reduce::cumulative::{Scan, scan};
use restride_kernels::reduce::distance::distances;
use restride_kernels::reduce::{Reduction, reduce};
use restride_kernels::{attention, pointwise, pool};
use restride_tensor::{DType, Layout, RawTensor};
use std::process::Command;
use std::time::{Duration, Instant};

/// A row: its name, and what makes the kernel's call.
struct Row {
    name: String,
    make: Box<dyn Fn(usize) -> Box<dyn FnMut()>>,
}

fn tensor(sizes: &[i64], dtype: DType, order: &[usize], seed: u64) -> RawTensor {
    let x = RawTensor::zeros(dtype, Layout::permuted(sizes, order));
    let n = sizes.iter().product::<i64>();
    let value = |i: i64| {
        let bits = (i as u64 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((bits >> 40) as f32 / (1u64 << 24) as f32) * 4.0 - 2.0
    };
    let dense = RawTensor::from_slice(&(0..n).map(value).collect::<Vec<f32>>(), sizes);
    restride_kernels::support::convert::copy_convert(dense.read().view(), &x.write().view_mut());
    x
}

/// Row-major.
fn dense(sizes: &[i64], dtype: DType, seed: u64) -> RawTensor {
    tensor(sizes, dtype, &(0..sizes.len()).collect::<Vec<_>>(), seed)
}

/// An image, channels-last where `last`.
fn image(sizes: &[i64; 4], last: bool, seed: u64) -> RawTensor {
    tensor(sizes, DType::F32, if last { &[0, 2, 3, 1] } else { &[0, 1, 2, 3] }, seed)
}

fn row(name: String, make: impl Fn(usize) -> Box<dyn FnMut()> + 'static) -> Row {
    Row { name, make: Box::new(make) }
}

fn last_of(last: bool) -> &'static str {
    if last { ", channels-last" } else { "" }
}

fn convolution(c: i64, size: i64, window: i64, o: i64, groups: i64, stride: i64, last: bool) -> Row {
    let name = format!("conv2d {c} × {size}², {window}², {o}, groups {groups}, stride {stride}{}", last_of(last));
    row(name, move |threads| {
        let (w, out) = window_of(size, window, stride);
        let x = image(&[1, c, size, size], last, 1);
        let weight = image(&[o, c / groups, window, window], last, 2);
        let y = image(&[1, o, out, out], last, 3);
        Box::new(move || {
            let (x, weight, mut y) = (x.read(), weight.read(), y.write());
            conv(&x.view(), &weight.view(), None, &w, groups as usize, &y.view_mut(), threads).unwrap();
        })
    })
}

/// As [`convolution`] of one group, with a packed filter.
fn convolution_packed(c: i64, size: i64, window: i64, o: i64, stride: i64, last: bool) -> Row {
    let name = format!("conv2d {c} × {size}², {window}², {o}, stride {stride}, packed{}", last_of(last));
    row(name, move |threads| {
        let (w, out) = window_of(size, window, stride);
        let x = image(&[1, c, size, size], last, 1);
        let weight = dense(&[o, c, window, window], DType::F32, 2);
        let by_taps = filter_order(DType::F32, &weight.layout().sizes, &w, 1).expect("it is worth packing");
        let filled = filled_channels(DType::F32, o as usize) as i64;
        let filter = RawTensor::zeros(DType::F32, Layout::contiguous(&[filled, c, window, window]));
        pack_filter(&weight.read().view(), 1, by_taps, &filter.write().view_mut()).unwrap();
        let y = image(&[1, o, out, out], last, 3);
        Box::new(move || {
            let (x, filter, mut y) = (x.read(), filter.read(), y.write());
            conv_packed(&x.view(), &filter.view(), None, &w, (1, o as usize), &y.view_mut(), threads).unwrap();
        })
    })
}

fn window_of(size: i64, window: i64, stride: i64) -> (Window, i64) {
    let pad = window / 2;
    let out = (size + 2 * pad - window) / stride + 1;
    (Window::new(&[size; 2], &[window; 2], &[out; 2], &[stride; 2], &[pad; 2], &[1; 2]), out)
}

fn gradient(c: i64, size: i64, window: i64, o: i64, stride: i64, of_input: bool) -> Row {
    let of = if of_input { "input" } else { "weight" };
    row(format!("{of} gradient of conv2d {c} × {size}², {window}², {o}, stride {stride}"), move |threads| {
        let (w, out) = window_of(size, window, stride);
        let (x_sizes, weight_sizes) = ([1, c, size, size], [o, c, window, window]);
        let x = image(&x_sizes, false, 1);
        let weight = image(&weight_sizes, false, 2);
        let grad = image(&[1, o, out, out], false, 3);
        let to = image(if of_input { &x_sizes } else { &weight_sizes }, false, 4);
        Box::new(move || {
            let (x, weight, grad, mut to) = (x.read(), weight.read(), grad.read(), to.write());
            let to = to.view_mut();
            let (input, weights) = if of_input { (Some(&to), None) } else { (None, Some(&to)) };
            let out = Gradients { input, weight: weights, bias: None };
            conv_backward(&grad.view(), &x.view(), &weight.view(), &w, false, 1, &out, threads).unwrap();
        })
    })
}

fn mm(m: i64, n: i64, k: i64, transposed: bool, dtype: DType) -> Row {
    let name = if transposed { "linear" } else { "mm" };
    row(format!("{name} {m} × {n} × {k}, {dtype}"), move |threads| {
        let a = dense(&[m, k], dtype, 1);
        let b = dense(&if transposed { [n, k] } else { [k, n] }, dtype, 2);
        let c = dense(&[m, n], dtype, 3);
        Box::new(move || {
            let (a, b, mut c) = (a.read(), b.read(), c.write());
            product(&a.view(), &b.view(), transposed, &Added::NONE, &c.view_mut(), threads).unwrap();
        })
    })
}

fn linear_packed(m: i64, n: i64, k: i64) -> Row {
    row(format!("linear {m} × {n} × {k}, packed"), move |threads| {
        let (a, b, c) = (dense(&[m, k], DType::F32, 1), dense(&[n, k], DType::F32, 2), dense(&[m, n], DType::F32, 3));
        let len = packed::packed_len(DType::F32, k as usize, n as usize).unwrap();
        let own = RawTensor::zeros(DType::F32, Layout::contiguous(&[len as i64]));
        packed::pack(&b.read().view(), true, &own.write().view_mut()).unwrap();
        Box::new(move || {
            let (a, own, mut c) = (a.read(), own.read(), c.write());
            packed::product_packed(&a.view(), &own.view(), n as usize, &Added::NONE, &c.view_mut(), threads).unwrap();
        })
    })
}

fn attend(heads: i64, l: i64, s: i64, e: i64, causal: bool) -> Row {
    let name = format!("attention {heads} × {l} × {s} × {e}{}", if causal { ", causal" } else { "" });
    row(name, move |threads| {
        let [q, k, v, y] = [l, s, s, l].map(|n| dense(&[1, heads, n, e], DType::F32, n as u64));
        let scale = 1.0 / (e as f64).sqrt();
        Box::new(move || {
            let (q, k, v, mut y) = (q.read(), k.read(), v.read(), y.write());
            let settings = attention::Settings { mask: None, selects: false, causal, scale };
            let results = attention::Results { out: &y.view_mut(), logsumexp: None, weights: None };
            attention::attention(&q.view(), &k.view(), &v.view(), false, &settings, &results, threads).unwrap();
        })
    })
}

fn elementwise(name: &str, op: &'static Pointwise, operands: usize, dtype: DType) -> Row {
    row(format!("{name}, {dtype}"), move |threads| {
        let xs: Vec<RawTensor> = (0..operands).map(|i| dense(&[1024, 768], dtype, i as u64)).collect();
        let y = dense(&[1024, 768], dtype, 9);
        Box::new(move || {
            let read: Vec<_> = xs.iter().map(|x| x.read()).collect();
            let inputs: Vec<Input<'_>> = read.iter().map(|x| Input::View(x.view())).collect();
            compute(op, dtype, &inputs, &y.write().view_mut(), threads).unwrap();
        })
    })
}

fn reduction(name: &str, what: Reduction, reduced: [bool; 2], dtype: DType) -> Row {
    row(format!("{name}, {dtype}"), move |threads| {
        let sizes = [1024, 768];
        let kept: Vec<i64> = (0..2).filter(|&d| !reduced[d]).map(|d| sizes[d]).collect();
        let (x, y) = (dense(&sizes, dtype, 1), dense(&kept, dtype, 2));
        Box::new(move || {
            let (x, mut y) = (x.read(), y.write());
            reduce(&x.view(), &reduced, what, dtype, &y.view_mut(), threads).unwrap();
        })
    })
}

fn norm(sizes: &'static [i64], groups: Option<usize>) -> Row {
    let name = if groups.is_some() { "group_norm" } else { "layer_norm" };
    row(format!("{name} {sizes:?}"), move |threads| {
        let (x, y) = (dense(sizes, DType::F32, 1), dense(sizes, DType::F32, 2));
        let len = if groups.is_some() { sizes[1] } else { sizes[sizes.len() - 1] };
        let (w, b) = (dense(&[len], DType::F32, 3), dense(&[len], DType::F32, 4));
        Box::new(move || {
            let (x, w, b, mut y) = (x.read(), w.read(), b.read(), y.write());
            let affine = Affine { weight: Some(w.view()), bias: Some(b.view()) };
            match groups {
                Some(n) => group_norm(&x.view(), n, affine, 1e-5, &y.view_mut(), (None, None), threads).unwrap(),
                None => {
                    layer_norm(&x.view(), len as usize, affine, 1e-5, &y.view_mut(), (None, None), threads).unwrap()
                }
            }
        })
    })
}

fn bag_sums(what: Bag) -> Row {
    row(format!("embedding_bag {what:?} 256 × 20 × 64"), move |threads| {
        let (table, y) = (dense(&[10_000, 64], DType::F32, 1), dense(&[256, 64], DType::F32, 2));
        let indices: Vec<i64> = (0..256 * 20).map(|i| i * 7919 % 10_000).collect();
        let offsets: Vec<i64> = (0..=256).map(|i| 20 * i).collect();
        Box::new(move || {
            let entries = Entries { indices: &indices, offsets: &offsets, weights: None, skip: None };
            bags(&table.read().view(), &entries, what, &y.write().view_mut(), None, threads).unwrap()
        })
    })
}

/// Windows of `kernel` elements side by side, or one that has all elements.
fn mean(c: i64, size: usize, kernel: usize, last: bool) -> Row {
    row(format!("avg_pool2d {c} × {size}², {kernel}²{}", last_of(last)), move |threads| {
        let out = size / kernel;
        let all = |n: usize| -> Vec<pool::Span> {
            let span = |i: usize| pool::Span { start: i * kernel, end: (i + 1) * kernel, step: 1, size: kernel };
            (0..n).map(span).collect()
        };
        let spans = pool::Spans {
            spatial: 2,
            input: [1, size, size],
            windows: [
                restride_kernels::support::scratch::Temp::copied(&[pool::Span { start: 0, end: 1, step: 1, size: 1 }]),
                restride_kernels::support::scratch::Temp::copied(&all(out)),
                restride_kernels::support::scratch::Temp::copied(&all(out)),
            ],
        };
        let x = image(&[1, c, size as i64, size as i64], last, 1);
        let y = image(&[1, c, out as i64, out as i64], last, 2);
        Box::new(move || pool::mean(&x.read().view(), &spans, None, &y.write().view_mut(), threads).unwrap())
    })
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (m, n, k) in [(64, 64, 64), (256, 256, 256), (1024, 1024, 1024), (197, 768, 768), (197, 3072, 768)]
        .into_iter()
        .chain([(64, 3136, 576), (512, 49, 4608), (12544, 16, 27), (1, 4096, 4096), (4, 4096, 4096)])
    {
        rows.push(mm(m, n, k, false, DType::F32));
    }
    for (m, n, k) in
        [(1, 4096, 4096), (197, 3072, 768), (1, 1024, 576), (4, 4096, 4096), (4, 1024, 1024), (8, 1024, 1024)]
    {
        rows.push(mm(m, n, k, true, DType::F32));
        rows.push(mm(m, n, k, true, DType::BF16));
        rows.push(linear_packed(m, n, k));
    }
    for last in [false, true] {
        for (c, size, window, o, groups, stride) in [
            (64, 56, 3, 64, 1, 1),
            (128, 28, 3, 128, 1, 1),
            (256, 14, 3, 256, 1, 1),
            (512, 7, 3, 512, 1, 1),
            (64, 56, 3, 128, 1, 2),
            (3, 224, 7, 64, 1, 2),
            (3, 224, 3, 16, 1, 2),
            (128, 28, 3, 32, 1, 1),
            (16, 112, 3, 16, 1, 1),
            (32, 56, 3, 32, 1, 1),
            (96, 14, 1, 576, 1, 1),
            (64, 112, 1, 64, 1, 1),
            (256, 56, 1, 64, 1, 1),
            (1024, 7, 1, 128, 1, 1),
            (240, 14, 5, 240, 240, 1),
            (16, 112, 3, 16, 16, 1),
        ] {
            rows.push(convolution(c, size, window, o, groups, stride, last));
            if window > 1 && groups == 1 {
                rows.push(convolution_packed(c, size, window, o, stride, last));
            }
        }
        rows.extend([(240, 14, 14), (576, 7, 7), (128, 56, 2)].map(|(c, size, kernel)| mean(c, size, kernel, last)));
    }
    for of_input in [true, false] {
        for (c, size, window, o, stride) in
            [(64, 56, 3, 64, 1), (128, 28, 3, 128, 1), (256, 14, 3, 256, 1), (64, 56, 3, 128, 2), (64, 56, 1, 256, 1)]
        {
            rows.push(gradient(c, size, window, o, stride, of_input));
        }
    }
    rows.push(attend(12, 197, 197, 64, false));
    rows.push(attend(8, 1024, 1024, 64, false));
    rows.push(attend(8, 1024, 1024, 64, true));
    rows.push(attend(8, 1, 2048, 64, false));
    for (name, op) in [
        ("exp", &pointwise::EXP),
        ("tanh", &pointwise::TANH),
        ("erf", &pointwise::ERF),
        ("sigmoid", &pointwise::SIGMOID),
        ("gelu", &pointwise::GELU),
        ("silu", &pointwise::SILU),
        ("relu", &pointwise::RELU),
        ("sin", &pointwise::SIN),
        ("log", &pointwise::LOG),
        ("erfc", &pointwise::ERFC),
    ] {
        rows.extend([DType::F32, DType::BF16, DType::F64].map(|dtype| elementwise(name, op, 1, dtype)));
    }
    rows.push(elementwise("mul", &pointwise::MUL, 2, DType::F32));
    for dtype in [DType::F32, DType::BF16, DType::F64, DType::I64] {
        rows.push(reduction("sum over rows", Reduction::Sum, [false, true], dtype));
        rows.push(reduction("sum over columns", Reduction::Sum, [true, false], dtype));
        rows.push(reduction("max over rows", Reduction::Max, [false, true], dtype));
        rows.push(reduction("max over columns", Reduction::Max, [true, false], dtype));
    }
    for (dim, name) in [(1, "rows"), (0, "columns")] {
        rows.push(row(format!("cumsum over {name}"), move |threads| {
            let (x, y) = (dense(&[1024, 768], DType::F32, 1), dense(&[1024, 768], DType::F32, 2));
            Box::new(move || {
                scan(&x.read().view(), dim, Scan::Sum, DType::F32, &y.write().view_mut(), threads).unwrap()
            })
        }));
    }
    for (n, len) in [(1024, 768), (16384, 49), (65536, 7)] {
        rows.push(row(format!("softmax {n} × {len}"), move |threads| {
            let (x, y) = (dense(&[n, len], DType::F32, 1), dense(&[n, len], DType::F32, 2));
            Box::new(move || softmax(&x.read().view(), 1, Softmax::Plain, &y.write().view_mut(), threads).unwrap())
        }));
    }
    rows.extend([norm(&[1576, 768], None), norm(&[2, 256, 64, 64], Some(32))]);
    rows.extend([Bag::Sum, Bag::Mean].map(bag_sums));
    rows.push(row("cdist 512 × 512 × 64".into(), |threads| {
        let (a, b) = (dense(&[512, 64], DType::F32, 1), dense(&[512, 64], DType::F32, 2));
        let y = dense(&[512, 512], DType::F32, 3);
        Box::new(move || {
            distances(&a.read().view(), &b.read().view(), 2.0, &y.write().view_mut(), threads).unwrap();
        })
    }));
    rows.push(row("copy into columns".into(), |_| {
        let (x, y) = (dense(&[1024, 768], DType::F32, 1), dense(&[1024, 1536], DType::F32, 2));
        let half = y.layout().slice(1, Some(&0), Some(&768), &1).unwrap();
        Box::new(move || {
            let (x, mut y) = (x.read(), y.write());
            // SAFETY: a part of the tensor's cells.
            same_order(&x.view(), &unsafe { y.view_mut().with_layout(&half) }).unwrap()
        })
    }));
    rows
}

/// The fastest of the runs in some time, in microseconds.
fn fastest(run: &mut dyn FnMut(), seconds: f64) -> f64 {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut best, mut runs) = (f64::INFINITY, 0);
    while runs < 3 || Instant::now() < end {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    best * 1e6
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut patterns, mut against, mut threads, mut seconds, mut exact) = (Vec::new(), None, 1, 0.1, false);
    while let Some(arg) = args.next() {
        let mut value = || args.next().expect("an option needs a value");
        match &arg[..] {
            "--bench" => {}
            "--against" => against = Some(value()),
            "--threads" => threads = value().parse().expect("a number of threads"),
            "--seconds" => seconds = value().parse().expect("seconds"),
            "--exact" => exact = true,
            _ => patterns.push(arg),
        }
    }
    let wanted = |name: &str| {
        patterns.is_empty() || patterns.iter().any(|p| if exact { name == p } else { name.contains(&p[..]) })
    };
    for row in rows().into_iter().filter(|row| wanted(&row.name)) {
        let mut run = (row.make)(threads);
        let Some(other) = &against else {
            let time = fastest(&mut run, seconds);
            println!("{}{time:.1}", if exact { String::new() } else { format!("{:60} ", row.name) });
            continue;
        };
        let (mut new, mut old) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..4 {
            new = new.min(fastest(&mut run, seconds));
            let of = ["--exact", &row.name, "--threads", &threads.to_string(), "--seconds", &seconds.to_string()];
            let done = Command::new(other).args(of).output().expect("the earlier binary runs");
            old = old.min(String::from_utf8_lossy(&done.stdout).trim().parse().unwrap_or(f64::NAN));
        }
        println!("{:60} {old:10.1} {new:10.1} {:6.2}", row.name, new / old);
    }
}

use super::*;
use crate::support::convert::gather;
use restride_tensor::{Layout, RawTensor};

fn both(op: &Pointwise, a: &RawTensor, b: &RawTensor, out: DType) -> RawTensor {
    let result = RawTensor::zeros(out, Layout::contiguous(&a.layout().sizes));
    compute(
        op,
        a.dtype(),
        &[Input::View(a.read().view()), Input::View(b.read().view())],
        &result.write().view_mut(),
        1,
    )
    .unwrap();
    result
}

#[test]
fn integers_divide_as_python_does() {
    let a = RawTensor::from_slice(&[7i64, -7, 7, -7, i64::MIN, 6], &[6]);
    let b = RawTensor::from_slice(&[2i64, 2, -2, -2, -1, 3], &[6]);
    assert_eq!(both(&DIV_FLOOR, &a, &b, DType::I64).to_elements::<i64>(), [3, -4, -4, 3, i64::MIN, 2]);
    assert_eq!(both(&DIV_TRUNC, &a, &b, DType::I64).to_elements::<i64>(), [3, -3, -3, 3, i64::MIN, 2]);
    assert_eq!(both(&REMAINDER, &a, &b, DType::I64).to_elements::<i64>(), [1, 1, -1, -1, 0, 0]);
    assert_eq!(both(&FMOD, &a, &b, DType::I64).to_elements::<i64>(), [1, -1, 1, -1, 0, 0]);
    let zero = RawTensor::from_slice(&[0i64; 6], &[6]);
    let out = RawTensor::zeros(DType::I64, Layout::contiguous(&[6]));
    let (a, zero) = (a.read(), zero.read());
    let inputs = [Input::View(a.view()), Input::View(zero.view())];
    let e = compute(&REMAINDER, DType::I64, &inputs, &out.write().view_mut(), 1);
    assert_eq!(e, Err(PointwiseError::Value("ZeroDivisionError")));
}

#[test]
fn integers_wrap_in_their_own_width() {
    let a = RawTensor::from_slice(&[200u8, 100], &[2]);
    assert_eq!(both(&ADD, &a, &a, DType::U8).to_elements::<u8>(), [144, 200]);
    assert_eq!(both(&MUL, &a, &a, DType::U8).to_elements::<u8>(), [64, 16]);
    let a = RawTensor::from_slice(&[i32::MIN, 3], &[2]);
    assert_eq!(
        both(&SUB, &a, &RawTensor::from_slice(&[1i32, 5], &[2]), DType::I32).to_elements::<i32>(),
        [i32::MAX, -2]
    );
}

/// Results depend on values and sizes alone: the same numbers through every layout and both ways of reading them.
#[test]
fn layouts_do_not_matter() {
    let n = 3000i64;
    let data: Vec<f32> = (0..2 * n).map(|i| (i as f32 * 0.37).sin()).collect();
    let a = RawTensor::from_slice(&data, &[2, n]);
    let b = RawTensor::from_slice(&data[..n as usize], &[n]);
    let want: Vec<f32> = data.iter().enumerate().map(|(i, x)| x + data[i % n as usize]).collect();
    let at = RawTensor::zeros(DType::F32, Layout::permuted(&[2, n], &[1, 0]));
    crate::support::convert::copy_convert(a.read().view(), &at.write().view_mut());
    for (x, out) in [
        (&a, Layout::contiguous(&[2, n])),
        (&at, Layout::permuted(&[2, n], &[1, 0])),
        (&at, Layout::contiguous(&[2, n])),
    ] {
        let result = RawTensor::zeros(DType::F32, out);
        let (x, b) = (x.read(), b.read());
        let inputs = [Input::View(x.view()), Input::View(b.view())];
        compute(&ADD, DType::F32, &inputs, &result.write().view_mut(), 1).unwrap();
        assert_eq!(gather::<f32>(result.read().view())[..], want);
    }
}

/// Parts that threads compute are the whole, whichever dimension they share, and of broadcast operands too.
#[test]
fn threads_do_not_matter() {
    let (m, n) = if cfg!(miri) { (3, 50) } else { (300, 500) };
    let data: Vec<f32> = (0..m * n).map(|i| (i % 1013) as f32 * 0.01).collect();
    let a = RawTensor::from_slice(&data, &[m, n]);
    let row = RawTensor::from_slice(&data[..n as usize], &[n]);
    let column = RawTensor::from_slice(&data[..m as usize], &[m, 1]);
    for out in [Layout::contiguous(&[m, n]), Layout::permuted(&[m, n], &[1, 0])] {
        let results = [1, 2, 3].map(|threads| {
            let result = RawTensor::zeros(DType::F32, out.clone());
            let (a, row, column) = (a.read(), row.read(), column.read());
            let inputs = [a.view(), row.view(), column.view()].map(Input::View);
            let inputs = [inputs[0], inputs[1], inputs[2], Input::Parameter(Scalar::Float(0.5))];
            compute(&ADDCMUL, DType::F32, &inputs, &result.write().view_mut(), threads).unwrap();
            result.to_elements::<f32>()
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0], results[2]);
        assert_eq!(results[0][n as usize + 2], data[n as usize + 2] + 0.5 * data[2] * data[1]);
    }
}

#[test]
fn a_result_may_lie_on_its_operand() {
    let a = RawTensor::from_slice(&(0..5000).map(|i| i as f32).collect::<Vec<_>>(), &[5000]);
    let both = restride_tensor::Access::of([&a], [&a]).unwrap();
    // SAFETY: rows are read before they are written.
    let (x, out) = unsafe { (both.view(&a), both.view_mut(&a)) };
    compute(&MUL, DType::F32, &[Input::View(x), Input::View(x)], &out, 1).unwrap();
    drop(both);
    assert!(a.to_elements::<f32>().iter().enumerate().all(|(i, &x)| x == (i * i) as f32));
}

#[test]
fn operands_are_rounded_to_the_common_type() {
    let a = RawTensor::from_slice(&[44u8], &[1]);
    let out = RawTensor::zeros(DType::Bool, Layout::contiguous(&[1]));
    // PyTorch compares 44 with 300 cut down to a byte.
    decide(
        &EQ,
        DType::U8,
        &[Input::View(a.read().view()), Input::Number(Scalar::Int(300))],
        &out.write().view_mut(),
        1,
    )
    .unwrap();
    assert_eq!(out.get(&[0]), Scalar::Bool(true));
    let wide = RawTensor::from_slice(&[2049i64], &[1]);
    let out = RawTensor::zeros(DType::F16, Layout::contiguous(&[1]));
    compute(
        &SUB,
        DType::F16,
        &[Input::View(wide.read().view()), Input::Number(Scalar::Int(2000))],
        &out.write().view_mut(),
        1,
    )
    .unwrap();
    assert_eq!(out.get(&[0]), Scalar::Float(48.0));
}

#[test]
fn nan_is_passed_on_or_left_out() {
    let a = RawTensor::from_slice(&[f32::NAN, 1.0, 2.0], &[3]);
    let b = RawTensor::from_slice(&[1.0, f32::NAN, 1.0f32], &[3]);
    let max = both(&MAXIMUM, &a, &b, DType::F32).to_elements::<f32>();
    assert!(max[0].is_nan() && max[1].is_nan() && max[2] == 2.0);
    assert_eq!(both(&FMAX, &a, &b, DType::F32).to_elements::<f32>(), [1.0, 1.0, 2.0]);
}

#[test]
fn relu_keeps_nan_and_the_sign_of_zero() {
    let x = RawTensor::from_slice(&[f32::NAN, -0.0, 0.0, -1.0, 2.0], &[5]);
    let y = RawTensor::zeros(DType::F32, Layout::contiguous(&[5]));
    compute(&RELU, DType::F32, &[Input::View(x.read().view())], &y.write().view_mut(), 1).unwrap();
    let y = y.to_elements::<f32>();
    assert!(y[0].is_nan() && y[1].is_sign_negative() && y[2].is_sign_positive());
    assert_eq!(y[1..], [0.0, 0.0, 0.0, 2.0]);
}

#[test]
fn complex_parts_and_joins() {
    let z = RawTensor::from_slice(&[C32::new(3.0, 4.0), C32::new(-1.0, 0.0)], &[2]);
    let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[2]));
    part(Part::Abs, z.read().view(), &out.write().view_mut()).unwrap();
    assert_eq!(out.to_elements::<f32>(), [5.0, 1.0]);
    part(Part::Angle, z.read().view(), &out.write().view_mut()).unwrap();
    assert_eq!(out.get(&[1]), Scalar::Float(std::f32::consts::PI as f64));
    let back = RawTensor::zeros(DType::C64, Layout::contiguous(&[2]));
    join(Join::Parts, DType::F32, out.read().view(), out.read().view(), &back.write().view_mut()).unwrap();
    assert_eq!(back.get(&[1]).as_c64().re, std::f32::consts::PI as f64);
}

/// An element has the same bits in rows of every length, at every place of them, and in every instruction set.
#[test]
fn elements_do_not_depend_on_their_row_or_the_instruction_set() {
    let specials = [0.0f32, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, -1e-40, 3e38, 7e4, -1e9];
    let number = |i: usize| ((i * 7919) % 1009) as f32 * 0.031 - 12.0;
    let n = if cfg!(miri) { 40 } else { 1000 };
    let rows: Vec<Vec<f32>> = (0..4)
        .map(|r| {
            (0..n).map(|i| if i % 11 == r { specials[i / 11 % specials.len()] } else { number(i + 37 * r) }).collect()
        })
        .collect();
    type Named = (&'static str, &'static Pointwise, usize);
    let ops: &[Named] = &[
        ("exp", &EXP, 1),
        ("exp2", &EXP2, 1),
        ("expm1", &EXPM1, 1),
        ("log", &LOG, 1),
        ("log2", &LOG2, 1),
        ("log10", &LOG10, 1),
        ("log1p", &LOG1P, 1),
        ("tanh", &TANH, 1),
        ("erf", &ERF, 1),
        ("sin", &SIN, 1),
        ("cos", &COS, 1),
        ("sigmoid", &SIGMOID, 1),
        ("gelu", &GELU, 1),
        ("gelu_tanh", &GELU_TANH, 1),
        ("silu", &SILU, 1),
        ("mish", &MISH, 1),
        ("softplus", &SOFTPLUS, 3),
        ("pow", &POW, 2),
        ("hardswish", &HARDSWISH, 1),
        ("add", &ADD, 2),
        ("div", &DIV, 2),
        ("addcmul", &ADDCMUL, 4),
        ("lerp", &LERP, 3),
        ("maximum", &MAXIMUM, 2),
        ("fmax", &FMAX, 2),
        ("gelu_backward", &GELU_BACKWARD, 2),
    ];
    let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    for &(name, op, arity) in ops {
        let f = op.f32.unwrap();
        let alone: Vec<u32> = (0..n)
            .map(|i| {
                let xs: Vec<&[f32]> = rows[..arity].iter().map(|r| &r[i..i + 1]).collect();
                let mut out = [0.0];
                f(&xs, &mut out);
                bits(out[0])
            })
            .collect();
        crate::support::isa::tests::on_each(|isa| {
            for (start, end) in [(0, n), (1, n), (3, 20), (5, 38), (2, 9)] {
                let xs: Vec<&[f32]> = rows[..arity].iter().map(|r| &r[start..end]).collect();
                let mut out = vec![0.0; end - start];
                f(&xs, &mut out);
                let got: Vec<u32> = out.into_iter().map(bits).collect();
                assert_eq!(got, alone[start..end], "{name} {isa:?} {start}..{end}");
            }
        });
    }
}

/// Every pair of these, in vectors and by the library: remainders are exact.
#[test]
fn remainders_of_singles_are_the_librarys() {
    let some = [
        0.0,
        1.0,
        0.5,
        3.0,
        7.25,
        0.1,
        1e-45,
        3e-39,
        1e-20,
        16_777_217.0,
        268_435_456.0,
        1e10,
        f32::MAX,
        f32::INFINITY,
    ];
    let numbers: Vec<f32> = (1..60)
        .map(|i| (i as f32 * 0.618_034).fract() * 2f32.powi(i % 29))
        .chain(some)
        .flat_map(|x| [x, -x])
        .chain([f32::NAN])
        .collect();
    let n = numbers.len();
    let a: Vec<f32> = (0..n * n).map(|i| numbers[i / n]).collect();
    let b: Vec<f32> = (0..n * n).map(|i| numbers[i % n]).collect();
    let rows: [(&Pointwise, fn(f32, f32) -> f32); 3] = [
        (&FMOD, |a, b| a % b),
        (&REMAINDER, |a, b| if a % b != 0.0 && (b < 0.0) != (a % b < 0.0) { a % b + b } else { a % b }),
        (&DIV_FLOOR, |a, b| {
            let m = a % b;
            let d = (a - m) / b - f32::from(u8::from(m != 0.0 && (b < 0.0) != (m < 0.0)));
            match () {
                _ if b == 0.0 => a / b,
                _ if d == 0.0 => 0f32.copysign(a / b),
                _ => d.floor() + f32::from(u8::from(d - d.floor() > 0.5)),
            }
        }),
    ];
    for (op, want) in rows {
        crate::support::isa::tests::on_each(|isa| {
            let mut out = vec![0.0; n * n];
            (op.f32.unwrap())(&[&a, &b], &mut out);
            for i in 0..n * n {
                let (got, want) = (out[i], want(a[i], b[i]));
                assert!(
                    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                    "{} {} {got} {want} {isa:?}",
                    a[i],
                    b[i]
                );
            }
        });
    }
}

use super::*;
use restride_tensor::RawTensor;

fn noise(n: usize, seed: u64) -> Vec<f32> {
    let mut s = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            (s >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// The same numbers in another layout: permuted, with gaps, from an odd cell.
fn relaid(data: &[f32], sizes: &[i64], how: usize) -> RawTensor {
    relaid_as(DType::F32, data, sizes, how)
}

/// As [`relaid`], of any type.
pub(super) fn relaid_as<T: Compute>(dtype: DType, data: &[T], sizes: &[i64], how: usize) -> RawTensor {
    let rank = sizes.len();
    let mut perm: Vec<usize> = (0..rank).collect();
    if how & 1 == 1 {
        perm.swap(rank - 1, rank - 2);
    }
    let mut layout = Layout::permuted(sizes, &perm);
    if how & 2 == 2 {
        layout.strides.iter_mut().for_each(|s| *s *= 2);
    }
    if how & 4 == 4 {
        layout.offset = 3;
    }
    let t = RawTensor::zeros(dtype, layout);
    crate::support::pack::unpack(data, &t.write().view_mut());
    t
}

fn unpack_into(t: &RawTensor, data: &[f32]) {
    crate::support::pack::unpack(data, &t.write().view_mut());
}

const SIZES: [(i64, i64, i64); 22] = [
    (1, 1, 1),
    (1, 7, 5),
    (7, 1, 5),
    (1, 130, 300),
    (130, 1, 300),
    (2, 3, 1),
    (5, 3, 2),
    (33, 65, 2),
    (4, 5, 3),
    (17, 31, 65),
    (64, 64, 64),
    (65, 63, 517),
    (3, 200, 1000),
    (200, 3, 1000),
    (129, 257, 100),
    (1, 1, 1000),
    (250, 300, 600),
    (16, 16, 1100),
    (16, 17, 40),
    // A matrix larger than a cache with a few rows or columns; more rows than a block has.
    (5, 530, 600),
    (520, 3, 600),
    (420, 33, 300),
];

#[test]
fn bits_do_not_depend_on_strides_or_threads() {
    for (m, n, k) in SIZES {
        let (a, b) = (noise((m * k) as usize, 1), noise((k * n) as usize, 2));
        for b_t in [false, true] {
            let b_sizes = if b_t { [n, k] } else { [k, n] };
            let mut want: Option<Vec<u32>> = None;
            for how in 0..8 {
                for threads in [1, 2, 5] {
                    let (x, y) = (relaid(&a, &[m, k], how), relaid(&b, &b_sizes, 7 - how));
                    let out = relaid(&vec![f32::NAN; (m * n) as usize], &[m, n], how ^ 3);
                    product(&x.read().view(), &y.read().view(), b_t, &Added::NONE, &out.write().view_mut(), threads)
                        .unwrap();
                    let got: Vec<u32> = out.to_elements::<f32>().into_iter().map(f32::to_bits).collect();
                    match &want {
                        None => want = Some(got),
                        Some(w) => assert!(*w == got, "{m} {n} {k} b_t {b_t} layout {how} threads {threads}"),
                    }
                }
            }
        }
    }
}

fn bits(of: &RawTensor) -> Vec<u32> {
    of.to_elements::<f32>().into_iter().map(f32::to_bits).collect()
}

/// The product in single precision, of operands as they are.
fn singles(a: &RawTensor, b: &RawTensor, b_t: bool, sizes: &[i64]) -> Vec<u32> {
    let out = RawTensor::zeros(DType::F32, Layout::contiguous(sizes));
    product(&a.read().view(), &b.read().view(), b_t, &Added::NONE, &out.write().view_mut(), 1).unwrap();
    bits(&out)
}

/// A matrix, packed.
fn packed_of(b: &RawTensor, transposed: bool) -> RawTensor {
    let &[rows, cols] = &b.layout().sizes[..] else { panic!("no matrix") };
    let (k, n) = if transposed { (cols, rows) } else { (rows, cols) };
    let len = packed::packed_len(b.dtype(), k as usize, n as usize).unwrap();
    let out = RawTensor::zeros(packed::compute(b.dtype()).unwrap(), Layout::contiguous(&[len as i64]));
    packed::pack(&b.read().view(), transposed, &out.write().view_mut()).unwrap();
    out
}

#[test]
fn a_packed_operand_gives_the_same_bits() {
    for (m, n, k) in SIZES {
        let (a, b) = (noise((m * k) as usize, 5), noise((k * n) as usize, 6));
        let x = relaid(&a, &[m, k], 0);
        for (b_t, how) in [(false, 0), (false, 7), (true, 0), (true, 3)] {
            let y = relaid(&b, &if b_t { [n, k] } else { [k, n] }, how);
            let want = singles(&x, &y, b_t, &[m, n]);
            let packed = packed_of(&y, b_t);
            for threads in [1, 3] {
                for how in [0, 1, 6] {
                    let out = relaid(&vec![f32::NAN; (m * n) as usize], &[m, n], how);
                    let (x, mut to) = (relaid(&a, &[m, k], 7 - how), out.write());
                    packed::product_packed(
                        &x.read().view(),
                        &packed.read().view(),
                        n as usize,
                        &Added::NONE,
                        &to.view_mut(),
                        threads,
                    )
                    .unwrap();
                    drop(to);
                    assert!(bits(&out) == want, "{m} {n} {k} {b_t} {threads} {how}");
                }
            }
        }
    }
}

#[test]
fn packed_operands_say_what_they_are() {
    use packed::{pack, packed_len, product_packed};
    assert_eq!(packed_len(DType::BF16, 3, 17), Some(3 * 32));
    assert_eq!(packed_len(DType::F64, 10, 1), Some(10));
    assert_eq!(packed_len(DType::I32, 3, 3), None);
    let zeros = |sizes: &[i64], dtype| RawTensor::zeros(dtype, Layout::contiguous(sizes));
    for (b, dtype, to) in [(&[3, 3][..], DType::I32, 48), (&[3], DType::F32, 48), (&[3, 5], DType::F32, 47)] {
        let (b, to) = (zeros(b, dtype), zeros(&[to], DType::F32));
        assert!(pack(&b.read().view(), false, &to.write().view_mut()).is_err(), "{b:?}");
    }
    let packed = packed_of(&zeros(&[3, 5], DType::F32), false);
    for (a, out, dtype) in
        [(&[2, 4][..], &[2, 5][..], DType::F32), (&[2, 3], &[2, 3], DType::F32), (&[2, 3], &[2, 5], DType::F64)]
    {
        let (x, to) = (zeros(a, DType::F32), zeros(out, dtype));
        let done = product_packed(&x.read().view(), &packed.read().view(), 5, &Added::NONE, &to.write().view_mut(), 1);
        assert!(done.is_err(), "{a:?} {out:?}");
    }
}

#[test]
fn other_types_are_converted_as_they_are_read() {
    for dtype in [DType::BF16, DType::F16, DType::I8] {
        for (m, n, k) in SIZES {
            let scale = if dtype == DType::I8 { 100.0 } else { 1.0 };
            let half = |sizes: [i64; 2], seed, how: usize| {
                let data: Vec<f32> = noise((sizes[0] * sizes[1]) as usize, seed).iter().map(|x| x * scale).collect();
                let layout = relaid(&data, &sizes, how).layout().clone();
                let t = RawTensor::zeros(dtype, layout.clone());
                unpack_into(&t, &data);
                let single = RawTensor::zeros(DType::F32, layout);
                unpack_into(&single, &crate::support::pack::pack::<f32>(&t.read().view()));
                (t, single)
            };
            for (b_t, how) in [(false, 0), (false, 5), (true, 0), (true, 6)] {
                let ((a, wide_a), (b, wide_b)) =
                    (half([m, k], 7, how), half(if b_t { [n, k] } else { [k, n] }, 8, how));
                let want = singles(&wide_a, &wide_b, b_t, &[m, n]);
                assert!(singles(&a, &b, b_t, &[m, n]) == want, "{dtype:?} {m} {n} {k} {b_t} {how}");
                let batch = |t: &RawTensor| {
                    let layout = t.layout().unsqueeze(0).unwrap();
                    t.alias(t.dtype(), layout).unwrap()
                };
                assert!(singles(&batch(&a), &batch(&b), b_t, &[1, m, n]) == want, "batched {dtype:?} {m} {n} {k}");
            }
        }
    }
}

/// Numbers so small that products of them have no exact place among singles, infinities and NaN, where pairs of `bf16` are not added.
#[test]
fn small_and_infinite_halves_have_the_sums_of_singles() {
    let (m, n, k) = (33, 40, 301);
    // With the second scale all products are below the least normal number.
    let odd = [1e-17f32, -3e-20, 1e-39, 2e-38, f32::INFINITY, f32::NAN, 3e38];
    for (scale, odd) in odd.map(|odd| (1e-15, odd)).into_iter().chain([(1e-20, 1.0)]) {
        for at in [(Some(5), None), (None, Some(700)), (Some(2000), Some(11))] {
            let of = |sizes: [i64; 2], seed, at: Option<usize>| {
                let mut data: Vec<f32> =
                    noise((sizes[0] * sizes[1]) as usize, seed).iter().map(|x| x * scale).collect();
                data.iter_mut().filter(|x| x.abs() < 0.1 * scale).for_each(|x| *x = 0.0);
                at.into_iter().for_each(|i| data[i] = odd);
                let [half, single] = [DType::BF16, DType::F32].map(|d| RawTensor::zeros(d, Layout::contiguous(&sizes)));
                unpack_into(&half, &data);
                unpack_into(&single, &crate::support::pack::pack::<f32>(&half.read().view()));
                (half, single)
            };
            let ((a, wide_a), (b, wide_b)) = (of([m, k], 3, at.0), of([n, k], 4, at.1));
            let number = |bits: Vec<u32>| -> Vec<Option<u32>> {
                bits.into_iter().map(|b| (!f32::from_bits(b).is_nan()).then_some(b)).collect()
            };
            let (got, want) = (singles(&a, &b, true, &[m, n]), singles(&wide_a, &wide_b, true, &[m, n]));
            assert!(number(got) == number(want), "{scale} {odd} {at:?}");
        }
    }
}

#[test]
fn rows_of_any_dimensions_are_one_product() {
    let (b, l, k, n) = (3, 70, 40, 50);
    let (a, w) = (noise((b * l * k) as usize, 9), relaid(&noise((k * n) as usize, 10), &[k, n], 0));
    let want = singles(&relaid(&a, &[b * l, k], 0), &w, false, &[b * l, n]);
    for from in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0]] {
        for to in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0]] {
            for threads in [1, 2, 4] {
                let x = RawTensor::zeros(DType::F32, Layout::permuted(&[b, l, k], &from));
                unpack_into(&x, &a);
                let out = RawTensor::zeros(DType::F32, Layout::permuted(&[b, l, n], &to));
                let (run, taken) = crate::support::scratch::taken(|| {
                    product(&x.read().view(), &w.read().view(), false, &Added::NONE, &out.write().view_mut(), threads)
                });
                run.unwrap();
                assert_eq!(taken, 0, "nothing is copied as a whole");
                assert!(bits(&out) == want, "{from:?} {to:?} {threads}");
            }
        }
    }
}

#[test]
fn products_are_right() {
    for (m, n, k) in SIZES {
        let (a, b) = (noise((m * k) as usize, 3), noise((k * n) as usize, 4));
        let (x, y) = (relaid(&a, &[m, k], 0), relaid(&b, &[k, n], 1));
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[m, n]));
        product(&x.read().view(), &y.read().view(), false, &Added::NONE, &out.write().view_mut(), 1).unwrap();
        let got = out.to_elements::<f32>();
        for i in 0..m as usize {
            for j in 0..n as usize {
                let want: f64 =
                    (0..k as usize).map(|p| a[i * k as usize + p] as f64 * b[p * n as usize + j] as f64).sum();
                let have = got[i * n as usize + j] as f64;
                assert!((want - have).abs() < 1e-4, "{m} {n} {k} at {i} {j}: {have} for {want}");
            }
        }
    }
}

#[test]
fn batches_broadcast_and_blend() {
    let a = RawTensor::from_slice(&[1i32, 2, 3, 4, 5, 6], &[3, 1, 2]);
    let b = RawTensor::from_slice(&[1i32, 0, 0, 1, 2, 0, 0, 2], &[2, 1, 2, 2].map(|x| x as i64));
    let c = RawTensor::from_slice(&[10i32, 20], &[2]);
    let out = RawTensor::zeros(DType::I32, Layout::contiguous(&[2, 3, 1, 2]));
    let c = c.read();
    let added = Added { c: Some(c.view()), beta: Scalar::Int(2), alpha: Scalar::Int(-1) };
    product(&a.read().view(), &b.read().view(), false, &added, &out.write().view_mut(), 2).unwrap();
    assert_eq!(out.to_elements::<i32>(), [19, 38, 17, 36, 15, 34, 18, 36, 14, 32, 10, 28]);
}

#[test]
fn an_empty_sum_is_zero_or_what_is_added() {
    let (a, b) = (
        RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 0])),
        RawTensor::zeros(DType::F32, Layout::contiguous(&[0, 2])),
    );
    let c = RawTensor::from_slice(&[1.0f32, 2.0], &[2]);
    let out = RawTensor::from_slice(&[9.0f32; 4], &[2, 2]);
    let c = c.read();
    let added = Added { c: Some(c.view()), beta: Scalar::Float(0.5), alpha: Scalar::Int(1) };
    product(&a.read().view(), &b.read().view(), false, &added, &out.write().view_mut(), 1).unwrap();
    assert_eq!(out.to_elements::<f32>(), [0.5, 1.0, 0.5, 1.0]);
}

#[test]
#[should_panic(expected = "too short")]
fn sizes_whose_products_wrap_are_refused() {
    let n = 1usize << 32;
    matmul::<f32>((n, n, n), (&[], false), (&[], false), &mut [], false, 1);
}

#[test]
fn operands_that_have_no_such_product_are_refused() {
    let zeros = |sizes: &[i64]| RawTensor::zeros(DType::F32, Layout::contiguous(sizes));
    for (a, b, b_t, out) in [
        // More rows than the operand has, fewer inner elements, other batches, other columns.
        (&[2, 1, 2][..], &[2, 2][..], false, &[4, 1, 2][..]),
        (&[2, 2], &[1, 2], false, &[2, 2]),
        (&[2, 2], &[2, 1], true, &[2, 2]),
        (&[3, 2, 2], &[2, 2, 2], false, &[3, 2, 2]),
        (&[2, 2], &[2, 2], false, &[2, 3]),
        (&[2, 2], &[2, 2], false, &[2]),
        (&[1, 2, 2], &[2, 2], false, &[2, 2, 2]),
        (&[2], &[3], false, &[]),
    ] {
        let (x, y, to) = (zeros(a), zeros(b), zeros(out));
        let done = product(&x.read().view(), &y.read().view(), b_t, &Added::NONE, &to.write().view_mut(), 1);
        assert!(done.is_err(), "{a:?} {b:?} {out:?}");
    }
}

#[test]
fn small_products_of_a_batch_have_the_bits_of_each_alone() {
    let items = 5usize;
    for (m, n, k) in (1..=5).flat_map(|m| (1..=5).flat_map(move |n| (1..=5).map(move |k| (m, n, k)))) {
        let (a, b) = (noise(items * m * k, 3), noise(items * k * n, 5));
        crate::support::isa::tests::on_each(|isa| {
            let mut want = vec![0f32; items * m * n];
            for i in 0..items {
                let (a, b) = (&a[i * m * k..][..m * k], &b[i * k * n..][..k * n]);
                matmul((m, n, k), (a, false), (b, false), &mut want[i * m * n..][..m * n], false, 1);
            }
            for how in 0..8 {
                let x = relaid(&a, &[items as i64, m as i64, k as i64], how);
                let y = relaid(&b, &[items as i64, k as i64, n as i64], how / 2 + how % 2 * 4);
                let out = relaid(&vec![0.0; want.len()], &[items as i64, m as i64, n as i64], how ^ 1);
                let (x, y) = (x.read(), y.read());
                product(&x.view(), &y.view(), false, &Added::NONE, &out.write().view_mut(), 2).unwrap();
                let bits = |v: Vec<f32>| v.into_iter().map(f32::to_bits).collect::<Vec<_>>();
                assert_eq!(bits(out.to_elements::<f32>()), bits(want.clone()), "{isa:?} {m} {n} {k} {how}");
            }
        });
    }
}

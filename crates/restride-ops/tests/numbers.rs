//! Numbers beside tensors of 16-bit floats. The expected results are those of eager PyTorch 2.15 on a CPU.

use crate::run::{Outcome, call, filled};
use restride_ir::{Arg, SampleArg, Scalar};
use restride_ops::lookup;
use restride_tensor::{DType, Layout, RawTensor};

/// A tensor whose elements are all `value`.
fn full(dtype: DType, sizes: &[i64], value: f64) -> RawTensor {
    let t = RawTensor::zeros(dtype, Layout::contiguous(sizes));
    let mut all = t.write();
    restride_kernels::support::convert::scatter(&vec![value; t.numel()], &all.view_mut());
    drop(all);
    t
}

fn first(name: &str, args: &[SampleArg]) -> f64 {
    let op = lookup(name).unwrap();
    match call(op, &filled(op, args).unwrap()).unwrap() {
        Outcome::Tensors(made) => made[0].get(&[1]).as_f64(),
        Outcome::Number(_) => panic!("{name} gives a number"),
    }
}

#[test]
fn factors_and_divisors_keep_their_precision_and_summands_do_not() {
    // 1.3 is 1.296875 in bf16.
    let number = || Arg::Scalar(Scalar::Float(1.3));
    let seven = || Arg::Value(full(DType::BF16, &[64], 7.0));
    assert_eq!(first("aten.mul.Scalar", &[seven(), number()]), 9.125);
    assert_eq!(first("aten.mul.Tensor", &[seven(), number()]), 9.125);
    assert_eq!(first("aten.div.Tensor", &[seven(), number()]), 5.375);
    assert_eq!(first("aten.div.Scalar", &[seven(), number()]), 5.375);
    for dtype in [DType::F32, DType::F64] {
        let number = || Arg::Value(full(dtype, &[], 1.3));
        assert_eq!(first("aten.mul.Tensor", &[seven(), number()]), 9.125);
        assert_eq!(first("aten.div.Tensor", &[seven(), number()]), 5.375);
        // The first operand has the element type of the result.
        assert_eq!(first("aten.mul.Tensor", &[number(), seven()]), 9.0625);
    }
    // PyTorch's loops over whole vectors; elements left over are rounded once more.
    let alpha = || Arg::Scalar(Scalar::Float(0.7));
    assert_eq!(first("aten.sub.Tensor", &[seven(), seven(), alpha()]), 2.109375);
    assert_eq!(first("aten.rsub.Tensor", &[seven(), seven(), alpha()]), 2.109375);
}

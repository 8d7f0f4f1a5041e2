//! Bits: `and`, `or`, `xor` and shifts.

use crate::pointwise::op;
use crate::pointwise::samples::*;
use crate::support::sample::{sample, tensor};
use restride_ir::{Layout, OpDef, Sample};
use restride_kernels::pointwise as k;
use restride_tensor::DType::*;

fn shifts() -> Vec<Sample> {
    [I64, I32, I8, U8]
        .into_iter()
        .map(|d| {
            let by: Vec<i64> = vec![0, 1, 3, 7];
            let by = restride_tensor::RawTensor::from_slice(&by, &[4]);
            let shift = restride_tensor::RawTensor::zeros(d, Layout::contiguous(&[4]));
            restride_kernels::support::convert::copy_convert(by.read().view(), &shift.write().view_mut());
            sample![tensor(d, &[3, 4], 1), shift]
        })
        .collect()
}
fn shift_numbers() -> Vec<Sample> {
    vec![sample![tensor(I64, &[3, 4], 1), 2], sample![tensor(I32, &[3], 1), 40], sample![tensor(U8, &[], 1), 1]]
}

fn swapped(types: Types) -> Vec<Sample> {
    let mut out = with_number(types);
    out.iter_mut().for_each(|s| s.args.swap(0, 1));
    out
}

pub(crate) static OPS: &[OpDef] = &[
    op!("aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", Same(0, 1), k::AND, || binary(BITS)),
    op!("aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", Same(0, 1), k::AND, || with_number(BITS)),
    op!("aten::bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Same(0, 1), k::AND, || swapped(BITS)),
    op!("aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", Same(0, 1), k::OR, || binary(BITS)),
    op!("aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", Same(0, 1), k::OR, || with_number(BITS)),
    op!("aten::bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Same(0, 1), k::OR, || swapped(BITS)),
    op!("aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", Same(0, 1), k::XOR, || binary(BITS)),
    op!("aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor", Same(0, 1), k::XOR, || with_number(BITS)),
    op!("aten::bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Same(0, 1), k::XOR, || swapped(BITS)),
    op!("aten::__and__.Tensor(Tensor self, Tensor other) -> Tensor", Same(0, 1), k::AND, || binary(BITS)),
    op!("aten::__and__.Scalar(Tensor self, Scalar other) -> Tensor", Same(0, 1), k::AND, || with_number(BITS)),
    op!("aten::__or__.Tensor(Tensor self, Tensor other) -> Tensor", Same(0, 1), k::OR, || binary(BITS)),
    op!("aten::__or__.Scalar(Tensor self, Scalar other) -> Tensor", Same(0, 1), k::OR, || with_number(BITS)),
    op!("aten::__xor__.Tensor(Tensor self, Tensor other) -> Tensor", Same(0, 1), k::XOR, || binary(BITS)),
    op!("aten::__xor__.Scalar(Tensor self, Scalar other) -> Tensor", Same(0, 1), k::XOR, || with_number(BITS)),
    op!("aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", NoBool(0, 1), k::SHIFT_LEFT, shifts),
    op!(
        "aten::bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
        NoBool(0, 1),
        k::SHIFT_LEFT,
        shift_numbers
    ),
    op!("aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", NoBool(0, 1), k::SHIFT_RIGHT, shifts),
    op!(
        "aten::bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
        NoBool(0, 1),
        k::SHIFT_RIGHT,
        shift_numbers
    ),
    op!("aten::__lshift__.Tensor(Tensor self, Tensor other) -> Tensor", NoBool(0, 1), k::SHIFT_LEFT, shifts),
    op!("aten::__lshift__.Scalar(Tensor self, Scalar other) -> Tensor", NoBool(0, 1), k::SHIFT_LEFT, shift_numbers),
    op!("aten::__rshift__.Tensor(Tensor self, Tensor other) -> Tensor", NoBool(0, 1), k::SHIFT_RIGHT, shifts),
    op!("aten::__rshift__.Scalar(Tensor self, Scalar other) -> Tensor", NoBool(0, 1), k::SHIFT_RIGHT, shift_numbers),
];

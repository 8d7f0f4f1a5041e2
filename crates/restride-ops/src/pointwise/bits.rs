//! Bitwise `and`, `or`, `xor` and shifts.

use crate::pointwise::{op, row_form_ask};
use restride_ir::OpDef;
use restride_kernels::pointwise as k;

pub(crate) static OPS: &[OpDef] = table![
    op!("bitwise_and.Tensor", Same(0, 1), k::AND, || binary(BITS)).in_rows(|a, _| row_form_ask(
        a,
        &[0, 1],
        &k::LOGICAL_AND
    )),
    op!("bitwise_and.Scalar", Same(0, 1), k::AND, || with_number(BITS)),
    op!("bitwise_and.Scalar_Tensor", Same(0, 1), k::AND, || swapped(BITS)),
    op!("bitwise_or.Tensor", Same(0, 1), k::OR, || binary(BITS)).in_rows(|a, _| row_form_ask(
        a,
        &[0, 1],
        &k::LOGICAL_OR
    )),
    op!("bitwise_or.Scalar", Same(0, 1), k::OR, || with_number(BITS)),
    op!("bitwise_or.Scalar_Tensor", Same(0, 1), k::OR, || swapped(BITS)),
    op!("bitwise_xor.Tensor", Same(0, 1), k::XOR, || binary(BITS)).in_rows(|a, _| row_form_ask(
        a,
        &[0, 1],
        &k::LOGICAL_XOR
    )),
    op!("bitwise_xor.Scalar", Same(0, 1), k::XOR, || with_number(BITS)),
    op!("bitwise_xor.Scalar_Tensor", Same(0, 1), k::XOR, || swapped(BITS)),
    op!("bitwise_left_shift.Tensor", NoBool(0, 1), k::SHIFT_LEFT, shifts),
    op!("bitwise_left_shift.Tensor_Scalar", NoBool(0, 1), k::SHIFT_LEFT, shift_numbers),
    op!("bitwise_right_shift.Tensor", NoBool(0, 1), k::SHIFT_RIGHT, shifts),
    op!("bitwise_right_shift.Tensor_Scalar", NoBool(0, 1), k::SHIFT_RIGHT, shift_numbers),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::pointwise::samples::*;
    pub(super) use crate::support::samples::*;
    use restride_tensor::DType::*;

    pub(crate) fn shifts() -> Vec<Sample> {
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

    pub(crate) fn shift_numbers() -> Vec<Sample> {
        vec![sample![tensor(I64, &[3, 4], 1), 2], sample![tensor(I32, &[3], 1), 40], sample![tensor(U8, &[], 1), 1]]
    }

    pub(crate) fn swapped(types: Types) -> Vec<Sample> {
        let mut out = with_number(types);
        out.iter_mut().for_each(|s| s.args.swap(0, 1));
        out
    }
}

//! Narrow integers in their own type: as many fit a vector, and what wraps is the same.

use super::{Input, Pointwise, PointwiseError, Predicate, RowFn, drive};
use crate::pointwise::drive::{Answer, RowType};
use crate::support::convert::round_scalar;
use crate::support::isa;
use restride_tensor::{DType, Scalar, View, ViewMut};
use smallvec::SmallVec;

/// A cell of a `bool` tensor.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(transparent)]
pub struct TruthByte(u8);

impl TruthByte {
    /// Whether it is true: not zero.
    #[inline(always)]
    pub fn holds(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for TruthByte {
    #[inline(always)]
    fn from(x: bool) -> TruthByte {
        TruthByte(u8::from(x))
    }
}

/// A row function for each type of narrow integers that is common: for each there are copies for instruction sets.
#[derive(Clone, Copy)]
pub struct NarrowRows {
    /// For `bool`.
    pub truth: RowFn<TruthByte>,
    /// For `u8`.
    pub u8: RowFn<u8>,
    /// For `i32`.
    pub i32: RowFn<i32>,
    /// Whether bytes with a sign give the same bits as bytes without one: `i8` is computed as `u8` then.
    pub signless: bool,
}

/// [`NarrowRows`] of a question.
#[derive(Clone, Copy)]
pub struct NarrowAnswers {
    /// For `bool`.
    pub truth: RowFn<TruthByte>,
    /// For `u8`.
    pub u8: RowFn<u8, bool>,
    /// For `i32`.
    pub i32: RowFn<i32, bool>,
    /// As [`NarrowRows::signless`].
    pub signless: bool,
}

/// Computes in the element type itself, if the operator can and nothing is to be converted.
pub(super) fn compute(
    op: &Pointwise,
    common: DType,
    inputs: &[Input<'_>],
    out: &ViewMut<'_>,
    threads: usize,
) -> Option<Result<(), PointwiseError>> {
    let rows = op.narrow.filter(|_| out.dtype() == common && fits(common, inputs))?;
    match common {
        DType::Bool => Some(drive_rows::<TruthByte, TruthByte>(common, inputs, out, threads, rows.truth)),
        DType::U8 => Some(drive_rows::<u8, u8>(common, inputs, out, threads, rows.u8)),
        DType::I32 => Some(drive_rows::<i32, i32>(common, inputs, out, threads, rows.i32)),
        DType::I8 if rows.signless => {
            // SAFETY: the same bytes, which are numbers of either type.
            let out = unsafe { ViewMut::from_raw(out.base(), DType::U8, out.layout()) };
            Some(drive_rows::<u8, u8>(DType::U8, &without_signs(inputs), &out, threads, rows.u8))
        }
        _ => None,
    }
}

/// As [`compute`], of a question.
pub(super) fn decide(
    op: &Predicate,
    common: DType,
    inputs: &[Input<'_>],
    out: &ViewMut<'_>,
    threads: usize,
) -> Option<Result<(), PointwiseError>> {
    let rows = op.narrow.filter(|_| fits(common, inputs))?;
    match common {
        DType::Bool if out.dtype() == DType::Bool => {
            Some(drive_rows::<TruthByte, TruthByte>(common, inputs, out, threads, rows.truth))
        }
        DType::U8 => Some(drive_rows::<u8, bool>(common, inputs, out, threads, rows.u8)),
        DType::I32 => Some(drive_rows::<i32, bool>(common, inputs, out, threads, rows.i32)),
        DType::I8 if rows.signless => {
            Some(drive_rows::<u8, bool>(DType::U8, &without_signs(inputs), out, threads, rows.u8))
        }
        _ => None,
    }
}

/// Operands of bytes with a sign as bytes without one.
fn without_signs<'a>(inputs: &[Input<'a>]) -> SmallVec<[Input<'a>; 5]> {
    // SAFETY: the same bytes, which are numbers of either type.
    let unsigned = |v: &View<'a>| unsafe { View::from_raw(v.base(), DType::U8, v.layout()) };
    let of = |x: &Input<'a>| match x {
        Input::View(v) => Input::View(unsigned(v)),
        Input::Mask(v) => Input::Mask(unsigned(v)),
        Input::Number(s) => Input::Number(Scalar::Int(i64::from(round_scalar::<i64>(DType::I8, *s) as u8))),
        // As a row's type holds it.
        Input::Parameter(s) => Input::Parameter(*s),
    };
    inputs.iter().map(of).collect()
}

fn drive_rows<T: RowType, R: Answer>(
    common: DType,
    inputs: &[Input<'_>],
    out: &ViewMut<'_>,
    threads: usize,
    f: RowFn<T, R>,
) -> Result<(), PointwiseError> {
    drive::<T, R>(common, inputs, out, threads, &|xs, o| {
        f(xs, o);
        Ok(())
    })
}

/// Whether all operands are of this type, and parameters are numbers of it; and there are vectors to compute them in.
fn fits(common: DType, inputs: &[Input<'_>]) -> bool {
    isa::has_vectors()
        && inputs.iter().all(|x| match x {
            Input::View(v) | Input::Mask(v) => v.dtype() == common,
            Input::Number(_) => true,
            Input::Parameter(Scalar::Bool(_)) => true,
            Input::Parameter(s @ Scalar::Int(i)) => round_scalar::<i64>(common, *s) == *i,
            Input::Parameter(_) => false,
        })
}

macro_rules! narrow_types {
    ($($t:ty, $dtype:ident, |$x:ident| $from:expr;)*) => {$(
        impl RowType for $t {
            const ELEMENT: DType = DType::$dtype;
            unsafe fn load(_: DType, base: *const u8, offset: isize, stride: isize, out: &mut [$t]) {
                let from = base.cast::<$t>().wrapping_offset(offset);
                for (i, o) in out.iter_mut().enumerate() {
                    // SAFETY: the caller's promise; `fits` has seen that the elements are of this type.
                    *o = unsafe { from.wrapping_offset(i as isize * stride).read() };
                }
            }
            fn number(common: DType, s: Scalar) -> $t {
                let $x = round_scalar::<i64>(common, s);
                $from
            }
            fn parameter(s: Scalar) -> $t {
                let $x = s.as_i64();
                $from
            }
            fn round(_: DType, _: &mut [$t]) {}
        }

        impl Answer for $t {
            const CELLS: Option<DType> = Some(DType::$dtype);
            unsafe fn store(_: DType, base: *mut u8, offset: isize, stride: isize, row: &[$t]) {
                let to = base.cast::<$t>().wrapping_offset(offset);
                for (i, &x) in row.iter().enumerate() {
                    // SAFETY: the caller's promise; `compute` and `decide` have seen that the result is of this type.
                    unsafe { to.wrapping_offset(i as isize * stride).write(x) };
                }
            }
        }
    )*};
}
narrow_types! {
    TruthByte, Bool, |x| TruthByte::from(x != 0);
    u8, U8, |x| x as u8;
    i32, I32, |x| x as i32;
}

#[cfg(test)]
mod tests {
    use super::fits;
    use crate::pointwise::*;
    use crate::support::convert::{copy_convert, gather};
    use restride_tensor::{Layout, RawTensor};

    const TYPES: [DType; 5] = [DType::Bool, DType::U8, DType::I8, DType::I16, DType::I32];

    /// Through layouts of every kind: what the narrow types give is what 64 bits give.
    #[test]
    fn narrow_integers_are_computed_as_wide_ones_are() {
        let n = 300i64;
        let data = |seed: i64| -> Vec<i64> {
            let ends = [0, 1, -1, 127, 128, -128, 255, 32767, -32768, i64::from(i32::MAX), i64::from(i32::MIN)];
            (0..2 * n).map(|i| if i % 3 == 0 { ends[((i + seed) % 11) as usize] } else { i * seed * 7919 }).collect()
        };
        let tensor = |seed: i64, dtype: DType, layout: Layout| {
            let out = RawTensor::zeros(dtype, layout);
            copy_convert(RawTensor::from_slice(&data(seed), &[2, n]).read().view(), &out.write().view_mut());
            out
        };
        let (rows, columns) = (Layout::contiguous(&[2, n]), Layout::permuted(&[2, n], &[1, 0]));
        for dtype in TYPES {
            for [left, right, result] in [[&rows, &rows, &rows], [&rows, &columns, &rows], [&columns, &rows, &columns]]
            {
                let (a, b) = (tensor(1, dtype, left.clone()), tensor(5, dtype, right.clone()));
                let (a, b) = (a.read(), b.read());
                let [a, b] = [Input::View(a.view()), Input::View(b.view())];
                let three = Input::Number(Scalar::Int(3));
                let one = Input::Parameter(Scalar::Int(1));
                let large = Input::Parameter(Scalar::Int(1 << 40));
                let check = |run: &dyn Fn(&ViewMut<'_>, bool), of: DType| {
                    let outs = [false, true].map(|narrow| {
                        let out = RawTensor::zeros(of, result.clone());
                        run(&out.write().view_mut(), narrow);
                        gather::<i64>(out.read().view()).to_vec()
                    });
                    assert_eq!(outs[0], outs[1], "{dtype}");
                };
                for op in [&ADD, &SUB, &MUL, &AND, &OR, &XOR, &MAXIMUM, &MINIMUM] {
                    for inputs in [&[a, b], &[a, three], &[three, b]] {
                        check(
                            &|out, narrow| {
                                let own = Pointwise { narrow: op.narrow.filter(|_| narrow), ..*op };
                                compute(&own, dtype, inputs, out, 1).unwrap();
                            },
                            dtype,
                        );
                        assert!(op.narrow.is_some() && fits(dtype, inputs));
                    }
                }
                for op in [&ADD_SCALED, &SUB_SCALED, &RSUB] {
                    for alpha in [one, large] {
                        check(
                            &|out, narrow| {
                                let own = Pointwise { narrow: op.narrow.filter(|_| narrow), ..*op };
                                compute(&own, dtype, &[a, b, alpha], out, 1).unwrap();
                            },
                            dtype,
                        );
                    }
                    assert!(!fits(dtype, &[large]));
                }
                for op in [&EQ, &NE, &LT, &LE, &GT, &GE, &LOGICAL_AND, &LOGICAL_OR, &LOGICAL_XOR] {
                    for of in [DType::Bool, DType::I16] {
                        for inputs in [&[a, b], &[a, three]] {
                            check(
                                &|out, narrow| {
                                    let own = Predicate { narrow: op.narrow.filter(|_| narrow), ..*op };
                                    decide(&own, dtype, inputs, out, 1).unwrap();
                                },
                                of,
                            );
                            assert!(op.narrow.is_some());
                        }
                    }
                }
            }
        }
    }
}

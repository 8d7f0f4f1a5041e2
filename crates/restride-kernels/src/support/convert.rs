//! Element conversion: strided rows of any element type to and from contiguous buffers of a compute type.
//!
//! Kernels compute in five types only ([`Kind`]): `i64` for `bool` and all integers (wrapping when stored), `f32` for
//! the half types and `f32`, `f64`, and the two complex types. So conversions and operators add up instead of
//! multiplying. Conversions are PyTorch's on the CPU: floats are cut towards zero, `bool` is "not zero", a complex
//! number loses its imaginary part, narrower floats round to nearest even, narrower integers wrap.

use crate::support::halves::{from_brain, from_half, to_brain, to_half};
use crate::support::isa;
use crate::support::scratch::Temp;
use restride_tensor::{C32, C64, DType, Scalar, View, ViewMut, bf16, f16};

use crate::support::rows::{Rows, may_share};
use crate::support::runs;
use crate::support::stack::Stack;

pub use crate::support::compute::{Compute, Kind};

/// A cell of memory, and its conversion to a number and back.
trait Cell: Copy {
    /// Whether conversions of neighbours are compiled for vectors.
    const VECTORS: bool;
    fn load<C: Compute>(self) -> C;
    fn store<C: Compute>(x: C) -> Self;
}

/// A cell of a `bool` tensor.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Bool8(u8);

macro_rules! cells {
    ($($t:ty, $vectors:literal: |$s:ident| $load:expr, |$x:ident| $store:expr;)*) => {$(
        impl Cell for $t {
            const VECTORS: bool = $vectors;
            #[inline(always)]
            fn load<C: Compute>(self) -> C { let $s = self; $load }
            #[inline(always)]
            fn store<C: Compute>($x: C) -> Self { $store }
        }
    )*};
}
cells! {
    Bool8, true: |s| C::from_i32((s.0 != 0) as i32), |x| Bool8(x.truth() as u8);
    u8, true: |s| C::from_i32(s as i32), |x| x.to_byte();
    i8, true: |s| C::from_i32(s as i32), |x| x.to_i32() as i8;
    i16, true: |s| C::from_i32(s as i32), |x| x.to_i32() as i16;
    i32, true: |s| C::from_i32(s), |x| x.to_i32();
    i64, true: |s| C::from_i64(s), |x| x.to_i64();
    f16, false: |s| C::from_f32(s.to_f32()), |x| f16::from_f32(x.to_f32());
    bf16, false: |s| C::from_f32(s.to_f32()), |x| bf16::from_f32(x.to_f32());
    f32, true: |s| C::from_f32(s), |x| x.to_f32();
    f64, true: |s| C::from_f64(s), |x| x.to_f64();
    C32, false: |s| C::from_c32(s), |x| x.to_c32();
    C64, false: |s| C::from_c64(s), |x| x.to_c64();
}

/// Runs `$body` with `$T` the cell type of an element type.
macro_rules! with_cell {
    ($dtype:expr, $T:ident, $body:expr) => {
        with_type!($dtype, $T, $body, DType::Bool => Bool8, DType::U8 => u8, DType::I8 => i8, DType::I16 => i16,
            DType::I32 => i32, DType::I64 => i64, DType::F16 => f16, DType::BF16 => bf16, DType::F32 => f32,
            DType::F64 => f64, DType::C64 => C32, DType::C128 => C64)
    };
}

/// Runs `$body` with `$W` an integer of an element's size.
macro_rules! with_word {
    ($dtype:expr, $W:ident => $body:expr) => {
        $crate::support::convert::with_type!($dtype.size(), $W, $body, 1 => u8, 2 => u16, 4 => u32, 8 => u64, _ => [u64; 2])
    };
}
pub(crate) use with_word;

/// Runs `$body` with `$T` the type that matches.
macro_rules! with_type {
    ($of:expr, $T:ident, $body:expr, $($pattern:pat => $own:ty),*) => {
        match $of {
            $($pattern => {
                type $T = $own;
                $body
            })*
        }
    };
}
pub(crate) use with_type;

/// Reads `out.len()` elements of type `dtype`, the first at element `offset` from `base`, each `stride` elements
/// after the one before, converted.
///
/// # Safety
/// Those elements are initialised memory, aligned for their type.
pub unsafe fn load_row<C: Compute>(dtype: DType, base: *const u8, offset: isize, stride: isize, out: &mut [C]) {
    if stride == 1 {
        if dtype == C::DTYPE {
            // SAFETY: as the caller promises.
            return unsafe { (base as *const C).wrapping_offset(offset).copy_to(out.as_mut_ptr(), out.len()) };
        }
        if let Some(out) = singles_mut(out) {
            match dtype {
                DType::F16 => {
                    // SAFETY: as the caller promises.
                    return from_half(unsafe { halves_at::<f16>(base, offset, out.len()) }, out);
                }
                DType::BF16 => {
                    // SAFETY: as the caller promises.
                    return from_brain(unsafe { halves_at::<bf16>(base, offset, out.len()) }, out);
                }
                _ => {}
            }
        }
    }
    if let (2 | 4, DType::F32, Some(out)) = (stride, dtype, singles_mut(out)) {
        let src = (base as *const f32).wrapping_offset(offset);
        return match stride {
            2 => isa::run(LoadedCells::<f32, f32, 2>(src, out)),
            _ => isa::run(LoadedCells::<f32, f32, 4>(src, out)),
        };
    }
    with_cell!(dtype, T, {
        // SAFETY: as the caller promises.
        unsafe { load_cells::<T, C>((base as *const T).wrapping_offset(offset), stride, out) }
    })
}

/// As [`load_row`], of singles: compiled here, for speed, and not where it is called.
///
/// # Safety
/// As [`load_row`].
pub unsafe fn load_singles(dtype: DType, base: *const u8, offset: isize, stride: isize, out: &mut [f32]) {
    // SAFETY: as the caller promises.
    unsafe { load_row(dtype, base, offset, stride, out) }
}

/// As [`store_row`], of singles: compiled here, for speed, and not where it is called.
///
/// # Safety
/// As [`store_row`].
pub unsafe fn store_singles(dtype: DType, base: *mut u8, offset: isize, stride: isize, row: &[f32]) {
    // SAFETY: as the caller promises.
    unsafe { store_row(dtype, base, offset, stride, row) }
}

/// Fills a row with one number.
pub fn fill_singles(row: &mut [f32], x: f32) {
    isa::run(Filled(x, row));
}

/// Writes a buffer into elements of type `dtype`, converted; offsets and strides as in [`load_row`].
///
/// # Safety
/// Those elements may be written and are aligned for their type.
pub unsafe fn store_row<C: Compute>(dtype: DType, base: *mut u8, offset: isize, stride: isize, row: &[C]) {
    if stride == 1 {
        if dtype == C::DTYPE {
            // SAFETY: as the caller promises.
            return unsafe { row.as_ptr().copy_to((base as *mut C).wrapping_offset(offset), row.len()) };
        }
        if let Some(row) = singles(row)
            && matches!(dtype, DType::F16 | DType::BF16)
        {
            if row.is_empty() {
                return;
            }
            let to = (base as *mut u16).wrapping_offset(offset);
            // SAFETY: as the caller promises; the row is in memory of its own, which no tensor shares.
            let narrow = unsafe { std::slice::from_raw_parts_mut(to, row.len()) };
            match dtype {
                DType::F16 => to_half(row, narrow),
                _ => to_brain(row, narrow),
            }
            return;
        }
    }
    if let (2 | 4, DType::F32, Some(row)) = (stride, dtype, singles(row)) {
        let dst = (base as *mut f32).wrapping_offset(offset);
        return match stride {
            2 => isa::run(StoredCells::<f32, f32, 2>(dst, row)),
            _ => isa::run(StoredCells::<f32, f32, 4>(dst, row)),
        };
    }
    with_cell!(dtype, T, {
        // SAFETY: as the caller promises.
        unsafe { store_cells::<T, C>((base as *mut T).wrapping_offset(offset), stride, row) }
    })
}

/// A row of the compute type `f32`, if it is one.
pub(crate) fn singles_mut<C: Compute>(row: &mut [C]) -> Option<&mut [f32]> {
    // SAFETY: the compute type of this kind is `f32`.
    (C::KIND == Kind::F32).then(|| unsafe { &mut *(std::ptr::from_mut(row) as *mut [f32]) })
}

/// As [`singles_mut`].
fn singles<C: Compute>(row: &[C]) -> Option<&[f32]> {
    // SAFETY: as above.
    (C::KIND == Kind::F32).then(|| unsafe { &*(std::ptr::from_ref(row) as *const [f32]) })
}

/// # Safety
/// As [`load_row`], with elements of type `T`.
unsafe fn halves_at<'a, T>(base: *const u8, offset: isize, n: usize) -> &'a [T] {
    // SAFETY: the caller's promise; an empty row may have any address.
    if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts((base as *const T).wrapping_offset(offset), n) } }
}

/// One number, as often as the row is long.
struct Filled<'a, C>(C, &'a mut [C]);
impl<C: Compute> isa::Work for Filled<'_, C> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        self.1.fill(self.0);
    }
}

/// Reads cells as numbers, each `STRIDE` behind the one before. Whoever makes one promises that these cells are readable.
struct LoadedCells<'a, T, C, const STRIDE: usize>(*const T, &'a mut [C]);
impl<T: Cell, C: Compute, const STRIDE: usize> isa::Work for LoadedCells<'_, T, C, STRIDE> {
    type Out = ();
    const VECTORS: bool = T::VECTORS && matches!(C::KIND, Kind::Int | Kind::F32 | Kind::F64);
    const WIDEST: bool = STRIDE == 1;
    #[inline(always)]
    fn run(self) {
        for (i, o) in self.1.iter_mut().enumerate() {
            // SAFETY: [`load_row`] has the caller's promise that every element of the row is readable.
            *o = unsafe { self.0.add(i * STRIDE).read() }.load();
        }
    }
}

/// Writes numbers to cells, each `STRIDE` behind the one before. Whoever makes one promises that these cells may be written.
struct StoredCells<'a, T, C, const STRIDE: usize>(*mut T, &'a [C]);
impl<T: Cell, C: Compute, const STRIDE: usize> isa::Work for StoredCells<'_, T, C, STRIDE> {
    type Out = ();
    const VECTORS: bool = T::VECTORS && matches!(C::KIND, Kind::Int | Kind::F32 | Kind::F64);
    const WIDEST: bool = STRIDE == 1;
    #[inline(always)]
    fn run(self) {
        let write = |i: usize, x: C| {
            // SAFETY: [`store_row`] has the caller's promise that every element of the row may be written.
            unsafe { self.0.add(i * STRIDE).write(T::store(x)) }
        };
        // Eight at a time: no vectors are written to cells that are apart.
        let (chunks, rest) = if STRIDE == 1 { (&[][..], self.1) } else { self.1.as_chunks::<8>() };
        for (at, chunk) in chunks.iter().enumerate() {
            for (i, x) in chunk.iter().enumerate() {
                write(at * 8 + i, *x);
            }
        }
        rest.iter().enumerate().for_each(|(i, x)| write(chunks.len() * 8 + i, *x));
    }
}

/// # Safety
/// As [`load_row`].
unsafe fn load_cells<T: Cell, C: Compute>(src: *const T, stride: isize, out: &mut [C]) {
    match stride {
        0 if !out.is_empty() => {
            // SAFETY: the caller promises that every element of the row is readable; index arithmetic wraps only for
            // elements that are not read.
            isa::run(Filled(unsafe { src.read() }.load(), out));
        }
        1 => isa::run(LoadedCells::<T, C, 1>(src, out)),
        _ => {
            for (i, o) in out.iter_mut().enumerate() {
                // SAFETY: as above.
                *o = unsafe { src.wrapping_offset(i as isize * stride).read() }.load();
            }
        }
    }
}

/// # Safety
/// As [`store_row`].
unsafe fn store_cells<T: Cell, C: Compute>(dst: *mut T, stride: isize, row: &[C]) {
    if stride == 1 {
        isa::run(StoredCells::<T, C, 1>(dst, row));
    } else {
        for (i, &x) in row.iter().enumerate() {
            // SAFETY: the caller promises that every element of the row may be written.
            unsafe { dst.wrapping_offset(i as isize * stride).write(T::store(x)) };
        }
    }
}

/// Rounds numbers to an element type: their values after storing and loading.
pub fn round_through<C: Compute>(dtype: DType, row: &mut [C]) {
    if holds(dtype, C::DTYPE) {
        return;
    }
    with_cell!(dtype, T, {
        for x in row {
            *x = T::store(*x).load();
        }
    })
}

/// One number as an element type would hold it.
pub fn round_scalar<C: Compute>(dtype: DType, s: Scalar) -> C {
    let x = match s {
        // Through the widest type first: one rounding, by the element type.
        Scalar::Int(_) | Scalar::Bool(_) => with_cell!(dtype, T, T::store::<i64>(s.as_i64()).load()),
        Scalar::Float(x) => with_cell!(dtype, T, T::store::<f64>(x).load()),
        Scalar::Complex(z) => with_cell!(dtype, T, T::store::<C64>(z).load()),
    };
    let mut row = [x];
    round_through(dtype, &mut row);
    row[0]
}

/// The bytes of one number as an element of a type, which begin where the words do.
pub(crate) fn element(dtype: DType, s: Scalar) -> [u64; 2] {
    let mut words = [0u64; 2];
    // SAFETY: sixteen aligned bytes hold an element of every type.
    crate::support::pack::with_compute!(any dtype, C => unsafe {
        store_row(dtype, words.as_mut_ptr().cast(), 0, 1, &[C::from_scalar(s)]);
    });
    words
}

/// Whether every value of `of` is one of `dtype`.
fn holds(dtype: DType, of: DType) -> bool {
    dtype == of || (dtype != DType::Bool && dtype.promote(of) == dtype && (of.is_float() || of.is_complex()))
}

/// The elements of a view in logical order, converted.
pub fn gather<C: Compute>(src: View<'_>) -> Temp<C> {
    let mut out = Temp::filled(src.numel(), C::default());
    gather_into(src, &mut out);
    out
}

/// As [`gather`], into a buffer of `src.numel()` elements.
///
/// # Panics
/// If the buffer has another length.
pub fn gather_into<C: Compute>(src: View<'_>, out: &mut [C]) {
    assert_eq!(out.len(), src.numel(), "a gather fills its buffer");
    let rows = Rows::logical(&[src.layout()]);
    let mut rest = out;
    rows.for_each(|at| {
        let (row, tail) = std::mem::take(&mut rest).split_at_mut(rows.len());
        // SAFETY: the offsets are of elements of the view, which is readable.
        unsafe { load_row(src.dtype(), src.base(), at[0], rows.stride(0), row) };
        rest = tail;
    });
}

/// Writes elements in logical order, converted.
///
/// # Panics
/// If their number is not `dst.numel()`.
pub fn scatter<C: Compute>(data: &[C], dst: &ViewMut<'_>) {
    assert_eq!(data.len(), dst.numel(), "a scatter fills its target");
    let rows = Rows::logical(&[dst.layout()]);
    let mut rest = data;
    rows.for_each(|at| {
        let (row, tail) = rest.split_at(rows.len());
        // SAFETY: the offsets are of elements of the view, which is writable.
        unsafe { store_row(dst.dtype(), dst.base(), at[0], rows.stride(0), row) };
        rest = tail;
    });
}

/// Elements that a row is cut into: small enough for the first cache, long enough to hide the calls.
pub const CHUNK: usize = 1024;

/// Copies all elements, converting where the element types differ. Sizes are equal. The two must not overlap,
/// unless they put each index in the same cell. Where several indices share a cell of `dst`, the last in logical
/// order stays.
///
/// # Panics
/// If the sizes differ.
pub fn copy_convert(src: View<'_>, dst: &ViewMut<'_>) {
    assert_eq!(src.sizes(), dst.sizes(), "a copy is between equal sizes");
    if src.dtype() == dst.dtype() {
        return copy_same(src, dst);
    }
    match Kind::of(src.dtype()) {
        Kind::Int => copy_as::<i64>(src, dst),
        Kind::F32 => copy_as::<f32>(src, dst),
        Kind::F64 => copy_as::<f64>(src, dst),
        Kind::C32 => copy_as::<C32>(src, dst),
        Kind::C64 => copy_as::<C64>(src, dst),
    }
}

// By itself for each type: the rooms of all of them are not touched then.
#[inline(never)]
fn copy_as<C: Compute>(src: View<'_>, dst: &ViewMut<'_>) {
    let rows = Rows::any_order(&[dst.layout(), src.layout()]);
    let apart = !may_share(&src, dst);
    let as_they_are = apart && src.dtype() == C::DTYPE && rows.stride(1) == 1;
    let in_place = apart && dst.dtype() == C::DTYPE && rows.stride(0) == 1;
    let mut buffer = Stack::<C, CHUNK>::new();
    let buffer = buffer.filled(rows.len().min(CHUNK), C::default());
    rows.for_each(|at| {
        for start in (0..rows.len()).step_by(CHUNK) {
            let row = &mut buffer[..CHUNK.min(rows.len() - start)];
            let (to, from) = (at[0] + start as isize * rows.stride(0), at[1] + start as isize * rows.stride(1));
            if as_they_are {
                // SAFETY: as below; the cells of a row are neighbours, and the result has none of them.
                unsafe {
                    let row = std::slice::from_raw_parts((src.base() as *const C).wrapping_offset(from), row.len());
                    store_row(dst.dtype(), dst.base(), to, rows.stride(0), row);
                }
                continue;
            }
            if in_place {
                // SAFETY: as below; the cells of a row are neighbours, and the source has none of them.
                unsafe {
                    let row = std::slice::from_raw_parts_mut((dst.base() as *mut C).wrapping_offset(to), row.len());
                    load_row(src.dtype(), src.base(), from, rows.stride(1), row);
                }
                continue;
            }
            // SAFETY: the offsets are of elements of the views, by the walk over their layouts.
            unsafe {
                load_row(src.dtype(), src.base(), from, rows.stride(1), row);
                store_row(dst.dtype(), dst.base(), to, rows.stride(0), row);
            }
        }
    });
}

fn copy_same(src: View<'_>, dst: &ViewMut<'_>) {
    with_word!(src.dtype(), W => copy_words::<W>(src, dst))
}

fn copy_words<W: Copy>(src: View<'_>, dst: &ViewMut<'_>) {
    let mut rows = Rows::any_order(&[dst.layout(), src.layout()]);
    let (to_step, from_step) = (rows.stride(0), rows.stride(1));
    if to_step == 1
        && !matches!(from_step, 0 | 1)
        && Rows::apart(dst.layout())
        && let Some((across, [across_to, _])) = rows.take_neighbours()
    {
        return rows.for_each(|at| {
            let to = (dst.base() as *mut W).wrapping_offset(at[0]);
            let from = (src.base() as *const W).wrapping_offset(at[1]);
            // SAFETY: the rows of the walk, each at every index of the dimension that was taken out of it.
            unsafe { runs::transpose(from, from_step, to, across_to, [across, rows.len()]) };
        });
    }
    if to_step == 1
        && rows.len() <= runs::SHORT_ROW
        && let Some((count, steps)) = rows.take_nearest()
    {
        return rows.for_each(|at| {
            let to = (dst.base() as *mut W).wrapping_offset(at[0]);
            let from = (src.base() as *const W).wrapping_offset(at[1]);
            // SAFETY: the rows of the walk, each at every index of the dimension that was taken out of it.
            unsafe { runs::short_rows([count, rows.len()], (from, steps[1], from_step), (to, steps[0])) };
        });
    }
    rows.for_each(|at| {
        let to = (dst.base() as *mut W).wrapping_offset(at[0]);
        let from = (src.base() as *const W).wrapping_offset(at[1]);
        // SAFETY: every element of both rows is a cell of its view, of `W`'s size and at least `W`'s alignment; an operand that is
        // its own result is copied cell by cell.
        unsafe { runs::copy_row(from, from_step, to, to_step, rows.len()) };
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{Layout, RawTensor};

    #[test]
    fn every_type_takes_small_numbers_from_every_type() {
        let numbers = RawTensor::from_slice(&[0i64, 1, 2, 3, 100, 1], &[2, 3]);
        for a in DType::ALL {
            let first = RawTensor::zeros(a, Layout::contiguous(&[2, 3]));
            copy_convert(numbers.read().view(), &first.write().view_mut());
            for b in DType::ALL {
                // Through a transposed target, so that rows are strided.
                let second = RawTensor::zeros(b, Layout::permuted(&[2, 3], &[1, 0]));
                copy_convert(first.read().view(), &second.write().view_mut());
                let want = numbers
                    .to_elements::<i64>()
                    .into_iter()
                    .map(|x| if a == DType::Bool || b == DType::Bool { (x != 0) as i64 } else { x });
                assert_eq!(gather::<i64>(second.read().view())[..], want.collect::<Vec<_>>(), "{a} to {b}");
            }
        }
    }

    #[test]
    fn casts_are_those_of_the_cpu() {
        let cast = |x: f64, to: DType| {
            let (a, b) = (RawTensor::from_slice(&[x], &[1]), RawTensor::zeros(to, Layout::contiguous(&[1])));
            copy_convert(a.read().view(), &b.write().view_mut());
            b.get(&[0])
        };
        assert_eq!(cast(-2.9, DType::I32), Scalar::Int(-2));
        assert_eq!(cast(300.7, DType::U8), Scalar::Int(44));
        assert_eq!(cast(-1.0, DType::U8), Scalar::Int(255));
        assert_eq!(cast(0.25, DType::Bool), Scalar::Bool(true));
        assert_eq!(cast(f64::NAN, DType::Bool), Scalar::Bool(true));
        assert_eq!(cast(1.0 + 1.0 / 256.0, DType::BF16), Scalar::Float(1.0));
        assert_eq!(cast(1.0 + 3.0 / 256.0, DType::BF16), Scalar::Float(1.015625));
        assert_eq!(round_scalar::<i64>(DType::I8, Scalar::Int(300)), 44);
        assert_eq!(round_scalar::<f32>(DType::F16, Scalar::Float(1e6)), f32::INFINITY);
        assert_eq!(round_scalar::<i64>(DType::Bool, Scalar::Float(0.5)), 1);
    }

    #[test]
    fn singles_become_integers_as_doubles_do() {
        let ends =
            [255.5, 256.0, 65536.0, 2147483520.0, 2147483648.0, 4294967296.0, 9.3e18, 1e30, f32::INFINITY, 0.99, 1e-40];
        let numbers: Vec<f32> =
            (-600..600).map(|i| i as f32 * 0.7).chain(ends).chain([f32::NAN]).flat_map(|x| [x, -x]).collect();
        for &x in &numbers {
            let wide = f64::from(x);
            assert_eq!((x.to_i32(), x.to_byte(), x.to_i64()), (wide.to_i32(), wide.to_byte(), wide.to_i64()), "{x}");
        }
        assert_eq!((1e10f32.to_i32(), f32::NAN.to_i32(), (-2147483648f32).to_i32()), (i32::MIN, i32::MIN, i32::MIN));
    }

    #[test]
    fn transposed_copies_are_exact_at_every_size() {
        for (m, n) in [(1, 40), (3, 5), (16, 16), (17, 33), (40, 31), (64, 2)] {
            let data: Vec<i16> = (0..2 * m * n).map(|i| i as i16).collect();
            let x = RawTensor::from_slice(&data, &[2, m, n]);
            for dtype in [DType::I16, DType::F32, DType::C128] {
                let wide = RawTensor::zeros(dtype, Layout::contiguous(&[2, m, n]));
                copy_convert(x.read().view(), &wide.write().view_mut());
                for perm in [[0, 2, 1], [2, 1, 0], [1, 2, 0]] {
                    let out = RawTensor::zeros(dtype, Layout::permuted(&[2, m, n], &perm));
                    copy_convert(wide.read().view(), &out.write().view_mut());
                    assert_eq!(
                        gather::<i64>(out.read().view())[..],
                        gather::<i64>(x.read().view())[..],
                        "{m} {n} {dtype}"
                    );
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "between equal sizes")]
    fn a_copy_into_fewer_elements_is_refused() {
        let (many, few) = (RawTensor::from_slice(&[1.0f32; 64], &[64]), RawTensor::from_slice(&[0f32; 2], &[2]));
        copy_convert(many.read().view(), &few.write().view_mut());
    }

    #[test]
    fn expanded_and_empty_rows() {
        let one = RawTensor::from_slice(&[7f32], &[1]);
        let wide = one.alias(DType::F32, one.layout().expand(&[3, 2]).unwrap()).unwrap();
        assert_eq!(gather::<f64>(wide.read().view())[..], [7.0; 6]);
        let none = RawTensor::zeros(DType::F32, Layout::contiguous(&[0, 3]));
        assert!(gather::<f32>(none.read().view()).is_empty());
        copy_convert(none.read().view(), &RawTensor::zeros(DType::F32, Layout::contiguous(&[0, 3])).write().view_mut());
    }
}

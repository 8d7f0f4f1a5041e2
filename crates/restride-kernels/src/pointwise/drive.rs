//! Rows of operands through a row function.
//!
//! A row of the compute type whose elements are neighbours in memory is read where it is, and written where it is to be unless an
//! operand may be there; others go through buffers on the stack.

use super::{Input, PointwiseError};
use crate::support::convert::{CHUNK, Compute, load_row, round_scalar, round_through, store_row};
use crate::support::par::{self, EvenParts};
use crate::support::rows::{Rows, may_share};
use crate::support::runs::{SHORT_ROW, short_rows};
use crate::support::stack::Stack;
use restride_tensor::{DType, Layout, Scalar, View, ViewMut};
use smallvec::SmallVec;
use std::sync::{Mutex, PoisonError};

/// Type in which rows of operands are computed: a compute type, or a narrow integer.
pub trait RowType: Copy + Default + PartialEq + Send + Sync {
    /// The element type whose cells are such numbers as they are.
    const ELEMENT: DType;
    /// Reads a row, as [`load_row`].
    ///
    /// # Safety
    /// As [`load_row`]; a narrow integer reads elements of its own type only.
    unsafe fn load(dtype: DType, base: *const u8, offset: isize, stride: isize, out: &mut [Self]);
    /// A number as an element of the common type would hold it.
    fn number(common: DType, s: Scalar) -> Self;
    /// A number in full precision.
    fn parameter(s: Scalar) -> Self;
    /// Rounds a row to an element type.
    fn round(common: DType, row: &mut [Self]);
}

impl<T: Compute> RowType for T {
    const ELEMENT: DType = T::DTYPE;
    unsafe fn load(dtype: DType, base: *const u8, offset: isize, stride: isize, out: &mut [T]) {
        // SAFETY: the caller's promise.
        unsafe { load_row(dtype, base, offset, stride, out) }
    }
    fn number(common: DType, s: Scalar) -> T {
        round_scalar(common, s)
    }
    fn parameter(s: Scalar) -> T {
        T::from_scalar(s)
    }
    fn round(common: DType, row: &mut [T]) {
        round_through(common, row);
    }
}

/// Type of a row of results: a compute type, a narrow integer, or `bool`.
pub trait Answer: Copy + Default {
    /// The element type whose cells are such results as they are.
    const CELLS: Option<DType>;
    /// Writes a row, as [`store_row`].
    ///
    /// # Safety
    /// As [`store_row`].
    unsafe fn store(dtype: DType, base: *mut u8, offset: isize, stride: isize, row: &[Self]);
}

impl<T: Compute> Answer for T {
    const CELLS: Option<DType> = Some(T::DTYPE);
    unsafe fn store(dtype: DType, base: *mut u8, offset: isize, stride: isize, row: &[T]) {
        // SAFETY: the caller's promise.
        unsafe { store_row(dtype, base, offset, stride, row) }
    }
}

impl Answer for bool {
    // The bytes of a result may be anything before they are written: no slice of truth values.
    const CELLS: Option<DType> = None;
    unsafe fn store(dtype: DType, base: *mut u8, offset: isize, stride: isize, row: &[bool]) {
        if dtype != DType::Bool {
            let row: SmallVec<[i64; 64]> = row.iter().map(|&b| b as i64).collect();
            // SAFETY: the caller's promise.
            return unsafe { store_row(dtype, base, offset, stride, &row) };
        }
        if stride == 1 {
            // SAFETY: the caller's promise; `bool` cells are bytes of 0 or 1.
            return unsafe { row.as_ptr().cast::<u8>().copy_to(base.wrapping_offset(offset), row.len()) };
        }
        for (i, &b) in row.iter().enumerate() {
            // SAFETY: as above.
            unsafe { base.wrapping_offset(offset + i as isize * stride).write(b as u8) };
        }
    }
}

/// Computes a row of results, or refuses the operands' values.
pub(super) type Row<'a, T, R> = &'a (dyn Fn(&[&[T]], &mut [R]) -> Result<(), PointwiseError> + Sync);

/// A [`Row`] whose results may be of any type: the walk over operands is compiled for the type of these alone.
trait AnyRow<T>: Sync {
    /// As [`Answer::CELLS`].
    fn cells(&self) -> Option<DType>;
    /// Bytes of a result, at most twice those of an operand's number.
    fn size(&self) -> usize;
    /// Computes `n` results.
    ///
    /// # Safety
    /// They are writable, aligned and initialised.
    unsafe fn compute(&self, xs: &[&[T]], to: *mut u8, n: usize) -> Result<(), PointwiseError>;
    /// As [`Answer::store`], of `n` results.
    ///
    /// # Safety
    /// As [`Answer::store`]; the results are readable and aligned.
    unsafe fn store(&self, dtype: DType, to: (*mut u8, isize, isize), from: *const u8, n: usize);
}

struct RowOf<'a, T, R>(Row<'a, T, R>);

impl<T: RowType, R: Answer> AnyRow<T> for RowOf<'_, T, R> {
    fn cells(&self) -> Option<DType> {
        R::CELLS
    }
    fn size(&self) -> usize {
        const { assert!(size_of::<R>() <= 2 * size_of::<T>() && align_of::<R>() <= align_of::<T>()) };
        size_of::<R>()
    }
    unsafe fn compute(&self, xs: &[&[T]], to: *mut u8, n: usize) -> Result<(), PointwiseError> {
        // SAFETY: the caller's promise.
        (self.0)(xs, unsafe { std::slice::from_raw_parts_mut(to.cast::<R>(), n) })
    }
    unsafe fn store(&self, dtype: DType, (base, offset, stride): (*mut u8, isize, isize), from: *const u8, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { R::store(dtype, base, offset, stride, std::slice::from_raw_parts(from.cast::<R>(), n)) }
    }
}

/// Elements from which on a second thread pays.
const SHARED: usize = if cfg!(miri) { 64 } else { 1 << 15 };

/// Applies a row function with operands of element type `common` gathered as `T`, on up to `threads` threads.
///
/// # Panics
/// If an operand does not broadcast to the sizes of `out`.
pub fn drive<T: RowType, R: Answer>(
    common: DType,
    inputs: &[Input<'_>],
    out: &ViewMut<'_>,
    threads: usize,
    f: Row<'_, T, R>,
) -> Result<(), PointwiseError> {
    let f = &RowOf(f);
    // More parts than threads: one that is kept from working leaves its parts to the others.
    let parts = if threads > 1 { (4 * threads).min(out.numel() / (SHARED / 2)) } else { 1 };
    match (parts > 1).then(|| shared_dim(out.layout(), parts, threads)).flatten() {
        None => on_one_thread(common, inputs, out, f),
        Some(cut) => on_threads(common, inputs, out, cut, f),
    }
}

/// The dimension whose indices are shared between threads, and the number of parts. None where indices may share a cell, because the
/// last one in logical order stays then.
fn shared_dim(out: &Layout, parts: usize, threads: usize) -> Option<(usize, EvenParts)> {
    let order = Rows::apart_by_stride(out)?;
    par::cut(order.iter().map(|&d| (d, out.sizes[d] as usize)), parts, threads)
}

fn on_threads<T: RowType>(
    common: DType,
    inputs: &[Input<'_>],
    out: &ViewMut<'_>,
    (dim, parts): (usize, EvenParts),
    f: &dyn AnyRow<T>,
) -> Result<(), PointwiseError> {
    let (size, rank) = (out.sizes()[dim], out.sizes().len());
    // The indices `start..end` of the dimension, counted from the last one of the result.
    let part = |l: &Layout, start: i64, end: i64| {
        let mut own = l.clone();
        if let Some(d) = (dim + l.rank()).checked_sub(rank)
            && own.sizes[d] == size
        {
            own.offset += start * own.strides[d];
            own.sizes[d] = end - start;
        }
        own
    };
    let refused = Mutex::new(None);
    // SAFETY: each part of the result is one thread's, and no other thread reads it: an operand in the same memory has the same
    // index in each cell.
    let shared = unsafe { par::Across::new((inputs, out)) };
    parts.each(&|indices| {
        let (inputs, out) = shared.get();
        let (start, end) = (indices.start as i64, indices.end as i64);
        let layouts: SmallVec<[Layout; 4]> =
            inputs.iter().filter_map(|x| x.view()).map(|v| part(v.layout(), start, end)).collect();
        let mut own = layouts.iter();
        let inputs: SmallVec<[Input<'_>; 5]> = inputs
            .iter()
            .map(|x| match x {
                // SAFETY: some of the view's cells.
                Input::View(v) => Input::View(own.next().map_or(*v, |l| unsafe { v.with_layout(l) })),
                // SAFETY: as above.
                Input::Mask(v) => Input::Mask(own.next().map_or(*v, |l| unsafe { v.with_layout(l) })),
                Input::Number(s) => Input::Number(*s),
                Input::Parameter(s) => Input::Parameter(*s),
            })
            .collect();
        let layout = part(out.layout(), start, end);
        // SAFETY: some of the result's cells.
        if let Err(e) = on_one_thread(common, &inputs, &unsafe { out.with_layout(&layout) }, f) {
            *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
        }
    });
    refused.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Operands whose rows are gathered on the stack; an operator with more takes memory for them.
const ROWS: usize = 5;

/// Rows of fewer elements are computed several at a time.
const SHORT: usize = 256;

// By itself for each type: together their buffers on the stack are 24 pages, and each is touched at every call.
#[inline(never)]
fn on_one_thread<T: RowType>(
    common: DType,
    inputs: &[Input<'_>],
    out: &ViewMut<'_>,
    f: &dyn AnyRow<T>,
) -> Result<(), PointwiseError> {
    let mut layouts: SmallVec<[&Layout; 4]> = SmallVec::new();
    layouts.push(out.layout());
    inputs.iter().filter_map(|i| i.view()).for_each(|v| layouts.push(v.layout()));
    let mut rows = Rows::any_order(&layouts);
    if rows.is_empty() {
        return Ok(());
    }
    let len = rows.len();
    // Cells that several indices share are written in logical order.
    let short = len < SHORT && Rows::apart(out.layout());
    let (many, steps) = if short { rows.take_nearest() } else { None }.unwrap_or_default();
    let (many, some) = (many.max(1), if many > 1 { (CHUNK / len).min(many) } else { 1 });
    let step = |k: usize| if many > 1 { steps[k] } else { 0 };
    // Rows taken together are one run.
    let joined = |k: usize| many == 1 || step(k) == len as isize * rows.stride(k);
    let in_place = f.cells() == Some(out.dtype())
        && rows.stride(0) == 1
        && joined(0)
        && !inputs.iter().filter_map(|i| i.view()).any(|v| may_share(v, out));
    let views_in_place = {
        let mut k = 0;
        inputs.iter().all(|i| {
            k += 1;
            i.view().is_some_and(|v| direct::<T>(common, v, rows.stride(k)) && joined(k))
        })
    };
    let width = if many > 1 {
        some * len
    } else if in_place && views_in_place {
        len
    } else {
        len.min(CHUNK)
    };
    let (mut few, mut much) = (Stack::<T, { ROWS * CHUNK }>::new(), Vec::new());
    let gathered = if views_in_place {
        &mut []
    } else if inputs.len() <= ROWS {
        few.filled(inputs.len() * width, T::default())
    } else {
        much.resize(inputs.len() * width, T::default());
        &mut much[..]
    };
    for (row, input) in gathered.chunks_exact_mut(width).zip(inputs) {
        match input {
            Input::View(_) | Input::Mask(_) => {}
            Input::Number(s) => row.fill(T::number(common, *s)),
            Input::Parameter(s) => row.fill(T::parameter(*s)),
        }
    }
    let size = f.size();
    let mut result = Stack::<T, { 2 * CHUNK }>::new();
    let result = result.filled(if in_place { 0 } else { (width * size).div_ceil(size_of::<T>()) }, T::default());
    let result = result.as_mut_ptr().cast::<u8>();
    rows.try_for_each(|at| {
        // Rows taken together, from the first one on; or parts of the one row.
        for (first, start) in (0..many).step_by(some).flat_map(|j| (0..len).step_by(width).map(move |start| (j, start)))
        {
            let (count, n) = (some.min(many - first), width.min(len - start));
            let cell = |k: usize, j: usize| at[k] + start as isize * rows.stride(k) + (first + j) as isize * step(k);
            let mut xs: SmallVec<[&[T]; ROWS]> = SmallVec::new();
            let mut k = 0;
            let mut buffers = gathered.chunks_exact_mut(width);
            for input in inputs {
                let buffer = buffers.next();
                if let Some(view) = input.view() {
                    k += 1;
                    if direct::<T>(common, view, rows.stride(k)) && joined(k) {
                        let first = (view.base() as *const T).wrapping_offset(cell(k, 0));
                        // SAFETY: these cells of the view's own element type, one after the other. The result may share
                        // them, but is written after the last use of the slice then.
                        xs.push(unsafe { std::slice::from_raw_parts(first, count * n) });
                        continue;
                    }
                }
                let Some(buffer) = buffer else { unreachable!("what is not read in place has a buffer") };
                let row = &mut buffer[..count * n];
                // The same cells in each row stay where they are.
                let there = if many == 1 { start > 0 && rows.stride(k) == 0 } else { first > 0 && step(k) == 0 };
                if let Some(view) = input.view()
                    && !there
                {
                    if view.dtype() == T::ELEMENT && common == T::ELEMENT && n <= SHORT_ROW && !joined(k) {
                        let from = (view.base() as *const T).wrapping_offset(cell(k, 0));
                        // SAFETY: the cells are the view's, by the walk over its layout, and of its own element type.
                        unsafe {
                            short_rows([count, n], (from, step(k), rows.stride(k)), (row.as_mut_ptr(), n as isize))
                        };
                        xs.push(row);
                        continue;
                    }
                    let n = if joined(k) { count * n } else { n };
                    for (j, row) in row.chunks_exact_mut(n).enumerate() {
                        // SAFETY: the cells are the view's, by the walk over its layout.
                        unsafe { T::load(view.dtype(), view.base(), cell(k, j), rows.stride(k), row) };
                    }
                    if view.dtype() != common && !matches!(input, Input::Mask(_)) {
                        T::round(common, row);
                    }
                }
                xs.push(row);
            }
            if in_place {
                let first = out.base().wrapping_offset(cell(0, 0) * size as isize);
                // SAFETY: these cells of the result's own element type, one after the other, which no operand shares.
                unsafe { f.compute(&xs, first, count * n)? };
                continue;
            }
            // SAFETY: the buffer has as many results, and the cells are those of the result, by the walk over its layout.
            unsafe {
                f.compute(&xs, result, count * n)?;
                // Rows that are one run are stored as one.
                let (stores, n) = if joined(0) { (1, count * n) } else { (count, n) };
                for j in 0..stores {
                    let to = (out.base(), cell(0, j), rows.stride(0));
                    f.store(out.dtype(), to, result.add(j * n * size), n);
                }
            }
        }
        Ok(())
    })
}

/// Whether rows of a view are slices of the compute type in memory.
fn direct<T: RowType>(common: DType, view: &View<'_>, stride: isize) -> bool {
    stride == 1 && view.dtype() == T::ELEMENT && common == T::ELEMENT
}

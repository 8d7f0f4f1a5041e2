//! Matrix products. One order of summation for given sizes, whatever the strides and the number of threads.
//!
//! The library's blocked loops sum over `k` in an order that depends on the sizes alone; its special paths for vectors
//! and for very small `k` choose by strides, so operands of such products are packed row by row first. A
//! test holds that bits are the same over strides and threads.

use crate::pack::{Compute, Target, fill, pack, with_compute};
use crate::par;
use restride_tensor::{C32, C64, DType, Layout, Scalar, View, ViewMut};
use std::borrow::Cow;

/// A compute type with a matrix product.
pub trait Gemm: Compute {
    /// `c = a b`, or `c += a b` where `add`: `a` is m × k, `b` is k × n, `c` is m × n, its rows `ldc` elements apart.
    /// Strides of `a` and `b` are (row, column), in elements.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of `c` writable and nobody else's.
    unsafe fn product(
        size: (usize, usize, usize),
        a: (*const Self, isize, isize),
        b: (*const Self, isize, isize),
        c: (*mut Self, usize),
        add: bool,
        threads: usize,
    );
    /// `beta c + alpha ab`, element by element; `c` is not looked at where `beta` is zero.
    fn blend(ab: Self, alpha: Scalar, c: Self, beta: Scalar) -> Self;
}

macro_rules! library {
    ($($t:ty, $one:expr, $zero:expr, |$s:ident| $cast:expr;)*) => {$(
        impl Gemm for $t {
            unsafe fn product(
                (m, n, k): (usize, usize, usize),
                a: (*const Self, isize, isize),
                b: (*const Self, isize, isize),
                c: (*mut Self, usize),
                add: bool,
                threads: usize,
            ) {
                let par = match threads {
                    0 | 1 => gemm::Parallelism::None,
                    t => gemm::Parallelism::Rayon(t),
                };
                // SAFETY: the caller's promise.
                unsafe {
                    gemm::gemm(
                        m, n, k, c.0, 1, c.1 as isize, add, a.0, a.2, a.1, b.0, b.2, b.1, $one, $one, false, false, false,
                        par,
                    )
                }
            }
            fn blend(ab: Self, alpha: Scalar, c: Self, beta: Scalar) -> Self {
                let cast = |$s: Scalar| -> $t { $cast };
                let (alpha, beta) = (cast(alpha), cast(beta));
                let ab = if alpha == $one { ab } else { alpha * ab };
                if beta == $zero { ab } else if beta == $one { c + ab } else { beta * c + ab }
            }
        }
    )*};
}
library! {
    f32, 1.0, 0.0, |s| s.as_f64() as f32;
    f64, 1.0, 0.0, |s| s.as_f64();
    C32, C32::new(1.0, 0.0), C32::new(0.0, 0.0), |s| { let z = s.as_c64(); C32::new(z.re as f32, z.im as f32) };
    C64, C64::new(1.0, 0.0), C64::new(0.0, 0.0), |s| s.as_c64();
}

impl Gemm for i64 {
    unsafe fn product(
        (m, n, k): (usize, usize, usize),
        a: (*const Self, isize, isize),
        b: (*const Self, isize, isize),
        c: (*mut Self, usize),
        add: bool,
        threads: usize,
    ) {
        let (a, b) = ((Shared(a.0), a.1, a.2), (Shared(b.0), b.1, b.2));
        let c = (Shared(c.0 as *const Self), c.1);
        par::each(
            threads,
            m,
            || (),
            |(), i| {
                // SAFETY: the caller's promise; rows do not overlap and each is one thread's.
                let row = unsafe { std::slice::from_raw_parts_mut(c.0.get().add(i * c.1) as *mut Self, n) };
                if !add {
                    row.fill(0);
                }
                for p in 0..k {
                    // SAFETY: the caller's promise.
                    let x = unsafe { a.0.get().offset(i as isize * a.1 + p as isize * a.2).read() };
                    for (j, y) in row.iter_mut().enumerate() {
                        // SAFETY: the caller's promise.
                        let z = unsafe { b.0.get().offset(p as isize * b.1 + j as isize * b.2).read() };
                        *y = y.wrapping_add(x.wrapping_mul(z));
                    }
                }
            },
        );
    }
    fn blend(ab: Self, alpha: Scalar, c: Self, beta: Scalar) -> Self {
        c.wrapping_mul(beta.as_i64()).wrapping_add(alpha.as_i64().wrapping_mul(ab))
    }
}

/// An address that threads read from.
#[derive(Clone, Copy)]
struct Shared<T>(*const T);
// SAFETY: only read through, while the memory is not written.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn get(&self) -> *const T {
        self.0
    }
}

/// Whether the library takes a path that chooses by strides.
fn special(m: usize, n: usize, k: usize) -> bool {
    m <= 1 || n <= 1 || k <= 2 || m * n <= 256
}

/// `c = a b` (or `+=`) on slices: `a` is m × k and row-major, or k × m where `a_t`; `b` likewise.
pub fn matmul<T: Gemm>(
    (m, n, k): (usize, usize, usize),
    (a, a_t): (&[T], bool),
    (b, b_t): (&[T], bool),
    c: &mut [T],
    add: bool,
    threads: usize,
) {
    assert!(a.len() >= m * k && b.len() >= k * n && c.len() >= m * n, "operands of a product are too short");
    let a_strides = if a_t { (1, m as isize) } else { (k as isize, 1) };
    let b_strides = if b_t { (1, k as isize) } else { (n as isize, 1) };
    // SAFETY: the sizes were checked above, and `c` is borrowed exclusively.
    unsafe {
        let a = (a.as_ptr(), a_strides.0, a_strides.1);
        T::product((m, n, k), a, (b.as_ptr(), b_strides.0, b_strides.1), (c.as_mut_ptr(), n), add, threads)
    }
}

/// A batch of matrices for reading.
struct Matrices<'a, T> {
    base: Shared<T>,
    /// Keeps `base` alive where the elements had to be packed.
    _owned: Option<Vec<T>>,
    _life: std::marker::PhantomData<&'a T>,
    offsets: Vec<isize>,
    row: isize,
    col: isize,
}

impl<'a, T: Compute> Matrices<'a, T> {
    /// The last two dimensions of a view, broadcast over `batch`. Canonical matrices are row-major, or where
    /// `transposed` column-major.
    fn new(view: &View<'a>, batch: &[i64], canonical: bool, transposed: bool) -> Result<Self, String> {
        let rank = view.layout().rank();
        let outer = &view.sizes()[..rank - 2];
        let unit = view.strides()[rank - 2..].contains(&1);
        let (base, owned, layout) = if view.dtype() == T::DTYPE && unit && !canonical {
            (view.base() as *const T, None, view.layout().clone())
        } else {
            let mut dims: Vec<i64> = (0..rank as i64).collect();
            if transposed {
                dims.swap(rank - 2, rank - 1);
            }
            let order = view.layout().permute(&dims).map_err(|e| e.0)?;
            // SAFETY: the same cells in another order.
            let packed = pack::<T>(&unsafe { view.with_layout(&order) });
            let layout = Layout::contiguous(&order.sizes).permute(&dims).map_err(|e| e.0)?;
            match packed {
                Cow::Borrowed(slice) => (slice.as_ptr(), None, layout),
                Cow::Owned(packed) => (packed.as_ptr(), Some(packed), layout),
            }
        };
        let (row, col) = (layout.strides[rank - 2] as isize, layout.strides[rank - 1] as isize);
        let outer = Layout::strided(outer, &layout.strides[..rank - 2], layout.offset);
        let offsets = outer.expand(batch).map_err(|e| e.0)?.cells().into_iter().map(|c| c as isize).collect();
        Ok(Matrices { base: Shared(base), _owned: owned, _life: std::marker::PhantomData, offsets, row, col })
    }
    fn at(&self, i: usize) -> (*const T, isize, isize) {
        (self.base.get().wrapping_offset(self.offsets[i]), self.row, self.col)
    }
}

/// What is added to a product: `beta c + alpha ab`.
#[derive(Clone, Copy)]
pub struct Added<'a> {
    /// Broadcast to the result.
    pub c: Option<View<'a>>,
    /// Factor of `c`; `c` is not looked at where it is zero.
    pub beta: Scalar,
    /// Factor of the product.
    pub alpha: Scalar,
}

impl<'a> Added<'a> {
    /// Only the product.
    pub const NONE: Added<'static> = Added { c: None, beta: Scalar::Int(0), alpha: Scalar::Int(1) };
    /// The product and a bias.
    pub fn bias(c: Option<View<'a>>) -> Self {
        Added { c, beta: Scalar::Int(1), alpha: Scalar::Int(1) }
    }
}

/// `out = beta c + alpha a b` as `torch.matmul` multiplies: vectors, matrices and batches of matrices that
/// broadcast. Where `b_t`, the last dimensions of `b` are n × k.
pub fn product(
    a: &View<'_>,
    b: &View<'_>,
    b_t: bool,
    added: &Added<'_>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let (mut la, mut lb, mut lo) = (a.layout().clone(), b.layout().clone(), out.layout().clone());
    let mut lc = added.c.map(|c| c.layout().expand(out.sizes())).transpose().map_err(|e| e.0)?;
    let put = |l: &mut Layout, d: i64| -> Result<(), String> {
        *l = l.unsqueeze(d).map_err(|e| e.0)?;
        Ok(())
    };
    if lb.rank() == 1 {
        put(&mut lb, if b_t { 0 } else { 1 })?;
        put(&mut lo, -1)?;
        lc.iter_mut().try_for_each(|l| put(l, -1))?;
    }
    if la.rank() == 1 {
        put(&mut la, 0)?;
        put(&mut lo, -2)?;
        lc.iter_mut().try_for_each(|l| put(l, -2))?;
    }
    // SAFETY: new dimensions of size 1 and broadcasting reach no other cells.
    let (a, b, out) = unsafe { (a.with_layout(&la), b.with_layout(&lb), out.with_layout(&lo)) };
    // SAFETY: as above.
    let c = added.c.zip(lc.as_ref()).map(|(c, l)| unsafe { c.with_layout(l) });
    let added = Added { c, ..*added };
    with_compute!(any out.dtype(), T => {
        if lb.rank() == 2 && la.rank() > 2 {
            folded::<T>(&a, &b, b_t, &added, &out, threads)
        } else {
            batched::<T>(&a, &b, b_t, &added, &out, threads)
        }
    })
}

/// One matrix `b` for all of `a`'s: a single product of more rows.
fn folded<T: Gemm>(
    a: &View<'_>,
    b: &View<'_>,
    b_t: bool,
    added: &Added<'_>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let k = a.sizes()[a.layout().rank() - 1];
    let n = out.sizes()[out.layout().rank() - 1];
    let m: i64 = out.sizes()[..out.layout().rank() - 1].iter().product();
    let packed;
    let la = a.layout().view(&[m, k]);
    let flat = Layout::contiguous(&[m, k]);
    let a = match &la {
        // SAFETY: the same cells.
        Some(l) => unsafe { a.with_layout(l) },
        None => {
            packed = pack::<T>(a);
            // SAFETY: the packed elements live to the end of this function, m × k of them.
            unsafe { View::from_raw(packed.as_ptr() as *const u8, T::DTYPE, &flat) }
        }
    };
    let mut target = Target::<T>::new(out);
    let lo = Layout::contiguous(&[m, n]);
    let ab = target.slice();
    {
        // SAFETY: the target's elements, m × n of them, not used otherwise during the call.
        let ab = unsafe { ViewMut::from_raw(ab.as_mut_ptr() as *mut u8, T::DTYPE, &lo) };
        batched::<T>(&a, b, b_t, &Added::NONE, &ab, threads)?;
    }
    blend(ab, added)?;
    target.finish();
    Ok(())
}

/// Products of the last two dimensions, broadcast over the others.
fn batched<T: Gemm>(
    a: &View<'_>,
    b: &View<'_>,
    b_t: bool,
    added: &Added<'_>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    if out.numel() == 0 {
        return Ok(());
    }
    let rank = out.layout().rank();
    let batch = &out.sizes()[..rank - 2];
    let (m, n) = (out.sizes()[rank - 2] as usize, out.sizes()[rank - 1] as usize);
    let k = a.sizes()[a.layout().rank() - 1] as usize;
    let swapped = b.layout().transpose(-1, -2).map_err(|e| e.0)?;
    // SAFETY: the same cells in another order.
    let b = if b_t { unsafe { b.with_layout(&swapped) } } else { *b };
    let canonical = special(m, n, k);
    let left = Matrices::<T>::new(a, batch, canonical, false)?;
    let right = Matrices::<T>::new(&b, batch, canonical, b_t)?;
    let mut target = Target::<T>::new(out);
    let c = target.slice();
    let (over, inner) = if left.offsets.len() >= threads { (threads, 1) } else { (1, threads) };
    par::pieces(over, c, m * n, |i, piece| {
        // SAFETY: operands' cells are readable, the piece is m × n elements of this thread alone.
        unsafe { T::product((m, n, k), left.at(i), right.at(i), (piece.as_mut_ptr(), n), false, inner) }
    });
    blend(c, added)?;
    target.finish();
    Ok(())
}

/// Applies `beta` and `alpha`; `c` has the result's sizes.
fn blend<T: Gemm>(ab: &mut [T], added: &Added<'_>) -> Result<(), String> {
    let zero = T::default();
    match &added.c {
        Some(c) if added.beta.as_bool() => {
            let (l, rank) = (c.layout(), c.layout().rank());
            if rank > 1 && l.strides[..rank - 1].iter().all(|&s| s == 0) {
                let row = Layout::strided(&l.sizes[rank - 1..], &l.strides[rank - 1..], l.offset);
                // SAFETY: the first row, which all others are.
                let row = pack::<T>(&unsafe { c.with_layout(&row) }).into_owned();
                for x in ab.chunks_mut(row.len().max(1)) {
                    x.iter_mut().zip(&row).for_each(|(x, &y)| *x = T::blend(*x, added.alpha, y, added.beta));
                }
                return Ok(());
            }
            let c = pack::<T>(c);
            ab.iter_mut().zip(c.iter()).for_each(|(x, &y)| *x = T::blend(*x, added.alpha, y, added.beta));
        }
        _ if added.alpha != Scalar::Int(1) => {
            ab.iter_mut().for_each(|x| *x = T::blend(*x, added.alpha, zero, Scalar::Int(0)));
        }
        _ => {}
    }
    Ok(())
}

/// `out = sum(conj(a[i]) * b[i])`, of vectors.
pub fn vdot(a: &View<'_>, b: &View<'_>, out: &ViewMut<'_>) -> Result<(), String> {
    fn run<T: Gemm>(a: &View<'_>, b: &View<'_>, conj: impl Fn(T) -> T, out: &ViewMut<'_>) {
        let (x, y) = (pack::<T>(a), pack::<T>(b));
        let x: Vec<T> = x.iter().map(|&x| conj(x)).collect();
        let mut r = [T::default()];
        matmul((1, 1, x.len()), (&x, false), (&y, false), &mut r, false, 1);
        fill(out, r[0]);
    }
    match out.dtype() {
        DType::C64 => run::<C32>(a, b, |z| z.conj(), out),
        DType::C128 => run::<C64>(a, b, |z| z.conj(), out),
        d => with_compute!(any d, T => run::<T>(a, b, |x| x, out)),
    }
    Ok(())
}

#[cfg(test)]
#[path = "gemm_tests.rs"]
mod tests;

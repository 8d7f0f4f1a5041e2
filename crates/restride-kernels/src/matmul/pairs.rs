//! Products of `bf16` matrices by an instruction that adds two products of `bf16` to a single (`VDPBF16PS` of AVX-512), twice as
//! fast as products of singles.
//!
//! What holds: sums have the bits of the same product with operands that are converted to singles. Products of `bf16` are exact in
//! singles, and the instruction adds that of the upper halves and then that of the lower ones, each sum rounded once, so a pair
//! holds its first term above. It takes numbers below the least normal one as zero. [`is_exact`] finds operands whose sums have
//! no such numbers; all others are converted.
//!
//! What is trusted: that a processor which has the instruction adds as those that were tried; [`has_instruction`] asks it for sums
//! that tell.

use super::panels::{Panels, Rows};
use super::tile::Turn;
use super::{Gemm, blocked};
use crate::support::isa;
use std::ops::Range;

/// Rows and columns from which on the look at the operands is felt little beside the product.
const LEAST: usize = 16;
/// The bits of 2⁻⁵⁶. Products of operands that are at least so large, of seven bits of fraction each, are multiples of 2⁻¹²⁶, and so
/// are rounded sums of them.
const LEAST_BITS: u16 = (127 - 56) << 7;

/// As [`product_of`](Gemm::product_of), the same bits, if both operands are `bf16` and it may be computed here; otherwise nothing is
/// done and the answer is no.
///
/// # Safety
/// As [`product_of`](Gemm::product_of).
pub unsafe fn product<T: Gemm>(
    (m, n, k): (usize, usize, usize),
    a: &dyn Rows<T>,
    b: &dyn Panels<T>,
    c: blocked::MatrixMut<T>,
    add: bool,
    threads: usize,
) -> bool {
    if m < LEAST || n < LEAST || k == 0 || a.brain_row(0).is_none() || b.brain_row(0).is_none() {
        return false;
    }
    let Some(kernels) = T::pairs() else { return false };
    // SAFETY: the caller's promise: rows of the left operand, and rows or columns of the right one.
    let exact = unsafe {
        let right = match b.brain_runs() {
            Some((first, apart)) => (0..n).all(|j| is_exact((first.wrapping_offset(j as isize * apart), 1), k)),
            None => (0..k).all(|p| b.brain_row(p).is_some_and(|row| is_exact(row, n))),
        };
        right && (0..m).all(|i| a.brain_row(i).is_some_and(|row| is_exact(row, k)))
    };
    if exact {
        let (a, b) = (PairRows { of: a, k }, PairPanels { of: b, k, turn: T::turn() });
        // SAFETY: the caller's promise.
        unsafe { blocked::product(kernels, (m, n, k.div_ceil(2)), &a, &b, c, add, threads) }
    }
    exact
}

/// Whether each element is zero or at least 2⁻⁵⁶ in size. The operand is the address of the first element, and the distance of elements.
///
/// # Safety
/// The elements are readable.
unsafe fn is_exact((first, step): (*const u16, isize), len: usize) -> bool {
    /// Elements between two looks at what was found.
    const SOME: usize = 1024;
    struct HasSmall<'a>(&'a [u16]);
    impl isa::Work for HasSmall<'_> {
        type Out = bool;
        const WIDEST: bool = true;
        #[inline(always)]
        fn run(self) -> bool {
            // Less one, zero wraps to the largest number.
            let small = |x: &u16| u16::from((x & 0x7fff).wrapping_sub(1) < LEAST_BITS - 1);
            self.0.iter().fold(0, |any, x| any | small(x)) != 0
        }
    }
    if step == 1 {
        // SAFETY: the caller's promise.
        let all = unsafe { std::slice::from_raw_parts(first, len) };
        return !all.chunks(SOME).any(|some| isa::run(HasSmall(some)));
    }
    (0..len as isize).all(|i| {
        // SAFETY: the caller's promise.
        let x = unsafe { first.offset(i * step).read() };
        !isa::Work::run(HasSmall(&[x]))
    })
}

/// Two terms, the first one above.
fn pair(first: u16, second: u16) -> u32 {
    u32::from(first) << 16 | u32::from(second)
}

/// A left operand whose elements are pairs of terms, the last one with a zero if there is an odd number.
struct PairRows<'a, T> {
    of: &'a dyn Rows<T>,
    k: usize,
}

impl<T> Rows<T> for PairRows<'_, T> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T) {
        for (at, i) in rows.enumerate() {
            let Some((row, apart)) = self.of.brain_row(i) else { unreachable!("all rows are bf16") };
            let to = to.cast::<u32>().wrapping_add(at * step);
            // SAFETY: the caller's promise: terms of a row, and pairs to write.
            unsafe {
                let term = |p: usize| if p < self.k { row.offset(p as isize * apart).read() } else { 0 };
                let whole = if apart == 1 { depth.end.min(self.k / 2) } else { depth.start };
                let run = row.wrapping_add(2 * depth.start).cast::<u32>();
                for q in 0..whole - depth.start {
                    to.add(q).write(run.add(q).read_unaligned().rotate_left(16));
                }
                for q in whole..depth.end {
                    to.add(q - depth.start).write(pair(term(2 * q), term(2 * q + 1)));
                }
            }
        }
    }
}

/// A right operand whose elements are pairs of terms.
struct PairPanels<'a, T> {
    of: &'a dyn Panels<T>,
    k: usize,
    turn: Turn<T>,
}

impl<T: Gemm> Panels<T> for PairPanels<'_, T> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        let (len, wide) = (depth.len(), columns.len());
        let to = |q: usize, j: usize| panel.cast::<u32>().wrapping_add(q * width + j);
        // Pairs whose terms are both there.
        let whole = depth.end.min(self.k / 2) - depth.start;
        let first = 2 * depth.start;
        // SAFETY: the caller's promise: terms of these columns, and a panel of pairs to write.
        unsafe {
            let row = |p: usize| match self.of.brain_row(p) {
                Some((row, apart)) => (row.wrapping_offset(columns.start as isize * apart), apart),
                None => unreachable!("all rows are bf16"),
            };
            let mut done = (0, 0);
            match self.of.brain_runs() {
                Some((at, apart)) if apart % 2 == 0 => {
                    done = (whole / 8 * 8, wide / 8 * 8);
                    let at = at.wrapping_offset(columns.start as isize * apart).wrapping_add(first);
                    (self.turn)(panel, width, (at.cast(), apart / 2), done);
                    for q in 0..done.0 {
                        let turned = std::slice::from_raw_parts_mut(to(q, 0), done.1);
                        turned.iter_mut().for_each(|x| *x = x.rotate_left(16));
                    }
                }
                _ if row(first).1 == 1 => {
                    done = (whole, wide);
                    for q in 0..whole {
                        let run = |p: usize| std::slice::from_raw_parts(row(first + p).0, wide);
                        let pairs = run(2 * q).iter().zip(run(2 * q + 1)).map(|(x, y)| pair(*x, *y));
                        std::slice::from_raw_parts_mut(to(q, 0), wide)
                            .iter_mut()
                            .zip(pairs)
                            .for_each(|(to, x)| *to = x);
                    }
                }
                _ => {}
            }
            for q in 0..len {
                let rows = [first + 2 * q, first + 2 * q + 1].map(|p| (p < self.k).then(|| row(p)));
                let term = |i: usize, j: usize| rows[i].map_or(0, |(row, apart)| row.offset(j as isize * apart).read());
                for j in if q < done.0 { done.1 } else { 0 }..wide {
                    to(q, j).write(pair(term(0, j), term(1, j)));
                }
                (wide..width).for_each(|j| to(q, j).write(0));
            }
        }
    }
}

/// Whether this processor has the instruction, and adds as the module says.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub fn has_instruction() -> bool {
    use std::sync::OnceLock;
    static FOUND: OnceLock<bool> = OnceLock::new();
    // SAFETY: the processor has the instruction.
    *FOUND.get_or_init(|| is_x86_feature_detected!("avx512bf16") && unsafe { adds_in_order() })
}

/// Whether sums are those of the upper products first, rounded after each.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bf16")]
fn adds_in_order() -> bool {
    use super::lanes::{Lanes, Pairs};
    // A sum and two products. Adding them in another order, or rounding otherwise, gives another result.
    let tried: [[f32; 3]; 4] = [
        [1.0, 0.000_000_06, 0.000_000_06],
        [-16_777_216.0, 16_777_216.0, 0.75],
        [16_777_216.0, 1.0, 1.0],
        [1.0e30, 1.0, -1.0e30],
    ];
    tried.into_iter().all(|[sum, first, second]| {
        let bits = |x: f32| (x.to_bits() >> 16) as u16;
        let (x, one) = (pair(bits(first), bits(second)), pair(bits(1.0), bits(1.0)));
        let term = |half: u32| f32::from_bits(half << 16);
        let mut out = [0.0; 16];
        // SAFETY: the processor has the vectors; the memory has sixteen lanes.
        unsafe {
            let sums =
                Pairs::splat(sum).plus_product(Pairs::splat(f32::from_bits(x)), Pairs::splat(f32::from_bits(one)));
            sums.store(out.as_mut_ptr());
        }
        let wanted = sum + term(x >> 16) + term(x & 0xffff);
        out.iter().all(|y| y.to_bits() == wanted.to_bits())
    })
}

//! A call of a row program: what it computes of a part of a row.

use super::chain::RowChain;
use super::{OPERANDS, PART};
use restride_ir::{RowExtent, RowJoin};
use restride_kernels::support::convert::load_singles;
use restride_kernels::support::stack::Stack;
use restride_tensor::DType;
use smallvec::SmallVec;

/// A call, and where its result goes.
pub(super) struct RowCall {
    pub work: RowWork,
    pub to: RowTarget,
    pub extent: RowExtent,
    /// The chain that begins with it.
    pub chain: Option<RowChain>,
}

/// Where calls on a part of a row find its elements, as addresses of the first ones.
pub(super) struct RowPlaces<S, R, F, L, T, P, W> {
    /// The elements of an operand.
    pub source: S,
    /// The element of an operand that has one for all of a row, and how far apart it is, in bytes, from that of the next row.
    pub repeated: R,
    /// The scales and shifts of a call: one for all elements, as many as elements, or fewer, which begin anew. `None` where they change
    /// from unit to unit.
    pub factors: F,
    pub slot: L,
    /// A tensor whose results are written where they are: others have no such address.
    pub tensor: T,
    /// A buffer for the results of such another one, whose number is given.
    pub spare: P,
    /// Writes these results to their tensor.
    pub store: W,
}

impl RowCall {
    /// Computes rows of `len` elements of the call, or of all calls of the chain that begins with it: how many calls these are. `scaled`
    /// computes a scale whose factors change from unit to unit.
    ///
    /// # Safety
    /// The places are valid for all elements, row behind row. No one else uses the results' elements, which share cells only with
    /// operands of the same index.
    #[inline(always)]
    pub unsafe fn run<'a>(
        &self,
        places: &RowPlaces<
            impl Fn(RowSource) -> &'a [f32],
            impl Fn(RowSource) -> (*mut f32, isize),
            impl Fn(usize) -> Option<(&'a [f32], &'a [f32])>,
            impl Fn(usize) -> *mut f32,
            impl Fn(usize) -> Option<*mut f32>,
            impl Fn(usize) -> *mut f32,
            impl Fn(usize, &[f32]),
        >,
        (len, rows): (usize, usize),
        scaled: impl FnOnce(&RowWork, &mut [f32]),
    ) -> usize {
        if let Some(chain) = &self.chain
            // SAFETY: as promised by the caller.
            && unsafe { chain.run(places, (len, rows), &[]) }
        {
            return chain.len;
        }
        let straight = self.to.tensor.filter(|_| self.to.slot.is_none()).and_then(&places.tensor);
        let apart = || self.to.tensor.map(&places.spare);
        let to = straight.or_else(|| self.to.slot.map(&places.slot)).or_else(apart).expect("a call has a result");
        // SAFETY: a buffer or the result's place, as promised by the caller.
        let out = unsafe { std::slice::from_raw_parts_mut(to, len * rows) };
        match &self.work {
            RowWork::Scale(row, x, k) => match (places.factors)(*k) {
                Some((scales, shifts)) => row((places.source)(*x), scales, shifts, out),
                None => scaled(&self.work, out),
            },
            work => work.map(&places.source, out),
        }
        if let Some(k) = self.to.tensor.filter(|_| straight.is_none()) {
            (places.store)(k, out);
        }
        1
    }
}

/// What a call computes of its sources.
pub(super) enum RowWork {
    Map(fn(&[&[f32]], &mut [f32]), SmallVec<[RowSource; 4]>),
    Ask(fn(&[&[f32]], &mut [bool]), SmallVec<[RowSource; 4]>),
    /// With the factors of this number.
    Scale(fn(&[f32], &[f32], &[f32], &mut [f32]), RowSource, usize),
    Fold(RowJoin, fn(f32, usize) -> f32, RowSource),
}

impl RowWork {
    pub fn sources(&self) -> &[RowSource] {
        match self {
            RowWork::Map(_, from) | RowWork::Ask(_, from) => from,
            RowWork::Scale(_, x, _) | RowWork::Fold(_, _, x) => std::slice::from_ref(x),
        }
    }

    /// Whether it gives answers.
    pub fn asks(&self) -> bool {
        matches!(self, RowWork::Ask(..))
    }

    /// Computes a row of a map or of answers. Scales and reductions need more than a row: whoever walks over the rows runs them.
    #[inline(always)]
    pub fn map<'a>(&self, source: impl Fn(RowSource) -> &'a [f32], out: &mut [f32]) {
        match self {
            RowWork::Map(row, from) => row(&operands(from, source)[..from.len()], out),
            RowWork::Ask(row, from) => ask(*row, &operands(from, source)[..from.len()], out),
            RowWork::Scale(..) | RowWork::Fold(..) => {}
        }
    }
}

/// Where a call finds an operand.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum RowSource {
    Tensor(usize),
    Slot(usize),
    Constant(usize),
}

/// Where a result goes: to a buffer that later calls read or from which it is copied, to memory, or both.
pub(super) struct RowTarget {
    pub slot: Option<usize>,
    pub tensor: Option<usize>,
}

/// Operands of a call. An array: many rows are short.
#[inline(always)]
pub(super) fn operands<'a>(from: &[RowSource], source: impl Fn(RowSource) -> &'a [f32]) -> [&'a [f32]; OPERANDS] {
    let mut xs: [&[f32]; OPERANDS] = [&[]; OPERANDS];
    xs.iter_mut().zip(from).for_each(|(x, s)| *x = source(*s));
    xs
}

/// A row of answers, as singles.
pub(super) fn ask(row: fn(&[&[f32]], &mut [bool]), xs: &[&[f32]], out: &mut [f32]) {
    let mut answers = Stack::<bool, PART>::new();
    let answers = answers.falses(out.len());
    row(xs, answers);
    // SAFETY: as many elements as the row has.
    unsafe { load_singles(DType::Bool, answers.as_ptr().cast(), 0, 1, out) };
}

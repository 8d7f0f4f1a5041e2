//! Views: reshapes, parts and casts, and the rules that compute a view's layout from its base's.
//!
//! A rule is a type with one generic function, used with known sizes and with symbolic ones.

mod casts;
pub(crate) mod shape;
pub(crate) mod split;

use crate::support::ensure;
use restride_ir::{
    Args, Call, Exactness, Expr, Kernel, Meta, Movement, OpDef, OpError, SampleFn, TensorType, ViewArgs, ViewOutcome,
    ViewRule, view_args,
};
use restride_tensor::{Dim, Layout};
use smallvec::{SmallVec, smallvec};

use crate::movement;

pub(crate) type Result<T> = std::result::Result<T, OpError>;

/// A view rule, generic over known and symbolic sizes.
pub(crate) trait Rule {
    /// Type and layout of each view of a call.
    fn run<D: Dim>(a: &ViewArgs<'_, D>) -> Result<ViewOutcome<D>>;
}

/// A rule for known and for symbolic sizes.
pub(crate) const fn rule<R: Rule>() -> ViewRule {
    ViewRule { known: R::run::<i64>, symbolic: R::run::<Expr> }
}

/// Declares a rule: a type of this name whose function maps the arguments to the layout of the only result.
/// The result has argument 0's element type.
macro_rules! layout_rule {
    ($(#[$doc:meta])* $name:ident, |$a:ident, $l:ident| $body:expr) => {
        $(#[$doc])*
        pub(crate) struct $name;
        impl $crate::views::Rule for $name {
            fn run<D: restride_tensor::Dim>(
                $a: &restride_ir::ViewArgs<'_, D>,
            ) -> $crate::views::Result<restride_ir::ViewOutcome<D>> {
                let $l = &$a.tensor(0)?.layout;
                let layout: restride_tensor::Layout<D> = $body;
                Ok($crate::views::view($a.dtype()?, layout))
            }
        }
    };
}
pub(crate) use layout_rule;

/// The outcome of a rule with one view.
pub(crate) fn view<D: Dim>(dtype: restride_tensor::DType, layout: Layout<D>) -> ViewOutcome<D> {
    ViewOutcome::Views(smallvec![TensorType { dtype, layout }])
}

pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(OpError::new(message))
}

/// Declares an operator that always returns a view.
pub(crate) const fn a_view<R: Rule>(schema: &'static str, samples: Option<SampleFn>) -> OpDef {
    OpDef { view: Some(rule::<R>()), exactness: Exactness::Exact, samples, ..OpDef::new(schema) }
}

/// Marks a view that returns its operand itself where nothing changes.
pub(crate) const fn itself(def: OpDef) -> OpDef {
    OpDef { itself: true, ..def }
}

/// Marks a view that PyTorch refuses for some strides of its operand.
pub(crate) const fn asks_for_strides(def: OpDef) -> OpDef {
    OpDef { asks_for_strides: true, ..def }
}

/// Marks a composite view that PyTorch resolves first: of a lazily mapped tensor, it views a copy.
pub(crate) const fn resolves(def: OpDef) -> OpDef {
    OpDef { resolves: true, ..def }
}

/// Declares a view that copies where strides do not allow one; `infer` types the copy, in the same order.
pub(crate) const fn view_or_copy<R: Rule>(
    schema: &'static str,
    infer: restride_ir::InferFn,
    samples: Option<SampleFn>,
) -> OpDef {
    OpDef {
        infer: Some(infer),
        kernel: Kernel::Fixed(movement::same_order),
        movement: Some(Movement::Same),
        ..a_view::<R>(schema, samples)
    }
}

/// The outcome of a rule for known sizes.
pub(crate) fn outcome<R: Rule>(a: &Args<'_, Meta>) -> Result<ViewOutcome<i64>> {
    R::run::<i64>(&Args(&view_args(a.0)))
}

/// The views of a rule for known sizes.
pub(crate) fn views_of<R: Rule>(a: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    match outcome::<R>(a)? {
        ViewOutcome::Views(v) => Ok(v),
        _ => fail("the arguments do not give a view"),
    }
}

/// Shape rule of the `_copy` form of a view: each result row-major.
fn copied<R: Rule>(a: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    Ok(views_of::<R>(a)?.iter().map(|v| TensorType::contiguous(v.dtype, v.sizes())).collect())
}

/// Kernel of the `_copy` form of a view.
fn copy_kernel<R: Rule>(c: &Call<'_>) -> Result<()> {
    let ViewOutcome::Views(views) = R::run::<i64>(&Args(&movement::ruled(c, None)?))? else {
        return fail("the arguments do not give a view");
    };
    for (view, out) in views.iter().zip(c.outs) {
        restride_kernels::movement::copy::from_region(c.args.tensor(0)?, view.dtype, &view.layout, out)
            .map_err(OpError::new)?;
    }
    Ok(())
}

/// Marks a `_copy` form whose result has the operand's elements in their order, whatever the sizes.
pub(crate) const fn in_order(def: OpDef) -> OpDef {
    OpDef { kernel: Kernel::Fixed(movement::same_order), scratch: Some(order_scratch), ..def }
}
fn order_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let t = a.tensor(0)?;
    Ok(restride_kernels::movement::copy::same_order_room((t.dtype, &t.layout), &outs[0].layout))
}

/// Declares a `_copy` form by a function that returns the layout each result reads, from arguments and operand layout.
/// The form avoids the argument lists that a view rule needs.
macro_rules! reading {
    ($def:expr, |$c:ident, $l:ident| $layouts:expr) => {
        restride_ir::OpDef {
            kernel: restride_ir::Kernel::Fixed(|$c| {
                let $l = $c.args.tensor(0)?.layout();
                $crate::views::read($c, $layouts)
            }),
            ..$def
        }
    };
}
pub(crate) use reading;

/// Copies the cells of argument 0's memory that each layout names to the result of the same position.
pub(crate) fn read(c: &Call<'_>, layouts: impl Iterator<Item = Result<Layout>>) -> Result<()> {
    let from = c.args.tensor(0)?;
    for (out, layout) in c.outs.iter().zip(layouts) {
        restride_kernels::movement::copy::from_region(from, from.dtype(), &layout?, out).map_err(OpError::new)?;
    }
    Ok(())
}

/// The `_copy` form of a view.
pub(crate) const fn a_copy<R: Rule>(schema: &'static str, samples: Option<SampleFn>) -> OpDef {
    OpDef {
        infer: Some(copied::<R>),
        kernel: Kernel::Fixed(copy_kernel::<R>),
        movement: Some(Movement::View(rule::<R>())),
        exactness: Exactness::Exact,
        samples,
        ..OpDef::new(schema)
    }
}

/// Declares a view that changes the metadata of argument 0 itself.
pub(crate) const fn in_place<R: Rule>(schema: &'static str) -> OpDef {
    OpDef { view: Some(rule::<R>()), metadata: true, exactness: Exactness::Exact, ..OpDef::new(schema) }
}

/// `self` under other sizes: `Some(None)` if only a copy can have them, `None` if unknown sizes decide.
pub(crate) fn reshaped<D: Dim>(l: &Layout<D>, sizes: &[D]) -> Result<Option<Option<Layout<D>>>> {
    let sizes = l.infer_sizes(sizes)?;
    if let Some(negative) = sizes.iter().find(|s| s.less(&D::from(0)) == Some(true)) {
        return fail(format!("invalid shape dimension {negative}"));
    }
    match l.view(&sizes) {
        Some(v) => Ok(Some(Some(if v.sizes == l.sizes { restated(l) } else { v }))),
        None if l.known().is_some() && sizes.iter().all(|s| s.known().is_some()) => Ok(Some(None)),
        None => Ok(None),
    }
}

/// A layout viewed under its own sizes: PyTorch recomputes strides, which shows in dimensions of size 1.
fn restated<D: Dim>(l: &Layout<D>) -> Layout<D> {
    let ones = l.sizes.iter().any(|n| n.is(1)) && l.numel().less(&D::from(1)) == Some(false);
    if !ones {
        return l.clone();
    }
    // A leading dimension of size 1 makes the sizes differ; it is removed afterwards.
    let lead: Vec<D> = std::iter::once(D::from(1)).chain(l.sizes.iter().cloned()).collect();
    l.view(&lead).and_then(|v| v.select(0, &D::from(0)).ok()).unwrap_or_else(|| l.clone())
}

/// The outcome of `view`, which refuses sizes that need a copy.
pub(crate) fn must_view<D: Dim>(t: &TensorType<D>, sizes: &[D]) -> Result<ViewOutcome<D>> {
    match reshaped(&t.layout, sizes)? {
        Some(Some(l)) => Ok(view(t.dtype, l)),
        Some(None) => fail(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
             two contiguous subspaces). Use .reshape(...) instead.",
        ),
        None => Ok(ViewOutcome::Unknown),
    }
}

/// The outcome of `reshape`, which copies if it must.
pub(crate) fn may_view<D: Dim>(t: &TensorType<D>, sizes: &[D]) -> Result<ViewOutcome<D>> {
    Ok(match reshaped(&t.layout, sizes)? {
        Some(Some(l)) => view(t.dtype, l),
        Some(None) => ViewOutcome::Copy,
        None if splits_a_run(&t.layout, &t.layout.infer_sizes(sizes)?) => ViewOutcome::Copy,
        None => ViewOutcome::Unknown,
    })
}

/// Whether no strides express a layout under other sizes, provably: two dimensions of several indices are no single run of cells,
/// and no new dimension ends where they meet. Layouts without elements have any strides.
fn splits_a_run<D: Dim>(l: &Layout<D>, sizes: &[D]) -> bool {
    let more_than = |n: i64, size: &D| D::from(n).less(size) == Some(true);
    let differ = |a: &D, b: &D| a.equals(b) == Some(false);
    if sizes.iter().any(|n| !more_than(0, n)) || l.sizes.iter().any(|n| !more_than(0, n)) {
        return false;
    }
    // Elements in the last dimensions of the new sizes; all of them are more than those behind a dimension of several indices.
    let ends: Vec<D> = sizes[1.min(sizes.len())..]
        .iter()
        .rev()
        .scan(D::from(1), |n, size| {
            *n = n.times(size);
            Some(n.clone())
        })
        .chain([D::from(1)])
        .collect();
    let mut inner = D::from(1);
    (1..l.rank()).rev().any(|d| {
        inner = inner.times(&l.sizes[d]);
        more_than(1, &l.sizes[d - 1])
            && more_than(1, &l.sizes[d])
            && differ(&l.strides[d - 1], &l.sizes[d].times(&l.strides[d]))
            && ends.iter().all(|end| differ(end, &inner))
    })
}

/// A layout with its dimensions in the order that `movedim` gives.
pub(crate) fn move_dims<D: Dim>(l: &Layout<D>, from: &[i64], to: &[i64]) -> Result<Layout<D>> {
    let rank = l.rank();
    ensure!(
        from.len() == to.len(),
        "movedim: Invalid source or destination dims: source ({from:?} dims) should contain the same number of \
             dims as destination ({to:?} dims)"
    );
    let wrap = |dims: &[i64], what: &str| -> Result<Vec<usize>> {
        let wrapped = dims.iter().map(|&d| Ok(l.dim(d)?)).collect::<Result<Vec<usize>>>()?;
        let mut sorted = wrapped.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|w| w[0] == w[1]) {
            return fail(format!("movedim: repeated dim in `{what}` ({dims:?})"));
        }
        Ok(wrapped)
    };
    let (from, to) = (wrap(from, "source")?, wrap(to, "destination")?);
    if rank == 0 {
        return Ok(l.clone());
    }
    let mut order: Vec<Option<usize>> = vec![None; rank];
    for (&f, &t) in from.iter().zip(&to) {
        order[t] = Some(f);
    }
    let mut rest = (0..rank).filter(|d| !from.contains(d));
    let order: Vec<i64> = order.into_iter().map(|o| o.or_else(|| rest.next()).unwrap_or(0) as i64).collect();
    Ok(l.permute(&order)?)
}

/// The outcome of a squeeze; unknown if a size that it examines may or may not be 1.
pub(crate) fn squeezed<D: Dim>(t: &TensorType<D>, dims: Option<&[i64]>) -> Result<ViewOutcome<D>> {
    let l = &t.layout;
    let looked_at: Vec<usize> = match dims {
        None => (0..l.rank()).collect(),
        Some(dims) => dims.iter().map(|&d| Ok(l.dim(d)?)).collect::<Result<_>>()?,
    };
    let mut sorted = looked_at.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|w| w[0] == w[1]) {
        return fail("dim appears multiple times in the list of dims");
    }
    if looked_at.iter().any(|&d| l.sizes.get(d).is_some_and(|s| s.equals(&D::from(1)).is_none())) {
        return Ok(ViewOutcome::Unknown);
    }
    Ok(view(t.dtype, l.squeeze(dims)?))
}

/// PyTorch's `is_contiguous(memory_format)`: whether strides follow an order of dimensions, fastest first.
pub(crate) fn follows<D: Dim>(l: &Layout<D>, fastest_first: &[usize]) -> bool {
    let mut expected = D::from(1);
    l.rank() == fastest_first.len()
        && fastest_first.iter().all(|&d| {
            let fits = l.sizes[d].is(1) || l.strides[d].equals(&expected) == Some(true);
            if !l.sizes[d].is(1) {
                expected = expected.times(&l.sizes[d]);
            }
            fits
        })
}

/// A layout with one dimension cut to `length` elements from `start`.
pub(crate) fn cut<D: Dim>(l: &Layout<D>, d: usize, start: &D, length: &D) -> Layout<D> {
    let mut out = l.clone();
    out.offset = l.offset.plus(&start.times(&l.strides[d]));
    out.sizes[d] = length.clone();
    out
}

/// Other names of PyTorch for operators of this family.
static ALIASES: &[(&str, &str)] = &[
    ("swapaxes", "transpose.int"),
    ("swapdims", "transpose.int"),
    ("swapaxes_", "transpose_"),
    ("swapdims_", "transpose_"),
    ("moveaxis", "movedim"),
    ("split.sizes", "split_with_sizes"),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family =
    crate::Family { ops: &[shape::OPS, split::OPS, casts::OPS], gradients: &[], aliases: ALIASES };

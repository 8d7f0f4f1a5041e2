//! Collectives: PyTorch's functional collectives (`_c10d_functional`), their in-place forms, and the wait for their results.
//!
//! A collective's result is complete when it is read: `wait_tensor` is a view of it. Written files get their waits back.

mod grad;

use crate::support::{IN_PLACE, Metas, Result, ensure, fail, fresh, one};
use crate::views::shape::Identity;
use crate::views::{itself, rule};
use restride_ir::{
    Args, Exactness, Exchange, InferFn, Kernel, Meta, OpDef, Pattern, ReduceOp, Scalar, TwinDecl, TwinReturn,
};
use restride_kernels::support::scratch::tensor_room;
use std::sync::Arc;

type CollectiveArgs<'a> = Args<'a, Meta, Scalar>;

/// Declares a collective from argument 0 to a row-major result.
const fn collective(
    schema: &'static str,
    infer: InferFn,
    exchange: fn(&CollectiveArgs<'_>) -> Result<Exchange>,
    doc: &'static str,
) -> OpDef {
    OpDef {
        infer: Some(infer),
        kernel: Kernel::Collective(exchange),
        scratch: Some(packed_bytes),
        effectful: true,
        exactness: Exactness::Within { rtol: 1e-4, atol: 1e-5 },
        doc,
        ..OpDef::new(schema)
    }
}

/// Declares an operator that returns its operand when the exchange that computes it is complete.
const fn waits(schema: &'static str) -> OpDef {
    itself(OpDef { view: Some(rule::<Identity>()), exactness: Exactness::Exact, ..OpDef::new(schema) })
}

/// Engines take contiguous memory: an operand or a result in other strides is packed.
fn packed_bytes(a: &CollectiveArgs<'_>, outs: &[Meta]) -> Result<usize> {
    let bytes = |m: &Meta| if m.layout.is_contiguous() { 0 } else { tensor_room(m.dtype, m.layout.numel()) };
    Ok(bytes(a.tensor(0)?) + outs.first().map_or(0, bytes))
}

fn group(a: &CollectiveArgs<'_>, i: usize) -> Result<Arc<str>> {
    Ok(Arc::from(a.str(i)?))
}

/// The number of ranks at argument `i`.
fn ranks(a: &CollectiveArgs<'_>, i: usize) -> Result<i64> {
    let n = a.int(i)?;
    ensure!(n >= 1, "a group of {n} ranks");
    Ok(n)
}

/// The operand, which has a dimension 0 along which parts of ranks follow each other.
fn divided<'a>(a: &CollectiveArgs<'a>, what: &str) -> Result<&'a Meta> {
    let x = a.tensor(0)?;
    ensure!(x.rank() > 0, "{what} of a tensor without dimensions");
    Ok(x)
}

fn same(a: &CollectiveArgs<'_>) -> Metas {
    let x = a.tensor(0)?;
    one(fresh(x.dtype, x.sizes()))
}

fn with_rows(x: &Meta, rows: i64) -> Metas {
    let mut sizes = x.sizes().to_vec();
    sizes[0] = rows;
    one(fresh(x.dtype, &sizes))
}

fn gathered(a: &CollectiveArgs<'_>) -> Metas {
    let (x, n) = (divided(a, "all_gather_into_tensor")?, ranks(a, 1)?);
    match x.sizes()[0].checked_mul(n) {
        Some(rows) => with_rows(x, rows),
        None => fail(format!("all_gather_into_tensor of {} rows on {n} ranks", x.sizes()[0])),
    }
}

fn scattered(a: &CollectiveArgs<'_>) -> Metas {
    let (x, n) = (divided(a, "reduce_scatter_tensor")?, ranks(a, 2)?);
    let rows = x.sizes()[0];
    ensure!(
        rows % n == 0,
        "reduce_scatter_tensor: dimension 0 has {rows} elements, which {n} ranks cannot share equally"
    );
    with_rows(x, rows / n)
}

fn splits(a: &CollectiveArgs<'_>, i: usize) -> Result<Vec<i64>> {
    let splits = a.ints(i)?;
    ensure!(splits.iter().all(|n| *n >= 0), "all_to_all_single: a split of {splits:?} rows");
    Ok(splits.to_vec())
}

fn total(splits: &[i64]) -> Result<i64> {
    match splits.iter().try_fold(0i64, |sum, n| sum.checked_add(*n)) {
        Some(sum) => Ok(sum),
        None => fail(format!("all_to_all_single: splits {splits:?}")),
    }
}

fn exchanged(a: &CollectiveArgs<'_>) -> Metas {
    let x = divided(a, "all_to_all_single")?;
    let (received, sent) = (splits(a, 1)?, splits(a, 2)?);
    ensure!(
        received.len() == sent.len() && !sent.is_empty(),
        "all_to_all_single: {} output splits and {} input splits, each needs one for every rank",
        received.len(),
        sent.len()
    );
    let rows = total(&sent)?;
    ensure!(
        rows == x.sizes()[0],
        "all_to_all_single: the input splits are of {rows} rows, and dimension 0 has {}",
        x.sizes()[0]
    );
    with_rows(x, total(&received)?)
}

fn all_reduce(a: &CollectiveArgs<'_>) -> Result<Exchange> {
    Ok(Exchange { pattern: Pattern::AllReduce(ReduceOp::of(a.str(1)?)?), group: group(a, 2)?, ranks: None })
}

fn all_gather(a: &CollectiveArgs<'_>) -> Result<Exchange> {
    Ok(Exchange { pattern: Pattern::AllGather, group: group(a, 2)?, ranks: Some(ranks(a, 1)?) })
}

fn reduce_scatter(a: &CollectiveArgs<'_>) -> Result<Exchange> {
    let op = ReduceOp::of(a.str(1)?)?;
    Ok(Exchange { pattern: Pattern::ReduceScatter(op), group: group(a, 3)?, ranks: Some(ranks(a, 2)?) })
}

fn all_to_all(a: &CollectiveArgs<'_>) -> Result<Exchange> {
    let x = divided(a, "all_to_all_single")?;
    let row: i64 = x.sizes()[1..].iter().product();
    let elements = |rows: Vec<i64>| rows.into_iter().map(|n| (n * row) as usize).collect::<Vec<_>>();
    let (received, sent) = (splits(a, 1)?, splits(a, 2)?);
    let ranks = Some(sent.len() as i64);
    let pattern = Pattern::AllToAll { sent: elements(sent), received: elements(received) };
    Ok(Exchange { pattern, group: group(a, 3)?, ranks })
}

fn broadcast(a: &CollectiveArgs<'_>) -> Result<Exchange> {
    Ok(Exchange { pattern: Pattern::Broadcast { root: a.int(1)? }, group: group(a, 2)?, ranks: None })
}

/// The `out=` form of an operator with `N` arguments before `out`.
const fn into_out(schema: &'static str, op: &'static str, args: &'static [u8], writes: &'static [(u8, u8)]) -> OpDef {
    let returns: &[TwinReturn] = match writes {
        [(3, _), ..] => &[TwinReturn::Arg(3)],
        _ => &[TwinReturn::Arg(4)],
    };
    OpDef { twin: Some(TwinDecl { op, args, writes, returns, when: None }), ..OpDef::new(schema) }
}

static OPS: &[OpDef] = table![
    collective("_c10d_functional::all_reduce", same, all_reduce, "The reduction of all ranks' tensors, on every rank")
        .reusing(IN_PLACE)
        .graded(grad::ALL_REDUCE),
    collective(
        "_c10d_functional::all_gather_into_tensor",
        gathered,
        all_gather,
        "All ranks' tensors along dimension 0, on every rank",
    )
    .graded(grad::ALL_GATHER),
    collective(
        "_c10d_functional::reduce_scatter_tensor",
        scattered,
        reduce_scatter,
        "The own part along dimension 0 of the reduction of all ranks' tensors",
    )
    .graded(grad::REDUCE_SCATTER),
    collective(
        "_c10d_functional::all_to_all_single",
        exchanged,
        all_to_all,
        "The own part along dimension 0 of each rank's tensor",
    )
    .graded(grad::ALL_TO_ALL),
    collective("_c10d_functional::broadcast", same, broadcast, "One rank's tensor, on every rank").reusing(IN_PLACE),
    collective(
        "_c10d_functional_autograd::all_gather_into_tensor",
        gathered,
        all_gather,
        "`all_gather_into_tensor` under the name that autograd differentiates",
    )
    .graded(grad::ALL_GATHER),
    collective(
        "_c10d_functional_autograd::reduce_scatter_tensor",
        scattered,
        reduce_scatter,
        "`reduce_scatter_tensor` under the name that autograd differentiates",
    )
    .graded(grad::REDUCE_SCATTER),
    collective(
        "_c10d_functional_autograd::all_to_all_single",
        exchanged,
        all_to_all,
        "`all_to_all_single` under the name that autograd differentiates",
    )
    .graded(grad::ALL_TO_ALL),
    into_out(
        "_c10d_functional::all_gather_into_tensor_out",
        "_c10d_functional.all_gather_into_tensor.default",
        &[0, 1, 2],
        &[(3, 0)],
    ),
    into_out(
        "_c10d_functional::reduce_scatter_tensor_out",
        "_c10d_functional.reduce_scatter_tensor.default",
        &[0, 1, 2, 3],
        &[(4, 0)],
    ),
    // PyTorch's schemas omit the alias that these operators return.
    waits("_c10d_functional::wait_tensor(Tensor(a) tensor) -> Tensor(a)"),
    OpDef {
        doc: "Waits for each tensor of a list",
        ..OpDef::new("_c10d_functional::wait_tensors(Tensor(a)[] tensors) -> Tensor(a)[]")
    },
    waits("_c10d_functional::_wrap_tensor_autograd(Tensor(a) input) -> Tensor(a)"),
    OpDef {
        doc: "The complete result of an exchange, whose operands are held until then",
        awaits: true,
        effectful: true,
        view: Some(rule::<Identity>()),
        ..OpDef::new("restride::wait(Tensor(a) started, Tensor[] held) -> Tensor(a)")
    },
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family { ops: &[OPS], gradients: &[], aliases: &[] };

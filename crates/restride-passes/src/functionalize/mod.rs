//! Functionalization: SSA construction over storages.
//!
//! Every storage has a current version, a value of the new graph; every old value is an alias, a region of one. A mutating
//! operator becomes its functional twin, whose result is written to the region: a new version of the storage in which
//! exactly the region's cells changed. Views are emitted when a node reads them. At the end, the versions of input storages
//! are declared outputs, and outputs declare the memory that they are views of.
//!
//! The semantics are those of eager PyTorch's aliasing.

mod bodies;
mod control_flow;
mod custom_ops;
mod dtype_views;
mod histories;
mod in_place_calls;
mod metadata_ops;
mod overlapping_writes;
pub(crate) mod region;
pub(crate) mod region_ops;
mod result_bits;
pub(crate) mod rewrite;
pub(crate) mod shared_region;
mod signature;
mod storages;
mod unroll;
mod write_order;
mod writes;

use crate::dce::keep_failing;
use crate::symbols::{at_least_two, possible_units, specialize};
use restride_ir::{Arg, Binding, CollectTree, Dims, Error, Expr, ExprFn, Program, Result, Stage, Symbol};
use std::collections::BTreeMap;
use std::sync::Arc;

/// User inputs that share one storage. A single input gives the size of its storage, for programs that reach beyond the
/// input's elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// Positions among the program's inputs (`Signature::inputs`).
    pub inputs: Vec<usize>,
    /// Bytes of the storage.
    pub bytes: i64,
    /// Real strides and offset of each input, in the order of `inputs`. The result is specialised for them.
    pub layouts: Vec<(Dims<i64>, i64)>,
}

/// Assumptions that functionalization may rely on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FunctionalizeOptions {
    /// Inputs that share storage. Others are taken not to; a run checks that.
    pub shares: Vec<Share>,
    /// Values of the program's symbols. Used where a program has no functional form that is right for all sizes: the
    /// result is specialised for them then.
    pub sizes: Binding,
}

/// The program without mutation: input and buffer mutations are declared outputs.
///
/// # Errors
/// The program does something that eager PyTorch refuses (a write into an expanded view) or that has no functional form
/// here; with the node.
pub fn functionalize(program: &Program, options: &FunctionalizeOptions) -> Result<Program> {
    if program.stage == Stage::Functional {
        let mut out = program.clone();
        keep_failing(&mut out);
        return Ok(out);
    }
    let expanded = crate::aliases::expand(program)?;
    let program = expanded.as_ref().unwrap_or(program);
    // Other inputs whose storage is needed whole are found on the way; then it starts again with them.
    let mut whole = signature::written_in_repeats(program).into_iter().map(|i| (i, 0)).collect_map();
    loop {
        match signature::run(program, options, &whole) {
            Ok(out) => return Ok(out),
            Err(rewrite::Halt::NeedsStorage(input)) if !whole.contains_key(&input) => {
                whole.insert(input, 0);
            }
            Err(rewrite::Halt::NeedsRoom(input, bytes)) if whole.get(&input).is_none_or(|b| *b < bytes) => {
                whole.insert(input, bytes);
            }
            Err(rewrite::Halt::NeedsStorage(input) | rewrite::Halt::NeedsRoom(input, _)) => {
                return Err(Error::invalid(format!("input {input} needs its whole storage, which it has")));
            }
            Err(rewrite::Halt::NeedsSizes(why)) => {
                if let Some(out) = without_units(program, options, &whole, &why.what) {
                    return Ok(out);
                }
                if options.sizes.is_empty() {
                    return Err(*why);
                }
                let known = FunctionalizeOptions { shares: options.shares.clone(), sizes: Binding::new() };
                let mut own = specialize(program, &options.sizes);
                own.notes.push(format!("sizes are fixed to those of the inputs: {}", why.what));
                restride_ir::relay(&mut own);
                return functionalize(&own, &known);
            }
            Err(rewrite::Halt::Error(e)) => return Err(e),
        }
    }
}

/// The form for sizes of at least 2, which an exporter assumes, too: what is a view with a size of 1 is a copy with all others. The
/// program asserts that the sizes are so, of as few symbols as it takes. `None` where that does not help.
fn without_units(
    program: &Program,
    options: &FunctionalizeOptions,
    whole: &BTreeMap<usize, i64>,
    why: &str,
) -> Option<Program> {
    const SYMBOLS: usize = 8;
    let mut raised = possible_units(program, &options.sizes);
    let run = |raised: &[Symbol]| signature::run(&at_least_two(program, raised), options, whole).ok();
    let mut out = run(&raised).filter(|_| !raised.is_empty())?;
    if raised.len() <= SYMBOLS {
        for symbol in raised.clone() {
            let others: Vec<Symbol> = raised.iter().filter(|s| **s != symbol).cloned().collect();
            if let Some(wider) = run(&others) {
                (out, raised) = (wider, others);
            }
        }
    }
    let assert = rewrite::op("aten._assert_scalar.default");
    let graph = out.graph_mut();
    let rest = std::mem::take(&mut graph.order);
    for symbol in &raised {
        let condition = Expr::call(ExprFn::Ge, vec![Expr::Sym(symbol.clone()), Expr::Int(2)]);
        let text = format!("{} is less than 2, and {why}", symbol.name());
        graph.add_node(assert, vec![Arg::Scalar(condition), Arg::Str(text.into())], [], Arc::default());
    }
    graph.order.extend(rest);
    let names: Vec<&str> = raised.iter().map(Symbol::name).collect();
    out.notes.push(format!("{} must be at least 2: {why}", names.join(", ")));
    Some(out)
}

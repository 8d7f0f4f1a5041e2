//! Core ATen alone, where it has a form for an operator.
//!
//! Other compilers know PyTorch's operators unevenly, but all accept Core ATen, the operators that PyTorch asks of every
//! backend. Other operators are written with these: views by `slice`, `select`, `permute`, `view` and their like,
//! compositions by their parts, writes by scatters and `index_put`. Operators without a core form stay.
//!
//! Among core operators those are chosen that every importer knows: `slice_scatter` for `select_scatter`, an `index_put`
//! with an index for every dimension. `item` stays, as importers do not know its core form `_local_scalar_dense`. Moved
//! elements are the same; sums may have another order. The number of nodes grows, so this form is for files, on request,
//! and for inference: `detach` goes, as in PyTorch's own decompositions.

mod core;
mod flat;
mod index;

use restride_ir::{Error, Program, Result, Stage};

/// The program in operators that are commonly taken, in every graph.
///
/// # Errors
/// A program that is not functional; an operator of restride's own that is composed otherwise for other sizes, where these are
/// not known.
pub fn portable(program: &Program) -> Result<Program> {
    if program.stage != Stage::Functional {
        return Err(Error::invalid("only functional programs are made portable"));
    }
    let program = crate::chains::nested(&crate::lower::expand_own(program)?)?;
    let program = core::core(&program)?;
    let made = core::core(&index::indexed(&program)?)?;
    Ok(Program { inference: true, ..made })
}

//! Core ATen alone, where it has a form of what the program says.
//!
//! A functional program needs few operators to say its writes, but other compilers know PyTorch's operators unevenly. All of
//! them take Core ATen, the operators that PyTorch asks of every backend. Others are said by these where they can be: views by
//! `slice`, `select`, `permute`, `view` and their like; compositions by what they are composed of; writes by scatters and
//! `index_put`. What has no form in Core ATen stays as it is. Among core operators those are chosen that every importer knows:
//! `slice_scatter` for `select_scatter`, an `index_put` with an index for every dimension. Elements that are only moved are the
//! same; `item` stays, as importers do not know its core form `_local_scalar_dense`; sums may be taken in another order. The
//! number of nodes grows, so this is for writing files, on request, and for inference: `detach` goes, as in PyTorch's own
//! decompositions.

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
    core::core(&index::indexed(&program)?)
}

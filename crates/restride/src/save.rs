//! Writing programs back.

use crate::Compiled;
use restride_exec::Inputs;
use restride_ir::{Program, Result};
use std::path::Path;

/// Writes a program as a `.pt2` that `torch.export.load` takes.
///
/// # Errors
/// What has no form in a `.pt2`, and a file that cannot be written.
pub fn save(program: &Program, path: &Path) -> Result<()> {
    restride_pt2::export::export_file(&restride_passes::expand_own(program)?, path)
}

impl Compiled {
    /// Writes the functional program with placement and plan.
    ///
    /// # Errors
    /// As [`save`].
    pub fn save(&self, _inputs: &Inputs, path: &Path) -> Result<()> {
        save(self.functional(), path)
    }

    /// The program with in-place operators and views, as PyTorch has them.
    ///
    /// # Errors
    /// Memory that PyTorch's operators cannot express, with the node.
    pub fn reinplaced(&self, _inputs: &Inputs) -> Result<Program> {
        Ok(restride_passes::materialize(self.functional())?.0)
    }
}

//! The fused form of a program: taken if its arena is no larger.

use super::attempt::{Attempt, attempt, needs, timed};
use crate::compile::{CompileOptions, Times};
use restride_ir::{Remark, Result};
use restride_passes::fuse::{FuseOptions, Fused, FusedGroups, fuse};

/// Sizes of groups, and whether they have heads, that are tried one after the other, until the arena is no larger than without fusion.
const FORMS: [(usize, bool); 4] = [(usize::MAX, true), (usize::MAX, false), (4, false), (2, false)];

/// A program of more nodes is tried in fewer forms.
const LARGE: usize = 10_000;

/// A program with fused nodes, placed and planned.
pub(crate) struct FusedAttempt {
    pub attempt: Attempt,
    pub groups: FusedGroups,
    /// What was fused and what was not.
    pub remarks: Vec<Remark>,
}

/// Fuses nodes of a program that was placed and planned without; `None` where nothing is fused, or would need a larger arena.
pub(crate) fn fused(plain: &Attempt, options: &CompileOptions, times: &mut Times) -> Result<Option<FusedAttempt>> {
    let mut tried = FusedGroups::new();
    // Each attempt places and plans the program anew.
    let forms = if plain.program.graph().order.len() > LARGE { &FORMS[..2] } else { &FORMS[..] };
    for &(most, heads) in forms {
        let fuse_options =
            FuseOptions { most: options.fuse.most.min(most), heads: options.fuse.heads && heads, ..options.fuse };
        let found = timed(&mut times.fuse, || fuse(&plain.program, &fuse_options))?;
        let Some(Fused { program, groups, remarks }) = found else { continue };
        if groups == tried {
            continue;
        }
        let attempt = attempt(program, options, times)?;
        if needs(&attempt) <= needs(plain) {
            return Ok(Some(FusedAttempt { attempt, groups, remarks }));
        }
        tried = groups;
    }
    Ok(None)
}

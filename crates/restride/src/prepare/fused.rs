//! The fused form of a program: taken if its arena is no larger and it copies no more.

use super::attempt::{Attempt, attempt_in, moved, needs, timed};
use crate::compile::{CompileOptions, Times};
use restride_ir::{Remark, Result};
use restride_passes::fuse::{FuseOptions, Fused, FusedGroups, fuse};
use restride_passes::place::PlaceOptions;

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

/// Fuses nodes of a program that was placed and planned without. `None` where nothing is fused, or the arena or the copies would be
/// larger.
pub(crate) fn fused(plain: &Attempt, options: &CompileOptions, times: &mut Times) -> Result<Option<FusedAttempt>> {
    let mut tried = FusedGroups::new();
    // Layouts are chosen as they were without fusion.
    let place = PlaceOptions { by_time: plain.placed.by_time, ..options.place };
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
        match attempt_in(program, &place, options, times) {
            Ok(attempt) if needs(&attempt) <= needs(plain) && moved(&attempt) <= moved(plain) => {
                return Ok(Some(FusedAttempt { attempt, groups, remarks }));
            }
            // A pinned value may be inside of a group.
            Err(e) if options.memories.is_empty() => return Err(e),
            _ => tried = groups,
        }
    }
    Ok(None)
}

//! The fused form of a program: taken if its arena is no larger and it copies no more.

use super::attempt::{Attempt, moved, needs, timed, unsearched};
use crate::compile::{CompileOptions, Times};
use restride_ir::{Program, Remark, Result};
use restride_passes::arena_floor;
use restride_passes::fuse::{FuseOptions, Fused, FusedGroups, fuse};
use restride_passes::place::PlaceOptions;

/// Sizes of groups, and whether they have heads and siblings, that are tried one after the other, until the arena is no larger than
/// without fusion.
const FORMS: [(usize, bool, bool); 5] = [
    (usize::MAX, true, true),
    (usize::MAX, true, false),
    (usize::MAX, false, false),
    (4, false, true),
    (2, false, false),
];

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
/// larger. `early` is the first form, if it was placed before.
pub(crate) fn fused(
    plain: &Attempt,
    early: Option<FusedAttempt>,
    options: &CompileOptions,
    times: &mut Times,
) -> Result<Option<FusedAttempt>> {
    let mut tried = FusedGroups::new();
    // Layouts are chosen as they were without fusion.
    let place = PlaceOptions { by_time: plain.placed.by_time, ..options.place };
    let mut early = early.filter(|_| !plain.placed.by_time);
    // Each attempt places and plans the program anew.
    let forms = if plain.program.graph().order.len() > LARGE { &FORMS[..3] } else { &FORMS[..] };
    let mut last = None;
    for &(most, heads, siblings) in forms {
        let most = options.fuse.most.min(most);
        let (heads, siblings) = (options.fuse.heads && heads, options.fuse.siblings && siblings);
        let fuse_options = FuseOptions { most, heads, siblings, ..options.fuse };
        if last.replace(fuse_options) == Some(fuse_options) {
            continue;
        }
        let tried_now = match early.take() {
            Some(early) => early,
            None => {
                let found = timed(&mut times.fuse, || fuse(&plain.program, &fuse_options))?;
                let Some(Fused { program, groups, remarks }) = found else { continue };
                if groups == tried {
                    continue;
                }
                match unsearched(program, &place, options, times) {
                    Ok(attempt) => FusedAttempt { attempt, groups, remarks },
                    Err(e) if options.memories.is_empty() => return Err(e),
                    // A pinned value may be inside of a group.
                    Err(_) => {
                        tried = groups;
                        continue;
                    }
                }
            }
        };
        let FusedAttempt { mut attempt, groups, remarks } = tried_now;
        if moved(&attempt) <= moved(plain) {
            // A search helps where the arena may be as small as without fusion.
            if needs(&attempt) <= needs(plain) || attempt.plan.lower_bound_bytes <= plain.plan.arena_bytes {
                attempt = attempt.searched(options, times)?;
            }
            if needs(&attempt) <= needs(plain) {
                return Ok(Some(FusedAttempt { attempt, groups, remarks }));
            }
        }
        tried = groups;
    }
    Ok(None)
}

/// The fused form of a program, placed without the program as it is.
pub(crate) enum EarlyFused {
    /// The arena of no form is smaller, and nothing is copied.
    AtFloor(FusedAttempt),
    /// The form without fusion may be better.
    Open(FusedAttempt),
    /// No form was placed, or only one whose layouts were chosen by time.
    None,
}

/// Places the fused form of a program first: where that is at the floor of the arena, the program as it is need not be placed.
pub(crate) fn early_fused(program: &Program, options: &CompileOptions, times: &mut Times) -> Result<EarlyFused> {
    if !options.memories.is_empty() {
        return Ok(EarlyFused::None);
    }
    let Some(Fused { program: with, groups, remarks }) = timed(&mut times.fuse, || fuse(program, &options.fuse))?
    else {
        return Ok(EarlyFused::None);
    };
    let attempt = unsearched(with, &options.place, options, times)?;
    // Layouts by time are chosen for the program without fusion.
    if attempt.placed.by_time {
        return Ok(EarlyFused::None);
    }
    let arena = attempt.plan.arena_bytes;
    let mut at_floor = || arena == 0 || timed(&mut times.place, || arena <= arena_floor(program));
    let least = attempt.plan.optimal && moved(&attempt) == 0 && at_floor();
    let found = FusedAttempt { attempt, groups, remarks };
    Ok(if least { EarlyFused::AtFloor(found) } else { EarlyFused::Open(found) })
}

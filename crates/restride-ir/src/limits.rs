//! Limits on what an untrusted program may ask for. Large counts and sizes cost nothing to write in a file.

use crate::{CollectTree, Error, ErrorKind, GraphId, Node, Program, Result, Table, callees_first, fused_body};
use std::collections::BTreeSet;

/// Bounds that are checked before memory or time is spent. A program beyond one is refused with [`ErrorKind::Limit`]. No
/// real model comes near the defaults; trusted programs may get more.
///
/// The operators' own rules bound the parts of one `split` or `unbind` at 2^17.
///
/// ```
/// use restride_ir::Limits;
/// let mut limits = Limits { trips: 1000, ..Limits::default() };
/// limits.set("depth", 8)?;
/// # Ok::<(), restride_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes that the compressed entries of an archive may inflate to, or a hundred times the archive's length if that is
    /// more.
    pub inflated: u64,
    /// Nesting depth of higher-order operators.
    pub depth: u64,
    /// Bodies, counted once for each caller: shared bodies double with every level.
    pub bodies: u64,
    /// Iterations of one `while_loop`, `scan` or `map`.
    pub trips: u64,
    /// Bytes of an arena, and of a tensor of the interpreter.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { inflated: 1 << 30, depth: 64, bodies: 1 << 13, trips: 1 << 24, memory: 1 << 38 }
    }
}

impl Limits {
    /// The names that [`Limits::set`] takes.
    pub const NAMES: [&str; 5] = ["inflated", "depth", "bodies", "trips", "memory"];

    /// Sets a limit by its name.
    ///
    /// # Errors
    /// No limit has this name.
    pub fn set(&mut self, name: &str, most: u64) -> Result<()> {
        *match name {
            "inflated" => &mut self.inflated,
            "depth" => &mut self.depth,
            "bodies" => &mut self.bodies,
            "trips" => &mut self.trips,
            "memory" => &mut self.memory,
            _ => {
                let what = format!("unknown limit {name:?}; the limits are {}", Self::NAMES.join(", "));
                return Err(Error::new(ErrorKind::Inputs, what));
            }
        } = most;
        Ok(())
    }

    /// Refuses more iterations than [`Limits::trips`].
    ///
    /// # Errors
    /// An error of kind [`ErrorKind::Limit`].
    pub fn check_trips(&self, trips: u64) -> Result<()> {
        if trips > self.trips {
            Err(beyond(format!("a loop of {trips} iterations"), "trips", self.trips))
        } else {
            Ok(())
        }
    }

    /// Refuses more bytes than [`Limits::memory`].
    ///
    /// # Errors
    /// An error of kind [`ErrorKind::Limit`].
    pub fn check_memory(&self, bytes: u64) -> Result<()> {
        if bytes > self.memory {
            return Err(beyond(format!("{bytes} bytes of memory"), "memory", self.memory));
        }
        Ok(())
    }

    /// Refuses programs whose bodies nest deeper than [`Limits::depth`].
    ///
    /// # Errors
    /// An error of kind [`ErrorKind::Limit`]; a body that calls itself.
    pub fn check_depth(&self, program: &Program) -> Result<()> {
        let (depth, _) = nesting(program)?;
        if depth > self.depth {
            return Err(beyond(format!("higher-order operators nested {depth} deep"), "depth", self.depth));
        }
        Ok(())
    }

    /// Refuses programs with more bodies than [`Limits::bodies`], for passes that visit a body once for each caller.
    ///
    /// # Errors
    /// An error of kind [`ErrorKind::Limit`]; a body that calls itself.
    pub fn check_bodies(&self, program: &Program) -> Result<()> {
        let (_, bodies) = nesting(program)?;
        if bodies > self.bodies {
            let what = format!("higher-order operators nest {bodies} bodies, each counted in every body that calls it");
            return Err(beyond(what, "bodies", self.bodies));
        }
        Ok(())
    }
}

/// The error for a request beyond a limit.
pub fn beyond(what: impl Into<String>, name: &str, most: u64) -> Error {
    let what = format!("{}: the limit {name:?} is {most}", what.into());
    Error::new(ErrorKind::Limit, what)
        .help(format!("give more with --limit {name}=N (Limits::{name}) if the program is trusted"))
}

/// Nesting depth under the main graph, and the number of graphs if each counts once for each caller. Bodies of fused nodes
/// that call no others do not count.
fn nesting(program: &Program) -> Result<(u64, u64)> {
    let mut known: Table<GraphId, (u64, u64)> = Table::new();
    for id in callees_first(program)? {
        let leaf = |n: &Node| fused_body(n).is_some_and(|body| known[body] == (0, 1));
        let calls = program.graphs[id].ordered().filter(|(_, n)| !leaf(n));
        let called: BTreeSet<GraphId> = calls.flat_map(|(_, n)| n.bodies()).collect_set();
        let (mut depth, mut count) = (0, 1u64);
        for body in called {
            let (below, bodies) = known[body];
            depth = depth.max(below + 1);
            count = count.saturating_add(bodies);
        }
        known.set(id, (depth, count));
    }
    Ok(known[program.main])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ops::lookup;

    /// Each level calls the next one in both branches.
    fn levels(n: usize) -> Program {
        let mut text = String::from(
            "graph(%p: bool[], %x: f32[2]) { %y: f32[2] = higher_order.cond(%p, @g0, @h0, [%p, %x]) return %y }",
        );
        for i in 0..n {
            for own in ["g", "h"] {
                let next = i + 1;
                let call = if next < n {
                    format!("%y: f32[2] = higher_order.cond(%p, @g{next}, @h{next}, [%p, %x])")
                } else {
                    "%y: f32[2] = aten.relu.default(%x)".into()
                };
                text += &format!(" graph @{own}{i}(%p: bool[], %x: f32[2]) {{ {call} return %y }}");
            }
        }
        crate::text::parse(&text, &lookup).expect("a program")
    }

    #[test]
    fn bodies_are_counted_in_each_that_calls_them() {
        assert_eq!(nesting(&levels(3)), Ok((3, 15)));
        let limits = Limits { depth: 3, bodies: 15, ..Limits::default() };
        assert!(limits.check_bodies(&levels(3)).is_ok() && limits.check_depth(&levels(3)).is_ok());
        let tight = Limits { depth: 2, bodies: 14, ..limits };
        for refused in [tight.check_bodies(&levels(3)), tight.check_depth(&levels(3))] {
            assert_eq!(refused.expect_err("beyond").kind, ErrorKind::Limit);
        }
        // 2^60 bodies take no time to count.
        assert!(Limits::default().check_bodies(&levels(60)).expect_err("beyond").what.contains("bodies"));
    }

    #[test]
    fn limits_are_set_by_name() {
        let mut limits = Limits::default();
        for name in Limits::NAMES {
            limits.set(name, 7).expect("a name");
        }
        assert_eq!(limits, Limits { inflated: 7, depth: 7, bodies: 7, trips: 7, memory: 7 });
        assert!(limits.set("time", 7).expect_err("no limit").what.contains("trips"));
    }
}

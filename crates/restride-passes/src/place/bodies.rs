//! How often bodies are placed: a body is placed once for each body that calls it.

use restride_ir::{Error, GraphId, HopCall, Program, Result, Table};
use std::collections::BTreeSet;

/// Shared bodies that call shared bodies double with every level: no program means more placements than this.
const MOST: u64 = 1 << 13;

/// Refuses programs whose bodies would be placed more than [`MOST`] times, before the first one is.
pub(super) fn few(program: &Program) -> Result<()> {
    let count = count(program, program.main, &mut Table::new())?;
    if count > MOST {
        let what = format!("higher-order operators nest {count} bodies, each counted in every body that calls it");
        let help =
            format!("no more than {MOST} are supported: let fewer levels of branches and loops share their bodies");
        return Err(Error::unsupported(what).help(help));
    }
    Ok(())
}

/// The placements that placing a graph makes, its own among them.
fn count(program: &Program, id: GraphId, known: &mut Table<GraphId, u64>) -> Result<u64> {
    if known[id] > 0 {
        return Ok(known[id]);
    }
    let graph = &program.graphs[id];
    let mut bodies = BTreeSet::new();
    for (_, node) in graph.ordered().filter(|(_, n)| n.op.def().hop.is_some()) {
        bodies.extend(HopCall::of(graph, node)?.into_iter().flat_map(|call| call.bodies));
    }
    let mut sum = 1u64;
    for body in bodies {
        sum = sum.saturating_add(count(program, body, known)?);
    }
    known.set(id, sum);
    Ok(sum)
}

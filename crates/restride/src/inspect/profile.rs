//! Where the time of a run goes: each step's time and the work that it does.

use super::explain::Site;
use super::site;
use crate::session::Session;
use restride_ir::{CollectTree, Graph, NodeId, Place, Result, Step, ValueId, macs};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time of a step and the work that it does.
#[derive(Clone, PartialEq, Debug)]
pub struct StepTime {
    /// Its node; of a move the node that computed the value, and `None` for an input.
    pub site: Option<Site>,
    /// Whether it moves the value to another place, which no node asks for.
    pub moves: bool,
    /// Median over the runs.
    pub time: Duration,
    /// Bytes that it reads and writes: each element of its operands and results once.
    pub bytes: i64,
    /// Multiply-adds of a sum of products, 0 for other operators.
    pub macs: i64,
}

impl Session {
    /// Runs `runs` times, at least once, and returns the time of each step that does work, in the order in which they run. A step
    /// that calls the bodies of a `cond` or a loop is one step.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, Inputs, OpenOptions, RunOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/llama_decode.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
    /// let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
    /// let mut session = compiled.instance()?.session(&inputs, &[], &RunOptions::default())?;
    /// let steps = session.profile(5)?;
    /// let slowest = steps.iter().max_by_key(|s| s.time).expect("it has steps");
    /// println!("{:?} in {}", slowest.time, slowest.site.as_ref().map_or("a move", |s| &s.op));
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn profile(&mut self, runs: usize) -> Result<Vec<StepTime>> {
        let mut each: Vec<Vec<Duration>> = Vec::new();
        let mut times = Vec::new();
        for _ in 0..runs.max(1) {
            self.run_timed(&mut times)?;
            each.resize(times.len(), Vec::new());
            each.iter_mut().zip(&times).for_each(|(all, t)| all.push(*t));
        }
        let segment = self.segment();
        let graph = segment.program.graph();
        let made = graph.order.iter().flat_map(|id| graph.nodes[*id].results.iter().map(move |r| (*r, *id)));
        let makers: BTreeMap<ValueId, NodeId> = made.collect_map();
        let steps = segment.placement.steps.iter().zip(each);
        Ok(steps
            .filter_map(|(step, mut times)| {
                times.sort_unstable();
                let time = times[times.len() / 2];
                Some(match step {
                    Step::Run { node, reads, writes } => StepTime {
                        site: Some(site(&segment.program, graph, &graph.nodes[*node], 0, None)),
                        moves: false,
                        time,
                        bytes: {
                            let node = &graph.nodes[*node];
                            let values = node.operands().zip(reads).chain(node.results.iter().copied().zip(writes));
                            values.filter_map(|(v, p)| Some(bytes(graph, v, p.as_ref()?))).sum()
                        },
                        macs: macs(&segment.program.graphs, graph, *node),
                    },
                    Step::Move { value, from, to } => StepTime {
                        site: makers.get(value).map(|id| site(&segment.program, graph, &graph.nodes[*id], 0, None)),
                        moves: true,
                        time,
                        bytes: bytes(graph, *value, from) + bytes(graph, *value, to),
                        macs: 0,
                    },
                    Step::Free { .. } => return None,
                })
            })
            .collect())
    }
}

/// Bytes of a value at a place; the repeated elements of an expanded dimension count once.
fn bytes(graph: &Graph, v: ValueId, place: &Place) -> i64 {
    let size = graph.values[v].ty.tensor().map_or(0, |t| t.dtype.size() as i64);
    let dims = place.layout.sizes.iter().zip(&place.layout.strides);
    dims.filter(|(_, stride)| **stride != 0).fold(size, |n, (size, _)| n.saturating_mul(*size))
}

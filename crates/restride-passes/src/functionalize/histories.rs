//! Autograd histories of storages, and the values that PyTorch saves for backward and that later writes change.
//!
//! Tensors that share a storage need not share a history: a detached tensor is the base of views of its own, and a write under
//! `no_grad` changes the elements and no history. A storage has one content, and for each history the value that has it, with
//! the version of the content that this value holds. Where that is not the current version, `with_history` joins the two.

use super::shared_region::SharedRegion;
use restride_ir::{Grad, Graph, Id, NodeId, Op, Table, ValueId};
use restride_ops::gradient::kept;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// A history of a storage, by position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Root(usize);

impl Root {
    /// The history of the tensor that the storage was made for.
    pub const OWN: Root = Root(0);
}

/// The histories of one storage.
#[derive(Debug)]
pub struct Histories(SmallVec<[Option<(ValueId, usize)>; 1]>);

impl Histories {
    /// Those of a new storage with this content.
    pub fn new(base: ValueId) -> Histories {
        Histories(smallvec![Some((base, 0))])
    }

    /// Takes another content of the same version for every history but those of constants.
    pub fn extend(&mut self, base: ValueId, version: usize) {
        self.0.iter_mut().flatten().for_each(|h| *h = (base, version));
    }

    /// Adds the history of a constant.
    pub fn add(&mut self) -> Root {
        self.0.push(None);
        Root(self.0.len() - 1)
    }

    /// The value that has a history, and the version of the content that it holds; `None` for a constant.
    pub fn get(&self, root: Root) -> Option<(ValueId, usize)> {
        self.0[root.0]
    }

    /// Says that a value, which holds this version of the content, has a history.
    pub fn set(&mut self, root: Root, value: ValueId, version: usize) {
        self.0[root.0] = Some((value, version));
    }
}

/// Which values of a graph may depend on inputs that can be differentiated.
#[derive(Debug, Default)]
pub struct Flows {
    needs: Table<ValueId, bool>,
    constants: Table<ValueId, bool>,
    /// Number of nodes and inputs that were looked at.
    seen: (usize, usize),
}

impl Flows {
    /// Says that an input, a buffer or a constant, is never differentiated.
    pub fn constant(&mut self, input: ValueId) {
        self.constants.set(input, true);
    }

    /// Whether a value may be differentiated. Looks at each node once, however often it is asked.
    pub fn differentiable(&mut self, graph: &Graph, v: ValueId) -> bool {
        let floating =
            |v: ValueId| graph.values[v].ty.tensor().is_some_and(|t| t.dtype.is_float() || t.dtype.is_complex());
        for &input in &graph.inputs[self.seen.1..] {
            self.needs.set(input, floating(input) && !self.constants[input]);
        }
        for at in self.seen.0..graph.nodes.len() {
            let node = &graph.nodes[NodeId::new(at)];
            if crate::grad::passes(node, |v| self.needs[v]) {
                crate::grad::recorded(node).iter().for_each(|r| self.needs.set(*r, floating(*r)));
            }
        }
        self.seen = (graph.nodes.len(), graph.inputs.len());
        self.needs[v]
    }
}

/// A value that PyTorch saves of a call.
#[derive(Clone, Copy, Debug)]
pub struct SavedOperand {
    /// The call.
    pub node: NodeId,
    /// Position among the operands, then the results, of the call.
    pub position: u32,
}

/// The values of one storage that PyTorch saves, by their cells.
#[derive(Debug, Default)]
pub struct Readings {
    /// By the history that was read, in order: a write that it records leaves all of its values, however many, as they are.
    live: Vec<(Root, LiveReadings)>,
    overwritten: Vec<SavedOperand>,
}

/// The values read with one history.
#[derive(Debug, Default)]
struct LiveReadings {
    /// Those that no write has asked for: of most storages, all.
    unsorted: Vec<(SharedRegion, SavedOperand)>,
    /// The others by the first byte and a running number: the end, the region and the value.
    by_start: BTreeMap<(i64, usize), (i64, SharedRegion, SavedOperand)>,
    /// The largest number of bytes from the first to the end of a region in `by_start`.
    longest: i64,
    count: usize,
}

impl LiveReadings {
    /// Removes the values that share a cell with a region.
    fn take(&mut self, region: &SharedRegion) -> Vec<SavedOperand> {
        for (read, reading) in std::mem::take(&mut self.unsorted) {
            let (first, end) = bytes(&read);
            self.longest = self.longest.max(end.saturating_sub(first));
            self.by_start.insert((first, self.count), (end, read, reading));
            self.count += 1;
        }
        let (first, end) = bytes(region);
        let near = self.by_start.range((first.saturating_sub(self.longest), 0)..).take_while(|((f, _), _)| *f < end);
        let hit = near.filter(|(_, (e, r, _))| *e > first && !region.disjoint(r));
        let hit: Vec<(i64, usize)> = hit.map(|(k, _)| *k).collect();
        hit.iter().filter_map(|key| self.by_start.remove(key)).map(|(_, _, reading)| reading).collect()
    }
}

impl Readings {
    /// Notes a value that a call saves.
    pub fn add(&mut self, region: &SharedRegion, root: Root, reading: SavedOperand) {
        let at = self.live.binary_search_by_key(&root, |(root, _)| *root).unwrap_or_else(|at| {
            self.live.insert(at, (root, LiveReadings::default()));
            at
        });
        self.live[at].1.unsorted.push((region.clone(), reading));
    }

    /// Notes a write of a region that one history records, or none: values read with another history are no longer saved.
    pub fn overwrite(&mut self, region: &SharedRegion, recorded: Option<Root>) {
        self.live.retain_mut(|(root, live)| {
            if recorded == Some(*root) {
                return true;
            }
            self.overwritten.append(&mut live.take(region));
            !live.by_start.is_empty()
        });
    }

    /// The values that such writes changed.
    pub fn overwritten(&self) -> &[SavedOperand] {
        &self.overwritten
    }
}

/// From the first byte of a region to the end of its last; everything where sizes are not known.
fn bytes(region: &SharedRegion) -> (i64, i64) {
    let Some(ty) = region.known() else { return (i64::MIN / 4, i64::MAX / 4) };
    let (cells, size) = (ty.layout.cell_range(), ty.dtype.size() as i64);
    (cells.start.saturating_mul(size), cells.end.saturating_mul(size))
}

/// Whether PyTorch saves operands or results of an operator's calls, or of those that it is composed of.
pub fn saves(op: Op) -> bool {
    match kept(op) {
        Some(kept) => !kept.args.is_empty() || !kept.results.is_empty(),
        None => !op.is_view() && !matches!(op.def().grad, Some(Grad::Zero)),
    }
}

/// Whether PyTorch may save an argument of a call.
pub fn saves_argument(op: Op, arg: usize) -> bool {
    kept(op).is_none_or(|k| k.args.iter().any(|a| a.arg == arg))
}

/// Whether PyTorch saves a result of a call.
pub fn saves_result(op: Op, result: usize) -> bool {
    kept(op).is_none_or(|k| k.results.contains(&result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_ir::{DType, Expr, Layout, TensorType};

    fn cells(start: i64, len: i64, stride: i64) -> SharedRegion {
        let layout = Layout::strided(&[Expr::Int(len)], &[Expr::Int(stride)], Expr::Int(start));
        TensorType::new(DType::F32, layout).into()
    }

    #[test]
    fn a_write_changes_what_was_read_of_its_cells_with_another_history() {
        let mut readings = Readings::default();
        let detached = Root(1);
        let mut add = |position, region: SharedRegion, root| {
            readings.add(&region, root, SavedOperand { node: NodeId::new(0), position });
        };
        add(0, cells(0, 100, 1), Root::OWN);
        add(1, cells(0, 4, 1), Root::OWN);
        add(2, cells(4, 4, 1), Root::OWN);
        add(3, cells(4, 4, 1), detached);
        add(4, cells(1, 4, 2), Root::OWN);
        // Even cells from 4 on, recorded in the storage's own history: the detached reading alone is stale.
        readings.overwrite(&cells(4, 2, 2), Some(Root::OWN));
        readings.overwrite(&cells(4, 2, 2), None);
        let found: Vec<u32> = readings.overwritten().iter().map(|r| r.position).collect();
        assert_eq!(found, [3, 0, 2]);
    }
}

//! Training steps of several ranks, each with a part of the batch: gradients are averaged before the update.
//!
//! Gradients are gathered in buckets in the order in which backward computes them. A bucket is one exchange: a `cat` of flat
//! gradients, which placement builds in place, so that gradients are computed in it, reduced in it, and read by the updates from it.
//! A bucket's updates follow when the next bucket starts, so that the exchange overlaps with the backward part between them.
//!
//! A shard is one rank's part of each bucket. Its parameters become regions of one storage. A rank gets its part of the mean, updates
//! its part of the parameters, and all parts are gathered in the buffer.

use super::emit::{GraphEmit, val, value};
use super::training_step::Updates;
use super::{full, one};
use restride_ir::{
    Arg, DType, Error, Expr, Graph, InputKind, InputSpec, Layout, Names, NodeId, Origin, OutputKind, OutputSpec,
    Program, Result, TensorType, Type, Val, ValueId, Weights,
};
use restride_tensor::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ranks that train one model, each on a part of the batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataParallel {
    /// The group's name.
    pub group: String,
    /// Bytes of gradients from which a bucket is exchanged. With 0, each gradient is exchanged by itself.
    pub bucket_bytes: usize,
    /// The rank whose program this is, where each updates its part of the parameters alone and keeps the optimizer's state of that
    /// part alone.
    pub shard: Option<Shard>,
}

impl Default for DataParallel {
    fn default() -> Self {
        DataParallel { group: "0".into(), bucket_bytes: 1 << 20, shard: None }
    }
}

/// One of the ranks that share updates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Number of this rank in the group.
    pub rank: usize,
    /// Ranks in the group.
    pub ranks: usize,
}

/// A parameter whose gradient is in a bucket.
struct BucketMember {
    /// Position among the inputs.
    input: usize,
    /// Its old content.
    value: ValueId,
    /// The first element of the gradient in the bucket.
    start: i64,
}

#[derive(Default)]
struct Bucket {
    members: Vec<BucketMember>,
    /// Gradients, with their first elements. Parameters may have one gradient in common.
    grads: Vec<(ValueId, i64)>,
    elements: i64,
}

impl Bucket {
    fn start_of(&self, grad: ValueId) -> Option<i64> {
        self.grads.iter().find(|(g, _)| *g == grad).map(|(_, start)| *start)
    }
}

/// A bucket whose exchange was started.
struct Reduced {
    bucket: Bucket,
    mean: Val,
    origin: Arc<Origin>,
}

/// The buffer of the parameters of a bucket, and the storage under all of them, by which the graph reads it.
struct FlatStorage {
    value: ValueId,
    buffer: ValueId,
    dtype: DType,
    elements: i64,
    members: Vec<BucketMember>,
    /// New contents.
    updated: ValueId,
}

/// The buckets of a training step.
pub(super) struct Buckets<'a> {
    how: &'a DataParallel,
    /// Buckets that get more gradients, by element type.
    open: Vec<(DType, Bucket)>,
    flying: Option<Reduced>,
    /// Buckets whose parameters were updated.
    landed: Vec<Reduced>,
    storages: Vec<FlatStorage>,
}

fn int(n: i64) -> Arg<Val, Expr> {
    Arg::Scalar(Expr::Int(n))
}

fn tensor(v: Val) -> Arg<Val, Expr> {
    Arg::Value(v)
}

fn emitter<'g>(graph: &'g mut Graph, names: &'g mut Names, origin: &Arc<Origin>) -> GraphEmit<'g> {
    GraphEmit::plain(graph, names, origin.clone(), "bucket")
}

impl<'a> Buckets<'a> {
    pub fn new(how: &'a DataParallel) -> Result<Buckets<'a>> {
        if let Some(Shard { rank, ranks }) = how.shard
            && rank >= ranks
        {
            return Err(Error::invalid(format!("the shard of rank {rank} of {ranks}: ranks count from 0")));
        }
        Ok(Buckets { how, open: Vec::new(), flying: None, landed: Vec::new(), storages: Vec::new() })
    }

    /// Takes the gradient of a parameter. A bucket that is full is exchanged, and the one before it is updated.
    pub fn add(
        &mut self,
        graph: &mut Graph,
        names: &mut Names,
        updates: &mut Updates<'_>,
        input: usize,
        grad: ValueId,
        origin: &Arc<Origin>,
    ) -> Result<()> {
        let ty = graph.tensor(grad).clone();
        let Some(meta) = ty.known() else {
            return Err(Error::unsupported(format!("the gradient of {} has symbolic sizes", updates.name(input))));
        };
        let elements = meta.layout.numel();
        if self.how.shard.is_some() {
            // Each parameter has its own part of the storage.
            let own = graph.tensor(updates.value(input)).known().filter(|m| m.layout.is_contiguous());
            if own.is_none() {
                let what = format!("the parameter {} is not contiguous, so ranks cannot share it", updates.name(input));
                return Err(Error::unsupported(what).help("leave it out of the update with --wrt"));
            }
        } else {
            if let Some(flying) = &mut self.flying
                && let Some(start) = flying.bucket.start_of(grad)
            {
                flying.bucket.members.push(BucketMember { input, value: updates.value(input), start });
                return Ok(());
            }
            if let Some(landed) = self.landed.iter().find(|l| l.bucket.start_of(grad).is_some()) {
                let start = landed.bucket.start_of(grad).unwrap_or(0);
                return updated(
                    graph,
                    names,
                    updates,
                    landed,
                    &BucketMember { input, value: updates.value(input), start },
                );
            }
        }
        let at = self.open.iter().position(|(dtype, _)| *dtype == ty.dtype).unwrap_or_else(|| {
            self.open.push((ty.dtype, Bucket::default()));
            self.open.len() - 1
        });
        let bucket = &mut self.open[at].1;
        let start = match bucket.start_of(grad).filter(|_| self.how.shard.is_none()) {
            Some(start) => start,
            None => {
                bucket.grads.push((grad, bucket.elements));
                bucket.elements += elements;
                bucket.elements - elements
            }
        };
        bucket.members.push(BucketMember { input, value: updates.value(input), start });
        if (bucket.elements as u64).saturating_mul(ty.dtype.size() as u64) < self.how.bucket_bytes as u64 {
            return Ok(());
        }
        let (dtype, bucket) = self.open.remove(at);
        self.exchange(graph, names, updates, dtype, bucket, origin)
    }

    /// Exchanges the buckets that are left, and updates what is not.
    pub fn finish(&mut self, graph: &mut Graph, names: &mut Names, updates: &mut Updates<'_>) -> Result<()> {
        for (dtype, bucket) in std::mem::take(&mut self.open) {
            self.exchange(graph, names, updates, dtype, bucket, &Arc::default())?;
        }
        self.land(graph, names, updates)
    }

    fn exchange(
        &mut self,
        graph: &mut Graph,
        names: &mut Names,
        updates: &mut Updates<'_>,
        dtype: DType,
        mut bucket: Bucket,
        origin: &Arc<Origin>,
    ) -> Result<()> {
        let mut emit = emitter(graph, names, origin);
        let mut parts = Vec::new();
        for (k, (grad, start)) in bucket.grads.iter().enumerate() {
            let end = bucket.grads.get(k + 1).map_or(bucket.elements, |(_, next)| *next);
            let flat = [tensor(val(*grad)), Arg::Scalars(vec![Expr::Int(end - start)])];
            parts.push(Some(one(&mut emit, "aten.reshape.default", &flat)?));
        }
        if let Some(Shard { ranks, .. }) = self.how.shard {
            let rest = bucket.elements.rem_euclid(ranks as i64);
            if rest > 0 {
                let missing = ranks as i64 - rest;
                parts.push(Some(full(&mut emit, &TensorType::contiguous(dtype, &[Expr::Int(missing)]), 0)?));
                bucket.elements += missing;
            }
        }
        let whole = match parts[..] {
            [Some(one)] => one,
            _ => one(&mut emit, "aten.cat.default", &[Arg::Values(parts)])?,
        };
        let (avg, group) = (Arg::Str("avg".into()), Arg::Str(self.how.group.as_str().into()));
        let mean = match self.how.shard {
            None => one(&mut emit, "_c10d_functional.all_reduce.default", &[tensor(whole), avg, group])?,
            Some(Shard { ranks, .. }) => {
                let args = [tensor(whole), avg, int(ranks as i64), group];
                one(&mut emit, "_c10d_functional.reduce_scatter_tensor.default", &args)?
            }
        };
        self.land(graph, names, updates)?;
        self.flying = Some(Reduced { bucket, mean, origin: origin.clone() });
        Ok(())
    }

    /// Updates the parameters of the bucket whose exchange was started last.
    fn land(&mut self, graph: &mut Graph, names: &mut Names, updates: &mut Updates<'_>) -> Result<()> {
        let Some(reduced) = self.flying.take() else { return Ok(()) };
        match self.how.shard {
            None => {
                for member in &reduced.bucket.members {
                    updated(graph, names, updates, &reduced, member)?;
                }
                self.landed.push(reduced);
            }
            Some(shard) => {
                let storage = self.part_updated(graph, names, updates, reduced, shard)?;
                self.storages.push(storage);
            }
        }
        Ok(())
    }

    /// Updates this rank's part of a bucket's parameters, and gathers all parts.
    fn part_updated(
        &self,
        graph: &mut Graph,
        names: &mut Names,
        updates: &mut Updates<'_>,
        reduced: Reduced,
        shard: Shard,
    ) -> Result<FlatStorage> {
        let Reduced { bucket, mean, origin } = reduced;
        let dtype = graph.tensor(value(mean)).dtype;
        let number = self.storages.len();
        let name = names.fresh(&format!("storage_bucket_{number}"));
        let ty = TensorType::contiguous(dtype, &[Expr::Int(bucket.elements)]);
        let buffer = updates.buffer(graph, names, &format!("bucket.{number}"), &ty)?;
        let flat = graph.add_input(name, Type::Tensor(ty));
        let part = bucket.elements / shard.ranks as i64;
        let (start, end) = (part * shard.rank as i64, part * (shard.rank as i64 + 1));
        let mut emit = emitter(graph, names, &origin);
        let own = one(&mut emit, "aten.slice.Tensor", &[tensor(val(flat)), int(0), int(start), int(end)])?;
        let new = updates.call(graph, names, &origin, &format!("bucket.{number}"), own, mean)?;
        let mut emit = emitter(graph, names, &origin);
        let group = Arg::Str(self.how.group.as_str().into());
        let args = [tensor(new), int(shard.ranks as i64), group];
        let all = one(&mut emit, "_c10d_functional.all_gather_into_tensor.default", &args)?;
        let (elements, members) = (bucket.elements, bucket.members);
        Ok(FlatStorage { value: flat, buffer, dtype, elements, members, updated: value(all) })
    }

    /// Values of the storages, which are inputs of the graph.
    pub fn storages(&self) -> Vec<ValueId> {
        self.storages.iter().map(|s| s.value).collect()
    }

    /// Declares the storages of the parameters; each parameter becomes a region of one. For each input, `tied` names an input on
    /// the same cells that the graph reads.
    pub fn declare(self, out: &mut Program, tied: &[usize]) -> Result<()> {
        let mut weights = Weights::clone(&out.weights);
        for storage in self.storages {
            let mut regions: BTreeMap<usize, i64> = BTreeMap::new();
            for member in &storage.members {
                let here = |i: &usize| out.signature.inputs[tied[*i]].value == member.value;
                let same = (0..tied.len()).filter(here);
                regions.extend(same.map(|i| (i, member.start)));
            }
            let here = |s: &InputSpec| s.value == storage.buffer;
            let Some(buffer) = out.signature.inputs.iter().position(here) else {
                return Err(Error::invalid("a bucket without a buffer"));
            };
            gather_weights(out, &mut weights, &storage, buffer, &regions);
            let graph = &mut out.graphs[out.main];
            let mut instead: BTreeMap<ValueId, ValueId> = BTreeMap::new();
            let mut names = super::taken(graph);
            let nodes = graph.order.len();
            for (&i, &start) in &regions {
                let v = out.signature.inputs[i].value;
                let mut ty = graph.tensor(v).clone();
                ty.layout.offset = Expr::Int(start);
                graph.values[v].ty = Type::Tensor(ty.clone());
                let mut emit = emitter(graph, &mut names, &Arc::default());
                emit.hint = format!("{}_region", emit.graph.values[v].name).into();
                let args = [
                    tensor(val(storage.value)),
                    Arg::Scalars(ty.layout.sizes.to_vec()),
                    Arg::Scalars(ty.layout.strides.to_vec()),
                    int(start),
                ];
                instead.insert(v, value(one(&mut emit, "aten.as_strided.default", &args)?));
            }
            let views: Vec<NodeId> = graph.order.split_off(nodes);
            for id in graph.order.clone() {
                let renamed = |a: &Arg| a.map_values(|v| instead.get(v).copied().unwrap_or(*v));
                let args = graph.nodes[id].args.iter().map(renamed).collect();
                graph.nodes[id].args = args;
            }
            graph.order.splice(0..0, views);
            graph.inputs.push(storage.value);
            graph.outputs.push(Arg::Value(storage.updated));
            let at = out.signature.inputs.len();
            let kind = InputKind::Storage(regions.into_keys().chain([buffer]).collect());
            out.signature.inputs.push(InputSpec { value: storage.value, kind });
            out.signature.outputs.push(OutputSpec { kind: OutputKind::Mutation(at), alias: None });
        }
        out.weights = Arc::new(weights);
        Ok(())
    }
}

/// Moves weights into the storage of a buffer, at these elements by their inputs.
fn gather_weights(
    out: &Program,
    weights: &mut Weights,
    storage: &FlatStorage,
    buffer: usize,
    regions: &BTreeMap<usize, i64>,
) {
    let size = storage.dtype.size();
    let Some(number) = out.weight_name(buffer).and_then(|n| weights.tensors.get(n)).map(|w| w.storage) else { return };
    let mut bytes = vec![0u8; storage.elements as usize * size];
    for (name, start) in regions.iter().filter_map(|(i, start)| Some((out.weight_name(*i)?, *start))) {
        let Some(weight) = weights.tensors.get_mut(name) else { continue };
        let from = weight.layout.offset as usize * size;
        let (to, len) = (start as usize * size, weight.layout.numel() as usize * size);
        // A program whose weights have no memory, read from text, gets it later.
        if let Some(old) = weights.storages.get(weight.storage) {
            bytes[to..to + len].copy_from_slice(&old[from..from + len]);
        }
        weight.layout = Layout::strided(&weight.layout.sizes, &weight.layout.strides, start);
        weight.storage = number;
    }
    if let Some(own) = weights.storages.get_mut(number) {
        *own = Bytes::copy_of(&bytes);
    }
}

/// Updates a parameter by its part of a bucket.
fn updated(
    graph: &mut Graph,
    names: &mut Names,
    updates: &mut Updates<'_>,
    reduced: &Reduced,
    member: &BucketMember,
) -> Result<()> {
    let sizes = graph.tensor(updates.value(member.input)).layout.sizes.to_vec();
    let elements: i64 = sizes.iter().filter_map(|n| n.constant()).map(|n| n.as_i64()).product();
    let mut emit = emitter(graph, names, &reduced.origin);
    let mut grad = reduced.mean;
    if elements < reduced.bucket.elements {
        grad = one(
            &mut emit,
            "aten.slice.Tensor",
            &[tensor(grad), int(0), int(member.start), int(member.start + elements)],
        )?;
    }
    let grad = one(&mut emit, "aten.view.default", &[tensor(grad), Arg::Scalars(sizes)])?;
    updates.one(graph, names, &reduced.origin, member.input, grad)
}

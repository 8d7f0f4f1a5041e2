//! Inputs that share storage, and outputs that declare mutations and the memory that they are views of.

use super::rewrite::{Halt, NewValue, Rewrite, Rewriter, open_sharing};
use super::shared_region::SharedRegion;
use super::storages::{AliasId, StorageId};
use super::{FunctionalizeOptions, Share};
use crate::dce::{dce, keep_failing};
use crate::input_effects::written_inputs;
use restride_ir::{
    AliasRoot, Arg, DType, Dim, Error, ErrorKind, Expr, InputKind, InputSpec, Layout, Node, OutputAlias, OutputKind,
    OutputSpec, Program, Signature, Stage, Table, TensorType, Type, ValueId, border_layout,
};
use restride_tensor::self_overlaps;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Inputs on one storage.
struct Group {
    members: Vec<usize>,
    /// Bytes of the storage, where known.
    bytes: Option<i64>,
}

/// One attempt; `whole` are inputs whose storages are needed whole, with the bytes that the program makes them grow to.
pub fn run(program: &Program, options: &FunctionalizeOptions, whole: &BTreeMap<usize, i64>) -> Rewrite<Program> {
    let old = program.graph();
    let mut scope = Rewriter::new(program, old);
    // About the old number of names; a write is two calls.
    scope.new.reserve(old.order.len() * 3 / 2, old.values.len() * 3 / 2);
    scope.names.reserve(old.values.len() * 3 / 2);
    scope.objects.reserve(old.values.len());
    scope.map = Table::with_capacity(old.values.len());
    scope.storages.reserve(old.values.len());
    let mut inputs = Vec::new();
    for spec in &program.signature.inputs {
        let v = &old.values[spec.value];
        let name = scope.names.fresh(&v.name);
        let value = scope.new.add_input(name, v.ty.clone());
        if matches!(spec.kind, InputKind::Buffer { .. } | InputKind::Constant(_)) {
            scope.storages.flows.constant(value);
        }
        inputs.push(InputSpec { value, kind: spec.kind.clone() });
    }
    let first = bind_inputs(&mut scope, options, whole, &mut inputs)?;
    scope.nodes().map_err(|stop| match (stop, &inputs) {
        (Halt::NeedsRoom(i, bytes), inputs) => match &inputs[i].kind {
            InputKind::Storage(members) => Halt::NeedsRoom(members[0], bytes),
            _ => Halt::NeedsRoom(i, bytes),
        },
        (Halt::NeedsStorage(i), inputs) if matches!(inputs[i].kind, InputKind::Storage(_)) => {
            Error::new(ErrorKind::Program, "a view reaches beyond the storage of its operand").into()
        }
        (stop, _) => stop,
    })?;
    scope.mark_overwritten();
    let signature = finish(&mut scope, inputs, &first, whole)?;
    let mut out = Program::new(program.name.clone(), Stage::Functional);
    out.limits = program.limits;
    let main = out.main;
    out.graphs[main] = scope.new;
    for g in scope.graphs {
        out.graphs.push(g);
    }
    out.signature = signature;
    out.symbols = program.symbols.clone();
    out.guards = program.guards.clone();
    out.ranges = program.ranges.clone();
    out.weights = program.weights.clone();
    out.pytree = program.pytree.clone();
    out.forward_args = program.forward_args.clone();
    out.notes = program.notes.clone();
    out.sample_inputs = program.sample_inputs.clone();
    keep_failing(&mut out);
    dce(&mut out);
    Ok(out)
}

/// Binds every input; gives the alias each tensor input starts with.
fn bind_inputs(
    scope: &mut Rewriter<'_>,
    options: &FunctionalizeOptions,
    whole: &BTreeMap<usize, i64>,
    inputs: &mut Vec<InputSpec>,
) -> Rewrite<BTreeMap<usize, AliasId>> {
    let program = scope.program;
    let groups = groups(program, options);
    // The question is asked of inputs that share a storage alone.
    let shared = groups.iter().any(|g| g.members.len() > 1);
    let written =
        if shared { written_inputs(program, program.main) } else { vec![false; program.signature.inputs.len()] };
    let mut first = BTreeMap::new();
    for group in groups {
        let share = options.shares.iter().find(|s| s.inputs == group.members);
        let ty_of = |i: usize| -> Option<TensorType> {
            let ty = program.graph().values[program.signature.inputs[i].value].ty.tensor()?;
            let mut ty = ty.clone();
            if let Some(share) = share.filter(|s| s.inputs.len() > 1 || whole.contains_key(&i))
                && let Some(k) = share.inputs.iter().position(|x| *x == i)
            {
                let (strides, offset) = &share.layouts[k];
                ty.layout.strides = strides.iter().map(|s| Expr::Int(*s)).collect();
                ty.layout.offset = Expr::Int(*offset);
            }
            Some(ty)
        };
        let types: Vec<(usize, SharedRegion)> =
            group.members.iter().filter_map(|&i| Some((i, ty_of(i)?.into()))).collect();
        for &i in group.members.iter().filter(|i| types.iter().all(|t| t.0 != **i)) {
            let value = inputs[i].value;
            scope.bind(program.signature.inputs[i].value, NewValue::Plain(value));
        }
        let needs_whole = types.iter().any(|(i, _)| whole.contains_key(i));
        // Inputs that meet in no cell stay apart, unless the program reaches further than one of them shows.
        let is_written = |types: &[(usize, SharedRegion)]| types.iter().any(|(i, _)| written[*i]);
        let parts = clusters(types.clone());
        // A flat storage is all of the memory, and has the others' cells as well.
        let flat = parts.len() > 1 && parts.iter().any(|types| types.len() > 1 && is_written(types));
        for types in if needs_whole || flat || !is_written(&types) { vec![types] } else { parts } {
            let any_written = is_written(&types);
            let same = share.is_none() && types.windows(2).all(|w| w[0].1 == w[1].1);
            if !needs_whole && (types.len() <= 1 || !any_written) {
                for (i, ty) in types {
                    retype_input(scope, inputs[i].value, &ty);
                    let alias = scope.storages.add(inputs[i].value, ty, Some(i));
                    bind_input(scope, &mut first, i, alias);
                }
            } else if !needs_whole && same {
                // One weight under several names: the one that a mutation can be declared for stands for all.
                let main = types
                    .iter()
                    .map(|t| t.0)
                    .find(|i| !matches!(inputs[*i].kind, InputKind::Constant(_)))
                    .unwrap_or(types[0].0);
                retype_input(scope, inputs[main].value, &types[0].1);
                let alias = scope.storages.add(inputs[main].value, types[0].1.clone(), Some(main));
                for (i, _) in types {
                    bind_input(scope, &mut first, i, alias);
                }
            } else {
                let storage = storage_input(scope, inputs, &group, &types, whole)?;
                for (i, ty) in types {
                    retype_input(scope, inputs[i].value, &ty);
                    let alias = scope.storages.region(storage, ty);
                    bind_input(scope, &mut first, i, alias);
                }
            }
        }
    }
    Ok(first)
}

/// Inputs on one storage, grouped by shared cells, in the order of their first members.
fn clusters(types: Vec<(usize, SharedRegion)>) -> Vec<Vec<(usize, SharedRegion)>> {
    let mut out: Vec<Vec<(usize, SharedRegion)>> = Vec::new();
    for one in types {
        let (met, apart): (Vec<_>, Vec<_>) =
            out.into_iter().partition(|c| c.iter().any(|other| !other.1.disjoint(&one.1)));
        // One that meets several brings them together.
        let mut together: Vec<_> = met.into_iter().flatten().collect();
        together.push(one);
        together.sort_by_key(|t| t.0);
        out = apart;
        out.push(together);
        out.sort_by_key(|c| c[0].0);
    }
    out
}

fn retype_input(scope: &mut Rewriter<'_>, value: ValueId, ty: &TensorType) {
    scope.new.values[value].ty = Type::Tensor(ty.clone());
}

fn bind_input(scope: &mut Rewriter<'_>, first: &mut BTreeMap<usize, AliasId>, i: usize, alias: AliasId) {
    let bound = scope.object(alias);
    scope.bind(scope.program.signature.inputs[i].value, bound);
    first.insert(i, alias);
}

/// Adds the flat storage under a group as an input.
fn storage_input(
    scope: &mut Rewriter<'_>,
    inputs: &mut Vec<InputSpec>,
    group: &Group,
    types: &[(usize, SharedRegion)],
    whole: &BTreeMap<usize, i64>,
) -> Rewrite<StorageId> {
    let names: Vec<&str> = types.iter().map(|t| &*scope.new.values[inputs[t.0].value].name).collect();
    let bytes = group.bytes.ok_or_else(|| {
        Halt::Error(
            Error::unsupported(format!("%{} is written or read beyond its own elements", names.join(", %")))
                .help("give the inputs with --inputs, so that their storage is known"),
        )
    })?;
    let bytes = types.iter().filter_map(|t| whole.get(&t.0)).fold(bytes, |all, grown| all.max(*grown));
    let first = types[0].1.dtype;
    let dtype =
        if types.iter().all(|t| t.1.dtype == first) && bytes % first.size() as i64 == 0 { first } else { DType::U8 };
    let ty = TensorType::contiguous(dtype, &[Expr::Int(bytes / dtype.size() as i64)]);
    let name = scope.names.fresh(&format!("storage_{}", names.join("_")));
    let value = scope.new.add_input(name, Type::Tensor(ty.clone()));
    inputs.push(InputSpec { value, kind: InputKind::Storage(types.iter().map(|t| t.0).collect()) });
    let alias = scope.storages.add(value, ty, Some(inputs.len() - 1));
    Ok(scope.storages[alias].storage)
}

/// The inputs that show a cell several times and are written: a write to one element is a write to all on its cell.
pub(super) fn written_in_repeats(program: &Program) -> Vec<usize> {
    let repeats = |i: &usize| {
        let Some(ty) = program.graph().values[program.signature.inputs[*i].value].ty.tensor() else { return false };
        let stretched = |(n, s): (&Expr, &Expr)| s.is(0) && !n.is(1);
        match ty.layout.known() {
            Some(known) => self_overlaps(&known) != Some(false),
            None => ty.layout.sizes.iter().zip(&ty.layout.strides).any(stretched),
        }
    };
    let repeated: Vec<usize> = (0..program.signature.inputs.len()).filter(repeats).collect();
    if repeated.is_empty() {
        return repeated;
    }
    let written = written_inputs(program, program.main);
    repeated.into_iter().filter(|i| written[*i]).collect()
}

/// Inputs by storage, in the order of their first members.
fn groups(program: &Program, options: &FunctionalizeOptions) -> Vec<Group> {
    let mut out: Vec<Group> = Vec::new();
    let bytes = program.weights.storage_bytes();
    let mut of_weight: BTreeMap<usize, usize> = BTreeMap::new();
    let mut of_share: BTreeMap<usize, usize> = BTreeMap::new();
    for i in 0..program.signature.inputs.len() {
        let weight = program.weight_name(i).and_then(|n| program.weights.tensors.get(n)).map(|w| w.storage);
        let share = options.shares.iter().position(|s: &Share| s.inputs.contains(&i));
        let slot = match (weight, share) {
            (Some(w), _) => Some(of_weight.entry(w).or_insert(out.len())),
            (_, Some(s)) => Some(of_share.entry(s).or_insert(out.len())),
            _ => None,
        };
        match slot {
            Some(k) if *k < out.len() => out[*k].members.push(i),
            _ => out.push(Group {
                members: vec![i],
                bytes: weight.and_then(|w| bytes.get(&w).copied()).or(share.map(|s| options.shares[s].bytes)),
            }),
        }
    }
    out
}

/// Declares mutations and outputs.
fn finish(
    scope: &mut Rewriter<'_>,
    inputs: Vec<InputSpec>,
    first: &BTreeMap<usize, AliasId>,
    whole: &BTreeMap<usize, i64>,
) -> Rewrite<Signature> {
    let program = scope.program;
    let mut outputs: Vec<(Arg, OutputSpec)> = Vec::new();
    let plain = |kind| OutputSpec { kind, alias: None };
    let mut mutated: Vec<(usize, StorageId)> = (0..scope.storages.len())
        .map(StorageId)
        .filter(|s| scope.storages[*s].version > 0)
        .filter_map(|s| Some((scope.storages[s].input?, s)))
        .collect();
    mutated.sort_unstable();
    // The caller sees its memory at the end, whether the program reads it again or not.
    if let Some(why) = (0..scope.storages.len())
        .map(|s| &scope.storages[StorageId(s)])
        .find_map(|state| state.lost.as_ref().filter(|_| state.input.is_some()))
    {
        return Err(Error::unsupported(why.clone()).into());
    }
    for (i, s) in mutated {
        let state = &scope.storages[s];
        outputs.push((Arg::Value(state.base), plain(OutputKind::Mutation(i))));
    }
    for s in (0..scope.storages.len()).map(StorageId).filter(|s| scope.storages[*s].input.is_some()) {
        if let Some(call) = scope.storages.uncertain(s) {
            return Err(open_sharing(call));
        }
    }
    // Whose memory the user's tensors are in, tensor by tensor.
    let mut users: Vec<(Arg, OutputKind, Option<AliasId>)> = Vec::new();
    let node = Node {
        op: super::rewrite::op("aten.alias.default"),
        args: Vec::new(),
        results: Default::default(),
        origin: Arc::default(),
    };
    for (arg, spec) in program.graph().outputs.iter().zip(&program.signature.outputs) {
        let (arg, alias) = match arg {
            Arg::Value(v) => match scope.map[*v] {
                Some(NewValue::Object(o)) => {
                    let alias = scope.objects[o];
                    (Arg::Value(scope.read(&node, *v)?), Some(alias))
                }
                _ => (Arg::Value(scope.read(&node, *v)?), None),
            },
            other => (other.clone(), None),
        };
        // New content that the program already declares stays content, in any memory.
        let alias = alias.filter(|_| !matches!(spec.kind, OutputKind::Mutation(_)));
        users.push((arg, spec.kind.clone(), alias));
    }
    for (&i, &start) in first {
        let Some(NewValue::Object(o)) = scope.map[program.signature.inputs[i].value] else { continue };
        let now = scope.objects[o];
        if now != start {
            let (before, after) = (&scope.storages[start], &scope.storages[now]);
            if (before.conj, before.neg) != (after.conj, after.neg) {
                let name = &program.graph().values[program.signature.inputs[i].value].name;
                return Err(Error::unsupported(format!("%{name} becomes a conjugated or negated view"))
                    .help("call resolve_conj() or resolve_neg() on the tensor it is set to")
                    .into());
            }
            users.push((Arg::None, OutputKind::Metadata(i), Some(now)));
        }
    }
    // A program that makes memory grow declares the growth: the memory may have become something else since.
    for s in (0..scope.storages.len()).map(StorageId) {
        let Some(i) = scope.storages[s].input else { continue };
        let InputKind::Storage(members) = &inputs[i].kind else { continue };
        if members.iter().any(|m| whole.get(m).is_some_and(|bytes| *bytes > 0)) {
            let ty = scope.storages[s].ty.clone();
            let all = scope.storages.region(s, ty);
            users.push((Arg::None, OutputKind::Metadata(i), Some(all)));
        }
    }
    for (k, (_, _, alias)) in users.iter().enumerate() {
        let Some(storage) = alias.map(|a| scope.storages[a].storage) else { continue };
        // The memory that an input is set to is visible as well.
        if let Some(why) = &scope.storages[storage].lost {
            return Err(Error::unsupported(why.clone()).into());
        }
        if let Some(call) = scope.storages.uncertain(storage) {
            return Err(open_sharing(call));
        }
        for (other, call) in scope.storages.maybe_same(storage) {
            let returned = users
                .iter()
                .enumerate()
                .any(|(j, u)| j != k && u.2.is_some_and(|a| scope.storages[a].storage == other));
            if returned || scope.storages[other].input.is_some() || scope.storages[storage].input.is_some() {
                return Err(open_sharing(call));
            }
        }
    }
    let mut bases: Vec<StorageId> = Vec::new();
    let lead = outputs.len();
    let total = lead + users.len();
    let storages: Vec<StorageId> = users.iter().filter_map(|u| Some(scope.storages[u.2?].storage)).collect();
    let shared = |s: StorageId| storages.iter().filter(|x| **x == s).count() > 1;
    for (arg, kind, of) in &users {
        let alias = of.and_then(|a| {
            let (a, state) = (&scope.storages[a], &scope.storages[scope.storages[a].storage]);
            if a.conj || a.neg {
                // A lazily conjugated output is given as the elements it shows.
                return None;
            }
            if matches!(kind, OutputKind::Gradient(_)) {
                // Nothing else of the program is handed out with it.
                return None;
            }
            let root = match state.input {
                Some(i) => AliasRoot::Input(i),
                // An input that is on other memory now declares that memory, whoever shares it.
                None if a.ty == state.ty && !shared(a.storage) && !matches!(kind, OutputKind::Metadata(_)) => {
                    return None;
                }
                None => {
                    let k = bases.iter().position(|b| *b == a.storage).unwrap_or_else(|| {
                        bases.push(a.storage);
                        bases.len() - 1
                    });
                    AliasRoot::Base(total + k)
                }
            };
            Some(OutputAlias { root, layout: a.ty.layout.clone(), dtype: a.ty.dtype })
        });
        let arg = match (arg, of, &alias) {
            // Memory of its own is laid as eager PyTorch lays it, which the value may not be declared to be.
            (Arg::Value(v), Some(a), None) => {
                let a = &scope.storages[*a];
                let mut ty = TensorType::clone(&a.ty);
                // The elements of a lazily mapped tensor are resolved: no two of them are in one cell.
                if let (false, Some(known)) = (a.bits().is_clear(), ty.known()) {
                    ty.layout = Layout { offset: ty.layout.offset, ..border_layout(&known).map(|n| Expr::Int(*n)) };
                }
                Arg::Value(scope.build(&node, |b, _| b.declare(*v, &ty)))
            }
            (other, _, _) => other.clone(),
        };
        outputs.push((arg, OutputSpec { kind: kind.clone(), alias }));
    }
    for s in bases {
        outputs.push((Arg::Value(scope.storages[s].base), plain(OutputKind::Base)));
    }
    let (args, specs) = outputs.into_iter().unzip();
    scope.new.outputs = args;
    Ok(Signature { inputs, outputs: specs })
}

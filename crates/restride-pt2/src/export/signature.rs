//! Inputs and outputs of the main graph. Nodes express what the signature of an archive cannot.

use super::graph::GraphWriter;
use super::torch_layouts;
use crate::model::{Argument, FileInput, FileOutput, TensorArgument};
use restride_ir::{
    AliasRoot, Arg, Args, CollectTree, DType, Error, Expr, InputKind, Layout, Movement, OutputKind, Result, TensorType,
    Type, ValueId, ViewOutcome,
};
use restride_tensor::Dim;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Storages of more bytes are not examined byte by byte.
const MAX_LOOK: usize = 1 << 28;

fn tensor(name: &str) -> TensorArgument {
    TensorArgument { name: name.to_string() }
}

/// For each input, the first input that shares its storage.
fn groups(w: &GraphWriter<'_>) -> Vec<usize> {
    let program = w.ctx.program;
    let mut of_storage: BTreeMap<usize, usize> = BTreeMap::new();
    let mut out: Vec<usize> = (0..program.signature.inputs.len()).collect();
    for (i, group) in out.iter_mut().enumerate() {
        if let Some(weight) = program.weight_name(i).and_then(|n| program.weights.tensors.get(n)) {
            *group = *of_storage.entry(weight.storage).or_insert(i);
        }
    }
    for (i, spec) in program.signature.inputs.iter().enumerate() {
        if let InputKind::Storage(members) = &spec.kind
            && let Some(&first) = members.first()
        {
            out[i] = out[first];
            let of: Vec<usize> = members.iter().map(|m| out[*m]).collect();
            out.iter_mut().filter(|g| of.contains(g)).for_each(|g| *g = of[0]);
        }
    }
    out
}

/// Inputs that the program mutates. Mutated constants, which an archive cannot declare, are written as non-persistent buffers.
fn mutated(w: &GraphWriter<'_>) -> BTreeSet<usize> {
    let signature = &w.ctx.program.signature;
    let mut out = BTreeSet::new();
    for spec in &signature.outputs {
        if let OutputKind::Mutation(i) = spec.kind {
            out.insert(i);
            if let InputKind::Storage(members) = &signature.inputs[i].kind {
                out.extend(members.iter().copied());
            }
        }
    }
    out
}

/// Writes the placeholders, and rebuilds flat storages from them.
pub fn inputs(w: &mut GraphWriter<'_>) -> Result<Vec<FileInput>> {
    let program = w.ctx.program;
    let groups = groups(w);
    let mutated = mutated(w);
    let mut roots: BTreeMap<usize, usize> = BTreeMap::new();
    let mut specs = Vec::new();
    for (i, spec) in program.signature.inputs.iter().enumerate() {
        if let Type::Tensor(_) = &w.source.values[spec.value].ty {
            let root = match roots.get(&groups[i]) {
                Some(r) => *r,
                None => w.layouts.fresh_root(),
            };
            roots.insert(groups[i], root);
            w.layouts.input(spec.value, root);
        }
        if matches!(spec.kind, InputKind::Storage(_)) {
            continue;
        }
        if let InputKind::Fixed { name, value } = &spec.kind {
            let (arg, value) = super::constant(value)?;
            w.out.inputs.push(arg);
            specs.push(FileInput::ConstantInput { name: name.to_string(), value });
            continue;
        }
        let weight = program.weight_name(i).and_then(|n| program.weights.tensors.get(n));
        let arg = w.declare(spec.value, weight.is_some_and(|w| w.requires_grad))?;
        w.out.inputs.push(arg.clone());
        let as_tensor = || match &arg {
            Argument::AsTensor(t) => Ok(t.clone()),
            _ => Err(Error::invalid("a parameter, buffer or constant that is not a tensor")),
        };
        specs.push(match &spec.kind {
            InputKind::Parameter(n) => FileInput::Parameter { arg: as_tensor()?, parameter_name: n.to_string() },
            InputKind::Buffer { name, persistent } => {
                FileInput::Buffer { arg: as_tensor()?, buffer_name: name.to_string(), persistent: *persistent }
            }
            InputKind::Constant(n) if mutated.contains(&i) => {
                FileInput::Buffer { arg: as_tensor()?, buffer_name: n.to_string(), persistent: false }
            }
            InputKind::Constant(n) => {
                FileInput::TensorConstant { arg: as_tensor()?, tensor_constant_name: n.to_string() }
            }
            InputKind::User(_) => FileInput::UserInput { arg },
            InputKind::Opaque(n) => {
                return Err(Error::unsupported(format!("{n} is a custom object or token, which cannot be written")));
            }
            InputKind::Fixed { .. } | InputKind::Storage(_) => unreachable!("done above"),
        });
    }
    for spec in &program.signature.inputs {
        if let InputKind::Storage(members) = &spec.kind {
            storage(w, spec.value, members)?;
        }
    }
    Ok(specs)
}

/// The member of a flat storage that is all of it, in its element type.
fn whole_member(w: &GraphWriter<'_>, value: ValueId, members: &[usize]) -> Option<usize> {
    let flat = w.source.tensor(value);
    let is_whole = |m: &usize| w.source.values[w.ctx.program.signature.inputs[*m].value].ty.tensor() == Some(flat);
    members.iter().copied().find(is_whole)
}

/// Rebuilds the flat storage under inputs from one of them.
fn storage(w: &mut GraphWriter<'_>, value: ValueId, members: &[usize]) -> Result<()> {
    let program = w.ctx.program;
    if let Some(m) = whole_member(w, value, members) {
        let name = w.name(program.signature.inputs[m].value)?;
        w.bind(value, &name);
        return Ok(());
    }
    let flat = w.source.tensor(value).clone();
    let first = members
        .iter()
        .map(|m| program.signature.inputs[*m].value)
        .find(|v| w.source.values[*v].ty.tensor().is_some())
        .ok_or_else(|| Error::invalid("a storage under inputs that are not tensors"))?;
    let own = w.source.tensor(first).dtype;
    let bytes = flat.layout.numel().times(&Expr::Int(flat.dtype.size() as i64));
    let cells = bytes.floor_div(&Expr::Int(own.size() as i64));
    let typed = TensorType::contiguous(own, &[cells]);
    let hint = w.source.values[value].name.to_string();
    let args = [vec![Arg::Value(first)], crate::as_strided_args(&typed.layout)].concat();
    let mut name = w.call("aten.as_strided.default", &args, &hint, &typed)?;
    if own != flat.dtype {
        name = w.call_on("aten.view.dtype", &name, &[Arg::DType(flat.dtype)], &hint, &flat)?;
    }
    w.bind(value, &name);
    Ok(())
}

/// Writes the outputs in PyTorch's order: mutations, results, gradients.
pub fn outputs(w: &mut GraphWriter<'_>) -> Result<Vec<FileOutput>> {
    let program = w.ctx.program;
    let mut specs = Vec::new();
    if w.ctx.functional() {
        mutations(w, &mut specs)?;
    } else {
        for (arg, spec) in w.source.outputs.iter().zip(&program.signature.outputs) {
            if let OutputKind::Mutation(i) = spec.kind {
                let name = match arg {
                    Arg::Value(v) => w.name(*v)?,
                    _ => return Err(Error::invalid("a mutation output that is not a tensor")),
                };
                specs.push(mutation(w, i, &name)?);
                w.out.outputs.push(Argument::AsTensor(tensor(&name)));
            }
        }
    }
    for gradients in [false, true] {
        for (k, spec) in program.signature.outputs.iter().enumerate() {
            let arg = &w.source.outputs[k];
            let written = match (&spec.kind, gradients) {
                (OutputKind::User | OutputKind::Loss, false) => user_output(w, k)?,
                (OutputKind::Gradient(_), true) => w.argument(arg, None)?,
                (OutputKind::Metadata(i), false) if w.ctx.functional() => {
                    let name = &w.source.values[program.signature.inputs[*i].value].name;
                    let what = format!(
                        "the strides of %{name} are changed in place (as `t_` does), which a .pt2 cannot declare"
                    );
                    return Err(Error::unsupported(what).help("return the view instead"));
                }
                (OutputKind::Token, _) => return Err(Error::unsupported("a token as an output cannot be written")),
                _ => continue,
            };
            if let Argument::AsString(_) = written {
                return Err(Error::unsupported(
                    "an output that is a string: PyTorch writes such archives and cannot load them",
                ));
            }
            w.out.outputs.push(written.clone());
            let as_tensor = || match &written {
                Argument::AsTensor(t) => Ok(t.clone()),
                _ => Err(Error::invalid("a loss or gradient that is not a tensor")),
            };
            specs.push(match &spec.kind {
                OutputKind::Loss => FileOutput::LossOutput { arg: as_tensor()? },
                OutputKind::Gradient(i) => {
                    let arg = as_tensor()?;
                    match &program.signature.inputs[*i].kind {
                        InputKind::Parameter(n) => {
                            FileOutput::GradientToParameter { arg, parameter_name: n.to_string() }
                        }
                        InputKind::User(_) => {
                            let name = w.name(program.signature.inputs[*i].value)?;
                            FileOutput::GradientToUserInput { arg, user_input_name: name.to_string() }
                        }
                        _ => {
                            return Err(Error::unsupported(
                                "a gradient of an input that is neither a parameter nor a user input",
                            ));
                        }
                    }
                }
                _ => FileOutput::UserOutput { arg: declared(written) },
            });
        }
    }
    Ok(specs)
}

/// A result as the signature declares it. PyTorch's reader knows no truth values there, and takes the number's name alone.
fn declared(result: Argument) -> Argument {
    match result {
        Argument::AsSymBool(name) => Argument::AsSymInt(name),
        other => other,
    }
}

fn mutation(w: &GraphWriter<'_>, input: usize, name: &str) -> Result<FileOutput> {
    let spec = &w.ctx.program.signature.inputs[input];
    let arg = tensor(name);
    Ok(match &spec.kind {
        InputKind::Parameter(n) => FileOutput::ParameterMutation { arg, parameter_name: n.to_string() },
        InputKind::Buffer { name, .. } => FileOutput::BufferMutation { arg, buffer_name: name.to_string() },
        InputKind::Constant(name) => FileOutput::BufferMutation { arg, buffer_name: name.to_string() },
        InputKind::User(_) => FileOutput::UserInputMutation { arg, user_input_name: w.name(spec.value)?.to_string() },
        _ => return Err(Error::unsupported("a mutation of an input that is not a tensor")),
    })
}

/// Writes the new contents of inputs, each under a name of its own. None is stored in an input that PyTorch overwrites first.
fn mutations(w: &mut GraphWriter<'_>, specs: &mut Vec<FileOutput>) -> Result<()> {
    let program = w.ctx.program;
    let mut written: Vec<(usize, Arc<str>, BTreeSet<usize>)> = Vec::new();
    for (arg, spec) in w.source.outputs.iter().zip(&program.signature.outputs) {
        let OutputKind::Mutation(i) = spec.kind else { continue };
        let Arg::Value(v) = arg else { return Err(Error::invalid("a mutation output that is not a tensor")) };
        let roots = w.layouts.roots(*v).clone();
        match &program.signature.inputs[i].kind {
            InputKind::Storage(members) => match whole_member(w, program.signature.inputs[i].value, members) {
                Some(whole) => written.push((whole, w.name(*v)?, roots)),
                None => {
                    covered(w, i, members, *v)?;
                    for (m, name) in members_of(w, members, *v)? {
                        written.push((m, name, BTreeSet::new()));
                    }
                }
            },
            _ => written.push((i, w.name(*v)?, roots)),
        }
    }
    let targets: BTreeSet<usize> = written
        .iter()
        .flat_map(|(i, ..)| w.layouts.roots(program.signature.inputs[*i].value).iter().copied())
        .collect_set();
    let mut used: BTreeSet<Arc<str>> = BTreeSet::new();
    for (i, name, roots) in written {
        let mut name = name;
        if roots.iter().any(|r| targets.contains(r)) || used.contains(&name) {
            let ty = w.source.tensor(program.signature.inputs[i].value).clone();
            name = w.call_on("aten.clone.default", &name, &[], &format!("{name}_copy"), &ty)?;
        }
        used.insert(name.clone());
        specs.push(mutation(w, i, &name)?);
        w.out.outputs.push(Argument::AsTensor(tensor(&name)));
    }
    Ok(())
}

/// Each member's part of a flat storage's new contents.
fn members_of(w: &mut GraphWriter<'_>, members: &[usize], value: ValueId) -> Result<Vec<(usize, Arc<str>)>> {
    let program = w.ctx.program;
    let flat = w.source.tensor(value).clone();
    let hint = format!("{}_flat", w.source.values[value].name);
    // A contiguous copy starts at cell 0.
    let format = Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous);
    let name = if w.layouts.has_layout(value) {
        w.name(value)?
    } else {
        w.call("aten.clone.default", &[Arg::Value(value), format], &hint, &flat)?
    };
    let mut typed: BTreeMap<DType, Arc<str>> = [(flat.dtype, name.clone())].into();
    let mut out = Vec::new();
    for &m in members {
        let input = &program.signature.inputs[m];
        let Some(ty) = w.source.values[input.value].ty.tensor().cloned() else { continue };
        let base = match typed.get(&ty.dtype) {
            Some(name) => name.clone(),
            None => {
                let bytes = flat.layout.numel().times(&Expr::Int(flat.dtype.size() as i64));
                let cells = bytes.floor_div(&Expr::Int(ty.dtype.size() as i64));
                let view = TensorType::contiguous(ty.dtype, &[cells]);
                let made = w.call_on("aten.view.dtype", &name, &[Arg::DType(ty.dtype)], &hint, &view)?;
                typed.insert(ty.dtype, made.clone());
                made
            }
        };
        let args = crate::as_strided_args(&ty.layout);
        let hint = format!("{}_after", w.source.values[input.value].name);
        out.push((m, w.call_on("aten.as_strided.default", &base, &args, &hint, &ty)?));
    }
    Ok(out)
}

/// Refuses mutations of a storage outside of the inputs in it, which an archive cannot declare.
fn covered(w: &GraphWriter<'_>, input: usize, members: &[usize], value: ValueId) -> Result<()> {
    let program = w.ctx.program;
    let spec = &program.signature.inputs[input];
    let refuse = || {
        Error::unsupported(format!(
            "%{} is written beyond the elements of the inputs in it, which an archive cannot declare",
            w.source.values[spec.value].name
        ))
    };
    // PyTorch copies the new elements into such an input at the end, and refuses to.
    for &m in members {
        let value = &w.source.values[program.signature.inputs[m].value];
        let stretched = |l: &Layout| l.sizes.iter().zip(&l.strides).any(|(n, s)| *n > 1 && *s == 0);
        if value.ty.tensor().and_then(|t| t.layout.known()).is_some_and(|l| stretched(&l)) {
            let what = format!("%{} is expanded and written, which an archive cannot declare", value.name);
            return Err(Error::unsupported(what).help("export it with an input that is not expanded"));
        }
    }
    let flat = w.source.tensor(spec.value).known().ok_or_else(refuse)?;
    let bytes = flat.layout.numel() as usize * flat.dtype.size();
    if bytes > MAX_LOOK {
        return Err(refuse());
    }
    let mut seen = vec![false; bytes];
    for &m in members {
        let Some(ty) = w.source.values[program.signature.inputs[m].value].ty.tensor() else { continue };
        mark(&mut seen, &ty.known().ok_or_else(refuse)?.layout, ty.dtype.size(), true).ok_or_else(refuse)?;
    }
    if seen.iter().all(|b| *b) {
        return Ok(());
    }
    // Each write that made the value must stay under the inputs.
    let mut made = BTreeMap::new();
    for (_, node) in w.source.ordered() {
        for r in &node.results {
            made.insert(*r, node);
        }
    }
    let mut at = value;
    while at != spec.value {
        let node = made.get(&at).ok_or_else(refuse)?;
        let Some(Movement::Scatter { base, region, .. }) = node.op.def().movement else { return Err(refuse()) };
        let Some(Arg::Value(before)) = node.args.get(base as usize) else { return Err(refuse()) };
        let args: Vec<Arg<TensorType<i64>, i64>> = node
            .args
            .iter()
            .map(|a| {
                a.try_map(
                    |v| w.source.values[*v].ty.tensor().and_then(|t| t.known()).ok_or_else(refuse),
                    |e| e.constant().map(|s| s.as_i64()).ok_or_else(refuse),
                )
            })
            .collect::<Result<_>>()?;
        let ViewOutcome::Views(regions) = (region.known)(&Args(&args))? else { return Err(refuse()) };
        for r in &regions {
            let inside = mark(&mut seen, &r.layout, r.dtype.size(), false).ok_or_else(refuse)?;
            if !inside {
                return Err(refuse());
            }
        }
        at = *before;
    }
    Ok(())
}

/// Marks a layout's bytes if `set`; returns whether all were marked. `None` if they leave the storage.
fn mark(seen: &mut [bool], layout: &Layout, size: usize, set: bool) -> Option<bool> {
    let mut all = true;
    for cell in layout.cells() {
        let start = usize::try_from(cell).ok()?.checked_mul(size)?;
        for b in seen.get_mut(start..start + size)? {
            *b |= set;
            all &= *b;
        }
    }
    Some(all)
}

/// Writes a result with eager PyTorch's strides and aliases.
fn user_output(w: &mut GraphWriter<'_>, k: usize) -> Result<Argument> {
    let program = w.ctx.program;
    let arg = w.source.outputs[k].clone();
    let Arg::Value(v) = arg else { return w.argument(&arg, None) };
    let Type::Tensor(ty) = w.source.values[v].ty.clone() else {
        return number_output(w, v, &arg);
    };
    if !w.ctx.functional() {
        return w.argument(&arg, None);
    }
    let alias = program.signature.outputs[k].alias.clone();
    let mutated: BTreeSet<usize> = mutated(w)
        .into_iter()
        .flat_map(|i| w.layouts.roots(program.signature.inputs[i].value).iter().copied())
        .collect_set();
    let roots = w.layouts.roots(v).clone();
    let of_inputs: BTreeSet<usize> =
        program.signature.inputs.iter().flat_map(|i| w.layouts.roots(i.value).iter().copied()).collect_set();
    let input_root = |i: usize| w.layouts.roots(program.signature.inputs[i].value).clone();
    match alias.as_ref().map(|a| a.root) {
        Some(AliasRoot::Input(i)) if input_root(i).is_disjoint(&mutated) => {
            if roots == input_root(i) && w.layouts.has_strides(v) {
                return w.argument(&arg, None);
            }
            if let (Some(alias), Some(base)) = (&alias, w.source.values[program.signature.inputs[i].value].ty.tensor())
                && base.dtype == alias.dtype
            {
                let input = vec![Arg::Value(program.signature.inputs[i].value)];
                let args = [input, crate::as_strided_args(&alias.layout)].concat();
                let name = w.call("aten.as_strided.default", &args, &w.source.values[v].name, &ty)?;
                return Ok(Argument::AsTensor(tensor(&name)));
            }
        }
        // Nothing else may show in the memory of an input: of one that is mutated, its old content would be lost. What is given
        // as an input's new content comes out as that input itself.
        _ => {
            let name = w.name(v)?;
            let given = w.out.outputs.iter().any(|o| matches!(o, Argument::AsTensor(t) if *t.name == *name));
            let own = alias.is_some() || !given && !shared(w, k, &roots);
            if roots.is_disjoint(&of_inputs) && own {
                let name = torch_layouts::exact(w, v)?.map_or_else(|| w.name(v), Ok)?;
                return Ok(Argument::AsTensor(tensor(&name)));
            }
        }
    }
    let name = match torch_layouts::exact(w, v)? {
        Some(name) if Some(&name) != w.name(v).ok().as_ref() => name,
        _ => torch_layouts::own_copy(w, v)?,
    };
    Ok(Argument::AsTensor(tensor(&name)))
}

/// Whether an earlier result may share the memory.
fn shared(w: &GraphWriter<'_>, k: usize, roots: &BTreeSet<usize>) -> bool {
    let outputs = w.source.outputs.iter().zip(&w.ctx.program.signature.outputs).enumerate();
    outputs
        .filter(|(i, (_, spec))| *i < k && crate::is_result(spec))
        .any(|(_, (arg, _))| arg.values().any(|v| !w.layouts.roots(*v).is_disjoint(roots)))
}

fn number_output(w: &mut GraphWriter<'_>, v: ValueId, arg: &Arg) -> Result<Argument> {
    // A result is a named number or a constant.
    if let Type::Scalar(e) = &w.source.values[v].ty
        && e.constant().is_none()
    {
        return Ok(Argument::number(&*w.name(v)?, e));
    }
    w.argument(arg, None)
}

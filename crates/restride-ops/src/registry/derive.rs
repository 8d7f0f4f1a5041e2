//! Operators derived from PyTorch's schemas: in-place, `out=` and `_foreach_*` forms.
//!
//! The twin of a mutating operator takes the same arguments and writes none. It returns the operator's own new results,
//! then the new contents of the written arguments, in order. This one rule covers `add_` (`add`), `max.dim_max`
//! (`max.dim`) and `_native_batch_norm_legit` (`_native_batch_norm_legit_functional`).

use super::outs;
use crate::registry::{OpRow, exists, full_name, lookup, schema_of, schemas};
use restride_ir::{ArgType, Member, MemberArg, Op, OpDef, OpError, RegisteredOp, Schema, SchemaArg, Twin, TwinReturn};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

/// An operator of the table, with the twin that it declares or that follows from its name.
pub(super) fn declared(row: OpRow) -> Result<RegisteredOp> {
    let def = row.def;
    let text = row.schema().ok_or_else(|| OpError::new("PyTorch has no such operator"))?;
    let schema = Schema::parse(text)?;
    let twin = match &def.twin {
        Some(decl) => {
            let op = lookup(decl.op).ok_or_else(|| OpError::new(format!("its twin {} is not known", decl.op)))?;
            Some(Twin {
                op,
                args: decl.args.iter().copied().collect(),
                writes: decl.writes.iter().copied().collect(),
                returns: decl.returns.iter().copied().collect(),
                resizes: false,
                outs: Default::default(),
                when: decl.when,
            })
        }
        None if schema.is_mutable() && !def.metadata => twin(&schema),
        None => None,
    };
    let grad = crate::gradient::of(def, &full_name(def.schema));
    let member = coalesced(&schema).and_then(|_| member(&schema));
    RegisteredOp::new(OpDef { schema: text, grad, ..*def }, twin, member)
}

/// An operator that only PyTorch's schemas declare.
pub(crate) fn from_schema(text: &'static str) -> Result<RegisteredOp> {
    let schema = Schema::parse(text)?;
    let member = member(&schema);
    let twin = if schema.is_mutable() && member.is_none() { twin(&schema) } else { None };
    RegisteredOp::new(OpDef::new(text), twin, member)
}

fn writes(arg: &SchemaArg) -> bool {
    arg.alias.as_ref().is_some_and(|a| a.write)
}

/// The twin of a mutating operator, if one follows from the schemas.
fn twin(schema: &Schema) -> Option<Twin> {
    if schema.args.iter().any(|a| writes(a) && a.ty != ArgType::Tensor) {
        return None;
    }
    let out = schema.args.iter().filter(|a| writes(a)).all(|a| a.kwarg_only);
    let (ns, name) = (schema.namespace.as_str(), schema.name.as_str());
    let bases: Vec<(&str, String)> = if out {
        vec![(ns, name.to_string())]
    } else if let Some(plain) = name.strip_prefix("__i").filter(|_| name.ends_with("__")) {
        vec![(ns, format!("__{plain}"))]
    } else {
        let plain = name.strip_suffix('_').unwrap_or(name);
        let mut bases = vec![(ns, format!("{plain}_functional")), ("restride", plain.to_string())];
        if plain != name {
            bases.insert(0, (ns, plain.to_string()));
        }
        bases
    };
    for (ns, base) in bases {
        let same_overload = format!("{ns}.{base}.{}", schema.overload);
        let plain = format!("{ns}.{base}.default");
        let mut candidates: Vec<String> = [same_overload, plain].into_iter().filter(|c| exists(c)).collect();
        candidates.extend(schemas::overloads(ns, &base).map(full_name));
        for candidate in candidates {
            // Register only an overload that fits: the overloads include this operator and other mutating ones.
            if let Some(functional) = schema_of(&candidate)
                && fits(schema, &functional, out)
                && let Some(op) = lookup(&candidate)
            {
                return relate(schema, op, out);
            }
        }
    }
    None
}

/// Whether a functional schema matches a mutating operator's.
fn fits(schema: &Schema, functional: &Schema, out: bool) -> bool {
    let args: Vec<&SchemaArg> = schema.args.iter().filter(|a| !(out && writes(a))).collect();
    let same = args.len() == functional.args.len()
        && args
            .iter()
            .zip(&functional.args)
            .all(|(a, b)| a.ty == b.ty && a.optional == b.optional && a.kwarg_only == b.kwarg_only);
    let fresh = schema.returns.iter().filter(|r| r.alias.as_ref().is_none_or(|a| !a.write)).count();
    let written = schema.args.iter().filter(|a| writes(a)).count();
    same && !functional.is_mutable()
        && functional.returns.len() == fresh + written
        && functional.returns.iter().all(|r| r.ty == ArgType::Tensor)
}

/// The relation of a mutating operator to its twin.
fn relate(schema: &Schema, functional: Op, out: bool) -> Option<Twin> {
    let args: SmallVec<[u8; 8]> =
        (0..schema.args.len()).filter(|&i| !(out && writes(&schema.args[i]))).map(|i| i as u8).collect();
    let written: Vec<usize> = (0..schema.args.len()).filter(|&i| writes(&schema.args[i])).collect();
    let fresh = schema.returns.iter().filter(|r| r.alias.as_ref().is_none_or(|a| !a.write)).count();
    let mut next = 0;
    let mut returns = SmallVec::new();
    for r in &schema.returns {
        match &r.alias {
            Some(alias) if alias.write => {
                let arg = written.iter().find(|&&i| {
                    schema.args[i].alias.as_ref().is_some_and(|a| a.sets.iter().any(|s| alias.sets.contains(s)))
                })?;
                returns.push(TwinReturn::Arg(*arg as u8));
            }
            _ => {
                returns.push(TwinReturn::Result(next));
                next += 1;
            }
        }
    }
    let writes = written.iter().enumerate().map(|(k, &i)| (i as u8, (fresh + k) as u8)).collect();
    let outs = if out { outs::overlaps(schema, &args, written.len()) } else { Default::default() };
    Some(Twin { op: functional, args, writes, returns, resizes: out, outs, when: None })
}

/// The operator that a list of collectives applies to each member: `all_reduce` for `all_reduce_coalesced`.
fn coalesced(schema: &Schema) -> Option<String> {
    let namespace = "_c10d_functional";
    let (name, mark) = schema.name.strip_suffix('_').map_or((schema.name.as_str(), ""), |n| (n, "_"));
    let one = if name == "wait_tensors" { "wait_tensor" } else { name.strip_suffix("_coalesced")? };
    (schema.namespace == namespace).then(|| format!("{namespace}.{one}{mark}.default"))
}

/// The operator of restride's own on one tensor of each list, for an operator that writes lists: `restride.fused_adam_` for
/// `_fused_adam_`, `restride.amp_…_` for `_amp_foreach_…_`.
fn own_member(schema: &Schema) -> Option<String> {
    let name = Some(schema.name.as_str()).filter(|n| n.ends_with('_') && schema.namespace == "aten")?;
    let (family, name) = match name.strip_prefix("_fused_") {
        Some(name) => ("fused", name),
        None => ("amp", name.strip_prefix("_amp_foreach_")?),
    };
    let one = format!("restride.{family}_{name}.{}", schema.overload);
    exists(&one).then_some(one)
}

/// The operator that a `_foreach_*` operator, a fused optimizer, or one of a list of collectives, applies to each member of
/// its lists.
fn member(schema: &Schema) -> Option<Member> {
    if let Some(one) = coalesced(schema).or_else(|| own_member(schema)) {
        let op = lookup(&one)?;
        return Some(Member { op, args: member_args(schema, op.schema())? });
    }
    let name = schema.name.strip_prefix("_foreach_").filter(|_| schema.namespace == "aten")?;
    let (name, mark) = name.strip_suffix('_').map_or((name, ""), |n| (n, "_"));
    let overload = schema.overload.as_str();
    let candidates: Vec<String> = match (name, overload) {
        ("maximum", "Scalar" | "ScalarList") => vec![format!("aten.clamp_min{mark}.default")],
        ("minimum", "Scalar" | "ScalarList") => vec![format!("aten.clamp_max{mark}.default")],
        // PyTorch has no `maximum_`.
        ("maximum", "List") if mark == "_" => vec!["aten.clamp_min_.Tensor".to_string()],
        ("minimum", "List") if mark == "_" => vec!["aten.clamp_max_.Tensor".to_string()],
        ("addcdiv" | "addcmul", "Tensor") => vec![format!("restride.{name}{mark}.Tensor_value")],
        ("norm", "Scalar") => vec!["restride.vector_norm.default".to_string()],
        _ => {
            let overloads: &[&str] = match overload {
                "List" => &["Tensor", "default", "Tensor_Tensor"],
                "Scalar" | "ScalarList" => &["Scalar", "default", "Tensor_Scalar"],
                "Tensor" => &["Tensor"],
                "ScalarAndTensor" => &["Scalar"],
                "default" => &["default"],
                // Other overloads, such as those of `out=` lists, have no member operator.
                _ => &[],
            };
            overloads.iter().map(|o| format!("aten.{name}{mark}.{o}")).collect()
        }
    };
    candidates.iter().filter(|c| exists(c)).find_map(|c| {
        let op = lookup(c)?;
        Some(Member { op, args: member_args(schema, op.schema())? })
    })
}

/// The mapping from a `_foreach_*` operator's arguments to a member's.
fn member_args(list: &Schema, member: &Schema) -> Option<SmallVec<[MemberArg; 4]>> {
    if list.args.len() > member.args.len() || member.args[list.args.len()..].iter().any(|a| a.default.is_none()) {
        return None;
    }
    let pairs = list.args.iter().zip(&member.args).enumerate();
    pairs
        .map(|(i, (a, b))| match (a.ty, b.ty) {
            (ArgType::Tensors, ArgType::Tensor) if writes(a) == writes(b) => Some(MemberArg::Spread(i as u8)),
            (ArgType::Scalars, ArgType::Scalar) => Some(MemberArg::Spread(i as u8)),
            (ArgType::Tensor, ArgType::Tensor) if a.name == "scalars" => Some(MemberArg::Item(i as u8)),
            (a, b) if a == b => Some(MemberArg::Whole(i as u8)),
            _ => None,
        })
        .collect()
}

//! Types of composed operators: runs a composition on types instead of values.

use crate::registry::lookup;
use restride_ir::{Arg, Args, DecomposeFn, Emit, Meta, Op, OpError, Scalar, Val, ViewOutcome};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

/// Result types of a composition, the `OpDef::infer` of composed operators.
///
/// A result that is a view of an argument keeps its offset here; a run of the composition sees the alias itself.
pub(crate) fn infer(decompose: DecomposeFn, args: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    let mut trace = Trace { metas: Vec::new() };
    let args: Vec<Arg<Val, Scalar>> = args.0.iter().map(|a| a.map_values(|m| trace.push(m.clone()))).collect();
    let results = decompose(&mut trace, &Args(&args))?;
    Ok(results.into_iter().map(|v| trace.meta(v)).collect())
}

/// Types of a call's results, from its view rule, shape rule or composition.
///
/// # Errors
/// PyTorch refuses the call, or the operator has no shape rule.
pub fn types(op: Op, args: &[Arg<Meta, Scalar>]) -> Result<Vec<Meta>> {
    let def = op.def();
    if let Some(rule) = def.view
        && let ViewOutcome::Views(views) = rule.of(args)?
    {
        return Ok(views.into_vec());
    }
    match (def.infer, def.decompose) {
        (Some(rule), _) => Ok(rule(&Args(args))?.into_vec()),
        (None, Some(decompose)) => Ok(infer(decompose, &Args(args))?.into_vec()),
        (None, None) => Err(OpError::new(format!("{op} has no shape rule"))),
    }
}

struct Trace {
    metas: Vec<Meta>,
}

impl Trace {
    fn push(&mut self, m: Meta) -> Val {
        self.metas.push(m);
        Val(self.metas.len() as u32 - 1)
    }
}

impl Emit for Trace {
    fn call(&mut self, op: &str, args: &[Arg<Val, Scalar>]) -> Result<SmallVec<[Val; 1]>> {
        let handle = lookup(op).ok_or_else(|| OpError::new(format!("no operator {op}")))?;
        let mut args = args.to_vec();
        handle.fill_defaults(&mut args)?;
        let def = handle.def();
        let metas: Vec<Arg<Meta, Scalar>> = args.iter().map(|a| a.map_values(|v| self.meta(*v))).collect();
        if let Some(rule) = def.view {
            let known: Result<Vec<Arg<Meta, i64>>> =
                metas.iter().map(|a| a.try_map(|m| Ok(m.clone()), |s| Ok(s.as_view_number()))).collect();
            if let ViewOutcome::Views(views) = (rule.known)(&Args(&known?))? {
                return Ok(views.into_iter().map(|m| self.push(m)).collect());
            }
        }
        match (def.infer, def.decompose) {
            (Some(infer), _) => Ok(infer(&Args(&metas))?.into_iter().map(|m| self.push(m)).collect()),
            (None, Some(decompose)) => decompose(self, &Args(&args)),
            (None, None) => Err(OpError::new(format!("{op} has no shape rule"))),
        }
    }

    fn meta(&self, v: Val) -> Meta {
        self.metas[v.0 as usize].clone()
    }
}

/// Declares the shape rule of a composed operator.
macro_rules! composed {
    ($f:path) => {
        Some(|args: &restride_ir::Args<'_, restride_ir::Meta>| $crate::support::composite::infer($f, args))
    };
}
pub(crate) use composed;

/// Declares a composed operator: composition, sample calls (not for an operator of restride's own), schema.
macro_rules! composite {
    ($f:ident, $schema:expr) => {
        restride_ir::OpDef {
            infer: $crate::support::composite::composed!($f),
            decompose: Some($f),
            ..restride_ir::OpDef::new($schema)
        }
    };
    ($f:ident, $samples:expr, $schema:expr) => {
        restride_ir::OpDef { samples: samples!(|| $samples), ..$crate::support::composite::composite!($f, $schema) }
    };
}
pub(crate) use composite;

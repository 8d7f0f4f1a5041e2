//! The view form: a functional program whose copies of views are views.

use super::Materializer;
use restride_ir::{Arg, Error, InputSpec, Node, Program, Result, Stage, Type};

/// The program with views for copying forms of views, and without copies that change nothing, where the caller sees
/// neither. It stays functional.
///
/// # Errors
/// A program that is not functional.
pub fn views(program: &Program) -> Result<Program> {
    if program.stage != Stage::Functional {
        return Err(Error::invalid("only a functional program has a view form"));
    }
    // Views can give what is computed of them other strides. Where they show, only copies that change nothing are left out.
    match made(program, true)? {
        Some(out) => Ok(out),
        None => Ok(made(program, false)?.unwrap_or_else(|| program.clone())),
    }
}

/// The view form, unless it changes strides that the caller sees or an operator asks for.
fn made(program: &Program, as_views: bool) -> Result<Option<Program>> {
    let mut m = Materializer::new(program)?;
    m.as_views = as_views;
    m.visible = super::wants::visible(m.old, &m.effects)?;
    for spec in &program.signature.inputs {
        let value = &m.old.values[spec.value];
        let name = m.names.fresh(&value.name);
        let v = m.new.add_input(name, value.ty.clone());
        if matches!(value.ty, Type::Tensor(_)) {
            m.own(v, true);
        }
        m.bind(spec.value, v);
        m.specs.push(InputSpec { value: v, kind: spec.kind.clone() });
    }
    for (&id, node) in m.old.order.iter().map(|id| (id, &m.old.nodes[*id])) {
        if !m.as_it_is(node).map_err(|e| e.at(m.old, id))? {
            return Ok(None);
        }
    }
    let mut outputs = Vec::with_capacity(m.old.outputs.len());
    for arg in &m.old.outputs {
        outputs.push(arg.try_map(|v| m.value(*v), |e| Ok::<_, Error>(e.clone()))?);
    }
    let changed = |(old, new): (&Arg, &Arg)| match (old, new) {
        (Arg::Value(old), Arg::Value(new)) => m.old.values[*old].ty != m.new.values[*new].ty,
        _ => false,
    };
    if m.old.outputs.iter().zip(&outputs).any(changed) {
        return Ok(None);
    }
    let mut out = program.clone();
    m.new.outputs = outputs;
    let main = out.main;
    out.graphs[main] = m.new;
    out.signature.inputs = m.specs;
    Ok(Some(out))
}

impl Materializer<'_> {
    /// A node of a program that stays functional. False if it would see other strides than it asks for.
    fn as_it_is(&mut self, node: &Node) -> Result<bool> {
        if self.pass_through(node)? {
            return Ok(true);
        }
        let args = self.mapped(node)?;
        let other = |(old, new): (&Arg, &Arg)| match (old, new) {
            (Arg::Value(old), Arg::Value(new)) => self.old.values[*old].ty != self.new.values[*new].ty,
            _ => false,
        };
        let changed = node.args.iter().zip(&args).any(other);
        if changed && (node.op.def().strided || super::asks_for_strides(node.op)) {
            return Ok(false);
        }
        self.call_typed(node, node.op, args, !changed)?;
        // Of other strides it must be known what they become.
        let known = |r: &restride_ir::ValueId| {
            self.map[*r].is_some_and(|v| self.new.values[v].ty.tensor().is_none() || self.facts[v].sure)
        };
        Ok(!changed || node.results.iter().all(known))
    }
}

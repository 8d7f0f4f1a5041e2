//! The view form: views instead of copies of views, and wholes assembled in slices of their memory.

use super::{ExportForm, MaterializeContext, Materializer, visible_strides};
use restride_ir::{
    Arg, CollectTree, Error, InputKind, InputSpec, Node, OutputKind, OutputSpec, Program, Result, Stage, Type, ValueId,
};
use std::collections::BTreeSet;

/// Options of the view form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ViewOptions {
    /// The parts of a `cat` are computed in slices of new memory, in which every cell is written once. Without this the
    /// program stays functional.
    pub slices: bool,
}

impl Default for ViewOptions {
    fn default() -> ViewOptions {
        ViewOptions { slices: true }
    }
}

/// The program with views for copying forms of views, without copies that change nothing, and with the parts of `cat` and
/// `stack` computed in slices of the result, where the caller cannot see it. Nothing that has contents is overwritten, and
/// new contents of inputs stay declared outputs. The program stays functional if no part is computed in a slice.
///
/// # Errors
/// The program is not functional.
pub fn views(program: &Program, options: ViewOptions) -> Result<Program> {
    if program.stage != Stage::Functional {
        return Err(Error::invalid("only a functional program has a view form"));
    }
    // Only functional programs can declare these.
    let signature = &program.signature;
    let flat = signature.inputs.iter().any(|s| matches!(s.kind, InputKind::Storage(_)));
    let becomes = signature.outputs.iter().any(|s| matches!(s.kind, OutputKind::Metadata(_)));
    if options.slices && !flat && !becomes {
        let slices = MaterializeContext::new(program, ExportForm::Slices)
            .and_then(|ctx| Ok((visible_strides::with_fewest_copies(&ctx, program.main, ExportForm::Slices)?, ctx)));
        match slices {
            Ok((made, ctx)) if made.counts.assembled > 0 && made.saved > 0 => {
                return Ok(ctx.with(made, ExportForm::Slices));
            }
            Ok(_) => {}
            Err(e) if e.kind == restride_ir::ErrorKind::Unsupported => {}
            Err(e) => return Err(e),
        }
    }
    let ctx = MaterializeContext::new(program, ExportForm::Views)?;
    let made = visible_strides::with_fewest_copies(&ctx, program.main, ExportForm::Views)?;
    if made.shown.none() {
        return Ok(ctx.with(made, ExportForm::Views));
    }
    // The copies cannot be weighed: only copies that change nothing are left out.
    let all: BTreeSet<_> = program.graph().values.ids().collect_set();
    let made = super::made(&ctx, program.main, ExportForm::Views, &all)?;
    Ok(if made.shown.none() { ctx.with(made, ExportForm::Views) } else { program.clone() })
}

impl Materializer<'_> {
    /// Inputs of a program that stays functional.
    pub(super) fn inputs_as_they_are(&mut self) {
        for spec in &self.program.signature.inputs {
            let value = &self.old.values[spec.value];
            let name = self.names.fresh(&value.name);
            let v = self.new.add_input(name, value.ty.clone());
            if matches!(value.ty, Type::Tensor(_)) {
                self.own(v, true);
            }
            self.bind(spec.value, v);
            self.specs.push(InputSpec { value: v, kind: spec.kind.clone() });
        }
    }

    /// A node of a program that stays functional.
    pub(super) fn as_it_is(&mut self, node: &Node, args: Vec<Arg>) -> Result<()> {
        let changed: Vec<_> = node.operands().filter(|v| self.differs(*v)).collect();
        if node.op.def().strided {
            self.showing.extend(&changed);
        } else if node.op.def().asks_for_strides {
            let other = |v: &&ValueId| !self.map[**v].is_some_and(|n| self.has_strides_of(n, self.old.tensor(**v)));
            let other: Vec<_> = changed.iter().filter(other).copied().collect();
            self.showing.extend(other);
        }
        self.call_typed(node, node.op, args, changed.is_empty())?;
        // The results of operands with other strides must be known.
        let unknown =
            |r: &ValueId| self.map[*r].is_some_and(|v| self.new.values[v].ty.tensor().is_some() && !self.facts[v].sure);
        if !changed.is_empty() && node.results.iter().any(unknown) {
            self.showing.extend(changed);
        }
        Ok(())
    }

    /// Outputs of a program that stays functional.
    pub(super) fn outputs_as_they_are(&mut self) -> Result<Vec<OutputSpec>> {
        for arg in &self.old.outputs {
            let new = arg.try_map(|v| self.value(*v), |e| Ok::<_, Error>(e.clone()))?;
            self.showing.extend(arg.values().copied().filter(|v| self.differs(*v)).collect::<Vec<_>>());
            self.new.outputs.push(new);
        }
        Ok(self.program.signature.outputs.clone())
    }

    /// Whether a value has become one of another type.
    fn differs(&self, old: ValueId) -> bool {
        self.map[old].is_some_and(|new| self.old.values[old].ty != self.new.values[new].ty)
    }
}

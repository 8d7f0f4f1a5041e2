//! Where results are wanted: as the new content of an input, in the region of a scatter, as a part of a whole.

use super::{ExportForm, Materializer};
use restride_ir::{Arg, CollectTree, Effects, Graph, Movement, OutputKind, Program, Result, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// Where a value is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Destination {
    /// The new content of the input at this position.
    Input(usize),
    /// It is the source of the scatter at this position.
    Region(usize),
    /// It is a part of a whole.
    Part,
}

/// Values whose memory the caller may see: outputs, and values that these may be views of.
pub(super) fn visible(graph: &Graph, effects: &Effects) -> Result<BTreeSet<ValueId>> {
    let mut visible: BTreeSet<ValueId> = graph.output_values().collect_set();
    for &id in graph.order.iter().rev() {
        let node = &graph.nodes[id];
        let seen: Vec<usize> = (0..node.results.len()).filter(|i| visible.contains(&node.results[*i])).collect();
        if seen.is_empty() {
            continue;
        }
        let operands: Vec<ValueId> = node.operands().collect();
        if node.op.may_pass_through() || node.op.def().hop.is_some() {
            visible.extend(&operands);
        }
        let effect = effects.node(graph, node)?;
        visible.extend(effect.aliases.iter().filter(|(r, _)| seen.contains(r)).map(|(_, o)| operands[*o]));
    }
    Ok(visible)
}

impl Materializer<'_> {
    /// Says where results are wanted.
    pub(super) fn look_ahead(&mut self) -> Result<()> {
        let Materializer { program, old, .. } = *self;
        let made: BTreeSet<ValueId> = old.ordered().flat_map(|(_, n)| n.results.iter().copied()).collect_set();
        self.visible = visible(old, &self.ctx.effects)?;
        // The slices form writes only the main graph's own memory.
        if self.form == ExportForm::Views || self.form == ExportForm::Slices && !self.main {
            return Ok(());
        }
        let mut wants = match self.form {
            ExportForm::InPlace if self.main => new_contents(program, &made),
            _ => self.new_contents(&made),
        };
        let apart = self.visible.iter().chain(wants.keys()).chain(self.kept).copied().collect();
        self.plan_parts(&apart)?;
        for v in self.parts.straight() {
            wants.entry(v).or_insert(Destination::Part);
        }
        if self.form == ExportForm::Slices {
            self.wants = wants;
            return Ok(());
        }
        for (at, (_, node)) in old.ordered().enumerate() {
            let Some(Movement::Scatter { base: 0, src: 1, .. }) = node.op.def().movement else { continue };
            let Some(Arg::Value(src)) = node.args.get(1) else { continue };
            if made.contains(src) && !self.visible.contains(src) {
                wants.entry(*src).or_insert(Destination::Region(at));
            }
        }
        self.wants = wants;
        Ok(())
    }
}

impl Materializer<'_> {
    /// New contents of the inputs that a body may write.
    fn new_contents(&self, made: &BTreeSet<ValueId>) -> BTreeMap<ValueId, Destination> {
        let mut wants = BTreeMap::new();
        for (&output, &input) in &self.written {
            if let Some(Arg::Value(v)) = self.old.outputs.get(output)
                && made.contains(v)
            {
                wants.entry(*v).or_insert(Destination::Input(input));
            }
        }
        wants
    }
}

fn new_contents(program: &Program, made: &BTreeSet<ValueId>) -> BTreeMap<ValueId, Destination> {
    let mut wants = BTreeMap::new();
    for (arg, spec) in program.graph().outputs.iter().zip(&program.signature.outputs) {
        if let (OutputKind::Mutation(i), Arg::Value(v)) = (&spec.kind, arg)
            && made.contains(v)
        {
            wants.entry(*v).or_insert(Destination::Input(*i));
        }
    }
    wants
}

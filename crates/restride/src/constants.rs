//! Values that weights alone decide: computed when a run first needs them, kept by the instances that use them, and recomputed
//! where a weight was changed.

use crate::prepare::PreparedSegment;
use restride_exec::RunValue;
use restride_exec::constants::run_constants;
use restride_ir::{AliasRoot, InputKind, OutputKind, Program, Result, ValueId};
use restride_passes::constants::FoldedValue;
use restride_passes::segment::{Segment, SegmentInput};
use restride_tensor::{Contents, DType, Layout};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Segments whose values an instance keeps; the oldest goes first.
const KEPT: usize = 16;

/// The inputs of a segment that no run changes: weights that the program does not write, and that it gives no views of.
pub(crate) fn unchanged_inputs(program: &Program, segment: &Segment, fold: bool) -> Vec<bool> {
    let signature = &program.signature;
    let mut constant: Vec<bool> = signature
        .inputs
        .iter()
        .map(|i| matches!(i.kind, InputKind::Parameter(_) | InputKind::Buffer { .. } | InputKind::Constant(_)) && fold)
        .collect();
    for output in &signature.outputs {
        if let OutputKind::Mutation(i) | OutputKind::Metadata(i) = output.kind {
            constant[i] = false;
        }
        if let Some(AliasRoot::Input(i)) = output.alias.as_ref().map(|a| a.root) {
            constant[i] = false;
        }
    }
    for members in
        signature.inputs.iter().filter_map(|i| if let InputKind::Storage(m) = &i.kind { Some(m) } else { None })
    {
        members.iter().for_each(|m| constant[*m] = false);
    }
    let own = |s: &SegmentInput| matches!(s, SegmentInput::Input(i) if constant[*i]);
    segment.inputs.iter().map(own).collect()
}

/// A value, and the weights that it was computed from.
pub(crate) struct HeldConstant {
    value: RunValue,
    of: Vec<WeightContents>,
}

/// A weight as it was.
struct WeightContents {
    contents: Contents,
    dtype: DType,
    layout: Layout,
}

impl WeightContents {
    /// `None` for memory that others may change unseen.
    fn of(input: &RunValue) -> Option<WeightContents> {
        let t = input.tensor()?;
        Some(WeightContents { contents: t.storage().contents()?, dtype: t.dtype(), layout: t.layout().clone() })
    }
    fn lies_as(&self, dtype: DType, layout: &Layout) -> bool {
        self.dtype == dtype && self.layout == *layout
    }
    /// Whether the input is this weight, unchanged.
    fn is(&self, input: &RunValue) -> bool {
        let Some(t) = input.tensor() else { return false };
        self.contents.are_in(t.storage()) && self.lies_as(t.dtype(), t.layout())
    }
}

impl HeldConstant {
    fn is_of(&self, value: &FoldedValue, inputs: &[RunValue]) -> bool {
        self.of.len() == value.sources.len() && self.of.iter().zip(&value.sources).all(|(w, i)| w.is(&inputs[*i]))
    }
}

/// The values that instances of one program have computed, by their keys.
#[derive(Default)]
pub(crate) struct ConstantCache(Mutex<BTreeMap<String, Vec<Weak<HeldConstant>>>>);

impl ConstantCache {
    /// A value computed before from the same weights.
    fn find(&self, key: &str, of: &[WeightContents]) -> Option<Arc<HeldConstant>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key)?.iter().filter_map(Weak::upgrade).find(|held| {
            let mut pairs = held.of.iter().zip(of);
            held.of.len() == of.len()
                && pairs.all(|(a, b)| a.contents.same(&b.contents) && a.lies_as(b.dtype, &b.layout))
        })
    }
    fn add(&self, key: &str, held: &Arc<HeldConstant>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = all.entry(key.to_string()).or_default();
        same.retain(|w| w.strong_count() > 0);
        same.push(Arc::downgrade(held));
    }
}

/// The values that an instance has.
#[derive(Default)]
pub(crate) struct HeldConstants(Vec<(Arc<PreparedSegment>, Vec<Arc<HeldConstant>>)>);

impl HeldConstants {
    /// Whether the values of a segment are those of these inputs.
    pub fn are_current(&self, segment: &Arc<PreparedSegment>, inputs: &[RunValue]) -> bool {
        let Some(constants) = &segment.constants else { return true };
        let held = self.0.iter().find(|(s, _)| Arc::ptr_eq(s, segment));
        held.is_some_and(|(_, held)| held.iter().zip(&constants.values).all(|(h, v)| h.is_of(v, inputs)))
    }

    /// Adds to a segment's inputs the values that it takes after them; computes the missing ones.
    ///
    /// # Errors
    /// An operator's own error, with the node.
    pub fn add(
        &mut self,
        segment: &Arc<PreparedSegment>,
        cache: &ConstantCache,
        inputs: &mut Vec<RunValue>,
    ) -> Result<()> {
        let Some(constants) = &segment.constants else { return Ok(()) };
        if !self.are_current(segment, inputs) {
            self.0.retain(|(s, _)| !Arc::ptr_eq(s, segment));
            let weights = |v: &FoldedValue| -> Option<Vec<WeightContents>> {
                v.sources.iter().map(|i| WeightContents::of(&inputs[*i])).collect()
            };
            let of: Vec<Option<Vec<WeightContents>>> = constants.values.iter().map(weights).collect();
            let mut all: Vec<Option<Arc<HeldConstant>>> = (constants.values.iter().zip(&of))
                .map(|(v, of)| of.as_ref().and_then(|of| cache.find(&v.key, of)))
                .collect();
            let missing: Vec<usize> = (0..all.len()).filter(|i| all[*i].is_none()).collect();
            let wanted: Vec<ValueId> = missing.iter().map(|i| constants.values[*i].value).collect();
            let given: Vec<RunValue> = constants.inputs.iter().map(|i| inputs[*i].clone()).collect();
            let mut of = of;
            for (i, value) in missing.into_iter().zip(run_constants(&constants.graph, &given, &wanted)?) {
                // A packed file page that no step reads need not stay in memory beside its packed form.
                for (weight, at) in of[i].iter().flatten().zip(&constants.values[i].sources) {
                    if !segment.runnable.uses_input(*at) {
                        weight.contents.evict();
                    }
                }
                // Of memory that others may change, nothing is known: the value serves one run.
                let known = of[i].is_some();
                let held = Arc::new(HeldConstant { value, of: of[i].take().unwrap_or_default() });
                if known {
                    cache.add(&constants.values[i].key, &held);
                }
                all[i] = Some(held);
            }
            if self.0.len() >= KEPT {
                self.0.remove(0);
            }
            self.0.push((segment.clone(), all.into_iter().flatten().collect()));
        }
        let held = self.0.iter().find(|(s, _)| Arc::ptr_eq(s, segment)).map(|(_, held)| held);
        inputs.extend(held.into_iter().flatten().map(|h| h.value.clone()));
        Ok(())
    }
}

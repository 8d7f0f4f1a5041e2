//! Views of one element type as another in the bodies of higher-order calls. PyTorch accepts them for some strides and
//! offsets only. A body declares those of its inputs for one call, or one iteration; an operand may have others.

use super::rewrite::{NewValue, Rewrite, Rewriter};
use super::storages::StorageId;
use crate::input_effects::{typed_inputs, typed_results};
use restride_ir::{Arg, Dim, Error, Expr, GraphId, Hop, Layout, Node, TensorType, ValueId, dense_like};

/// Bytes of the largest element: offsets that are taken modulo one come again.
const LARGEST: i64 = 16;

impl Rewriter<'_> {
    /// The first operand that a body views as another element type and that has other strides or another offset than the
    /// body declares, in any iteration.
    ///
    /// Of `operands`, the first `carried` are carried, and the `sliced` after them are passed slice by slice. A body sees
    /// operands on storages in `bases` at their own places.
    pub(super) fn typed_elsewhere(
        &self,
        node: &Node,
        body: GraphId,
        (carried, sliced): (usize, usize),
        operands: &[ValueId],
        bases: &[StorageId],
    ) -> Rewrite<Option<usize>> {
        let graph = &self.program.graphs[body];
        for (i, unit) in typed_inputs(self.program, body).into_iter().enumerate() {
            let (Some(v), Some(input)) = (operands.get(i), graph.inputs.get(i)) else { continue };
            let (true, Some(NewValue::Object(o))) = (unit > 0, self.map[*v]) else { continue };
            let Some(said) = graph.values[*input].ty.tensor() else { continue };
            let alias = &self.storages[self.objects[o]];
            if bases.contains(&alias.storage) {
                continue;
            }
            let sliced = (carried..carried + sliced).contains(&i);
            let unlike = layouts(node, &alias.ty, sliced).any(|l| !alike(&l, said, unit));
            let next = match graph.outputs.get(i) {
                Some(Arg::Value(out)) if i < carried => graph.values[*out].ty.tensor(),
                _ => None,
            };
            if unlike || next.is_some_and(|ty| !alike(&ty.layout, said, unit)) {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    /// Refuses a call whose body views a tensor that it computes as another element type, where the tensor's strides may follow
    /// those of an operand that has others than the body declares.
    pub(super) fn refuse_typed_results(
        &self,
        node: &Node,
        body: GraphId,
        (carried, sliced): (usize, usize),
        operands: &[ValueId],
    ) -> Rewrite<()> {
        let inputs = &self.program.graphs[body].inputs;
        for (i, _) in typed_results(self.program, body).into_iter().enumerate().filter(|(_, found)| *found) {
            let (Some(v), Some(input)) = (operands.get(i), inputs.get(i)) else { continue };
            let (Some(NewValue::Object(o)), Some(said)) =
                (self.map[*v], self.program.graphs[body].values[*input].ty.tensor())
            else {
                continue;
            };
            let ty = &self.storages[self.objects[o]].ty;
            if layouts(node, ty, (carried..carried + sliced).contains(&i)).any(|l| !copied_alike(&l, said)) {
                let what = format!(
                    "{} whose body views a computed tensor as another element type, and operand {i} has other strides than declared",
                    node.op.name()
                );
                return Err(Error::unsupported(what)
                    .help("call clone(memory_format=torch.contiguous_format) before the view")
                    .into());
            }
        }
        Ok(())
    }

    /// Refuses a call whose body views an operand as another element type, where the operand is laid out otherwise than
    /// declared.
    pub(super) fn refuse_typed(
        &self,
        node: &Node,
        body: GraphId,
        changing: (usize, usize),
        operands: &[ValueId],
        bases: &[StorageId],
    ) -> Rewrite<()> {
        self.refuse_typed_results(node, body, changing, operands)?;
        let Some(i) = self.typed_elsewhere(node, body, changing, operands, bases)? else { return Ok(()) };
        let what = match self.old.values.get(operands[i]).map_or("", |v| &v.name) {
            "" => format!("operand {i}"),
            name => format!("%{name}"),
        };
        let op = node.op.name();
        Err(Error::unsupported(format!("{op} whose body views {what} as another element type, with other strides"))
            .help("clone the operand of the view in the body")
            .into())
    }
}

/// The layouts in which a body sees an operand: its own, or those of its slices.
fn layouts(node: &Node, ty: &TensorType, sliced: bool) -> Box<dyn Iterator<Item = Layout<Expr>>> {
    let whole = ty.layout.clone();
    if !sliced {
        return Box::new(std::iter::once(whole));
    }
    let trips = whole.sizes.first().and_then(Dim::known).unwrap_or(1);
    // The first slice of a scan is a copy.
    let first = (node.op.def().hop == Some(Hop::Scan)) as i64;
    Box::new((first..trips.min(first + LARGEST)).filter_map(move |k| whole.select(0, &Expr::Int(k)).ok()))
}

/// Whether copies of two tensors have the same strides. Unknown layouts pass.
fn copied_alike(real: &Layout<Expr>, said: &TensorType) -> bool {
    let (Some(a), Some(b)) = (real.known(), said.layout.known()) else { return true };
    dense_like(&a).strides == dense_like(&b).strides
}

/// Whether a tensor is laid out as declared, as far as views as elements of `unit` bytes need. Unknown layouts pass.
fn alike(real: &Layout<Expr>, said: &TensorType, unit: i64) -> bool {
    let (Some(a), Some(b)) = (real.known(), said.layout.known()) else { return true };
    a.strides == b.strides && (a.offset - b.offset) * said.dtype.size() as i64 % unit == 0
}

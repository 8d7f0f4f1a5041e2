//! Views of one element type as another in the bodies of higher-order calls. PyTorch accepts them for some strides and
//! offsets only. A body declares those of its inputs for one call, or one iteration; an operand may have others.

use super::rewrite::{NewValue, Rewrite, Rewriter};
use super::storages::StorageId;
use crate::input_effects::typed_inputs;
use restride_ir::{Arg, Dim, Error, Expr, GraphId, Hop, Layout, Node, TensorType, ValueId};

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
            let unlike = if (carried..carried + sliced).contains(&i) {
                let trips = alias.ty.layout.sizes.first().and_then(Dim::known).unwrap_or(1);
                // The first slice of a scan is a copy.
                let first = (node.op.def().hop == Some(Hop::Scan)) as i64;
                let slice = |k: i64| alias.ty.layout.select(0, &Expr::Int(k)).is_ok_and(|l| !alike(&l, said, unit));
                (first..trips.min(first + LARGEST)).any(slice)
            } else {
                !alike(&alias.ty.layout, said, unit)
            };
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

/// Whether a tensor is laid out as declared, as far as views as elements of `unit` bytes need. Unknown layouts pass.
fn alike(real: &Layout<Expr>, said: &TensorType, unit: i64) -> bool {
    let (Some(a), Some(b)) = (real.known(), said.layout.known()) else { return true };
    a.strides == b.strides && (a.offset - b.offset) * said.dtype.size() as i64 % unit == 0
}

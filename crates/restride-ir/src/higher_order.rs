//! Higher-order nodes in a placement: inputs of bodies, layouts at a body's border, and scratch of a call. Placement,
//! checkers and executor share this arithmetic.

use crate::{
    Arg, Expr, Graph, GraphId, Hop, IdArena, Meta, Node, NodeId, OpError, Place, Placement, Plan, Type, ValueId,
};
use restride_tensor::{Layout, self_overlaps};
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, OpError>;

/// Alignment of everything in an arena, in bytes.
pub const ARENA_ALIGN: i64 = 64;

/// Rounds bytes up to [`ARENA_ALIGN`]; saturates.
pub fn aligned(bytes: i64) -> i64 {
    match (bytes.max(0) as u64).next_multiple_of(ARENA_ALIGN as u64) {
        n if n <= i64::MAX as u64 => n as i64,
        _ => i64::MAX - (ARENA_ALIGN - 1),
    }
}

/// The body of a higher-order node with its own placement and plan. Its inputs are `BufferKind::Input`, its outputs
/// `BufferKind::Output`, both in [`border_layout`] from the buffer's start. A loop's body overwrites its carried inputs
/// with the outputs at the same positions, which have no buffers. It writes no other input.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Nested {
    /// Placement of the body.
    pub placement: Placement,
    /// Plan of the body's own arena, a part of the caller's scratch.
    pub plan: Plan,
    /// Number of leading inputs that a loop carries.
    pub carried: usize,
}

impl Nested {
    /// For each input, the tensor that its memory holds after the body; `None` for an input that the body only reads.
    pub fn becomes(body: &Graph, carried: usize) -> Vec<Option<ValueId>> {
        let next = |i: usize| match body.outputs.get(i) {
            Some(Arg::Value(v)) if matches!(body.values[*v].ty, Type::Tensor(_)) => Some(*v),
            _ => None,
        };
        (0..body.inputs.len()).map(|i| if i < carried { next(i) } else { None }).collect()
    }
}

/// Layout of a value at a body's border: eager PyTorch's strides from cell 0, or row-major if several elements may share a
/// cell.
pub fn border_layout(ty: &Meta) -> Layout {
    let eager = Layout { offset: 0, ..ty.layout.clone() };
    if self_overlaps(&eager) == Some(false) { eager } else { Layout::contiguous(&ty.layout.sizes) }
}

/// Bytes that a layout reaches from a buffer's start; `i64::MAX` on overflow.
pub fn layout_bytes(layout: &Layout, element: usize) -> i64 {
    if layout.sizes.contains(&0) { 0 } else { layout.cell_range().end.max(0).saturating_mul(element as i64) }
}

/// An operand of a higher-order call.
#[derive(Clone, PartialEq, Debug)]
pub enum HopItem {
    /// A tensor.
    Tensor {
        /// Position among `Node::operands`.
        operand: usize,
        /// Value.
        value: ValueId,
    },
    /// A number.
    Number(Expr),
    /// `None`.
    None,
}

/// Operands of a higher-order call. Every body takes `carried`, a slice of each of `xs`, and `rest`, in this order.
#[derive(Clone, PartialEq, Debug)]
pub struct HopCall {
    /// Operator.
    pub hop: Hop,
    /// Bodies: `cond` has the true one first, `while_loop` the condition.
    pub bodies: Vec<GraphId>,
    /// Predicate of `cond`.
    pub pred: Option<HopItem>,
    /// Values that a loop carries.
    pub carried: Vec<HopItem>,
    /// Operands that the bodies take in slices along dimension 0.
    pub xs: Vec<HopItem>,
    /// Operands that every body takes whole.
    pub rest: Vec<HopItem>,
}

impl HopCall {
    /// Reads a call; `None` if the node is not higher-order.
    pub fn of(graph: &Graph, node: &Node) -> Result<Option<HopCall>> {
        let Some(hop) = node.op.def().hop else { return Ok(None) };
        let mut operand = 0;
        let items = node.args.iter().map(|arg| items(graph, arg, &mut operand)).collect::<Result<Vec<_>>>()?;
        let body = |i: usize| {
            let graph = node.args.get(i).and_then(Arg::graph);
            graph.ok_or_else(|| OpError::new(format!("argument {i} is not a graph")))
        };
        let list = |i: usize| items.get(i).cloned().unwrap_or_default();
        let call = HopCall { hop, bodies: vec![], pred: None, carried: vec![], xs: vec![], rest: vec![] };
        Ok(Some(match hop {
            Hop::Cond => {
                let pred = list(0).into_iter().next().ok_or_else(|| OpError::new("a `cond` without a predicate"))?;
                HopCall { bodies: vec![body(1)?, body(2)?], pred: Some(pred), rest: list(3), ..call }
            }
            Hop::WhileLoop => HopCall { bodies: vec![body(0)?, body(1)?], carried: list(2), rest: list(3), ..call },
            Hop::Scan => HopCall { bodies: vec![body(0)?], carried: list(1), xs: list(2), rest: list(3), ..call },
            Hop::Map => HopCall { bodies: vec![body(0)?], xs: list(1), rest: list(2), ..call },
        }))
    }

    /// Inputs of the bodies, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &HopItem> {
        self.carried.iter().chain(&self.xs).chain(&self.rest)
    }

    /// Whether the input at a position is a slice along dimension 0.
    pub fn is_slice(&self, input: usize) -> bool {
        (self.carried.len()..self.carried.len() + self.xs.len()).contains(&input)
    }

    /// Number of leading inputs that body `body` overwrites: the carried ones, except in a loop's condition.
    pub fn replaced(&self, body: usize) -> usize {
        if body + 1 == self.bodies.len() { self.carried.len() } else { 0 }
    }

    /// The operand (position and value) whose memory the result may take over. The operand has the result's place, which no
    /// other operand shares. A loop first moves the operand to its own memory for it, which holds the result at the end.
    pub fn takes_over(&self, result: usize) -> Option<(usize, ValueId)> {
        match self.carried.get(result) {
            Some(HopItem::Tensor { operand, value }) => Some((*operand, *value)),
            _ => None,
        }
    }

    /// Iterations of a `scan` or `map`: the size that it slices.
    pub fn trips(&self, graph: &Graph) -> Result<i64> {
        let mut trips = None;
        for x in &self.xs {
            let HopItem::Tensor { value, .. } = x else { return Err(OpError::new("only tensors can be sliced")) };
            let n = known_meta(graph, *value)?.layout.sizes.first().copied();
            let n = n.ok_or_else(|| OpError::new("a 0-d tensor cannot be sliced"))?;
            if *trips.get_or_insert(n) != n {
                return Err(OpError::new("the sliced operands differ in size"));
            }
        }
        trips.ok_or_else(|| OpError::new("the call slices no operand"))
    }
}

fn items(graph: &Graph, arg: &Arg, operand: &mut usize) -> Result<Vec<HopItem>> {
    let mut of = |v: ValueId| {
        let position = *operand;
        *operand += 1;
        match &graph.values[v].ty {
            Type::Tensor(_) => Ok(HopItem::Tensor { operand: position, value: v }),
            Type::Scalar(e) => Ok(HopItem::Number(e.clone())),
            Type::None => Ok(HopItem::None),
            other => Err(OpError::new(format!("%{} is {other}, which a body cannot take", graph.values[v].name))),
        }
    };
    match arg {
        Arg::Value(v) => Ok(vec![of(*v)?]),
        Arg::Values(vs) => vs.iter().map(|v| v.map_or(Ok(HopItem::None), &mut of)).collect(),
        Arg::Scalar(e) => Ok(vec![HopItem::Number(e.clone())]),
        Arg::Scalars(es) => Ok(es.iter().cloned().map(HopItem::Number).collect()),
        _ => Ok(Vec::new()),
    }
}

/// Type of a tensor with known sizes.
pub fn known_meta(graph: &Graph, v: ValueId) -> Result<Meta> {
    let value = &graph.values[v];
    let ty = value.ty.tensor().ok_or_else(|| OpError::new(format!("%{} is no tensor", value.name)))?;
    ty.known().ok_or_else(|| OpError::new(format!("the sizes of %{} are not known", value.name)))
}

/// Scratch of one call of a higher-order node, as byte offsets in its scratch buffer (see `Placement::scratch`).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LoopFrame {
    /// Bytes of the scratch.
    pub bytes: i64,
    /// Offset of the bodies' arenas, one live at a time.
    pub arena: i64,
    /// Places of the carried tensors, in the border layout of the last body's input. `None` for numbers.
    pub carried: Vec<Option<CarryPlace>>,
    /// Slots of each body.
    pub bodies: Vec<BodyFrame>,
}

/// Place of a carried tensor during the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CarryPlace {
    /// The call's result, if the strides agree.
    Result,
    /// A slot, moved to the result at the end.
    Slot(i64),
}

/// Offsets of the copies at a body's border, in border layout. `None`: the strides agree, so no copy, or a number.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BodyFrame {
    /// Copies of inputs.
    pub inputs: Vec<Option<i64>>,
    /// Outputs, moved from here to their destination.
    pub outputs: Vec<Option<i64>>,
}

impl LoopFrame {
    /// The frame of a call with the given places (as in `Step::Run`).
    ///
    /// # Errors
    /// The call does not fit its bodies, or a body has no placement.
    pub fn of(
        graphs: &IdArena<GraphId, Graph>,
        graph: GraphId,
        node: NodeId,
        reads: &[Option<Place>],
        writes: &[Option<Place>],
        nested: &BTreeMap<GraphId, Nested>,
    ) -> Result<LoopFrame> {
        let g = &graphs[graph];
        let n = &g.nodes[node];
        let call = HopCall::of(g, n)?.ok_or_else(|| OpError::new(format!("{} has no bodies", n.op)))?;
        let mut frame = LoopFrame::default();
        let mut take = |bytes: i64| {
            let at = frame.bytes;
            frame.bytes = frame.bytes.saturating_add(aligned(bytes));
            at
        };
        let mut arena = 0;
        for (b, body) in call.bodies.iter().enumerate() {
            let body = nested.get(body).ok_or_else(|| OpError::new("a body has no placement"))?;
            if body.carried != call.replaced(b) {
                let what = "a body was placed for other carried values";
                return Err(OpError::new(what));
            }
            arena = body.plan.arena_bytes.max(arena);
        }
        frame.arena = take(arena);
        let step = *call.bodies.last().expect("every call has a body");
        for (i, item) in call.carried.iter().enumerate() {
            let slot = match item {
                HopItem::Tensor { value, .. } => {
                    let inside = input_meta(&graphs[step], i)?;
                    same_elements(&inside, &known_meta(g, *value)?)?;
                    let border = border_layout(&inside);
                    Some(match same_strides(&border, &place_of(writes, i)?.layout) {
                        true => CarryPlace::Result,
                        false => CarryPlace::Slot(take(layout_bytes(&border, inside.dtype.size()))),
                    })
                }
                _ => None,
            };
            frame.carried.push(slot);
        }
        for (at, &b) in call.bodies.iter().enumerate() {
            let body = &graphs[b];
            if body.inputs.len() != call.inputs().count() {
                return Err(OpError::new(format!(
                    "a body expects {} inputs, got {}",
                    body.inputs.len(),
                    call.inputs().count()
                )));
            }
            let mut slots = BodyFrame::default();
            for (i, item) in call.inputs().enumerate() {
                let HopItem::Tensor { operand, value } = item else {
                    slots.inputs.push(None);
                    continue;
                };
                let inside = input_meta(body, i)?;
                let mut outer = known_meta(g, *value)?;
                let place = place_of(reads, *operand)?;
                let mut from = place.layout.clone();
                if call.is_slice(i) {
                    outer.layout = slice(&outer.layout)?;
                    from = slice(&from)?;
                }
                same_elements(&inside, &outer)?;
                if i < call.carried.len() {
                    from = border_layout(&input_meta(&graphs[step], i)?);
                }
                let to = border_layout(&inside);
                let bytes = layout_bytes(&to, inside.dtype.size());
                slots.inputs.push((!same_strides(&from, &to)).then(|| take(bytes)));
            }
            // The condition's one output belongs to the loop.
            let condition = call.hop == Hop::WhileLoop && b != step;
            let wanted = if condition { 1 } else { n.results.len() };
            if body.outputs.len() != wanted {
                return Err(OpError::new(format!("a body returns {} results, expected {wanted}", body.outputs.len())));
            }
            for (k, out) in body.outputs.iter().enumerate() {
                let Some(inside) = output_meta(body, out)? else {
                    slots.outputs.push(None);
                    continue;
                };
                if k < call.replaced(at) {
                    same_elements(&inside, &input_meta(body, k)?)?;
                    slots.outputs.push(None);
                    continue;
                }
                let from = border_layout(&inside);
                let to = if condition {
                    if inside.layout.numel() != 1 {
                        return Err(OpError::new("a condition has one element"));
                    }
                    None
                } else {
                    let result = known_meta(g, n.results[k])?;
                    let place = place_of(writes, k)?;
                    let sliced = k >= call.carried.len() && matches!(call.hop, Hop::Scan | Hop::Map);
                    let outer = if sliced { Meta { layout: slice(&result.layout)?, ..result } } else { result };
                    same_elements(&inside, &outer)?;
                    Some(if sliced { slice(&place.layout)? } else { place.layout.clone() })
                };
                let bytes = layout_bytes(&from, inside.dtype.size());
                slots.outputs.push((!to.is_some_and(|to| same_strides(&from, &to))).then(|| take(bytes)));
            }
            frame.bodies.push(slots);
        }
        Ok(frame)
    }
}

/// Type of a body's tensor input.
pub fn input_meta(body: &Graph, i: usize) -> Result<Meta> {
    let v = body.inputs.get(i).ok_or_else(|| OpError::new(format!("a body has no input {i}")))?;
    known_meta(body, *v)
}

/// Type of an output of a graph; `None` for numbers and `None`s.
pub fn output_meta(body: &Graph, output: &Arg) -> Result<Option<Meta>> {
    match output {
        Arg::Value(v) => match &body.values[*v].ty {
            Type::Tensor(_) => known_meta(body, *v).map(Some),
            Type::Scalar(_) | Type::None => Ok(None),
            other => Err(OpError::new(format!("a body cannot return {other}"))),
        },
        Arg::Values(_) => Err(OpError::new("a body cannot return a list")),
        _ => Ok(None),
    }
}

fn place_of(places: &[Option<Place>], i: usize) -> Result<&Place> {
    places
        .get(i)
        .and_then(Option::as_ref)
        .ok_or_else(|| OpError::new(format!("operand or result {i} of the call has no place")))
}

fn slice(layout: &Layout) -> Result<Layout> {
    if layout.sizes.is_empty() {
        return Err(OpError::new("a 0-d tensor cannot be sliced"));
    }
    // Without slices, sizes and strides are known nevertheless.
    let mut out = layout.clone();
    out.sizes.remove(0);
    out.strides.remove(0);
    Ok(out)
}

fn same_elements(a: &Meta, b: &Meta) -> Result<()> {
    if a.dtype == b.dtype && a.layout.sizes == b.layout.sizes {
        return Ok(());
    }
    Err(OpError::new(format!("a body has {a}, its call {b}")))
}

fn same_strides(a: &Layout, b: &Layout) -> bool {
    a.same_cells(&Layout { offset: a.offset, ..b.clone() })
}

//! Control flow: higher-order operators, assertions, and arithmetic on numbers.
//!
//! Higher-order operators take subgraphs. `Graph` arguments and mixed lists have no schema type; operands are lists of values
//! (tensors, and numbers where a program passes them).

mod asserts;
mod scalars;

use restride_ir::{Hop, OpDef};

const fn hop(schema: &'static str, hop: Hop, doc: &'static str) -> OpDef {
    OpDef { hop: Some(hop), doc, ..OpDef::new(schema) }
}

pub(crate) static OPS: &[OpDef] = table![
    hop(
        "higher_order::cond(Scalar pred, Graph true_graph, Graph false_graph, Tensor[] operands) -> Tensor[]",
        Hop::Cond,
        "Runs one of two graphs on the operands; the predicate is a number or a one-element tensor",
    ),
    hop(
        "higher_order::while_loop(Graph cond_graph, Graph body_graph, Tensor[] carried, Tensor[] additional) -> Tensor[]",
        Hop::WhileLoop,
        "Runs the body on the carried values while the condition holds",
    ),
    hop(
        "higher_order::scan(Graph combine_graph, Tensor[] init, Tensor[] xs, Tensor[] additional) -> Tensor[]",
        Hop::Scan,
        "Folds over dimension 0 of xs: the graph maps (carry, x) to (carry, y); gives the last carry and the stacked ys",
    ),
    hop(
        "higher_order::map_impl(Graph body_graph, Tensor[] xs, Tensor[] additional) -> Tensor[]",
        Hop::Map,
        "Maps the graph over dimension 0 of xs and stacks its results",
    ),
    OpDef {
        doc: "Computes a graph of operators tile by tile: what they only hand on to each other is not written",
        fused: true,
        pointwise: true,
        ..OpDef::new("restride::fused(Graph body, Tensor[] operands) -> Tensor[]")
    },
    OpDef {
        doc: "Inlined at import: its graph runs without gradients or with them",
        ..OpDef::new("higher_order::wrap_with_set_grad_enabled(bool enabled, Graph graph, Tensor[] args) -> Tensor[]")
    },
    OpDef {
        doc: "Inlined at import: a graph that was traced under autocast carries its casts",
        ..OpDef::new(
            "higher_order::wrap_with_autocast(str device_type, ScalarType? dtype, bool enabled, bool? cache_enabled, \
             Graph graph, Tensor[] args) -> Tensor[]",
        )
    },
    OpDef {
        doc: "Replaced at import by the operator that it calls, which writes its arguments again",
        ..OpDef::new("higher_order::auto_functionalized_v2(Operator op, Tensor[] bases, Scalar[] views) -> Tensor[]")
    },
    OpDef {
        doc: "Replaced at import by the operator that it calls; its order is that of the program",
        effectful: true,
        ..OpDef::new("higher_order::with_effects(Tensor token, Operator op, Tensor[] args) -> Tensor[]")
    },
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family =
    crate::Family { ops: &[scalars::OPS, OPS, asserts::OPS], gradients: &[], aliases: &[] };

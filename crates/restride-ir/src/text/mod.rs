//! The text format (`.fx`): programs as PyTorch users read them, one node a line.
//!
//! [`print()`] and [`parse`] are inverse to each other up to numbering, source lines, sample inputs and the memory of
//! weights. [`print_placed`] shows a placement; it is not read back. The grammar is in `docs/text-format.md`.

#[cfg(test)]
mod canonical;
mod expr;
mod graph;
mod lex;
mod parse;
mod placed;
mod print;
#[cfg(test)]
mod tests;

pub use parse::{attach_weights, parse};
pub use placed::print_placed;
pub(crate) use print::reachable;
pub use print::{PrintOptions, print, print_node, print_with};

use crate::{GraphId, Id, MemoryFormat, Program, Stage};

const MEMORY_FORMATS: [(MemoryFormat, &str); 4] = [
    (MemoryFormat::Contiguous, "contiguous_format"),
    (MemoryFormat::Preserve, "preserve_format"),
    (MemoryFormat::ChannelsLast, "channels_last"),
    (MemoryFormat::ChannelsLast3d, "channels_last_3d"),
];

/// Stage of a text that does not declare one: functional if no operator writes memory or may alias.
fn stage_by_ops(program: &Program) -> Stage {
    let graphs = reachable(program);
    let mut nodes = graphs.iter().flat_map(|g| program.graphs[*g].ordered());
    let pure = nodes.all(|(_, n)| !n.op.mutates(&n.args) && !n.op.is_view());
    if pure { Stage::Functional } else { Stage::Imported }
}

/// The name in text of a graph without a name.
pub(crate) fn default_graph_name(id: GraphId) -> String {
    format!("graph{}", id.index())
}

/// Whether a symbol's name cannot be mistaken for another word.
pub(crate) fn is_symbol_name(name: &str) -> bool {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let word = name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    plain && word && !matches!(name, "True" | "False" | "None" | "inf" | "nan" | "NaN" | "infj" | "nanj" | "NaNj")
}

//! A node's name, origin and marks.

use crate::model;
use restride_ir::Origin;

pub(super) fn short_target(target: &str) -> &str {
    target.strip_prefix("torch.ops.").unwrap_or(target)
}

pub(super) fn node_name(node: &model::FileNode) -> String {
    let first = || node.outputs.iter().find_map(|o| o.number_name().or_else(|| o.tensor_names().first().copied()));
    node.name.as_deref().or_else(first).unwrap_or("_").to_string()
}

/// The key in a node's custom metadata, which PyTorch keeps, for facts that PyTorch's operators cannot express. Its value is words
/// separated by spaces: `no_grad`, `parts` for `Origin::parts`, and the two below.
pub(crate) const MARKS: &str = "restride";
/// Marks an `aten.copy` that stands for its source with the autograd history of its target.
pub(crate) const HISTORY: &str = "history";
/// Prefix of the word with the positions of `Origin::overwritten`, separated by commas.
pub(crate) const OVERWRITTEN: &str = "overwritten=";

/// The marks of a node.
fn marks(node: &model::FileNode) -> String {
    let custom = node.metadata.get("custom").and_then(|s| serde_json::from_str::<serde_json::Value>(s).ok());
    custom.as_ref().and_then(|c| c.get(MARKS)?.as_str()).unwrap_or("").to_string()
}

pub(super) fn origin(node: &model::FileNode, key: u32, no_grad: bool) -> Origin {
    let module = node.metadata.get("nn_module_stack").and_then(|s| {
        // `key,path,type` joined by `;`: the innermost module's path.
        let path = s.rsplit(';').next()?.split(',').nth(1)?;
        (!path.is_empty()).then(|| path.into())
    });
    let marks = marks(node);
    let marked = |mark: &str| marks.split(' ').any(|m| m == mark);
    Origin {
        key,
        stack_trace: node.metadata.get("stack_trace").map(|s| s.as_str().into()),
        module,
        no_grad: no_grad || marked("no_grad"),
        overwritten: marks.split(' ').find_map(|m| {
            let which = m.strip_prefix(OVERWRITTEN)?;
            which.split(',').map(str::parse).collect::<std::result::Result<_, _>>().ok()
        }),
        unread: false,
    }
}

/// Whether a node `copy(history, value)` stands for the value with that history.
pub(super) fn has_history(node: &model::FileNode) -> bool {
    marks(node).split(' ').any(|m| m == HISTORY)
}

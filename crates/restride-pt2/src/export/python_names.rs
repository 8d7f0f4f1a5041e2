//! Names that Python's code for a graph cannot give its parameters.
//!
//! `torch.fx` writes a graph as a function. A parameter whose name is a builtin gets a second name with a number, assigned before
//! the first node: with inputs `sum` and `sum_1`, `sum_1 = sum` would overwrite the second one.

use restride_ir::{Graph, Names, Table, ValueId};
use std::sync::Arc;

/// Words that are no names in Python.
const KEYWORDS: &str = " and as assert async await break class continue def del elif else except finally for from global if \
    import in is lambda nonlocal not or pass raise return try while with yield None True False ";

/// Names that `torch.fx` gives to no value.
const BUILTINS: &str = " abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile \
    complex copyright credits delattr device dict dir divmod enumerate eval exec exit filter float format frozenset fx_pytree \
    getattr globals hasattr hash help hex id inf input int isinstance issubclass iter len license list locals map max \
    memoryview min nan next object oct open ord pow print property pytree quit range repr reversed round set setattr slice \
    sorted staticmethod str sum super torch tuple type vars zip ";

fn among(words: &str, name: &str) -> bool {
    words.split_ascii_whitespace().any(|w| w == name)
}

/// Other names for the inputs of a graph that would hide a name of Python or each other.
pub(super) fn renamed_inputs(graph: &Graph, taken: &mut Names) -> Table<ValueId, Option<Arc<str>>> {
    let mut out = Table::new();
    let name = |v: ValueId| &*graph.values[v].name;
    for &v in &graph.inputs {
        let own = name(v);
        let numbered = |other: &str| {
            other.strip_prefix(own).and_then(|rest| rest.strip_prefix('_')).is_some_and(|n| n.parse::<u32>().is_ok())
        };
        if among(KEYWORDS, own) || among(BUILTINS, own) && graph.inputs.iter().any(|&o| numbered(name(o))) {
            out.set(v, Some(taken.fresh(&format!("{own}_"))));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_ir::{DType, Expr, TensorType, Type};

    fn names(inputs: &[&str]) -> Vec<String> {
        let mut graph = Graph::new();
        let ty = Type::Tensor(TensorType::contiguous(DType::F32, &[Expr::Int(2)]));
        for &name in inputs {
            graph.add_input(name, ty.clone());
        }
        let mut taken: Names = graph.values.iter().map(|(_, v)| v.name.clone()).collect();
        let renamed = renamed_inputs(&graph, &mut taken);
        let shown = |&v: &ValueId| renamed[v].as_ref().unwrap_or(&graph.values[v].name).to_string();
        graph.inputs.iter().map(shown).collect()
    }

    #[test]
    fn an_input_hides_no_name_of_python_and_no_other_input() {
        assert_eq!(names(&["sum", "sum_1", "sum_2"]), ["sum_", "sum_1", "sum_2"]);
        assert_eq!(names(&["sum_1", "sum", "sum_"]), ["sum_1", "sum__1", "sum_"]);
        assert_eq!(names(&["lambda", "x"]), ["lambda_", "x"]);
        // The name of a user's input stays where it does no harm.
        assert_eq!(names(&["input", "inputs_1", "x", "x_1"]), ["input", "inputs_1", "x", "x_1"]);
    }
}

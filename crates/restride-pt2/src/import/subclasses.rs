//! Weights that are tensor subclasses, such as torchao's quantized tensors.
//!
//! A program that was not decomposed takes such a weight as one input, and `export.access_subclass_inner_tensor` names the
//! tensors inside. These become inputs of their own, called by the names of the weight and the attribute.

use super::{damaged, same_count};
use crate::model::{Argument, FileInput, FileNode, GraphModule, NamedArgument, TensorArgument};
use restride_ir::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

const ACCESS: &str = "torch.ops.export.access_subclass_inner_tensor.default";

/// Replaces each access of a weight's inner tensor by an input.
///
/// # Errors
/// A subclass that the caller passes, or that a node uses as a whole.
pub(super) fn unwrap(module: &mut GraphModule) -> Result<()> {
    let (graph, specs) = (&mut module.graph, &mut module.signature.input_specs);
    if !graph.nodes.iter().any(|n| n.target == ACCESS) {
        return Ok(());
    }
    same_count("inputs", specs.len(), graph.inputs.len())?;
    let mut inner: BTreeMap<(String, String), String> = BTreeMap::new();
    for node in graph.nodes.iter_mut().filter(|n| n.target == ACCESS) {
        let (whole, attribute, result) = access(node)?;
        if let Some(first) = inner.get(&(whole.clone(), attribute.clone())) {
            node.target = "torch.ops.aten.alias.default".into();
            node.inputs = vec![NamedArgument::positional("self", named(first))];
            continue;
        }
        let Some(at) = graph.inputs.iter().position(|i| i.value_name() == Some(&whole)) else {
            return Err(damaged(format!("{result} is an inner tensor of {whole}, which is not an input")));
        };
        specs.insert(at, part(&specs[at], &whole, &attribute, &result)?);
        graph.inputs.insert(at, named(&result));
        inner.insert((whole, attribute), result);
    }
    graph.nodes.retain(|n| n.target != ACCESS);
    let wholes: BTreeSet<&str> = inner.keys().map(|k| k.0.as_str()).collect();
    let read = graph.nodes.iter().flat_map(|n| n.inputs.iter().map(|a| &a.arg)).chain(&graph.outputs);
    if let Some(whole) = read.flat_map(Argument::tensor_names).find(|n| wholes.contains(n)) {
        return Err(Error::unsupported(format!("%{whole} is a tensor subclass, and the program uses it as a whole"))
            .help("decompose the program before it is saved (`exported.run_decompositions()`)"));
    }
    let mut kept = graph.inputs.iter().map(|i| i.value_name().is_none_or(|n| !wholes.contains(n)));
    specs.retain(|_| kept.next() != Some(false));
    graph.inputs.retain(|i| i.value_name().is_none_or(|n| !wholes.contains(n)));
    Ok(())
}

fn named(name: &str) -> Argument {
    Argument::AsTensor(TensorArgument { name: name.into() })
}

/// The tensor, the attribute and the result of an access.
fn access(node: &FileNode) -> Result<(String, String, String)> {
    match (&node.inputs[..], &node.outputs[..]) {
        (
            [
                NamedArgument { arg: Argument::AsTensor(whole), .. },
                NamedArgument { arg: Argument::AsString(attribute), .. },
            ],
            [Argument::AsTensor(result)],
        ) => Ok((whole.name.clone(), attribute.clone(), result.name.clone())),
        _ => Err(damaged("an access of an inner tensor without a tensor, an attribute and a result")),
    }
}

/// The input for an inner tensor of another input.
fn part(whole: &FileInput, name: &str, attribute: &str, result: &str) -> Result<FileInput> {
    let arg = TensorArgument { name: result.into() };
    let inner = |name: &str| format!("{name}.{attribute}");
    Ok(match whole {
        FileInput::Parameter { parameter_name, .. } => {
            FileInput::Parameter { arg, parameter_name: inner(parameter_name) }
        }
        FileInput::Buffer { buffer_name, persistent, .. } => {
            FileInput::Buffer { arg, buffer_name: inner(buffer_name), persistent: *persistent }
        }
        FileInput::TensorConstant { tensor_constant_name, .. } => {
            FileInput::TensorConstant { arg, tensor_constant_name: inner(tensor_constant_name) }
        }
        _ => {
            return Err(Error::unsupported(format!("the input {name} is a tensor subclass"))
                .help("let the model take the tensors inside as inputs of their own"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn module(inputs: &[(&str, Value)], nodes: &[Value], output: &str) -> GraphModule {
        let tensor = |n: &str| json!({"as_tensor": {"name": n}});
        let graph = json!({
            "inputs": inputs.iter().map(|i| tensor(i.0)).collect::<Vec<_>>(),
            "outputs": [tensor(output)], "nodes": nodes, "tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {},
        });
        let specs: Vec<&Value> = inputs.iter().map(|i| &i.1).collect();
        let signature = json!({"input_specs": specs, "output_specs": []});
        serde_json::from_value(json!({"graph": graph, "signature": signature, "module_call_graph": []})).unwrap()
    }

    fn parameter(name: &str) -> Value {
        json!({"parameter": {"arg": {"name": name}, "parameter_name": "l.weight"}})
    }

    fn accessed(whole: &str, attribute: &str, result: &str) -> Value {
        let arg = |name: &str, arg: Value| json!({"name": name, "arg": arg});
        json!({
            "target": ACCESS,
            "inputs": [arg("src", json!({"as_tensor": {"name": whole}})), arg("attr", json!({"as_string": attribute}))],
            "outputs": [{"as_tensor": {"name": result}}], "metadata": {},
        })
    }

    #[test]
    fn inner_tensors_become_inputs_of_their_own() {
        let nodes = [
            accessed("p", "qdata", "q"),
            accessed("p", "scale", "s"),
            accessed("q", "low", "l"),
            accessed("p", "scale", "t"),
        ];
        let mut m = module(&[("p", parameter("p"))], &nodes, "t");
        unwrap(&mut m).unwrap();
        let names: Vec<_> = m.graph.inputs.iter().map(|i| i.value_name().unwrap()).collect();
        assert_eq!(names, ["l", "s"]);
        let parameter = |i: usize| match &m.signature.input_specs[i] {
            FileInput::Parameter { arg, parameter_name } => (arg.name.clone(), parameter_name.clone()),
            other => panic!("{other:?}"),
        };
        assert_eq!(parameter(0), ("l".into(), "l.weight.qdata.low".into()));
        assert_eq!(parameter(1), ("s".into(), "l.weight.scale".into()));
        // The second access is another name of the first.
        assert_eq!(m.graph.nodes.len(), 1);
        assert_eq!(m.graph.nodes[0].inputs[0].arg, named("s"));
    }

    #[test]
    fn subclasses_that_stay_whole_are_refused() {
        let nodes = [accessed("p", "qdata", "q")];
        let whole = unwrap(&mut module(&[("p", parameter("p"))], &nodes, "p")).unwrap_err();
        assert!(whole.to_string().contains("%p is a tensor subclass, and the program uses it as a whole"), "{whole}");
        let user = json!({"user_input": {"arg": {"as_tensor": {"name": "p"}}}});
        let passed = unwrap(&mut module(&[("p", user)], &nodes, "q")).unwrap_err();
        assert!(passed.to_string().contains("the input p is a tensor subclass"), "{passed}");
        let unknown = unwrap(&mut module(&[("x", parameter("x"))], &nodes, "q")).unwrap_err();
        assert!(unknown.to_string().contains("which is not an input"), "{unknown}");
    }
}

use super::*;
use crate::dtype::FileDType;

fn argument(text: &str) -> crate::Result<Argument> {
    parse(text.as_bytes())
}

/// A program with a bit of everything, as a writer that omits all it may would write it.
const SPARSE: &str = r#"{"graph_module": {"graph": {
  "inputs": [{"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "y"}}],
  "nodes": [{"target": "torch.ops.aten.clamp.default", "inputs": [
      {"name": "self", "arg": {"as_tensor": {"name": "x"}}}, {"name": "min", "arg": {"as_float": -Infinity}}],
    "outputs": [{"as_tensor": {"name": "y"}}], "metadata": {"stack_trace": "a NaN: b"}, "unknown": [1, {"a": 2}]}],
  "tensor_values": {"x": {"dtype": 7, "sizes": [{"as_expr": {"expr_str": "Symbol('s0')"}}], "requires_grad": false,
     "device": {"type": "cpu"}, "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}},
  "sym_int_values": {}, "sym_bool_values": {}},
  "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
     {"constant_input": {"name": "k", "value": {"as_none": true}}}],
     "output_specs": [{"buffer_mutation": {"arg": {"name": "y"}, "buffer_name": "b"}}]},
  "module_call_graph": [{"fqn": ""}]},
 "opset_version": {"aten": 10}, "range_constraints": {"s0": {"min_val": 2, "max_val": Infinity}},
 "schema_version": {"major": 8, "minor": 2}}"#;

#[test]
fn omitted_fields_get_their_defaults() {
    let p: ExportedProgram = parse(SPARSE.as_bytes()).unwrap();
    let node = &p.graph_module.graph.nodes[0];
    assert_eq!(node.inputs[1].arg, Argument::AsFloat(Float(f64::NEG_INFINITY)));
    assert_eq!(node.inputs[0].kind, None);
    assert_eq!(node.is_hop_single_tensor_return, None);
    assert_eq!(node.metadata["stack_trace"], "a NaN: b");
    assert_eq!(p.torch_version, "<=2.4");
    assert!(p.guards_code.is_empty() && p.verifiers.is_empty());
    let range = &p.range_constraints["s0"];
    assert_eq!((range.min_val, range.max_val), (Some(2), None));
}

#[test]
fn what_is_written_reads_back() {
    let p: ExportedProgram = parse(SPARSE.as_bytes()).unwrap();
    let text = print(&p).unwrap();
    assert_eq!(parse::<ExportedProgram>(&text).unwrap(), p);
    assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok(), "strict JSON");
}

#[test]
fn every_argument_tag_round_trips() {
    let all = [
        r#"{"as_none":true}"#,
        r#"{"as_tensors":[{"name":"a"},{"name":"b"}]}"#,
        r#"{"as_int":9223372036854775807}"#,
        r#"{"as_ints":[]}"#,
        r#"{"as_float":0.1}"#,
        r#"{"as_floats":[1.0,"NaN"]}"#,
        r#"{"as_string":"s"}"#,
        r#"{"as_strings":["s"]}"#,
        r#"{"as_sym_int":{"as_name":"n"}}"#,
        r#"{"as_sym_ints":[{"as_int":-1},{"as_name":"n"}]}"#,
        r#"{"as_scalar_type":13}"#,
        r#"{"as_memory_format":2}"#,
        r#"{"as_layout":7}"#,
        r#"{"as_device":{"type":"cuda","index":1}}"#,
        r#"{"as_bool":false}"#,
        r#"{"as_bools":[true]}"#,
        r#"{"as_sym_bool":{"as_bool":true}}"#,
        r#"{"as_sym_bools":[{"as_name":"b"}]}"#,
        r#"{"as_optional_tensors":[{"as_none":true},{"as_tensor":{"name":"a"}}]}"#,
        r#"{"as_custom_obj":{"name":"o","class_fqn":"c"}}"#,
        r#"{"as_operator":"torch.ops.a.b.default"}"#,
        r#"{"as_sym_float":{"as_float":"Infinity"}}"#,
        r#"{"as_sym_floats":[{"as_name":"f"}]}"#,
        r#"{"as_optional_tensor":{"as_none":true}}"#,
        r#"{"as_complex":{"real":1.0,"imag":"-Infinity"}}"#,
        r#"{"as_nested_tensors":[[{"name":"a"}],[]]}"#,
        r#"{"as_int_lists":[[1,2],[]]}"#,
        r#"{"as_string_to_argument":{"z":{"as_int":1},"a":{"as_none":true}}}"#,
        r#"{"as_float_lists":[[0.5]]}"#,
    ];
    for text in all {
        let a = argument(text).unwrap();
        assert_eq!(String::from_utf8(print(&a).unwrap()).unwrap(), text);
    }
    assert_eq!(
        argument(r#"{"as_scalar_type":13}"#).unwrap(),
        Argument::AsScalarType(ScalarType::Known(FileDType::BF16))
    );
}

#[test]
fn floats_keep_their_bits() {
    for text in ["0.1", "1e-308", "5e-324", "1.7976931348623157e308", "-0.0"] {
        let Argument::AsFloat(Float(v)) = argument(&format!("{{\"as_float\":{text}}}")).unwrap() else { panic!() };
        assert_eq!(v.to_bits(), text.parse::<f64>().unwrap().to_bits());
    }
    assert_eq!(argument(r#"{"as_float": 3}"#).unwrap(), Argument::AsFloat(Float(3.0)));
}

#[test]
fn errors_say_where() {
    let bad = SPARSE.replace("\"as_float\"", "\"as_flaot\"");
    let e = parse::<ExportedProgram>(bad.as_bytes()).unwrap_err();
    assert_eq!(e.places(), ["graph_module.graph.nodes[0].inputs[1].arg"]);
    assert!(e.message().contains("as_flaot"), "{e}");
    let bad = SPARSE.replace("\"dtype\": 7", "\"dtype\": 14");
    let e = parse::<ExportedProgram>(bad.as_bytes()).unwrap_err();
    assert!(e.to_string().contains("tensor_values.x.dtype: 14 is not a known ScalarType"), "{e}");
}

#[test]
fn unions_have_exactly_one_key() {
    assert!(argument("{}").is_err());
    assert!(argument(r#"{"as_int": 1, "as_bool": true}"#).is_err());
    assert!(argument(r#"{"as_int": 1.5}"#).is_err());
    assert!(argument(r#"{"as_int": 9223372036854775808}"#).is_err());
    assert!(argument(r#"{"as_int": 1e400}"#).is_err());
    assert!(argument(r#"{"as_float": "inf"}"#).is_err());
    assert!(argument(r#"{"as_int": 1} x"#).is_err());
    assert!(parse::<RangeConstraint>(br#"{"min_val": "Infinity", "max_val": null}"#).is_err());
    assert!(parse::<RangeConstraint>(br#"{"min_val": null, "max_val": "Infinity"}"#).is_ok());
}

#[test]
fn nesting_is_bounded() {
    let deep = "{\"as_string_to_argument\":{\"a\":".repeat(100_000);
    assert!(argument(&deep).is_err());
}

#[test]
fn truncation_never_panics() {
    for n in 0..SPARSE.len() {
        assert!(parse::<ExportedProgram>(&SPARSE.as_bytes()[..n]).is_err());
    }
}

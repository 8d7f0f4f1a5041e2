use super::*;
use crate::NodeId;
use crate::test_ops::lookup;
use crate::text::parse;

fn read(text: &str) -> Program {
    parse(text, &lookup).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn graph_of(body: &str) -> String {
    format!("symbol s0 in [2, 9]\ngraph(%x: f32[2, 3], %p: bool[], %d: f32[s0]) {{\n{body}\n}}")
}

fn check(text: &str) -> String {
    match verify(&read(text)) {
        Ok(()) => "ok".into(),
        Err(e) => e.to_string(),
    }
}

fn ok(text: &str) {
    assert_eq!(check(text), "ok", "{text}");
}

fn wrong(text: &str, want: &str) {
    let got = check(text);
    assert!(got.contains(want), "{text}\n  got {got}");
}

#[test]
fn arguments_fit_their_schemas() {
    let node = |call: &str| graph_of(&format!("  {call}\n  return %x"));
    ok(&node("%r: f32[2, 3] = aten.add.Tensor(%x, %x)"));
    ok(&node("%r: f32[2, 3] = aten.add.Tensor(%x, 2.5, alpha=2)"));
    ok(&node("%r: f32[s0] = aten.relu.default(%d)"));
    ok(&node("%r: f32[1] = aten.index.Tensor(%x, [None, %p])"));
    wrong(
        &node("%r: f32[2, 3] = aten.relu.default(\"a\")"),
        "argument `self` is not a tensor (at %r = aten.relu.default)",
    );
    wrong(&node("%r: f32[2, 3] = aten.relu.default([%x])"), "`self` is not a tensor");
    wrong(&node("%r: f32[2, 3] = aten.cat.default(%x)"), "`tensors` is not a list of tensors");
    wrong(&node("%r: f32[2, 3] = aten.cat.default([%x, None])"), "`tensors` is not a list of tensors");
    wrong(&node("%r: f32[2, 3] = aten.cat.default([%x], 1.5)"), "`dim` is not an integer");
    wrong(&node("%r: f32[2, 3] = aten.cat.default([%x], None)"), "`dim` is not given");
    wrong(&node("%r: f32[2, 3] = aten.fill.Scalar(%x, %x)"), "`value` is not a number");
    wrong(&node("%r: f32[2] = aten.zeros.default([2.0])"), "`size` is not a list of integers");
    wrong(
        &node("%r: f32[2] = aten.zeros.default([2], device=2)".replace("device=2", "dtype=2").as_str()),
        "`dtype` is not an element type",
    );
    wrong(&node("%r: f32[2] = aten.einsum.default(2, [%x])"), "`equation` is not a string");
    wrong(&node("%r: f32[2] = aten.max.dim(%x, 0)"), "expected 2 results, got 1");
    wrong(
        &node("aten._assert_scalar.default(1, \"m\")\n  aten._assert_scalar.default(%x, \"m\")"),
        "`self` is not a number",
    );
}

#[test]
fn types_are_what_the_rules_give() {
    let node = |call: &str| graph_of(&format!("  {call}\n  return %x"));
    ok(&node("%r: f32[3, 2][1, 3] = aten.t.default(%x)"));
    ok(&node("%r: f32[2, 1][3, 1]+2 = aten.slice.Tensor(%x, 1, 2, 3)"));
    wrong(&node("%r: f32[3, 2] = aten.t.default(%x)"), "%r is f32[3, 2], its rule gives f32[3, 2][1, 3]");
    wrong(&node("%r: f32[2, 3] = aten.any.default(%x)"), "%r is f32[2, 3], its rule gives bool[]");
    wrong(&node("%r: f32[2, 4] = aten.relu.default(%x)"), "its rule gives f32[2, 3]");
    wrong(&node("%r: f32[2, 3] = aten.slice.Tensor(%x, 7)"), "out of range");
    // A functional program's strides are eager's, which the rule need not know.
    ok(&format!("stage: functional\n{}", node("%r: f32[3, 2] = aten.t.default(%x)")));
    wrong(&format!("stage: functional\n{}", node("%r: f32[2, 3] = aten.t.default(%x)")), "its rule gives");
    // After `t_` the first name's type is out of date.
    ok(&node("%t: f32[3, 2][1, 3] = aten.t_.default(%x)\n  %r: f32[3, 2] = aten.relu.default(%x)"));
    assert!(verify_form(&read(&node("%r: f32[2, 4] = aten.relu.default(%x)"))).is_ok());
}

#[test]
fn functional_programs_do_not_write() {
    let body = graph_of("  %r: f32[2, 3] = aten.relu_.default(%x)\n  return %x");
    ok(&body);
    wrong(
        &format!("stage: functional\n{body}"),
        "an operator writes memory in a functional program (at %r = aten.relu_.default)",
    );
    let hop = format!(
        "stage: functional\n{}\ngraph @f(%a: f32[2, 3]) {{\n  %r: f32[2, 3] = aten.relu_.default(%a)\n  return %r\n}}",
        graph_of("  %r: f32[2, 3] = higher_order.cond(%p, @f, @f, [%x])\n  return %r")
    );
    wrong(&hop, "an operator writes memory");
    let quiet = |training: &str| {
        format!(
            "stage: functional\n{}",
            graph_of(&format!("  %r: f32[] = aten.norm.default(%x, %x, None, {training})\n  return %r"))
        )
    };
    ok(&quiet("False"));
    wrong(&quiet("True"), "an operator writes memory");
}

#[test]
fn bodies_fit_their_calls() {
    let hop = |call: &str| {
        format!(
            "{}\ngraph @f(%a: f32[2, 3]) {{\n  return %a\n}}\ngraph @c(%a: f32[2, 3]) {{\n  return True\n}}",
            graph_of(&format!("  {call}\n  return %x"))
        )
    };
    ok(&hop("%r: f32[2, 3] = higher_order.cond(%p, @f, @f, [%x])"));
    ok(&hop("%r: f32[2, 3] = higher_order.while_loop(@c, @f, [%x], [])"));
    wrong(&hop("%r: f32[2, 3] = higher_order.cond(%p, @f, @f, [%x, %x])"), "a body expects 1 inputs, got 2");
    wrong(
        &hop("%r: f32[2, 3], %s: f32[] = higher_order.cond(%p, @f, @f, [%x])"),
        "a body returns 1 values, expected 2",
    );
    wrong(&hop("%r: f32[2, 3] = higher_order.cond(%p, @f, 3, [%x])"), "is not a graph");
}

#[test]
fn definitions_come_before_uses() {
    let text =
        graph_of("  %a: f32[2, 3] = aten.relu.default(%x)\n  %b: f32[2, 3] = aten.relu.default(%a)\n  return %b");
    ok(&text);
    let change = |f: &dyn Fn(&mut Program)| {
        let mut p = read(&text);
        f(&mut p);
        verify(&p).unwrap_err().to_string()
    };
    let got = change(&|p| p.graph_mut().order.swap(0, 1));
    assert!(got.contains("%a is used before it is defined (at %b = aten.relu.default)"), "{got}");
    let got = change(&|p| p.graph_mut().order.push(NodeId::new(0)));
    assert!(got.contains("twice in the order"), "{got}");
    let got = change(&|p| p.graph_mut().order.push(NodeId::new(7)));
    assert!(got.contains("undefined node number 7"), "{got}");
    let got = change(&|p| p.graph_mut().nodes[NodeId::new(1)].args[0] = Arg::Value(ValueId::new(99)));
    assert!(got.contains("undefined value number 99"), "{got}");
    let got = change(&|p| p.graph_mut().nodes[NodeId::new(1)].results[0] = ValueId::new(99));
    assert!(got.contains("undefined value number 99"), "{got}");
    let got = change(&|p| p.graph_mut().values[ValueId::new(4)].name = "x".into());
    assert!(got.contains("the name \"x\" is empty or names two values"), "{got}");
    let got = change(&|p| p.graph_mut().nodes[NodeId::new(1)].results[0] = ValueId::new(3));
    assert!(got.contains("%a is defined twice"), "{got}");
    let got = change(&|p| p.graph_mut().outputs = vec![Arg::Value(ValueId::new(50))]);
    assert!(got.contains("undefined value number 50"), "{got}");
    let got = change(&|p| p.graph_mut().nodes[NodeId::new(1)].args[0] = Arg::Graph(GraphId::new(5)));
    assert!(got.contains("undefined subgraph number 5"), "{got}");
    let got = change(&|p| p.signature.inputs.pop().map(|_| ()).unwrap_or(()));
    assert!(got.contains("the signature has 2 inputs"), "{got}");
    let got = change(&|p| p.signature.inputs.swap(0, 1));
    assert!(got.contains("input 0 of the signature"), "{got}");
    let got = change(&|p| p.symbols.clear());
    assert!(got.contains("symbol s0 is not declared"), "{got}");
}

#[test]
fn signatures_fit_their_graphs() {
    let program = |header: &str| {
        format!(
            "stage: functional\n{header}\ngraph(%x: f32[3], %y: f32[2], %s: f32[8], %n: None) {{\n  %r: f32[3] = aten.relu.default(%x)\n  %b: f32[8] = aten.relu.default(%s)\n  return %r, %b, None\n}}"
        )
    };
    ok(&program(
        "input %s: storage of %x, %y\noutput 0: mutation of %x\noutput 1: base\noutput 2: metadata of %x as view f32[2, 2] of input %s",
    ));
    ok(&program("output 1: base\noutput 0: user as view f32[3][2]+3 of base 1"));
    wrong(
        &program("output 1: base\noutput 0: user as view f32[3][2]+4 of base 1"),
        "output 0: the view exceeds its base",
    );
    wrong(
        &program("output 1: base\noutput 0: user as view f32[4] of base 1"),
        "differs in type from its declared view",
    );
    wrong(
        &program("output 1: base\noutput 0: user as view f64[3] of base 1"),
        "differs in type from its declared view",
    );
    wrong(&program("output 0: user as view f32[3] of base 1"), "its base is missing");
    wrong(&program("output 0: mutation of %y"), "f32[3] is not of the type of its input, f32[2]");
    wrong(&program("output 0: mutation of %n"), "must be tensors");
    wrong(&program("output 2: base"), "must be a tensor");
    wrong(&program("output 2: metadata of %x"), "with a declared alias");
    wrong(&program("input %s: storage of %n"), "of an input that is not a tensor");
    wrong(&program("input %s: storage of %s"), "of an input that is not a tensor");
    wrong(&program("input %n: parameter \"n\""), "a weight, but not a tensor");
    wrong(&program("weight \"w\": f32[4] storage 0\ninput %x: parameter \"w\""), "not of the type of its input");
    wrong(&program("output 1: base").replace("stage: functional", "stage: imported"), "functional programs only");
}

#[test]
fn layouts_can_be_addressed() {
    let with = |ty: &str| format!("graph(%x: {ty}) {{\n  return %x\n}}");
    ok(&with("f32[2, 0][9, 9]"));
    wrong(&with("f32[-1]"), "%x: a size, stride or offset is negative");
    wrong(&with("f32[2][-1]"), "negative");
    wrong(&with("f32[4294967296, 4294967296][0, 0]"), "exceeds all memory");
    wrong(&with("f32[3][9223372036854775807]"), "exceeds all memory");
    wrong(&with("f32[1]+4611686018427387904"), "exceeds all memory");
}

#[test]
fn names_of_subgraphs_are_unique() {
    let mut p = read(&format!(
        "{}\ngraph @f(%a: f32[2, 3]) {{\n  return %a\n}}\ngraph @g(%a: f32[2, 3]) {{\n  return %a\n}}",
        graph_of("  %r: f32[2, 3] = higher_order.cond(%p, @f, @g, [%x])\n  return %r")
    ));
    assert!(verify(&p).is_ok());
    p.graphs[GraphId::new(2)].name = "f".into();
    assert!(verify(&p).unwrap_err().to_string().contains("the name \"f\" names two subgraphs"));
    p.graphs[GraphId::new(2)].name = "graph1".into();
    p.graphs[GraphId::new(1)].name = "".into();
    assert!(verify(&p).is_err());
}

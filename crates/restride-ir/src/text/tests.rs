use super::canonical::compact;
use super::*;
use crate::Graph;
use crate::test_ops::lookup;
use crate::{
    AliasRoot, Arg, Error, Expr, InputKind, Layout, MemoryFormat, Origin, OutputKind, Stage, Table, Type, Weights,
};
use std::sync::Arc;

fn read(text: &str) -> Program {
    parse(text, &lookup).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn error(text: &str) -> String {
    let e: Error = parse(text, &lookup).map(|p| print(&p)).unwrap_err();
    e.to_string()
}

/// The text is what its program prints, and the program what the text gives.
fn round_trip(text: &str) -> Program {
    let program = read(text);
    assert_eq!(print(&program), text);
    // Compared as shown: a complex NaN does not equal itself, and symbols compare by name alone.
    assert!(format!("{:?}", compact(&program)) == format!("{program:?}"), "compact changes\n{text}");
    program
}

#[test]
fn plain_graphs_are_programs() {
    let p = round_trip(
        "graph(%x: f32[2, 3], %w: f32[3]) {
  %add: f32[2, 3] = aten.add.Tensor(%x, %w)
  %t: f32[3, 2][1, 3] = aten.t.default(%add)
  %relu_: f32[3, 2][1, 3] = aten.relu_.default(%t)
  return %add
}
",
    );
    assert_eq!(p.stage, Stage::Imported);
    assert_eq!(p.signature.inputs[1].kind, InputKind::User("w".into()));
    assert_eq!(p.graph().nodes[crate::NodeId::new(0)].args[2], Arg::Scalar(Expr::Int(1)));
    let p = round_trip("graph(%x: f32[]) {\n  %r: f32[] = aten.relu.default(%x)\n  return %r\n}\n");
    assert_eq!(p.stage, Stage::Functional);
}

#[test]
fn arguments_of_all_kinds() {
    let p = round_trip(
        "graph(%x: f32[2, 3], %\"a b\": i64[2]) {
  %v: f32[2], %i: i64[2] = aten.max.dim(%x, -1, True)
  %c: f32[4, 3] = aten.cat.default([%x, %x])
  %e: f32[0] = aten.cat.default([], -1)
  %g: f32[2, 2] = aten.index.Tensor(%x, [None, %\"a b\"])
  %z: bf16[2] = aten.zeros.default([2], dtype=bf16, layout=strided, device=cuda:1)
  %z2: bf16[2] = aten.zeros.default([2], device=device(\"a b\"), pin_memory=False)
  %k: f32[1] = aten.conv2d.default(%x, %x, None, [1, 1], [1, 2])
  %k1: f32[1] = aten.conv2d.default(%x, %x)
  %s: f32[2, 1] = aten.slice.Tensor(%x, 1, 0, 9223372036854775807, 3)
  %f: c64[2, 3] = aten.fill.Scalar(%x, (1.0-2.5j))
  %f1: f32[2, 3] = aten.fill.Scalar(%x, -1e-5)
  %f2: f32[2, 3] = aten.fill.Scalar(%x, -inf)
  %f3: f32[2, 3] = aten.fill.Scalar(%x, NaN)
  %f4: f32[2, 3] = aten.fill.Scalar(%x, -0.0)
  %f5: f32[2, 3] = aten.fill.Scalar(%x, (NaN+infj))
  %f6: f32[2, 3] = aten.fill.Scalar(%x, -9223372036854775808)
  %n: f32[] = aten.sum.dim_IntList(%x, None, dtype=f64)
  %y: f32[2, 3] = aten.clone.default(%x, memory_format=channels_last)
  %q: f32[2, 2] = aten.einsum.default(\"ij,kj->ik \\\"\\n\", [%x, %x], path=[0, 1])
  test.names.default([\"a\", \"b\"], torch.float32)
  test.names.default([], torch.channels_last_3d)
  test.names.default([], torch.strided)
  test.names.default([], &aten.add.Tensor)
  test.names.default([], [True, False])
  %r: f32[3] = aten.rand.default([3]) !key 17
  %p: f32[2, 3] = aten.relu.default(%x) !no_grad
  return %v, None, 3, [%x, None], \"s\", 2.5
}
",
    );
    let nodes = &p.graph().nodes;
    let find = |name: &str| nodes.iter().find(|(_, n)| n.op.name() == name).unwrap().1;
    assert_eq!(find("aten.rand.default").origin.key, 17);
    assert_eq!(find("aten.clone.default").args[1], Arg::MemoryFormat(MemoryFormat::ChannelsLast));
    let last = nodes.iter().last().unwrap().1;
    assert!(last.origin.no_grad);
    let nan = nodes.iter().find_map(|(_, n)| {
        n.args.iter().find_map(|a| {
            if let Arg::Complex(re, im) = a
                && re.is_nan()
            {
                Some(*im)
            } else {
                None
            }
        })
    });
    assert_eq!(nan, Some(f64::INFINITY));
}

#[test]
fn headers_say_what_inputs_and_outputs_are() {
    let p = round_trip(
        "program \"a \\\"b\\\"\"
stage: functional
note \"moved from cuda:0\"
symbol s0 in [2, 64]
symbol u1
symbol zuf0 in [-inf, 3]
range s0*s0 + 3 in [-5, inf]
guard Eq(Mod(s0, 2), 0) \"(L['x'].size()[0] % 2) == 0\"
pytree \"[1, {}]\" \"[1]\"
weight \"bn.m\": f32[3] storage 1
weight \"fc.w\": f32[2, 3][1, 2]+4 storage 0 parameter requires_grad
input %w: parameter \"fc.w\"
input %m: buffer \"bn.m\" non_persistent
input %c: constant \"c\"
input %k: fixed \"k\" = 3
input %n: fixed \"n\" = None
input %y: user \"not y\"
input %st: storage of %x, %y
input %tok: opaque \"tok\"
output 0: mutation of %m
output 1: user as view f32[3][1]+2 of input %x
output 2: base
output 3: user as view f32[s0, 3][1, s0] of base 2
output 4: loss
output 5: gradient of %w
output 6: metadata of %x as view f32[3] of input %x

graph(
  %w: f32[2, 3][1, 2]+4,
  %m: f32[3],
  %c: i64[],
  %k: Sym(3),
  %n: None,
  %x: f32[3],
  %y: f32[s0],
  %st: f32[8],
  %tok: opaque,
  %str: str,
) {
  %t: f32[s0, 3][1, s0]+s0 + 1 = aten.t.default(%y)
  %u: Sym(u1) = aten.item.default(%c)
  return %m, %x, %y, %t, %c, %w, None
}
"
        .replace("3][1]+2", "3]+2")
        .as_str(),
    );
    assert_eq!(p.signature.outputs[1].alias.as_ref().unwrap().root, AliasRoot::Input(5));
    assert_eq!(p.signature.outputs[6].kind, OutputKind::Metadata(5));
    assert_eq!(p.signature.inputs[7].kind, InputKind::Storage(vec![5, 6]));
    assert_eq!(crate::Symbol::max(&p.symbols["s0"]), Some(64));
    assert_eq!(p.graph().values[p.graph().inputs[3]].ty, Type::Scalar(Expr::Int(3)));
}

#[test]
fn subgraphs_are_found_by_name_in_any_order() {
    let text = "graph(%p: bool[], %x: f32[2]) {
  %r: f32[2] = higher_order.cond(%p, @yes, @\"no 1\", [%x])
  return %r
}

graph @yes(%a: f32[2]) {
  %r: f32[2] = higher_order.map_impl(@deep, [%a], [])
  return %r
}

graph @\"no 1\"(%a: f32[2]) {
  return %a
}

graph @deep(%a: f32[]) {
  return %a
}
";
    let p = round_trip(text);
    assert_eq!(p.graphs.len(), 4);
    // The same with subgraphs first and without names.
    let (main, rest) = text.split_at(text.find("graph @yes").unwrap());
    let turned = format!("{rest}{main}").replace("@yes", "@graph1");
    let q = read(&turned);
    assert_eq!(print(&q), text.replace("@yes", "@graph1"));
    assert_eq!(q.graphs.iter().filter(|(_, g)| g.name.is_empty()).count(), 2);
    assert!(
        error("graph(%x: f32[2]) {\n  %r: f32[2] = higher_order.map_impl(@f, [%x], [])\n  return %r\n}")
            .contains("unknown graph @f")
    );
}

#[test]
fn what_is_left_over_is_not_printed() {
    let mut p = read(
        "graph(%x: f32[2]) {\n  %a: f32[2] = aten.relu.default(%x)\n  %b: f32[2] = aten.relu.default(%x)\n  return %b\n}\n",
    );
    let dead = p.graphs.push(Graph::new());
    assert_ne!(dead, p.main);
    p.graph_mut().order.remove(0);
    let text = print(&p);
    assert!(!text.contains("%a"));
    assert_ne!(compact(&p), p);
    let strip = |mut p: Program| {
        let ids: Vec<_> = p.graph().order.clone();
        ids.into_iter().for_each(|n| p.graph_mut().nodes[n].origin = Arc::default());
        p
    };
    assert_eq!(strip(compact(&p)), strip(read(&text)));
}

#[test]
fn strides_are_shown_to_the_letter() {
    // Row-major for PyTorch, yet not the strides that a fresh tensor has.
    round_trip("graph(%x: f32[1, 3][7, 1], %e: f32[0, 2][5, 9]) {\n  return %x\n}\n");
    let p = read("graph(%x: f32[4, 1, 3][3, 3, 1], %z: f32[2, 0][1, 1]) {\n  return %x\n}\n");
    assert_eq!(print(&p), "graph(%x: f32[4, 1, 3], %z: f32[2, 0]) {\n  return %x\n}\n");
}

#[test]
fn sums_of_floats_keep_their_order() {
    let text = |e: &str| {
        format!(
            "symbol za\nsymbol zb\n\ngraph(%x: f32[2]) {{\n  %f: f32[2] = aten.fill.Scalar(%x, {e})\n  return %f\n}}\n"
        )
    };
    for e in ["za + (zb + 1.5)", "za + zb + 1.5", "(za*zb)*2.0", "za*(zb + 1.0)", "Max(1.0, za)", "Pow(za, 0.5)"] {
        round_trip(&text(e));
    }
    assert_eq!(print(&read(&text("za - -zb"))), text("za + -1*(-1*zb)"));
}

#[test]
fn integer_expressions_come_out_normal() {
    let text = |e: &str| format!("symbol s0 in [2, inf]\nsymbol s1\n\ngraph(%x: f32[{e}]) {{\n  return %x\n}}\n");
    let shown = |e: &str| {
        let out = print(&read(&text(e)));
        round_trip(&out);
        out[out.find("f32[").unwrap() + 4..out.find("])").unwrap()].to_string()
    };
    assert_eq!(shown("(s0 + 1)*(s0 - 1)"), "s0*s0 + -1");
    assert_eq!(shown("FloorDiv(s0*2 + 1, 2)"), "s0");
    assert_eq!(shown("FloorDiv(s1, 2)*2 - s0"), "-1*s0 + 2*FloorDiv(s1, 2)");
    assert_eq!(shown("Max(s1, 7, s0)"), "Max(7, s0, s1)");
    assert!(error(&text("2.5")).contains("whole numbers"));
    assert!(error(&text("Mod(s0)")).contains("Mod takes 2 arguments, 1 given"));
    assert!(error(&text("s9")).contains("no declared symbol"));
    assert!(error(&text("99999999999999999999")).contains("64 bits"));
}

#[test]
fn errors_name_line_and_column() {
    let wrap = |s: &str| format!("graph(%x: f32[2]) {{\n  {s}\n  return %x\n}}\n");
    let cases = [
        (
            "%r: f32[2] = aten.nothing(%x)",
            "line 2, column 16: unknown operator `aten.nothing`, in `%r: f32[2] = aten.nothing(%x)`",
        ),
        ("%r: f32[2] = aten.relu.default(%y)", "%y is not defined before this"),
        ("%x: f32[2] = aten.relu.default(%x)", "%x is defined twice"),
        ("%r: f32[2 = aten.relu.default(%x)", "expected `]`, found `=`"),
        ("%r: q8[2] = aten.relu.default(%x)", "expected a type"),
        ("%r: f32[2][1, 2] = aten.relu.default(%x)", "2 strides for 1 sizes"),
        ("%r: f32[2] = aten.relu.default()", "needs argument `self`"),
        ("%r: f32[2] = aten.relu.default(%x, %x)", "takes only 1 arguments"),
        ("%r: f32[2] = aten.add.Tensor(%x, %x, 2)", "`alpha` is given by name"),
        ("%r: f32[2] = aten.add.Tensor(%x, other=%x, other=%x)", "`other` is given twice"),
        ("%r: f32[2] = aten.add.Tensor(self=%x, %x)", "without a name stand before"),
        ("%r: f32[2] = aten.add.Tensor(%x, %x, beta=2)", "has no argument `beta`"),
        ("%r: f32[2] = aten.cat.default([%x, 1])", "not several of them"),
        ("%r: f32[2] = aten.cat.default([%x) # c", "expected `]`, found `)`"),
        ("%r: f32[2] = aten.relu.default(%x) !what", "expected `no_grad`, `parts`, `overwritten` or `key`"),
    ];
    for (line, want) in cases {
        let got = error(&wrap(line));
        assert!(got.contains(want), "{line}\n  got {got}");
    }
    assert!(error("").contains("expected `graph(…) { … }`"));
    assert!(error("graph(").contains("found the end of the text"));
    assert!(error("hello").contains("found `hello`"));
    assert!(error("graph() {\n return }\ngraph() {\n return\n}").contains("defined twice"));
    assert!(error("input %y: user \"y\"\ngraph() {\n return\n}").contains("no input %y"));
    assert!(error("output 1: base\ngraph() {\n return\n}").contains("only 0 outputs"));
    assert!(error("symbol inf\ngraph() {\n return\n}").contains("name of a symbol"));
}

#[test]
fn nesting_and_length_do_not_exhaust_the_stack() {
    let deep = "(".repeat(200_000);
    let text = format!("graph(%x: f32[2]) {{\n  %f: f32[2] = aten.fill.Scalar(%x, {deep}");
    assert!(error(&text).contains("nested too deeply"));
    assert!(error(&format!("graph(%x: f32[{}", "Min(".repeat(200_000))).contains("nested too deeply"));
    assert!(error(&format!("graph(%x: f32[{}", "-".repeat(200_000))).contains("expected a number"));
    assert!(error(&format!("graph() {{ return {}", "[".repeat(200_000))).contains("expected a number"));
    let sum = vec!["s0"; 20_000].join(" + ");
    assert!(print(&read(&format!("symbol s0\ngraph(%x: f32[{sum}]) {{\n return\n}}"))).contains("20000*s0"));
    let nodes: String = (0..20_000)
        .map(|i| {
            format!(
                "  %r{i}: f32[2] = aten.relu.default(%{})\n",
                if i > 0 { format!("r{}", i - 1) } else { "x".into() }
            )
        })
        .collect();
    round_trip(&format!("graph(%x: f32[2]) {{\n{nodes}  return %r19999\n}}\n"));
}

#[test]
fn any_damage_is_an_error_or_another_program() {
    let text = "symbol s0 in [2, 9]\ninput %x: buffer \"b\"\ngraph(%x: f32[s0, 3][1, s0]) {\n  %f: c64[2] = aten.fill.Scalar(%x, (1.0-2.5j))\n  %k: f32[1] = aten.conv2d.default(%x, %f, None, [1, 1], padding=[1, 2])\n  return %k, \"é\"\n}\n";
    let junk = ["", "(", "]", "\"", "%", "@", ",", "é", "9", "-", "e", "\\", "\n", "graph", "1e", "#"];
    for (at, _) in text.char_indices() {
        for j in junk {
            let mut damaged = text.to_string();
            damaged.insert_str(at, j);
            let _ = parse(&damaged, &lookup);
        }
        let _ = parse(&text[..at], &lookup);
        let _ = parse(&text[at..], &lookup);
    }
}

#[test]
fn sources_are_comments() {
    let text = "graph(%x: f32[2]) {\n  %r: f32[2] = aten.relu.default(%x)\n  return %r\n}\n";
    let mut p = read(text);
    let trace: Arc<str> = "Traceback:\n  File \"/a/b/model.py\", line 12, in forward\n    relu(x)\n".into();
    let node = p.graph().order[0];
    p.graph_mut().nodes[node].origin = Arc::new(Origin { stack_trace: Some(trace), ..Origin::default() });
    let shown = print_with(&p, &PrintOptions { sources: true });
    assert!(shown.contains("aten.relu.default(%x)  # model.py:12\n"), "{shown}");
    assert_eq!(print(&read(&shown)), text);
    assert_eq!(print_node(&p, p.graph(), node), "%r = aten.relu.default(%x)");
    assert_eq!(p.graph().nodes[node].origin.source_text(), Some("relu(x)"));
}

#[test]
fn weights_must_be_those_declared() {
    let text = "weight \"a\": f32[2] storage 0\nweight \"b\": f32[2] storage 0\ninput %a: parameter \"a\"\ngraph(%a: f32[2]) {\n  return %a\n}\n";
    let mut p = read(text);
    let mut w = Weights::clone(&p.weights);
    w.storages = vec![restride_tensor::Bytes::copy_of(&[0; 8])];
    attach_weights(&mut p, Arc::new(w.clone())).unwrap();
    assert_eq!(p.weights.storages.len(), 1);
    let mut p = read(text);
    w.tensors.get_mut("b").unwrap().storage = 1;
    assert!(attach_weights(&mut p, Arc::new(w.clone())).unwrap_err().to_string().contains("shares memory"));
    w.tensors.get_mut("b").unwrap().storage = 0;
    w.tensors.get_mut("a").unwrap().layout = Layout::contiguous(&[3]);
    assert!(attach_weights(&mut p, Arc::new(w.clone())).unwrap_err().to_string().contains("another type"));
    w.tensors.remove("a");
    assert!(attach_weights(&mut p, Arc::new(w)).unwrap_err().to_string().contains("not among them"));
}

#[test]
fn placements_show_where_everything_lies() {
    use crate::{Buffer, BufferKind, IdArena, Place, Placement, Plan, Step};
    let p = read(
        "graph(%x: f32[2, 3]) {\n  %a: f32[2, 3] = aten.relu.default(%x)\n  %t: f32[3, 2][1, 3] = aten.t.default(%a)\n  return %t\n}\n",
    );
    let g = p.graph();
    let mut buffers = IdArena::new();
    let b0 = buffers.push(Buffer { kind: BufferKind::Input(0), bytes: 24 });
    let b1 = buffers.push(Buffer { kind: BufferKind::Arena, bytes: 24 });
    let b2 = buffers.push(Buffer { kind: BufferKind::Output(0), bytes: 28 });
    let at = |buffer, strides: &[i64], sizes: &[i64], offset| Place {
        buffer,
        layout: Layout::strided(sizes, strides, offset),
    };
    let (x, a, t) = (g.inputs[0], g.nodes[g.order[0]].results[0], g.nodes[g.order[1]].results[0]);
    let mut places = Table::new();
    let (px, pa, pt) = (at(b0, &[3, 1], &[2, 3], 0), at(b1, &[3, 1], &[2, 3], 0), at(b1, &[1, 3], &[3, 2], 0));
    places.set(x, Some(px.clone()));
    places.set(a, Some(pa.clone()));
    places.set(t, Some(pt.clone()));
    let steps = vec![
        Step::Run { node: g.order[0], reads: vec![Some(px)], writes: vec![Some(pa)] },
        Step::Free { node: g.order[1] },
        Step::Move { value: t, from: pt.into(), to: at(b2, &[2, 1], &[3, 2], 1).into() },
    ];
    let placement = Placement { buffers, places, steps, ..Placement::default() };
    let mut plan = Plan { arena_bytes: 64, lower_bound_bytes: 24, at_least_bytes: 24, ..Plan::default() };
    plan.offsets.set(b1, Some(0));
    let want = "stage: placed
arena 64 bytes, at least 24 needed
buffer buf0: input %x, 24 bytes
buffer buf1: arena, 24 bytes at 0
buffer buf2: output 0, 28 bytes

graph(%x: f32[2, 3] @ buf0[2, 3]) {
  %a @ buf1[2, 3] = aten.relu.default(%x @ buf0[2, 3])
  free %t @ buf1[3, 2][1, 3] = aten.t.default(%a @ buf1[2, 3])
  move %t: buf1[3, 2][1, 3] -> buf2[3, 2]+1
  return %t @ buf1[3, 2][1, 3]
}
";
    assert_eq!(print_placed(&p, &placement, Some(&plan), &PrintOptions::default()), want);
}

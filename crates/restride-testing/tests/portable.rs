//! Portable programs mean what they did, and say it in the operators that they promise.

use restride_exec::interp::Options;
use restride_exec::{Inputs, RunValue};
use restride_ir::text::{parse, print};
use restride_ir::{Arg, Program, Type, verify};
use restride_passes::functionalize::Options as FunctionalizeOptions;
use restride_passes::{functionalize, portable};
use restride_tensor::{DType, Tensor};
use restride_testing::{Left, difference};

fn functional(text: &str) -> Program {
    let program = parse(text, &restride_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&program).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    functionalize(&program, &FunctionalizeOptions::default()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Floats count from 1, numbers go 1, -1, 0, 1, -1, …: indices that also count from the end.
fn inputs(program: &Program) -> Inputs {
    let graph = program.graph();
    let values = program.signature.inputs.iter().map(|spec| {
        let Type::Tensor(ty) = &graph.values[spec.value].ty else { panic!("a tensor") };
        let sizes: Vec<i64> = ty.layout.sizes.iter().map(|n| n.constant().map_or(5, |n| n.as_i64())).collect();
        let numel = sizes.iter().product::<i64>();
        RunValue::Tensor(match ty.dtype {
            DType::I64 => {
                Tensor::from_slice(&(0..numel).map(|i| [1, -1, 0][i as usize % 3]).collect::<Vec<i64>>(), &sizes)
            }
            _ => Tensor::from_slice(&(1..=numel).map(|i| i as f32).collect::<Vec<f32>>(), &sizes),
        })
    });
    Inputs::new(values)
}

/// The portable program, held against what it was made of.
fn checked(text: &str) -> Program {
    let before = functional(text);
    let after = portable(&before).unwrap();
    let shown = print(&after);
    verify(&after).unwrap_or_else(|e| panic!("{e:?}\n{shown}"));
    let given = inputs(&before);
    let run = |p: &Program| Left::interp(p, &given, &Options::default()).unwrap_or_else(|e| panic!("{e}\n{shown}"));
    assert_eq!(difference(&run(&before), &run(&after)), None, "{shown}");
    after
}

fn count(program: &Program, op: &str) -> usize {
    program.graphs.iter().map(|(_, g)| g.ordered().filter(|(_, n)| n.op.name() == op).count()).sum()
}

#[test]
fn a_selected_index_is_written_as_a_slice() {
    for text in [
        "graph(%x: f32[2, 3, 4], %y: f32[2, 4]) {\n  %s: f32[2, 4][12, 1]+4 = aten.select.int(%x, 1, 1)\n  %w: f32[2, 4][12, 1]+4 = aten.copy_.default(%s, %y)\n  return %x\n}",
        "graph(%x: f32[2, 3, 4], %y: f32[2, 3]) {\n  %w: f32[2, 3, 4] = aten.select_scatter.default(%x, %y, -1, -2)\n  return %w\n}",
        "symbol s0 in [2, 9]\ngraph(%x: f32[s0, 4], %y: f32[4]) {\n  %w: f32[s0, 4] = aten.select_scatter.default(%x, %y, 0, -1)\n  return %w\n}",
        "symbol u0 in [0, 4]\ngraph(%x: f32[5, 4], %y: f32[4], %i: i64[1]) {\n  %n: Sym(u0) = aten.item.default(%i)\n  %w: f32[5, 4] = aten.select_scatter.default(%x, %y, 0, u0)\n  return %w\n}",
    ] {
        let after = checked(text);
        assert_eq!(count(&after, "aten.select_scatter.default"), 0, "{}", print(&after));
        assert_eq!(count(&after, "aten.slice_scatter.default"), 1);
    }
}

#[test]
fn an_index_that_may_count_from_the_end_stays() {
    let after = checked(
        "symbol u0 in [-5, 4]\ngraph(%x: f32[5, 4], %y: f32[4], %i: i64[1]) {\n  %n: Sym(u0) = aten.item.default(%i)\n  %w: f32[5, 4] = aten.select_scatter.default(%x, %y, 0, u0)\n  return %w\n}",
    );
    assert_eq!(count(&after, "aten.select_scatter.default"), 1);
}

#[test]
fn every_dimension_gets_an_index_and_values_their_sizes() {
    let put = |x: &str, values: &str, indices: &str, accumulate: &str| {
        format!(
            "graph(%x: f32[{x}], %v: f32[{values}], %i: i64[2], %j: i64[2], %k: i64[3, 2], %o: i64[1]) {{\n  %w: f32[{x}] = aten.index_put.default(%x, [{indices}], %v, {accumulate})\n  return %w\n}}"
        )
    };
    for text in [
        put("1, 2, 16, 4", "1, 2, 1, 4", "None, None, %o", "False"),
        put("3, 4, 5", "3, 2, 5", "None, %i", "False"),
        put("3, 4, 5", "5", "%i, %o", "True"),
        // Indices apart from each other: what they take comes first.
        put("3, 4, 5", "2, 4", "%o, None, %i", "True"),
        put("3, 4, 5", "3, 2, 4", "%i, None, %k", "True"),
        put("3, 4, 5", "1", "%k", "True"),
        put("3, 4", "3, 2", "%k, %j", "True"),
        put("2, 3, 4, 5", "2, 1, 2, 5", "None, %k, %i", "True"),
        "symbol s0 in [2, 9]\ngraph(%x: f32[s0, 4], %v: f32[2], %i: i64[2]) {\n  %w: f32[s0, 4] = aten.index_put.default(%x, [None, %i], %v, False)\n  return %w\n}".into(),
    ] {
        let after = checked(&text);
        let (_, node) = after.graph().ordered().find(|(_, n)| n.op.name() == "aten.index_put.default").unwrap();
        let (Arg::Value(base), Arg::Values(indices), Arg::Value(values)) = (&node.args[0], &node.args[1], &node.args[2])
        else {
            panic!("{}", print(&after))
        };
        let graph = after.graph();
        assert!(indices.iter().all(Option::is_some), "{}", print(&after));
        assert_eq!(indices.len(), graph.tensor(*base).rank());
        // As many dimensions as the indices broadcast to.
        let most = indices.iter().flatten().map(|v| graph.tensor(*v).rank()).max();
        assert_eq!(Some(graph.tensor(*values).rank()), most, "{}", print(&after));
    }
}

#[test]
fn a_mask_stays_an_index() {
    let after = checked(
        "graph(%x: f32[3, 4], %v: f32[1]) {\n  %m: bool[3, 4] = aten.gt.Scalar(%x, 5)\n  %w: f32[3, 4] = aten.index_put.default(%x, [%m], %v)\n  return %w\n}",
    );
    assert_eq!(count(&after, "aten.arange.default"), 0);
}

/// Written to a file and read again, a number that is learnt from data is held to its range, whoever runs the file.
#[test]
fn files_assert_what_is_known_of_numbers_from_data() {
    let program = functional(
        "symbol u0 in [0, 3]\nsymbol u1 in [1, 9]\ngraph(%x: f32[4], %i: i64[1], %j: i64[1]) {\n  %n: Sym(u0) = aten.item.default(%i)\n  aten._assert_scalar.default(True, \"u0 <= 3\")\n  %unused: Sym(u1) = aten.item.default(%j)\n  %s: f32[][]+u0 = aten.select.int(%x, 0, u0)\n  %w: f32[][]+u0 = aten.fill_.Scalar(%s, 7)\n  return %x\n}",
    );
    let text = print(&program);
    assert_eq!(count(&program, "aten.item.default"), 2, "{text}");
    let model = restride_pt2::export::program_model(&program).unwrap();
    let nodes = &model.graph_module.graph.nodes;
    let targets: Vec<&str> = nodes.iter().map(|n| n.target.as_str()).collect();
    let item = "torch.ops.aten.item.default";
    let at: Vec<usize> = (0..targets.len()).filter(|i| targets[*i] == item).collect();
    assert_eq!(at.len(), 2, "{targets:?}");
    for i in at {
        let wanted = [
            "_operator.ge",
            "torch.ops.aten._assert_scalar.default",
            "_operator.le",
            "torch.ops.aten._assert_scalar.default",
        ];
        assert_eq!(&targets[i + 1..i + 5], &wanted, "{targets:?}");
    }
    assert_eq!(targets.iter().filter(|t| t.contains("_assert_scalar")).count(), 4, "the true one is not written");
}

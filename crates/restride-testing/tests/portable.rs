//! Portable programs keep their meaning, and use only the promised operators.

use restride_exec::interp::RunOptions;
use restride_exec::{Inputs, RunValue};
use restride_ir::text::{parse, print};
use restride_ir::{Arg, Program, Type, verify};
use restride_passes::functionalize::FunctionalizeOptions;
use restride_passes::{functionalize, nested, portable};
use restride_tensor::{DType, RawTensor, Scalar};
use restride_testing::{Leftovers, difference, generate};

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
                RawTensor::from_slice(&(0..numel).map(|i| [1, -1, 0][i as usize % 3]).collect::<Vec<i64>>(), &sizes)
            }
            _ => RawTensor::from_slice(&(1..=numel).map(|i| i as f32).collect::<Vec<f32>>(), &sizes),
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
    let run =
        |p: &Program| Leftovers::interp(p, &given, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}\n{shown}"));
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
        only_core(&after);
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

/// No node but of Core ATen, and `item`.
fn only_core(program: &Program) {
    let others: Vec<_> = program
        .graphs
        .iter()
        .flat_map(|(_, g)| g.ordered().map(|(_, n)| n.op))
        .filter(|op| !restride_ops::is_core(*op) && op.name() != "aten.item.default")
        .collect();
    assert!(others.is_empty(), "{others:?}\n{}", print(program));
}

/// Written into a tensor of sizes [4, 6] through chains of views: in files and in portable form no strides are left.
#[test]
fn regions_are_said_by_indices() {
    let written = |views: &str| {
        format!("graph(%x: f32[4, 6]) {{\n  %y: f32[4, 6] = aten.add.Tensor(%x, 1)\n{views}  return %y\n}}")
    };
    for (views, scatters) in [
        // y[1:3, 0:2] += 1
        (
            "  %a: f32[2, 6][6, 1]+6 = aten.slice.Tensor(%y, 0, 1, 3)\n  %b: f32[2, 2][6, 1]+6 = aten.slice.Tensor(%a, 1, 0, 2)\n  %w: f32[2, 2][6, 1]+6 = aten.add_.Tensor(%b, 1)\n",
            2,
        ),
        // y[2][1:] = 7
        (
            "  %a: f32[6]+12 = aten.select.int(%y, 0, 2)\n  %b: f32[5]+13 = aten.slice.Tensor(%a, 0, 1, 6)\n  %w: f32[5]+13 = aten.fill_.Scalar(%b, 7)\n",
            2,
        ),
        // y.view(8, 3)[1:4, 1] = 7
        (
            "  %a: f32[8, 3] = aten.view.default(%y, [8, 3])\n  %b: f32[3, 3]+3 = aten.slice.Tensor(%a, 0, 1, 4)\n  %c: f32[3][3]+4 = aten.select.int(%b, 1, 1)\n  %w: f32[3][3]+4 = aten.fill_.Scalar(%c, 7)\n",
            2,
        ),
        // y.diagonal(1)[1:3] = 7
        (
            "  %a: f32[4][7]+1 = aten.diagonal.default(%y, 1)\n  %b: f32[2][7]+8 = aten.slice.Tensor(%a, 0, 1, 3)\n  %w: f32[2][7]+8 = aten.fill_.Scalar(%b, 7)\n",
            1,
        ),
    ] {
        let text = written(views);
        let before = functional(&text);
        let said = nested(&before).unwrap();
        assert_eq!(count(&said, "aten.as_strided_scatter.default"), 0, "{}", print(&said));
        let after = checked(&text);
        only_core(&after);
        assert!(count(&after, "aten.slice_scatter.default") >= scatters, "{}", print(&after));
    }
}

/// A region that is no chain of views is written by `index_put`; one that has cells twice stays.
#[test]
fn other_regions_are_indices_or_stay() {
    let strided = |sizes: &str, strides: &str| {
        format!(
            "graph(%x: f32[3, 5], %v: f32[{sizes}]) {{\n  %w: f32[3, 5] = aten.as_strided_scatter.default(%x, %v, [{sizes}], [{strides}], 1)\n  return %w\n}}"
        )
    };
    let after = checked(&strided("2, 2", "7, 2"));
    only_core(&after);
    assert_eq!(count(&after, "aten.index_put.default"), 1, "{}", print(&after));
    let after = checked(&strided("3, 3", "1, 1"));
    assert_eq!(count(&after, "aten.as_strided_scatter.default"), 1, "{}", print(&after));
}

/// Compositions are said by core operators; what has no form stays.
#[test]
fn compositions_are_said_by_core_operators() {
    for body in [
        "%w: f32[2, 3, 5] = aten.linear.default(%x, %m, %b)",
        "%w: f32[2, 3, 5] = aten.matmul.default(%x, %t)",
        "%w: f32[2, 3, 4] = aten.layer_norm.default(%x, [4], %c)",
        "%w: f32[2, 3, 4] = aten.softmax.int(%x, -1)",
        "%w: f32[2, 3, 4] = aten.silu.default(%x)",
        "%w: f32[2, 3, 4] = aten.masked_fill.Scalar(%x, %k, 3)",
        "%w: f32[2, 3, 4] = aten.index_copy.default(%x, 1, %i, %y)",
        "%w: f32[3, 4, 2][4, 1, 12] = aten.movedim.int(%x, 0, -1)",
        "%w: f32[24] = aten.flatten.using_ints(%x)",
        "%w: f32[2, 3, 4] = aten.roll.default(%x, [1, -1], [0, 2])",
        "%w: f32[2, 3] = aten.std.dim(%x, [-1])",
        "%w: f32[2, 2, 3, 4] = aten.stack.default([%x, %x], 1)",
    ] {
        let text = format!(
            "graph(%x: f32[2, 3, 4], %m: f32[5, 4], %b: f32[5], %t: f32[4, 5], %c: f32[4], %p: f32[3, 4], %i: i64[1], %y: f32[2, 1, 4]) {{\n  %k: bool[3, 4] = aten.gt.Scalar(%p, 5)\n  {body}\n  return %w\n}}"
        );
        in_core_operators(&text);
    }
    let after =
        portable(&functional("graph(%x: f32[2, 3]) {\n  %w: f32[2, 3] = aten.lgamma.default(%x)\n  return %w\n}"))
            .unwrap();
    assert_eq!(count(&after, "aten.lgamma.default"), 1);
}

/// Portable with core operators alone, and the same values but for rounding.
fn in_core_operators(text: &str) {
    let before = functional(text);
    let after = portable(&before).unwrap();
    verify(&after).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&after)));
    only_core(&after);
    let given = inputs(&before);
    let run = |p: &Program| {
        Leftovers::interp(p, &given, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}\n{}", print(p)))
    };
    if let Some(d) = close(&run(&before), &run(&after)) {
        panic!("{d}\n{}", print(&after));
    }
}

/// A form of several operators rounds 16-bit floats once, as the operator's own kernel does.
#[test]
fn forms_of_16_bit_floats_round_once() {
    for d in ["bf16", "f16"] {
        for call in [
            "silu.default(%h)",
            "hardswish.default(%h)",
            "hardsigmoid.default(%h)",
            "softplus.default(%h)",
            "mish.default(%h)",
            "addcmul.default(%h, %h, %h, value=0.3)",
            "addcdiv.default(%h, %h, %h, value=0.3)",
            "std.dim(%h, [-1])",
            "linalg_vector_norm.default(%h, 2, [-1])",
            "linalg_vector_norm.default(%h, 3, [-1])",
            "linalg_vector_norm.default(%h, 0, [-1])",
        ] {
            let sizes = if call.contains("[-1]") { "2, 3" } else { "2, 3, 4" };
            in_core_operators(&format!(
                "graph(%x: f32[2, 3, 4]) {{\n  %s: f32[2, 3, 4] = aten.mul.Scalar(%x, 0.173)\n  %h: {d}[2, 3, 4] = aten._to_copy.default(%s, dtype={d})\n  %w: {d}[{sizes}] = aten.{call}\n  return %w\n}}"
            ));
        }
    }
}

/// What differs by more than rounding.
fn close(a: &Leftovers, b: &Leftovers) -> Option<String> {
    a.named().into_iter().zip(b.named()).find_map(|((name, x), (_, y))| {
        let (RunValue::Tensor(x), RunValue::Tensor(y)) = (x, y) else { return None };
        if x.dtype() != y.dtype() || x.layout().sizes != y.layout().sizes {
            return Some(format!("{name}: {} {} and {} {}", x.dtype(), x.layout(), y.dtype(), y.layout()));
        }
        let (p, q) = (numbers(&x), numbers(&y));
        let alike =
            |(p, q): (&f64, &f64)| p == q || p.is_nan() && q.is_nan() || (p - q).abs() <= 1e-4 * (1.0 + p.abs());
        (!p.iter().zip(&q).all(alike)).then(|| format!("{name}: {p:?} and {q:?}"))
    })
}

/// Elements in logical order, complex ones by their absolute values.
fn numbers(t: &RawTensor) -> Vec<f64> {
    let sizes = t.layout().sizes.clone();
    let mut index = vec![0; sizes.len()];
    (0..sizes.iter().product::<i64>())
        .map(|at| {
            let mut left = at;
            for (i, n) in index.iter_mut().zip(&sizes).rev() {
                (*i, left) = (left % n, left / n);
            }
            match t.get(&index) {
                Scalar::Complex(z) => z.norm(),
                s => s.as_f64(),
            }
        })
        .collect()
}

/// Random programs of views and writes mean the same in files and in portable form, and no region that is a box is strided.
#[test]
fn random_programs_mean_the_same() {
    let (mut programs, mut scatters) = (0, 0);
    for seed in 0..400 {
        let sample = generate(seed);
        let options = FunctionalizeOptions::default();
        let Ok(before) = functionalize(&sample.program, &options) else { continue };
        let Ok(wanted) = Leftovers::interp(&before, &sample.inputs, &RunOptions::default()) else { continue };
        programs += 1;
        for after in [nested(&before).unwrap(), portable(&before).unwrap()] {
            verify(&after).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{}", print(&after)));
            scatters += count(&after, "aten.as_strided_scatter.default");
            let made = Leftovers::interp(&after, &sample.inputs, &RunOptions::default());
            let made = made.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", print(&after)));
            if let Some(d) = close(&wanted, &made) {
                panic!("seed {seed}: {d}\n{}", print(&after));
            }
        }
    }
    println!("{programs} programs, {scatters} strided scatters left");
    assert!(programs > 200);
}

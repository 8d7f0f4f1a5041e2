//! What is taken out of a program because constant inputs decide it, and what stays.

use restride_passes::constants::constants;
use restride_passes::lower;

/// Checks which operators are left of a program whose first inputs are constant, and the values that it is given.
fn check(text: &str, constant: usize, left: &[&str], given: &[&str]) {
    let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
    let program = restride::functionalize(&program, &Default::default()).expect("functional");
    let program = lower(&program).expect("lowered");
    let inputs = program.graph().inputs.len();
    let flags: Vec<bool> = (0..inputs).map(|i| i < constant).collect();
    let found = constants(&program, &flags, false).expect("constants");
    let (rest, values) = match &found {
        Some((rest, constants)) => (rest, &constants.values[..]),
        None => (&program, &[][..]),
    };
    let names: Vec<&str> = rest.graph().ordered().map(|(_, n)| n.op.name()).collect();
    let keys: Vec<&str> = values.iter().map(|v| &*v.key).collect();
    assert_eq!((&names[..], &keys[..]), (left, given), "{text}");
    assert_eq!(rest.graph().inputs.len(), inputs + given.len());
    if let Some((rest, constants)) = &found {
        // Each value is an output of the graph that computes it, and has sources among the constant inputs.
        assert_eq!(constants.graph.outputs.len(), values.len());
        assert!(values.iter().all(|v| !v.sources.is_empty() && v.sources.iter().all(|i| *i < constant)), "{text}");
        restride_check::functional(rest).unwrap_or_else(|f| panic!("{f:?}"));
    }
}

fn graph(inputs: &str, nodes: &str) -> String {
    format!("graph({inputs}) {{\n{nodes}\n}}\n")
}

#[test]
fn values_of_weights_alone_are_computed_once() {
    let nodes = "%a: f32[4, 8] = aten.mul.Tensor(%w, 2)\n%b: f32[4, 8] = aten.add.Tensor(%x, %a)\nreturn %b";
    let text = graph("%w: f32[4, 8], %x: f32[4, 8]", nodes);
    check(&text, 1, &["aten.add.Tensor"], &["aten.mul.Tensor(Value(%0),Scalar(Int(2)))"]);
    check(&text, 0, &["aten.mul.Tensor", "aten.add.Tensor"], &[]);
}

#[test]
fn what_would_cost_memory_stays() {
    // Sixteen times the bytes of the weight.
    let large = "%a: f32[16, 8] = aten.add.Tensor(%w, %v)\n%b: f32[16, 8] = aten.add.Tensor(%x, %a)\nreturn %b";
    let inputs = "%w: f32[16, 1], %v: f32[1, 8], %x: f32[16, 8]";
    check(&graph(inputs, large), 2, &["aten.add.Tensor", "aten.add.Tensor"], &[]);
    // The base of a scatter is made in the memory of the result.
    let base =
        "%a: f32[8] = aten.mul.Tensor(%w, 2)\n%b: f32[8] = aten.slice_scatter.default(%a, %x, 0, 0, 4)\nreturn %b";
    check(&graph("%w: f32[8], %x: f32[4]", base), 1, &["aten.mul.Tensor", "aten.slice_scatter.default"], &[]);
    // Together more than twice the bytes of the weight.
    let many = "%a: f32[8] = aten.mul.Tensor(%w, 2)\n%b: f32[8] = aten.mul.Tensor(%w, 3)\n%c: f32[8] = aten.mul.Tensor(%w, 4)\n\
                %d: f32[8] = aten.add.Tensor(%x, %a)\n%e: f32[8] = aten.add.Tensor(%x, %b)\n\
                %f: f32[8] = aten.add.Tensor(%x, %c)\nreturn %d, %e, %f";
    let left = &["aten.mul.Tensor", "aten.add.Tensor", "aten.add.Tensor", "aten.add.Tensor"];
    let given = ["aten.mul.Tensor(Value(%0),Scalar(Int(3)))", "aten.mul.Tensor(Value(%0),Scalar(Int(4)))"];
    check(&graph("%w: f32[8], %x: f32[8]", many), 1, left, &given);
    // Copies and views are placed where their operands are.
    let copy = "%a: f32[8, 4][1, 8] = aten.t.default(%w)\n%b: f32[8, 4] = aten.clone.default(%a)\n\
                %c: f32[8, 4] = aten.add.Tensor(%x, %b)\nreturn %c";
    let stays = &["aten.t.default", "aten.clone.default", "aten.add.Tensor"];
    check(&graph("%w: f32[4, 8], %x: f32[8, 4]", copy), 1, stays, &[]);
    // Numbers that are drawn are drawn in each run.
    let drawn = "%a: f32[8] = aten.rand_like.default(%w)\n%b: f32[8] = aten.add.Tensor(%x, %a)\nreturn %b";
    check(&graph("%w: f32[8], %x: f32[8]", drawn), 1, &["aten.rand_like.default", "aten.add.Tensor"], &[]);
}

#[test]
fn convolutions_read_packed_filters() {
    // More windows than result channels: the sums go tap by tap, over all channels of each; else channel by channel.
    let nodes = "%y: f32[1, 8, 12, 12] = aten.conv2d.default(%x, %w, None, [1, 1], [1, 1])\nreturn %y";
    let text = |w: &str| graph(&format!("%w: {w}, %x: f32[1, 4, 12, 12]"), nodes);
    let given = "restride.pack_filter.default(Value(%0),Scalar(Int(1)),Scalar(Int(1)))";
    check(&text("f32[8, 4, 3, 3]"), 1, &["restride.conv_packed.default"], &[given]);
    check(&text("f32[8, 4, 3, 3]"), 0, &["aten.conv2d.default"], &[]);
    let nodes = "%y: f32[1, 64, 4, 4] = aten.conv2d.default(%x, %w, None, [1, 1], [1, 1])\nreturn %y";
    let given = "restride.pack_filter.default(Value(%0),Scalar(Int(1)),Scalar(Int(0)))";
    let few = graph("%w: f32[64, 4, 3, 3], %x: f32[1, 4, 4, 4]", nodes);
    check(&few, 1, &["restride.conv_packed.default"], &[given]);
    // Windows of one element and filters of one channel are read where they are.
    for (w, x, y, rest) in [
        ("f32[8, 4, 1, 1]", "f32[1, 4, 12, 12]", "f32[1, 8, 12, 12]", "[1, 1], [0, 0]"),
        ("f32[4, 1, 3, 3]", "f32[1, 4, 12, 12]", "f32[1, 4, 12, 12]", "[1, 1], [1, 1], [1, 1], 4"),
    ] {
        let nodes = format!("%y: {y} = aten.conv2d.default(%x, %w, None, {rest})\nreturn %y");
        check(&graph(&format!("%w: {w}, %x: {x}"), &nodes), 1, &["aten.conv2d.default"], &[]);
    }
}

#[test]
fn products_read_packed_weights() {
    let product = |rows: usize, rank: usize| {
        let x = if rank == 2 { format!("f32[{rows}, 32]") } else { "f32[32]".into() };
        let y = if rank == 2 { format!("f32[{rows}, 16]") } else { "f32[16]".into() };
        graph(&format!("%w: f32[16, 32], %x: {x}"), &format!("%y: {y} = aten.linear.default(%x, %w)\nreturn %y"))
    };
    let packed = "restride.pack_matrix.default(Value(%0),Scalar(Int(1)))";
    check(&product(4, 2), 1, &["restride.linear_packed.default"], &[packed]);
    // A vector reads the weight where it is; of many rows packing is a small part of the product.
    for text in [product(1, 2), product(1, 1), product(4096, 2)] {
        check(&text, 1, &["aten.linear.default"], &[]);
    }
    // One packed form serves all products, also that of a computed weight, which need not be kept itself.
    let nodes = "%a: f32[16, 32] = aten.mul.Tensor(%w, 2)\n%y: f32[4, 16] = aten.linear.default(%x, %a)\n\
                 %z: f32[4, 16] = aten.linear.default(%x, %a)\n%s: f32[4, 16] = aten.add.Tensor(%y, %z)\nreturn %s";
    let left = &["restride.linear_packed.default", "restride.linear_packed.default", "aten.add.Tensor"];
    let scaled = "restride.pack_matrix.default(Value(aten.mul.Tensor(Value(%0),Scalar(Int(2)))),Scalar(Int(1)))";
    check(&graph("%w: f32[16, 32], %x: f32[4, 32]", nodes), 1, left, &[scaled]);
    // Both operands of the product are of the run.
    check(&product(4, 2), 0, &["aten.linear.default"], &[]);
}

/// Checks that `constants` takes `count` values out of a program without constant inputs, and leaves these operators.
fn check_ahead(text: &str, left: &[&str], count: usize) {
    let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
    let program = restride::functionalize(&program, &Default::default()).expect("functional");
    let program = lower(&program).expect("lowered");
    let flags = vec![false; program.graph().inputs.len()];
    assert!(constants(&program, &flags, false).expect("constants").is_none(), "taken out without being asked for");
    let found = constants(&program, &flags, true).expect("constants");
    let rest = found.as_ref().map_or(&program, |(rest, _)| rest);
    let names: Vec<&str> = rest.graph().ordered().map(|(_, n)| n.op.name()).collect();
    assert_eq!((&names[..], found.as_ref().map_or(0, |(_, c)| c.values.len())), (left, count), "{text}");
    if let Some((rest, constants)) = &found {
        assert!(constants.values.iter().all(|v| v.sources.is_empty()) && constants.inputs.is_empty(), "{text}");
        restride_check::functional(rest).unwrap_or_else(|f| panic!("{f:?}"));
    }
}

#[test]
fn small_values_that_no_input_decides_are_computed_once_where_asked() {
    let mask = |n: i64| {
        let nodes = format!(
            "%i: i64[{n}] = aten.arange.default({n})\n%c: i64[{n}, 1] = aten.view.default(%i, [{n}, 1])\n\
             %m: bool[{n}, {n}] = aten.ge.Tensor(%c, %i)\n%y: f32[{n}, {n}] = aten.mul.Tensor(%x, %m)\nreturn %y"
        );
        graph(&format!("%x: f32[{n}, {n}]"), &nodes)
    };
    check_ahead(&mask(8), &["aten.mul.Tensor"], 1);
    // A mask of 65,536 bytes is kept, one of 262,144 is made in each run of numbers that are kept.
    check_ahead(&mask(256), &["aten.mul.Tensor"], 1);
    check_ahead(&mask(512), &["aten.view.default", "aten.ge.Tensor", "aten.mul.Tensor"], 1);
    // What is large on the way is made in each run, however small its sum.
    let sum = "%i: i64[1000000] = aten.arange.default(1000000)\n%s: i64[] = aten.sum.default(%i)\n\
               %y: i64[] = aten.mul.Tensor(%x, %s)\nreturn %y";
    check_ahead(&graph("%x: i64[]", sum), &["aten.arange.default", "aten.sum.default", "aten.mul.Tensor"], 0);
    // Many small values are kept up to a megabyte in all.
    let many: Vec<String> =
        (0..20).map(|i| format!("%i{i}: i64[8192] = aten.arange.start({i}, {})\n", i + 8192)).collect();
    let sums: Vec<String> = (0..20).map(|i| format!("%y{i}: i64[8192] = aten.add.Tensor(%x, %i{i})\n")).collect();
    let outputs: Vec<String> = (0..20).map(|i| format!("%y{i}")).collect();
    let text = graph("%x: i64[8192]", &format!("{}{}return {}", many.concat(), sums.concat(), outputs.join(", ")));
    let mut left = vec!["aten.arange.start"; 4];
    left.extend(["aten.add.Tensor"; 20]);
    check_ahead(&text, &left, 16);
    // A base that is written, and numbers that are drawn.
    let base =
        "%z: f32[8] = aten.zeros.default([8])\n%y: f32[8] = aten.slice_scatter.default(%z, %x, 0, 0, 4)\nreturn %y";
    check_ahead(&graph("%x: f32[4]", base), &["aten.zeros.default", "aten.slice_scatter.default"], 0);
    let drawn = "%z: f32[8] = aten.rand.default([8])\n%y: f32[8] = aten.mul.Tensor(%z, %x)\nreturn %y";
    check_ahead(&graph("%x: f32[8]", drawn), &["aten.rand.default", "aten.mul.Tensor"], 0);
}

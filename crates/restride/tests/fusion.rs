//! Fusion is on by default: programs keep their results and limits, and need no more memory.

use restride::{CompileOptions, Compiled, FuseOptions, Inputs, MemorySpec, Program, Report, RunOptions, RunValue};

/// Two chains behind a product, which is read by both.
const CHAINS: &str = "graph(%x: f32[8, 8], %w: f32[8, 8]) {
  %m: f32[8, 8] = aten.mm.default(%x, %w)
  %a: f32[8, 8] = aten.mul.Tensor(%m, 2)
  %b: f32[8, 8] = aten.exp.default(%a)
  %n: f32[8, 8] = aten.mm.default(%b, %w)
  %c: f32[8, 8] = aten.add.Tensor(%n, %m)
  %d: f32[8, 8] = aten.tanh.default(%c)
  return %d
}";

fn of_text(text: &str) -> (Program, Inputs) {
    let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
    let inputs = restride::random_inputs(&program, 0).expect("random inputs");
    (program, inputs)
}

/// The report, and the bytes of the outputs.
fn outcome(program: &Program, inputs: &Inputs, options: &CompileOptions) -> restride::Result<(Report, Vec<Vec<u8>>)> {
    let compiled = Compiled::new(program.clone(), Some(inputs), options)?;
    let given = inputs.deep_clone();
    let outputs = compiled.instance()?.run(&given, &RunOptions::default())?;
    let bytes = outputs.values.iter().filter_map(RunValue::tensor).map(|t| t.storage().to_vec()).collect();
    Ok((compiled.prepare(inputs)?.report(), bytes))
}

fn plain() -> CompileOptions {
    CompileOptions { fuse: FuseOptions::none(), ..CompileOptions::default() }
}

#[test]
fn chains_are_fused_by_default() {
    let (program, inputs) = of_text(CHAINS);
    let (with, results) = outcome(&program, &inputs, &CompileOptions::default()).expect("runs");
    let (without, expected) = outcome(&program, &inputs, &plain()).expect("runs");
    assert_eq!(results, expected);
    assert_eq!((with.placed.fused, without.placed.fused), (4, 0));
    assert!(with.placed.moved_bytes < without.placed.moved_bytes);
    assert!(with.plan.arena_bytes <= without.plan.arena_bytes);
}

#[test]
fn bodies_of_fused_nodes_count_for_no_limit() {
    let (mut program, inputs) = of_text(CHAINS);
    (program.limits.bodies, program.limits.depth) = (1, 0);
    let (report, _) = outcome(&program, &inputs, &CompileOptions::default()).expect("no limit is exceeded");
    assert_eq!(report.placed.fused, 4);
}

#[test]
fn a_pinned_value_is_not_fused_away() {
    let (program, inputs) = of_text(CHAINS);
    let memory = |name: &str, capacity, pin: &[&str]| {
        let pins = pin.iter().map(|p| p.to_string()).collect();
        MemorySpec { name: name.into(), capacity, pins }
    };
    for (pin, fused) in [("b", 4), ("a", 0)] {
        let memories = vec![memory("fast", Some(4096), &[pin]), memory("slow", None, &[])];
        let options = CompileOptions { memories, ..CompileOptions::default() };
        let (report, _) = outcome(&program, &inputs, &options).expect("both are taken");
        assert_eq!(report.placed.fused, fused, "%{pin}");
    }
}

/// Programs whose rows are joined: inputs, what is computed, how many operators are fused.
const JOINED: &[(&str, &str, usize)] = &[
    // One long row, which threads share; the last elements are no whole block.
    (
        "%x: f32[401, 777], %y: f32[401, 777]",
        "%d: f32[401, 777] = aten.sub.Tensor(%x, %y)
  %s: f32[401, 777] = aten.mul.Tensor(%d, %d)
  %r: f32[] = aten.mean.default(%s)
  %o: f32[] = aten.add.Tensor(%r, 1.0)",
        4,
    ),
    // A norm: two passes, numbers of a row between them, weights that all rows share.
    (
        "%x: f32[5, 9, 200], %w: f32[200]",
        "%s: f32[5, 9, 200] = aten.pow.Tensor_Scalar(%x, 2)
  %m: f32[5, 9, 1] = aten.mean.dim(%s, [-1], True)
  %e: f32[5, 9, 1] = aten.add.Tensor(%m, 0.00001)
  %r: f32[5, 9, 1] = aten.rsqrt.default(%e)
  %n: f32[5, 9, 200] = aten.mul.Tensor(%x, %r)
  %o: f32[5, 9, 200] = aten.mul.Tensor(%n, %w)",
        6,
    ),
    // A softmax: what one pass makes is kept for the next.
    (
        "%x: f32[70, 130]",
        "%m: f32[70, 1] = aten.amax.default(%x, [-1], True)
  %d: f32[70, 130] = aten.sub.Tensor(%x, %m)
  %e: f32[70, 130] = aten.exp.default(%d)
  %s: f32[70, 1] = aten.sum.dim_IntList(%e, [-1], True)
  %o: f32[70, 130] = aten.div.Tensor(%e, %s)",
        5,
    ),
    // Masks, truth values that are returned, rows of two dimensions, a row longer than a part.
    (
        "%x: f32[3, 61, 90], %k: bool[61, 90]",
        "%a: f32[3, 61, 90] = aten.abs.default(%x)
  %g: bool[3, 61, 90] = aten.gt.Scalar(%a, 0.5)
  %l: bool[3, 61, 90] = aten.logical_and.default(%g, %k)
  %f: f32[3, 61, 90] = aten.masked_fill.Scalar(%a, %l, 2.0)
  %w: f32[3, 61, 90] = aten.where.self(%g, %x, %f)
  %s: f32[3] = aten.sum.dim_IntList(%w, [1, 2])
  %t: f32[3] = aten.amax.default(%f, [1, 2])
  %o: f32[3] = aten.add.Tensor(%s, %t)",
        8,
    ),
    // A second pass reads truth values and numbers that the first one made. Rows are long, so a block keeps two of them.
    (
        "%x: f32[7, 3000]",
        "%g: bool[7, 3000] = aten.gt.Scalar(%x, 0.1)
  %z: f32[7, 3000] = aten.masked_fill.Scalar(%x, %g, 0.5)
  %s: f32[7, 1] = aten.sum.dim_IntList(%z, [-1], True)
  %d: f32[7, 3000] = aten.div.Tensor(%x, %s)
  %o: f32[7, 3000] = aten.where.self(%g, %d, %z)",
        5,
    ),
    // Rows that are views with gaps, and a divisor that repeats along them.
    (
        "%b: f32[40, 300]",
        "%x: f32[40, 150][300, 2] = aten.slice.Tensor(%b, 1, 0, 300, 2)
  %q: f32[40, 150] = aten.mul.Tensor(%x, %x)
  %s: f32[40, 1] = aten.sum.dim_IntList(%q, [1], True)
  %c: f32[40, 1] = aten.clamp_min.default(%s, 0.1)
  %p: f32[40, 150][1, 0] = aten.expand.default(%c, [40, 150])
  %o: f32[40, 150] = aten.div.Tensor(%q, %p)",
        4,
    ),
    // What a reduction hands on is read by the elements of the next pass alone, beside a matrix that all rows share.
    (
        "%x: f32[3, 8, 8], %i: f32[8, 8]",
        "%n: f32[3, 1, 1] = aten.linalg_vector_norm.default(%x, 2, [-1, -2], True)
  %a: f32[3, 8, 8] = aten.div.Tensor(%x, %n)
  %d: f32[3, 8, 8] = aten.sub.Tensor(%a, %i)
  %o: f32[3] = aten.linalg_vector_norm.default(%d, 2, [-1, -2])",
        4,
    ),
    (
        "%x: f32[70, 100], %i: f32[100]",
        "%q: f32[70, 100] = aten.mul.Tensor(%x, %x)
  %n: f32[70, 1] = aten.sum.dim_IntList(%q, [-1], True)
  %a: f32[70, 100] = aten.div.Tensor(%x, %n)
  %d: f32[70, 100] = aten.sub.Tensor(%a, %i)
  %o: f32[70] = aten.sum.dim_IntList(%d, [-1])",
        5,
    ),
];

#[test]
fn a_view_by_the_sizes_of_a_tensor_does_not_wait_for_it() {
    let (program, inputs) = of_text(
        "graph(%x: f32[4, 512], %c: f32[]) {
  %q: f32[4, 512] = aten.mul.Tensor(%x, %x)
  %s: f32[4] = aten.sum.dim_IntList(%q, [1])
  %e: f32[4][0] = aten.expand_as.default(%c, %s)
  %o: f32[4] = aten.div.Tensor(%s, %e)
  return %o
}",
    );
    let (with, results) = outcome(&program, &inputs, &CompileOptions::default()).expect("runs");
    assert_eq!(results, outcome(&program, &inputs, &plain()).expect("runs").1);
    assert!(with.placed.fused > 1);
    let (program, inputs) = of_text(
        "graph(%x: f32[8, 64, 64], %m: f32[64, 64], %v: f32[8, 4096]) {
  %a: f32[8, 64, 64] = aten.mul.Tensor(%x, 2)
  %n: f32[64, 64] = aten.exp.default(%m)
  %e: f32[8, 64, 64][0, 64, 1] = aten.expand_as.default(%n, %a)
  %d: f32[8, 64, 64] = aten.sub.Tensor(%a, %e)
  %w: f32[8, 64, 64] = aten.view_as.default(%v, %a)
  %o: f32[8, 64, 64] = aten.add.Tensor(%d, %w)
  return %o
}",
    );
    let (with, results) = outcome(&program, &inputs, &CompileOptions::default()).expect("runs");
    assert_eq!(results, outcome(&program, &inputs, &plain()).expect("runs").1);
    assert_eq!(with.placed.fused, 3);
}

#[test]
fn joined_rows_have_the_bits_of_single_operators() {
    for (inputs, calls, fused) in JOINED {
        let (program, inputs) = of_text(&format!("graph({inputs}) {{\n  {calls}\n  return %o\n}}"));
        let (_, expected) = outcome(&program, &inputs, &plain()).expect("runs");
        let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles");
        assert_eq!(compiled.prepare(&inputs).expect("is placed").report().placed.fused, *fused, "{calls}");
        for threads in [1, 2, 3] {
            let options = RunOptions { threads, ..RunOptions::default() };
            let outputs = compiled.instance().expect("an instance").run(&inputs.deep_clone(), &options).expect("runs");
            let bytes: Vec<Vec<u8>> =
                outputs.values.iter().filter_map(RunValue::tensor).map(|t| t.storage().to_vec()).collect();
            assert_eq!(bytes, expected, "{threads} threads: {calls}");
        }
    }
}

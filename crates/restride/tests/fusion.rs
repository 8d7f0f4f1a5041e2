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

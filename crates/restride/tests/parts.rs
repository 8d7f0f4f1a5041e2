//! Values that are read in part alone: the part has the bits that it has in the whole value, and the whole takes no memory.

use restride::{CompileOptions, Compiled, RunOptions, RunValue};

/// A slice of a sum, an index of a product and a row of a difference.
const PARTS: &str = "graph(%x: f32[1, 8, 64, 16], %y: f32[1, 8, 16, 64], %s: f32[]) {
  %i: i64[2] = aten.arange.start(40, 42)
  %turned: f32[1, 8, 64, 16][8192, 1024, 1, 64] = aten.transpose.int(%y, -2, -1)
  %sum: f32[1, 8, 64, 16] = aten.add.Tensor(%x, %turned)
  %slice: f32[1, 8, 1, 16][8192, 1024, 16, 1]+272 = aten.slice.Tensor(%sum, 2, 17, 18)
  %written: f32[1, 8, 1, 16] = aten.clone.default(%slice, memory_format=contiguous_format)
  %product: f32[1, 8, 64, 16] = aten.mul.Tensor(%x, %s)
  %indexed: f32[1, 8, 2, 16] = aten.index.Tensor(%product, [None, None, %i])
  %half: f32[1, 8, 64, 16] = aten.mul.Scalar(%x, 0.3)
  %both: f32[1, 8, 64, 16] = aten.sub.Tensor(%half, %x)
  %head: f32[1, 64, 16][8192, 16, 1]+3072 = aten.select.int(%both, 1, 3)
  %copied: f32[1, 64, 16] = aten.clone.default(%head)
  return %written, %indexed, %copied";

/// The bytes of the outputs and of the arena.
fn outcome(text: &str) -> (Vec<Vec<u8>>, i64) {
    let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
    let inputs = restride::random_inputs(&program, 0).expect("random inputs");
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles");
    let arena = compiled.prepare(&inputs).expect("places").report().plan.arena_bytes;
    let outputs = compiled.instance().expect("an instance").run(&inputs, &RunOptions::default()).expect("runs");
    let tensors = outputs.values.iter().filter_map(RunValue::tensor);
    (tensors.map(|t| t.to_elements::<f32>().into_iter().flat_map(f32::to_le_bytes).collect()).collect(), arena)
}

#[test]
fn parts_have_the_bits_of_the_whole() {
    let (parts, arena) = outcome(&format!("{PARTS}\n}}"));
    let (with_wholes, _) = outcome(&format!("{PARTS}, %sum, %product, %both\n}}"));
    assert_eq!(parts.len(), 3);
    assert_eq!(parts, with_wholes[..3]);
    assert!(arena < 8 * 64 * 16 * 4, "{arena} bytes of arena hold a whole value");
}

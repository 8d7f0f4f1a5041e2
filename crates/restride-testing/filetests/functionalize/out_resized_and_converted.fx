// A resized out= of another element type.
// run: functionalize, run
graph(%a: i64[3], %o: f32[1]) {
  %e: f32[0] = aten.empty.memory_format([0], dtype=f32)
  %r: f32[3] = aten.add.out(%a, %a, out=%e)
  return %e
}

// == functionalize
// graph(%a: i64[3], %o: f32[1]) {
//   %r: i64[3] = aten.add.Tensor(%a, %a)
//   %r_2: f32[3] = aten._to_copy.default(%r, dtype=f32)
//   return %r_2
// }

// == run
// input 0: i64[3][1]+0 = [0 1 2]
// input 1: f32[1][1]+0 = [0.0]
// output 0: f32[3][1]+0 = [0.0 2.0 4.0]

// Two fresh tensors are filled by one call.
// run: remarks, copies, run
graph(%x: f32[2, 3]) {
  %a: f32[3] = aten.empty.memory_format([3], dtype=f32)
  %b: i64[3] = aten.empty.memory_format([3], dtype=i64)
  %v: f32[3], %i: i64[3] = aten.max.dim_max(%x, 0, max=%a, max_values=%b)
  %c: f32[3] = aten.flip.default(%a, [-1])
  return %c, %b
}

// == remarks
// %v, %v_1 = aten.max.dim(%x, 0)
//   computed in the output's memory: taken, 24 bytes
// %c = aten.flip.default(%v, [-1])
//   computed in the output's memory: taken, 12 bytes

// == copies
// none

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3][1]+0 = [5.0 4.0 3.0]
// output 1: i64[3][1]+0 = [1 1 1]

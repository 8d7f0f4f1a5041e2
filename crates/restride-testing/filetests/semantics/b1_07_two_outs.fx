// Two out= arguments, one of them used: nothing is left of the other.
// run: functionalize, run
graph(%x: f32[4]) {
  %a: f32[] = aten.empty.memory_format([], dtype=f32)
  %b: f32[] = aten.empty.memory_format([], dtype=f32)
  %lo: f32[], %hi: f32[] = aten.aminmax.out(%x, dim=0, min=%a, max=%b)
  return %b
}

// == functionalize
// graph(%x: f32[4]) {
//   %lo: f32[], %lo_1: f32[] = aten.aminmax.default(%x, dim=0)
//   return %lo_1
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[][]+0 = [3.0]

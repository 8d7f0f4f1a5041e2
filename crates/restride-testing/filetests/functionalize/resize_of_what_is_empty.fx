// What is empty needs no memory, wherever it begins.
// run: functionalize, run
graph(%x: f32[0, 2][1, 3], %y: f32[3]) {
  %v: f32[0]+3 = aten.select.int(%x, 1, 1)
  %w: f32[0]+3 = aten.resize_as_.default(%v, %v)
  %a: f32[0]+1 = aten.slice.Tensor(%y, 0, 1, 1)
  %b: f32[0, 4]+1 = aten.resize_.default(%a, [0, 4])
  return %b
}

// == functionalize
// output 0: user as view f32[0, 4]+1 of input %y
//
// graph(%x: f32[0, 2][1, 3], %y: f32[3]) {
//   %v: f32[0, 4]+1 = aten.full.default([0, 4], 0, dtype=f32)
//   return %v
// }

// == run
// input 0: f32[0, 2][1, 3]+0 = []
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[0, 4][4, 1]+1 = [], on the storage of input 1

// And one that was written through.
// run: functionalize, run

graph(%x: f32[4], %m: bool[4]) {
  %v: f32[4] = aten._neg_view.default(%x)
  %w: f32[4] = aten.masked_scatter_.default(%v, %m, %v)
  return %w
}

// == functionalize
// output 0: mutation of %x
//
// graph(%x: f32[4], %m: bool[4]) {
//   %w: f32[4] = aten.neg.default(%x)
//   %w_1: f32[4] = aten.masked_scatter.default(%w, %m, %w)
//   %w_2: f32[4] = aten.neg.default(%w_1)
//   return %w_2, %w_1
// }

// == run
// input 0: f32[4][1]+0 = [0.0 0.0 1.0 2.0]
// input 1: bool[4][1]+0 = [false true true true]
// output 0: f32[4][1]+0 = [-0.0 -0.0 -1.0 -2.0]

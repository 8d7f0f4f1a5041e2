// A region that no write touched is not read again.
// run: functionalize, run
graph(%a: f32[4]) {
  %x: f32[4] = aten.clone.default(%a)
  %lo: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
  %hi: f32[2]+2 = aten.slice.Tensor(%x, 0, 2, 4)
  %p: f32[2] = aten.neg.default(%hi)
  %w: f32[2] = aten.zero_.default(%lo)
  %q: f32[2] = aten.abs.default(%hi)
  return %p, %q, %x
}

// == functionalize
// stage: functional
//
// graph(%a: f32[4]) {
//   %x: f32[4] = aten.clone.default(%a)
//   %hi: f32[2]+2 = aten.slice.Tensor(%x, 0, 2, 4)
//   %p: f32[2] = aten.neg.default(%hi)
//   %lo: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
//   %w: f32[2] = aten.zero.default(%lo)
//   %w_1: f32[4] = aten.slice_scatter.default(%x, %w, 0, 0, 2)
//   %q: f32[2] = aten.abs.default(%hi)
//   return %p, %q, %w_1
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2][1]+0 = [-2.0 -3.0]
// output 1: f32[2][1]+0 = [2.0 3.0]
// output 2: f32[4][1]+0 = [0.0 0.0 2.0 3.0]

// The base is written: both views of it see the update.
// run: functionalize, run
graph(%a: f32[4]) {
  %x: f32[4] = aten.mul.Tensor(%a, 2)
  %p: f32[2, 2] = aten.view.default(%x, [2, 2])
  %q: f32[2][2]+1 = aten.slice.Tensor(%x, 0, 1, 4, 2)
  %w: f32[4] = aten.add_.Tensor(%x, 1)
  %s: f32[2] = aten.sum.dim_IntList(%p, [1])
  return %p, %q, %s
}

// == functionalize
// stage: functional
// output 0: user as view f32[2, 2] of base 3
// output 1: user as view f32[2][2]+1 of base 3
// output 3: base
//
// graph(%a: f32[4]) {
//   %x: f32[4] = aten.mul.Tensor(%a, 2)
//   %w: f32[4] = aten.add.Tensor(%x, 1)
//   %s: f32[2, 2] = aten.reshape.default(%w, [2, 2])
//   %s_1: f32[2] = aten.sum.dim_IntList(%s, [1])
//   %v: f32[2][2]+1 = aten.slice.Tensor(%w, 0, 1, 4, 2)
//   return %s, %v, %s_1, %w
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2, 2][2, 1]+0 = [1.0 3.0 5.0 7.0]
// output 1: f32[2][2]+1 = [3.0 7.0], on the storage of output 0
// output 2: f32[2][1]+0 = [4.0 12.0]

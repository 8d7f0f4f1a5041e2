// A write through a diagonal of one part of a split: the base has it, the other part is untouched.
// run: functionalize, run
graph(%a: f32[4, 2]) {
  %x: f32[4, 2] = aten.neg.default(%a)
  %p: f32[2, 2], %q: f32[2, 2]+4 = aten.split.Tensor(%x, 2)
  %d: f32[2][3]+4 = aten.diagonal.default(%q)
  %w: f32[2][3]+4 = aten.add_.Tensor(%d, 1)
  %s: f32[2, 2] = aten.add.Tensor(%p, %q)
  return %x, %s
}

// == functionalize
// stage: functional
//
// graph(%a: f32[4, 2]) {
//   %x: f32[4, 2] = aten.neg.default(%a)
//   %p: f32[2, 2], %q: f32[2, 2]+4 = aten.split.Tensor(%x, 2)
//   %d: f32[2][3]+4 = aten.diagonal.default(%q)
//   %w: f32[2][3]+4 = aten.add.Tensor(%d, 1)
//   %w_1: f32[4, 2] = aten.as_strided_scatter.default(%x, %w, [2], [3], 4)
//   %s: f32[2, 2]+4 = aten.slice.Tensor(%w_1, 0, 2, 4)
//   %s_1: f32[2, 2] = aten.add.Tensor(%p, %s)
//   return %w_1, %s_1
// }

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4, 2][2, 1]+0 = [-0.0 -1.0 -2.0 -3.0 -3.0 -5.0 -6.0 -6.0]
// output 1: f32[2, 2][2, 1]+0 = [-3.0 -6.0 -8.0 -9.0]

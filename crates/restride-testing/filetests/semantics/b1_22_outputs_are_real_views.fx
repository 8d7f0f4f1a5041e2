// Outputs that are views have the strides and offsets of eager PyTorch, written ones among them.
// run: functionalize, run
graph(%a: f32[2, 6]) {
  %x: f32[2, 6] = aten.neg.default(%a)
  %s: f32[2, 3][6, 2]+1 = aten.slice.Tensor(%x, 1, 1, 6, 2)
  %t: f32[3, 2][2, 6]+1 = aten.transpose.int(%s, 0, 1)
  %w: f32[3, 2][2, 6]+1 = aten.mul_.Tensor(%t, 2)
  %e: f32[3, 1, 2][2, 12, 6]+1 = aten.unsqueeze.default(%t, 1)
  return %s, %w, %e
}

// == functionalize
// stage: functional
// output 0: user as view f32[2, 3][6, 2]+1 of base 3
// output 1: user as view f32[3, 2][2, 6]+1 of base 3
// output 2: user as view f32[3, 1, 2][2, 12, 6]+1 of base 3
// output 3: base
//
// graph(%a: f32[2, 6]) {
//   %x: f32[2, 6] = aten.neg.default(%a)
//   %s: f32[2, 3][6, 2]+1 = aten.slice.Tensor(%x, 1, 1, 6, 2)
//   %t: f32[3, 2][2, 6]+1 = aten.transpose.int(%s, 0, 1)
//   %w: f32[3, 2][2, 6]+1 = aten.mul.Tensor(%t, 2)
//   %w_1: f32[2, 3][6, 2]+1 = aten.permute.default(%w, [1, 0])
//   %w_2: f32[2, 6] = aten.slice_scatter.default(%x, %w_1, 1, 1, 6, 2)
//   %v: f32[2, 3][6, 2]+1 = aten.slice.Tensor(%w_2, 1, 1, 6, 2)
//   %e: f32[3, 1, 2][2, 12, 6]+1 = aten.unsqueeze.default(%w, 1)
//   return %v, %w, %e, %w_2
// }

// == run
// input 0: f32[2, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[2, 3][6, 2]+1 = [-2.0 -6.0 -10.0 -14.0 -18.0 -22.0]
// output 1: f32[3, 2][2, 6]+1 = [-2.0 -14.0 -6.0 -18.0 -10.0 -22.0], on the storage of output 0
// output 2: f32[3, 1, 2][2, 12, 6]+1 = [-2.0 -14.0 -6.0 -18.0 -10.0 -22.0], on the storage of output 0

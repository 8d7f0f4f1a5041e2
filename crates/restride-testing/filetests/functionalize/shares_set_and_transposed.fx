// Inputs on one storage: one is set to the other, which is transposed.
// run: functionalize, run
// share: %a %b
graph(%a: f32[4], %b: f32[2, 2]) {
  %s: f32[2, 2] = aten.set_.source_Tensor(%a, %b)
  %t: f32[2, 2][1, 2] = aten.t_.default(%b)
  %w: f32[2, 2] = aten.add_.Tensor(%a, 1)
  %v: f32[2][2]+1 = aten.select.int(%b, 0, 1)
  %u: f32[2][2]+1 = aten.mul_.Tensor(%v, 3)
  return %a
}

// == functionalize
// stage: functional
// input %storage_a_b: storage of %a, %b
// output 0: mutation of %storage_a_b
// output 1: user as view f32[2, 2] of input %storage_a_b
// output 2: metadata of %a as view f32[2, 2] of input %storage_a_b
// output 3: metadata of %b as view f32[2, 2][1, 2] of input %storage_a_b
//
// graph(%a: f32[4], %b: f32[2, 2], %storage_a_b: f32[4]) {
//   %w: f32[2, 2] = aten.reshape.default(%storage_a_b, [2, 2])
//   %w_1: f32[2, 2] = aten.add.Tensor(%w, 1)
//   %w_2: f32[4] = aten.reshape.default(%w_1, [4])
//   %v: f32[2][2]+1 = aten.slice.Tensor(%w_2, 0, 1, 4, 2)
//   %u: f32[2][2]+1 = aten.mul.Tensor(%v, 3)
//   %u_1: f32[4] = aten.slice_scatter.default(%w_2, %u, 0, 1, 4, 2)
//   %v_1: f32[2, 2] = aten.reshape.default(%u_1, [2, 2])
//   return %u_1, %v_1, None, None
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [1.0 6.0 3.0 12.0]
// input 1: f32[2, 2][1, 2]+0 = [1.0 3.0 6.0 12.0], on the storage of input 0
// output 0: f32[2, 2][2, 1]+0 = [1.0 6.0 3.0 12.0], on the storage of input 0

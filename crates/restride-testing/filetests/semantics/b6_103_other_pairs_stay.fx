// Of two pairs that share, one is written: the other pair and the rest stay as they are.
// run: functionalize, run
// share: %a %b
// share: %c %d
graph(%c: f32[2], %a: f32[3], %e: f32[2], %d: f32[2], %b: f32[2]+1) {
  %w: f32[2]+1 = aten.add_.Tensor(%b, 10)
  %s: f32[2] = aten.add.Tensor(%c, %d)
  %t: f32[2] = aten.mul.Tensor(%s, %e)
  %u: f32[] = aten.sum.default(%a)
  return %t, %u
}

// == functionalize
// stage: functional
// input %storage_a_b: storage of %a, %b
// output 0: mutation of %storage_a_b
//
// graph(%c: f32[2], %a: f32[3], %e: f32[2], %d: f32[2], %b: f32[2]+1, %storage_a_b: f32[3]) {
//   %w: f32[2]+1 = aten.slice.Tensor(%storage_a_b, 0, 1, 3)
//   %w_1: f32[2]+1 = aten.add.Tensor(%w, 10)
//   %w_2: f32[3] = aten.slice_scatter.default(%storage_a_b, %w_1, 0, 1, 3)
//   %s: f32[2] = aten.add.Tensor(%c, %d)
//   %t: f32[2] = aten.mul.Tensor(%s, %e)
//   %u: f32[] = aten.sum.default(%w_2)
//   return %w_2, %t, %u
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[3][1]+0 = [0.0 11.0 12.0]
// input 2: f32[2][1]+0 = [0.0 1.0]
// input 3: f32[2][1]+0 = [0.0 1.0], on the storage of input 0
// input 4: f32[2][1]+1 = [11.0 12.0], on the storage of input 1
// output 0: f32[2][1]+0 = [0.0 2.0]
// output 1: f32[][]+0 = [23.0]

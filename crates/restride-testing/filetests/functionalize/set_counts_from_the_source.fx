// `set_` with an offset counts it from where the source begins, and makes room where it must.
// run: functionalize, run
graph(%x: f32[2], %a: f32[6]) {
  %y: f32[6] = aten.neg.default(%a)
  %v: f32[4]+2 = aten.slice.Tensor(%y, 0, 2, 6)
  %s: f32[2]+3 = aten.set_.source_Tensor_storage_offset(%x, %v, 1, [2], [1])
  %w: f32[2]+3 = aten.add_.Scalar(%x, 10)
  return %y, %s
}

// == functionalize
// stage: functional
// output 0: user as view f32[6] of base 3
// output 1: user as view f32[2]+3 of base 3
// output 2: metadata of %x as view f32[2]+3 of base 3
// output 3: base
//
// graph(%x: f32[2], %a: f32[6]) {
//   %y: f32[6] = aten.neg.default(%a)
//   %w: f32[2]+3 = aten.slice.Tensor(%y, 0, 3, 5)
//   %w_1: f32[2]+3 = aten.add.Scalar(%w, 10)
//   %w_2: f32[6] = aten.slice_scatter.default(%y, %w_1, 0, 3, 5)
//   return %w_2, %w_1, None, %w_2
// }

// == run
// input 0: f32[2][1]+3 = [7.0 6.0]
// input 1: f32[6][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[6][1]+0 = [-0.0 -1.0 -2.0 7.0 6.0 -5.0], on the storage of input 0
// output 1: f32[2][1]+3 = [7.0 6.0], on the storage of input 0

// set_ to a view: the tensor has the view's memory and sees what is written to its base.
// run: functionalize, run
graph(%x: f32[2], %a: f32[2, 2]) {
  %y: f32[2, 2] = aten.neg.default(%a)
  %v: f32[2][2]+1 = aten.select.int(%y, 1, 1)
  %s: f32[2][2]+1 = aten.set_.source_Tensor(%x, %v)
  %w: f32[2, 2] = aten.add_.Tensor(%y, 10)
  %o: f32[3]+1 = aten.set_.source_Tensor_storage_offset(%v, %y, 1, [3], [1])
  return %x, %v
}

// == functionalize
// stage: functional
// output 0: user as view f32[2][2]+1 of base 3
// output 1: user as view f32[3]+1 of base 3
// output 2: metadata of %x as view f32[2][2]+1 of base 3
// output 3: base
//
// graph(%x: f32[2], %a: f32[2, 2]) {
//   %y: f32[2, 2] = aten.neg.default(%a)
//   %w: f32[2, 2] = aten.add.Tensor(%y, 10)
//   %v: f32[2][2]+1 = aten.select.int(%w, 1, 1)
//   %v_1: f32[3]+1 = aten.as_strided.default(%w, [3], [1], 1)
//   return %v, %v_1, None, %w
// }

// == run
// input 0: f32[2][2]+1 = [9.0 7.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2][2]+1 = [9.0 7.0], on the storage of input 0
// output 1: f32[3][1]+1 = [9.0 8.0 7.0], on the storage of input 0

// An input is resized to less and written: the cells that it does not show any more stay.
// run: functionalize, run
graph(%x: f32[3, 2]) {
  %r: f32[2, 2] = aten.resize_.default(%x, [2, 2])
  %w: f32[2, 2] = aten.add_.Tensor(%x, 10)
  %a: f32[3]+1 = aten.as_strided_.default(%x, [3], [1], 1)
  return %w
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[3]+1 of input %x
// output 2: metadata of %x as view f32[3]+1 of input %x
//
// graph(%x: f32[3, 2]) {
//   %w: f32[2, 2] = aten.slice.Tensor(%x, 0, 0, 2)
//   %w_1: f32[2, 2] = aten.add.Tensor(%w, 10)
//   %w_2: f32[3, 2] = aten.slice_scatter.default(%x, %w_1, 0, 0, 2)
//   %v: f32[3]+1 = aten.as_strided.default(%w_2, [3], [1], 1)
//   return %w_2, %v, None
// }

// == run
// input 0: f32[3][1]+1 = [11.0 12.0 13.0]
// output 0: f32[3][1]+1 = [11.0 12.0 13.0], on the storage of input 0

// An input is transposed in place, then written through a view: it keeps its new sizes and has the new elements.
// run: functionalize, run
graph(%x: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.transpose_.default(%x, 0, 1)
  %r: f32[2][3] = aten.select.int(%x, 0, 0)
  %w: f32[2][3] = aten.add_.Tensor(%r, 10)
  return %w
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2][3] of input %x
// output 2: metadata of %x as view f32[3, 2][1, 3] of input %x
//
// graph(%x: f32[2, 3]) {
//   %r: f32[2][3] = aten.select.int(%x, 1, 0)
//   %w: f32[2][3] = aten.add.Tensor(%r, 10)
//   %w_1: f32[2, 3] = aten.select_scatter.default(%x, %w, 1, 0)
//   return %w_1, %w, None
// }

// == run
// input 0: f32[3, 2][1, 3]+0 = [10.0 13.0 1.0 4.0 2.0 5.0]
// output 0: f32[2][3]+0 = [10.0 13.0], on the storage of input 0

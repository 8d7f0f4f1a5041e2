// An input is transposed in place and written through a view.
// run: functionalize, run
graph(%x: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.t_.default(%x)
  %r: f32[2][3] = aten.select.int(%x, 0, 0)
  %w: f32[2][3] = aten.mul_.Tensor(%r, 5)
  %s: f32[] = aten.sum.default(%x)
  return %s
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 2: metadata of %x as view f32[3, 2][1, 3] of input %x
//
// graph(%x: f32[2, 3]) {
//   %r: f32[2][3] = aten.select.int(%x, 1, 0)
//   %w: f32[2][3] = aten.mul.Tensor(%r, 5)
//   %w_1: f32[2, 3] = aten.select_scatter.default(%x, %w, 1, 0)
//   %s: f32[3, 2][1, 3] = aten.permute.default(%w_1, [1, 0])
//   %s_1: f32[] = aten.sum.default(%s)
//   return %w_1, %s_1, None
// }

// == run
// input 0: f32[3, 2][1, 3]+0 = [0.0 15.0 1.0 4.0 2.0 5.0]
// output 0: f32[][]+0 = [27.0]

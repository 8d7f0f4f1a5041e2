// A write through a view is seen by the base and by views of it.
// run: functionalize, run
graph(%a: f32[2, 3]) {
  %x: f32[2, 3] = aten.mul.Tensor(%a, 2)
  %r: f32[3]+3 = aten.select.int(%x, 0, 1)
  %w: f32[3]+3 = aten.add_.Tensor(%r, 1)
  %s: f32[2, 3] = aten.add.Tensor(%x, 0)
  return %s
}

// == functionalize
// stage: functional
//
// graph(%a: f32[2, 3]) {
//   %x: f32[2, 3] = aten.mul.Tensor(%a, 2)
//   %r: f32[3]+3 = aten.select.int(%x, 0, 1)
//   %w: f32[3]+3 = aten.add.Tensor(%r, 1)
//   %w_1: f32[2, 3] = aten.select_scatter.default(%x, %w, 0, 1)
//   %s: f32[2, 3] = aten.add.Tensor(%w_1, 0)
//   return %s
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [0.0 2.0 4.0 7.0 9.0 11.0]

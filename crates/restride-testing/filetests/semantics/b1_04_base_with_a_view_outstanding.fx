// In place on a tensor that is no view, while a view of it is waiting.
// run: functionalize, run
graph(%a: f32[2, 2]) {
  %x: f32[2, 2] = aten.add.Tensor(%a, %a)
  %v: f32[2, 2][1, 2] = aten.transpose.int(%x, 0, 1)
  %w: f32[2, 2] = aten.add_.Tensor(%x, 1)
  %r: f32[2][2] = aten.select.int(%v, 0, 0)
  %s: f32[2] = aten.relu.default(%r)
  return %s, %w
}

// == functionalize
// stage: functional
//
// graph(%a: f32[2, 2]) {
//   %x: f32[2, 2] = aten.add.Tensor(%a, %a)
//   %w: f32[2, 2] = aten.add.Tensor(%x, 1)
//   %r: f32[2][2] = aten.select.int(%w, 1, 0)
//   %s: f32[2] = aten.relu.default(%r)
//   return %s, %w
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2][1]+0 = [1.0 5.0]
// output 1: f32[2, 2][2, 1]+0 = [1.0 3.0 5.0 7.0]

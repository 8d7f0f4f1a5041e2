// A tensor is added to a view in place: view and base are updated.
// run: functionalize, run
graph(%a: f32[4, 2], %y: f32[4, 2]) {
  %x: f32[4, 2] = aten.neg.default(%a)
  %v: f32[4, 2] = aten.view.default(%x, [4, 2])
  %w: f32[4, 2] = aten.add_.Tensor(%v, %y)
  %z: f32[4, 2] = aten.mul.Tensor(%x, %x)
  return %v, %z
}

// == functionalize
// graph(%a: f32[4, 2], %y: f32[4, 2]) {
//   %x: f32[4, 2] = aten.neg.default(%a)
//   %w: f32[4, 2] = aten.add.Tensor(%x, %y)
//   %z: f32[4, 2] = aten.mul.Tensor(%w, %w)
//   return %w, %z
// }

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// input 1: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4, 2][2, 1]+0 = [0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0]
// output 1: f32[4, 2][2, 1]+0 = [0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0]

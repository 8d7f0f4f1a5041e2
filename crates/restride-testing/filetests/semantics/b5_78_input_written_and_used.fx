// An input is written and used after.
// run: functionalize, run
graph(%x: f32[3]) {
  %w: f32[3] = aten.mul_.Tensor(%x, 2)
  %y: f32[3] = aten.add.Tensor(%x, 1)
  return %y
}

// == functionalize
// output 0: mutation of %x
//
// graph(%x: f32[3]) {
//   %w: f32[3] = aten.mul.Tensor(%x, 2)
//   %y: f32[3] = aten.add.Tensor(%w, 1)
//   return %w, %y
// }

// == run
// input 0: f32[3][1]+0 = [0.0 2.0 4.0]
// output 0: f32[3][1]+0 = [1.0 3.0 5.0]

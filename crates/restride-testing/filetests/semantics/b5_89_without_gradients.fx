// A write where gradients are off is a write like any other.
// run: functionalize, run
graph(%x: f32[3]) {
  %a: f32[3] = aten.mul_.Tensor(%x, 2) !no_grad
  %y: f32[3] = aten.mul.Tensor(%x, 3)
  return %y
}

// == functionalize
// stage: functional
// output 0: mutation of %x
//
// graph(%x: f32[3]) {
//   %a: f32[3] = aten.mul.Tensor(%x, 2) !no_grad
//   %y: f32[3] = restride.with_history.default(%a, %x)
//   %y_1: f32[3] = aten.mul.Tensor(%y, 3)
//   return %a, %y_1
// }

// == run
// input 0: f32[3][1]+0 = [0.0 2.0 4.0]
// output 0: f32[3][1]+0 = [0.0 6.0 12.0]

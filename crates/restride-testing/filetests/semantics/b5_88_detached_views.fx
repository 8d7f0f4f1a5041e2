// Writes through a detached view and through the input in turn: both are the input's memory.
// run: functionalize, run
graph(%x: f32[3]) {
  %d: f32[3] = aten.detach.default(%x)
  %a: f32[3] = aten.mul_.Tensor(%d, 2)
  %b: f32[3] = aten.add_.Tensor(%x, 1) !no_grad
  %c: f32[3] = aten.mul_.Tensor(%d, 3) !no_grad
  %y: f32[3] = aten.neg.default(%x)
  return %y
}

// == functionalize
// stage: functional
// output 0: mutation of %x
//
// graph(%x: f32[3]) {
//   %d: f32[3] = aten.detach.default(%x)
//   %a: f32[3] = aten.mul.Tensor(%d, 2)
//   %b: f32[3] = restride.with_history.default(%a, %x)
//   %b_1: f32[3] = aten.add.Tensor(%b, 1) !no_grad
//   %c: f32[3] = aten.mul.Tensor(%b_1, 3) !no_grad
//   %y: f32[3] = restride.with_history.default(%c, %b)
//   %y_1: f32[3] = aten.neg.default(%y)
//   return %c, %y_1
// }

// == run
// input 0: f32[3][1]+0 = [3.0 9.0 15.0]
// output 0: f32[3][1]+0 = [-3.0 -9.0 -15.0]

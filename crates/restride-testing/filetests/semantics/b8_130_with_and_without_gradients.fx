// Writes where gradients are on and off, a write by an operator that PyTorch composes, and a view after a write.
// run: functionalize, run
graph(%x: f32[2, 2]) {
  %a: f32[2, 2] = aten.sub_.Tensor(%x, 2) !no_grad
  %b: f32[2, 2] = aten.absolute_.default(%x)
  %v: f32[4] = aten.view.default(%x, [4])
  %c: f32[4] = aten.add_.Tensor(%v, 1) !no_grad
  %y: f32[2, 2] = aten.mul.Tensor(%x, 2)
  return %y, %v
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 2: user as view f32[4] of input %x
//
// graph(%x: f32[2, 2]) {
//   %a: f32[2, 2] = aten.sub.Tensor(%x, 2) !no_grad
//   %b: f32[2, 2] = restride.with_history.default(%a, %x)
//   %b_1: f32[2, 2] = aten.absolute.default(%b)
//   %v: f32[4] = aten.view.default(%b_1, [4])
//   %c: f32[4] = aten.add.Tensor(%v, 1) !no_grad
//   %c_1: f32[2, 2] = aten.reshape.default(%c, [2, 2]) !no_grad
//   %y: f32[2, 2] = restride.with_history.default(%c_1, %b_1)
//   %y_1: f32[2, 2] = aten.mul.Tensor(%y, 2)
//   %v_1: f32[4] = aten.reshape.default(%y, [4])
//   return %c_1, %y_1, %v_1
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [3.0 2.0 1.0 2.0]
// output 0: f32[2, 2][2, 1]+0 = [6.0 4.0 2.0 4.0]
// output 1: f32[4][1]+0 = [3.0 2.0 1.0 2.0], on the storage of input 0

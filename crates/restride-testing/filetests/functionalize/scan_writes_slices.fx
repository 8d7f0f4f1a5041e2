// run: functionalize, run
// The slices of a scan are views of the scanned tensor from the second on (the first is a copy), and what is carried is the
// tensor that it was: a body that writes them writes the tensors outside.
graph(%x: f32[3, 2], %c: f32[2]) {
  %last: f32[2], %all: f32[3, 2] = higher_order.scan(@step, [%c], [%x], [])
  %add_: f32[2] = aten.add_.Scalar(%last, 100)
  return %last, %all
}

graph @step(%a: f32[2], %s: f32[2]) {
  %sum: f32[2] = aten.add_.Tensor(%a, %s)
  %y: f32[2] = aten.mul_.Scalar(%s, 10)
  return %a, %y
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: mutation of %c
// output 2: user as view f32[2] of input %c
//
// graph(%x: f32[3, 2], %c: f32[2]) {
//   %last: f32[2] = aten.select.int(%x, 0, 0)
//   %sum: f32[2] = aten.add.Tensor(%c, %last)
//   %y: f32[2] = aten.mul.Scalar(%last, 10)
//   %sum_1: f32[2]+2 = aten.select.int(%x, 0, 1)
//   %sum_2: f32[2] = aten.add.Tensor(%sum, %sum_1)
//   %y_1: f32[2]+2 = aten.mul.Scalar(%sum_1, 10)
//   %y_2: f32[3, 2] = aten.select_scatter.default(%x, %y_1, 0, 1)
//   %sum_3: f32[2]+4 = aten.select.int(%y_2, 0, 2)
//   %sum_4: f32[2] = aten.add.Tensor(%sum_2, %sum_3)
//   %y_3: f32[2]+4 = aten.mul.Scalar(%sum_3, 10)
//   %y_4: f32[3, 2] = aten.select_scatter.default(%y_2, %y_3, 0, 2)
//   %last_1: f32[3, 2] = aten.stack.default([%y, %y_1, %y_3])
//   %add: f32[2] = aten.add.Scalar(%sum_4, 100)
//   return %y_4, %add, %add, %last_1
// }

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 20.0 30.0 40.0 50.0]
// input 1: f32[2][1]+0 = [106.0 110.0]
// output 0: f32[2][1]+0 = [106.0 110.0], on the storage of input 1
// output 1: f32[3, 2][2, 1]+0 = [0.0 10.0 20.0 30.0 40.0 50.0]

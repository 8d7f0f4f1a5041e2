// What is written through a detached tensor is differentiated where that tensor is read, through whatever view.
// run: functionalize, grad, run
graph(%x: f32[2, 2], %y: f32[2]) {
  %b: f32[2, 2] = aten.mul.Tensor(%x, 2)
  %d: f32[2, 2] = aten.detach.default(%b)
  %s: f32[2] = aten.select.int(%d, 0, 0)
  %m: f32[2] = aten.mul_.Tensor(%s, %y)
  %l: f32[] = aten.sum.default(%d)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%x: f32[2, 2], %y: f32[2]) {
//   %b: f32[2, 2] = aten.mul.Tensor(%x, 2)
//   %d: f32[2, 2] = aten.detach.default(%b)
//   %s: f32[2] = aten.select.int(%d, 0, 0)
//   %m: f32[2] = aten.mul.Tensor(%s, %y)
//   %m_1: f32[2, 2] = aten.detach.default(%b)
//   %m_2: f32[2, 2] = aten.select_scatter.default(%m_1, %m, 0, 0)
//   %l: f32[] = aten.sum.default(%m_2)
//   return %l
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %y
//
// graph(%x: f32[2, 2], %y: f32[2]) {
//   %b: f32[2, 2] = aten.mul.Tensor(%x, 2)
//   %d: f32[2, 2] = aten.detach.default(%b)
//   %s: f32[2] = aten.select.int(%d, 0, 0)
//   %m: f32[2] = aten.mul.Tensor(%s, %y)
//   %m_1: f32[2, 2] = aten.detach.default(%b)
//   %m_2: f32[2, 2] = aten.select_scatter.default(%m_1, %m, 0, 0)
//   %l: f32[] = aten.sum.default(%m_2)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[2, 2][0, 0] = aten.expand.default(%grad_1, [2, 2])
//   %grad_3: f32[2][0] = aten.select.int(%grad_2, 0, 0)
//   %grad_4: f32[2] = aten.mul.Tensor(%grad_3, %s)
//   %grad_5: f32[2, 2] = aten.full.default([2, 2], 0, dtype=f32)
//   return %l, %grad_5, %grad_4
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [12.0]

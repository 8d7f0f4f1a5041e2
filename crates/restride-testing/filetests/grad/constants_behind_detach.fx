// What is computed with a detached tensor that constants were written to is no path for the gradient.
// run: functionalize, grad, run
graph(%x: f32[2, 2], %y: f32[2]) {
  %b: f32[2, 2] = aten.mul.Tensor(%x, 2)
  %d: f32[2, 2] = aten.detach.default(%b)
  %s: f32[2] = aten.select.int(%d, 0, 0)
  %m: f32[2] = aten.mul_.Tensor(%s, 3)
  %c: f32[2, 2] = aten.mul.Tensor(%d, %x)
  %t: f32[2] = aten.select.int(%d, 0, 1)
  %n: f32[2] = aten.mul_.Tensor(%t, %y)
  %u: f32[] = aten.sum.default(%n)
  %v: f32[] = aten.sum.default(%c)
  %l: f32[] = aten.add.Tensor(%u, %v)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%x: f32[2, 2], %y: f32[2]) {
//   %b: f32[2, 2] = aten.mul.Tensor(%x, 2)
//   %d: f32[2, 2] = aten.detach.default(%b)
//   %s: f32[2] = aten.select.int(%d, 0, 0)
//   %m: f32[2] = aten.mul.Tensor(%s, 3)
//   %m_1: f32[2, 2] = aten.detach.default(%b)
//   %m_2: f32[2, 2] = aten.select_scatter.default(%m_1, %m, 0, 0)
//   %c: f32[2, 2] = aten.mul.Tensor(%m_2, %x)
//   %t: f32[2]+2 = aten.select.int(%m_2, 0, 1)
//   %n: f32[2]+2 = aten.mul.Tensor(%t, %y)
//   %u: f32[] = aten.sum.default(%n)
//   %v: f32[] = aten.sum.default(%c)
//   %l: f32[] = aten.add.Tensor(%u, %v)
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
//   %m: f32[2] = aten.mul.Tensor(%s, 3)
//   %m_1: f32[2, 2] = aten.detach.default(%b)
//   %m_2: f32[2, 2] = aten.select_scatter.default(%m_1, %m, 0, 0)
//   %c: f32[2, 2] = aten.mul.Tensor(%m_2, %x)
//   %t: f32[2]+2 = aten.select.int(%m_2, 0, 1)
//   %n: f32[2]+2 = aten.mul.Tensor(%t, %y)
//   %u: f32[] = aten.sum.default(%n)
//   %v: f32[] = aten.sum.default(%c)
//   %l: f32[] = aten.add.Tensor(%u, %v)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[2, 2][0, 0] = aten.expand.default(%grad_1, [2, 2])
//   %grad_3: f32[1] = aten.reshape.default(%grad, [1])
//   %grad_4: f32[2][0] = aten.expand.default(%grad_3, [2])
//   %grad_5: f32[2] = aten.mul.Tensor(%grad_4, %t)
//   %grad_6: f32[2, 2] = aten.mul.Tensor(%grad_2, %m_2)
//   return %l, %grad_6, %grad_5
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [38.0]

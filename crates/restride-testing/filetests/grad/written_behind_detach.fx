// What is written through a detached tensor is differentiated where that is read: not said in one graph if another view reads it.
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
//   %m_1: f32[2, 2] = aten.select_scatter.default(%b, %m, 0, 0)
//   %l: f32[2, 2] = aten.detach.default(%m_1)
//   %l_1: f32[] = aten.sum.default(%l)
//   return %l_1
// }

// == grad
// error: a detached tensor that something was written through which is differentiated (at %l = aten.detach.default); clone the detached tensor before writing through it

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [12.0]

// Some bytes of an element are written: the value changes, the gradient does not.
// run: functionalize, grad, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %v: i8[16] = aten.view.dtype(%a, dtype=i8)
  %s: i8[1]+5 = aten.slice.Tensor(%v, 0, 5, 6)
  %f: i8[1]+5 = aten.fill_.Scalar(%s, 3)
  %l: f32[] = aten.sum.default(%a)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%x: f32[4]) {
//   %a: f32[4] = aten.mul.Tensor(%x, 2)
//   %v: i8[16] = aten.view.dtype(%a, i8)
//   %s: i8[1]+5 = aten.slice.Tensor(%v, 0, 5, 6)
//   %f: i8[1]+5 = aten.fill.Scalar(%s, 3)
//   %f_1: f32[4] = aten.detach.default(%a)
//   %f_2: i8[16] = aten.view.dtype(%f_1, i8)
//   %f_3: i8[16] = aten.slice_scatter.default(%f_2, %f, 0, 5, 6)
//   %f_4: f32[4] = aten.view.dtype(%f_3, f32)
//   %l: f32[4] = restride.with_history.default(%f_4, %a)
//   %l_1: f32[] = aten.sum.default(%l)
//   return %l_1
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
//
// graph(%x: f32[4]) {
//   %a: f32[4] = aten.mul.Tensor(%x, 2)
//   %v: i8[16] = aten.view.dtype(%a, i8)
//   %s: i8[1]+5 = aten.slice.Tensor(%v, 0, 5, 6)
//   %f: i8[1]+5 = aten.fill.Scalar(%s, 3)
//   %f_1: f32[4] = aten.detach.default(%a)
//   %f_2: i8[16] = aten.view.dtype(%f_1, i8)
//   %f_3: i8[16] = aten.slice_scatter.default(%f_2, %f, 0, 5, 6)
//   %f_4: f32[4] = aten.view.dtype(%f_3, f32)
//   %l_1: f32[] = aten.sum.default(%f_4)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f32[4][0] = aten.expand.default(%grad_1, [4])
//   %grad_3: f32[] = aten.full.default([], 2, dtype=f32)
//   %grad_4: f32[4] = aten.mul.Tensor(%grad_2, %grad_3)
//   return %l_1, %grad_4
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[][]+0 = [12.00018310546875]

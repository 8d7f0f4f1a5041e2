// Some bytes of an element are written: no rule says what its gradient becomes.
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
//   %f_1: i8[16] = aten.view.dtype(%a, i8)
//   %f_2: i8[16] = aten.slice_scatter.default(%f_1, %f, 0, 5, 6)
//   %f_3: f32[4] = aten.view.dtype(%f_2, f32)
//   %l: f32[] = aten.sum.default(%f_3)
//   return %l
// }

// == grad
// error: a write to some bytes of elements that are differentiated, by way of a view of another item size (at %f_2 = aten.slice_scatter.default); write whole elements, or to a copy of the view

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[][]+0 = [12.00018310546875]

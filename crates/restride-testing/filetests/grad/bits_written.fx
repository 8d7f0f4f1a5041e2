// What is written as bits of another element type is a constant; the other cells keep their gradients.
// run: functionalize, grad, run
graph(%x: f64[2, 3]) {
  %b: f64[2, 3] = aten.mul.Tensor(%x, 2)
  %v: i32[2, 6] = aten.view.dtype(%b, dtype=i32)
  %s: i32[1, 6] = aten.slice.Tensor(%v, 0, 0, 1)
  %m: i32[1, 6] = aten.mul_.Tensor(%s, 0)
  %w: f32[2, 6] = aten.view.dtype(%b, dtype=f32)
  %r: f32[2, 2][6, 1]+2 = aten.slice.Tensor(%w, 1, 2, 4)
  %n: f32[2, 2][6, 1]+2 = aten.mul_.Tensor(%r, %r)
  %q: f64[2, 3] = aten.mul.Tensor(%b, %b)
  %l: f64[] = aten.sum.default(%q)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%x: f64[2, 3]) {
//   %b: f64[2, 3] = aten.mul.Tensor(%x, 2)
//   %v: i32[2, 6] = aten.view.dtype(%b, i32)
//   %s: i32[1, 6] = aten.slice.Tensor(%v, 0, 0, 1)
//   %m: i32[1, 6] = aten.mul.Tensor(%s, 0)
//   %m_1: f64[1, 3] = aten.view.dtype(%m, f64)
//   %m_2: f64[2, 3] = aten.slice_scatter.default(%b, %m_1, 0, 0, 1)
//   %w: f32[2, 6] = aten.view.dtype(%m_2, f32)
//   %r: f32[2, 2][6, 1]+2 = aten.slice.Tensor(%w, 1, 2, 4)
//   %n: f32[2, 2][6, 1]+2 = aten.mul.Tensor(%r, %r)
//   %n_1: f64[2, 1][3, 1]+1 = aten.view.dtype(%n, f64)
//   %n_2: f64[2, 3] = aten.slice_scatter.default(%m_2, %n_1, 1, 1, 2)
//   %q: f64[2, 3] = aten.mul.Tensor(%n_2, %n_2)
//   %l: f64[] = aten.sum.default(%q)
//   return %l
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
//
// graph(%x: f64[2, 3]) {
//   %b: f64[2, 3] = aten.mul.Tensor(%x, 2)
//   %v: i32[2, 6] = aten.view.dtype(%b, i32)
//   %s: i32[1, 6] = aten.slice.Tensor(%v, 0, 0, 1)
//   %m: i32[1, 6] = aten.mul.Tensor(%s, 0)
//   %m_1: f64[1, 3] = aten.view.dtype(%m, f64)
//   %m_2: f64[2, 3] = aten.slice_scatter.default(%b, %m_1, 0, 0, 1)
//   %w: f32[2, 6] = aten.view.dtype(%m_2, f32)
//   %r: f32[2, 2][6, 1]+2 = aten.slice.Tensor(%w, 1, 2, 4)
//   %n: f32[2, 2][6, 1]+2 = aten.mul.Tensor(%r, %r)
//   %n_1: f64[2, 1][3, 1]+1 = aten.view.dtype(%n, f64)
//   %n_2: f64[2, 3] = aten.slice_scatter.default(%m_2, %n_1, 1, 1, 2)
//   %q: f64[2, 3] = aten.mul.Tensor(%n_2, %n_2)
//   %l: f64[] = aten.sum.default(%q)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f64[2, 3][0, 0] = aten.expand.default(%grad_1, [2, 3])
//   %grad_3: f64[2, 3] = aten.mul.Tensor(%grad_2, %n_2)
//   %grad_4: f64[2, 3] = aten.mul.Tensor(%grad_2, %n_2)
//   %grad_5: f64[2, 3] = aten.add.Tensor(%grad_3, %grad_4)
//   %grad_6: f64[2, 1] = aten.full.default([2, 1], 0, dtype=f64)
//   %grad_7: f64[2, 3] = aten.slice_scatter.default(%grad_5, %grad_6, 1, 1, 2)
//   %grad_9: f64[1, 3] = aten.full.default([1, 3], 0, dtype=f64)
//   %grad_10: f64[2, 3] = aten.slice_scatter.default(%grad_7, %grad_9, 0, 0, 1)
//   %grad_11: f64[] = aten.full.default([], 2, dtype=f64)
//   %grad_12: f64[2, 3] = aten.mul.Tensor(%grad_10, %grad_11)
//   return %l, %grad_12
// }

// == run
// input 0: f64[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f64[][]+0 = [150995080.0]

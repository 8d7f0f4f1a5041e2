// A write through a view of another element type changes values and not the gradient, as in PyTorch.
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
//   %m_1: f64[2, 3] = aten.detach.default(%b)
//   %m_2: f64[1, 3] = aten.view.dtype(%m, f64)
//   %m_3: f64[2, 3] = aten.slice_scatter.default(%m_1, %m_2, 0, 0, 1)
//   %n: f64[2, 3] = restride.with_history.default(%m_3, %b)
//   %w: f32[2, 6] = aten.view.dtype(%n, f32)
//   %r: f32[2, 2][6, 1]+2 = aten.slice.Tensor(%w, 1, 2, 4)
//   %n_1: f32[2, 2][6, 1]+2 = aten.mul.Tensor(%r, %r)
//   %n_2: f64[2, 1][3, 1]+1 = aten.view.dtype(%n_1, f64)
//   %n_3: f64[2, 3] = aten.slice_scatter.default(%m_3, %n_2, 1, 1, 2)
//   %q: f64[2, 3] = restride.with_history.default(%n_3, %n)
//   %q_1: f64[2, 3] = aten.mul.Tensor(%q, %q)
//   %l: f64[] = aten.sum.default(%q_1)
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
//   %m_1: f64[2, 3] = aten.detach.default(%b)
//   %m_2: f64[1, 3] = aten.view.dtype(%m, f64)
//   %m_3: f64[2, 3] = aten.slice_scatter.default(%m_1, %m_2, 0, 0, 1)
//   %w: f32[2, 6] = aten.view.dtype(%m_3, f32)
//   %r: f32[2, 2][6, 1]+2 = aten.slice.Tensor(%w, 1, 2, 4)
//   %n_1: f32[2, 2][6, 1]+2 = aten.mul.Tensor(%r, %r)
//   %n_2: f64[2, 1][3, 1]+1 = aten.view.dtype(%n_1, f64)
//   %n_3: f64[2, 3] = aten.slice_scatter.default(%m_3, %n_2, 1, 1, 2)
//   %q_1: f64[2, 3] = aten.mul.Tensor(%n_3, %n_3)
//   %l: f64[] = aten.sum.default(%q_1)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f64[2, 3][0, 0] = aten.expand.default(%grad_1, [2, 3])
//   %grad_3: f64[2, 3] = aten.mul.Tensor(%grad_2, %n_3)
//   %grad_4: f64[2, 3] = aten.mul.Tensor(%grad_2, %n_3)
//   %grad_5: f64[2, 3] = aten.add.Tensor(%grad_3, %grad_4)
//   %grad_6: f64[] = aten.full.default([], 2, dtype=f64)
//   %grad_7: f64[2, 3] = aten.mul.Tensor(%grad_5, %grad_6)
//   return %l, %grad_7
// }

// == run
// input 0: f64[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f64[][]+0 = [150995080.0]

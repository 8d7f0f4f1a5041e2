// Columns of rows whose number is not known are other cells than other columns, though the rows of each batch begin anew.
// run: functionalize
symbol b in [1, inf]
symbol h in [1, inf]
symbol w in [1, inf]

graph(%p: f32[b, 21, h, w]) {
  %v: f32[b, 3, 7, h, w] = aten.view.default(%p, [b, 3, 7, h, w])
  %t: f32[b, 3, h, w, 7][21*h*w, 7*h*w, w, 1, h*w] = aten.permute.default(%v, [0, 1, 3, 4, 2])
  %s: f32[b, 3, h, w, 7] = aten.clone.default(%t, memory_format=contiguous_format)
  %y: f32[b, 3*h*w, 7] = aten.view.default(%s, [b, -1, 7])
  %classes: f32[b, 3*h*w, 2][21*h*w, 7, 1]+5 = aten.slice.Tensor(%y, 2, 5, 7, 1)
  %object: f32[b, 3*h*w, 1][21*h*w, 7, 1]+4 = aten.slice.Tensor(%y, 2, 4, 5, 1)
  %m: f32[b, 3*h*w, 2][21*h*w, 7, 1]+5 = aten.mul_.Tensor(%classes, %object)
  return %y
}

// == functionalize
// stage: functional
// symbol b in [1, inf]
// symbol h in [1, inf]
// symbol w in [1, inf]
// output 0: user as view f32[b, 3*h*w, 7] of base 1
// output 1: base
//
// graph(%p: f32[b, 21, h, w]) {
//   %v: f32[b, 3, 7, h, w] = aten.view.default(%p, [b, 3, 7, h, w])
//   %t: f32[b, 3, h, w, 7][21*h*w, 7*h*w, w, 1, h*w] = aten.permute.default(%v, [0, 1, 3, 4, 2])
//   %s: f32[b, 3, h, w, 7] = aten.clone.default(%t, memory_format=contiguous_format)
//   %y: f32[b, 3*h*w, 7] = aten.view.default(%s, [b, -1, 7])
//   %classes: f32[b, 3*h*w, 2][21*h*w, 7, 1]+5 = aten.slice.Tensor(%y, 2, 5, 7)
//   %object: f32[b, 3*h*w, 1][21*h*w, 7, 1]+4 = aten.slice.Tensor(%y, 2, 4, 5)
//   %m: f32[b, 3*h*w, 2][21*h*w, 7, 1]+5 = aten.mul.Tensor(%classes, %object)
//   %m_1: f32[b, 3, h, w, 7] = aten.as_strided_scatter.default(%s, %m, [b, 3*h*w, 2], [21*h*w, 7, 1], 5)
//   %v_1: f32[b, 3*h*w, 7] = aten.reshape.default(%m_1, [b, 3*h*w, 7])
//   return %v_1, %m_1
// }

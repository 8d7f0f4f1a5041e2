// run: functionalize, run
// The body sees what the iterations before it wrote, through the slice and through the whole tensor.
graph(%x: f32[3, 2]) {
  %all: f32[3, 2] = higher_order.map_impl(@each, [%x], [%x])
  return %all
}

graph @each(%s: f32[2], %x: f32[3, 2]) {
  %first: f32[2] = aten.select.int(%x, 0, 0)
  %add_: f32[2] = aten.add_.Tensor(%s, %first)
  %fill_: f32[2] = aten.fill_.Scalar(%first, 7)
  %y: f32[2] = aten.clone.default(%s)
  return %y
}

// == functionalize
// stage: functional
// output 0: mutation of %x
//
// graph(%x: f32[3, 2]) {
//   %add_: f32[2] = aten.select.int(%x, 0, 0)
//   %first: f32[2] = aten.select.int(%x, 0, 0)
//   %add: f32[2] = aten.add.Tensor(%add_, %first)
//   %add__1: f32[3, 2] = aten.select_scatter.default(%x, %add, 0, 0)
//   %fill_: f32[2] = aten.select.int(%add__1, 0, 0)
//   %fill: f32[2] = aten.fill.Scalar(%fill_, 7)
//   %fill__1: f32[3, 2] = aten.select_scatter.default(%add__1, %fill, 0, 0)
//   %y: f32[2] = aten.select.int(%fill__1, 0, 0)
//   %y_1: f32[2] = aten.clone.default(%y)
//   %add__2: f32[2]+2 = aten.select.int(%fill__1, 0, 1)
//   %first_1: f32[2] = aten.select.int(%fill__1, 0, 0)
//   %add_1: f32[2]+2 = aten.add.Tensor(%add__2, %first_1)
//   %add__3: f32[3, 2] = aten.select_scatter.default(%fill__1, %add_1, 0, 1)
//   %fill_1: f32[2] = aten.fill.Scalar(%first_1, 7)
//   %fill__2: f32[3, 2] = aten.select_scatter.default(%add__3, %fill_1, 0, 0)
//   %y_2: f32[2] = aten.clone.default(%add_1)
//   %add__4: f32[2]+4 = aten.select.int(%fill__2, 0, 2)
//   %first_2: f32[2] = aten.select.int(%fill__2, 0, 0)
//   %add_2: f32[2]+4 = aten.add.Tensor(%add__4, %first_2)
//   %add__5: f32[3, 2] = aten.select_scatter.default(%fill__2, %add_2, 0, 2)
//   %fill_2: f32[2] = aten.fill.Scalar(%first_2, 7)
//   %fill__3: f32[3, 2] = aten.select_scatter.default(%add__5, %fill_2, 0, 0)
//   %y_3: f32[2] = aten.clone.default(%add_2)
//   %all: f32[3, 2] = aten.stack.default([%y_1, %y_2, %y_3])
//   return %fill__3, %all
// }

// == run
// input 0: f32[3, 2][2, 1]+0 = [7.0 7.0 9.0 10.0 11.0 12.0]
// output 0: f32[3, 2][2, 1]+0 = [7.0 7.0 9.0 10.0 11.0 12.0]

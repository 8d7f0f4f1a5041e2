// PyTorch fills the diagonal as a view of its own: other cells of a negated tensor with a cell twice stay. A wrapped diagonal goes
// on by the target's strides, here beyond its columns.
// run: functionalize, run
graph(%x: f32[6], %m: f32[7, 4], %p: f32[7, 4]) {
  %w: f32[3, 4][1, 1] = aten.unfold.default(%x, 0, 4, 1)
  %n: f32[3, 4][1, 1] = aten._neg_view.default(%w)
  %f: f32[3, 4][1, 1] = aten.fill_diagonal_.default(%n, 7)
  %d: f32[7, 2][4, 1] = aten.slice.Tensor(%m, 1, 0, 2)
  %g: f32[7, 2][4, 1] = aten.fill_diagonal_.default(%d, 50, True)
  %h: f32[7, 4] = aten.fill_diagonal_.default(%p, 60, True)
  return %g, %h
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: mutation of %m
// output 2: mutation of %p
// output 3: user as view f32[7, 2][4, 1] of input %m
// output 4: user as view f32[7, 4] of input %p
//
// graph(%x: f32[6], %m: f32[7, 4], %p: f32[7, 4]) {
//   %v: f32[3][2] = aten.slice.Tensor(%x, 0, 0, 5, 2)
//   %v_1: f32[3][2] = aten.neg.default(%v)
//   %fill: f32[3][2] = aten.fill.Scalar(%v_1, 7)
//   %v_2: f32[3][2] = aten.neg.default(%fill)
//   %v_3: f32[6] = aten.slice_scatter.default(%x, %v_2, 0, 0, 5, 2)
//   %v_4: f32[2][5] = aten.as_strided.default(%m, [2], [5], 0)
//   %fill_1: f32[2][5] = aten.fill.Scalar(%v_4, 50)
//   %v_5: f32[7, 4] = aten.as_strided_scatter.default(%m, %fill_1, [2], [5], 0)
//   %v_6: f32[3][5]+12 = aten.as_strided.default(%v_5, [3], [5], 12)
//   %fill_2: f32[3][5]+12 = aten.fill.Scalar(%v_6, 50)
//   %v_7: f32[7, 4] = aten.as_strided_scatter.default(%v_5, %fill_2, [3], [5], 12)
//   %h: f32[7, 4] = restride.fill_diagonal.default(%p, 60, True)
//   %v_8: f32[7, 2][4, 1] = aten.slice.Tensor(%v_7, 1, 0, 2)
//   return %v_3, %v_7, %h, %v_8, %h
// }

// == run
// input 0: f32[6][1]+0 = [-7.0 1.0 -7.0 3.0 -7.0 5.0]
// input 1: f32[7, 4][4, 1]+0 = [50.0 1.0 2.0 3.0 4.0 50.0 6.0 7.0 8.0 9.0 10.0 11.0 50.0 13.0 14.0 15.0 16.0 50.0 18.0 19.0 20.0 21.0 50.0 23.0 24.0 25.0 26.0 27.0]
// input 2: f32[7, 4][4, 1]+0 = [60.0 1.0 2.0 3.0 4.0 60.0 6.0 7.0 8.0 9.0 60.0 11.0 12.0 13.0 14.0 60.0 16.0 17.0 18.0 19.0 60.0 21.0 22.0 23.0 24.0 60.0 26.0 27.0]
// output 0: f32[7, 2][4, 1]+0 = [50.0 1.0 4.0 50.0 8.0 9.0 50.0 13.0 16.0 50.0 20.0 21.0 24.0 25.0], on the storage of input 1
// output 1: f32[7, 4][4, 1]+0 = [60.0 1.0 2.0 3.0 4.0 60.0 6.0 7.0 8.0 9.0 60.0 11.0 12.0 13.0 14.0 60.0 16.0 17.0 18.0 19.0 60.0 21.0 22.0 23.0 24.0 60.0 26.0 27.0], on the storage of input 2

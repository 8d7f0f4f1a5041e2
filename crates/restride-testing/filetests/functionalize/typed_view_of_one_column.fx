// PyTorch asks for the stride of a last dimension with one index: it is the view's, not that of the region it is read as.
// run: functionalize, run
graph(%x: f64[2, 3][1, 2], %y: f64[2, 1][2, 1]) {
  %a: f64[1, 1]+5 = aten.as_strided.default(%x, [1, 1], [1, 1], 5)
  %b: i32[1, 2]+10 = aten.view.dtype(%a, i32)
  %c: i32[2, 2][4, 1] = aten.view.dtype(%y, i32)
  %d: i32[2, 2][4, 1] = aten.neg_.default(%c)
  return %b, %d
}

// == functionalize
// stage: functional
// output 0: mutation of %y
// output 1: user as view i32[1, 2]+10 of input %x
// output 2: user as view i32[2, 2][4, 1] of input %y
//
// graph(%x: f64[2, 3][1, 2], %y: f64[2, 1][2, 1]) {
//   %c: i32[2, 2][4, 1] = aten.view.dtype(%y, i32)
//   %d: i32[2, 2][4, 1] = aten.neg.default(%c)
//   %d_2: f64[2, 1][2, 1] = aten.view.dtype(%d, f64)
//   %v: f64[2, 1][1, 2]+4 = aten.slice.Tensor(%x, 1, 2, 3)
//   %v_1: f64[1, 1][1, 2]+5 = aten.slice.Tensor(%v, 0, 1, 2)
//   %v_2: f64[1, 1] = aten.clone.default(%v_1, memory_format=contiguous_format)
//   %b: i32[1, 2]+10 = aten.view.dtype(%v_2, i32)
//   return %d_2, %b, %d
// }

// == run
// input 0: f64[2, 3][1, 2]+0 = [0.0 2.0 4.0 1.0 3.0 5.0]
// input 1: f64[2, 1][2, 1]+0 = [0.0 -2.0]
// output 0: i32[1, 2][2, 1]+10 = [0 1075052544], on the storage of input 0
// output 1: i32[2, 2][4, 1]+0 = [0 0 0 -1073741824], on the storage of input 1

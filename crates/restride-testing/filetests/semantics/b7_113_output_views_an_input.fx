// An output that is a view of an input is in the input's memory: a view by steps, and one that no chain of views gives.
// run: functionalize, run
graph(%x: f32[2, 4]) {
  %t: f32[4, 2][1, 4] = aten.transpose.int(%x, 0, 1)
  %v: f32[2, 2][2, 4]+1 = aten.slice.Tensor(%t, 0, 1, 4, 2)
  %s: f32[3][3]+1 = aten.as_strided.default(%x, [3], [3], 1)
  return %v, %s
}

// == functionalize
// stage: functional
// output 0: user as view f32[2, 2][2, 4]+1 of input %x
// output 1: user as view f32[3][3]+1 of input %x
//
// graph(%x: f32[2, 4]) {
//   %t: f32[4, 2][1, 4] = aten.transpose.int(%x, 0, 1)
//   %v: f32[2, 2][2, 4]+1 = aten.slice.Tensor(%t, 0, 1, 4, 2)
//   %v_1: f32[3][3]+1 = aten.as_strided.default(%x, [3], [3], 1)
//   return %v, %v_1
// }

// == run
// input 0: f32[2, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[2, 2][2, 4]+1 = [1.0 5.0 3.0 7.0], on the storage of input 0
// output 1: f32[3][3]+1 = [1.0 4.0 7.0], on the storage of input 0

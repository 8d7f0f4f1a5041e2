// `flip.out` and `relu.out` compute their results apart and copy them, cell after cell where `out` has windows.
// run: functionalize, run
graph(%x: f32[5], %y: f32[2, 2]) {
  %w: f32[2, 2][1, 1] = aten.as_strided.default(%x, [2, 2], [1, 1])
  %f: f32[2, 2][1, 1] = aten.flip.out(%y, [0, 1], out=%w)
  %v: f32[2, 2][1, 1]+2 = aten.as_strided.default(%x, [2, 2], [1, 1], 2)
  %r: f32[2, 2][1, 1]+2 = aten.relu.out(%w, out=%v)
  return %r
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2, 2][1, 1]+2 of input %x
//
// graph(%x: f32[5], %y: f32[2, 2]) {
//   %f: f32[2, 2] = aten.flip.default(%y, [0, 1])
//   %v_1: f32[2] = aten.select.int(%f, 0, 0)
//   %v_2: f32[5] = aten.slice_scatter.default(%x, %v_1, 0, 0, 2)
//   %v_4: f32[2]+2 = aten.select.int(%f, 0, 1)
//   %v_5: f32[5] = aten.slice_scatter.default(%v_2, %v_4, 0, 1, 3)
//   %r: f32[2, 2][1, 1] = aten.as_strided.default(%v_5, [2, 2], [1, 1], 0)
//   %r_1: f32[2, 2] = aten.relu.default(%r)
//   %v_7: f32[2] = aten.select.int(%r_1, 0, 0)
//   %v_8: f32[5] = aten.slice_scatter.default(%v_5, %v_7, 0, 2, 4)
//   %v_10: f32[2]+2 = aten.select.int(%r_1, 0, 1)
//   %v_11: f32[5] = aten.slice_scatter.default(%v_8, %v_10, 0, 3, 5)
//   %v_12: f32[2, 2][1, 1]+2 = aten.as_strided.default(%v_11, [2, 2], [1, 1], 2)
//   return %v_11, %v_12
// }

// == run
// input 0: f32[5][1]+0 = [3.0 1.0 3.0 1.0 0.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2, 2][1, 1]+2 = [3.0 1.0 1.0 0.0], on the storage of input 0

// Operands of a wider type: PyTorch computes in that type, on all of the target at once, and copies the result back.
// run: functionalize, run
graph(%x: f32[4], %y: f64[3, 2]) {
  %w: f32[3, 2][1, 1] = aten.as_strided.default(%x, [3, 2], [1, 1])
  %z: f32[3, 2][1, 1] = aten.add_.Tensor(%w, %y)
  return %x
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[4] of input %x
//
// graph(%x: f32[4], %y: f64[3, 2]) {
//   %z: f32[3, 2][1, 1] = aten.as_strided.default(%x, [3, 2], [1, 1], 0)
//   %z_1: f64[3, 2] = aten.add.Tensor(%z, %y)
//   %z_2: f32[3, 2] = aten._to_copy.default(%z_1, dtype=f32)
//   %v_1: f32[2] = aten.select.int(%z_2, 0, 0)
//   %v_2: f32[4] = aten.slice_scatter.default(%x, %v_1, 0, 0, 2)
//   %v_4: f32[2]+2 = aten.select.int(%z_2, 0, 1)
//   %v_5: f32[4] = aten.slice_scatter.default(%v_2, %v_4, 0, 1, 3)
//   %v_7: f32[2]+4 = aten.select.int(%z_2, 0, 2)
//   %v_8: f32[4] = aten.slice_scatter.default(%v_5, %v_7, 0, 2, 4)
//   return %v_8, %v_8
// }

// == run
// input 0: f32[4][1]+0 = [0.0 3.0 6.0 8.0]
// input 1: f64[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[4][1]+0 = [0.0 3.0 6.0 8.0], on the storage of input 0

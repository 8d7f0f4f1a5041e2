// After a write into it, a slice with steps and a view of the slice lie where eager PyTorch lays them.
// run: functionalize, run
graph(%a: f32[3, 6]) {
  %x: f32[3, 6] = aten.neg.default(%a)
  %s: f32[3, 3][6, 2]+1 = aten.slice.Tensor(%x, 1, 1, 6, 2)
  %w: f32[3, 3][6, 2]+1 = aten.add_.Tensor(%s, 10)
  %v: f32[2, 3][6, 2]+7 = aten.slice.Tensor(%s, 0, 1, 3)
  %z: f32[2, 3][6, 2]+7 = aten.zero_.default(%v)
  %t: f32[3]+7 = aten.as_strided.default(%v, [3], [1])
  return %s, %v, %t
}

// == functionalize
// stage: functional
// output 0: user as view f32[3, 3][6, 2]+1 of base 3
// output 1: user as view f32[2, 3][6, 2]+7 of base 3
// output 2: user as view f32[3]+7 of base 3
// output 3: base
//
// graph(%a: f32[3, 6]) {
//   %x: f32[3, 6] = aten.neg.default(%a)
//   %s: f32[3, 3][6, 2]+1 = aten.slice.Tensor(%x, 1, 1, 6, 2)
//   %w: f32[3, 3][6, 2]+1 = aten.add.Tensor(%s, 10)
//   %w_1: f32[3, 6] = aten.slice_scatter.default(%x, %w, 1, 1, 6, 2)
//   %v: f32[2, 3][6, 2]+7 = aten.slice.Tensor(%w, 0, 1, 3)
//   %z: f32[2, 3][6, 2]+7 = aten.zero.default(%v)
//   %z_1: f32[3, 6] = aten.as_strided_scatter.default(%w_1, %z, [2, 3], [6, 2], 7)
//   %v_1: f32[3, 3][6, 2]+1 = aten.slice.Tensor(%z_1, 1, 1, 6, 2)
//   %v_2: f32[3, 3][6, 1]+1 = aten.slice.Tensor(%z_1, 1, 1, 4)
//   %v_3: f32[3]+7 = aten.select.int(%v_2, 0, 1)
//   return %v_1, %z, %v_3, %z_1
// }

// == run
// input 0: f32[3, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0]
// output 0: f32[3, 3][6, 2]+1 = [9.0 7.0 5.0 0.0 0.0 0.0 0.0 0.0 0.0]
// output 1: f32[2, 3][6, 2]+7 = [0.0 0.0 0.0 0.0 0.0 0.0], on the storage of output 0
// output 2: f32[3][1]+7 = [0.0 -8.0 0.0], on the storage of output 0

// Of 16-bit floats PyTorch scatters into a copy of all of the target in f32 and copies it back: where windows overlap, what
// the later ones held before comes back. Of f32 only the cells that are reached are written.
// run: functionalize, run
graph(%x: bf16[22], %h: f16[8], %index: i64[3]) {
  %i: i64[3, 1] = aten.view.default(%index, [3, 1])
  %k: i64[3, 13][1, 0] = aten.expand.default(%i, [3, 13])
  %w: bf16[5, 13][2, 1] = aten.unfold.default(%x, 0, 13, 2)
  %s: bf16[5, 13][2, 1] = aten.scatter_.value(%w, 0, %k, 40)
  %o: f16[3, 3] = aten.ones.default([3, 3], dtype=f16)
  %v: f16[3, 4][2, 1] = aten.unfold.default(%h, 0, 4, 2)
  %p: i64[3, 3][1, 0] = aten.expand.default(%i, [3, 3])
  %a: f16[3, 4][2, 1] = aten.scatter_add_.default(%v, 0, %p, %o)
  return %s, %a
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: mutation of %h
// output 2: user as view bf16[5, 13][2, 1] of input %x
// output 3: user as view f16[3, 4][2, 1] of input %h
//
// graph(%x: bf16[22], %h: f16[8], %index: i64[3]) {
//   %w: bf16[5, 13][2, 1] = aten.unfold.default(%x, 0, 13, 2)
//   %i: i64[3, 1] = aten.view.default(%index, [3, 1])
//   %k: i64[3, 13][1, 0] = aten.expand.default(%i, [3, 13])
//   %s: bf16[5, 13] = aten.scatter.value(%w, 0, %k, 40)
//   %v_1: bf16[13] = aten.select.int(%s, 0, 0)
//   %v_2: bf16[22] = aten.slice_scatter.default(%x, %v_1, 0, 0, 13)
//   %v_4: bf16[13]+13 = aten.select.int(%s, 0, 1)
//   %v_5: bf16[22] = aten.slice_scatter.default(%v_2, %v_4, 0, 2, 15)
//   %v_7: bf16[13]+26 = aten.select.int(%s, 0, 2)
//   %v_8: bf16[22] = aten.slice_scatter.default(%v_5, %v_7, 0, 4, 17)
//   %v_10: bf16[13]+39 = aten.select.int(%s, 0, 3)
//   %v_11: bf16[22] = aten.slice_scatter.default(%v_8, %v_10, 0, 6, 19)
//   %v_13: bf16[13]+52 = aten.select.int(%s, 0, 4)
//   %v_14: bf16[22] = aten.slice_scatter.default(%v_11, %v_13, 0, 8, 21)
//   %o: f16[3, 3] = aten.ones.default([3, 3], dtype=f16)
//   %v_15: f16[3, 4][2, 1] = aten.unfold.default(%h, 0, 4, 2)
//   %p: i64[3, 3][1, 0] = aten.expand.default(%i, [3, 3])
//   %a: f16[3, 4] = aten.scatter_add.default(%v_15, 0, %p, %o)
//   %v_17: f16[4] = aten.select.int(%a, 0, 0)
//   %v_18: f16[8] = aten.slice_scatter.default(%h, %v_17, 0, 0, 4)
//   %v_20: f16[4]+4 = aten.select.int(%a, 0, 1)
//   %v_21: f16[8] = aten.slice_scatter.default(%v_18, %v_20, 0, 2, 6)
//   %v_23: f16[4]+8 = aten.select.int(%a, 0, 2)
//   %v_24: f16[8] = aten.slice_scatter.default(%v_21, %v_23, 0, 4, 8)
//   %v_25: bf16[5, 13][2, 1] = aten.as_strided.default(%v_14, [5, 13], [2, 1], 0)
//   %v_26: f16[3, 4][2, 1] = aten.as_strided.default(%v_24, [3, 4], [2, 1], 0)
//   return %v_14, %v_24, %v_25, %v_26
// }

// == run
// input 0: bf16[22][1]+0 = [40.0 40.0 40.0 40.0 40.0 40.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0]
// input 1: f16[8][1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0 7.0 7.0]
// input 2: i64[3][1]+0 = [0 1 2]
// output 0: bf16[5, 13][2, 1]+0 = [40.0 40.0 40.0 40.0 40.0 40.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 40.0 40.0 40.0 40.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 40.0 40.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0], on the storage of input 0
// output 1: f16[3, 4][2, 1]+0 = [1.0 2.0 3.0 4.0 3.0 4.0 5.0 6.0 5.0 6.0 7.0 7.0], on the storage of input 1

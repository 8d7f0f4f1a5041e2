// A lazily negated target that has several elements in one cell: a copy of it is written, and copied back.
// run: functionalize, run
graph(%x: f32[4], %y: f32[3, 2]) {
  %w: f32[3, 2][1, 1] = aten.as_strided.default(%x, [3, 2], [1, 1])
  %n: f32[3, 2][1, 1] = aten._neg_view.default(%w)
  %a: f32[3, 2][1, 1] = aten.add_.Tensor(%n, %y)
  return %a
}

// == functionalize
// stage: functional
// output 0: mutation of %x
//
// graph(%x: f32[4], %y: f32[3, 2]) {
//   %a: f32[3, 2][1, 1] = aten.as_strided.default(%x, [3, 2], [1, 1], 0)
//   %a_1: f32[3, 2][1, 1] = aten.neg.default(%a)
//   %a_2: f32[3, 2] = aten.add.Tensor(%a_1, %y)
//   %v_2: f32[2] = aten.select.int(%a_2, 0, 0)
//   %v_3: f32[2] = aten.neg.default(%v_2)
//   %v_4: f32[4] = aten.slice_scatter.default(%x, %v_3, 0, 0, 2)
//   %v_7: f32[2]+2 = aten.select.int(%a_2, 0, 1)
//   %v_8: f32[2]+1 = aten.neg.default(%v_7)
//   %v_9: f32[4] = aten.slice_scatter.default(%v_4, %v_8, 0, 1, 3)
//   %v_12: f32[2]+4 = aten.select.int(%a_2, 0, 2)
//   %v_13: f32[2]+2 = aten.neg.default(%v_12)
//   %v_14: f32[4] = aten.slice_scatter.default(%v_9, %v_13, 0, 2, 4)
//   %v_15: f32[3, 2][1, 1] = aten.as_strided.default(%v_14, [3, 2], [1, 1], 0)
//   %v_16: f32[3, 2][1, 1] = aten.neg.default(%v_15)
//   %v_17: f32[3, 2] = aten.clone.default(%v_16)
//   return %v_14, %v_17
// }

// == run
// input 0: f32[4][1]+0 = [-0.0 -1.0 -2.0 -2.0]
// input 1: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][2, 1]+0 = [0.0 1.0 1.0 2.0 2.0 2.0]

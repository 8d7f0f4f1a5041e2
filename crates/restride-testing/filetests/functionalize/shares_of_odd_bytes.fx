// Inputs of two element types on a storage that is no whole number of the larger one.
// run: functionalize, run
// share: %b %a
graph(%b: u8[9], %a: i32[2]) {
  %v: u8[6]+3 = aten.slice.Tensor(%b, 0, 3, 9)
  %w: u8[6]+3 = aten.fill_.Scalar(%v, 64)
  %n: i32[2] = aten.neg_.default(%a)
  return %b
}

// == functionalize
// stage: functional
// input %storage_b_a: storage of %b, %a
// output 0: mutation of %storage_b_a
// output 1: user as view u8[9] of input %storage_b_a
//
// graph(%b: u8[9], %a: i32[2], %storage_b_a: u8[9]) {
//   %v: u8[6]+3 = aten.slice.Tensor(%storage_b_a, 0, 3, 9)
//   %w: u8[6]+3 = aten.fill.Scalar(%v, 64)
//   %w_1: u8[9] = aten.slice_scatter.default(%storage_b_a, %w, 0, 3, 9)
//   %n: u8[8] = aten.slice.Tensor(%w_1, 0, 0, 8)
//   %n_1: i32[2] = aten.view.dtype(%n, i32)
//   %n_2: i32[2] = aten.neg.default(%n_1)
//   %n_3: u8[8] = aten.view.dtype(%n_2, u8)
//   %n_4: u8[9] = aten.slice_scatter.default(%w_1, %n_3, 0, 0, 8)
//   return %n_4, %n_4
// }

// == run
// input 0: u8[9][1]+0 = [0 255 253 191 192 191 191 191 64]
// input 1: i32[2][1]+0 = [-1073873152 -1077952576], on the storage of input 0
// output 0: u8[9][1]+0 = [0 255 253 191 192 191 191 191 64], on the storage of input 0

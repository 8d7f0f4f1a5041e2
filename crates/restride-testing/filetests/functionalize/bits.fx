// A write through a view of another element type.
// run: functionalize, run
graph(%a: i32[2, 2]) {
  %x: i32[2, 2] = aten.clone.default(%a)
  %b: u8[2, 8] = aten.view.dtype(%x, u8)
  %c: u8[2][8]+1 = aten.select.int(%b, 1, 1)
  %w: u8[2][8]+1 = aten.fill_.Scalar(%c, 1)
  return %x
}

// == functionalize
// stage: functional
//
// graph(%a: i32[2, 2]) {
//   %x: i32[2, 2] = aten.clone.default(%a)
//   %b: u8[2, 8] = aten.view.dtype(%x, u8)
//   %c: u8[2][8]+1 = aten.select.int(%b, 1, 1)
//   %w: u8[2][8]+1 = aten.fill.Scalar(%c, 1)
//   %w_1: u8[2, 8] = aten.view.dtype(%x, u8)
//   %w_2: u8[2, 8] = aten.select_scatter.default(%w_1, %w, 1, 1)
//   %w_3: i32[2, 2] = aten.view.dtype(%w_2, i32)
//   return %w_3
// }

// == run
// input 0: i32[2, 2][2, 1]+0 = [0 1 2 3]
// output 0: i32[2, 2][2, 1]+0 = [256 1 258 3]

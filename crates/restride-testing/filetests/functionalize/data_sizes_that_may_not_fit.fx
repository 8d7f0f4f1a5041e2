// Whether the slices fit is known at the run alone: two numbers of the witness that differ refuse nothing.
// run: functionalize, run
symbol u0 in [0, 8]
symbol u1 in [0, 8]

graph(%n: i64[2], %x: f32[8], %y: f32[8]) {
  %first: i64[] = aten.select.int(%n, 0, 0)
  %two: i64[] = aten.add.Scalar(%first, 2)
  %item: Sym(u0) = aten.item.default(%two)
  %second: i64[]+1 = aten.select.int(%n, 0, 1)
  %one: i64[] = aten.add.Scalar(%second, 1)
  %item_1: Sym(u1) = aten.item.default(%one)
  %src: f32[u0] = aten.slice.Tensor(%x, 0, 0, u0)
  %dst: f32[u1] = aten.slice.Tensor(%y, 0, 0, u1)
  %copy_: f32[u1] = aten.copy_.default(%dst, %src)
  return %y
}

// == functionalize
// stage: functional
// symbol u0 in [0, 8]
// symbol u1 in [0, 8]
// output 0: mutation of %y
// output 1: user as view f32[8] of input %y
//
// graph(%n: i64[2], %x: f32[8], %y: f32[8]) {
//   %first: i64[] = aten.select.int(%n, 0, 0)
//   %two: i64[] = aten.add.Scalar(%first, 2)
//   %item: Sym(u0) = aten.item.default(%two)
//   %second: i64[]+1 = aten.select.int(%n, 0, 1)
//   %one: i64[] = aten.add.Scalar(%second, 1)
//   %item_1: Sym(u1) = aten.item.default(%one)
//   %dst: f32[u1] = aten.slice.Tensor(%y, 0, 0, u1)
//   %src: f32[u0] = aten.slice.Tensor(%x, 0, 0, u0)
//   %copy: f32[u1] = aten.copy.default(%dst, %src)
//   %copy_: f32[8] = aten.slice_scatter.default(%y, %copy, 0, 0, u1)
//   return %copy_, %copy_
// }

// == run
// input 0: i64[2][1]+0 = [0 1]
// input 1: f32[8][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// input 2: f32[8][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[8][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0], on the storage of input 2

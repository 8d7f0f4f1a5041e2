// Views of an intermediate are written: all of it is the tensor itself, other views are told by their layout.
// ops: mylib::one(Tensor(a!) x) -> ()
// run: verify, functionalize
graph(%a: f32[3, 4]) {
  %b: f32[3, 4] = aten.neg.default(%a)
  %all: f32[3, 4] = aten.slice.Tensor(%b, 0, 0, 9223372036854775807)
  mylib.one.default(%all)
  %cols: f32[3, 2][4, 2]+1 = aten.slice.Tensor(%b, 1, 1, 9223372036854775807, 2)
  mylib.one.default(%cols)
  %row: f32[4] = aten.select.int(%b, 0, 0)
  %last: f32[3][4]+3 = aten.select.int(%b, 1, 3)
  return %b, %row, %last
}

// == verify
// ok

// == functionalize
// stage: functional
// output 0: user as view f32[3, 4] of base 3
// output 1: user as view f32[4] of base 3
// output 2: user as view f32[3][4]+3 of base 3
// output 3: base
//
// graph(%a: f32[3, 4]) {
//   %b: f32[3, 4] = aten.neg.default(%a)
//   %b_1: f32[3, 4] = mylib.one_functional.default([%b], [0, -1])
//   %b_1_1: f32[3, 4] = mylib.one_functional.default([%b_1], [0, 2, 3, 2, 4, 2, 1])
//   %row: f32[4] = aten.select.int(%b_1_1, 0, 0)
//   %last: f32[3][4]+3 = aten.select.int(%b_1_1, 1, 3)
//   return %b_1_1, %row, %last, %b_1_1
// }

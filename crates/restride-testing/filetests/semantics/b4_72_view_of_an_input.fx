// Views of an input, which itself is a view of something larger: its new content is declared.
// ops: mylib::one(Tensor(a!) x) -> ()
// run: verify, functionalize
graph(%a: f32[3, 4][8, 2]+5) {
  %t: f32[4, 3][2, 8]+5 = aten.t.default(%a)
  %c: f32[3][8]+7 = aten.select.int(%t, 0, 1)
  mylib.one.default(%c)
  mylib.one.default(%a)
  return %c
}

// == verify
// ok

// == functionalize
// stage: functional
// output 0: mutation of %a
// output 1: user as view f32[3][8]+7 of input %a
//
// graph(%a: f32[3, 4][8, 2]+5) {
//   %a_1: f32[3, 4][8, 2]+5 = mylib.one_functional.default([%a], [0, 1, 3, 8, 7])
//   %a_1_1: f32[3, 4][8, 2]+5 = mylib.one_functional.default([%a_1], [0, -1])
//   %v: f32[3][8]+7 = aten.select.int(%a_1_1, 1, 1)
//   return %a_1_1, %v
// }

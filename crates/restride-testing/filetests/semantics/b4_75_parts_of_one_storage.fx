// Two inputs on one storage that do not meet, both written.
// ops: mylib::two(Tensor(a!) a, Tensor(b!) b) -> ()
// share: %a %b
// run: verify, functionalize
graph(%a: f32[4], %b: f32[4]+4) {
  mylib.two.default(%a, %b)
  %s: f32[4] = aten.add.Tensor(%a, %b)
  return %s
}

// == verify
// ok

// == functionalize
// output 0: mutation of %a
// output 1: mutation of %b
//
// graph(%a: f32[4], %b: f32[4]+4) {
//   %a_1: f32[4], %b_1: f32[4]+4 = mylib.two_functional.default([%a, %b], [0, -1, 1, -1])
//   %s: f32[4] = aten.add.Tensor(%a_1, %b_1)
//   return %a_1, %b_1, %s
// }

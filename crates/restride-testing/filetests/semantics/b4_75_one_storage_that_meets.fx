// Two inputs on one storage that overlap, both written.
// ops: mylib::two(Tensor(a!) a, Tensor(b!) b) -> ()
// share: %a %b
// run: verify, functionalize
graph(%a: f32[4], %b: f32[4]+2) {
  mylib.two.default(%a, %b)
  %s: f32[4] = aten.add.Tensor(%a, %b)
  return %s
}

// == verify
// ok

// == functionalize
// stage: functional
// input %storage_a_b: storage of %a, %b
// output 0: mutation of %storage_a_b
//
// graph(%a: f32[4], %b: f32[4]+2, %storage_a_b: f32[6]) {
//   %storage_a_b_1: f32[6] = mylib.two_functional.default([%storage_a_b], [0, 1, 4, 1, 0, 0, 1, 4, 1, 2])
//   %s: f32[4] = aten.slice.Tensor(%storage_a_b_1, 0, 0, 4)
//   %s_1: f32[4]+2 = aten.slice.Tensor(%storage_a_b_1, 0, 2, 6)
//   %s_2: f32[4] = aten.add.Tensor(%s, %s_1)
//   return %storage_a_b_1, %s_2
// }

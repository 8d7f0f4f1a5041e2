// Views of symbolic sizes.
// ops: mylib::two(Tensor(a!) a, Tensor(b!) b) -> ()
// run: verify, functionalize
symbol s0 in [3, 99]
graph(%a: f32[s0, 4]) {
  %b: f32[s0, 4] = aten.neg.default(%a)
  %t: f32[4, s0][1, 4] = aten.t.default(%b)
  %u: f32[2, 4] = aten.slice.Tensor(%b, 0, 0, 2)
  mylib.two.default(%t, %u)
  return %b
}

// == verify
// ok

// == functionalize
// symbol s0 in [3, 99]
//
// graph(%a: f32[s0, 4]) {
//   %b: f32[s0, 4] = aten.neg.default(%a)
//   %b_1: f32[s0, 4] = mylib.two_functional.default([%b], [0, 2, 4, s0, 1, 4, 0, 0, 2, 2, 4, 4, 1, 0])
//   return %b_1
// }

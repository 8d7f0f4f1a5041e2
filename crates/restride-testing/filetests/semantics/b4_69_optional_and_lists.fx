// Optional arguments that are written and not given, a list of holes, an empty list, defaults, an argument called self.
// ops: mylib::maybe(Tensor(a!)? x, Tensor[] xs, Tensor(b!) y, *, Tensor(c!)? z=None, int n=2, str s="ab") -> ()
// ops: mylib::holes(Tensor(a!)?[] xs) -> ()
// ops: mylib::named(Tensor(a!) self, Tensor other) -> ()
// run: verify, functionalize
graph(%a: f32[3], %b: f32[3]) {
  %c: f32[3] = aten.neg.default(%a)
  mylib.maybe.default(None, [%a, %c], %b, z=None, n=3, s="ab")
  mylib.maybe.default(%c, [], %b, z=%a, n=2, s="x")
  mylib.holes.default([None, %c, None])
  mylib.holes.default([])
  mylib.named.default(%c, %b)
  return %c
}

// == verify
// ok

// == functionalize
// output 0: mutation of %a
// output 1: mutation of %b
//
// graph(%a: f32[3], %b: f32[3]) {
//   %c: f32[3] = aten.neg.default(%a)
//   %b_1: f32[3] = mylib.maybe_functional.default([%b], [-1, 0, -1, -1], [%a, %c], n=3)
//   %c_1: f32[3], %b_1_1: f32[3], %a_1: f32[3] = mylib.maybe_functional.default([%c, %b_1, %a], [0, -1, 1, -1, 2, -1], [], s="x")
//   %c_1_1: f32[3] = mylib.holes_functional.default([%c_1], [3, -1, 0, -1, -1])
//   %c_1_1_1: f32[3] = mylib.named_functional.default([%c_1_1], [0, -1], %b_1_1)
//   return %a_1, %b_1_1, %c_1_1_1
// }

// The written tensor has a size that is learnt from data.
// ops: mylib::one(Tensor(a!) x) -> ()
// run: verify, functionalize
symbol u0 in [0, inf]
graph(%a: i64[5]) {
  %n: i64[u0, 1][1, u0] = aten.nonzero.default(%a)
  %f: f32[u0, 1][1, u0] = aten._to_copy.default(%n, dtype=f32)
  %c: f32[u0] = aten.select.int(%f, 1, 0)
  mylib.one.default(%c)
  return %f
}

// == verify
// ok

// == functionalize
// symbol u0 in [0, inf]
//
// graph(%a: i64[5]) {
//   %n: i64[u0, 1][1, u0] = aten.nonzero.default(%a)
//   %f: f32[u0, 1][1, u0] = aten._to_copy.default(%n, dtype=f32)
//   %f_1: f32[u0, 1][1, u0] = mylib.one_functional.default([%f], [0, 1, u0, 1, 0])
//   return %f_1
// }

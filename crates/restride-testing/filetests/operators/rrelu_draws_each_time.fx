// Two calls of `rrelu` that train are two draws; the in-place form writes its slopes too.
// run: functionalize
graph(%x: f32[4], %n: f32[4]) {
  %a: f32[4] = aten.rrelu.default(%x, training=True)
  %b: f32[4] = aten.rrelu.default(%x, training=True)
  %c: f32[4] = aten.rrelu_with_noise_.default(%x, %n, training=True)
  return %a, %b
}

// == functionalize
// output 0: mutation of %x
// output 1: mutation of %n
//
// graph(%x: f32[4], %n: f32[4]) {
//   %a: f32[4] = aten.rrelu.default(%x, 0.125, 0.3333333333333333, True) !key 0
//   %b: f32[4] = aten.rrelu.default(%x, 0.125, 0.3333333333333333, True) !key 1
//   %c: f32[4], %c_1: f32[4] = aten.rrelu_with_noise_functional.default(%x, %n, 0.125, 0.3333333333333333, True) !key 2
//   return %c, %c_1, %a, %b
// }

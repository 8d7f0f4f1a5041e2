// Lazily conjugated and negated members of a list are all copied before the first member runs.
// run: functionalize, run
graph(%x: c64[2], %y: f32[2]) {
  %c: c64[2] = aten.conj.default(%x)
  aten._foreach_add_.List([%x, %x], [%c, %c])
  %n: f32[2] = aten._neg_view.default(%y)
  aten._foreach_mul_.List([%y, %y], [%n, %n])
  return
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: mutation of %y
//
// graph(%x: c64[2], %y: f32[2]) {
//   %v: c64[2] = aten.conj_physical.default(%x)
//   %add: c64[2] = aten.add.Tensor(%x, %v)
//   %add_1: c64[2] = aten.add.Tensor(%add, %v)
//   %v_1: f32[2] = aten.neg.default(%y)
//   %mul: f32[2] = aten.mul.Tensor(%y, %v_1)
//   %mul_1: f32[2] = aten.mul.Tensor(%mul, %v_1)
//   return %add_1, %mul_1
// }

// == run
// input 0: c64[2][1]+0 = [(0.0+0.0j) (3.0+0.0j)]
// input 1: f32[2][1]+0 = [0.0 1.0]

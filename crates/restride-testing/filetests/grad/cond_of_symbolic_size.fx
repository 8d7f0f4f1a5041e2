// Branches are given a size as a number; their gradients read it as a symbol.
// run: grad
symbol s0 in [1, 16]

graph(%p: bool[], %x: f64[s0, 2]) {
  %n: Sym(s0) = aten.sym_size.int(%x, 0)
  %r: f64[s0, 2] = higher_order.cond(%p, @yes, @no, [%n, %x])
  %sum: f64[] = aten.sum.default(%r)
  return %sum
}
graph @yes(%n: Sym(s0), %x: f64[s0, 2]) {
  %m: f64[s0, 2] = aten.mul.Tensor(%x, s0)
  %c: f64[s0, 2] = aten.cumsum.default(%m, 0)
  return %c
}
graph @no(%n: Sym(s0), %x: f64[s0, 2]) {
  %a: i64[s0] = aten.arange.default(s0)
  %u: i64[s0, 1] = aten.unsqueeze.default(%a, 1)
  %m: f64[s0, 2] = aten.mul.Tensor(%x, %u)
  return %m
}

// == grad
// stage: functional
// symbol s0 in [1, 16]
// output 0: loss
// output 1: gradient of %x
//
// graph(%p: bool[], %x: f64[s0, 2]) {
//   %r: f64[s0, 2] = higher_order.cond(%p, @graph1, @graph2, [%x])
//   %sum: f64[] = aten.sum.default(%r)
//   %grad: f64[] = aten.full.default([], 1, dtype=f64)
//   %grad_1: f64[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f64[s0, 2][0, 0] = aten.expand.default(%grad_1, [s0, 2])
//   %grad_3: f64[s0, 2] = higher_order.cond(%p, @graph3, @graph4, [%x, %grad_2])
//   return %sum, %grad_3
// }
//
// graph @graph1(%x: f64[s0, 2]) {
//   %m: f64[s0, 2] = aten.mul.Tensor(%x, s0)
//   %c: f64[s0, 2] = aten.cumsum.default(%m, 0)
//   return %c
// }
//
// graph @graph2(%x: f64[s0, 2]) {
//   %a: i64[s0] = aten.arange.default(s0)
//   %u: i64[s0, 1] = aten.unsqueeze.default(%a, 1)
//   %m: f64[s0, 2] = aten.mul.Tensor(%x, %u)
//   return %m
// }
//
// graph @graph3(%x: f64[s0, 2], %grad_output_0: f64[s0, 2]) {
//   %grad: f64[s0, 2] = aten.flip.default(%grad_output_0, [0])
//   %grad_1: f64[s0, 2] = aten.cumsum.default(%grad, 0)
//   %grad_2: f64[s0, 2] = aten.flip.default(%grad_1, [0])
//   %grad_3: f64[] = aten.full.default([], s0, dtype=f64)
//   %grad_4: f64[s0, 2] = aten.mul.Tensor(%grad_2, %grad_3)
//   return %grad_4
// }
//
// graph @graph4(%x: f64[s0, 2], %grad_output_0: f64[s0, 2]) {
//   %a: i64[s0] = aten.arange.default(s0)
//   %u: i64[s0, 1] = aten.unsqueeze.default(%a, 1)
//   %grad: f64[s0, 2] = aten.mul.Tensor(%grad_output_0, %u)
//   return %grad
// }

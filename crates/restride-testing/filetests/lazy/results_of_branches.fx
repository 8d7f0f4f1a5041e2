// Results of branches are conjugate views: `resolve_conj` copies them, as eager PyTorch does, and the write stays in the copy.
// run: functionalize, run
graph(%p: bool[], %a: c64[2]) {
  %r: c64[2] = higher_order.cond(%p, @yes, @no, [%a])
  %v: c64[2] = aten.resolve_conj.default(%r)
  %w: c64[2] = aten.add_.Scalar(%v, 1)
  return %r, %v
}
graph @yes(%x: c64[2]) {
  %m: c64[2] = aten.mul.Tensor(%x, %x)
  %c: c64[2] = aten._conj.default(%m)
  return %c
}
graph @no(%x: c64[2]) {
  %m: c64[2] = aten.mul.Tensor(%x, 2)
  %c: c64[2] = aten._conj.default(%m)
  return %c
}

// == functionalize
// stage: functional
//
// graph(%p: bool[], %a: c64[2]) {
//   %r: c64[2] = higher_order.cond(%p, @graph1, @graph2, [%a])
//   %w: c64[2] = aten.add.Scalar(%r, 1)
//   return %r, %w
// }
//
// graph @graph1(%x: c64[2]) {
//   %m: c64[2] = aten.mul.Tensor(%x, %x)
//   %v: c64[2] = aten.conj_physical.default(%m)
//   return %v
// }
//
// graph @graph2(%x: c64[2]) {
//   %m: c64[2] = aten.mul.Tensor(%x, 2)
//   %v: c64[2] = aten.conj_physical.default(%m)
//   return %v
// }

// == run
// input 0: bool[][]+0 = [false]
// input 1: c64[2][1]+0 = [(0.0+0.0j) (1.0+0.0j)]
// output 0: c64[2][1]+0 = [(0.0-0.0j) (2.0-0.0j)]
// output 1: c64[2][1]+0 = [(1.0+0.0j) (3.0+0.0j)]

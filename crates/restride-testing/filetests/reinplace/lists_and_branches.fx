// Members of functional lists, and results of branches and loops, are memory like any other: no copies.
// run: reinplace, run

graph(%a: f32[3, 4], %b: f32[3, 4], %p: bool[], %i: i64[]) {
  %l0: f32[3, 4], %l1: f32[3, 4] = aten._foreach_mul.Scalar([%a, %b], 3)
  %m0: f32[3, 4], %m1: f32[3, 4] = aten._foreach_add.List([%l0, %l1], [%b, %a])
  %c: f32[3, 4] = higher_order.cond(%p, @yes, @no, [%m0])
  %w: f32[3, 4] = aten.relu_.default(%c)
  %n: i64[], %x: f32[3, 4] = higher_order.while_loop(@test, @step, [%i, %m1], [])
  %r: f32[4]+4 = aten.select.int(%x, 0, 1)
  %s: f32[4]+4 = aten.add_.Tensor(%r, 1)
  return %w, %x
}

graph @yes(%v: f32[3, 4]) {
  %a: f32[3, 4] = aten.mul.Tensor(%v, 2)
  %b: f32[3, 4] = aten.add_.Tensor(%a, 1)
  %r: f32[4] = aten.select.int(%a, 0, 0)
  %c: f32[4] = aten.neg_.default(%r)
  return %a
}

graph @no(%v: f32[3, 4]) {
  %a: f32[3, 4] = aten.sub.Tensor(%v, 1)
  return %a
}

graph @test(%i: i64[], %v: f32[3, 4]) {
  %t: bool[] = aten.lt.Scalar(%i, 3)
  return %t
}

graph @step(%i: i64[], %v: f32[3, 4]) {
  %n: i64[] = aten.add.Scalar(%i, 1)
  %a: f32[3, 4] = aten.mul.Tensor(%v, 2)
  %b: f32[3, 4] = aten.add_.Tensor(%a, 1)
  return %n, %a
}

// == reinplace
// graph(%a: f32[3, 4], %b: f32[3, 4], %p: bool[], %i: i64[]) {
//   %l0: f32[3, 4] = aten.mul.Scalar(%a, 3)
//   %l1: f32[3, 4] = aten.mul.Scalar(%b, 3)
//   %m0: f32[3, 4] = aten.add_.Tensor(%l0, %b)
//   %m1: f32[3, 4] = aten.add_.Tensor(%l1, %a)
//   %c: f32[3, 4] = higher_order.cond(%p, @graph1, @graph2, [%m0])
//   %w: f32[3, 4] = aten.relu_.default(%c)
//   %n: i64[], %x: f32[3, 4] = higher_order.while_loop(@graph3, @graph4, [%i, %m1], [])
//   %r: f32[4]+4 = aten.select.int(%x, 0, 1)
//   %s: f32[4]+4 = aten.add_.Tensor(%r, 1)
//   return %w, %x
// }
//
// graph @graph1(%v: f32[3, 4]) {
//   %a: f32[3, 4] = aten.mul.Tensor(%v, 2)
//   %b: f32[3, 4] = aten.add_.Tensor(%a, 1)
//   %r: f32[4] = aten.select.int(%b, 0, 0)
//   %c: f32[4] = aten.neg_.default(%r)
//   return %b
// }
//
// graph @graph2(%v: f32[3, 4]) {
//   %a: f32[3, 4] = aten.sub.Tensor(%v, 1)
//   return %a
// }
//
// graph @graph3(%i: i64[], %v: f32[3, 4]) {
//   %t: bool[] = aten.lt.Scalar(%i, 3)
//   return %t
// }
//
// graph @graph4(%i: i64[], %v: f32[3, 4]) {
//   %n: i64[] = aten.add.Scalar(%i, 1)
//   %a: f32[3, 4] = aten.mul.Tensor(%v, 2)
//   %b: f32[3, 4] = aten.add_.Tensor(%a, 1)
//   return %n, %b
// }

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 1: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 2: bool[][]+0 = [false]
// input 3: i64[][]+0 = [0]
// output 0: f32[3, 4][4, 1]+0 = [0.0 3.0 7.0 11.0 15.0 19.0 23.0 27.0 31.0 35.0 39.0 43.0]
// output 1: f32[3, 4][4, 1]+0 = [7.0 39.0 71.0 103.0 136.0 168.0 200.0 232.0 263.0 295.0 327.0 359.0]

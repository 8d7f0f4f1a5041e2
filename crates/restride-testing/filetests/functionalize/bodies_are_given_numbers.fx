// Numbers that are learnt from data are operands of bodies, as PyTorch's exporter writes them, and of bodies in bodies.
// run: functionalize, run
symbol u0
symbol u1

graph(%x: f32[4, 3], %n: i64[]) {
  %three: i64[] = aten.add.Scalar(%n, 3)
  %item: Sym(u0) = aten.item.default(%three)
  %some: bool[] = aten.ne.Scalar(%three, 0)
  %y: f32[4, 3] = higher_order.cond(%some, @yes, @no, [%item, %x])
  %zero: i64[] = aten.scalar_tensor.default(0, dtype=i64)
  %zeros: f32[3] = aten.zeros.default([3])
  %sum: f32[3], %count: i64[] = higher_order.while_loop(@condition, @body, [%zeros, %zero], [%y, %item])
  return %sum
}

graph @yes(%k: Sym(u0), %a: f32[4, 3]) {
  %more: bool[] = aten.any.default(%a)
  %b: f32[4, 3] = higher_order.cond(%more, @in, @out, [%a, %k])
  return %b
}

graph @no(%k: Sym(u0), %a: f32[4, 3]) {
  %b: f32[4, 3] = aten.add.Scalar(%a, u0)
  return %b
}

graph @in(%a: f32[4, 3], %k: Sym(u0)) {
  %b: f32[4, 3] = aten.mul.Scalar(%a, u0)
  return %b
}

graph @out(%a: f32[4, 3], %k: Sym(u0)) {
  %b: f32[4, 3] = aten.clone.default(%a)
  return %b
}

graph @condition(%carried: f32[3], %i: i64[], %x: f32[4, 3], %k: Sym(u0)) {
  %end: i64[] = aten.scalar_tensor.default(u0, dtype=i64)
  %less: bool[] = aten.lt.Tensor(%i, %end)
  return %less
}

graph @body(%carried: f32[3], %i: i64[], %x: f32[4, 3], %k: Sym(u0)) {
  %at: Sym(u1) = aten.item.default(%i)
  %row: f32[3]+3*Mod(u1, 4) = aten.select.int(%x, 0, u1)
  %add: f32[3] = aten.add.Tensor(%carried, %row)
  %next: i64[] = aten.add.Scalar(%i, 1)
  return %add, %next
}

// == functionalize
// stage: functional
// symbol u0
// symbol u1
//
// graph(%x: f32[4, 3], %n: i64[]) {
//   %three: i64[] = aten.add.Scalar(%n, 3)
//   %item: Sym(u0) = aten.item.default(%three)
//   %some: bool[] = aten.ne.Scalar(%three, 0)
//   %y: f32[4, 3] = higher_order.cond(%some, @graph3, @graph4, [%item, %x])
//   %zero: i64[] = aten.scalar_tensor.default(0, dtype=i64)
//   %zeros: f32[3] = aten.zeros.default([3])
//   %sum: f32[3], %count: i64[] = higher_order.while_loop(@graph5, @graph6, [%zeros, %zero], [%y, %item])
//   return %sum
// }
//
// graph @graph3(%k: Sym(u0), %a: f32[4, 3]) {
//   %more: bool[] = aten.any.default(%a)
//   %b: f32[4, 3] = higher_order.cond(%more, @graph1, @graph2, [%a, %k])
//   return %b
// }
//
// graph @graph4(%k: Sym(u0), %a: f32[4, 3]) {
//   %b: f32[4, 3] = aten.add.Scalar(%a, u0)
//   return %b
// }
//
// graph @graph5(%carried: f32[3], %i: i64[], %x: f32[4, 3], %k: Sym(u0)) {
//   %end: i64[] = aten.scalar_tensor.default(u0, dtype=i64)
//   %less: bool[] = aten.lt.Tensor(%i, %end)
//   return %less
// }
//
// graph @graph6(%carried: f32[3], %i: i64[], %x: f32[4, 3], %k: Sym(u0)) {
//   %at: Sym(u1) = aten.item.default(%i)
//   %row: f32[3]+3*Mod(u1, 4) = aten.select.int(%x, 0, u1)
//   %add: f32[3] = aten.add.Tensor(%carried, %row)
//   %next: i64[] = aten.add.Scalar(%i, 1)
//   return %add, %next
// }
//
// graph @graph1(%a: f32[4, 3], %k: Sym(u0)) {
//   %b: f32[4, 3] = aten.mul.Scalar(%a, u0)
//   return %b
// }
//
// graph @graph2(%a: f32[4, 3], %k: Sym(u0)) {
//   %b: f32[4, 3] = aten.clone.default(%a)
//   return %b
// }

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 1: i64[][]+0 = [0]
// output 0: f32[3][1]+0 = [27.0 36.0 45.0]

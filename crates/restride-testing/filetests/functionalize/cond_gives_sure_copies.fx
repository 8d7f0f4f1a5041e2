// run: functionalize, run
// Branches return copies of their operand: `to` of another type, `contiguous` of a transpose. They may be returned and written.
graph(%x: f32[2, 3], %p: bool[]) {
  %d: f64[2, 3] = higher_order.cond(%p, @double, @twice, [%x])
  %t: f32[3, 2] = higher_order.cond(%p, @turned, @turned_twice, [%x])
  %w: f32[3, 2] = aten.add_.Scalar(%t, 1)
  return %d, %w
}

graph @double(%a: f32[2, 3]) {
  %c: f64[2, 3] = aten.to.dtype(%a, f64)
  return %c
}

graph @twice(%a: f32[2, 3]) {
  %c: f64[2, 3] = aten.to.dtype(%a, f64)
  %m: f64[2, 3] = aten.mul.Scalar(%c, 2)
  return %m
}

graph @turned(%a: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.transpose.int(%a, 0, 1)
  %c: f32[3, 2] = aten.contiguous.default(%t)
  return %c
}

graph @turned_twice(%a: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.transpose.int(%a, 0, 1)
  %c: f32[3, 2] = aten.contiguous.default(%t)
  %m: f32[3, 2] = aten.mul.Scalar(%c, 2)
  return %m
}

// == functionalize
// stage: functional
//
// graph(%x: f32[2, 3], %p: bool[]) {
//   %d: f64[2, 3] = higher_order.cond(%p, @graph1, @graph2, [%x])
//   %t: f32[3, 2] = higher_order.cond(%p, @graph3, @graph4, [%x])
//   %w: f32[3, 2] = aten.add.Scalar(%t, 1)
//   return %d, %w
// }
//
// graph @graph1(%a: f32[2, 3]) {
//   %c: f64[2, 3] = aten.to.dtype(%a, f64)
//   return %c
// }
//
// graph @graph2(%a: f32[2, 3]) {
//   %c: f64[2, 3] = aten.to.dtype(%a, f64)
//   %m: f64[2, 3] = aten.mul.Scalar(%c, 2)
//   return %m
// }
//
// graph @graph3(%a: f32[2, 3]) {
//   %t: f32[3, 2][1, 3] = aten.transpose.int(%a, 0, 1)
//   %c: f32[3, 2] = aten.contiguous.default(%t)
//   return %c
// }
//
// graph @graph4(%a: f32[2, 3]) {
//   %t: f32[3, 2][1, 3] = aten.transpose.int(%a, 0, 1)
//   %c: f32[3, 2] = aten.contiguous.default(%t)
//   %m: f32[3, 2] = aten.mul.Scalar(%c, 2)
//   return %m
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: bool[][]+0 = [false]
// output 0: f64[2, 3][3, 1]+0 = [0.0 2.0 4.0 6.0 8.0 10.0]
// output 1: f32[3, 2][2, 1]+0 = [1.0 7.0 3.0 9.0 5.0 11.0]

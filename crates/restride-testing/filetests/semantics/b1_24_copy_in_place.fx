// copy_ of the same type, of fewer sizes, of another element type, and of both.
// run: functionalize, run
graph(%a: f32[2, 2], %s: f32[2], %i: i64[2, 2], %j: i64[]) {
  %x: f32[2, 2] = aten.neg.default(%a)
  %d: f32[2][3] = aten.diagonal.default(%x)
  %r: f32[2]+2 = aten.select.int(%x, 0, 1)
  %c: f32[2]+2 = aten.copy_.default(%r, %s)
  %p: f32[2, 2] = aten.add.Tensor(%x, 0)
  %e: f32[2, 2] = aten.copy_.default(%x, %s)
  %q: f32[2] = aten.add.Tensor(%d, 0)
  %f: f32[2, 2] = aten.copy_.default(%x, %i)
  %u: f32[2, 2] = aten.add.Tensor(%x, 0)
  %g: f32[2][3] = aten.copy_.default(%d, %j)
  return %p, %q, %u, %x
}

// == functionalize
// stage: functional
//
// graph(%a: f32[2, 2], %s: f32[2], %i: i64[2, 2], %j: i64[]) {
//   %x: f32[2, 2] = aten.neg.default(%a)
//   %c: f32[2, 2] = aten.select_scatter.default(%x, %s, 0, 1)
//   %p: f32[2, 2] = aten.add.Tensor(%c, 0)
//   %e: f32[2, 2] = aten.copy.default(%c, %s)
//   %q: f32[2][3] = aten.as_strided.default(%e, [2], [3], 0)
//   %q_1: f32[2] = aten.add.Tensor(%q, 0)
//   %f: f32[2, 2] = aten.copy.default(%e, %i)
//   %u: f32[2, 2] = aten.add.Tensor(%f, 0)
//   %g: f32[2][3] = aten.as_strided.default(%f, [2], [3], 0)
//   %g_1: f32[2][3] = aten.copy.default(%g, %j)
//   %g_2: f32[2, 2] = aten.as_strided_scatter.default(%f, %g_1, [2], [3], 0)
//   return %p, %q_1, %u, %g_2
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// input 2: i64[2, 2][2, 1]+0 = [0 1 2 3]
// input 3: i64[][]+0 = [0]
// output 0: f32[2, 2][2, 1]+0 = [0.0 -1.0 0.0 1.0]
// output 1: f32[2][1]+0 = [0.0 1.0]
// output 2: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 3: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 0.0]

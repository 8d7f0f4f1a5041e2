// A 0-d operand of another type does not decide the type of a result: rows get it as a single.
// run: fuse, run
graph(%m: f32[5, 3], %g: f32[5, 3], %v: f32[5, 3], %p: f32[5, 3], %cs: f64[4], %ns: i64[3], %bs: bool[2]) {
  %c: f64[][]+3 = aten.select.int(%cs, 0, 3)
  %n: i64[][]+2 = aten.select.int(%ns, 0, 2)
  %b: bool[][]+1 = aten.select.int(%bs, 0, 1)
  %m1: f32[5, 3] = aten.lerp.Scalar(%m, %g, 0.1)
  %s: f32[5, 3] = aten.sqrt.default(%v)
  %d: f32[5, 3] = aten.div.Tensor(%s, %c)
  %e: f32[5, 3] = aten.add.Tensor(%d, 1e-08)
  %k: f32[5, 3] = aten.mul.Tensor(%m1, %n)
  %q: f32[5, 3] = aten.div.Tensor(%k, %e)
  %r: f32[5, 3] = aten.add.Tensor(%p, %q, alpha=2)
  %o: f32[5, 3] = aten.mul.Tensor(%r, %b)
  return %m1, %o
}

// == fuse
// stage: functional
//
// graph(%m: f32[5, 3], %g: f32[5, 3], %v: f32[5, 3], %p: f32[5, 3], %cs: f64[4], %ns: i64[3], %bs: bool[2]) {
//   %c: f64[]+3 = aten.select.int(%cs, 0, 3)
//   %n: i64[]+2 = aten.select.int(%ns, 0, 2)
//   %b: bool[]+1 = aten.select.int(%bs, 0, 1)
//   %m1: f32[5, 3], %o: f32[5, 3] = restride.fused.default(@graph1, [%m, %g, %v, %c, %n, %p, %b])
//   return %m1, %o
// }
//
// graph @graph1(%m: f32[5, 3], %g: f32[5, 3], %v: f32[5, 3], %c: f64[]+3, %n: i64[]+2, %p: f32[5, 3], %b: bool[]+1) {
//   %m1: f32[5, 3] = aten.lerp.Scalar(%m, %g, 0.1)
//   %s: f32[5, 3] = aten.sqrt.default(%v)
//   %d: f32[5, 3] = aten.div.Tensor(%s, %c)
//   %e: f32[5, 3] = aten.add.Tensor(%d, 1e-8)
//   %k: f32[5, 3] = aten.mul.Tensor(%m1, %n)
//   %q: f32[5, 3] = aten.div.Tensor(%k, %e)
//   %r: f32[5, 3] = aten.add.Tensor(%p, %q, alpha=2)
//   %o: f32[5, 3] = aten.mul.Tensor(%r, %b)
//   return %m1, %o
// }

// == run
// input 0: f32[5, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0]
// input 1: f32[5, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0]
// input 2: f32[5, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0]
// input 3: f32[5, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0]
// input 4: f64[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 5: i64[3][1]+0 = [0 1 2]
// input 6: bool[2][1]+0 = [false true]
// output 0: f32[5, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0]
// output 1: f32[5, 3][3, 1]+0 = [0.0 13.0 18.970561981201172 23.784610748291016 28.0 31.832815170288086 35.39387512207031 38.74901580810547 41.941123962402344 45.0 47.94733428955078 50.79949951171875 53.56922149658203 56.26661682128906 58.89988708496094]

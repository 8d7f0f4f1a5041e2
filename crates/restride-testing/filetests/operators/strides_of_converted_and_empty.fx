// PyTorch converts an operand of another type first, and the copy's strides count; ones beside no elements have stride 0.
// run: run
graph(%i: i64[3], %x: f32[2, 3][1, 2], %e: f32[0, 1, 1], %n: f32[], %m: bool[2, 3][1, 2]) {
  %w: i64[2, 3][0, 1] = aten.expand.default(%i, [2, 3])
  %a: f32[2, 3] = aten.add.Tensor(%w, %x)
  %b: f32[2, 3][1, 2] = aten.add.Tensor(%x, %w)
  %c: bool[2, 3] = aten.lt.Tensor(%w, %x)
  %d: f32[2, 3][1, 2] = aten.where.self(%m, %w, %x)
  %f: f32[0, 1, 1][1, 0, 0] = aten.add.Tensor(%e, %n)
  %g: f32[0, 1, 1] = aten.add.Tensor(%e, %e)
  return %a, %b, %c, %d, %f, %g
}

// == run
// input 0: i64[3][1]+0 = [0 1 2]
// input 1: f32[2, 3][1, 2]+0 = [0.0 2.0 4.0 1.0 3.0 5.0]
// input 2: f32[0, 1, 1][1, 1, 1]+0 = []
// input 3: f32[][]+0 = [0.0]
// input 4: bool[2, 3][1, 2]+0 = [false true true true true true]
// output 0: f32[2, 3][3, 1]+0 = [0.0 3.0 6.0 1.0 4.0 7.0]
// output 1: f32[2, 3][1, 2]+0 = [0.0 3.0 6.0 1.0 4.0 7.0]
// output 2: bool[2, 3][3, 1]+0 = [false true true true true true]
// output 3: f32[2, 3][1, 2]+0 = [0.0 1.0 2.0 0.0 1.0 2.0]
// output 4: f32[0, 1, 1][1, 0, 0]+0 = []
// output 5: f32[0, 1, 1][1, 1, 1]+0 = []

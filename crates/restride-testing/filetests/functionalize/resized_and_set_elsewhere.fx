// Inputs that are resized to more, and one set to the other between.
// run: functionalize, run
graph(%x: f32[6], %y: f32[2, 2], %k: f32[2]) {
  %n: f32[2, 2] = aten.neg.default(%y)
  %v1: f32[2, 6] = aten.resize_.default(%y, [2, 6])
  %z1: f32[2, 6] = aten.fill_.Scalar(%y, 1)
  %v2: f32[2, 6] = aten.squeeze_.default(%y)
  %v3: f32[6] = aten.set_.source_Tensor(%y, %x)
  %v4: f32[2, 2] = aten.detach.default(%n)
  %v5: f32[6] = aten.transpose_.default(%x, 0, -1)
  %v6: f32[2, 6] = aten.resize_.default(%x, [2, 6])
  %z6: f32[2, 6] = aten.fill_.Scalar(%x, 6)
  %s: f32[] = aten.sum.default(%n)
  return %s, %n, %y, %v4
}

// == functionalize
// error: %y is written or read beyond its own elements; give the inputs with --inputs, so that their storage is known

// == run
// input 0: f32[2, 6][6, 1]+0 = [6.0 6.0 6.0 6.0 6.0 6.0 6.0 6.0 6.0 6.0 6.0 6.0]
// input 1: f32[6][1]+0 = [6.0 6.0 6.0 6.0 6.0 6.0], on the storage of input 0
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [-6.0]
// output 1: f32[2, 2][2, 1]+0 = [-0.0 -1.0 -2.0 -3.0]
// output 2: f32[6][1]+0 = [6.0 6.0 6.0 6.0 6.0 6.0], on the storage of input 0
// output 3: f32[2, 2][2, 1]+0 = [-0.0 -1.0 -2.0 -3.0], on the storage of output 1

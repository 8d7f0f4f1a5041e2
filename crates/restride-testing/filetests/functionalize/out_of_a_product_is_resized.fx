// `bmm` resizes a stretched out= of other sizes before it writes it.
// run: functionalize, run
graph(%x: f32[2, 2], %y: f32[3, 2, 2]) {
  %e: f32[5, 2, 2][0, 2, 1] = aten.expand.default(%x, [5, -1, -1])
  %c: f32[3, 2, 2] = aten.bmm.out(%y, %y, out=%e)
  return %c, %e
}

// == functionalize
// error: %x is written or read beyond its own elements; give the inputs with --inputs, so that their storage is known

// == run
// input 0: f32[2, 2][2, 1]+0 = [2.0 3.0 6.0 11.0]
// input 1: f32[3, 2, 2][4, 2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[3, 2, 2][4, 2, 1]+0 = [2.0 3.0 6.0 11.0 46.0 55.0 66.0 79.0 154.0 171.0 190.0 211.0], on the storage of input 0
// output 1: f32[3, 2, 2][4, 2, 1]+0 = [2.0 3.0 6.0 11.0 46.0 55.0 66.0 79.0 154.0 171.0 190.0 211.0], on the storage of input 0

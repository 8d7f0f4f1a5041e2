// Rows are added by index.
// run: remarks, copies, run
graph(%x: f32[3, 2], %i: i64[2], %y: f32[2, 2]) {
  %a: f32[3, 2] = aten.mul.Tensor(%x, 2)
  %b: f32[3, 2] = aten.index_add.default(%a, 0, %i, %y)
  %d: f32[3, 2] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %b = aten.index_add.default(%a, 0, %i, %y)
//   computed in a dying operand, %a: taken, 24 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: i64[2][1]+0 = [0 1]
// input 2: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[3, 2][2, 1]+0 = [3.0 0.0 9.0 6.0 10.0 8.0]

// Indices of index_put that are its target.
// run: remarks, copies, run
graph(%x: i64[4], %y: i64[4]) {
  %a: i64[4] = aten.bitwise_xor.Scalar(%x, 1)
  %b: i64[4] = aten.index_put.default(%a, [%a], %y)
  %d: i64[4] = aten.mul.Tensor(%b, %x)
  return %d
}

// == remarks
// %b = aten.index_put.default(%a, [%a], %y)
//   not computed in its operand, %a: it shares only some cells with an operand, 32 bytes
// %d = aten.mul.Tensor(%b, %x)
//   computed in the output's memory: taken, 32 bytes

// == copies
// %a to the arena, for %b = aten.index_put.default, 32 bytes
//   not computed in its operand: it shares only some cells with an operand

// == run
// input 0: i64[4][1]+0 = [0 1 2 3]
// input 1: i64[4][1]+0 = [0 1 2 3]
// output 0: i64[4][1]+0 = [0 0 6 6]

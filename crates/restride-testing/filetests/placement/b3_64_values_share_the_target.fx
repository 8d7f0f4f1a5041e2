// Values of index_put that are a view of its target.
// run: remarks, copies, run
graph(%x: f32[4], %i: i64[2]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %s: f32[2]+2 = aten.slice.Tensor(%a, 0, 2, 4)
  %b: f32[4] = aten.index_put.default(%a, [%i], %s)
  %d: f32[4] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %s = aten.slice.Tensor(%a, 0, 2, 4)
//   kept as a view of its base, %a: taken, 8 bytes
// %b = aten.index_put.default(%a, [%i], %s)
//   not computed in its operand, %a: it shares only some cells with an operand, 16 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// %a to the arena, for %b = aten.index_put.default, 16 bytes
//   not computed in its operand: it shares only some cells with an operand

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: i64[2][1]+0 = [0 1]
// output 0: f32[4][1]+0 = [6.0 4.0 6.0 4.0]

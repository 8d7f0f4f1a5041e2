// An input that is not written stays as it is.
// run: remarks, copies, run
graph(%x: f32[4], %i: i64[2], %y: f32[2]) {
  %b: f32[4] = aten.index_put.default(%x, [%i], %y)
  %c: f32[4] = aten.flip.default(%b, [-1])
  return %c
}

// == remarks
// %b = aten.index_put.default(%x, [%i], %y)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %c = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// %x to the arena, for %b = aten.index_put.default, 16 bytes
//   not computed in its operand: the caller can see that memory

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: i64[2][1]+0 = [0 1]
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[4][1]+0 = [3.0 2.0 1.0 0.0]

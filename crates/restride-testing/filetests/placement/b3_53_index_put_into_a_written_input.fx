// The result is the input's new content: it is put there.
// run: remarks, copies, run
graph(%x: f32[4], %i: i64[2], %y: f32[2]) {
  %b: f32[4] = aten.index_put.default(%x, [%i], %y)
  %w: f32[4] = aten.copy_.default(%x, %b)
  return %w
}

// == remarks
// %b = aten.index_put.default(%x, [%i], %y)
//   computed in the input's memory, %x: taken, 16 bytes
// %b = aten.index_put.default(%x, [%i], %y)
//   computed in a dying operand, %x: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: i64[2][1]+0 = [0 1]
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0], on the storage of input 0

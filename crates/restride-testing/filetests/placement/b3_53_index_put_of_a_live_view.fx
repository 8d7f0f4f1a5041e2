// A view of the tensor is read later.
// run: remarks, copies, run
graph(%x: f32[4], %i: i64[2], %y: f32[2]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %v: f32[2] = aten.slice.Tensor(%a, 0, 0, 2)
  %b: f32[4] = aten.index_put.default(%a, [%i], %y)
  %c: f32[4] = aten.flip.default(%b, [-1])
  %d: f32[2] = aten.flip.default(%v, [-1])
  return %c, %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.index_put.default(%a, [%i], %y)
//   not computed in its operand, %a: still read by %d = aten.flip.default(%v, [-1]), 16 bytes
// %c = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes
// %v = aten.slice.Tensor(%a, 0, 0, 2)
//   kept as a view of its base, %a: taken, 8 bytes
// %d = aten.flip.default(%v, [-1])
//   computed in the output's memory: taken, 8 bytes

// == copies
// %a to the arena, for %b = aten.index_put.default, 16 bytes
//   not computed in its operand: still read by %d = aten.flip.default

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: i64[2][1]+0 = [0 1]
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[4][1]+0 = [6.0 4.0 1.0 0.0]
// output 1: f32[2][1]+0 = [2.0 0.0]

// Two operators, each over its own part of one storage.
// run: remarks, copies, run
graph(%x: f32[4], %i: i64[2], %y: f32[2]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %p: f32[2] = aten.slice.Tensor(%a, 0, 0, 2)
  %q: f32[2]+2 = aten.slice.Tensor(%a, 0, 2, 4)
  %b: f32[2] = aten.index_put.default(%p, [%i], %y)
  %c: f32[2] = aten.index_put.default(%q, [%i], %y)
  %d: f32[2] = aten.flip.default(%b, [-1])
  %e: f32[2] = aten.flip.default(%c, [-1])
  return %d, %e
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %p = aten.slice.Tensor(%a, 0, 0, 2)
//   kept as a view of its base, %a: taken, 8 bytes
// %b = aten.index_put.default(%p, [%i], %y)
//   computed in a dying operand, %p: taken, 8 bytes
// %q = aten.slice.Tensor(%a, 0, 2, 4)
//   kept as a view of its base, %a: taken, 8 bytes
// %c = aten.index_put.default(%q, [%i], %y)
//   computed in a dying operand, %q: taken, 8 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 8 bytes
// %e = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 8 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: i64[2][1]+0 = [0 1]
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+0 = [1.0 0.0]
// output 1: f32[2][1]+0 = [1.0 0.0]

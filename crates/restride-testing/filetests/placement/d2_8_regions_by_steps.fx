// Interleaved windows of one length never meet, which no bounding box tells.
// run: remarks, copies, run
graph(%x: f32[8]) {
  %a: f32[8] = aten.mul.Tensor(%x, 2)
  %p: f32[4][2] = aten.slice.Tensor(%a, 0, 0, 8, 2)
  %q: f32[4][2]+1 = aten.slice.Tensor(%a, 0, 1, 8, 2)
  %b: f32[4] = aten.add.Tensor(%p, 1)
  %c: f32[4] = aten.mul.Tensor(%b, %q)
  %d: f32[4] = aten.flip.default(%c, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %p = aten.slice.Tensor(%a, 0, 0, 8, 2)
//   kept as a view of its base, %a: taken, 16 bytes
// %b = aten.add.Tensor(%p, 1)
//   computed in a dying operand, %p: taken, 16 bytes
// %q = aten.slice.Tensor(%a, 0, 1, 8, 2)
//   kept as a view of its base, %a: taken, 16 bytes
// %c = aten.mul.Tensor(%b, %q)
//   computed in a dying operand, %b: taken, 16 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[8][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4][1]+0 = [182.0 90.0 30.0 2.0]

// A reshape that copies in eager PyTorch: what is written afterwards is not its operand, which is read later.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %a: f32[4, 2] = aten.mul.Tensor(%x, 2)
  %t: f32[2, 4][1, 2] = aten.t.default(%a)
  %r: f32[8] = aten.reshape.default(%t, [8])
  %b: f32[8] = aten.add_.Tensor(%r, 1)
  %e: f32[8] = aten.flip.default(%r, [-1])
  %d: f32[4, 2] = aten.flip.default(%a, [-1])
  return %e, %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %t = aten.t.default(%a)
//   kept as a view of its base, %a: taken, 32 bytes
// %r = aten.reshape.default(%t, [8])
//   kept as a view of its base, %t: taken, 32 bytes
// %b = aten.add.Tensor(%r, 1)
//   not computed in its operand, %r: still read by %d = aten.flip.default(%a, [-1]), 32 bytes
// %e = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 32 bytes
// %d = aten.flip.default(%a, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// none

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[8][1]+0 = [15.0 11.0 7.0 3.0 13.0 9.0 5.0 1.0]
// output 1: f32[4, 2][2, 1]+0 = [2.0 0.0 6.0 4.0 10.0 8.0 14.0 12.0]

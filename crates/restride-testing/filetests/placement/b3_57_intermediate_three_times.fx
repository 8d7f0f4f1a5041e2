// One intermediate is written again and again.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %b: f32[4] = aten.add_.Tensor(%a, 1)
  %c: f32[4] = aten.mul_.Tensor(%a, %x)
  %e: f32[4] = aten.sub_.Tensor(%a, %x)
  %d: f32[4] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.add.Tensor(%a, 1)
//   computed in a dying operand, %a: taken, 16 bytes
// %c = aten.mul.Tensor(%b, %x)
//   computed in a dying operand, %b: taken, 16 bytes
// %e = aten.sub.Tensor(%c, %x)
//   computed in a dying operand, %c: taken, 16 bytes
// %d = aten.flip.default(%e, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [18.0 8.0 2.0 0.0]

// PyTorch has no in-place form of this; what a kernel may write over is declared, not looked up by name.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.add.Tensor(%x, 1)
  %b: f32[4] = aten.pow.Scalar(2, %a)
  %c: f32[4] = aten.flip.default(%b, [-1])
  return %c
}

// == remarks
// %a = aten.add.Tensor(%x, 1)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.pow.Scalar(2, %a)
//   computed in a dying operand, %a: taken, 16 bytes
// %c = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [16.0 8.0 4.0 2.0]

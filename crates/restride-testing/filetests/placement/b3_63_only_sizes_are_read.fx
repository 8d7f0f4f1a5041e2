// Asking a tensor's sizes reads no element: its memory may be taken over before.
// run: remarks, copies, run
// sizes: s0=3
symbol s0 in [2, inf]
graph(%x: f32[s0, 2]) {
  %a: f32[s0, 2] = aten.mul.Tensor(%x, 2)
  %b: f32[s0, 2] = aten.add.Tensor(%a, 1)
  %n: Sym(s0) = aten.sym_size.int(%a, 0)
  %d: f32[s0, 2] = aten.flip.default(%b, [-1])
  return %d, %n
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %b = aten.add.Tensor(%a, 1)
//   not computed in its operand, %a: still read by %n = aten.sym_size.int(%a, 0), 24 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][2, 1]+0 = [3.0 1.0 7.0 5.0 11.0 9.0]
// output 1: Scalar(Int(3))

// The other operand shows the same memory in another order, so the result may not overwrite it.
// run: remarks, copies, run
graph(%x: f32[3, 3]) {
  %a: f32[3, 3] = aten.mul.Tensor(%x, 2)
  %t: f32[3, 3][1, 3] = aten.t.default(%a)
  %b: f32[3, 3] = aten.add.Tensor(%a, %t)
  %d: f32[3, 3] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 36 bytes
// %t = aten.t.default(%a)
//   kept as a view of its base, %a: taken, 36 bytes
// %b = aten.add.Tensor(%a, %t)
//   not computed in its operand, %a: it shares only some cells with an operand, 36 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 36 bytes

// == copies
// none

// == run
// input 0: f32[3, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[3, 3][3, 1]+0 = [16.0 8.0 0.0 24.0 16.0 8.0 32.0 24.0 16.0]

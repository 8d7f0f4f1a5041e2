// In-place views are views.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %a: f32[4, 2] = aten.mul.Tensor(%x, 2)
  %t: f32[2, 4][1, 2] = aten.t_.default(%a)
  %u: f32[1, 2, 4][2, 1, 2] = aten.unsqueeze_.default(%a, 0)
  %b: f32[1, 2, 4][2, 1, 2] = aten.add.Tensor(%a, 1)
  %d: f32[1, 2, 4][2, 1, 2] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %b = aten.permute.default(%a, [1, 0])
//   kept as a view of its base, %a: taken, 32 bytes
// %b_1 = aten.reshape.default(%b, [1, 2, 4])
//   kept as a view of its base, %b: taken, 32 bytes
// %b_2 = aten.add.Tensor(%b_1, 1)
//   computed in a dying operand, %b_1: taken, 32 bytes
// %d = aten.flip.default(%b_2, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// none

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[1, 2, 4][2, 1, 2]+0 = [13.0 9.0 5.0 1.0 15.0 11.0 7.0 3.0]

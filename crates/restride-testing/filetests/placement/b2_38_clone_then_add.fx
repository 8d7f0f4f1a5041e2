// A clone that is only read is no copy, and what follows takes over the memory of what dies.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.clone.default(%x)
  %b: f32[4] = aten.add.Tensor(%a, 1)
  %c: f32[4] = aten.mul.Tensor(%b, 2)
  %d: f32[4] = aten.flip.default(%c, [-1])
  return %d
}

// == remarks
// %a = aten.clone.default(%x)
//   kept as a view of its base, %x: taken, 16 bytes
// %b = aten.add.Tensor(%a, 1)
//   not computed in its operand, %a: the caller can see that memory, 16 bytes
// %c = aten.mul.Tensor(%b, 2)
//   computed in a dying operand, %b: taken, 16 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [8.0 6.0 4.0 2.0]

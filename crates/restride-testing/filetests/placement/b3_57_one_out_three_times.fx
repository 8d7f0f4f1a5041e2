// One buffer is filled again and again.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.empty.memory_format([4], dtype=f32)
  %b: f32[4] = aten.add.out(%x, %x, out=%a)
  %c: f32[4] = aten.mul.out(%a, %x, out=%a)
  %e: f32[4] = aten.sub.out(%a, %x, out=%a)
  %d: f32[4] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %b = aten.add.Tensor(%x, %x)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
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
// output 0: f32[4][1]+0 = [15.0 6.0 1.0 0.0]

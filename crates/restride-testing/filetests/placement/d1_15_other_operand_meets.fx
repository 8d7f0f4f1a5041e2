// The other operand is a window of the same memory, moved by one.
// run: remarks, copies, run
graph(%x: f32[5]) {
  %a: f32[5] = aten.mul.Tensor(%x, 2)
  %p: f32[4] = aten.slice.Tensor(%a, 0, 0, 4)
  %q: f32[4]+1 = aten.slice.Tensor(%a, 0, 1, 5)
  %b: f32[4] = aten.add.Tensor(%p, %q)
  %d: f32[4] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 20 bytes
// %p = aten.slice.Tensor(%a, 0, 0, 4)
//   kept as a view of its base, %a: taken, 16 bytes
// %q = aten.slice.Tensor(%a, 0, 1, 5)
//   kept as a view of its base, %a: taken, 16 bytes
// %b = aten.add.Tensor(%p, %q)
//   not computed in its operand, %p: it shares only some cells with an operand, 16 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[5][1]+0 = [0.0 1.0 2.0 3.0 4.0]
// output 0: f32[4][1]+0 = [14.0 10.0 6.0 2.0]

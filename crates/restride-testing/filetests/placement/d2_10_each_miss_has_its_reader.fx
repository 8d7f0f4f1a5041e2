// Two misses, each with its own later reader.
// run: remarks, copies, run
graph(%x: f32[2, 2]) {
  %a: f32[2, 2] = aten.mul.Tensor(%x, 2)
  %b: f32[2, 2] = aten.add.Tensor(%a, 1)
  %r: f32[2] = aten.select.int(%a, 0, 0)
  %c: f32[2, 2] = aten.mul.Tensor(%b, 3)
  %e: f32[2] = aten.flip.default(%r, [-1])
  %f: f32[2, 2] = aten.flip.default(%c, [-1])
  %g: f32[2, 2] = aten.sub.Tensor(%b, %c)
  %h: f32[2, 2] = aten.flip.default(%g, [-1])
  return %e, %f, %h
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.add.Tensor(%a, 1)
//   not computed in its operand, %a: still read by %e = aten.flip.default(%r, [-1]), 16 bytes
// %c = aten.mul.Tensor(%b, 3)
//   not computed in its operand, %b: still read by %g = aten.sub.Tensor(%b, %c), 16 bytes
// %r = aten.select.int(%a, 0, 0)
//   kept as a view of its base, %a: taken, 8 bytes
// %e = aten.flip.default(%r, [-1])
//   computed in the output's memory: taken, 8 bytes
// %f = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 16 bytes
// %g = aten.sub.Tensor(%b, %c)
//   computed in a dying operand, %b: taken, 16 bytes
// %h = aten.flip.default(%g, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2][1]+0 = [2.0 0.0]
// output 1: f32[2, 2][2, 1]+0 = [9.0 3.0 21.0 15.0]
// output 2: f32[2, 2][2, 1]+0 = [-6.0 -2.0 -14.0 -10.0]

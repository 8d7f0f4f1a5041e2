// Rows of an input that no strides can show in the other order: one copy, which is taken over.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %t: f32[2, 4][1, 2] = aten.t.default(%x)
  %r: f32[8] = aten.reshape.default(%t, [8])
  %b: f32[8] = aten.add_.Tensor(%r, 1)
  %e: f32[8] = aten.flip.default(%r, [-1])
  return %e
}

// == remarks
// %t = aten.t.default(%x)
//   kept as a view of its base, %x: taken, 32 bytes
// %r = aten.reshape.default(%t, [8])
//   not kept as a view of its base, %t: no strides on this buffer express the new shape, 32 bytes
// %b = aten.add.Tensor(%r, 1)
//   computed in a dying operand, %r: taken, 32 bytes
// %e = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// %r = aten.reshape.default is run, 32 bytes
//   not kept as a view of its base: no strides on this buffer express the new shape

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[8][1]+0 = [8.0 6.0 4.0 2.0 7.0 5.0 3.0 1.0]

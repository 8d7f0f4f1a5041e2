// Row-major order that no reader needs: no copy where kernels read by strides.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %a: f32[4, 2] = aten.mul.Tensor(%x, 2)
  %t: f32[2, 4][1, 2] = aten.t.default(%a)
  %r: f32[2, 4] = aten.contiguous.default(%t)
  %b: f32[2, 4] = aten.add.Tensor(%r, 1)
  %d: f32[2, 4] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %t = aten.t.default(%a)
//   kept as a view of its base, %a: taken, 32 bytes
// %r = aten.contiguous.default(%t)
//   kept as a view of its base, %t: taken, 32 bytes
// %b = aten.add.Tensor(%r, 1)
//   computed in a dying operand, %r: taken, 32 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// none

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[2, 4][4, 1]+0 = [13.0 9.0 5.0 1.0 15.0 11.0 7.0 3.0]

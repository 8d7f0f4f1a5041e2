// The bits are written as numbers of another type.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %v: i32[4] = aten.view.dtype(%a, i32)
  %w: i32[4] = aten.bitwise_or_.Scalar(%v, 1)
  %d: f32[4] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %v = aten.view.dtype(%a, i32)
//   kept as a view of its base, %a: taken, 16 bytes
// %w = aten.bitwise_or.Scalar(%v, 1)
//   computed in a dying operand, %v: taken, 16 bytes
// %w_2 = aten.view.dtype(%w, f32)
//   kept as a view of its base, %w: taken, 16 bytes
// %d_1 = aten.flip.default(%w_2, [-1])
//   computed in the output's memory: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [6.000000476837158 4.000000476837158 2.000000238418579 1.401298464324817e-45]

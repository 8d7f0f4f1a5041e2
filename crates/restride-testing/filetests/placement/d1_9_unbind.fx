// One of the rows of an unbind is written.
// run: remarks, copies, run
graph(%x: f32[3, 2]) {
  %a: f32[3, 2] = aten.mul.Tensor(%x, 2)
  %p: f32[2], %q: f32[2]+2, %r: f32[2]+4 = aten.unbind.int(%a)
  %w: f32[2]+2 = aten.add_.Tensor(%q, 1)
  %d: f32[3, 2] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %p, %q, %r = aten.unbind.int(%a)
//   kept as a view of its base, %a: taken, 24 bytes
// %w = aten.add.Tensor(%q, 1)
//   source computed in its region, %a: taken, 8 bytes
// %w = aten.add.Tensor(%q, 1)
//   computed in a dying operand, %q: taken, 8 bytes
// %w_1 = aten.select_scatter.default(%a, %w, 0, 1)
//   scatter written into its base, %a: taken, 24 bytes
// %d = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][2, 1]+0 = [2.0 0.0 7.0 5.0 10.0 8.0]

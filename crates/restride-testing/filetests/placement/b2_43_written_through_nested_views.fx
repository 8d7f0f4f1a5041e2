// The same, as a program that writes.
// run: remarks, copies, run
graph(%x: f32[4, 3]) {
  %a: f32[4, 3] = aten.mul.Tensor(%x, 2)
  %s: f32[2, 3]+3 = aten.slice.Tensor(%a, 0, 1, 3)
  %v: f32[3]+6 = aten.select.int(%s, 0, 1)
  %w: f32[3]+6 = aten.add_.Tensor(%v, 1)
  %d: f32[4, 3] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 48 bytes
// %v = aten.select.int(%a, 0, 2)
//   kept as a view of its base, %a: taken, 12 bytes
// %w = aten.add.Tensor(%v, 1)
//   source computed in its region, %a: taken, 12 bytes
// %w = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 12 bytes
// %w_1 = aten.select_scatter.default(%a, %w, 0, 2)
//   scatter written into its base, %a: taken, 48 bytes
// %d = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 48 bytes

// == copies
// none

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[4, 3][3, 1]+0 = [4.0 2.0 0.0 10.0 8.0 6.0 17.0 15.0 13.0 22.0 20.0 18.0]

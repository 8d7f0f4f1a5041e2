// The region that is read and the one that is replaced share some cells at other positions: one copy, of the region.
// run: remarks, copies, run
graph(%x: f32[4, 3]) {
  %a: f32[4, 3] = aten.mul.Tensor(%x, 2)
  %v: f32[2, 3]+3 = aten.slice.Tensor(%a, 0, 1, 3)
  %b: f32[2, 3] = aten.add.Tensor(%v, 1)
  %c: f32[4, 3] = aten.slice_scatter.default(%a, %b, 0, 0, 2)
  %d: f32[4, 3] = aten.flip.default(%c, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 48 bytes
// %v = aten.slice.Tensor(%a, 0, 1, 3)
//   kept as a view of its base, %a: taken, 24 bytes
// %b = aten.add.Tensor(%v, 1)
//   source not computed in its region, %a: it shares only some cells with an operand, 24 bytes
// %b = aten.add.Tensor(%v, 1)
//   not computed in its operand, %v: still read by %c = aten.slice_scatter.default(%a, %b, 0, 0, 2), 24 bytes
// %c = aten.slice_scatter.default(%a, %b, 0, 0, 2)
//   scatter written into its base, %a: taken, 48 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 48 bytes

// == copies
// %b to the arena, for %c = aten.slice_scatter.default, 24 bytes
//   source not computed in its region: it shares only some cells with an operand

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[4, 3][3, 1]+0 = [11.0 9.0 7.0 17.0 15.0 13.0 16.0 14.0 12.0 22.0 20.0 18.0]

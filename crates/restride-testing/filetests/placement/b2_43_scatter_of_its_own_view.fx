// A view of a region goes through an operator and back into the region: it is computed there, and nothing is copied.
// run: remarks, copies, run
graph(%x: f32[4, 3]) {
  %a: f32[4, 3] = aten.mul.Tensor(%x, 2)
  %v: f32[3]+3 = aten.select.int(%a, 0, 1)
  %b: f32[3] = aten.add.Tensor(%v, 1)
  %c: f32[4, 3] = aten.select_scatter.default(%a, %b, 0, 1)
  %d: f32[4, 3] = aten.flip.default(%c, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 48 bytes
// %v = aten.select.int(%a, 0, 1)
//   kept as a view of its base, %a: taken, 12 bytes
// %b = aten.add.Tensor(%v, 1)
//   source computed in its region, %a: taken, 12 bytes
// %b = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 12 bytes
// %c = aten.select_scatter.default(%a, %b, 0, 1)
//   scatter written into its base, %a: taken, 48 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 48 bytes

// == copies
// none

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[4, 3][3, 1]+0 = [4.0 2.0 0.0 11.0 9.0 7.0 16.0 14.0 12.0 22.0 20.0 18.0]

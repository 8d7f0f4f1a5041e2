// A region of a region: both scatters are free.
// run: remarks, copies, run
graph(%x: f32[4, 3]) {
  %a: f32[4, 3] = aten.mul.Tensor(%x, 2)
  %s: f32[2, 3]+3 = aten.slice.Tensor(%a, 0, 1, 3)
  %v: f32[3]+6 = aten.select.int(%s, 0, 1)
  %b: f32[3] = aten.add.Tensor(%v, 1)
  %t: f32[2, 3]+3 = aten.select_scatter.default(%s, %b, 0, 1)
  %c: f32[4, 3] = aten.slice_scatter.default(%a, %t, 0, 1, 3)
  %d: f32[4, 3] = aten.flip.default(%c, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 48 bytes
// %v = aten.select.int(%a, 0, 2)
//   kept as a view of its base, %a: taken, 12 bytes
// %b = aten.add.Tensor(%v, 1)
//   source computed in its region, %a: taken, 12 bytes
// %b = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 12 bytes
// %c = aten.select_scatter.default(%a, %b, 0, 2)
//   scatter written into its base, %a: taken, 48 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 48 bytes

// == copies
// none

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[4, 3][3, 1]+0 = [4.0 2.0 0.0 10.0 8.0 6.0 17.0 15.0 13.0 22.0 20.0 18.0]

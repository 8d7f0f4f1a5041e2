// Sizes that are symbols: placed for the sizes of a run.
// run: remarks, copies, run
// sizes: s0=3
symbol s0 in [2, inf]
graph(%x: f32[s0, 2]) {
  %a: f32[s0, 2] = aten.mul.Tensor(%x, 2)
  %v: f32[2]+2 = aten.select.int(%a, 0, 1)
  %b: f32[2] = aten.add.Tensor(%v, 1)
  %c: f32[s0, 2] = aten.select_scatter.default(%a, %b, 0, 1)
  %d: f32[s0, 2] = aten.flip.default(%c, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 24 bytes
// %v = aten.select.int(%a, 0, 1)
//   kept as a view of its base, %a: taken, 8 bytes
// %b = aten.add.Tensor(%v, 1)
//   source computed in its region, %a: taken, 8 bytes
// %b = aten.add.Tensor(%v, 1)
//   computed in a dying operand, %v: taken, 8 bytes
// %c = aten.select_scatter.default(%a, %b, 0, 1)
//   scatter written into its base, %a: taken, 24 bytes
// %d = aten.flip.default(%c, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][2, 1]+0 = [2.0 0.0 7.0 5.0 10.0 8.0]

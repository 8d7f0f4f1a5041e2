// A buffer is written through a view: in its own memory.
// run: remarks, copies, run
weight "count": f32[2, 3] storage 0
input %b: buffer "count"
graph(%b: f32[2, 3], %x: f32[3]) {
  %v: f32[3]+3 = aten.select.int(%b, 0, 1)
  %w: f32[3]+3 = aten.add_.Tensor(%v, %x)
  %y: f32[2, 3] = aten.flip.default(%b, [-1])
  return %y
}

// == remarks
// %v = aten.select.int(%b, 0, 1)
//   kept as a view of its base, %b: taken, 12 bytes
// %w = aten.add.Tensor(%v, %x)
//   source computed in its region, %b: taken, 12 bytes
// %w = aten.add.Tensor(%v, %x)
//   computed in a dying operand, %v: taken, 12 bytes
// %w_1 = aten.select_scatter.default(%b, %w, 0, 1)
//   scatter written into its base, %b: taken, 24 bytes
// %y = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 24 bytes

// == copies
// none

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// count: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 5.0 7.0]
// output 0: f32[2, 3][3, 1]+0 = [2.0 1.0 0.0 7.0 5.0 3.0]

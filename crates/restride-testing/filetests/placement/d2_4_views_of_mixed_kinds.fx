// A region by way of four kinds of views.
// run: remarks, copies, run
graph(%x: f32[2, 3, 4]) {
  %a: f32[2, 3, 4] = aten.mul.Tensor(%x, 2)
  %m: f32[4, 2, 3][1, 12, 4] = aten.permute.default(%a, [2, 0, 1])
  %s: f32[2, 2, 3][2, 12, 4] = aten.slice.Tensor(%m, 0, 0, 4, 2)
  %v: f32[2, 3][2, 4]+12 = aten.select.int(%s, 1, 1)
  %u: f32[1, 2, 3][4, 2, 4]+12 = aten.unsqueeze.default(%v, 0)
  %w: f32[1, 2, 3][4, 2, 4]+12 = aten.add_.Tensor(%u, 1)
  %d: f32[2, 3, 4] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 96 bytes
// %m = aten.permute.default(%a, [2, 0, 1])
//   kept as a view of its base, %a: taken, 96 bytes
// %s = aten.slice.Tensor(%m, 0, 0, 4, 2)
//   kept as a view of its base, %m: taken, 48 bytes
// %v = aten.select.int(%s, 1, 1)
//   kept as a view of its base, %s: taken, 24 bytes
// %u = aten.unsqueeze.default(%v, 0)
//   kept as a view of its base, %v: taken, 24 bytes
// %w = aten.add.Tensor(%u, 1)
//   source computed in its region, %a: taken, 24 bytes
// %w = aten.add.Tensor(%u, 1)
//   computed in a dying operand, %u: taken, 24 bytes
// %w_1 = aten.as_strided_scatter.default(%a, %w, [1, 2, 3], [4, 2, 4], 12)
//   scatter written into its base, %a: taken, 96 bytes
// %d = aten.flip.default(%w_1, [-1])
//   computed in the output's memory: taken, 96 bytes

// == copies
// none

// == run
// input 0: f32[2, 3, 4][12, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// output 0: f32[2, 3, 4][12, 4, 1]+0 = [6.0 4.0 2.0 0.0 14.0 12.0 10.0 8.0 22.0 20.0 18.0 16.0 30.0 29.0 26.0 25.0 38.0 37.0 34.0 33.0 46.0 45.0 42.0 41.0]

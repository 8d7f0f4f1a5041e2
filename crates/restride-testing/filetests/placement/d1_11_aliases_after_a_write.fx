// Views of views, made before and after a write, by way of three aliases.
// run: remarks, copies, run
graph(%x: f32[4, 2]) {
  %a: f32[4, 2] = aten.mul.Tensor(%x, 2)
  %f: f32[8] = aten.view.default(%a, [8])
  %t: f32[2, 4][1, 2] = aten.t.default(%a)
  %r: f32[4][2] = aten.select.int(%t, 0, 0)
  %w: f32[4][2] = aten.add_.Tensor(%r, 1)
  %s: f32[4]+2 = aten.slice.Tensor(%f, 0, 2, 6)
  %z: f32[4]+2 = aten.mul_.Tensor(%s, 2)
  %d: f32[8] = aten.flip.default(%f, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %r = aten.select.int(%a, 1, 0)
//   kept as a view of its base, %a: taken, 16 bytes
// %w = aten.add.Tensor(%r, 1)
//   source computed in its region, %a: taken, 16 bytes
// %w = aten.add.Tensor(%r, 1)
//   computed in a dying operand, %r: taken, 16 bytes
// %w_1 = aten.select_scatter.default(%a, %w, 1, 0)
//   scatter written into its base, %a: taken, 32 bytes
// %z = aten.reshape.default(%w_1, [8])
//   kept as a view of its base, %w_1: taken, 32 bytes
// %s = aten.slice.Tensor(%z, 0, 2, 6)
//   kept as a view of its base, %z: taken, 16 bytes
// %z_1 = aten.mul.Tensor(%s, 2)
//   source computed in its region, %w_1: taken, 16 bytes
// %z_1 = aten.mul.Tensor(%s, 2)
//   computed in a dying operand, %s: taken, 16 bytes
// %z_2 = aten.as_strided_scatter.default(%w_1, %z_1, [4], [1], 2)
//   scatter written into its base, %w_1: taken, 32 bytes
// %d = aten.reshape.default(%z_2, [8])
//   kept as a view of its base, %z_2: taken, 32 bytes
// %d_1 = aten.flip.default(%d, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// none

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[8][1]+0 = [14.0 13.0 20.0 18.0 12.0 10.0 2.0 1.0]

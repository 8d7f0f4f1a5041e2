// Two regions of one base are written one after the other.
// run: remarks, copies, run
graph(%x: f32[4, 3]) {
  %a: f32[4, 3] = aten.mul.Tensor(%x, 2)
  %p: f32[3] = aten.select.int(%a, 0, 0)
  %w: f32[3] = aten.add_.Tensor(%p, 1)
  %q: f32[4, 2][3, 1]+1 = aten.slice.Tensor(%a, 1, 1, 3)
  %z: f32[4, 2][3, 1]+1 = aten.mul_.Tensor(%q, 2)
  %d: f32[4, 3] = aten.flip.default(%a, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 48 bytes
// %p = aten.select.int(%a, 0, 0)
//   kept as a view of its base, %a: taken, 12 bytes
// %w = aten.add.Tensor(%p, 1)
//   source computed in its region, %a: taken, 12 bytes
// %w = aten.add.Tensor(%p, 1)
//   computed in a dying operand, %p: taken, 12 bytes
// %w_1 = aten.select_scatter.default(%a, %w, 0, 0)
//   scatter written into its base, %a: taken, 48 bytes
// %q = aten.slice.Tensor(%w_1, 1, 1, 3)
//   kept as a view of its base, %w_1: taken, 32 bytes
// %z = aten.mul.Tensor(%q, 2)
//   source computed in its region, %w_1: taken, 32 bytes
// %z = aten.mul.Tensor(%q, 2)
//   computed in a dying operand, %q: taken, 32 bytes
// %z_1 = aten.slice_scatter.default(%w_1, %z, 1, 1, 3)
//   scatter written into its base, %w_1: taken, 48 bytes
// %d = aten.flip.default(%z_1, [-1])
//   computed in the output's memory: taken, 48 bytes

// == copies
// none

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[4, 3][3, 1]+0 = [10.0 6.0 1.0 20.0 16.0 6.0 32.0 28.0 12.0 44.0 40.0 18.0]

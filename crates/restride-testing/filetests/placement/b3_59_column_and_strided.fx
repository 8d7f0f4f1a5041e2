// A column and a strided window are replaced.
// run: remarks, copies, run
graph(%x: f32[4, 2], %y: f32[4], %z: f32[2]) {
  %a: f32[4, 2] = aten.mul.Tensor(%x, 2)
  %c: f32[4][2] = aten.select.int(%a, 1, 0)
  %w: f32[4][2] = aten.copy_.default(%c, %y)
  %s: f32[2][4]+1 = aten.as_strided.default(%a, [2], [4], 1)
  %k: f32[2] = aten.neg.default(%z)
  %u: f32[2][4]+1 = aten.copy_.default(%s, %k)
  %d: f32[2] = aten.sum.dim_IntList(%a, [0])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %w = aten.select_scatter.default(%a, %y, 1, 0)
//   source not computed in its region, %y: it is an input, 16 bytes
// %w = aten.select_scatter.default(%a, %y, 1, 0)
//   scatter written into its base, %a: taken, 32 bytes
// %k = aten.neg.default(%z)
//   source computed in its region, %w: taken, 8 bytes
// %u_2 = aten.as_strided_scatter.default(%w, %k, [2], [4], 1)
//   scatter written into its base, %w: taken, 32 bytes
// %d = aten.sum.dim_IntList(%u_2, [0])
//   computed in the output's memory: taken, 8 bytes

// == copies
// %y to the arena, for %w = aten.select_scatter.default, 16 bytes
//   source not computed in its region: it is an input

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+0 = [6.0 19.0]

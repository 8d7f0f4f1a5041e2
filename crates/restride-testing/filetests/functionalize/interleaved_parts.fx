// Parts of two splits of one tensor, written in turn.
// run: functionalize, run
graph(%a: f32[2, 4]) {
  %x: f32[2, 4] = aten.neg.default(%a)
  %p: f32[2, 2][4, 1], %q: f32[2, 2][4, 1]+2 = aten.chunk.default(%x, 2, 1)
  %r: f32[4], %s: f32[4]+4 = aten.unbind.int(%x)
  %e: f32[2, 2][4, 1]+2 = aten.add_.Tensor(%q, 10)
  %f: f32[4] = aten.mul_.Tensor(%r, 2)
  %g: f32[2, 1][4, 1], %h: f32[2, 1][4, 1]+1 = aten.split_with_sizes.default(%p, [1, 1], 1)
  %i: f32[2, 1][4, 1]+1 = aten.sub_.Tensor(%h, 5)
  %j: f32[4]+4 = aten.neg_.default(%s)
  %k: f32[2, 2] = aten.add.Tensor(%p, %q)
  return %k, %r, %h
}

// == functionalize
// stage: functional
// output 1: user as view f32[4] of base 3
// output 2: user as view f32[2, 1][4, 1]+1 of base 3
// output 3: base
//
// graph(%a: f32[2, 4]) {
//   %x: f32[2, 4] = aten.neg.default(%a)
//   %q: f32[2, 2][4, 1]+2 = aten.slice.Tensor(%x, 1, 2, 4)
//   %e: f32[2, 2][4, 1]+2 = aten.add.Tensor(%q, 10)
//   %e_1: f32[2, 4] = aten.slice_scatter.default(%x, %e, 1, 2, 4)
//   %f: f32[4] = aten.select.int(%e_1, 0, 0)
//   %f_1: f32[4] = aten.mul.Tensor(%f, 2)
//   %f_2: f32[2, 4] = aten.select_scatter.default(%e_1, %f_1, 0, 0)
//   %h: f32[2, 1][4, 1]+1 = aten.slice.Tensor(%f_2, 1, 1, 2)
//   %i: f32[2, 1][4, 1]+1 = aten.sub.Tensor(%h, 5)
//   %i_1: f32[2, 4] = aten.slice_scatter.default(%f_2, %i, 1, 1, 2)
//   %j: f32[4]+4 = aten.select.int(%i_1, 0, 1)
//   %j_1: f32[4]+4 = aten.neg.default(%j)
//   %j_2: f32[2, 4] = aten.select_scatter.default(%i_1, %j_1, 0, 1)
//   %k: f32[2, 2][4, 1] = aten.slice.Tensor(%j_2, 1, 0, 2)
//   %k_1: f32[2, 2][4, 1]+2 = aten.slice.Tensor(%j_2, 1, 2, 4)
//   %k_2: f32[2, 2] = aten.add.Tensor(%k, %k_1)
//   %v: f32[4] = aten.select.int(%j_2, 0, 0)
//   %v_1: f32[2, 1][4, 1]+1 = aten.slice.Tensor(%j_2, 1, 1, 2)
//   return %k_2, %v, %v_1, %j_2
// }

// == run
// input 0: f32[2, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[2, 2][2, 1]+0 = [16.0 7.0 0.0 7.0]
// output 1: f32[4][1]+0 = [-0.0 -7.0 16.0 14.0]
// output 2: f32[2, 1][4, 1]+1 = [-7.0 10.0], on the storage of output 1

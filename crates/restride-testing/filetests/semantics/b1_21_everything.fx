// A chain with views, in-place views, a split and writes between them.
// run: functionalize, run
graph(%a: f32[2, 2], %b: f32[4]) {
  %x: f32[2, 2] = aten.add.Tensor(%a, %a)
  %y: f32[4] = aten.view.default(%x, [4])
  %w: f32[4] = aten.add_.Tensor(%y, %b)
  %z: f32[2, 2] = aten.reshape.default(%y, [2, 2])
  %t: f32[2, 2][1, 2] = aten.transpose.int(%z, 1, 0)
  %u: f32[1, 2, 2][2, 1, 2] = aten.unsqueeze_.default(%t, 0)
  %q: f32[2, 2][1, 2] = aten.squeeze_.default(%t)
  %p: f32[1, 2][1, 2], %r: f32[1, 2][1, 2]+1 = aten.split.Tensor(%t, 1)
  %f: f32[1, 2][1, 2] = aten.add_.Tensor(%p, 7)
  %g: f32[2, 2][1, 2] = aten.add_.Tensor(%t, 5)
  %h: f32[2][2]+1 = aten.reshape.default(%r, [2])
  %i: f32[2][2]+1 = aten.mul_.Tensor(%h, 3)
  %k: f32[]+1 = aten.select.int(%y, 0, 1)
  return %x, %t, %k, %h
}

// == functionalize
// stage: functional
// output 0: user as view f32[2, 2] of base 4
// output 1: user as view f32[2, 2][1, 2] of base 4
// output 2: user as view f32[]+1 of base 4
// output 3: user as view f32[2][2]+1 of base 4
// output 4: base
//
// graph(%a: f32[2, 2], %b: f32[4]) {
//   %x: f32[2, 2] = aten.add.Tensor(%a, %a)
//   %y: f32[4] = aten.view.default(%x, [4])
//   %w: f32[4] = aten.add.Tensor(%y, %b)
//   %w_1: f32[2, 2] = aten.reshape.default(%w, [2, 2])
//   %f: f32[2, 2][1, 2] = aten.permute.default(%w_1, [1, 0])
//   %p: f32[1, 2][1, 2], %r: f32[1, 2][1, 2]+1 = aten.split.Tensor(%f, 1)
//   %f_1: f32[1, 2][1, 2] = aten.add.Tensor(%p, 7)
//   %f_2: f32[2][2] = aten.reshape.default(%f_1, [2])
//   %f_3: f32[2, 2] = aten.select_scatter.default(%w_1, %f_2, 1, 0)
//   %g: f32[2, 2][1, 2] = aten.permute.default(%f_3, [1, 0])
//   %g_1: f32[2, 2][1, 2] = aten.add.Tensor(%g, 5)
//   %g_2: f32[2, 2] = aten.permute.default(%g_1, [1, 0])
//   %h: f32[2][2]+1 = aten.select.int(%g_2, 1, 1)
//   %i: f32[2][2]+1 = aten.mul.Tensor(%h, 3)
//   %i_1: f32[2, 2] = aten.select_scatter.default(%g_2, %i, 1, 1)
//   %v: f32[2, 2][1, 2] = aten.permute.default(%i_1, [1, 0])
//   %v_1: f32[4] = aten.reshape.default(%i_1, [4])
//   %k: f32[]+1 = aten.select.int(%v_1, 0, 1)
//   return %i_1, %v, %k, %i, %i_1
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2, 2][2, 1]+0 = [12.0 24.0 18.0 42.0]
// output 1: f32[2, 2][1, 2]+0 = [12.0 18.0 24.0 42.0], on the storage of output 0
// output 2: f32[][]+1 = [24.0], on the storage of output 0
// output 3: f32[2][2]+1 = [24.0 42.0], on the storage of output 0

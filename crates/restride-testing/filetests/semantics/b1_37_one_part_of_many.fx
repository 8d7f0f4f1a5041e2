// Writes through parts in any order: what they cannot touch is not read again.
// run: functionalize, run
graph(%a: f32[8]) {
  %x: f32[8] = aten.neg.default(%a)
  %p: f32[2], %q: f32[2]+2, %r: f32[2]+4, %s: f32[2]+6 = aten.split.Tensor(%x, 2)
  %e: f32[2]+4 = aten.add_.Tensor(%r, 10)
  %f: f32[2] = aten.mul_.Tensor(%p, %r)
  %u: f32[]+2, %v: f32[]+3 = aten.unbind.int(%q)
  %g: f32[]+2 = aten.add_.Tensor(%u, %v)
  %y: f32[2] = aten.add.Tensor(%q, %s)
  return %y, %p, %x
}

// == functionalize
// stage: functional
// output 1: user as view f32[2] of base 3
// output 2: user as view f32[8] of base 3
// output 3: base
//
// graph(%a: f32[8]) {
//   %x: f32[8] = aten.neg.default(%a)
//   %p: f32[2], %q: f32[2]+2, %r: f32[2]+4, %s: f32[2]+6 = aten.split.Tensor(%x, 2)
//   %e: f32[2]+4 = aten.add.Tensor(%r, 10)
//   %e_1: f32[8] = aten.slice_scatter.default(%x, %e, 0, 4, 6)
//   %f: f32[2] = aten.mul.Tensor(%p, %e)
//   %f_1: f32[8] = aten.slice_scatter.default(%e_1, %f, 0, 0, 2)
//   %u: f32[]+2 = aten.select.int(%f_1, 0, 2)
//   %v: f32[]+3 = aten.select.int(%f_1, 0, 3)
//   %g: f32[]+2 = aten.add.Tensor(%u, %v)
//   %g_1: f32[8] = aten.select_scatter.default(%f_1, %g, 0, 2)
//   %y: f32[2]+2 = aten.slice.Tensor(%g_1, 0, 2, 4)
//   %y_1: f32[2] = aten.add.Tensor(%y, %s)
//   return %y_1, %f, %g_1, %g_1
// }

// == run
// input 0: f32[8][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[2][1]+0 = [-11.0 -10.0]
// output 1: f32[2][1]+0 = [-0.0 -5.0]
// output 2: f32[8][1]+0 = [-0.0 -5.0 -5.0 -3.0 6.0 5.0 -6.0 -7.0], on the storage of output 1

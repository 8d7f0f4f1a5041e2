// What is lazily negated or conjugated is given to other operators as a copy: PyTorch sees no overlap then, and what
// is read is what was there before the write.
// run: functionalize, run
graph(%x: f32[4], %i: i64[3], %y: f32[4]) {
  %n: f32[4] = aten._neg_view.default(%x)
  %p: f32[3]+1 = aten.slice.Tensor(%n, 0, 1, 4)
  %q: f32[3] = aten.slice.Tensor(%x, 0, 0, 3)
  %a: f32[3] = aten.add_.Tensor(%q, %p)
  %r: f32[3] = aten.index_put_.default(%q, [%i], %p, True)
  %m: f32[4] = aten._neg_view.default(%y)
  %s: f32[3] = aten.slice.Tensor(%m, 0, 0, 3)
  %t: f32[3]+1 = aten.slice.Tensor(%y, 0, 1, 4)
  %b: f32[3] = aten.add_.Tensor(%s, %t)
  return
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: mutation of %y
//
// graph(%x: f32[4], %i: i64[3], %y: f32[4]) {
//   %q: f32[3] = aten.slice.Tensor(%x, 0, 0, 3)
//   %a: f32[4] = aten.neg.default(%x)
//   %p: f32[3]+1 = aten.slice.Tensor(%a, 0, 1, 4)
//   %a_1: f32[3] = aten.add.Tensor(%q, %p)
//   %a_2: f32[4] = aten.slice_scatter.default(%x, %a_1, 0, 0, 3)
//   %r: f32[3]+1 = aten.slice.Tensor(%a_2, 0, 1, 4)
//   %r_1: f32[3]+1 = aten.neg.default(%r)
//   %r_2: f32[3] = aten.index_put.default(%a_1, [%i], %r_1, True)
//   %r_3: f32[4] = aten.slice_scatter.default(%a_2, %r_2, 0, 0, 3)
//   %b: f32[4] = aten.neg.default(%y)
//   %s: f32[3] = aten.slice.Tensor(%b, 0, 0, 3)
//   %t: f32[3]+1 = aten.slice.Tensor(%y, 0, 1, 4)
//   %b_1: f32[3] = aten.add.Tensor(%s, %t)
//   %b_2: f32[3] = aten.neg.default(%b_1)
//   %b_3: f32[4] = aten.slice_scatter.default(%y, %b_2, 0, 0, 3)
//   return %r_3, %b_3
// }

// == run
// input 0: f32[4][1]+0 = [0.0 0.0 -4.0 3.0]
// input 1: i64[3][1]+0 = [0 1 2]
// input 2: f32[4][1]+0 = [-1.0 -1.0 -1.0 3.0]

// Copies of views with several results, and of what a `cond` gives, are views too.
// run: views, run
stage: functional
graph(%p: bool[], %x: f32[4, 6]) {
  %parts: f32[2, 6], %rest: f32[2, 6] = aten.split_copy.Tensor(%x, 2)
  %a: f32[2, 6] = aten.mul.Tensor(%parts, %rest)
  %c: f32[4, 6] = higher_order.cond(%p, @yes, @no, [%x])
  %t: f32[6, 4] = aten.permute_copy.default(%c, [1, 0])
  %n: f32[6, 4] = aten.neg.default(%t)
  %s: f32[] = aten.sum.default(%n)
  return %a, %s
}
graph @yes(%y: f32[4, 6]) {
  %r: f32[4, 6] = aten.mul.Tensor(%y, 2)
  return %r
}
graph @no(%z: f32[4, 6]) {
  %q: f32[4, 6] = aten.add.Tensor(%z, 1)
  return %q
}

// == views
// stage: functional
//
// graph(%p: bool[], %x: f32[4, 6]) {
//   %parts: f32[2, 6], %rest: f32[2, 6]+12 = aten.split.Tensor(%x, 2)
//   %a: f32[2, 6] = aten.mul.Tensor(%parts, %rest)
//   %c: f32[4, 6] = higher_order.cond(%p, @yes, @no, [%x])
//   %t: f32[6, 4][1, 6] = aten.permute.default(%c, [1, 0])
//   %n: f32[6, 4][1, 6] = aten.neg.default(%t)
//   %s: f32[] = aten.sum.default(%n)
//   return %a, %s
// }
//
// graph @yes(%y: f32[4, 6]) {
//   %r: f32[4, 6] = aten.mul.Tensor(%y, 2)
//   return %r
// }
//
// graph @no(%z: f32[4, 6]) {
//   %q: f32[4, 6] = aten.add.Tensor(%z, 1)
//   return %q
// }

// == run
// input 0: bool[][]+0 = [false]
// input 1: f32[4, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// output 0: f32[2, 6][6, 1]+0 = [0.0 13.0 28.0 45.0 64.0 85.0 108.0 133.0 160.0 189.0 220.0 253.0]
// output 1: f32[][]+0 = [-300.0]

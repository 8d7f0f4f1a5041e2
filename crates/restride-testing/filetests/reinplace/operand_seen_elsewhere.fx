// A view of the operand is read later: nothing is written over it. One that is an operand as well is in the way, too.
// run: functionalize, reinplace, views, run
graph(%x: f32[3, 3]) {
  %a: f32[3, 3] = aten.neg.default(%x)
  %t: f32[3, 3][1, 3] = aten.transpose.int(%a, 0, 1)
  %b: f32[3, 3] = aten.sub.Tensor(%x, %a)
  %c: f32[3, 3] = aten.mul.Tensor(%b, %t)
  %d: f32[3, 3] = aten.neg.default(%x)
  %s: f32[3, 3][1, 3] = aten.transpose.int(%d, 0, 1)
  %e: f32[3, 3] = aten.sub.Tensor(%d, %s)
  return %c, %e
}

// == functionalize
// stage: functional
//
// graph(%x: f32[3, 3]) {
//   %a: f32[3, 3] = aten.neg.default(%x)
//   %b: f32[3, 3] = aten.sub.Tensor(%x, %a)
//   %t: f32[3, 3][1, 3] = aten.transpose.int(%a, 0, 1)
//   %c: f32[3, 3] = aten.mul.Tensor(%b, %t)
//   %d: f32[3, 3] = aten.neg.default(%x)
//   %s: f32[3, 3][1, 3] = aten.transpose.int(%d, 0, 1)
//   %e: f32[3, 3] = aten.sub.Tensor(%d, %s)
//   return %c, %e
// }

// == reinplace
// graph(%x: f32[3, 3]) {
//   %a: f32[3, 3] = aten.neg.default(%x)
//   %b: f32[3, 3] = aten.sub.Tensor(%x, %a)
//   %t: f32[3, 3][1, 3] = aten.transpose.int(%a, 0, 1)
//   %c: f32[3, 3] = aten.mul_.Tensor(%b, %t)
//   %d: f32[3, 3] = aten.neg.default(%x)
//   %s: f32[3, 3][1, 3] = aten.transpose.int(%d, 0, 1)
//   %e: f32[3, 3] = aten.sub.Tensor(%d, %s)
//   return %c, %e
// }

// == views
// stage: functional
//
// graph(%x: f32[3, 3]) {
//   %a: f32[3, 3] = aten.neg.default(%x)
//   %b: f32[3, 3] = aten.sub.Tensor(%x, %a)
//   %t: f32[3, 3][1, 3] = aten.transpose.int(%a, 0, 1)
//   %c: f32[3, 3] = aten.mul.Tensor(%b, %t)
//   %d: f32[3, 3] = aten.neg.default(%x)
//   %s: f32[3, 3][1, 3] = aten.transpose.int(%d, 0, 1)
//   %e: f32[3, 3] = aten.sub.Tensor(%d, %s)
//   return %c, %e
// }

// == run
// input 0: f32[3, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[3, 3][3, 1]+0 = [-0.0 -6.0 -24.0 -6.0 -32.0 -70.0 -24.0 -70.0 -128.0]
// output 1: f32[3, 3][3, 1]+0 = [0.0 2.0 4.0 -2.0 0.0 2.0 -4.0 -2.0 0.0]

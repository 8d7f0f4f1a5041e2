// A result takes over whichever operand is dead; the first by the in-place form, another one by the out= form.
// What is still read, is of another type or is broadcast stays.
// run: functionalize, reinplace, views, run
graph(%x: f32[2, 3], %y: f32[3], %k: i64[2, 3]) {
  %a: f32[2, 3] = aten.neg.default(%x)
  %b: f32[2, 3] = aten.sub.Tensor(%x, %a)
  %c: f32[3] = aten.neg.default(%y)
  %d: f32[2, 3] = aten.mul.Tensor(%c, %b)
  %e: i64[2, 3] = aten.neg.default(%k)
  %f: f32[2, 3] = aten.add.Tensor(%x, %e)
  %g: f32[2, 3] = aten.add.Tensor(%f, %d)
  %h: f32[2, 3] = aten.sub.Tensor(%d, %g)
  return %h
}

// == functionalize
// graph(%x: f32[2, 3], %y: f32[3], %k: i64[2, 3]) {
//   %a: f32[2, 3] = aten.neg.default(%x)
//   %b: f32[2, 3] = aten.sub.Tensor(%x, %a)
//   %c: f32[3] = aten.neg.default(%y)
//   %d: f32[2, 3] = aten.mul.Tensor(%c, %b)
//   %e: i64[2, 3] = aten.neg.default(%k)
//   %f: f32[2, 3] = aten.add.Tensor(%x, %e)
//   %g: f32[2, 3] = aten.add.Tensor(%f, %d)
//   %h: f32[2, 3] = aten.sub.Tensor(%d, %g)
//   return %h
// }

// == reinplace
// graph(%x: f32[2, 3], %y: f32[3], %k: i64[2, 3]) {
//   %a: f32[2, 3] = aten.neg.default(%x)
//   %b: f32[2, 3] = aten.sub.out(%x, %a, out=%a)
//   %c: f32[3] = aten.neg.default(%y)
//   %d: f32[2, 3] = aten.mul.out(%c, %b, out=%b)
//   %e: i64[2, 3] = aten.neg.default(%k)
//   %f: f32[2, 3] = aten.add.Tensor(%x, %e)
//   %g: f32[2, 3] = aten.add_.Tensor(%f, %d)
//   %h: f32[2, 3] = aten.sub_.Tensor(%d, %g)
//   return %h
// }

// == views
// graph(%x: f32[2, 3], %y: f32[3], %k: i64[2, 3]) {
//   %a: f32[2, 3] = aten.neg.default(%x)
//   %b: f32[2, 3] = aten.sub.Tensor(%x, %a)
//   %c: f32[3] = aten.neg.default(%y)
//   %d: f32[2, 3] = aten.mul.Tensor(%c, %b)
//   %e: i64[2, 3] = aten.neg.default(%k)
//   %f: f32[2, 3] = aten.add.Tensor(%x, %e)
//   %g: f32[2, 3] = aten.add.Tensor(%f, %d)
//   %h: f32[2, 3] = aten.sub.Tensor(%d, %g)
//   return %h
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// input 2: i64[2, 3][3, 1]+0 = [0 1 2 3 4 5]
// output 0: f32[2, 3][3, 1]+0 = [-0.0 0.0 0.0 -0.0 0.0 0.0]

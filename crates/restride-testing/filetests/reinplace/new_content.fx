// What an input holds at the end is computed in its memory, after the last read of its old content.
// run: functionalize, reinplace, views, run
graph(%x: f32[3], %y: f32[3], %g: f32[3]) {
  %m: f32[3] = aten.mul.Tensor(%y, %g)
  %n: f32[3] = aten.add.Tensor(%x, %m)
  %c: f32[3] = aten.copy_.default(%x, %m)
  %o: f32[3] = aten.copy_.default(%y, %n)
  %z: f32[3] = aten.neg.default(%n)
  return %z
}

// == functionalize
// output 0: mutation of %x
// output 1: mutation of %y
//
// graph(%x: f32[3], %y: f32[3], %g: f32[3]) {
//   %m: f32[3] = aten.mul.Tensor(%y, %g)
//   %n: f32[3] = aten.add.Tensor(%x, %m)
//   %z: f32[3] = aten.neg.default(%n)
//   return %m, %n, %z
// }

// == reinplace
// graph(%x: f32[3], %y: f32[3], %g: f32[3]) {
//   %m: f32[3] = aten.mul.Tensor(%y, %g)
//   %n: f32[3] = aten.add.out(%x, %m, out=%y)
//   %z: f32[3] = aten.neg.default(%n)
//   %write_back: f32[3] = aten.copy_.default(%x, %m)
//   return %z
// }

// == views
// output 0: mutation of %x
// output 1: mutation of %y
//
// graph(%x: f32[3], %y: f32[3], %g: f32[3]) {
//   %m: f32[3] = aten.mul.Tensor(%y, %g)
//   %n: f32[3] = aten.add.Tensor(%x, %m)
//   %z: f32[3] = aten.neg.default(%n)
//   return %m, %n, %z
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 4.0]
// input 1: f32[3][1]+0 = [0.0 2.0 6.0]
// input 2: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3][1]+0 = [-0.0 -2.0 -6.0]

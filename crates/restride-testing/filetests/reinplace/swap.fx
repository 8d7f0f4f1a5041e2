// Each of two inputs becomes what is computed of the other: one of them is copied at the end.
// run: functionalize, reinplace, views, run
graph(%x: f32[3], %y: f32[3]) {
  %a: f32[3] = aten.mul.Tensor(2, %y)
  %b: f32[3] = aten.mul.Tensor(3, %x)
  %c: f32[3] = aten.copy_.default(%x, %a)
  %d: f32[3] = aten.copy_.default(%y, %b)
  return %x
}

// == functionalize
// output 0: mutation of %x
// output 1: mutation of %y
// output 2: user as view f32[3] of input %x
//
// graph(%x: f32[3], %y: f32[3]) {
//   %a: f32[3] = aten.mul.Tensor(2, %y)
//   %b: f32[3] = aten.mul.Tensor(3, %x)
//   return %a, %b, %a
// }

// == reinplace
// graph(%x: f32[3], %y: f32[3]) {
//   %a: f32[3] = aten.mul.Tensor(2, %y)
//   %b: f32[3] = aten.mul.out(3, %x, out=%y)
//   %write_back: f32[3] = aten.copy_.default(%x, %a)
//   return %x
// }

// == views
// output 0: mutation of %x
// output 1: mutation of %y
// output 2: user as view f32[3] of input %x
//
// graph(%x: f32[3], %y: f32[3]) {
//   %a: f32[3] = aten.mul.Tensor(2, %y)
//   %b: f32[3] = aten.mul.Tensor(3, %x)
//   return %a, %b, %a
// }

// == run
// input 0: f32[3][1]+0 = [0.0 2.0 4.0]
// input 1: f32[3][1]+0 = [0.0 3.0 6.0]
// output 0: f32[3][1]+0 = [0.0 2.0 4.0], on the storage of input 0

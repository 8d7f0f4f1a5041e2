// `baddbmm` reads the tensor that it adds to before it writes it.
// run: functionalize, run
graph(%x: f32[3, 2, 2], %y: f32[3, 2, 2], %z: f32[3, 2, 2]) {
  %a: f32[3, 2, 2] = aten.alias.default(%x)
  %c: f32[3, 2, 2] = aten.baddbmm.out(%x, %y, %z, out=%a)
  return %c
}

// == functionalize
// output 0: mutation of %x
// output 1: user as view f32[3, 2, 2] of input %x
//
// graph(%x: f32[3, 2, 2], %y: f32[3, 2, 2], %z: f32[3, 2, 2]) {
//   %c: f32[3, 2, 2] = aten.baddbmm.default(%x, %y, %z)
//   return %c, %c
// }

// == run
// input 0: f32[3, 2, 2][4, 2, 1]+0 = [2.0 4.0 8.0 14.0 50.0 60.0 72.0 86.0 162.0 180.0 200.0 222.0]
// input 1: f32[3, 2, 2][4, 2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 2: f32[3, 2, 2][4, 2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[3, 2, 2][4, 2, 1]+0 = [2.0 4.0 8.0 14.0 50.0 60.0 72.0 86.0 162.0 180.0 200.0 222.0], on the storage of input 0

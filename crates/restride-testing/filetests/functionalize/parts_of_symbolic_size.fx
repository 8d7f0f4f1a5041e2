// A size that is a multiple has a known number of equal parts.
// run: functionalize, run
// sizes: s0=3
symbol s0 in [2, 64]

graph(%x: f32[3*s0, 2]) {
  %c: f32[3*s0, 2] = aten.clone.default(%x)
  %a: f32[s0, 2], %b: f32[s0, 2]+2*s0, %d: f32[s0, 2]+4*s0 = aten.chunk.default(%c, 3, 0)
  %add_: f32[s0, 2] = aten.add_.Tensor(%a, %d)
  return %c, %b
}

// == functionalize
// stage: functional
// symbol s0 in [2, 64]
// output 0: user as view f32[3*s0, 2] of base 2
// output 1: user as view f32[s0, 2]+2*s0 of base 2
// output 2: base
//
// graph(%x: f32[3*s0, 2]) {
//   %c: f32[3*s0, 2] = aten.clone.default(%x)
//   %a: f32[s0, 2], %b: f32[s0, 2]+2*s0, %d: f32[s0, 2]+4*s0 = aten.chunk.default(%c, 3)
//   %add: f32[s0, 2] = aten.add.Tensor(%a, %d)
//   %add_: f32[3*s0, 2] = aten.slice_scatter.default(%c, %add, 0, 0, s0)
//   return %add_, %b, %add_
// }

// == run
// input 0: f32[9, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0]
// output 0: f32[9, 2][2, 1]+0 = [12.0 14.0 16.0 18.0 20.0 22.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0]
// output 1: f32[3, 2][2, 1]+6 = [6.0 7.0 8.0 9.0 10.0 11.0], on the storage of output 0

// The base of a strided view may be dense in another order of its dimensions; a run checks that the view stays inside.
// run: functionalize, run
// sizes: s0=3
symbol s0 in [2, 64]

graph(%x: f32[4, s0][1, 4]) {
  %a: f32[4, s0][1, 4] = aten.mul.Tensor(%x, 2)
  %p: f32[s0, 4] = aten.permute.default(%a, [1, 0])
  %v: f32[s0, 2][4, 1] = aten.as_strided.default(%p, [s0, 2], [4, 1])
  %add_: f32[s0, 2][4, 1] = aten.add_.Tensor(%v, 1)
  return %p
}

// == functionalize
// stage: functional
// symbol s0 in [2, 64]
// output 0: user as view f32[s0, 4] of base 1
// output 1: base
//
// graph(%x: f32[4, s0][1, 4]) {
//   %a: f32[4, s0][1, 4] = aten.mul.Tensor(%x, 2)
//   %add_: f32[2, s0][1, 4] = aten.slice.Tensor(%a, 0, 0, 2)
//   %add__1: f32[s0, 2][4, 1] = aten.permute.default(%add_, [1, 0])
//   %add: f32[s0, 2][4, 1] = aten.add.Tensor(%add__1, 1)
//   %add__2: f32[2, s0][1, 4] = aten.permute.default(%add, [1, 0])
//   %add__3: f32[4, s0][1, 4] = aten.slice_scatter.default(%a, %add__2, 0, 0, 2)
//   %v: f32[s0, 4] = aten.permute.default(%add__3, [1, 0])
//   return %v, %add__3
// }

// == run
// input 0: f32[4, 3][1, 4]+0 = [0.0 4.0 8.0 1.0 5.0 9.0 2.0 6.0 10.0 3.0 7.0 11.0]
// output 0: f32[3, 4][4, 1]+0 = [1.0 3.0 4.0 6.0 9.0 11.0 12.0 14.0 17.0 19.0 20.0 22.0]

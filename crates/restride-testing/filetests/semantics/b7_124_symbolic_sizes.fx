// squeeze, then a write, with a size that is a symbol; a size is returned beside.
// run: functionalize, run
// sizes: s0=3
symbol s0 in [2, inf]
graph(%x: f32[1, s0, 1]) {
  %n: Sym(s0) = aten.sym_size.int(%x, 1)
  %v: f32[s0] = aten.squeeze.default(%x)
  %w: f32[s0] = aten.add_.Tensor(%v, 1)
  return %n, %w
}

// == functionalize
// stage: functional
// symbol s0 in [2, inf]
// output 0: mutation of %x
// output 2: user as view f32[s0] of input %x
//
// graph(%x: f32[1, s0, 1]) {
//   %n: Sym(s0) = aten.sym_size.int(%x, 1)
//   %v: f32[s0] = aten.squeeze.default(%x)
//   %w: f32[s0] = aten.add.Tensor(%v, 1)
//   %w_1: f32[1, s0, 1] = aten.reshape.default(%w, [1, s0, 1])
//   return %w_1, %n, %w
// }

// == run
// input 0: f32[1, 3, 1][3, 1, 1]+0 = [1.0 2.0 3.0]
// output 0: Scalar(Int(3))
// output 1: f32[3][1]+0 = [1.0 2.0 3.0], on the storage of input 0

// None and a number among the inputs.
// run: functionalize, run
input %n: fixed "n" = None
input %k: fixed "k" = 3
graph(%n: None, %x: f32[2], %k: Sym(3)) {
  %w: f32[2] = aten.add_.Tensor(%x, 3)
  return %w
}

// == functionalize
// input %n: fixed "n" = None
// input %k: fixed "k" = 3
// output 0: mutation of %x
// output 1: user as view f32[2] of input %x
//
// graph(%n: None, %x: f32[2], %k: Sym(3)) {
//   %w: f32[2] = aten.add.Tensor(%x, 3)
//   return %w, %w
// }

// == run
// input 0: None
// input 1: f32[2][1]+0 = [3.0 4.0]
// input 2: Scalar(Int(3))
// output 0: f32[2][1]+0 = [3.0 4.0], on the storage of input 1

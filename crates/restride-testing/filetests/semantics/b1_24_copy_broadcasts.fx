// copy_ stretches and converts what it copies.
// run: functionalize, run
graph(%x: f32[2, 3], %y: i64[3]) {
  %w: f32[2, 3] = aten.copy_.default(%x, %y)
  return %w
}

// == functionalize
// output 0: mutation of %x
// output 1: user as view f32[2, 3] of input %x
//
// graph(%x: f32[2, 3], %y: i64[3]) {
//   %w: f32[2, 3] = aten.copy.default(%x, %y)
//   return %w, %w
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 0.0 1.0 2.0]
// input 1: i64[3][1]+0 = [0 1 2]
// output 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 0.0 1.0 2.0], on the storage of input 0

// An input is resized to more and filled.
// run: functionalize, run
// share: %x
graph(%x: f32[2]) {
  %r: f32[4] = aten.resize_.default(%x, [4])
  %w: f32[4] = aten.fill_.Scalar(%x, 10)
  return %x
}

// == functionalize
// input %storage_x: storage of %x
// output 0: mutation of %storage_x
// output 1: user as view f32[4] of input %storage_x
// output 2: metadata of %x as view f32[4] of input %storage_x
// output 3: metadata of %storage_x as view f32[4] of input %storage_x
//
// graph(%x: f32[2], %storage_x: f32[4]) {
//   %w: f32[4] = aten.fill.Scalar(%storage_x, 10)
//   return %w, %w, None, None
// }

// == run
// input 0: f32[4][1]+0 = [10.0 10.0 10.0 10.0]
// output 0: f32[4][1]+0 = [10.0 10.0 10.0 10.0], on the storage of input 0

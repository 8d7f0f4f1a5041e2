// A buffer is resized to more.
// run: functionalize, run
weight "b": f32[2] storage 0
input %b: buffer "b"
graph(%b: f32[2], %x: f32[3]) {
  %r: f32[3] = aten.resize_.default(%b, [3])
  %w: f32[3] = aten.copy_.default(%b, %x)
  return %w
}

// == functionalize
// weight "b": f32[2] storage 0
// input %b: buffer "b"
// input %storage_b: storage of %b
// output 0: mutation of %storage_b
// output 1: user as view f32[3] of input %storage_b
// output 2: metadata of %b as view f32[3] of input %storage_b
// output 3: metadata of %storage_b as view f32[3] of input %storage_b
//
// graph(%b: f32[2], %x: f32[3], %storage_b: f32[3]) {
//   return %x, %x, None, None
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// b: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3][1]+0 = [0.0 1.0 2.0], on the storage of b

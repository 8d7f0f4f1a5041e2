// A written buffer that is returned: the output is the buffer.
// run: functionalize, run
weight "count": f32[2] storage 0
input %b: buffer "count"
graph(%b: f32[2], %x: f32[2]) {
  %w: f32[2] = aten.add_.Tensor(%b, %x)
  %y: f32[2] = aten.mul.Tensor(%b, %x)
  return %b, %y
}

// == functionalize
// weight "count": f32[2] storage 0
// input %b: buffer "count"
// output 0: mutation of %b
// output 1: user as view f32[2] of input %b
//
// graph(%b: f32[2], %x: f32[2]) {
//   %w: f32[2] = aten.add.Tensor(%b, %x)
//   %y: f32[2] = aten.mul.Tensor(%w, %x)
//   return %w, %w, %y
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// count: f32[2][1]+0 = [0.0 2.0]
// output 0: f32[2][1]+0 = [0.0 2.0], on the storage of count
// output 1: f32[2][1]+0 = [0.0 2.0]

// Buffers and user inputs are written: their new contents come before the user's outputs, in the order of the inputs.
// run: functionalize, run
weight "a": f32[2] storage 0
weight "b": f32[2] storage 1
input %a: buffer "a"
input %b: buffer "b"
graph(%a: f32[2], %b: f32[2], %x: f32[2], %y: f32[2]) {
  %s: f32[2] = aten.add.Tensor(%x, %y)
  %u: f32[2] = aten.add_.Tensor(%y, %s)
  %v: f32[2] = aten.add_.Tensor(%b, %x)
  %w: f32[2] = aten.mul_.Tensor(%x, 2)
  %z: f32[2] = aten.mul_.Tensor(%a, 3)
  return %s
}

// == functionalize
// weight "a": f32[2] storage 0
// weight "b": f32[2] storage 1
// input %a: buffer "a"
// input %b: buffer "b"
// output 0: mutation of %a
// output 1: mutation of %b
// output 2: mutation of %x
// output 3: mutation of %y
//
// graph(%a: f32[2], %b: f32[2], %x: f32[2], %y: f32[2]) {
//   %s: f32[2] = aten.add.Tensor(%x, %y)
//   %u: f32[2] = aten.add.Tensor(%y, %s)
//   %v: f32[2] = aten.add.Tensor(%b, %x)
//   %w: f32[2] = aten.mul.Tensor(%x, 2)
//   %z: f32[2] = aten.mul.Tensor(%a, 3)
//   return %z, %v, %w, %u, %s
// }

// == run
// input 0: f32[2][1]+0 = [0.0 2.0]
// input 1: f32[2][1]+0 = [0.0 3.0]
// a: f32[2][1]+0 = [0.0 3.0]
// b: f32[2][1]+0 = [0.0 2.0]
// output 0: f32[2][1]+0 = [0.0 2.0]

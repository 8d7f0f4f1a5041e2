// A constant of the module is written: its new content is there in the next run.
// run: functionalize, run
weight "c": f32[3] storage 0
input %c: constant "c"
graph(%c: f32[3], %x: f32[3]) {
  %w: f32[3] = aten.add_.Tensor(%c, %x)
  %y: f32[3] = aten.mul.Tensor(%c, 2)
  return %y
}

// == functionalize
// weight "c": f32[3] storage 0
// input %c: constant "c"
// output 0: mutation of %c
//
// graph(%c: f32[3], %x: f32[3]) {
//   %w: f32[3] = aten.add.Tensor(%c, %x)
//   %y: f32[3] = aten.mul.Tensor(%w, 2)
//   return %w, %y
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// c: f32[3][1]+0 = [0.0 2.0 4.0]
// output 0: f32[3][1]+0 = [0.0 4.0 8.0]

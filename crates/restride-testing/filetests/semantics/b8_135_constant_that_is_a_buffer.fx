// A written constant that is the buffer itself: one new content, the buffer's.
// run: functionalize, run
weight "b": f32[4] storage 0
weight "c": f32[4] storage 0
input %b: buffer "b"
input %c: constant "c"
graph(%c: f32[4], %b: f32[4], %x: f32[4]) {
  %w: f32[4] = aten.add_.Tensor(%c, %x)
  %y: f32[] = aten.sum.default(%b)
  return %y
}

// == functionalize
// weight "b": f32[4] storage 0
// weight "c": f32[4] storage 0
// input %c: constant "c"
// input %b: buffer "b"
// output 0: mutation of %b
//
// graph(%c: f32[4], %b: f32[4], %x: f32[4]) {
//   %w: f32[4] = aten.add.Tensor(%b, %x)
//   %y: f32[] = aten.sum.default(%w)
//   return %w, %y
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// b: f32[4][1]+0 = [0.0 2.0 4.0 6.0]
// c: f32[4][1]+0 = [0.0 2.0 4.0 6.0], on the storage of b
// output 0: f32[][]+0 = [12.0]

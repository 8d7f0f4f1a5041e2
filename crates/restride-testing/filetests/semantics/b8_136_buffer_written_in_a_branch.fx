// A branch writes a buffer.
// run: functionalize, run
weight "b": f32[2] storage 0
input %b: buffer "b"
graph(%b: f32[2], %p: bool[2], %x: f32[2]) {
  %q: bool[]+1 = aten.select.int(%p, 0, 1)
  %y: f32[2] = higher_order.cond(%q, @yes, @no, [%b, %x])
  %z: f32[2] = aten.add.Tensor(%b, %y)
  return %z
}
graph @yes(%b: f32[2], %x: f32[2]) {
  %w: f32[2] = aten.add_.Tensor(%b, 5)
  %c: f32[2] = aten.mul.Tensor(%b, %x)
  return %c
}
graph @no(%b: f32[2], %x: f32[2]) {
  %c: f32[2] = aten.neg.default(%x)
  return %c
}

// == functionalize
// stage: functional
// weight "b": f32[2] storage 0
// input %b: buffer "b"
// output 0: mutation of %b
//
// graph(%b: f32[2], %p: bool[2], %x: f32[2]) {
//   %q: bool[]+1 = aten.select.int(%p, 0, 1)
//   %y: f32[2], %b_1: f32[2] = higher_order.cond(%q, @graph1, @graph2, [%x, %b])
//   %z: f32[2] = aten.add.Tensor(%b_1, %y)
//   return %b_1, %z
// }
//
// graph @graph1(%x: f32[2], %base_0: f32[2]) {
//   %w: f32[2] = aten.add.Tensor(%base_0, 5)
//   %c: f32[2] = aten.mul.Tensor(%w, %x)
//   return %c, %w
// }
//
// graph @graph2(%x: f32[2], %base_0: f32[2]) {
//   %c: f32[2] = aten.neg.default(%x)
//   return %c, %base_0
// }

// == run
// input 0: bool[2][1]+0 = [false true]
// input 1: f32[2][1]+0 = [0.0 1.0]
// b: f32[2][1]+0 = [5.0 6.0]
// output 0: f32[2][1]+0 = [5.0 12.0]

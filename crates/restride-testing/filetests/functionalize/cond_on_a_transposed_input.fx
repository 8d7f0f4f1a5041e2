// A branch writes through an input that was transposed in place.
// run: functionalize, run
graph(%x: f32[2, 3], %p: bool[2]) {
  %q: bool[]+1 = aten.select.int(%p, 0, 1)
  %t: f32[3, 2][1, 3] = aten.t_.default(%x)
  %y: f32[2] = higher_order.cond(%q, @yes, @no, [%x])
  %z: f32[3, 2][1, 3] = aten.add.Tensor(%x, 1)
  return %z, %y
}
graph @yes(%a: f32[3, 2][1, 3]) {
  %b: f32[2][3] = aten.select.int(%a, 0, 0)
  %w: f32[2][3] = aten.add_.Tensor(%b, 5)
  %c: f32[2] = aten.mul.Tensor(%b, 2)
  return %c
}
graph @no(%a: f32[3, 2][1, 3]) {
  %b: f32[2][3] = aten.select.int(%a, 0, 1)
  %c: f32[2] = aten.neg.default(%b)
  return %c
}

// == functionalize
// error: input %a of a body is f32[3, 2][1, 3], but gets f32[2, 3] (at %y = higher_order.cond)

// == run
// input 0: f32[3, 2][1, 3]+0 = [5.0 8.0 1.0 4.0 2.0 5.0]
// input 1: bool[2][1]+0 = [false true]
// output 0: f32[3, 2][1, 3]+0 = [6.0 9.0 2.0 5.0 3.0 6.0]
// output 1: f32[2][1]+0 = [10.0 16.0]

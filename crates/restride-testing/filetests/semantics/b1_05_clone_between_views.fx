// A clone in a chain of views starts memory of its own: the write behind it does not reach the input.
// run: functionalize, run
graph(%a: f32[4, 2]) {
  %v: f32[8] = aten.view.default(%a, [8])
  %n: f32[8] = aten.neg.default(%v)
  %c: f32[8] = aten.clone.default(%n)
  %u: f32[4, 2] = aten.view.default(%c, [4, 2])
  %w: f32[4, 2] = aten.relu_.default(%u)
  %s: f32[2] = aten.select.int(%u, 0, 0)
  return %w, %s, %v
}

// == functionalize
// stage: functional
// output 0: user as view f32[4, 2] of base 3
// output 1: user as view f32[2] of base 3
// output 2: user as view f32[8] of input %a
// output 3: base
//
// graph(%a: f32[4, 2]) {
//   %v: f32[8] = aten.view.default(%a, [8])
//   %n: f32[8] = aten.neg.default(%v)
//   %c: f32[8] = aten.clone.default(%n)
//   %u: f32[4, 2] = aten.view.default(%c, [4, 2])
//   %w: f32[4, 2] = aten.relu.default(%u)
//   %w_1: f32[8] = aten.reshape.default(%w, [8])
//   %s: f32[2] = aten.select.int(%w, 0, 0)
//   return %w, %s, %v, %w_1
// }

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4, 2][2, 1]+0 = [-0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0]
// output 1: f32[2][1]+0 = [-0.0 0.0], on the storage of output 0
// output 2: f32[8][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0], on the storage of input 0

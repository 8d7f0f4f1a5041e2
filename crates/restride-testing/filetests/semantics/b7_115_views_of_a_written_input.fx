// Views of a written input are returned, made before and after the write, beside views of an unwritten input.
// run: functionalize, run
graph(%x: f32[2, 2], %y: f32[2, 2]) {
  %p: f32[2]+2 = aten.select.int(%x, 0, 1)
  %w: f32[2, 2] = aten.mul_.Tensor(%x, 2)
  %q: f32[4] = aten.view.default(%x, [4])
  %r: f32[2, 2][1, 2] = aten.t.default(%y)
  %s: f32[2][2] = aten.select.int(%y, 1, 0)
  return %p, %q, %r, %s
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2]+2 of input %x
// output 2: user as view f32[4] of input %x
// output 3: user as view f32[2, 2][1, 2] of input %y
// output 4: user as view f32[2][2] of input %y
//
// graph(%x: f32[2, 2], %y: f32[2, 2]) {
//   %w: f32[2, 2] = aten.mul.Tensor(%x, 2)
//   %v: f32[2]+2 = aten.select.int(%w, 0, 1)
//   %q: f32[4] = aten.view.default(%w, [4])
//   %r: f32[2, 2][1, 2] = aten.t.default(%y)
//   %s: f32[2][2] = aten.select.int(%y, 1, 0)
//   return %w, %v, %q, %r, %s
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 2.0 4.0 6.0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[2][1]+2 = [4.0 6.0], on the storage of input 0
// output 1: f32[4][1]+0 = [0.0 2.0 4.0 6.0], on the storage of input 0
// output 2: f32[2, 2][1, 2]+0 = [0.0 2.0 1.0 3.0], on the storage of input 1
// output 3: f32[2][2]+0 = [0.0 2.0], on the storage of input 1

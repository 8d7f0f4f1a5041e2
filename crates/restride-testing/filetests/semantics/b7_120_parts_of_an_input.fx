// All parts of an input are returned after one was written.
// run: functionalize, run
graph(%x: f32[2, 2]) {
  %p: f32[2], %q: f32[2]+2 = aten.unbind.int(%x)
  %w: f32[2] = aten.mul_.Tensor(%p, 10)
  return %p, %q
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2] of input %x
// output 2: user as view f32[2]+2 of input %x
//
// graph(%x: f32[2, 2]) {
//   %p: f32[2], %q: f32[2]+2 = aten.unbind.int(%x)
//   %w: f32[2] = aten.mul.Tensor(%p, 10)
//   %w_1: f32[2, 2] = aten.select_scatter.default(%x, %w, 0, 0)
//   return %w_1, %w, %q
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 10.0 2.0 3.0]
// output 0: f32[2][1]+0 = [0.0 10.0], on the storage of input 0
// output 1: f32[2][1]+2 = [2.0 3.0], on the storage of input 0

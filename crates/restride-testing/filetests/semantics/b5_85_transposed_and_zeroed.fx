// t_ changes the tensor object: every holder of it sees the new sizes.
// run: functionalize, run
graph(%x: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.t_.default(%x)
  %r: f32[2][3]+1 = aten.select.int(%x, 0, 1)
  %w: f32[2][3]+1 = aten.zero_.default(%r)
  return %t
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[3, 2][1, 3] of input %x
// output 2: metadata of %x as view f32[3, 2][1, 3] of input %x
//
// graph(%x: f32[2, 3]) {
//   %r: f32[2][3]+1 = aten.select.int(%x, 1, 1)
//   %w: f32[2][3]+1 = aten.zero.default(%r)
//   %w_1: f32[2, 3] = aten.select_scatter.default(%x, %w, 1, 1)
//   %v: f32[3, 2][1, 3] = aten.permute.default(%w_1, [1, 0])
//   return %w_1, %v, None
// }

// == run
// input 0: f32[3, 2][1, 3]+0 = [0.0 3.0 0.0 0.0 2.0 5.0]
// output 0: f32[3, 2][1, 3]+0 = [0.0 3.0 0.0 0.0 2.0 5.0], on the storage of input 0

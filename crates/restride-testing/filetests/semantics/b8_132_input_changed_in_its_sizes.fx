// An input's own sizes and strides change, by every operator that does that.
// run: functionalize, run
graph(%x: f32[2, 1, 3], %y: f32[2, 3], %z: f32[6]) {
  %a: f32[2, 3] = aten.squeeze_.dim(%x, 1)
  %b: f32[3, 2][1, 3] = aten.swapaxes_.default(%x, 0, 1)
  %c: f32[3, 2][1, 3] = aten.t_.default(%y)
  %d: f32[2, 3] = aten.swapdims_.default(%y, 0, 1)
  %e: f32[2, 2][1, 3]+1 = aten.as_strided_.default(%z, [2, 2], [1, 3], 1)
  %f: f32[2, 2, 1][1, 3, 1]+1 = aten.unsqueeze_.default(%z, -1)
  %w: f32[2, 2, 1][1, 3, 1]+1 = aten.add_.Tensor(%e, 10)
  %s: f32[3, 2][1, 3] = aten.add.Tensor(%a, 1)
  return %s, %z
}

// == functionalize
// stage: functional
// output 0: mutation of %z
// output 2: user as view f32[2, 2, 1][1, 3, 1]+1 of input %z
// output 3: metadata of %x as view f32[3, 2][1, 3] of input %x
// output 4: metadata of %y as view f32[2, 3] of input %y
// output 5: metadata of %z as view f32[2, 2, 1][1, 3, 1]+1 of input %z
//
// graph(%x: f32[2, 1, 3], %y: f32[2, 3], %z: f32[6]) {
//   %w: f32[2, 2, 1][1, 3, 1]+1 = aten.as_strided.default(%z, [2, 2, 1], [1, 3, 1], 1)
//   %w_1: f32[2, 2, 1][1, 3, 1]+1 = aten.add.Tensor(%w, 10)
//   %w_2: f32[6] = aten.as_strided_scatter.default(%z, %w_1, [2, 2, 1], [1, 3, 1], 1)
//   %s: f32[3, 2, 1][1, 3, 3] = aten.permute.default(%x, [2, 0, 1])
//   %s_1: f32[3, 2][1, 3] = aten.reshape.default(%s, [3, 2])
//   %s_2: f32[3, 2][1, 3] = aten.add.Tensor(%s_1, 1)
//   return %w_2, %s_2, %w_1, None, None, None
// }

// == run
// input 0: f32[3, 2][1, 3]+0 = [0.0 3.0 1.0 4.0 2.0 5.0]
// input 1: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 2: f32[2, 2, 1][1, 3, 1]+1 = [11.0 14.0 12.0 15.0]
// output 0: f32[3, 2][1, 3]+0 = [1.0 4.0 2.0 5.0 3.0 6.0]
// output 1: f32[2, 2, 1][1, 3, 1]+1 = [11.0 14.0 12.0 15.0], on the storage of input 2

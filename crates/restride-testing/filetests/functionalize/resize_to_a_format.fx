// resize_ and resize_as_ to a memory format.
// run: functionalize, run
graph(%x: f32[24], %k: f32[1, 2, 2, 3][12, 1, 6, 2]) {
  %n: f32[24] = aten.neg.default(%x)
  %r: f32[1, 2, 2, 3][12, 1, 6, 2] = aten.resize_.default(%n, [1, 2, 2, 3], memory_format=channels_last)
  %c: f32[1, 2, 2, 3][12, 1, 6, 2] = aten.copy_.default(%n, %k)
  %m: f32[24] = aten.neg.default(%x)
  %s: f32[1, 2, 2, 3][12, 1, 6, 2] = aten.resize_as_.default(%m, %k, memory_format=preserve_format)
  %v: f32[1, 2, 3][12, 6, 2] = aten.select.int(%m, 1, 0)
  %w: f32[1, 2, 3][12, 6, 2] = aten.add_.Tensor(%v, 1)
  return %n, %m
}

// == functionalize
// stage: functional
// output 0: user as view f32[1, 2, 2, 3][12, 1, 6, 2] of base 2
// output 1: user as view f32[1, 2, 2, 3][12, 1, 6, 2] of base 3
// output 2: base
// output 3: base
//
// graph(%x: f32[24], %k: f32[1, 2, 2, 3][12, 1, 6, 2]) {
//   %n: f32[24] = aten.neg.default(%x)
//   %c_1: f32[24] = aten.as_strided_scatter.default(%n, %k, [1, 2, 2, 3], [12, 1, 6, 2], 0)
//   %m: f32[24] = aten.neg.default(%x)
//   %w: f32[1, 2, 2, 3][12, 1, 6, 2] = aten.as_strided.default(%m, [1, 2, 2, 3], [12, 1, 6, 2], 0)
//   %v: f32[1, 2, 3][12, 6, 2] = aten.select.int(%w, 1, 0)
//   %w_1: f32[1, 2, 3][12, 6, 2] = aten.add.Tensor(%v, 1)
//   %w_2: f32[24] = aten.as_strided_scatter.default(%m, %w_1, [1, 2, 3], [12, 6, 2], 0)
//   %v_1: f32[1, 2, 2, 3][12, 1, 6, 2] = aten.as_strided.default(%w_2, [1, 2, 2, 3], [12, 1, 6, 2], 0)
//   return %k, %v_1, %c_1, %w_2
// }

// == run
// input 0: f32[24][1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// input 1: f32[1, 2, 2, 3][12, 1, 6, 2]+0 = [0.0 2.0 4.0 6.0 8.0 10.0 1.0 3.0 5.0 7.0 9.0 11.0]
// output 0: f32[1, 2, 2, 3][12, 1, 6, 2]+0 = [0.0 2.0 4.0 6.0 8.0 10.0 1.0 3.0 5.0 7.0 9.0 11.0]
// output 1: f32[1, 2, 2, 3][12, 1, 6, 2]+0 = [1.0 -1.0 -3.0 -5.0 -7.0 -9.0 -1.0 -3.0 -5.0 -7.0 -9.0 -11.0]

// reshape of what strides cannot express is a copy: writing it leaves the base alone.
// run: functionalize, run
graph(%x: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.t.default(%x)
  %r: f32[6] = aten.reshape.default(%t, [6])
  %w: f32[6] = aten.zero_.default(%r)
  return %x, %w
}

// == functionalize
// stage: functional
// output 0: user as view f32[2, 3] of input %x
//
// graph(%x: f32[2, 3]) {
//   %t: f32[3, 2][1, 3] = aten.t.default(%x)
//   %r: f32[6] = aten.reshape.default(%t, [6])
//   %w: f32[6] = aten.zero.default(%r)
//   return %x, %w
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0], on the storage of input 0
// output 1: f32[6][1]+0 = [0.0 0.0 0.0 0.0 0.0 0.0]

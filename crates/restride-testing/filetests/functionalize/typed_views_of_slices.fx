// A body views its slice as larger elements: PyTorch asks where the slice begins, which is elsewhere in each iteration.
// run: functionalize, run
graph(%x: f16[4, 4], %y: f16[3, 3]) {
  %a: f32[4, 2] = higher_order.map_impl(@each, [%x], [])
  return %a
}

graph @each(%s: f16[4]) {
  %v: f32[2] = aten.view.dtype(%s, f32)
  %w: f32[2] = aten.add.Scalar(%v, 1)
  return %w
}

// == functionalize
// stage: functional
//
// graph(%x: f16[4, 4], %y: f16[3, 3]) {
//   %a: f32[4, 2] = higher_order.map_impl(@graph1, [%x], [])
//   return %a
// }
//
// graph @graph1(%s: f16[4]) {
//   %v: f32[2] = aten.view.dtype(%s, f32)
//   %w: f32[2] = aten.add.Scalar(%v, 1)
//   return %w
// }

// == run
// input 0: f16[4, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0]
// input 1: f16[3, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0]
// output 0: f32[4, 2][2, 1]+0 = [1.0078125 33.0625 2053.25 32839.0 262721.0 1050913.0 4203777.0 16815616.0]

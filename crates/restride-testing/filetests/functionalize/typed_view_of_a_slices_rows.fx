// A copy in row-major order has a last stride of 1, whatever the stride of the slice.
// run: functionalize, run
graph(%x: c64[2, 1][1, 2]) {
  %r: u8[2, 8] = higher_order.map_impl(@each, [%x], [])
  return %r
}

graph @each(%a: c64[1]) {
  %b: c64[1] = aten.clone.default(%a, memory_format=contiguous_format)
  %c: u8[8] = aten.view.dtype(%b, u8)
  return %c
}

// == functionalize
// stage: functional
//
// graph(%x: c64[2, 1][1, 2]) {
//   %r: u8[2, 8] = higher_order.map_impl(@graph1, [%x], [])
//   return %r
// }
//
// graph @graph1(%a: c64[1]) {
//   %b: c64[1] = aten.clone.default(%a, memory_format=contiguous_format)
//   %c: u8[8] = aten.view.dtype(%b, u8)
//   return %c
// }

// == run
// input 0: c64[2, 1][1, 2]+0 = [(0.0+0.0j) (1.0+0.0j)]
// output 0: u8[2, 8][8, 1]+0 = [0 0 0 0 0 0 0 0 0 0 128 63 0 0 0 0]

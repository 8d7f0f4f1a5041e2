// Copies that change nothing visible are left out; the caller's are not. Those that change the layout stay.
// run: functionalize, reinplace, views, run
graph(%x: f32[2, 3]) {
  %a: f32[2, 3] = aten.clone.default(%x)
  %b: f32[2, 3] = aten.exp.default(%a)
  %t: f32[3, 2][1, 3] = aten.transpose.int(%x, 0, 1)
  %c: f32[3, 2] = aten.clone.default(%t, memory_format=contiguous_format)
  %d: f32[3, 2] = aten.exp.default(%c)
  %e: f32[2, 3] = aten.clone.default(%x)
  return %b, %d, %e
}

// == functionalize
// stage: functional
//
// graph(%x: f32[2, 3]) {
//   %a: f32[2, 3] = aten.clone.default(%x)
//   %b: f32[2, 3] = aten.exp.default(%a)
//   %t: f32[3, 2][1, 3] = aten.transpose.int(%x, 0, 1)
//   %c: f32[3, 2] = aten.clone.default(%t, memory_format=contiguous_format)
//   %d: f32[3, 2] = aten.exp.default(%c)
//   %e: f32[2, 3] = aten.clone.default(%x)
//   return %b, %d, %e
// }

// == reinplace
// graph(%x: f32[2, 3]) {
//   %b: f32[2, 3] = aten.exp.default(%x)
//   %t: f32[3, 2][1, 3] = aten.transpose.int(%x, 0, 1)
//   %c: f32[3, 2] = aten.clone.default(%t, memory_format=contiguous_format)
//   %d: f32[3, 2] = aten.exp_.default(%c)
//   %e: f32[2, 3] = aten.clone.default(%x)
//   return %b, %d, %e
// }

// == views
// stage: functional
//
// graph(%x: f32[2, 3]) {
//   %b: f32[2, 3] = aten.exp.default(%x)
//   %t: f32[3, 2][1, 3] = aten.transpose.int(%x, 0, 1)
//   %c: f32[3, 2] = aten.clone.default(%t, memory_format=contiguous_format)
//   %d: f32[3, 2] = aten.exp.default(%c)
//   %e: f32[2, 3] = aten.clone.default(%x)
//   return %b, %d, %e
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [1.0 2.7182817459106445 7.389056205749512 20.08553695678711 54.59815216064453 148.4131622314453]
// output 1: f32[3, 2][2, 1]+0 = [1.0 20.08553695678711 2.7182817459106445 54.59815216064453 7.389056205749512 148.4131622314453]
// output 2: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]

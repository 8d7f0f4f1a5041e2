// A permuted operand would give a result with strides that the caller sees: its copy stays.
// run: functionalize, views, run
graph(%x: f32[2, 3]) {
  %a: f32[3, 2] = aten.permute_copy.default(%x, [1, 0])
  %b: f32[3, 2] = aten.exp.default(%a)
  %c: f32[2, 3] = aten.clone.default(%x)
  %d: f32[2, 3] = aten.neg.default(%c)
  return %b, %d
}

// == functionalize
// graph(%x: f32[2, 3]) {
//   %a: f32[3, 2] = aten.permute_copy.default(%x, [1, 0])
//   %b: f32[3, 2] = aten.exp.default(%a)
//   %c: f32[2, 3] = aten.clone.default(%x)
//   %d: f32[2, 3] = aten.neg.default(%c)
//   return %b, %d
// }

// == views
// graph(%x: f32[2, 3]) {
//   %a: f32[3, 2] = aten.permute_copy.default(%x, [1, 0])
//   %b: f32[3, 2] = aten.exp.default(%a)
//   %d: f32[2, 3] = aten.neg.default(%x)
//   return %b, %d
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][2, 1]+0 = [1.0 20.08553695678711 2.7182817459106445 54.59815216064453 7.389056205749512 148.4131622314453]
// output 1: f32[2, 3][3, 1]+0 = [-0.0 -1.0 -2.0 -3.0 -4.0 -5.0]

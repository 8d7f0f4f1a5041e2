// What changes nothing gives the very tensor back: what turns it turns all of its names.
// run: functionalize, run
graph(%x: f32[2, 3], %y: f32[6]) {
  %a: f32[2, 3] = aten.mul.Scalar(%x, 2)
  %c: f32[2, 3] = aten.contiguous.default(%a)
  %d: f32[2, 3] = aten.resolve_neg.default(%c)
  %e: f32[3, 2][1, 3] = aten.t_.default(%d)
  %s: f32[3, 2][1, 3] = aten.add.Scalar(%a, 1)
  %r: f32[6] = aten.conj.default(%y)
  %u: f32[1, 6] = aten.unsqueeze_.default(%r, 0)
  return %s, %c
}

// == functionalize
// stage: functional
// output 1: user as view f32[3, 2][1, 3] of base 3
// output 2: metadata of %y as view f32[1, 6] of input %y
// output 3: base
//
// graph(%x: f32[2, 3], %y: f32[6]) {
//   %a: f32[2, 3] = aten.mul.Scalar(%x, 2)
//   %s: f32[3, 2][1, 3] = aten.permute.default(%a, [1, 0])
//   %s_1: f32[3, 2][1, 3] = aten.add.Scalar(%s, 1)
//   return %s_1, %s, None, %a
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: f32[1, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][1, 3]+0 = [1.0 7.0 3.0 9.0 5.0 11.0]
// output 1: f32[3, 2][1, 3]+0 = [0.0 6.0 2.0 8.0 4.0 10.0]

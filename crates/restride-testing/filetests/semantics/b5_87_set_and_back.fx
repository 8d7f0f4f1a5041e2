// set_ to other memory and back changes nothing.
// run: functionalize, run
graph(%x: f32[2], %a: f32[3]) {
  %d: f32[2] = aten.detach.default(%x)
  %y: f32[3] = aten.neg.default(%a)
  %s: f32[3] = aten.set_.source_Tensor(%x, %y)
  %z: f32[] = aten.sum.default(%x)
  %b: f32[2] = aten.set_.source_Tensor(%x, %d)
  return %z
}

// == functionalize
// output 1: metadata of %x as view f32[2] of input %x
//
// graph(%x: f32[2], %a: f32[3]) {
//   %y: f32[3] = aten.neg.default(%a)
//   %z: f32[] = aten.sum.default(%y)
//   return %z, None
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[][]+0 = [-3.0]

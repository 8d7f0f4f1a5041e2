// A view of an unwritten tensor stays the one view operator that it was.
// run: functionalize, run
graph(%a: f32[4, 2]) {
  %x: f32[4, 2] = aten.neg.default(%a)
  %v: f32[8] = aten.view.default(%x, [8])
  %s: f32[8] = aten.mul.Tensor(%v, %v)
  return %s
}

// == functionalize
// stage: functional
//
// graph(%a: f32[4, 2]) {
//   %x: f32[4, 2] = aten.neg.default(%a)
//   %v: f32[8] = aten.view.default(%x, [8])
//   %s: f32[8] = aten.mul.Tensor(%v, %v)
//   return %s
// }

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[8][1]+0 = [0.0 1.0 4.0 9.0 16.0 25.0 36.0 49.0]

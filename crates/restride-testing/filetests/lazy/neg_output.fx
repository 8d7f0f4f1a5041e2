// So is one that is lazily negated.
// run: functionalize, run

graph(%x: f32[4]) {
  %v: f32[4] = aten._neg_view.default(%x)
  return %v
}

// == functionalize
// graph(%x: f32[4]) {
//   %v: f32[4] = aten.neg.default(%x)
//   return %v
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [-0.0 -1.0 -2.0 -3.0]

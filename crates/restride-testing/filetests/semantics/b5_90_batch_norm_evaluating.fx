// Batch norm that does not train writes nothing.
// run: functionalize, run
graph(%x: f32[2, 2], %m: f32[2], %v: f32[2]) {
  %y: f32[2, 2] = aten.batch_norm.default(%x, None, None, %m, %v, False, 0.5, 1e-5, False)
  return %y
}

// == functionalize
// graph(%x: f32[2, 2], %m: f32[2], %v: f32[2]) {
//   %y: f32[2, 2] = aten.batch_norm.default(%x, None, None, %m, %v, False, 0.5, 1e-5, False)
//   return %y
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// input 2: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2, 2][2, 1]+0 = [0.0 0.0 632.4555053710938 1.9999899864196777]

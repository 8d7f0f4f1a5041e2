// Training batch norm writes running statistics that its schema is silent about.
// run: functionalize, run
graph(%x: f32[2, 2], %m: f32[2], %v: f32[2]) {
  %y: f32[2, 2] = aten.batch_norm.default(%x, None, None, %m, %v, True, 0.5, 1e-5, False)
  return %y
}

// == functionalize
// output 0: mutation of %m
// output 1: mutation of %v
//
// graph(%x: f32[2, 2], %m: f32[2], %v: f32[2]) {
//   %y: f32[2, 2], %y_1: f32[2], %y_2: f32[2], %y_3: f32[2], %y_4: f32[2] = aten._native_batch_norm_legit_functional.default(%x, None, None, %m, %v, True, 0.5, 1e-5)
//   return %y_3, %y_4, %y
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+0 = [0.5 1.5]
// input 2: f32[2][1]+0 = [1.0 1.5]
// output 0: f32[2, 2][2, 1]+0 = [-0.9999949932098389 -0.9999949932098389 0.9999949932098389 0.9999949932098389]

// Training batch norm of a module: the number of batches and the running statistics are written buffers.
// run: functionalize, run
weight "mean": f32[2] storage 0
weight "var": f32[2] storage 1
weight "batches": i64[] storage 2
input %m: buffer "mean"
input %v: buffer "var"
input %n: buffer "batches"
graph(%m: f32[2], %v: f32[2], %n: i64[], %x: f32[2, 2]) {
  %k: i64[] = aten.add_.Tensor(%n, 1)
  %y: f32[2, 2] = aten.batch_norm.default(%x, None, None, %m, %v, True, 0.5, 1e-5, False)
  return %y
}

// == functionalize
// weight "batches": i64[] storage 0
// weight "mean": f32[2] storage 1
// weight "var": f32[2] storage 2
// input %m: buffer "mean"
// input %v: buffer "var"
// input %n: buffer "batches"
// output 0: mutation of %m
// output 1: mutation of %v
// output 2: mutation of %n
//
// graph(%m: f32[2], %v: f32[2], %n: i64[], %x: f32[2, 2]) {
//   %k: i64[] = aten.add.Tensor(%n, 1)
//   %y: f32[2, 2], %y_1: f32[2], %y_2: f32[2], %y_3: f32[2], %y_4: f32[2] = aten._native_batch_norm_legit_functional.default(%x, None, None, %m, %v, True, 0.5, 1e-5)
//   return %y_3, %y_4, %k, %y
// }

// == run
// input 0: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// batches: i64[][]+0 = [1]
// mean: f32[2][1]+0 = [0.5 1.5]
// var: f32[2][1]+0 = [1.0 1.5]
// output 0: f32[2, 2][2, 1]+0 = [-0.9999949932098389 -0.9999949932098389 0.9999949932098389 0.9999949932098389]

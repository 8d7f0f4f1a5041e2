// Indexed by an input and by an intermediate that is written before.
// run: functionalize, run
graph(%x: f32[2, 3], %i: i64[2]) {
  %j: i64[2] = aten.mul.Tensor(%i, 2)
  %w: i64[2] = aten.sub_.Tensor(%j, 1)
  %k: i64[2] = aten.abs_.default(%j)
  %y: f32[2] = aten.index.Tensor(%x, [%i, %j])
  return %y
}

// == functionalize
// graph(%x: f32[2, 3], %i: i64[2]) {
//   %j: i64[2] = aten.mul.Tensor(%i, 2)
//   %w: i64[2] = aten.sub.Tensor(%j, 1)
//   %k: i64[2] = aten.abs.default(%w)
//   %y: f32[2] = aten.index.Tensor(%x, [%i, %k])
//   return %y
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 1: i64[2][1]+0 = [0 1]
// output 0: f32[2][1]+0 = [1.0 4.0]

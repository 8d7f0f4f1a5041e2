// A number is added to a view in place, and a result divided in place: element types are those of the targets.
// run: functionalize, run
graph(%a: i64[4, 2]) {
  %x: i64[4, 2] = aten.clone.default(%a)
  %v: i64[8] = aten.view.default(%x, [8])
  %w: i64[8] = aten.add_.Scalar(%v, 1)
  %y: f32[4, 2] = aten.mul.Tensor(%x, 2.5)
  %d: f32[4, 2] = aten.div_.Tensor(%y, 2)
  return %x, %d
}

// == functionalize
// stage: functional
//
// graph(%a: i64[4, 2]) {
//   %x: i64[4, 2] = aten.clone.default(%a)
//   %v: i64[8] = aten.view.default(%x, [8])
//   %w: i64[8] = aten.add.Scalar(%v, 1)
//   %w_1: i64[4, 2] = aten.reshape.default(%w, [4, 2])
//   %y: f32[4, 2] = aten.mul.Tensor(%w_1, 2.5)
//   %d: f32[4, 2] = aten.div.Tensor(%y, 2)
//   return %w_1, %d
// }

// == run
// input 0: i64[4, 2][2, 1]+0 = [0 1 2 3 4 5 6 7]
// output 0: i64[4, 2][2, 1]+0 = [1 2 3 4 5 6 7 8]
// output 1: f32[4, 2][2, 1]+0 = [1.25 2.5 3.75 5.0 6.25 7.5 8.75 10.0]

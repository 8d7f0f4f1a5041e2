// A view of a view that is made, written and forgotten still updates its base.
// run: functionalize, run
graph(%x: f32[4, 2]) {
  %y: f32[4, 2] = aten.add.Tensor(%x, %x)
  %a: f32[2, 4] = aten.view.default(%y, [2, 4])
  %b: f32[4]+4 = aten.select.int(%a, 0, 1)
  %c: f32[2]+5 = aten.slice.Tensor(%b, 0, 1, 3)
  %w: f32[2]+5 = aten.add_.Tensor(%c, 1)
  return %y
}

// == functionalize
// stage: functional
//
// graph(%x: f32[4, 2]) {
//   %y: f32[4, 2] = aten.add.Tensor(%x, %x)
//   %a: f32[2, 4] = aten.view.default(%y, [2, 4])
//   %b: f32[4]+4 = aten.select.int(%a, 0, 1)
//   %c: f32[2]+5 = aten.slice.Tensor(%b, 0, 1, 3)
//   %w: f32[2]+5 = aten.add.Tensor(%c, 1)
//   %w_1: f32[4, 2] = aten.as_strided_scatter.default(%y, %w, [2], [1], 5)
//   return %w_1
// }

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[4, 2][2, 1]+0 = [0.0 2.0 4.0 6.0 8.0 11.0 13.0 14.0]

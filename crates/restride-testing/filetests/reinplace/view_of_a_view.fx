// A view that asks for strides takes a view of the same strides, wherever that starts.
// run: functionalize, views, run
graph(%x: f32[4, 6]) {
  %a: f32[2, 6] = aten.slice_copy.Tensor(%x, 0, 1, 3)
  %b: f32[3, 4] = aten.view.default(%a, [3, 4])
  %d: f32[3] = aten.sum.dim_IntList(%b, [1])
  return %d
}

// == functionalize
// stage: functional
//
// graph(%x: f32[4, 6]) {
//   %a: f32[2, 6] = aten.slice_copy.Tensor(%x, 0, 1, 3)
//   %b: f32[3, 4] = aten.view.default(%a, [3, 4])
//   %d: f32[3] = aten.sum.dim_IntList(%b, [1])
//   return %d
// }

// == views
// stage: functional
//
// graph(%x: f32[4, 6]) {
//   %a: f32[2, 6]+6 = aten.slice.Tensor(%x, 0, 1, 3)
//   %b: f32[3, 4]+6 = aten.view.default(%a, [3, 4])
//   %d: f32[3] = aten.sum.dim_IntList(%b, [1])
//   return %d
// }

// == run
// input 0: f32[4, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// output 0: f32[3][1]+0 = [30.0 46.0 62.0]

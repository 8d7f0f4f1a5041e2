// Copying forms of views are views where the caller sees neither them nor strides that follow from them.
// run: functionalize, reinplace, views, run
graph(%x: f32[2, 3, 4]) {
  %a: f32[3, 4] = aten.select_copy.int(%x, 0, 1)
  %b: f32[3, 2] = aten.slice_copy.Tensor(%a, 1, 1, 3)
  %c: f32[1, 3, 2] = aten.unsqueeze_copy.default(%b, 0)
  %d: f32[1] = aten.sum.dim_IntList(%c, [1, 2])
  %e: f32[12] = aten.view_copy.default(%a, [12])
  %f: f32[12] = aten.exp.default(%e)
  return %d, %f
}

// == functionalize
// graph(%x: f32[2, 3, 4]) {
//   %a: f32[3, 4] = aten.select_copy.int(%x, 0, 1)
//   %b: f32[3, 2] = aten.slice_copy.Tensor(%a, 1, 1, 3)
//   %c: f32[1, 3, 2] = aten.unsqueeze_copy.default(%b, 0)
//   %d: f32[1] = aten.sum.dim_IntList(%c, [1, 2])
//   %e: f32[12] = aten.view_copy.default(%a, [12])
//   %f: f32[12] = aten.exp.default(%e)
//   return %d, %f
// }

// == reinplace
// graph(%x: f32[2, 3, 4]) {
//   %a: f32[3, 4]+12 = aten.select.int(%x, 0, 1)
//   %b: f32[3, 2][4, 1]+13 = aten.slice.Tensor(%a, 1, 1, 3)
//   %c: f32[1, 3, 2][12, 4, 1]+13 = aten.unsqueeze.default(%b, 0)
//   %d: f32[1] = aten.sum.dim_IntList(%c, [1, 2])
//   %e: f32[12]+12 = aten.view.default(%a, [12])
//   %f: f32[12] = aten.exp.default(%e)
//   return %d, %f
// }

// == views
// stage: functional
//
// graph(%x: f32[2, 3, 4]) {
//   %a: f32[3, 4]+12 = aten.select.int(%x, 0, 1)
//   %b: f32[3, 2][4, 1]+13 = aten.slice.Tensor(%a, 1, 1, 3)
//   %c: f32[1, 3, 2][12, 4, 1]+13 = aten.unsqueeze.default(%b, 0)
//   %d: f32[1] = aten.sum.dim_IntList(%c, [1, 2])
//   %e: f32[12]+12 = aten.view.default(%a, [12])
//   %f: f32[12] = aten.exp.default(%e)
//   return %d, %f
// }

// == run
// input 0: f32[2, 3, 4][12, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// output 0: f32[1][1]+0 = [105.0]
// output 1: f32[12][1]+0 = [162754.796875 442413.375 1202604.25 3269017.5 8886111.0 24154952.0 65659968.0 178482304.0 485165184.0 1318815744.0 3584912896.0 9744803840.0]

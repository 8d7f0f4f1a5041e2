// Views of views are one view of the base where that is one operator. What is detached stays detached.
// run: written, run
stage: functional
graph(%x: f32[4, 6]) {
  %y: f32[4, 6] = aten.add.Tensor(%x, 1)
  %a: f32[24] = aten.view.default(%y, [24])
  %b: f32[2, 12] = aten.view.default(%a, [2, 12])
  %c: f32[8, 3] = aten.view.default(%b, [8, 3])
  %d: f32[3, 8][1, 3] = aten.t.default(%c)
  %e: f32[8, 3] = aten.t.default(%d)
  %f: f32[8, 3] = aten.detach.default(%e)
  %g: f32[24] = aten.view.default(%f, [24])
  return %e, %g
}

// == written
// stage: functional
//
// graph(%x: f32[4, 6]) {
//   %y: f32[4, 6] = aten.add.Tensor(%x, 1)
//   %a: f32[24] = aten.view.default(%y, [24])
//   %b: f32[2, 12] = aten.view.default(%y, [2, 12])
//   %c: f32[8, 3] = aten.view.default(%y, [8, 3])
//   %d: f32[3, 8][1, 3] = aten.t.default(%c)
//   %f: f32[8, 3] = aten.detach.default(%c)
//   %g: f32[24] = aten.view.default(%f, [24])
//   return %c, %g
// }

// == run
// input 0: f32[4, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// output 0: f32[8, 3][3, 1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0]
// output 1: f32[24][1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0]

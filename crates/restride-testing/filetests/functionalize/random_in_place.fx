// Random in-place operators draw in their own order, which writes around them do not change.
// run: functionalize, run
// torch: its draws are its own
graph(%x: f32[4], %y: f32[4]) {
  %p: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
  %a: f32[2] = aten.uniform_.default(%p, 0, 1)
  %b: f32[4] = aten.normal_.default(%y, 0, 1)
  %c: f32[4] = aten.bernoulli_.float(%x, 0.5)
  %d: f32[2] = aten.uniform_.default(%p, 0, 1)
  return %p
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: mutation of %y
// output 2: user as view f32[2] of input %x
//
// graph(%x: f32[4], %y: f32[4]) {
//   %p: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
//   %a: f32[2] = aten.uniform.default(%p, 0, 1) !key 1
//   %a_1: f32[4] = aten.slice_scatter.default(%x, %a, 0, 0, 2)
//   %b: f32[4] = aten.normal_functional.default(%y, 0, 1) !key 2
//   %c: f32[4] = aten.bernoulli.p(%a_1, 0.5) !key 3
//   %d: f32[2] = aten.slice.Tensor(%c, 0, 0, 2)
//   %d_1: f32[2] = aten.uniform.default(%d, 0, 1) !key 4
//   %d_2: f32[4] = aten.slice_scatter.default(%c, %d_1, 0, 0, 2)
//   return %d_2, %b, %d_1
// }

// == run
// input 0: f32[4][1]+0 = [0.5072723627090454 0.6706063747406006 1.0 1.0]
// input 1: f32[4][1]+0 = [0.779505729675293 0.4707513153553009 -0.13764120638370514 1.7070611715316772]
// output 0: f32[2][1]+0 = [0.5072723627090454 0.6706063747406006], on the storage of input 0

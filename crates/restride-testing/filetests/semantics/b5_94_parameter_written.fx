// A parameter is written through a detached view.
// run: functionalize, run
weight "p": f32[2, 2][1, 2] storage 0 parameter requires_grad
input %p: parameter "p"
graph(%p: f32[2, 2][1, 2], %x: f32[2]) {
  %d: f32[2, 2][1, 2] = aten.detach.default(%p) !no_grad
  %c: f32[2, 2][1, 2] = aten.copy_.default(%d, %x) !no_grad
  %y: f32[2] = aten.mv.default(%p, %x)
  return %y
}

// == functionalize
// stage: functional
// weight "p": f32[2, 2][1, 2] storage 0 parameter requires_grad
// input %p: parameter "p"
// output 0: mutation of %p
//
// graph(%p: f32[2, 2][1, 2], %x: f32[2]) {
//   %d: f32[2, 2][1, 2] = aten.detach.default(%p) !no_grad
//   %c: f32[2, 2][1, 2] = aten.copy.default(%d, %x) !no_grad
//   %y: f32[2, 2][1, 2] = restride.with_history.default(%c, %p)
//   %y_1: f32[2] = aten.mv.default(%y, %x)
//   return %c, %y_1
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// p: f32[2, 2][1, 2]+0 = [0.0 1.0 0.0 1.0]
// output 0: f32[2][1]+0 = [1.0 1.0]

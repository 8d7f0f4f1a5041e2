// What is detached in place is a constant from then on, but for what is written to it afterwards.
// run: functionalize, grad, run
graph(%x: f32[2], %y: f32[2]) {
  %t: f32[2] = aten.mul.Tensor(%x, %x)
  %d: f32[2] = aten.detach_.default(%t)
  %u: f32[2] = aten.mul.Tensor(%t, %x)
  %w: f32[2] = aten.mul_.Tensor(%t, %y)
  %v: f32[2] = aten.add.Tensor(%u, %t)
  %l: f32[] = aten.sum.default(%v)
  return %l
}

// == functionalize
// stage: functional
//
// graph(%x: f32[2], %y: f32[2]) {
//   %t: f32[2] = aten.mul.Tensor(%x, %x)
//   %u: f32[2] = aten.detach.default(%t)
//   %u_1: f32[2] = aten.mul.Tensor(%u, %x)
//   %w: f32[2] = aten.mul.Tensor(%u, %y)
//   %v: f32[2] = aten.add.Tensor(%u_1, %w)
//   %l: f32[] = aten.sum.default(%v)
//   return %l
// }

// == grad
// stage: functional
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %y
//
// graph(%x: f32[2], %y: f32[2]) {
//   %t: f32[2] = aten.mul.Tensor(%x, %x)
//   %u: f32[2] = aten.detach.default(%t)
//   %u_1: f32[2] = aten.mul.Tensor(%u, %x)
//   %w: f32[2] = aten.mul.Tensor(%u, %y)
//   %v: f32[2] = aten.add.Tensor(%u_1, %w)
//   %l: f32[] = aten.sum.default(%v)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1] = aten.reshape.default(%grad, [1])
//   %grad_2: f32[2][0] = aten.expand.default(%grad_1, [2])
//   %grad_3: f32[2] = aten.mul.Tensor(%grad_2, %u)
//   %grad_4: f32[2] = aten.mul.Tensor(%grad_2, %u)
//   return %l, %grad_4, %grad_3
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[][]+0 = [2.0]

// An intermediate that is returned is transposed, unsqueezed and detached in place.
// run: functionalize, run
graph(%a: f32[2, 3]) {
  %x: f32[2, 3] = aten.mul.Tensor(%a, 2)
  %t: f32[3, 2][1, 3] = aten.t_.default(%x)
  %d: f32[3, 2][1, 3] = aten.detach_.default(%x)
  %y: f32[2, 3] = aten.add.Tensor(%a, 1)
  %u: f32[1, 2, 3] = aten.unsqueeze_.default(%y, 0)
  return %x, %y
}

// == functionalize
// stage: functional
// output 0: user as view f32[3, 2][1, 3] of base 2
// output 1: user as view f32[1, 2, 3] of base 3
// output 2: base
// output 3: base
//
// graph(%a: f32[2, 3]) {
//   %x: f32[2, 3] = aten.mul.Tensor(%a, 2)
//   %y: f32[2, 3] = aten.add.Tensor(%a, 1)
//   %v: f32[3, 2][1, 3] = aten.permute.default(%x, [1, 0])
//   %v_1: f32[3, 2][1, 3] = aten.detach.default(%v)
//   %v_2: f32[1, 2, 3] = aten.reshape.default(%y, [1, 2, 3])
//   return %v_1, %v_2, %x, %y
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[3, 2][1, 3]+0 = [0.0 6.0 2.0 8.0 4.0 10.0]
// output 1: f32[1, 2, 3][6, 3, 1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0]

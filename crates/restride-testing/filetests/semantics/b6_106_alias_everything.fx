// A written input on shared memory, an output that is a view of an output, and one that is a view of an intermediate.
// run: functionalize, run
// share: %x %y
graph(%x: f32[4], %y: f32[2]+1) {
  %w: f32[4] = aten.mul_.Tensor(%x, 2)
  %v: f32[2, 1]+1 = aten.view.default(%y, [2, 1])
  %i: f32[2] = aten.add.Tensor(%y, 1)
  %j: f32[1, 2] = aten.view.default(%i, [1, 2])
  return %v, %y, %i, %j
}

// == functionalize
// stage: functional
// input %storage_x_y: storage of %x, %y
// output 0: mutation of %storage_x_y
// output 1: user as view f32[2, 1]+1 of input %storage_x_y
// output 2: user as view f32[2]+1 of input %storage_x_y
// output 3: user as view f32[2] of base 5
// output 4: user as view f32[1, 2] of base 5
// output 5: base
//
// graph(%x: f32[4], %y: f32[2]+1, %storage_x_y: f32[4]) {
//   %w: f32[4] = aten.mul.Tensor(%storage_x_y, 2)
//   %i: f32[2]+1 = aten.slice.Tensor(%w, 0, 1, 3)
//   %i_1: f32[2] = aten.add.Tensor(%i, 1)
//   %v: f32[2, 1]+1 = aten.view.default(%i, [2, 1])
//   %j: f32[1, 2] = aten.view.default(%i_1, [1, 2])
//   return %w, %v, %i, %i_1, %j, %i_1
// }

// == run
// input 0: f32[4][1]+0 = [0.0 2.0 4.0 6.0]
// input 1: f32[2][1]+1 = [2.0 4.0], on the storage of input 0
// output 0: f32[2, 1][1, 1]+1 = [2.0 4.0], on the storage of input 0
// output 1: f32[2][1]+1 = [2.0 4.0], on the storage of input 0
// output 2: f32[2][1]+0 = [3.0 5.0]
// output 3: f32[1, 2][2, 1]+0 = [3.0 5.0], on the storage of output 2

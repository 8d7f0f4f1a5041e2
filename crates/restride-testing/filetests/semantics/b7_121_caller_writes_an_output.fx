// The caller writes an output afterwards: the outputs and the input on the same memory change, a copy does not.
// run: functionalize, run
// caller: output 1 = 70
// caller: output 3 = 50
graph(%x: f32[4]) {
  %w: f32[4] = aten.add_.Tensor(%x, 1)
  %v: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
  %y: f32[4] = aten.mul.Tensor(%x, 2)
  %u: f32[2]+2 = aten.slice.Tensor(%y, 0, 2, 4)
  %c: f32[4] = aten.clone.default(%x)
  return %x, %v, %y, %u, %c
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[4] of input %x
// output 2: user as view f32[2]+1 of input %x
// output 3: user as view f32[4] of base 6
// output 4: user as view f32[2]+2 of base 6
// output 6: base
//
// graph(%x: f32[4]) {
//   %w: f32[4] = aten.add.Tensor(%x, 1)
//   %y: f32[4] = aten.mul.Tensor(%w, 2)
//   %c: f32[4] = aten.clone.default(%w)
//   %v: f32[2]+1 = aten.slice.Tensor(%w, 0, 1, 3)
//   %u: f32[2]+2 = aten.slice.Tensor(%y, 0, 2, 4)
//   return %w, %w, %v, %y, %u, %c, %y
// }

// == run
// input 0: f32[4][1]+0 = [1.0 70.0 70.0 4.0]
// output 0: f32[4][1]+0 = [1.0 70.0 70.0 4.0], on the storage of input 0
// output 1: f32[2][1]+1 = [70.0 70.0], on the storage of input 0
// output 2: f32[4][1]+0 = [2.0 4.0 50.0 50.0]
// output 3: f32[2][1]+2 = [50.0 50.0], on the storage of output 2
// output 4: f32[4][1]+0 = [1.0 2.0 3.0 4.0]

// Two inputs on one storage, with no cell in common, are both written in place.
// run: remarks, copies, run
// share: %x %y
graph(%x: f32[2], %y: f32[2]+2) {
  %w: f32[2] = aten.add_.Tensor(%x, %y)
  %z: f32[2]+2 = aten.mul_.Tensor(%y, 2)
  return %w, %z
}

// == remarks
// %w = aten.add.Tensor(%x, %y)
//   computed in the input's memory, %x: taken, 8 bytes
// %w = aten.add.Tensor(%x, %y)
//   computed in a dying operand, %x: taken, 8 bytes
// %z = aten.mul.Tensor(%y, 2)
//   computed in the input's memory, %y: taken, 8 bytes
// %z = aten.mul.Tensor(%y, 2)
//   computed in a dying operand, %y: taken, 8 bytes

// == copies
// none

// == run
// input 0: f32[2][1]+0 = [2.0 4.0]
// input 1: f32[2][1]+2 = [4.0 6.0], on the storage of input 0
// output 0: f32[2][1]+0 = [2.0 4.0], on the storage of input 0
// output 1: f32[2][1]+2 = [4.0 6.0], on the storage of input 0

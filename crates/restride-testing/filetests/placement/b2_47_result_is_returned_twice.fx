// What is returned is computed in the memory that the caller gets.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %b: f32[4] = aten.add_.Tensor(%a, 1)
  return %b, %b
}

// == remarks
// %b = aten.add.Tensor(%a, 1)
//   computed in the output's memory: taken, 16 bytes
// %b = aten.add.Tensor(%a, 1)
//   computed in a dying operand, %a: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [1.0 3.0 5.0 7.0]
// output 1: f32[4][1]+0 = [1.0 3.0 5.0 7.0], on the storage of output 0

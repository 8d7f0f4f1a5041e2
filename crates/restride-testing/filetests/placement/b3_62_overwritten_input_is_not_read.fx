// An input is overwritten by what is computed from it: its old content is not needed, all is done in its memory.
// run: remarks, copies, run
graph(%x: f32[4]) {
  %a: f32[4] = aten.add.Tensor(%x, 1)
  %b: f32[4] = aten.mul.Tensor(%a, 2)
  %w: f32[4] = aten.copy_.default(%x, %b)
  return %w
}

// == remarks
// %a = aten.add.Tensor(%x, 1)
//   computed in a dying operand, %x: taken, 16 bytes
// %b = aten.mul.Tensor(%a, 2)
//   computed in the input's memory, %x: taken, 16 bytes
// %b = aten.mul.Tensor(%a, 2)
//   computed in a dying operand, %a: taken, 16 bytes

// == copies
// none

// == run
// input 0: f32[4][1]+0 = [2.0 4.0 6.0 8.0]
// output 0: f32[4][1]+0 = [2.0 4.0 6.0 8.0], on the storage of input 0

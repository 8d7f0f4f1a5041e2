// Each member of a list is an input that gets its new content.
// run: remarks, copies, run
graph(%x: f32[2], %y: f32[3]) {
  aten._foreach_add_.Scalar([%x, %y], 1)
  %d: f32[2] = aten.flip.default(%x, [-1])
  return %d
}

// == remarks
// %add = aten.add.Scalar(%x, 1)
//   computed in the input's memory, %x: taken, 8 bytes
// %add = aten.add.Scalar(%x, 1)
//   computed in a dying operand, %x: taken, 8 bytes
// %add_1 = aten.add.Scalar(%y, 1)
//   computed in the input's memory, %y: taken, 12 bytes
// %add_1 = aten.add.Scalar(%y, 1)
//   computed in a dying operand, %y: taken, 12 bytes
// %d = aten.flip.default(%add, [-1])
//   computed in the output's memory: taken, 8 bytes

// == copies
// none

// == run
// input 0: f32[2][1]+0 = [1.0 2.0]
// input 1: f32[3][1]+0 = [1.0 2.0 3.0]
// output 0: f32[2][1]+0 = [2.0 1.0]

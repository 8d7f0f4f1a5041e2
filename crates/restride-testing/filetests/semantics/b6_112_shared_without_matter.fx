// Compiled for inputs apart, run on inputs that share unwritten cells: the same program is right.
// run: run, share-later
// share: %x %y
graph(%x: f32[4], %y: f32[2]+2) {
  %a: f32[4] = aten.mul.Tensor(%x, 10)
  %b: f32[2]+2 = aten.slice.Tensor(%a, 0, 2, 4)
  %w: f32[2]+2 = aten.add_.Tensor(%b, %y)
  return %a
}

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+2 = [2.0 3.0], on the storage of input 0
// output 0: f32[4][1]+0 = [0.0 10.0 22.0 33.0]

// == share-later
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[2][1]+2 = [2.0 3.0], on the storage of input 0
// output 0: f32[4][1]+0 = [0.0 10.0 22.0 33.0]

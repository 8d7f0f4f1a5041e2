// Compiled for inputs apart, run on inputs that share what is written: refused, not wrong.
// run: run, share-later
// share: %x %y
graph(%x: f32[4], %y: f32[2]+2) {
  %w: f32[4] = aten.mul_.Tensor(%x, 10)
  %s: f32[2] = aten.add.Tensor(%y, 1)
  return %s
}

// == run
// input 0: f32[4][1]+0 = [0.0 10.0 20.0 30.0]
// input 1: f32[2][1]+2 = [20.0 30.0], on the storage of input 0
// output 0: f32[2][1]+0 = [21.0 31.0]

// == share-later
// error: input x is written and shares memory with input y, which the program does not provide for; pass copies, or make the program functional for inputs that share memory like these

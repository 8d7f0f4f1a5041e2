// An input that is written while its old value is still needed.
// run: place, remarks, run
graph(%x: f32[4]) {
  %old: f32[4] = aten.clone.default(%x)
  %w: f32[4] = aten.add_.Tensor(%x, 1)
  %d: f32[4] = aten.mul.Tensor(%old, %x)
  return %d
}

// == place
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %x, 16 bytes
// buffer buf1: arena, 16 bytes at 0
// buffer buf2: output 1, 16 bytes
//
// graph(%x: f32[4] @ buf0[4]) {
//   free %old @ buf0[4] = aten.clone.default(%x @ buf0[4])
//   %w @ buf1[4] = aten.add.Tensor(%x @ buf0[4], 1)
//   %d @ buf2[4] = aten.mul.Tensor(%old @ buf0[4], %w @ buf1[4])
//   move %w: buf1[4] -> buf0[4]
//   return %w @ buf1[4], %d @ buf2[4]
// }

// == remarks
// %old = aten.clone.default(%x)
//   kept as a view of its base, %x: taken, 16 bytes
// %w = aten.add.Tensor(%x, 1)
//   not computed in the input's memory, %x: still read by %d = aten.mul.Tensor(%old, %w), 16 bytes
// %w = aten.add.Tensor(%x, 1)
//   not computed in its operand, %x: still read by %d = aten.mul.Tensor(%old, %w), 16 bytes
// %d = aten.mul.Tensor(%old, %w)
//   computed in the output's memory: taken, 16 bytes

// == run
// input 0: f32[4][1]+0 = [1.0 2.0 3.0 4.0]
// output 0: f32[4][1]+0 = [0.0 2.0 6.0 12.0]

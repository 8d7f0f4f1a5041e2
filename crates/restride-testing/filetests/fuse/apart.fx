// run: fuse, place fused, run
// A value that a node between the group's nodes reads keeps its own step. A body that reads one of its values transposed is computed as
// a whole.
graph(%x: f32[4, 4], %y: f32[4, 4]) {
  %a: f32[4, 4] = aten.neg.default(%x)
  %p: f32[4, 4] = aten.mm.default(%a, %y)
  %b: f32[4, 4] = aten.relu.default(%a)
  %c: f32[4, 4] = aten.add.Tensor(%b, %p)
  %e: f32[4, 4] = aten.exp.default(%c)
  %t: f32[4, 4][1, 4] = aten.t.default(%e)
  %d: f32[4, 4] = aten.add.Tensor(%e, %t)
  %r: f32[4, 4] = aten.abs.default(%d)
  return %r
}

// == fuse
// stage: functional
//
// graph(%x: f32[4, 4], %y: f32[4, 4]) {
//   %a: f32[4, 4] = aten.neg.default(%x)
//   %p: f32[4, 4] = aten.mm.default(%a, %y)
//   %r: f32[4, 4] = restride.fused.default(@graph1, [%a, %p])
//   return %r
// }
//
// graph @graph1(%a: f32[4, 4], %p: f32[4, 4]) {
//   %b: f32[4, 4] = aten.relu.default(%a)
//   %c: f32[4, 4] = aten.add.Tensor(%b, %p)
//   %e: f32[4, 4] = aten.exp.default(%c)
//   %t: f32[4, 4][1, 4] = aten.t.default(%e)
//   %d: f32[4, 4] = aten.add.Tensor(%e, %t)
//   %r: f32[4, 4] = aten.abs.default(%d)
//   return %r
// }

// == place fused
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %x, 64 bytes
// buffer buf1: input %y, 64 bytes
// buffer buf2: output 0, 64 bytes
// buffer buf3: arena, 64 bytes at 0
//
// graph(%x: f32[4, 4] @ buf0[4, 4], %y: f32[4, 4] @ buf1[4, 4]) {
//   %a @ buf2[4, 4] = aten.neg.default(%x @ buf0[4, 4])
//   %p @ buf3[4, 4] = aten.mm.default(%a @ buf2[4, 4], %y @ buf1[4, 4])
//   %r @ buf2[4, 4] = restride.fused.default(@graph1, [%a @ buf2[4, 4], %p @ buf3[4, 4]])
//   return %r @ buf2[4, 4]
// }

// == run
// input 0: f32[4, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0]
// input 1: f32[4, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0]
// output 0: f32[4, 4][4, 1]+0 = [9.561785990412279e-25 1.1850648504208067e-27 2.9374821418009058e-30 7.2812904542176e-33 1.1850648504208067e-27 0.0 0.0 0.0 2.9374821418009058e-30 0.0 0.0 0.0 7.2812904542176e-33 0.0 0.0 0.0]

// run: copies, run
// Halves put together, shuffled and copied: each half is computed in its places of the copy.
graph(%x: f32[1, 3, 2, 2]) {
  %a: f32[1, 3, 2, 2] = aten.neg.default(%x)
  %b: f32[1, 3, 2, 2] = aten.relu.default(%x)
  %c: f32[1, 6, 2, 2] = aten.cat.default([%a, %b], 1)
  %v: f32[1, 2, 3, 2, 2] = aten.view.default(%c, [1, 2, 3, 2, 2])
  %t: f32[1, 3, 2, 2, 2][24, 4, 12, 2, 1] = aten.transpose.int(%v, 1, 2)
  %k: f32[1, 3, 2, 2, 2] = aten.contiguous.default(%t)
  %s: f32[1, 6, 2, 2] = aten.view.default(%k, [1, 6, 2, 2])
  %y: f32[1, 6, 2, 2] = aten.flip.default(%s, [1])
  return %y
}

// == copies
// none

// == run
// input 0: f32[1, 3, 2, 2][12, 4, 2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[1, 6, 2, 2][24, 4, 2, 1]+0 = [8.0 9.0 10.0 11.0 -8.0 -9.0 -10.0 -11.0 4.0 5.0 6.0 7.0 -4.0 -5.0 -6.0 -7.0 0.0 1.0 2.0 3.0 -0.0 -1.0 -2.0 -3.0]

// run: copies, run
// What is padded by nothing is there already.
graph(%x: f32[2, 3]) {
  %a: f32[2, 3] = aten.neg.default(%x)
  %p: f32[2, 3] = aten.constant_pad_nd.default(%a, [0, 0, 0, 0])
  %y: f32[2, 3] = aten.flip.default(%p, [0])
  return %y
}

// == copies
// none

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// output 0: f32[2, 3][3, 1]+0 = [-3.0 -4.0 -5.0 -0.0 -1.0 -2.0]

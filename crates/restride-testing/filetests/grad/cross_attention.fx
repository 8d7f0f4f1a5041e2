// Keys and values have symbols of their own, which no guard compares: the operator requires them to be equal.
// run: grad, run
// sizes: s0=3 s1=4 s2=4
symbol s0 in [2, inf]
symbol s1 in [2, inf]
symbol s2 in [2, inf]
graph(%q: f32[1, 2, s0, 4], %k: f32[1, 2, s1, 4], %v: f32[1, 2, s2, 4]) {
  %o: f32[1, 2, s0, 4] = aten.scaled_dot_product_attention.default(%q, %k, %v)
  %l: f32[] = aten.sum.default(%o)
  return %l
}

// == grad
// stage: functional
// symbol s0 in [2, inf]
// symbol s1 in [2, inf]
// symbol s2 in [2, inf]
// output 0: loss
// output 1: gradient of %q
// output 2: gradient of %k
// output 3: gradient of %v
//
// graph(%q: f32[1, 2, s0, 4], %k: f32[1, 2, s1, 4], %v: f32[1, 2, s2, 4]) {
//   %o: f32[1, 2, s0, 4] = restride.attention.default(%q, %k, %v)
//   %l: f32[] = aten.sum.default(%o)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1, 1, 1] = aten.reshape.default(%grad, [1, 1, 1, 1])
//   %grad_2: f32[1, 2, s0, 4][1, 0, 0, 0] = aten.expand.default(%grad_1, [1, 2, s0, 4])
//   %grad_3: f32[1, 2, s0, 4] = aten.mul.Scalar(%q, 0.5)
//   %grad_4: f32[1, 2, 4, s1][8*s1, 4*s1, 1, 4] = aten.transpose.int(%k, -2, -1)
//   %grad_5: f32[1, 2, s0, s1] = aten.matmul.default(%grad_3, %grad_4)
//   %grad_6: f32[1, 2, s0, s1] = aten._safe_softmax.default(%grad_5, -1)
//   %grad_7: f32[1, 2, s1, s0][2*s0*s1, s0*s1, 1, s1] = aten.transpose.int(%grad_6, -2, -1)
//   %grad_8: f32[1, 2, s1, 4] = aten.matmul.default(%grad_7, %grad_2)
//   %grad_9: f32[1, 2, 4, s2][8*s2, 4*s2, 1, 4] = aten.transpose.int(%v, -2, -1)
//   %grad_10: f32[1, 2, s0, s2] = aten.matmul.default(%grad_2, %grad_9)
//   %grad_11: f32[1, 2, s0, s2] = aten._softmax_backward_data.default(%grad_10, %grad_6, -1, f32)
//   %grad_12: f32[1, 2, s0, 4] = aten.matmul.default(%grad_11, %k)
//   %grad_13: f32[1, 2, s0, 4] = aten.mul.Scalar(%grad_12, 0.5)
//   %grad_14: f32[1, 2, s2, s0][2*s0*s2, s0*s2, 1, s2] = aten.transpose.int(%grad_11, -2, -1)
//   %grad_15: f32[1, 2, s2, 4] = aten.matmul.default(%grad_14, %q)
//   %grad_16: f32[1, 2, s2, 4] = aten.mul.Scalar(%grad_15, 0.5)
//   return %l, %grad_13, %grad_16, %grad_8
// }

// == run
// input 0: f32[1, 2, 3, 4][24, 12, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// input 1: f32[1, 2, 4, 4][32, 16, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0]
// input 2: f32[1, 2, 4, 4][32, 16, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0]
// output 0: f32[][]+0 = [515.9998779296875]

// run: copies, run
// Two heads share keys and values: they are read where they are, not repeated in memory first.
graph(%q: f32[1, 4, 2, 3], %k: f32[1, 2, 3, 3], %v: f32[1, 2, 3, 3], %m: bool[1, 1, 2, 3]) {
  %ku: f32[1, 2, 1, 3, 3] = aten.unsqueeze.default(%k, 2)
  %ke: f32[1, 2, 2, 3, 3][18, 9, 0, 3, 1] = aten.expand.default(%ku, [1, 2, 2, 3, 3])
  %kr: f32[1, 4, 3, 3] = aten.reshape.default(%ke, [1, 4, 3, 3])
  %vu: f32[1, 2, 1, 3, 3] = aten.unsqueeze.default(%v, 2)
  %ve: f32[1, 2, 2, 3, 3][18, 9, 0, 3, 1] = aten.expand.default(%vu, [1, 2, 2, 3, 3])
  %vr: f32[1, 4, 3, 3] = aten.reshape.default(%ve, [1, 4, 3, 3])
  %y: f32[1, 4, 2, 3] = aten.scaled_dot_product_attention.default(%q, %kr, %vr, %m)
  return %y
}

// == copies
// none

// == run
// input 0: f32[1, 4, 2, 3][24, 6, 3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// input 1: f32[1, 2, 3, 3][18, 9, 3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0]
// input 2: f32[1, 2, 3, 3][18, 9, 3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0]
// input 3: bool[1, 1, 2, 3][6, 6, 3, 1]+0 = [false true true true true true]
// output 0: f32[1, 4, 2, 3][24, 6, 3, 1]+0 = [5.98347806930542 6.98347806930542 7.98347806930542 6.0 7.0 8.0 6.0 7.0 8.0 6.0 7.0 8.0 15.0 16.0 17.0 15.0 16.0 17.0 15.0 16.0 17.0 15.0 16.0 17.0]

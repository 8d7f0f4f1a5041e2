// Sizes within compositions are products of several sizes, and halves of one.
// run: grad, run
// sizes: s0=3 s1=5
symbol s0 in [2, 64]
symbol s1 in [2, 128]
graph(%x: f32[s0, 4, s1, 5], %w: f32[s1, 7]) {
  %e: f32[s0, 4, 7, 5] = aten.einsum.default("bhtd,tk->bhkd", [%x, %w])
  %s: f32[s1, 7] = aten.fft_fftshift.default(%w, [0])
  %a: f32[] = aten.sum.default(%e)
  %c: f32[s1, 7] = aten.cumsum.default(%s, 0)
  %b: f32[] = aten.sum.default(%c)
  %l: f32[] = aten.add.Tensor(%a, %b)
  return %l
}

// == grad
// stage: functional
// symbol s0 in [2, 64]
// symbol s1 in [2, 128]
// output 0: loss
// output 1: gradient of %x
// output 2: gradient of %w
//
// graph(%x: f32[s0, 4, s1, 5], %w: f32[s1, 7]) {
//   %e: f32[s0, 4, s1, 5, 1] = aten.unsqueeze.default(%x, 4)
//   %e_1: f32[s0, 4, 1, 5, s1][20*s1, 5*s1, 1, 1, 5] = aten.permute.default(%e, [0, 1, 4, 3, 2])
//   %e_2: f32[s1, 7, 1] = aten.unsqueeze.default(%w, 2)
//   %e_3: f32[s1, 7, 1, 1] = aten.unsqueeze.default(%e_2, 3)
//   %e_4: f32[s1, 7, 1, 1, 1] = aten.unsqueeze.default(%e_3, 4)
//   %e_5: f32[1, 1, 7, 1, s1][1, 1, 1, 1, 7] = aten.permute.default(%e_4, [2, 3, 1, 4, 0])
//   %e_6: f32[s0, 4, 5, s1, 1][20*s1, 5*s1, 1, 5, 1] = aten.permute.default(%e_1, [0, 1, 3, 4, 2])
//   %e_7: f32[1, 20*s0, s1] = aten.reshape.default(%e_6, [1, 20*s0, s1])
//   %e_8: f32[s1, 7, 1, 1, 1] = aten.permute.default(%e_5, [4, 2, 0, 1, 3])
//   %e_9: f32[1, s1, 7] = aten.reshape.default(%e_8, [1, s1, 7])
//   %e_10: f32[1, 20*s0, 7] = aten.bmm.default(%e_7, %e_9)
//   %e_11: f32[s0, 4, 5, 1, 7] = aten.view.default(%e_10, [s0, 4, 5, 1, 7])
//   %e_12: f32[s0, 4, 7, 5, 1][140, 35, 1, 7, 7] = aten.permute.default(%e_11, [0, 1, 4, 2, 3])
//   %e_14: f32[s0, 4, 7, 5] = aten.view.default(%e_12, [s0, 4, 7, 5])
//   %s_1: f32[s1, 7] = aten.roll.default(%w, [FloorDiv(s1, 2)], [0])
//   %a: f32[] = aten.sum.default(%e_14)
//   %c: f32[s1, 7] = aten.cumsum.default(%s_1, 0)
//   %b: f32[] = aten.sum.default(%c)
//   %l: f32[] = aten.add.Tensor(%a, %b)
//   %grad: f32[] = aten.full.default([], 1, dtype=f32)
//   %grad_1: f32[1, 1] = aten.reshape.default(%grad, [1, 1])
//   %grad_2: f32[s1, 7][0, 0] = aten.expand.default(%grad_1, [s1, 7])
//   %grad_3: f32[s1, 7] = aten.flip.default(%grad_2, [0])
//   %grad_4: f32[s1, 7] = aten.cumsum.default(%grad_3, 0)
//   %grad_5: f32[s1, 7] = aten.flip.default(%grad_4, [0])
//   %grad_6: f32[1, 1, 1, 1] = aten.reshape.default(%grad, [1, 1, 1, 1])
//   %grad_7: f32[s0, 4, 7, 5][0, 0, 0, 0] = aten.expand.default(%grad_6, [s0, 4, 7, 5])
//   %grad_8: f32[s1, 7] = aten.roll.default(%grad_5, [-1*FloorDiv(s1, 2)], [0])
//   %grad_9: f32[s0, 4, 7, 5, 1][0, 0, 0, 0, 0] = aten.reshape.default(%grad_7, [s0, 4, 7, 5, 1])
//   %grad_10: f32[s0, 4, 5, 7, 1][0, 0, 0, 0, 0] = aten.permute.default(%grad_9, [0, 1, 3, 2, 4])
//   %grad_11: f32[s0, 4, 5, 1, 7][0, 0, 0, 0, 0] = aten.reshape.default(%grad_10, [s0, 4, 5, 1, 7])
//   %grad_12: f32[s0, 4, 5, 7, 1][0, 0, 0, 0, 0] = aten.permute.default(%grad_11, [0, 1, 2, 4, 3])
//   %grad_13: f32[1, 20*s0, 7][0, 0, 0] = aten.reshape.default(%grad_12, [1, 20*s0, 7])
//   %grad_14: f32[1, 7, s1][7*s1, 1, 7] = aten.transpose.int(%e_9, -2, -1)
//   %grad_15: f32[1, 20*s0, s1] = aten.bmm.default(%grad_13, %grad_14)
//   %grad_16: f32[1, s1, 20*s0][20*s0*s1, 1, s1] = aten.transpose.int(%e_7, -2, -1)
//   %grad_17: f32[1, s1, 7] = aten.bmm.default(%grad_16, %grad_13)
//   %grad_18: f32[s1, 7, 1][7, 1, 7*s1] = aten.permute.default(%grad_17, [1, 2, 0])
//   %grad_19: f32[s1, 7, 1, 1, 1][7, 1, 7*s1, 7*s1, 7*s1] = aten.reshape.default(%grad_18, [s1, 7, 1, 1, 1])
//   %grad_20: f32[7, s1, 1, 1, 1][1, 7, 7*s1, 7*s1, 7*s1] = aten.permute.default(%grad_19, [1, 0, 2, 3, 4])
//   %grad_21: f32[1, 1, 7, 1, s1][7, 7, 1, 7*s1, 7] = aten.reshape.default(%grad_20, [1, 1, 7, 1, s1])
//   %grad_22: f32[20*s0, s1, 1][s1, 1, 20*s0*s1] = aten.permute.default(%grad_15, [1, 2, 0])
//   %grad_23: f32[s0, 4, 5, s1, 1][20*s1, 5*s1, s1, 1, 20*s0*s1] = aten.reshape.default(%grad_22, [s0, 4, 5, s1, 1])
//   %grad_24: f32[s0, 4, 1, 5, s1] = aten.reshape.default(%grad_23, [s0, 4, 1, 5, s1])
//   %grad_25: f32[s1, 7, 1, 1, 1][7, 1, 7, 7, 7*s1] = aten.permute.default(%grad_21, [4, 2, 0, 1, 3])
//   %grad_26: f32[s1, 7, 1, 1][7, 1, 7*s1, 7*s1] = aten.reshape.default(%grad_25, [s1, 7, 1, 1])
//   %grad_27: f32[s1, 7, 1][7, 1, 7*s1] = aten.reshape.default(%grad_26, [s1, 7, 1])
//   %grad_28: f32[s1, 7] = aten.reshape.default(%grad_27, [s1, 7])
//   %grad_29: f32[s1, 7] = aten.add.Tensor(%grad_8, %grad_28)
//   %grad_30: f32[s0, 4, s1, 5, 1][20*s1, 5*s1, 1, s1, 5*s1] = aten.permute.default(%grad_24, [0, 1, 4, 3, 2])
//   %grad_31: f32[s0, 4, s1, 5][20*s1, 5*s1, 1, s1] = aten.reshape.default(%grad_30, [s0, 4, s1, 5])
//   return %l, %grad_31, %grad_29
// }

// == run
// input 0: f32[3, 4, 5, 5][100, 25, 5, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0 48.0 49.0 50.0 51.0 52.0 53.0 54.0 55.0 56.0 57.0 58.0 59.0 60.0 61.0 62.0 63.0 64.0 65.0 66.0 67.0 68.0 69.0 70.0 71.0 72.0 73.0 74.0 75.0 76.0 77.0 78.0 79.0 80.0 81.0 82.0 83.0 84.0 85.0 86.0 87.0 88.0 89.0 90.0 91.0 92.0 93.0 94.0 95.0 96.0 97.0 98.0 99.0 100.0 101.0 102.0 103.0 104.0 105.0 106.0 107.0 108.0 109.0 110.0 111.0 112.0 113.0 114.0 115.0 116.0 117.0 118.0 119.0 120.0 121.0 122.0 123.0 124.0 125.0 126.0 127.0 128.0 129.0 130.0 131.0 132.0 133.0 134.0 135.0 136.0 137.0 138.0 139.0 140.0 141.0 142.0 143.0 144.0 145.0 146.0 147.0 148.0 149.0 150.0 151.0 152.0 153.0 154.0 155.0 156.0 157.0 158.0 159.0 160.0 161.0 162.0 163.0 164.0 165.0 166.0 167.0 168.0 169.0 170.0 171.0 172.0 173.0 174.0 175.0 176.0 177.0 178.0 179.0 180.0 181.0 182.0 183.0 184.0 185.0 186.0 187.0 188.0 189.0 190.0 191.0 192.0 193.0 194.0 195.0 196.0 197.0 198.0 199.0 200.0 201.0 202.0 203.0 204.0 205.0 206.0 207.0 208.0 209.0 210.0 211.0 212.0 213.0 214.0 215.0 216.0 217.0 218.0 219.0 220.0 221.0 222.0 223.0 224.0 225.0 226.0 227.0 228.0 229.0 230.0 231.0 232.0 233.0 234.0 235.0 236.0 237.0 238.0 239.0 240.0 241.0 242.0 243.0 244.0 245.0 246.0 247.0 248.0 249.0 250.0 251.0 252.0 253.0 254.0 255.0 256.0 257.0 258.0 259.0 260.0 261.0 262.0 263.0 264.0 265.0 266.0 267.0 268.0 269.0 270.0 271.0 272.0 273.0 274.0 275.0 276.0 277.0 278.0 279.0 280.0 281.0 282.0 283.0 284.0 285.0 286.0 287.0 288.0 289.0 290.0 291.0 292.0 293.0 294.0 295.0 296.0 297.0 298.0 299.0]
// input 1: f32[5, 7][7, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0]
// output 0: f32[][]+0 = [5486180.0]
